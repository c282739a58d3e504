//! Makes a trace of captures on the output's disk, where it gets its name when it is complete; on another disk if that
//! one is full; cut if no disk has enough space. Makes traces of inputs of any format, too, for commands that read them.

use crate::cli::contents::Contents;
use crate::messages::say;
use crate::output::{Output, free_name};
use crate::private_dir;
use crate::progress::Progress;
use anyhow::{Context, Result, anyhow};
use gputrail_analysis::summary::Summary;
use gputrail_capture::Reader;
use gputrail_convert::import::{self, Inputs};
use gputrail_record::Nanos;
use gputrail_trace::capture::{Options, Report};
use gputrail_trace::model::{Machine, Producer};
use gputrail_trace::perfetto::Exporter;
use gputrail_trace::{MadeTrace, MakeTraceError, make_trace};
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A trace that was made.
pub struct Made {
    /// Its path.
    pub path: PathBuf,
    /// The counts of its contents.
    pub report: Report,
    /// The summary of its contents.
    pub summary: Summary,
    /// Whether its end is missing, because no disk had space for it.
    pub cut: bool,
    /// The number of events that it leaves out, see [`TraceOrder::make_from`].
    pub left_out: u64,
}

/// The settings of a trace to be made.
pub struct TraceOrder<'a> {
    pub captures: &'a [PathBuf],
    pub output: &'a Output,
    /// The name that the trace gets.
    pub path: &'a Path,
    /// A private directory on the output's disk.
    pub workshop: &'a Path,
    /// Its optional contents.
    pub contents: Contents,
    /// Whether captures may be removed if the trace needs their space.
    pub captures_may_go: bool,
    /// Whether the captures are being written.
    pub is_growing: bool,
}

impl TraceOrder<'_> {
    /// Makes the trace. Captures that cannot be read at all are reported and left out.
    pub fn make(&self) -> Result<Made> {
        self.make_from(None)
    }

    /// [`TraceOrder::make`] without what ended before a time on CLOCK_BOOTTIME.
    pub fn make_from(&self, from: Option<Nanos>) -> Result<Made> {
        let open = |path: &PathBuf| Reader::open(path).map_err(|error| say!("{error}")).ok();
        let readers: Vec<Reader> = self.captures.iter().filter_map(open).collect();
        let file = self.workshop.join("trace");
        match self.write(&readers, from, &file) {
            Ok(parts) => self.deliver(&file, parts),
            Err(failed) if !is_full(&failed.error.source) => Err(anyhow!(failed.error)),
            Err(failed) => match other_disk(self.workshop) {
                Some(place) => self.make_in(&place, readers, from, &file),
                None => self.cut(failed, &file),
            },
        }
    }

    /// The options of the conversion.
    pub fn options(contents: Contents) -> Options {
        Options {
            arguments: contents.arguments,
            raw_samples: contents.raw_samples,
            device_rows: contents.device_rows,
            machine: Machine::this(),
            ..Options::default()
        }
    }

    /// Gives its name to a trace in `file` that has been made already.
    pub fn deliver(&self, file: &Path, parts: TraceCounts) -> Result<Made> {
        let path = self.output.deliver(file, self.path);
        let path = path.with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(parts.at(path))
    }

    /// Makes the trace on another disk, and moves it to the output's disk when the captures have made space.
    fn make_in(
        &self,
        place: &TempDir,
        readers: Vec<Reader>,
        from: Option<Nanos>,
        first: &Path,
    ) -> Result<Made> {
        let file = place.path().join("trace");
        let parts = match self.write(&readers, from, &file) {
            Ok(parts) => parts,
            Err(failed) if is_full(&failed.error.source) => return self.cut(failed, first),
            Err(failed) => return Err(anyhow!(failed.error)),
        };
        // The space of a removed file is freed when it is no longer open.
        drop(readers);
        let _ = std::fs::remove_file(first);
        if self.captures_may_go {
            for capture in self.captures {
                let _ = std::fs::remove_file(capture);
            }
        }
        if let Ok(path) = self.output.deliver(&file, self.path) {
            return Ok(parts.at(path));
        }
        let name = self
            .path
            .file_name()
            .context("the output has no file name")?;
        let parent = place.path().parent().expect("a directory in it was made");
        let path = keep_file(&file, &parent.join(name))?;
        say!(
            "no space for {}: the trace is in {}",
            self.path.display(),
            path.display()
        );
        Ok(parts.at(path))
    }

    fn write(
        &self,
        readers: &[Reader],
        from: Option<Nanos>,
        path: &Path,
    ) -> Result<TraceCounts, Box<FailedTrace>> {
        let mut progress = Progress::new();
        let mut parts = TraceCounts {
            report: Report::default(),
            summary: Summary::default(),
            left_out: 0,
        };
        let options = Options {
            from,
            is_growing: self.is_growing,
            ..TraceOrder::options(self.contents)
        };
        let result = match File::create_new(path) {
            Ok(file) => {
                let trace = Exporter::new(progress.through(file));
                let trace = trace.compressed(self.contents.compress);
                make_trace(readers, trace, &options, &mut parts.summary)
            }
            Err(source) => Err(MakeTraceError { written: 0, source }),
        };
        match result {
            Ok(MadeTrace {
                report, left_out, ..
            }) => Ok(TraceCounts {
                report,
                left_out,
                ..parts
            }),
            Err(error) => Err(Box::new(FailedTrace { error, parts })),
        }
    }

    /// Delivers the complete packets that there was space for.
    fn cut(&self, failed: Box<FailedTrace>, file: &Path) -> Result<Made> {
        let FailedTrace { error, parts } = *failed;
        let written = error.written;
        if written == 0 || !file.exists() {
            return Err(anyhow!(error));
        }
        File::options().write(true).open(file)?.set_len(written)?;
        let path = self.output.deliver(file, self.path)?;
        say!("{}: {error}", path.display());
        Ok(Made {
            cut: true,
            ..parts.at(path)
        })
    }
}

/// Makes a trace of inputs in `file`.
pub fn to_trace(inputs: Inputs, file: &Path) -> Result<import::Report> {
    let inputs = inputs.with_options(TraceOrder::options(Contents::default()));
    let mut progress = Progress::of(inputs.progress());
    let out = progress.through(File::create_new(file)?);
    Ok(inputs.produce(&mut Exporter::new(out))?)
}

/// The counts of a trace.
pub struct TraceCounts {
    pub report: Report,
    pub summary: Summary,
    /// See [`Made::left_out`].
    pub left_out: u64,
}

impl TraceCounts {
    fn at(self, path: PathBuf) -> Made {
        let TraceCounts {
            report,
            summary,
            left_out,
        } = self;
        Made {
            path,
            report,
            summary,
            cut: false,
            left_out,
        }
    }
}

struct FailedTrace {
    error: MakeTraceError,
    parts: TraceCounts,
}

/// Whether the disk was full, or a quota or limit was reached.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// A private directory on a disk other than that of `full`.
fn other_disk(full: &Path) -> Option<TempDir> {
    let device = |path: &Path| std::fs::metadata(path).map(|data| data.dev()).ok();
    let full = device(full)?;
    [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()]
        .into_iter()
        .filter(|place| device(place).is_some_and(|device| device != full))
        .find_map(|place| private_dir::create_in(&place, ".gputrail-").ok())
}

/// Moves a file to `path`, or to a similar name that is free.
pub fn keep_file(file: &Path, path: &Path) -> Result<PathBuf> {
    let path = free_name(path);
    if std::fs::rename(file, &path).is_err() {
        // Another file system. A file that appears at the path meanwhile is not overwritten, and no link is followed.
        let mut from = File::open(file)?;
        let mut to = File::options()
            .write(true)
            .create_new(true)
            .mode(from.metadata()?.mode())
            .open(&path)?;
        io::copy(&mut from, &mut to)?;
        std::fs::remove_file(file)?;
    }
    Ok(path)
}
