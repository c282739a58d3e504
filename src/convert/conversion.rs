//! Conversion of recordings, of gputrail or of other programs, into traces and tables.
//!
//! ```
//! use gputrail_convert::{Conversion, OutputFormat};
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
//! [`Write`], and [`Conversion::pass_on`] passes the [model](gputrail_trace::model) to a consumer of your own.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::behind;
#[cfg(feature = "parquet")]
use super::export::ParquetFolder;
use super::export::{ChromeWriter, CsvFolder, NoRows, RowWriter, schema};
use super::import::{InputFile, InputFormat, Recording};
use gputrail_trace::capture::Options;
use gputrail_trace::filter::Filter;
use gputrail_trace::model::{Consumer, DeviceRows, Producer, ProjectedRanges};
use gputrail_trace::perfetto::{CompressedGroups, Exporter, merge};
use gputrail_trace::selection::MarkerFinder;

pub use super::import::{Inputs, OpenError, ReadProgress, Report};
pub use super::parts::{MAX_PARTS, Part, Parts};
pub use super::size::Window;
pub use gputrail_trace::selection::{Selection, TimeBound};

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
    /// Chrome trace events, packed with gzip.
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
    /// The values of the selection that matched nothing, as `stream 99`.
    pub unmatched: Vec<String>,
    /// Number of events that the format of the output has no place for.
    pub without_place: u64,
}

/// Inputs, and what to do with them.
#[derive(Debug)]
pub struct Conversion {
    inputs: Inputs,
    selection: Selection,
    /// The selection with times for names, once they have been looked up.
    resolved: OnceLock<Selection>,
    projects_ranges: bool,
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
            projects_ranges: false,
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

    /// How captures of gputrail are passed on.
    pub fn with_options(self, options: Options) -> Conversion {
        Conversion {
            inputs: self.inputs.with_options(options),
            ..self
        }
    }

    /// Whether devices get rows of the ranges in which their work was launched.
    pub fn with_projected_ranges(self, projects_ranges: bool) -> Conversion {
        Conversion {
            projects_ranges,
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
    /// The errors of the consumer, and [`io::ErrorKind::InvalidInput`] if the selection names a call, slice or marker that the
    /// inputs do not have, or ends before it begins.
    pub fn pass_on(&self, consumer: &mut dyn Consumer) -> io::Result<Outcome> {
        let mut projected;
        let consumer: &mut dyn Consumer = match self.projects_ranges {
            true => {
                projected = ProjectedRanges::new(consumer);
                &mut projected
            }
            false => consumer,
        };
        if self.inputs.options().device_rows {
            self.pass_on_selected(&mut DeviceRows::new(consumer))
        } else {
            self.pass_on_selected(consumer)
        }
    }

    fn pass_on_selected(&self, consumer: &mut dyn Consumer) -> io::Result<Outcome> {
        if self.selection.is_everything() {
            let report = (&self.inputs).produce(consumer)?;
            return Ok(Outcome {
                selected: report.counts.events(),
                report,
                ..Outcome::default()
            });
        }
        let mut filter = Filter::new(self.resolved()?.clone(), consumer);
        let report = (&self.inputs).produce(&mut filter)?;
        Ok(Outcome {
            report,
            not_selected: filter.left_out(),
            selected: filter.kept(),
            unmatched: filter.unmatched(),
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
        let mut markers = MarkerFinder::new(names);
        (&self.inputs).produce(&mut markers)?;
        let bounds = [(&mut selection.from, false), (&mut selection.to, true)];
        for (bound, is_end) in bounds {
            let Some(name) = bound.as_ref().and_then(TimeBound::name) else {
                continue;
            };
            let (begin, end) = markers.interval(name).ok_or_else(|| {
                let text = format!("{name} is no time (1.5s, 20ms, nanoseconds) and no call, slice or marker of the inputs");
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
        match format {
            OutputFormat::Perfetto if self.copies_packets() => return self.copy_packets(out),
            OutputFormat::CompressedPerfetto if self.copies_packets() => {
                return self.copy_packets(CompressedGroups::new(out));
            }
            OutputFormat::CompressedPerfetto if self.inputs.has_threads() => {
                // Compression takes as long as all the rest.
                return behind::pass_on(CompressedGroups::new(out), |out| {
                    self.pass_on(&mut Exporter::new(out))
                });
            }
            OutputFormat::CompressedPerfetto => {
                let mut out = CompressedGroups::new(out);
                let outcome = self.pass_on(&mut Exporter::new(&mut out))?;
                out.flush()?;
                return Ok(outcome);
            }
            _ => {}
        }
        let mut writer = FileWriter::new(out, format)?;
        let outcome = self.pass_on(writer.consumer())?;
        Ok(outcome.with_left_out(writer.finish()?))
    }

    /// Whether the packets of Perfetto traces are copied, not read and written again: nothing is selected.
    fn copies_packets(&self) -> bool {
        self.selection.is_everything()
            && !self.inputs.options().device_rows
            && !self.projects_ranges
            && self.inputs.recordings().iter().any(is_trace)
    }

    /// Removes what the model leaves out of Perfetto traces from a report: copies of their packets have it.
    fn forget_copied(&self, report: &mut Report) {
        let traces = self.inputs.of_recordings(is_trace);
        let copied = traces.recordings().iter().flat_map(Recording::sources);
        let copied: Vec<&Path> = copied.map(InputFile::name).collect();
        report.forget_events_of(|file| copied.contains(&file));
    }

    /// Copies the packets of Perfetto traces, of whatever kinds. Inputs of other formats become a trace, whose packets follow.
    fn copy_packets(&self, out: impl Write) -> io::Result<Outcome> {
        let mut outcome = self.pass_on(&mut Everything)?;
        self.forget_copied(&mut outcome.report);
        let traces = self.inputs.of_recordings(is_trace);
        let others = self.inputs.of_recordings(|recording| !is_trace(recording));
        let copied = traces.recordings().iter().flat_map(Recording::sources);
        // The sources, and a name for messages.
        let mut sources: Vec<(PathBuf, InputFile)> = copied
            .map(|source| (source.name().to_owned(), source.clone()))
            .collect();
        if let [first, ..] = others.recordings() {
            let made = tempfile::tempfile()?;
            (&others).produce(&mut Exporter::new(&made))?;
            // The clock of the first input is that of the output.
            let place = if is_trace(&self.inputs.recordings()[0]) {
                sources.len()
            } else {
                0
            };
            let name = first.sources()[0].name().to_owned();
            let source = InputFile::of(name.clone(), made)?;
            sources.insert(place, (name, source));
        }
        self.inputs.begin_reading();
        if let [(_, source)] = &sources[..] {
            merge::copy(source.reader()?, out)?;
            return Ok(outcome);
        }
        let mut surveys = Vec::new();
        for (_, source) in &sources {
            surveys.push(merge::survey(source.reader()?));
        }
        let mut offsets = HashMap::new();
        let placements = loop {
            match merge::place(&surveys, &offsets) {
                Ok(placements) => break placements,
                Err(index) => {
                    let reason = "trace that has no clock in common with the first one: its times are not changed";
                    outcome.report.remark(&sources[index].0, reason, None);
                    offsets.insert(index, 0);
                }
            }
        };
        self.inputs.begin_reading();
        let mut pieces = Vec::new();
        for (((_, source), survey), placement) in sources.iter().zip(&surveys).zip(placements) {
            pieces.push((source.reader()?, survey, placement));
        }
        merge::merge(pieces, out)?;
        Ok(outcome)
    }

    /// Passes the selected part of the inputs to `observer`, and counts what an output would leave out, without making one.
    ///
    /// # Errors
    ///
    /// As [`Conversion::pass_on`].
    pub fn try_out(
        &self,
        format: OutputFormat,
        observer: &mut dyn Consumer,
    ) -> io::Result<Outcome> {
        match format {
            OutputFormat::Perfetto | OutputFormat::CompressedPerfetto => {
                let mut outcome = self.pass_on(observer)?;
                if self.copies_packets() {
                    self.forget_copied(&mut outcome.report);
                }
                Ok(outcome)
            }
            OutputFormat::Json | OutputFormat::PackedJson => {
                let mut writer = ChromeWriter::new(io::sink());
                let outcome = self.pass_on(&mut (&mut writer, observer))?;
                Ok(outcome.with_left_out(writer.left_out()))
            }
            OutputFormat::Csv => {
                let mut writer = CsvFolder::nowhere();
                let outcome = self.pass_on(&mut (&mut writer, observer))?;
                Ok(outcome.with_left_out(writer.left_out()))
            }
            OutputFormat::Parquet => {
                let mut writer = RowWriter::new(NoRows);
                let outcome = self.pass_on(&mut (&mut writer, observer))?;
                Ok(outcome.with_left_out(writer.left_out()))
            }
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

/// The writer of an output that is one file.
pub(super) enum FileWriter<'a, W: Write + Send> {
    Perfetto(Box<Exporter<'a>>),
    Json(ChromeWriter<BufWriter<W>>),
    PackedJson(ChromeWriter<GzEncoder<BufWriter<W>>>),
}

impl<'a, W: Write + Send + 'a> FileWriter<'a, W> {
    /// Writes to `out`.
    pub fn new(out: W, format: OutputFormat) -> io::Result<FileWriter<'a, W>> {
        Ok(match format {
            OutputFormat::Perfetto => FileWriter::Perfetto(Box::new(Exporter::new(out))),
            OutputFormat::CompressedPerfetto => {
                FileWriter::Perfetto(Box::new(Exporter::new(out).compressed(true)))
            }
            OutputFormat::Json => FileWriter::Json(ChromeWriter::new(BufWriter::new(out))),
            OutputFormat::PackedJson => {
                let packed = GzEncoder::new(BufWriter::new(out), Compression::fast());
                FileWriter::PackedJson(ChromeWriter::new(packed))
            }
            OutputFormat::Csv | OutputFormat::Parquet => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the tables of this format are written into a folder",
                ));
            }
        })
    }

    /// The consumer that writes.
    pub fn consumer(&mut self) -> &mut dyn Consumer {
        match self {
            FileWriter::Perfetto(writer) => &mut **writer,
            FileWriter::Json(writer) => writer,
            FileWriter::PackedJson(writer) => writer,
        }
    }

    /// Writes the rest. The result is the number of events that the format has no place for.
    pub fn finish(self) -> io::Result<u64> {
        match self {
            FileWriter::Perfetto(_) => Ok(0),
            FileWriter::Json(writer) => {
                let left_out = writer.left_out();
                writer.into_inner().flush()?;
                Ok(left_out)
            }
            FileWriter::PackedJson(writer) => {
                let left_out = writer.left_out();
                writer.into_inner().finish()?.flush()?;
                Ok(left_out)
            }
        }
    }
}

/// Whether a recording is a Perfetto trace.
fn is_trace(recording: &Recording) -> bool {
    recording.format() == InputFormat::Perfetto
}

/// Takes everything, for its counts.
struct Everything;

impl Consumer for Everything {
    gputrail_trace::leave_out!(
        clocks attributes agents process track queue counters call slice end instant work value counter_values
        samples stack stack_samples loss note
    );
}

impl Outcome {
    pub(super) fn with_left_out(self, without_place: u64) -> Outcome {
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
    // Partitions of an earlier conversion are removed in all tables, also in those that get no rows now.
    let old = made.join(".old");
    fs::create_dir(&old)?;
    let mut count = 0;
    for table in fs::read_dir(path)? {
        let table = table?;
        let name = table.file_name();
        // Other folders belong to somebody else.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of a kind that the model does not hold, on a sequence and without a time.
    const UNKNOWN: &[u8] = b"\x0a\x09\x50\x07\xb2\x04\x04text";

    #[test]
    fn packets_of_perfetto_traces_are_copied_beside_inputs_of_other_formats() {
        let folder = tempfile::tempdir().unwrap();
        let [profile, trace] =
            ["profile.json", "other.pftrace"].map(|name| folder.path().join(name));
        let event = r#"[{"ph":"X","name":"of the profile","ts":1,"dur":2,"pid":1,"tid":1}]"#;
        fs::write(&profile, event).unwrap();
        fs::write(&trace, UNKNOWN).unwrap();
        for order in [[&profile, &trace], [&trace, &profile]] {
            let conversion = Conversion::open(&order).unwrap();
            let mut out = Vec::new();
            let outcome = conversion
                .write_to(&mut out, OutputFormat::Perfetto)
                .unwrap();
            let has = |text: &[u8]| out.windows(text.len()).any(|part| part == text);
            assert!(has(b"of the profile") && has(b"\xb2\x04\x04text"));
            assert_eq!(outcome.report.unrepresented, []);
            assert_eq!(outcome.report.counts.slices, 1);
            // Other outputs are made of the model, which counts what it leaves out.
            let out = conversion.try_out(OutputFormat::Json, &mut ()).unwrap();
            assert_eq!(out.report.unrepresented[0].count, 1);
            let out = conversion.try_out(OutputFormat::Perfetto, &mut ()).unwrap();
            assert_eq!(out.report.unrepresented, []);
        }
    }

    #[test]
    fn a_bound_may_be_the_name_of_a_call() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.json");
        let event = |name, ts| {
            format!(
                r#"{{"ph":"X","cat":"cuda_runtime","name":"{name}","ts":{ts},"dur":5,"pid":1,"tid":1}}"#
            )
        };
        let events = [
            event("cudaMalloc", 10),
            event("cudaLaunchKernel", 20),
            event("cudaFree", 30),
        ];
        std::fs::write(&path, format!("[{}]", events.join(","))).unwrap();
        for (from, to, kept) in [
            (Some("cudaLaunchKernel"), None, 2),
            (None, Some("cudaLaunchKernel"), 2),
            (Some("cudaLaunchKernel"), Some("cudaLaunchKernel"), 1),
        ] {
            let conversion = Conversion::open(&[&path]).unwrap().select(Selection {
                from: from.map(TimeBound::from),
                to: to.map(TimeBound::from),
                ..Selection::default()
            });
            let outcome = conversion.try_out(OutputFormat::Perfetto, &mut ()).unwrap();
            assert_eq!(outcome.selected, kept, "{from:?} {to:?}");
        }
    }
}
