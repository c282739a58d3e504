//! Symbolic links in the paths of outputs.
//!
//! A file gets its name by a rename, which the kernel does not protect against links that another user has planted in a
//! folder such as /tmp (`fs.protected_symlinks` protects files that are opened). The rule here is the kernel's, for each
//! link of a path and whatever the setting: in a folder to which every user may write, a link is followed only if it
//! belongs to this user or to the owner of the folder.

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Maximum number of links of a path, as the kernel has it.
const MAX_LINKS: usize = 40;

/// The path to which `path` leads through its links, whether there is a file or not.
pub fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut rest = reversed(path);
    let mut at = PathBuf::new();
    let mut links = 0;
    while let Some(part) = rest.pop() {
        let next = at.join(&part);
        let Some(target) = link_in(&at, &next)? else {
            at = next;
            continue;
        };
        links += 1;
        if links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        rest.extend(reversed(&target));
    }
    Ok(at)
}

/// The parts of a path, from the last one to the first.
fn reversed(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().rev();
    let parts = parts.filter(|part| *part != Component::CurDir);
    parts.map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// The text of the link `path` in `folder`; `None` if it is no link, or nothing.
fn link_in(folder: &Path, path: &Path) -> io::Result<Option<PathBuf>> {
    // The link's owner and its text are read of one open link, which nobody can replace.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let link = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let data = rustix::fs::fstat(&link)?;
    if FileType::from_raw_mode(data.st_mode) != FileType::Symlink {
        return Ok(None);
    }
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let of_folder = std::fs::metadata(folder)?;
    let user = rustix::process::geteuid().as_raw();
    if of_folder.mode() & 0o002 != 0 && data.st_uid != user && data.st_uid != of_folder.uid() {
        let text = format!(
            "{} is a link of user {} in a folder to which every user may write: it is not followed",
            path.display(),
            data.st_uid
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let text = rustix::fs::readlinkat(&link, "", Vec::new())?;
    Ok(Some(OsStr::from_bytes(text.as_bytes()).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_harness::machine::skipped;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};
    use tempfile::TempDir;

    fn folder(mode: u32) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        folder
    }

    #[test]
    fn links_of_every_part_of_a_path_are_followed() {
        let folder = folder(0o1777);
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("real")).unwrap();
        symlink("real", at("relative")).unwrap();
        symlink(at("relative"), at("absolute")).unwrap();
        symlink("../absolute/new", at("real/dangling")).unwrap();
        for name in ["real/x", "relative/x", "absolute/x"] {
            assert_eq!(followed(&at(name)).unwrap(), at("real/x"), "{name}");
        }
        assert_eq!(followed(&at("relative/dangling")).unwrap(), at("real/new"));
        assert_eq!(followed(Path::new("./none")).unwrap(), Path::new("none"));
    }

    #[test]
    fn a_loop_of_links_is_an_error() {
        let folder = folder(0o700);
        symlink("b", folder.path().join("a")).unwrap();
        symlink("a", folder.path().join("b")).unwrap();
        let error = followed(&folder.path().join("a/x")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
    }

    #[test]
    fn a_link_of_another_user_is_followed_where_that_user_may_decide() {
        if !rustix::process::geteuid().is_root() {
            skipped(
                "a_link_of_another_user_is_followed_where_that_user_may_decide",
                "only the superuser can give a link to another user",
            );
            return;
        }
        let other = |link: &Path| lchown(link, Some(65_533), None).unwrap();
        for (mode, is_followed) in [(0o1777, false), (0o777, false), (0o755, true)] {
            let folder = folder(mode);
            let link = folder.path().join("link");
            symlink("target", &link).unwrap();
            other(&link);
            for path in [link.clone(), link.join("below")] {
                let result = followed(&path);
                assert_eq!(result.is_ok(), is_followed, "{mode:o}: {result:?}");
            }
        }
        let folder = folder(0o1777);
        let link = folder.path().join("link");
        symlink("target", &link).unwrap();
        other(&link);
        std::os::unix::fs::chown(folder.path(), Some(65_533), None).unwrap();
        assert!(followed(&link).is_ok(), "it belongs to the folder's owner");
    }
}
