//! Temporary directories that only the user can read, and the check that nobody else can replace what lies in a directory.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
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

/// Returns whether only the user and root can replace the files in `directory`.
pub fn is_trusted(directory: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    std::fs::metadata(directory).is_ok_and(|data| {
        let ours = data.uid() == rustix::process::geteuid().as_raw() || data.uid() == 0;
        ours && data.is_dir() && (data.mode() & 0o022 == 0 || data.mode() & STICKY != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_directory_has_mode_0700() {
        let parent = std::env::temp_dir();
        let directory = create_in(&parent, "gputrail-test-").unwrap();
        let mode = std::fs::metadata(directory.path()).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_directory_that_all_may_write_is_trusted_only_if_sticky() {
        let directory = create_in(&std::env::temp_dir(), "gputrail-test-").unwrap();
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
