//! The carried libraries in the user's cache: written once, and loaded from there by every recorded program.
//!
//! A program must load exactly the bytes that the command carries. So a file in the cache is used only if nobody except
//! the user and root can change it, and only if it has not been changed: once it is complete and on the disk, it gets a
//! fixed modification time, which every later write changes. If these conditions do not hold, or there is no cache
//! directory, the library is written for one recording.

use crate::carried::CarriedLibrary;
use crate::private_dir;
use gputrail_collect::loading::opencl;
use rustix::fs::{FlockOperation, Mode, OFlags, StatVfsMountFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const PREFIX: &str = "libgputrail-";
const SUFFIX: &str = ".so.0";
/// Maximum number of other libraries that are kept: two of each version, the most recently used ones, and none that has
/// not been used for a month.
const MAX_OTHERS: usize = 8;
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);
/// Interval at which the use of a library is noted.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Modification time of a complete library: 2000-01-01.
const WHOLE: Duration = Duration::from_secs(946_684_800);

/// A library in the cache.
pub struct Cached {
    pub path: PathBuf,
    /// Holds a lock, so that the file is not removed.
    _file: File,
}

/// The carried library in the user's cache, if it can be there.
pub fn library(carried: CarriedLibrary) -> Option<Cached> {
    library_in(&user_cache()?, carried.bytes, carried.id)
}

/// The user's cache directory.
fn user_cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    variable("XDG_CACHE_HOME")
        .filter(|cache| cache.is_absolute())
        .or_else(|| {
            let home = variable("HOME").filter(|home| home.is_absolute());
            Some(home?.join(".cache"))
        })
}

/// The library with these `bytes`, which `id` identifies: the file in `cache`, written now if it is missing.
fn library_in(cache: &Path, bytes: &[u8], id: &str) -> Option<Cached> {
    let path = path_in(cache, id)?;
    if bytes.is_empty() {
        return None;
    }
    if let Some(cached) = open(&path, bytes.len()) {
        return Some(cached);
    }
    let directory = path.parent()?;
    write(directory, &path, bytes)?;
    remove_others(directory, &path);
    open(&path, bytes.len())
}

/// The path of the library in the cache, if there can be one.
fn path_in(cache: &Path, id: &str) -> Option<PathBuf> {
    let path = directory_in(cache)?.join(format!("{PREFIX}{id}{SUFFIX}"));
    opencl::can_name(&path).then_some(path)
}

/// Our directory in `cache`, created if it is missing, without links on the path to it.
fn directory_in(cache: &Path) -> Option<PathBuf> {
    let make = |path: &Path| match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => None,
        _ => Some(()),
    };
    let cache = cache.canonicalize().ok().or_else(|| {
        make(cache)?;
        cache.canonicalize().ok()
    })?;
    // The directory may belong to another user: with `sudo`, the environment may name that user's.
    let is_ours = is_only_ours(&cache.symlink_metadata().ok()?);
    let mount = rustix::fs::statvfs(&cache).ok()?.f_flag;
    if !is_ours
        || mount.contains(StatVfsMountFlags::NOEXEC)
        || !cache.ancestors().all(private_dir::is_trusted)
    {
        return None;
    }
    let directory = cache.join("gputrail");
    let look = || directory.symlink_metadata().ok();
    let data = look().or_else(|| {
        make(&directory)?;
        look()
    })?;
    (data.is_dir() && is_only_ours(&data)).then_some(directory)
}

/// Whether only the user can write to it.
fn is_only_ours(data: &std::fs::Metadata) -> bool {
    data.uid() == rustix::process::geteuid().as_raw() && data.mode() & 0o022 == 0
}

/// Opens the library at `path`, if programs may load it, it has `length` bytes and it has not been changed.
fn open(path: &Path, length: usize) -> Option<Cached> {
    // Whatever the file is, opening it must not block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    // Some file systems have no locks. If the file is locked exclusively, it is being removed.
    let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared);
    if locked == Err(Errno::WOULDBLOCK) {
        return None;
    }
    let data = file.metadata().ok()?;
    let sound = data.is_file()
        && is_only_ours(&data)
        // The file may have been removed before it was locked.
        && data.nlink() > 0
        && data.len() == length as u64
        && data.modified().ok()? == SystemTime::UNIX_EPOCH + WHOLE;
    if !sound {
        return None;
    }
    let used = data.accessed().ok()?.elapsed();
    if used.is_ok_and(|used| used > DAY) {
        // If its use cannot be noted, it is removed and written again one day.
        let _ = note_use(&file);
    }
    Some(Cached {
        path: path.to_owned(),
        _file: file,
    })
}

/// Notes that `file` is used now, in its access time.
fn note_use(file: &File) -> rustix::io::Result<()> {
    // The modification time must still show a change that has happened meanwhile.
    let unchanged = Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_OMIT,
    };
    set_times(file, unchanged)
}

/// Marks `file` as complete, and as used now.
fn note_whole(file: &File) -> rustix::io::Result<()> {
    let whole = Timespec {
        tv_sec: WHOLE.as_secs() as i64,
        tv_nsec: 0,
    };
    set_times(file, whole)
}

fn set_times(file: &File, last_modification: Timespec) -> rustix::io::Result<()> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification,
    };
    rustix::fs::futimens(file, &times)
}

/// Writes the library to a temporary file beside `path` and renames it: `path` holds all of it or does not exist.
fn write(directory: &Path, path: &Path, bytes: &[u8]) -> Option<()> {
    let draft = private_dir::create_in(directory, "new-").ok()?;
    let file = draft.path().join("library");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut open = File::from(rustix::fs::open(&file, flags, Mode::from_raw_mode(0o755)).ok()?);
    open.write_all(bytes).ok()?;
    // It must be complete even after a crash of the machine.
    open.sync_all().ok()?;
    note_whole(&open).ok()?;
    std::fs::rename(&file, path).ok()
}

/// Removes libraries that have not been used for long, and temporary files of commands that were killed.
fn remove_others(directory: &Path, ours: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    let mut others: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(PREFIX) && name.ends_with(SUFFIX) || name.starts_with("new-")
        })
        .filter_map(|entry| Some((entry.metadata().ok()?.accessed().ok()?, entry.path())))
        .filter(|(_, path)| path != ours)
        .collect();
    others.sort_by(|a, b| b.cmp(a));
    for (place, (used, path)) in others.iter().enumerate() {
        let unused = used.elapsed().is_ok_and(|unused| unused > MONTH);
        let is_draft = path.is_dir();
        if unused && is_draft {
            let _ = std::fs::remove_dir_all(path);
        } else if !is_draft && (unused || place >= MAX_OTHERS) && !is_in_use(path) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether the file is locked: a program that is being recorded may still load it.
fn is_in_use(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).is_ok_and(|file| {
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, read, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    fn cache() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_library_is_written_once() {
        let cache = cache();
        let first = library_in(cache.path(), b"its bytes", "1").unwrap();
        let inode = |cached: &Cached| std::fs::metadata(&cached.path).unwrap().ino();
        let written = inode(&first);
        assert_eq!(read(&first.path).unwrap(), b"its bytes");
        drop(first);
        let second = library_in(cache.path(), b"its bytes", "1").unwrap();
        assert_eq!(inode(&second), written);
    }

    #[test]
    fn a_library_that_has_changed_is_written_anew() {
        let cache = cache();
        let path = library_in(cache.path(), b"its bytes", "1").unwrap().path;
        type Damage = fn(&Path);
        let damages: [Damage; 5] = [
            |path| std::fs::write(path, "itS bytes").unwrap(),
            |path| std::fs::write(path, "its").unwrap(),
            |path| set_permissions(path, Permissions::from_mode(0o777)).unwrap(),
            |path| {
                std::fs::remove_file(path).unwrap();
                std::os::unix::fs::symlink("/etc/passwd", path).unwrap();
            },
            |path| std::fs::remove_file(path).unwrap(),
        ];
        for damage in damages {
            damage(&path);
            let again = library_in(cache.path(), b"its bytes", "1").unwrap();
            assert_eq!(again.path, path);
            assert_eq!(read(&path).unwrap(), b"its bytes");
            let data = path.symlink_metadata().unwrap();
            assert!(data.is_file() && data.mode() & 0o022 == 0);
        }
    }

    #[test]
    fn a_cache_that_others_can_write_or_that_cannot_be_had_is_not_used() {
        let cache = cache();
        let directory = cache.path().join("gputrail");
        library_in(cache.path(), b"x", "1").unwrap();
        set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
        assert!(library_in(cache.path(), b"x", "1").is_none());
        set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
        set_permissions(cache.path(), Permissions::from_mode(0o770)).unwrap();
        assert!(library_in(cache.path(), b"x", "1").is_none());
        assert!(library_in(Path::new("/dev/null"), b"x", "1").is_none());
        assert!(library_in(Path::new("/proc/1/no-such-place"), b"x", "1").is_none());
    }

    fn set_used(path: &Path, time: SystemTime) {
        let times = std::fs::FileTimes::new().set_accessed(time);
        File::open(path).unwrap().set_times(times).unwrap();
    }

    #[test]
    fn that_it_is_used_is_noted_again() {
        let cache = cache();
        let used = library_in(cache.path(), b"x", "1").unwrap().path;
        let long_ago = SystemTime::now() - 3 * DAY;
        set_used(&used, long_ago);
        library_in(cache.path(), b"x", "1").unwrap();
        assert!(used.metadata().unwrap().accessed().unwrap() > long_ago + DAY);
    }

    #[test]
    fn libraries_that_are_no_longer_used_are_removed() {
        let cache = cache();
        let old = SystemTime::now() - 2 * MONTH;
        let place = |id: &str, age: SystemTime| {
            let path = library_in(cache.path(), id.as_bytes(), id).unwrap().path;
            set_used(&path, age);
            path
        };
        let unused = place("unused", old);
        let in_use = place("in-use", SystemTime::now());
        let locked = open(&in_use, 6).unwrap();
        set_used(&in_use, old);
        let recent = place("recent", SystemTime::now());
        // A library that is found when another one is written.
        place("new", SystemTime::now());
        assert!(!unused.exists() && in_use.exists() && recent.exists());
        drop(locked);
        place("newer", SystemTime::now());
        assert!(!in_use.exists() && recent.exists());
    }
}
