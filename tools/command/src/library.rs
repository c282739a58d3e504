//! The injected library: the command carries its bytes, and programs load it from the user's cache, or from where it is
//! written for one recording.

use crate::cache::{self, Cached};
use crate::private_dir::{self, PrivateDir};
use anyhow::{Context, Result, bail};
use gputrail::source::{self, opencl};
use rustix::fs::{Mode, OFlags, StatVfsMountFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Name of the unpacked file; messages of loaders and /proc/PID/maps show it.
pub const FILE_NAME: &str = "libgputrail.so.0";
/// What tools in C include, for the library that is carried.
const HEADER: &str = include_str!("../../../include/gputrail.h");
/// A socket's path has room for 107 bytes: what we put behind a directory's name takes up to 48.
const LONGEST_PARENT: usize = 107 - 48;

/// The library that the command carries.
#[derive(Copy, Clone)]
pub struct Carried {
    /// Its file's bytes, empty where there is none for the system.
    pub bytes: &'static [u8],
    /// Tells it from every other.
    pub id: &'static str,
}

/// A private directory with the library in it, or a link to it, where programs can load it and find the session's
/// socket.
pub struct Unpacked {
    pub directory: PrivateDir,
    pub library: PathBuf,
    _cached: Option<Cached>,
}

/// Puts the library into the first place that serves.
pub fn unpack(carried: Carried) -> Result<Unpacked> {
    let mut cached = cache::library(carried);
    let mut refusals = Vec::new();
    for parent in candidates() {
        match unpack_in(&parent, carried.bytes, &mut cached) {
            Ok(unpacked) => return Ok(unpacked),
            Err(reason) => refusals.push(format!("\n  {}: {reason:#}", parent.display())),
        }
    }
    bail!(
        "no directory can hold the library that programs load (set TMPDIR to one that can):{}",
        refusals.concat()
    )
}

fn candidates() -> Vec<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = variable("HOME").map(|home| home.join(".cache"));
    [
        variable("XDG_RUNTIME_DIR"),
        variable("TMPDIR"),
        // Nothing of it goes to a disk.
        Some("/dev/shm".into()),
        Some("/tmp".into()),
        cache,
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn unpack_in(parent: &Path, bytes: &[u8], cached: &mut Option<Cached>) -> Result<Unpacked> {
    if !parent.is_absolute() {
        bail!("not an absolute path");
    }
    if !opencl::can_name(parent) {
        bail!(
            "{} cannot name a path with a colon",
            opencl::LAYERS_VARIABLE
        );
    }
    if parent.as_os_str().len() > LONGEST_PARENT {
        bail!("too long for a socket's name, which has room for {LONGEST_PARENT} bytes of it");
    }
    if !parent.exists() {
        bail!("not there");
    }
    if !private_dir::is_trusted(parent) {
        bail!("others may exchange what lies there");
    }
    let directory = PrivateDir::create_in(parent, "gputrail-")?;
    let library = directory.path().join(FILE_NAME);
    if let Some(cached) = cached.take_if(|cached| symlink(&cached.path, &library).is_ok()) {
        return Ok(Unpacked {
            directory,
            library,
            _cached: Some(cached),
        });
    }
    if rustix::fs::statvfs(directory.path())?
        .f_flag
        .contains(StatVfsMountFlags::NOEXEC)
    {
        bail!("mounted noexec");
    }
    write_new(&library, bytes)?;
    Ok(Unpacked {
        directory,
        library,
        _cached: None,
    })
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        bail!("this gputrail was built for a system on which it cannot record programs");
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o755))?;
    File::from(file).write_all(bytes)?;
    Ok(())
}

/// `gputrail library`: writes the library's bytes to `path`, and the header that goes with it to `header`, and prints the
/// variables that make the library record.
pub fn write_out(bytes: &[u8], path: &Path, header: Option<&Path>, capture: &OsStr) -> Result<()> {
    gputrail::collect::session::Pattern::parse(capture).context("--capture")?;
    if let Some(header) = header {
        std::fs::write(header, HEADER)
            .with_context(|| format!("cannot write {}", header.display()))?;
    }
    let path = std::path::absolute(path)?;
    if !opencl::can_name(&path) {
        bail!(
            "{}: {} cannot name a path with a colon",
            path.display(),
            opencl::LAYERS_VARIABLE
        );
    }
    let parent = path
        .parent()
        .with_context(|| format!("{}: is no file name", path.display()))?;
    let cannot_write = || format!("cannot write {}", path.display());
    // Beside it first, then renamed: programs that have the old one loaded keep it.
    let beside = PrivateDir::create_in(parent, ".gputrail-").with_context(cannot_write)?;
    let new = beside.path().join(FILE_NAME);
    write_new(&new, bytes).with_context(cannot_write)?;
    std::fs::rename(&new, &path).with_context(cannot_write)?;

    let mut variables = source::environment(&path, None);
    variables.extend([(
        gputrail::collect::session::CAPTURE_VARIABLE,
        capture.to_owned(),
    )]);
    let mut output = std::io::stdout().lock();
    for (name, value) in variables {
        output.write_all(b"export ")?;
        output.write_all(name.as_bytes())?;
        output.write_all(b"=")?;
        output.write_all(&quoted(value.as_bytes()))?;
        output.write_all(b"\n")?;
    }
    Ok(())
}

/// `text` as a word of a shell.
fn quoted(text: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-:%+,@=".contains(byte);
    if !text.is_empty() && text.iter().all(plain) {
        return text.to_vec();
    }
    let mut word = vec![b'\''];
    for &byte in text {
        if byte == b'\'' {
            word.extend_from_slice(b"'\\''");
        } else {
            word.push(byte);
        }
    }
    word.push(b'\'');
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_unpacks_privately() {
        let parent = tempfile::tempdir().unwrap();
        let unpacked = unpack_in(parent.path(), b"its bytes", &mut None).unwrap();
        assert_eq!(std::fs::read(&unpacked.library).unwrap(), b"its bytes");
        assert!(opencl::can_name(&unpacked.library));
    }

    #[test]
    fn values_are_quoted_for_a_shell() {
        assert_eq!(quoted(b"/a/%p.gputrail"), b"/a/%p.gputrail");
        assert_eq!(quoted(b"a b"), b"'a b'");
        assert_eq!(quoted(b"it's $x"), b"'it'\\''s $x'");
        assert_eq!(quoted(b""), b"''");
        assert_eq!(quoted(b"%q{A}"), b"'%q{A}'");
    }
}
