//! Files of `/sys`, in which the kernel describes the machine: one short text each.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The most bytes of a file that are read.
const MAX_BYTES: u64 = 4096;
/// The most entries of a folder that are listed.
const MAX_ENTRIES: usize = 4096;

/// The environment variable that names another folder than `/sys`: where a container has the host's.
pub const VARIABLE: &str = "GPUTRAIL_SYSFS";

/// The folder of the kernel's description of this machine.
pub fn root() -> PathBuf {
    super::environment::variable(VARIABLE).map_or_else(|| "/sys".into(), PathBuf::from)
}

/// The text of a file, without blanks around it.
pub fn text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// The number that a file consists of.
pub fn number(path: &Path) -> io::Result<u64> {
    let text = text(path)?;
    let wrong = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("expected a number, found {text:?}"),
        )
    };
    text.parse().map_err(|_| wrong())
}

/// The entries of `folder` whose names begin with `prefix`, in the order of their names; none if there is no such folder.
pub fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let begins = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with(prefix));
    let listed = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = listed
        .take(MAX_ENTRIES)
        .filter(|entry| begins(&entry.file_name()))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}
