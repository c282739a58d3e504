//! Directories that only the user can look into, with names that nobody can guess, and that are gone
//! when we are.

use rustix::fs::Mode;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A private directory. Dropping it removes it with all that is in it.
#[derive(Debug)]
pub struct PrivateDir {
    path: PathBuf,
    keep: bool,
}

impl PrivateDir {
    /// A new directory in `parent`, named `prefix` and random letters, with mode 0700. Making it
    /// fails where anything has that name, links included.
    pub fn create_in(parent: &Path, prefix: &str) -> io::Result<PrivateDir> {
        let mut random = [0; 8];
        let (bytes, _) =
            rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
                .map(|count| (u64::from_ne_bytes(random), count))?;
        let path = parent.join(format!("{prefix}{bytes:016x}"));
        rustix::fs::mkdir(&path, Mode::RWXU)?;
        Ok(PrivateDir { path, keep: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the directory where it is.
    pub fn keep(mut self) -> PathBuf {
        self.keep = true;
        std::mem::take(&mut self.path)
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        if !self.keep {
            // What cannot be removed is private, and says by its name whose it is.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Whether nobody but the user and root can exchange what lies in `parent`.
pub fn is_trusted(parent: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    std::fs::metadata(parent).is_ok_and(|data| {
        let ours = data.uid() == rustix::process::geteuid().as_raw() || data.uid() == 0;
        ours && data.is_dir() && (data.mode() & 0o022 == 0 || data.mode() & STICKY != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_private_directory_is_private_and_goes_away() {
        let parent = std::env::temp_dir();
        let directory = PrivateDir::create_in(&parent, "gputrail-test-").unwrap();
        let path = directory.path().to_owned();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        std::fs::write(path.join("file"), "x").unwrap();
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn no_two_have_the_same_name() {
        let parent = std::env::temp_dir();
        let [a, b] = [(); 2].map(|()| PrivateDir::create_in(&parent, "gputrail-test-").unwrap());
        assert_ne!(a.path(), b.path());
    }

    #[test]
    fn a_directory_that_all_may_write_is_trusted_only_if_sticky() {
        let directory = PrivateDir::create_in(&std::env::temp_dir(), "gputrail-test-").unwrap();
        assert!(is_trusted(directory.path()));
        for (mode, trusted) in [
            (0o777, false),
            (0o1777, true),
            (0o755, true),
            (0o775, false),
        ] {
            std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(is_trusted(directory.path()), trusted, "{mode:o}");
        }
    }
}
