//! The output files of traces: their names, checks before anything runs, and files that appear only when complete.

use crate::messages::say;
use crate::signals::{EndsAtOnce, Signals};
use crate::{links, private_dir};
use anyhow::{Context, Result, bail};
use gputrail_collect::session::{OutputPattern, PatternValues};
use rustix::fs::{Access, AtFlags, CWD, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// The name of standard output as an output, in messages.
pub const STANDARD_OUTPUT: &str = "standard output";

/// The largest process id that Linux gives.
const MAX_PID: u32 = 1 << 22;
/// Prefix of the names of the folders in which captures and traces are made.
pub const WORKSHOP_PREFIX: &str = ".gputrail-";

/// An output that can be written.
#[derive(Debug)]
pub struct Output {
    pattern: OutputPattern,
    /// Whether the user named it: if so, it replaces an existing file.
    named: bool,
    /// Its directory.
    directory: PathBuf,
    kind: OutputKind,
    /// While it is held, a signal ends the command: up to the delivery.
    ends_at_once: Mutex<Option<EndsAtOnce>>,
}

/// The kind of an output.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum OutputKind {
    /// A regular file, which gets its name when it is complete.
    File,
    /// A device or a pipe, which is written directly and never replaced.
    Device,
    /// Standard output.
    StandardOutput,
}

/// The name of `input` with another extension; that of a packed file is the one before `.gz` or `.zst`.
pub fn beside(input: &Path, extension: &str) -> PathBuf {
    if input == Path::new("-") {
        return Path::new("stdin").with_extension(extension);
    }
    let packed = input
        .extension()
        .is_some_and(|end| end == "gz" || end == "zst");
    if packed {
        input.with_extension("").with_extension(extension)
    } else {
        input.with_extension(extension)
    }
}

impl Output {
    /// An output that the user named, with `%` variables.
    pub fn named(name: &OsStr) -> Result<Output> {
        let what = || format!("output {}", name.display());
        if name == "-" {
            bail!("output -: only `convert` and `merge` write to standard output; ./- is a file");
        }
        let pattern = OutputPattern::parse(name).with_context(what)?;
        if pattern.directory_needs_pid() {
            bail!(
                "{}: %p cannot stand in the directory, which must be there before the program runs",
                what()
            );
        }
        // The name with the longest process id: the directory does not depend on it.
        let path = expand(&pattern, MAX_PID).with_context(what)?;
        if names_a_directory(&path) {
            bail!("{} is the name of a directory", what());
        }
        let target = links::followed(&path).with_context(what)?;
        let mut kind = OutputKind::File;
        match std::fs::metadata(&path) {
            Ok(data) if data.is_dir() => bail!("output {} is a directory", path.display()),
            Ok(data) => {
                if !data.is_file() {
                    kind = OutputKind::Device;
                }
                rustix::fs::accessat(CWD, &path, Access::WRITE_OK, AtFlags::EACCESS)
                    .with_context(|| format!("output {} cannot be written", path.display()))?;
                if kind == OutputKind::File && !private_dir::can_replace(&target, &data) {
                    bail!(
                        "output {} belongs to user {}, and its folder lets only that user replace it",
                        path.display(),
                        data.uid()
                    );
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(what),
        }
        let path = match kind {
            OutputKind::Device => path,
            _ => target,
        };
        Output::in_directory_of(path, pattern, true, kind)
    }

    /// The default output of a program: `PROGRAM-PID.pftrace` in the current directory.
    pub fn of_program(program: &OsStr) -> Result<Output> {
        let name = Path::new(program)
            .file_name()
            .unwrap_or(OsStr::new("gputrail"));
        let pattern = OutputPattern::literal(name)
            .with_suffix("-")
            .with_pid()
            .with_suffix(".pftrace");
        Output::in_directory_of(name.into(), pattern, false, OutputKind::File)
    }

    /// A file of this command's own, which it replaces.
    pub fn replacing(path: &Path) -> Result<Output> {
        let pattern = OutputPattern::literal(path.as_os_str());
        Output::in_directory_of(path.to_owned(), pattern, true, OutputKind::File)
    }

    /// The default output for `input`: its name with another extension.
    pub fn beside(input: &Path, extension: &str) -> Result<Output> {
        let path = beside(input, extension);
        Output::in_directory_of(
            path.clone(),
            OutputPattern::literal(path.as_os_str()),
            false,
            OutputKind::File,
        )
    }

    /// Standard output.
    fn standard_output() -> Result<Output> {
        if io::stdout().is_terminal() {
            bail!("output -: standard output is a terminal; it takes a trace as a pipe or a file");
        }
        Ok(Output {
            pattern: OutputPattern::literal(OsStr::new(STANDARD_OUTPUT)),
            named: true,
            directory: std::env::temp_dir(),
            kind: OutputKind::StandardOutput,
            ends_at_once: Mutex::default(),
        })
    }

    /// The output that the user named; `-` is standard output.
    pub fn named_or_standard(name: &OsStr) -> Result<Output> {
        if name == "-" {
            Output::standard_output()
        } else {
            Output::named(name)
        }
    }

    fn in_directory_of(
        path: PathBuf,
        pattern: OutputPattern,
        named: bool,
        kind: OutputKind,
    ) -> Result<Output> {
        let directory = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
            Some(parent) => parent.to_owned(),
            None => bail!("output {} is not a file name", path.display()),
        };
        if !directory.is_dir() {
            bail!(
                "output {}: {} is not a directory",
                path.display(),
                directory.display()
            );
        }
        Ok(Output {
            pattern,
            named,
            directory,
            kind,
            ends_at_once: Mutex::default(),
        })
    }

    /// From now until a file is delivered, a signal ends the command at once and leaves nothing. Commands that convert stay
    /// in libraries that no flag of a signal reaches, such as SQLite and the trace's consumers, for seconds; `record` polls
    /// for signals, since it has to make the trace of a program that was ended.
    pub fn ends_at_once(&self, signals: Signals, workshop: &Path) {
        let guard = Some(signals.end_at_once(workshop));
        *self
            .ends_at_once
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = guard;
    }

    /// Whether it replaces existing files.
    pub fn replaces(&self) -> bool {
        self.named
    }

    /// A private directory on the output's disk for temporary files: the user who chose the output chose the disk that
    /// fills. Creating it shows whether the output can be written.
    pub fn workshop(&self) -> Result<TempDir> {
        let directory = match self.kind {
            OutputKind::File => self.directory.clone(),
            OutputKind::Device | OutputKind::StandardOutput => std::env::temp_dir(),
        };
        private_dir::create_in(&directory, WORKSHOP_PREFIX).with_context(|| {
            let advice = if self.named {
                ""
            } else {
                "; name a place that can with -o"
            };
            format!(
                "the directory {} cannot be written{advice}",
                directory.display()
            )
        })
    }

    /// Prints, for each recording that was cut off because its `gputrail` was killed, how its captures can be
    /// converted.
    pub fn mention_abandoned(&self) {
        for folder in private_dir::abandoned_in(&self.directory, WORKSHOP_PREFIX) {
            let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let is_capture =
                |name: &OsStr| Path::new(name).extension() == Some("gputrail".as_ref());
            let folder_text = folder.display();
            if files
                .map(|file| file.file_name())
                .any(|name| is_capture(&name))
            {
                say!(
                    "an earlier recording was cut off; `gputrail convert {folder_text}/*.gputrail -o rescued.pftrace` makes a trace of it, and `rm -r {folder_text}` removes it"
                );
            } else {
                // Nothing had been recorded.
                let _ = std::fs::remove_dir_all(&folder);
            }
        }
    }

    /// Whether it is a regular file, so that other files can be put beside it.
    pub fn is_file(&self) -> bool {
        self.kind == OutputKind::File
    }

    /// The name for process `pid`. A default name that exists already gets a number.
    pub fn path(&self, pid: u32) -> Result<PathBuf> {
        let path = expand(&self.pattern, pid)?;
        Ok(if self.named { path } else { free_name(&path) })
    }

    /// The name for process `pid` to which the numbers of parts are added. That name itself is not used, so it may be taken.
    pub fn path_of_parts(&self, pid: u32) -> Result<PathBuf> {
        Ok(expand(&self.pattern, pid)?)
    }

    /// Moves the complete `file` to `path` atomically, and returns the path at which it is.
    pub fn deliver(&self, file: &Path, path: &Path) -> io::Result<PathBuf> {
        let mut ends_at_once = self
            .ends_at_once
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        drop(ends_at_once.take());
        match self.kind {
            OutputKind::File => {}
            OutputKind::Device => {
                links::followed(path)?;
                let mut device = File::options().write(true).open(path)?;
                if device.metadata()?.is_file() {
                    return Err(io::Error::other("a file is where a device or a pipe was"));
                }
                io::copy(&mut File::open(file)?, &mut device)?;
                return Ok(path.to_owned());
            }
            OutputKind::StandardOutput => {
                let mut out = io::stdout().lock();
                io::copy(&mut File::open(file)?, &mut out)?;
                out.flush()?;
                return Ok(path.to_owned());
            }
        }
        if self.named {
            // The target of a link is replaced or created, not the link.
            move_file(file, &links::followed(path)?)?;
            return Ok(path.to_owned());
        }
        let mut path = path.to_owned();
        loop {
            match rustix::fs::renameat_with(CWD, file, CWD, &path, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(path),
                Err(Errno::EXIST) => path = free_name(&path),
                // A file system without this kind of rename, or another file system.
                Err(_) => {
                    let path = free_name(&path);
                    move_file(file, &path)?;
                    return Ok(path);
                }
            }
        }
    }
}

/// The folder in which a folder `path` is made: itself if it is there, or the one that it will be in.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        _ if path.is_dir() => path,
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Refuses to replace a file that is read: `places` are the outputs, and `read` the inputs.
pub fn refuse_inputs<'p>(places: &[PathBuf], read: impl Iterator<Item = &'p Path>) -> Result<()> {
    let files = read.filter(|input| input.is_file());
    let files: Vec<PathBuf> = files
        .filter_map(|input| input.canonicalize().ok())
        .collect();
    let is_read = |place: &&PathBuf| {
        place
            .canonicalize()
            .is_ok_and(|place| files.contains(&place))
    };
    match places.iter().find(is_read) {
        Some(place) => bail!(
            "output {} is an input: choose another name",
            place.display()
        ),
        None => Ok(()),
    }
}

/// Refuses to write into `folder` if it has files of an earlier run that this one does not replace: those for which `is_kind`
/// holds and `is_replaced` does not. They would pass for files of this run.
pub fn refuse_older(
    folder: &Path,
    is_kind: impl Fn(&str) -> bool,
    is_replaced: impl Fn(&OsStr) -> bool,
) -> Result<()> {
    let mut older = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        if name.to_str().is_some_and(&is_kind) && !is_replaced(&name) {
            older.push(name);
        }
    }
    older.sort();
    let Some(first) = older.first() else {
        return Ok(());
    };
    let more = match older.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    bail!(
        "{} holds {}{more}, which this output does not replace: remove what is old, or choose another name",
        folder.display(),
        first.display()
    )
}

/// Whether a path can only name a directory: it ends with a slash or a dot behind one.
fn names_a_directory(path: &Path) -> bool {
    let name = path.as_os_str().as_bytes();
    [&b"/"[..], b"/.", b"/.."]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Renames the file, or copies it to the other file system and renames it there.
fn move_file(file: &Path, path: &Path) -> io::Result<()> {
    match std::fs::rename(file, path) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            let beside = private_dir::create_in(parent.unwrap_or(Path::new(".")), ".gputrail-")?;
            let whole = beside.path().join("whole");
            std::fs::copy(file, &whole)?;
            std::fs::rename(whole, path)
        }
        result => result,
    }
}

/// `path`, or if it exists with `-2`, `-3`, ... before its extension.
pub fn free_name(path: &Path) -> PathBuf {
    let free = |path: &PathBuf| path.symlink_metadata().is_err();
    gputrail_collect::session::numbered(path)
        .find(free)
        .expect("some number is free")
}

fn expand(
    pattern: &OutputPattern,
    pid: u32,
) -> Result<PathBuf, gputrail_collect::session::PatternError> {
    let system = rustix::system::uname();
    pattern.expand(&PatternValues {
        pid,
        host: OsStr::from_bytes(system.nodename().to_bytes()),
        variable: &|name| std::env::var_os(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> TempDir {
        private_dir::create_in(&std::env::temp_dir(), "gputrail-test-").unwrap()
    }

    /// Makes a file in the way a trace is made, and delivers it.
    fn deliver(output: &Output, path: &Path, text: &str) -> PathBuf {
        let workshop = output.workshop().unwrap();
        let file = workshop.path().join("trace");
        std::fs::write(&file, text).unwrap();
        output.deliver(&file, path).unwrap()
    }

    #[test]
    fn a_named_output_replaces_and_an_unnamed_one_never_does() {
        let directory = directory();
        let path = directory.path().join("run.pftrace");
        std::fs::write(&path, "old").unwrap();
        let unnamed = Output::beside(&directory.path().join("run.gputrail"), "pftrace").unwrap();
        let other = unnamed.path(1).unwrap();
        assert_eq!(other, directory.path().join("run-2.pftrace"));
        assert_eq!(deliver(&unnamed, &path, "new"), other);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");

        let named = Output::named(path.as_os_str()).unwrap();
        assert_eq!(deliver(&named, &named.path(1).unwrap(), "new"), path);
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_link_stays_and_its_target_is_replaced() {
        let directory = directory();
        let [link, target] = ["link", "target"].map(|name| directory.path().join(name));
        std::fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let output = Output::named(link.as_os_str()).unwrap();
        deliver(&output, &link, "new");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn a_dangling_link_stays_and_its_target_is_created() {
        let directory = directory();
        let [link, target] = ["link", "target"].map(|name| directory.path().join(name));
        std::os::unix::fs::symlink("target", &link).unwrap();
        let output = Output::named(link.as_os_str()).unwrap();
        deliver(&output, &link, "new");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn a_device_is_written_and_never_replaced() {
        let output = Output::named("/dev/null".as_ref()).unwrap();
        deliver(&output, Path::new("/dev/null"), "x");
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_default_name_has_program_and_process() {
        let output = Output::of_program("/usr/bin/no%such-program".as_ref()).unwrap();
        assert_eq!(
            output.path(42).unwrap(),
            Path::new("no%such-program-42.pftrace")
        );
    }

    #[test]
    fn outputs_that_cannot_be_written_are_refused_with_their_path() {
        let directory = directory();
        let inside = |name: &str| directory.path().join(name).into_os_string();
        for (name, word) in [
            ("missing/x", "not a directory"),
            ("missing/", "name of a directory"),
            ("missing/.", "name of a directory"),
            (&"x".repeat(256), "too long"),
            ("%p-".repeat(32).as_str(), "too long"),
            ("%p/x", "%p"),
            ("%z", "%z"),
            ("", "directory"),
        ] {
            let error = format!("{:#}", Output::named(&inside(name)).unwrap_err());
            assert!(error.contains(word) && error.contains("output"), "{error}");
        }
    }
}
