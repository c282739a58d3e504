//! Temporary directories that only the user can read, and the check that nobody else can replace files in a directory.

use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::{DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Creates a directory in `parent` with mode 0700, named `prefix` and 16 random letters. Dropping it removes it and its
/// contents.
pub fn create_in(parent: &Path, prefix: &str) -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix(prefix)
        .rand_bytes(16)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent)
}

/// A lock on a directory, held until it is dropped or the process ends. It shows other commands that the directory is
/// in use.
#[derive(Debug)]
pub struct DirectoryLock(#[expect(dead_code, reason = "held open")] Option<OwnedFd>);

impl DirectoryLock {
    /// Locks `directory`; does nothing on a file system without locks.
    pub fn take(directory: &Path) -> DirectoryLock {
        DirectoryLock(open(directory).filter(try_lock))
    }
}

fn open(directory: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, Mode::empty()).ok()
}

fn try_lock(file: &OwnedFd) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// The user's directories in `parent` whose names begin with `prefix`, that are not locked and have not changed for a
/// minute: commands that were killed have left them.
pub fn abandoned_in(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let is_abandoned = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        let Ok(data) = path.symlink_metadata() else {
            return false;
        };
        let age = data.modified().ok().and_then(|time| time.elapsed().ok());
        name.as_encoded_bytes().starts_with(prefix.as_bytes())
            && data.is_dir()
            && data.uid() == rustix::process::geteuid().as_raw()
            && age.is_some_and(|age| age > RECENT)
            && open(path).is_some_and(|file| try_lock(&file))
    };
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(is_abandoned)
        .collect()
}

/// The bit of a directory's mode by which users can replace only files of their own.
const STICKY: u32 = 0o1000;
/// Minimum age of an abandoned directory: a directory is locked shortly after its creation.
const RECENT: Duration = Duration::from_secs(60);

/// Returns whether only the user and root can replace the files in `directory`.
pub fn is_trusted(directory: &Path) -> bool {
    std::fs::metadata(directory).is_ok_and(|data| {
        let user = rustix::process::geteuid().as_raw();
        let ours = data.uid() == user || data.uid() == 0;
        let by_others = data.mode() & 0o002 != 0;
        let by_group = data.mode() & 0o020 != 0 && !is_group_of(user, data.gid());
        ours && data.is_dir() && (data.mode() & STICKY != 0 || !by_others && !by_group)
    })
}

/// Whether `group` is the user's own, with the user's name and no other member: with umask 002 such a group may write to
/// all directories of the user.
fn is_group_of(user: u32, group: u32) -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    is_only_member(user, group, &read("/etc/passwd"), &read("/etc/group"))
}

/// As [`is_group_of`], by the texts of `passwd` and `group`.
fn is_only_member(user: u32, group: u32, users: &str, groups: &str) -> bool {
    let line_of = |text: &str, id: u32| {
        let mut lines = text
            .lines()
            .map(|line| line.split(':').map(str::to_owned).collect::<Vec<_>>());
        lines.find(|line| line.get(2).is_some_and(|own| *own == id.to_string()))
    };
    let (Some(user), Some(line)) = (line_of(users, user), line_of(groups, group)) else {
        return false;
    };
    let mut members = line.get(3).map_or("", String::as_str).split(',');
    line[0] == user[0] && members.all(|member| member.is_empty() || member == user[0])
}

/// Whether this user may replace the file `path`, of which `data` are known: in a directory with the sticky bit only the
/// owners of the file and of the directory may, and root.
pub fn can_replace(path: &Path, data: &Metadata) -> bool {
    let user = rustix::process::geteuid();
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = std::fs::metadata(parent.unwrap_or(Path::new(".")));
    user.is_root()
        || data.uid() == user.as_raw()
        || parent.is_ok_and(|parent| parent.mode() & STICKY == 0 || parent.uid() == user.as_raw())
}

/// Creates a directory into which only this user can put files. One that is there already is taken if that is true of it.
pub fn create_own(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o755).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        result => return result,
    }
    let data = directory.symlink_metadata()?;
    let is_ours = data.uid() == rustix::process::geteuid().as_raw();
    if data.is_dir() && is_ours && data.mode() & 0o022 == 0 {
        return Ok(());
    }
    let what = if data.is_dir() {
        "a directory into which other users can put files"
    } else {
        "not a directory"
    };
    let text = format!(
        "{} is {what}: remove it, or choose another place",
        directory.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_harness::machine::skipped;

    #[test]
    fn the_group_of_a_user_alone_has_the_users_name_and_no_other_member() {
        let users = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        let groups = "root:x:0:\nann:x:1000:\nstaff:x:50:ann\nbob:x:1001:\n";
        let is_own = |group, groups: &str| is_only_member(1000, group, users, groups);
        assert!(is_own(1000, groups));
        assert!(is_own(1000, "ann:x:1000:ann\n"));
        assert!(!is_own(1000, "ann:x:1000:ann,bob\n"));
        assert!(!is_own(50, groups) && !is_own(1001, groups) && !is_own(7, groups));
        assert!(!is_only_member(7, 1000, users, groups));
    }

    #[test]
    fn a_private_directory_has_mode_0700() {
        let parent = std::env::temp_dir();
        let directory = create_in(&parent, "gputrail-test-").unwrap();
        let mode = std::fs::metadata(directory.path()).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn only_old_directories_that_nobody_has_locked_are_abandoned() {
        let parent = tempfile::tempdir().unwrap();
        let [old, locked, recent] = ["x-old", "x-locked", "x-recent"].map(|name| {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        });
        std::fs::create_dir(parent.path().join("y-old")).unwrap();
        for path in [&old, &locked, &parent.path().join("y-old")] {
            let file = std::fs::File::open(path).unwrap();
            file.set_modified(std::time::SystemTime::now() - 2 * RECENT)
                .unwrap();
        }
        let lock = DirectoryLock::take(&locked);
        assert_eq!(
            abandoned_in(parent.path(), "x-"),
            std::slice::from_ref(&old)
        );
        drop(lock);
        let mut abandoned = abandoned_in(parent.path(), "x-");
        abandoned.sort();
        assert_eq!(abandoned, [locked, old]);
        assert!(recent.exists());
    }

    #[test]
    fn a_directory_that_all_may_write_is_trusted_only_if_sticky() {
        let directory = create_in(&std::env::temp_dir(), "gputrail-test-").unwrap();
        assert!(is_trusted(directory.path()));
        for (mode, trusted) in [(0o777, false), (0o1777, true), (0o755, true)] {
            std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(is_trusted(directory.path()), trusted, "{mode:o}");
        }
    }

    #[test]
    fn a_directory_into_which_others_can_put_files_is_not_ours() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("libraries");
        create_own(&path).unwrap();
        create_own(&path).unwrap();
        for mode in [0o777, 0o1777, 0o775] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = create_own(&path).unwrap_err().to_string();
            assert!(error.contains("other users can put files"), "{error}");
        }
        let link = parent.path().join("link");
        std::os::unix::fs::symlink("libraries", &link).unwrap();
        assert!(create_own(&link).is_err());
    }

    #[test]
    fn a_directory_of_another_user_is_not_ours() {
        if !rustix::process::geteuid().is_root() {
            skipped(
                "a_directory_of_another_user_is_not_ours",
                "only the superuser can give a directory to another user",
            );
            return;
        }
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("libraries");
        create_own(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(65_533), None).unwrap();
        assert!(create_own(&path).is_err());
    }
}
