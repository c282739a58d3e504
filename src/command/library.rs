//! The carried libraries in files: `libgputrail.so`, which programs load, and `libgputrail-symbols.so`, which
//! that one opens from its own directory when a tool requests source lines. Programs load them from the user's cache,
//! or from a directory where they are written for one recording.

use crate::cache::{self, Cached};
use crate::carried::{Carried, FILE_NAME, HEADER_NAME, SYMBOLS_FILE_NAME};
use crate::cli::Library;
use crate::private_dir::{self, DirectoryLock};
use crate::{apis, development, link_library, links};
use anyhow::{Context, Result, bail};
use gputrail_collect::loading::markers::{self, MarkerLibrary};
use gputrail_collect::loading::{self, opencl};
use rustix::fs::{Mode, OFlags, StatVfsMountFlags};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Begins the names of the private directories.
const PREFIX: &str = "gputrail-";
/// Maximum length of a parent directory's name: a socket's path has 107 bytes, and our part of it takes up to 48.
const LONGEST_PARENT: usize = 107 - 48;

/// A private directory with the libraries in it, or links to them, where programs can load them and find the session's
/// socket.
pub struct Unpacked {
    pub directory: TempDir,
    pub library: PathBuf,
    _cached: [Option<Cached>; 2],
    _lock: DirectoryLock,
}

/// Puts the libraries into the first directory that programs can load them from.
pub fn unpack(carried: Carried) -> Result<Unpacked> {
    let cached = [carried.library, carried.symbols].map(cache::library);
    let mut refusals = Vec::new();
    for parent in candidates() {
        match unpack_in(&parent, carried, &cached) {
            Ok(directory) => {
                return Ok(Unpacked {
                    library: directory.path().join(FILE_NAME),
                    _lock: DirectoryLock::take(directory.path()),
                    directory,
                    _cached: cached,
                });
            }
            Err(reason) => refusals.push(format!("{}: {reason:#}", parent.display())),
        }
    }
    bail!(
        "no directory can hold the library that programs load (set TMPDIR to one that can): {}",
        refusals.join("; ")
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
        // A file system in memory.
        Some("/dev/shm".into()),
        Some("/tmp".into()),
        cache,
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn unpack_in(parent: &Path, carried: Carried, cached: &[Option<Cached>; 2]) -> Result<TempDir> {
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
        bail!("not found");
    }
    if !private_dir::is_trusted(parent) {
        bail!("other users may replace files there");
    }
    for abandoned in private_dir::abandoned_in(parent, PREFIX) {
        // A directory that cannot be removed does no harm.
        let _ = std::fs::remove_dir_all(abandoned);
    }
    let directory = private_dir::create_in(parent, PREFIX)?;
    let libraries = [
        (FILE_NAME, carried.library),
        (SYMBOLS_FILE_NAME, carried.symbols),
    ];
    for ((name, library), cached) in libraries.into_iter().zip(cached) {
        let path = directory.path().join(name);
        if let Some(cached) = cached
            && symlink(&cached.path, &path).is_ok()
        {
            continue;
        }
        if rustix::fs::statvfs(directory.path())?
            .f_flag
            .contains(StatVfsMountFlags::NOEXEC)
        {
            bail!("mounted noexec");
        }
        write_new(&path, library.bytes)?;
    }
    link_marker_libraries(&directory.path().join(FILE_NAME))?;
    Ok(directory)
}

/// The folder beside the injected library for the libraries of markers.
fn marker_folder(library: &Path) -> Result<PathBuf> {
    let folder = library.with_file_name(markers::LIBRARIES_FOLDER);
    // Programs find all that is in it by LD_LIBRARY_PATH.
    private_dir::create_own(&folder)?;
    Ok(folder)
}

/// Puts links to the injected library beside it, under the names of the libraries of markers that it stands for.
fn link_marker_libraries(library: &Path) -> Result<()> {
    let folder = marker_folder(library)?;
    let target = Path::new("..").join(library.file_name().unwrap_or_default());
    for name in markers::LIBRARIES.iter().flat_map(MarkerLibrary::names) {
        symlink(&target, folder.join(name))?;
    }
    Ok(())
}

/// Puts libraries of markers that programs can be linked with beside the injected library, to which they pass all calls.
fn write_marker_libraries(library: &Path) -> Result<()> {
    let folder = marker_folder(library)?;
    let from = library.file_name().unwrap_or_default().to_string_lossy();
    for one in &markers::LIBRARIES {
        let Some(bytes) = link_library::file(one.name, one.functions, &from) else {
            continue;
        };
        for (number, name) in one.names().enumerate() {
            let path = folder.join(name);
            // That of an earlier library may be there, which programs may have loaded.
            let _ = std::fs::remove_file(&path);
            match number {
                0 => write_new(&path, &bytes)?,
                _ => symlink(one.name, path)?,
            }
        }
    }
    Ok(())
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        bail!("this gputrail was built for a system on which recording is not supported");
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o755))?;
    File::from(file).write_all(bytes)?;
    Ok(())
}

/// `gputrail library`: writes the injected library to a path, the reader of source lines beside it, and the headers of
/// the C API to another path and of C++ beside it, and prints the variables that make the library record. A path that is a
/// folder gets all that tools are built from, and the libraries and headers of APIs of vendors; then the variable by which programs find
/// the libraries is printed.
pub fn write_out(carried: Carried, arguments: &Library) -> Result<()> {
    let (path, header, capture) = (&arguments.path, &arguments.header, &arguments.capture);
    gputrail_collect::session::OutputPattern::parse(capture).context("--capture")?;
    if let Some(header) = header {
        let name = header.file_name().unwrap_or_default().to_string_lossy();
        let include = |name: &str| format!("#include \"{name}\"");
        let cpp = carried
            .cpp_header
            .replace(&include(HEADER_NAME), &include(&name));
        for (path, text) in [
            (header, carried.header),
            (&header.with_extension("hpp"), &cpp),
        ] {
            let written = links::followed(path).and_then(|path| std::fs::write(path, text));
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    let is_folder = development::is_folder(path);
    if !is_folder && !arguments.api.is_empty() {
        bail!(
            "{}: --api writes several files: name a folder",
            path.display()
        );
    }
    let path = std::path::absolute(path)?;
    if !opencl::can_name(&path) {
        bail!(
            "{}: {} cannot name a path with a colon",
            path.display(),
            opencl::LAYERS_VARIABLE
        );
    }
    let path = if is_folder {
        check_folder(&path, &path)?;
        apis::write(carried, &arguments.api, arguments.built.as_deref(), &path)?;
        development::write(carried, &path)?
    } else {
        path
    };
    let parent = path
        .parent()
        .with_context(|| format!("{}: is not a file name", path.display()))?;
    let cannot_write = || format!("cannot write {}", path.display());
    check_folder(&path, parent)?;
    if !parent.is_dir() {
        bail!(
            "cannot write {}: there is no folder {}",
            path.display(),
            parent.display()
        );
    }
    // Written to a temporary file and renamed: programs that have loaded an older file keep it.
    let beside = private_dir::create_in(parent, ".gputrail-").with_context(cannot_write)?;
    for (library, path) in [
        (carried.symbols, &parent.join(SYMBOLS_FILE_NAME)),
        (carried.library, &path),
    ] {
        let new = beside.path().join(FILE_NAME);
        write_new(&new, library.bytes).with_context(cannot_write)?;
        std::fs::rename(&new, path).with_context(cannot_write)?;
    }
    write_marker_libraries(&path).with_context(cannot_write)?;

    let variables = if arguments.api.is_empty() {
        let mut variables = loading::environment(&path, None);
        variables.push((
            gputrail_collect::session::CAPTURE_VARIABLE,
            capture.to_owned(),
        ));
        variables
    } else {
        // The libraries with vendors' names prepare the one beside them.
        vec![(markers::LIBRARIES_VARIABLE, before_others(parent)?)]
    };
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

/// The folders in which the loader looks for libraries, `folder` before those that the variable has.
fn before_others(folder: &Path) -> Result<OsString> {
    let others = std::env::var_os(markers::LIBRARIES_VARIABLE).unwrap_or_default();
    let others = std::env::split_paths(&others).filter(|other| other != folder);
    let others = others.filter(|other| !other.as_os_str().is_empty());
    let folders = std::iter::once(folder.to_owned()).chain(others);
    Ok(std::env::join_paths(folders)?)
}

/// Refuses to write the library as `path` below a folder whose files other users may replace.
fn check_folder(path: &Path, folder: &Path) -> Result<()> {
    if folder.is_dir() && !private_dir::is_trusted(folder) {
        bail!(
            "{}: other users may replace files in {}, and programs would load theirs: choose a folder to which only you can write",
            path.display(),
            folder.display()
        );
    }
    Ok(())
}

/// `text`, quoted for a shell.
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
    use crate::carried::CarriedLibrary;

    #[test]
    fn the_libraries_are_unpacked_into_one_private_directory() {
        let parent = tempfile::tempdir().unwrap();
        let library = |bytes| CarriedLibrary { bytes, id: "1" };
        let carried = Carried {
            library: library(b"injected"),
            symbols: library(b"reader"),
            header: "",
            cpp_header: "",
            clperfmarker_header: "",
            pages: &[],
            apis: &[],
        };
        let directory = unpack_in(parent.path(), carried, &[None, None]).unwrap();
        let read = |name| std::fs::read(directory.path().join(name)).unwrap();
        assert_eq!(read(FILE_NAME), b"injected");
        assert_eq!(read(SYMBOLS_FILE_NAME), b"reader");
    }

    #[test]
    fn the_help_explains_each_variable_that_is_printed_or_read() {
        use gputrail_buffer::clock::CLOCK_VARIABLE;
        use gputrail_collect::{scope, session};
        let printed = loading::environment("/l/libgputrail.so.0".as_ref(), None);
        let printed = printed.into_iter().map(|(name, _)| name);
        let read = [
            session::CAPTURE_VARIABLE,
            session::BUFFERS_VARIABLE,
            session::BLOCK_VARIABLE,
            session::POLICY_VARIABLE,
            scope::SCOPE_VARIABLE,
            CLOCK_VARIABLE,
            markers::CLPERFMARKER_VARIABLE,
            loading::cuda::NEXT_VARIABLE,
            loading::cuda::SERIALIZE_VARIABLE,
            "GPUTRAIL_CUPTI",
            "GPUTRAIL_ROCPROFILER",
            loading::rocm::TOOLS_VARIABLE,
            "GPUTRAIL_NVTX_INJECTION",
            "GPUTRAIL_SAMPLING_SOURCE",
            "GPUTRAIL_TOOLS",
        ];
        for name in printed.chain(read) {
            let explained = crate::cli::help::LIBRARY_EXAMPLES.lines().any(|line| {
                line.contains(&format!("{name} ")) || line.contains(&format!("{name},"))
            });
            assert!(explained, "{name}");
        }
    }

    #[test]
    fn the_help_lists_each_key_of_a_scope() {
        let error = gputrail_collect::scope::Scope::parse("nonsense").unwrap_err();
        let error = error.to_string();
        let (_, keys) = error.split_once("expected ").unwrap();
        let keys = keys
            .split([',', ' '])
            .filter(|key| !key.is_empty() && *key != "or");
        let mut number = 0;
        for key in keys {
            assert!(crate::cli::help::LIBRARY_EXAMPLES.contains(key), "{key}");
            number += 1;
        }
        assert!(number > 20);
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
