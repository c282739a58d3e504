//! Conversion of recordings, of gputrail or of other programs, into traces and tables.
//!
//! ```
//! use gputrail::convert::{Conversion, OutputFormat};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let [profile, trace] = ["profile.json", "profile.pftrace"].map(|name| folder.path().join(name));
//! # std::fs::write(&profile, r#"[{"ph":"X","name":"step","ts":1,"dur":2,"pid":1,"tid":1}]"#)?;
//! let conversion = Conversion::open(&[profile])?;
//! let outcome = conversion.write(&trace, OutputFormat::Perfetto)?;
//! for finding in &outcome.report.findings {
//!     eprintln!("{finding}");
//! }
//! # assert_eq!(outcome.report.counts.slices, 1);
//! # assert!(trace.exists());
//! # Ok(())
//! # }
//! ```
//!
//! [`Conversion::write`] puts a complete file or folder in place, or nothing. [`Conversion::write_to`] writes a trace to any
//! [`Write`], and [`Conversion::pass_on`] passes the [model](super::model) to a consumer of your own.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::capture::Options;
use super::export::{ChromeWriter, CsvFolder, schema};
#[cfg(feature = "parquet")]
use super::export::{ParquetFolder, RowWriter};
use super::filter::{Filter, Markers};
use super::model::{Consumer, Producer};
use super::perfetto::Exporter;
use super::size::{Counted, Sizes};
use crate::record::Nanos;

pub use super::filter::{Selection, TimeBound};
pub use super::import::{Inputs, OpenError, Report};

/// Prefix of the names of the folders in which outputs are made.
const PREFIX: &str = ".gputrail-";

/// The format of an output.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// A Perfetto trace.
    Perfetto,
    /// A Perfetto trace whose packets are compressed.
    CompressedPerfetto,
    /// Chrome trace events, named as PyTorch's profiler names them.
    Json,
    /// The same, packed with gzip.
    PackedJson,
    /// A folder of CSV files with the columns of rocprofv3.
    Csv,
    /// A folder of Parquet files, one table for each family of records, with a partition for each rank.
    Parquet,
}

impl OutputFormat {
    /// Whether outputs are folders.
    pub fn is_folder(self) -> bool {
        matches!(self, OutputFormat::Csv | OutputFormat::Parquet)
    }
}

/// A conversion that was made.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Counts of what went in, and findings about it.
    pub report: Report,
    /// Number of events that the selection left out.
    pub not_selected: u64,
    /// Number of events that the selection kept; without a selection, all.
    pub selected: u64,
    /// Number of events that the format of the output has no place for.
    pub without_place: u64,
}

/// A part of the time of a trace: what touches it is in the part.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Its begin; none for that of the trace.
    pub from: Option<Nanos>,
    /// Its end; none for that of the trace.
    pub to: Option<Nanos>,
}

impl Window {
    /// The parts between `cuts`.
    pub fn between(cuts: &[Nanos]) -> Vec<Window> {
        let ends = cuts.iter().copied().map(Some).chain([None]);
        let begins = cuts.iter().map(|cut| Some(Nanos(cut.0.saturating_add(1))));
        let begins = [None].into_iter().chain(begins);
        let windows = begins.zip(ends).map(|(from, to)| Window { from, to });
        windows.collect()
    }
}

/// Inputs, and what to do with them.
#[derive(Debug)]
pub struct Conversion {
    inputs: Inputs,
    selection: Selection,
    /// The selection with times for names, once they have been looked up.
    resolved: OnceLock<Selection>,
    window: Window,
}

impl Conversion {
    /// Opens files and folders; `-` is standard input. Their content decides on their formats.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Conversion, OpenError> {
        Inputs::open(paths).map(Conversion::of)
    }

    /// A conversion of inputs that are open already.
    pub fn of(inputs: Inputs) -> Conversion {
        Conversion {
            inputs,
            selection: Selection::default(),
            resolved: OnceLock::new(),
            window: Window::default(),
        }
    }

    /// What to keep of the inputs.
    pub fn select(self, selection: Selection) -> Conversion {
        Conversion {
            selection,
            resolved: OnceLock::new(),
            ..self
        }
    }

    /// The part of the time that is passed on of what is selected.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// Times at which to cut the output, so that each part takes about `bytes`. The inputs are converted once to find them.
    ///
    /// # Errors
    ///
    /// As [`Conversion::write_to`].
    pub fn cuts(&self, bytes: u64, format: OutputFormat) -> io::Result<Vec<Nanos>> {
        let (out, counter) = Counted::new(io::sink());
        let mut sizes = Sizes::new(counter);
        self.write_observed(out, format, &mut sizes)?;
        Ok(sizes.cuts(bytes))
    }

    /// How captures of gputrail are passed on.
    pub fn with_options(self, options: Options) -> Conversion {
        Conversion {
            inputs: self.inputs.with_options(options),
            ..self
        }
    }

    /// The inputs.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// Passes the selected part of the inputs to `consumer`.
    ///
    /// # Errors
    ///
    /// Those of the consumer, and [`io::ErrorKind::InvalidInput`] if the selection names a slice or marker that the inputs do
    /// not have, or ends before it begins.
    pub fn pass_on(&self, consumer: &mut dyn Consumer) -> io::Result<Outcome> {
        let cut = Selection {
            from: self.window.from.map(TimeBound::Absolute),
            to: self.window.to.map(TimeBound::Absolute),
            ..Selection::default()
        };
        if !cut.is_everything() {
            let mut filter = Filter::new(cut, consumer);
            let outcome = self.pass_on_selected(&mut filter)?;
            return Ok(Outcome {
                not_selected: outcome.not_selected + filter.left_out(),
                selected: filter.kept(),
                ..outcome
            });
        }
        self.pass_on_selected(consumer)
    }

    fn pass_on_selected(&self, consumer: &mut dyn Consumer) -> io::Result<Outcome> {
        if self.selection.is_everything() {
            let report = (&self.inputs).produce(consumer)?;
            let selected = report.counts.events();
            return Ok(Outcome {
                report,
                selected,
                ..Outcome::default()
            });
        }
        let mut filter = Filter::new(self.resolved()?.clone(), consumer);
        let report = (&self.inputs).produce(&mut filter)?;
        Ok(Outcome {
            report,
            not_selected: filter.left_out(),
            selected: filter.kept(),
            without_place: 0,
        })
    }

    /// The selection with times for names of slices and markers.
    fn resolved(&self) -> io::Result<&Selection> {
        if let Some(known) = self.resolved.get() {
            return Ok(known);
        }
        let found = self.look_up()?;
        Ok(self.resolved.get_or_init(|| found))
    }

    fn look_up(&self) -> io::Result<Selection> {
        let mut selection = self.selection.clone();
        let bounds = [&selection.from, &selection.to];
        let names = bounds.into_iter().flatten().filter_map(TimeBound::name);
        let names: Vec<String> = names.map(str::to_owned).collect();
        if names.is_empty() {
            return Ok(selection);
        }
        let mut markers = Markers::new(names);
        (&self.inputs).produce(&mut markers)?;
        let bounds = [(&mut selection.from, false), (&mut selection.to, true)];
        for (bound, is_end) in bounds {
            let Some(name) = bound.as_ref().and_then(TimeBound::name) else {
                continue;
            };
            let (begin, end) = markers.interval(name).ok_or_else(|| {
                let text = format!("{name} is no time (1.5s, 20ms, nanoseconds) and no slice or marker of the inputs");
                io::Error::new(io::ErrorKind::InvalidInput, text)
            })?;
            *bound = Some(TimeBound::Absolute(if is_end { end } else { begin }));
        }
        Ok(selection)
    }

    /// Writes one stream of bytes to `out`: a Perfetto trace or JSON.
    ///
    /// # Errors
    ///
    /// As [`Conversion::pass_on`]; [`io::ErrorKind::InvalidInput`] for formats that are folders.
    pub fn write_to(&self, out: impl Write + Send, format: OutputFormat) -> io::Result<Outcome> {
        self.write_observed(out, format, &mut ())
    }

    /// As [`Conversion::write_to`]; `observer` gets each event after it has been written.
    fn write_observed(
        &self,
        out: impl Write + Send,
        format: OutputFormat,
        observer: &mut dyn Consumer,
    ) -> io::Result<Outcome> {
        match format {
            OutputFormat::Perfetto | OutputFormat::CompressedPerfetto => {
                let compress = format == OutputFormat::CompressedPerfetto;
                let mut exporter = Exporter::new(out).compressed(compress);
                self.pass_on(&mut (&mut exporter, observer))
            }
            OutputFormat::Json => {
                let mut writer = ChromeWriter::new(BufWriter::new(out));
                let outcome = self.pass_on(&mut (&mut writer, observer))?;
                Ok(outcome.with_left_out(writer.left_out()))
            }
            OutputFormat::PackedJson => {
                let packed = GzEncoder::new(BufWriter::new(out), Compression::fast());
                let mut writer = ChromeWriter::new(packed);
                let outcome = self.pass_on(&mut (&mut writer, observer))?;
                let left_out = writer.left_out();
                writer.into_inner().finish()?.flush()?;
                Ok(outcome.with_left_out(left_out))
            }
            OutputFormat::Csv | OutputFormat::Parquet => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the tables of this format are written into a folder",
            )),
        }
    }

    /// Writes tables into `folder`, which exists and is empty, and passes the same stream to `observer`.
    ///
    /// # Errors
    ///
    /// As [`Conversion::pass_on`]; [`io::ErrorKind::InvalidInput`] for formats that are one file, and
    /// [`io::ErrorKind::Unsupported`] if this library was built without the format.
    pub fn write_tables(
        &self,
        folder: &Path,
        format: OutputFormat,
        observer: &mut dyn Consumer,
    ) -> io::Result<Outcome> {
        match format {
            OutputFormat::Csv => {
                let mut writer = CsvFolder::new(folder);
                let outcome = self.pass_on(&mut (&mut writer, observer))?;
                Ok(outcome.with_left_out(writer.left_out()))
            }
            #[cfg(feature = "parquet")]
            OutputFormat::Parquet => {
                let mut writer = RowWriter::new(ParquetFolder::new(folder));
                let outcome = self.pass_on(&mut (&mut writer, observer))?;
                Ok(outcome.with_left_out(writer.left_out()))
            }
            #[cfg(not(feature = "parquet"))]
            OutputFormat::Parquet => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this gputrail was built without the feature `parquet`: cargo build --release --features parquet",
            )),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "this format is one file",
            )),
        }
    }

    /// Writes the output `path`: a file that is replaced if it exists, or a folder to which tables are added as
    /// [`deliver_tables`] says. It appears when it is complete; after an error there is nothing new.
    ///
    /// # Errors
    ///
    /// As [`Conversion::write_to`] and [`Conversion::write_tables`].
    pub fn write(&self, path: impl AsRef<Path>, format: OutputFormat) -> io::Result<Outcome> {
        let path = path.as_ref();
        let beside = match path.parent() {
            _ if path.is_dir() => path,
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => Path::new("."),
        };
        let workshop = tempfile::Builder::new().prefix(PREFIX).tempdir_in(beside)?;
        let made = workshop.path().join("made");
        if format.is_folder() {
            fs::create_dir(&made)?;
            let outcome = self.write_tables(&made, format, &mut ())?;
            deliver_tables(&made, path)?;
            return Ok(outcome);
        }
        let outcome = self.write_to(File::create_new(&made)?, format)?;
        fs::rename(made, path)?;
        Ok(outcome)
    }
}

impl Outcome {
    fn with_left_out(self, without_place: u64) -> Outcome {
        Outcome {
            without_place,
            ..self
        }
    }
}

/// Whether a folder of this name holds one of our tables.
fn is_table(name: &str) -> bool {
    schema::TABLES.iter().any(|table| table.name == name)
}

/// Gives complete tables in the folder `made` their place in the folder `path`, on the same file system. If `path` does not
/// exist, it appears at once. If it does, files replace those of the same name, and a partition (`rank=3`) replaces that
/// partition in all tables: so the ranks of a job are converted one by one, and again, into one folder.
pub fn deliver_tables(made: &Path, path: &Path) -> io::Result<()> {
    if !path.exists() {
        match fs::rename(made, path) {
            // Another conversion has made the folder meanwhile.
            Err(_) if path.is_dir() => {}
            outcome => return outcome,
        }
    }
    let mut partitions: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(made)? {
        let entry = entry?;
        let place = path.join(entry.file_name());
        if !entry.file_type()?.is_dir() {
            fs::rename(entry.path(), place)?;
            continue;
        }
        fs::create_dir_all(&place)?;
        for partition in fs::read_dir(entry.path())? {
            let name = PathBuf::from(partition?.file_name());
            if !partitions.contains(&name) {
                partitions.push(name);
            }
        }
    }
    // What an earlier conversion has left of these partitions goes, in tables that have no rows any more, too.
    let old = made.join(".old");
    fs::create_dir(&old)?;
    let mut count = 0;
    for table in fs::read_dir(path)? {
        let table = table?;
        let name = table.file_name();
        // Folders that are no tables are somebody else's.
        let is_table = name.to_str().is_some_and(is_table);
        if !table.file_type()?.is_dir() || !is_table {
            continue;
        }
        for partition in &partitions {
            let place = table.path().join(partition);
            let aside = old.join(count.to_string());
            let had_one = place.is_dir();
            if had_one {
                fs::rename(&place, &aside)?;
                count += 1;
            }
            let new = made.join(&name).join(partition);
            if !new.is_dir() {
                continue;
            }
            if let Err(error) = fs::rename(new, &place) {
                if had_one {
                    fs::rename(&aside, &place)?;
                }
                return Err(error);
            }
        }
    }
    Ok(())
}
