//! The files of a command line, opened and put into recordings.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::joined::Joined;
use super::{
    Aligned, InputFile, InputFormat, ReadProgress, Report, chrome, clperfmarker, format, nsys,
    nvprof, parallel, proton_tree, rocprof, rocprofv3, xplane,
};
use gputrail_capture::{ReadError, Reader};
use gputrail_record::Nanos;
use gputrail_trace::capture::{Captures, Options};
#[cfg(not(feature = "sqlite"))]
use gputrail_trace::model::TraceHeader;
use gputrail_trace::model::{Consumer, Producer};
use gputrail_trace::perfetto::reader::TraceReplay;
use gputrail_trace::sorter::Sorter;

/// Input that cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system cannot read it.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A capture is damaged from its beginning.
    #[error(transparent)]
    Capture(#[from] ReadError),
    /// It has no known format.
    #[error("{} is {found}; expected {}", path.display(), supported())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// A description of its content.
        found: String,
    },
    /// No file of a folder has a known format.
    #[error("{}: none of the {files} files of this folder has a known format; expected {}", path.display(), supported())]
    NothingKnown {
        /// The folder.
        path: PathBuf,
        /// How many files it has.
        files: usize,
    },
}

fn supported() -> String {
    let names = InputFormat::ALL.map(InputFormat::name).join(", ");
    format!("one of: {names}")
}

/// Memory for sorting, of all recordings that are read at the same time.
const SORTING: usize = 128 << 20;

/// The memory and threads that the reader of a recording may use.
#[derive(Copy, Clone, Debug)]
pub(super) struct Allowance {
    /// Memory for sorting, in bytes.
    pub memory: usize,
    /// Whether its steps have threads of their own.
    pub has_threads: bool,
}

impl Allowance {
    /// A sorter with a part of the memory: `share` of `whole`.
    pub fn sorter(self, share: usize, whole: usize) -> Sorter {
        Sorter::with_threads(self.memory / whole * share, self.has_threads)
    }
}

/// Files that belong together: one run in one format.
#[derive(Clone, Debug)]
pub struct Recording {
    format: InputFormat,
    sources: Vec<InputFile>,
}

impl Recording {
    /// Its format.
    pub fn format(&self) -> InputFormat {
        self.format
    }

    /// The format of one of its files: beside trace events there may be a table of kernels.
    fn format_of(&self, place: usize) -> InputFormat {
        match (self.format, place) {
            (InputFormat::ChromeTrace, 1..) => InputFormat::AscendKernels,
            (format, _) => format,
        }
    }

    /// Its files.
    pub fn sources(&self) -> &[InputFile] {
        &self.sources
    }

    /// Passes the recording to `consumer`.
    fn produce(
        &self,
        (options, allowance): (&Options, Allowance),
        consumer: &mut dyn Consumer,
        report: &mut Report,
    ) -> io::Result<()> {
        match self.format {
            InputFormat::Capture => captures(&self.sources, options, consumer, report),
            InputFormat::Perfetto => perfetto(&self.sources[0], consumer, report),
            InputFormat::ChromeTrace => chrome::read(
                (Some(&self.sources[0]), &self.sources[1..]),
                allowance,
                consumer,
                report,
            ),
            InputFormat::AscendKernels => {
                chrome::read((None, &self.sources), allowance, consumer, report)
            }
            InputFormat::ClPerfMarker => clperfmarker::read(&self.sources[0], consumer, report),
            InputFormat::RocprofCsv => {
                rocprofv3::read_csv(&self.sources, allowance, consumer, report)
            }
            InputFormat::RocprofJson => {
                rocprofv3::read_json(&self.sources, allowance, consumer, report)
            }
            InputFormat::Rocpd
            | InputFormat::Rpd
            | InputFormat::NsightSystems
            | InputFormat::RocprofDatabase
            | InputFormat::Nvprof => {
                databases(self.format, &self.sources, allowance, consumer, report)
            }
            InputFormat::RocprofTable => {
                rocprof::read_table(&self.sources[0], allowance, consumer, report)
            }
            InputFormat::RocprofEvents => {
                rocprof::read_events(&self.sources[0], allowance, consumer, report)
            }
            InputFormat::Roctracer => {
                rocprof::read_lists(&self.sources, allowance, consumer, report)
            }
            InputFormat::NsightParquet => {
                nsys::read_parquet(&self.sources, allowance, consumer, report)
            }
            InputFormat::NsightArrow | InputFormat::NsightArrowTable => {
                nsys::read_arrow(&self.sources, allowance, consumer, report)
            }
            InputFormat::NsightJson => {
                nsys::read_json_lines(&self.sources[0], allowance, consumer, report)
            }
            InputFormat::NvprofCsv => {
                nvprof::read_trace(&self.sources[0], allowance, consumer, report)
            }
            InputFormat::XPlane => xplane::read(&self.sources[0], allowance, consumer, report),
        }
    }
}

/// All inputs of a conversion.
#[derive(Debug)]
pub struct Inputs {
    recordings: Vec<Recording>,
    /// Files and folders in folders that are not read, each with a description of its content.
    unread: Vec<(PathBuf, String)>,
    /// Files and folders that were named and have no known format, each with a description of its content.
    unknown: Vec<(PathBuf, String)>,
    options: Options,
    jobs: usize,
    aligns: bool,
    readings: Arc<AtomicU64>,
}

impl Inputs {
    /// Opens files and folders; `-` is standard input. Files of a folder that have no known format are not read, and named in
    /// the [`Report`]. A file of `paths` that has none is a finding of the report, and an error if no other input has one.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Inputs, OpenError> {
        let mut inputs = Inputs {
            recordings: Vec::new(),
            unread: Vec::new(),
            unknown: Vec::new(),
            options: Options::default(),
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            aligns: true,
            readings: Arc::default(),
        };
        let mut refused = None;
        for path in paths {
            let path = path.as_ref();
            let added = if path.is_dir() {
                inputs.add_folder(path)
            } else {
                inputs.add_file(path)
            };
            let Err(error) = added else { continue };
            let found = match &error {
                OpenError::Unknown { found, .. } => found.clone(),
                OpenError::NothingKnown { files, .. } => {
                    format!("a folder of {files} files, none of which has a known format")
                }
                _ => return Err(error),
            };
            inputs.unknown.push((path.to_owned(), found));
            refused.get_or_insert(error);
        }
        inputs.put_tables_beside_traces();
        match refused {
            Some(error) if inputs.recordings.is_empty() => Err(error),
            _ => Ok(inputs),
        }
    }

    /// Makes tables of kernels parts of the trace events in their folder, if there is one such file.
    fn put_tables_beside_traces(&mut self) {
        let folder =
            |recording: &Recording| recording.sources[0].name().parent().map(Path::to_owned);
        let (tables, others) = std::mem::take(&mut self.recordings)
            .into_iter()
            .partition(|recording| recording.format == InputFormat::AscendKernels);
        self.recordings = others;
        let tables: Vec<Recording> = tables;
        for table in tables {
            let is_beside = |recording: &&mut Recording| {
                recording.format == InputFormat::ChromeTrace && folder(recording) == folder(&table)
            };
            let mut beside = self.recordings.iter_mut().filter(is_beside);
            match (beside.next(), beside.next()) {
                (Some(trace), None) => trace.sources.extend(table.sources),
                _ => self.recordings.push(table),
            }
        }
    }

    fn add_file(&mut self, path: &Path) -> Result<(), OpenError> {
        let source = open(path)?;
        match recognise(path, &source)? {
            Ok(format) => {
                self.add(format, source);
                Ok(())
            }
            Err(found) => Err(OpenError::Unknown {
                path: path.to_owned(),
                found,
            }),
        }
    }

    /// Whether each file that was named has a known format.
    pub fn are_known(&self) -> bool {
        self.unknown.is_empty()
    }

    /// How captures are passed on.
    pub fn with_options(self, options: Options) -> Inputs {
        Inputs { options, ..self }
    }

    /// How they are passed on.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// How many recordings are read at the same time, at most; the number of processors if it is not set. Memory for sorting
    /// is divided among them. With more than one, the steps of each have threads of their own. The stream is the same with any
    /// number.
    pub fn with_jobs(self, jobs: usize) -> Inputs {
        Inputs { jobs, ..self }
    }

    /// Whether the steps of a recording have threads of their own.
    pub(crate) fn has_threads(&self) -> bool {
        self.jobs > 1
    }

    /// Whether the clocks of ranks are aligned by the collective operations that they share; they are if this is not set.
    pub fn with_alignment(self, aligns: bool) -> Inputs {
        Inputs { aligns, ..self }
    }

    /// The recordings, in the order of the stream.
    pub fn recordings(&self) -> &[Recording] {
        &self.recordings
    }

    /// How much of the inputs has been read.
    pub fn progress(&self) -> ReadProgress {
        let sources = self.recordings.iter().flat_map(Recording::sources);
        let (lengths, files): (Vec<u64>, Vec<_>) = sources
            .map(|source| (source.length(), source.progress()))
            .unzip();
        ReadProgress {
            total: lengths.iter().sum(),
            files,
            readings: Arc::clone(&self.readings),
        }
    }

    /// All inputs are about to be read from their beginnings.
    pub(crate) fn begin_reading(&self) {
        for source in self.recordings.iter().flat_map(Recording::sources) {
            source.progress().store(0, Ordering::Relaxed);
        }
        self.readings.fetch_add(1, Ordering::Relaxed);
    }

    /// The recordings for which `wanted` is true, as inputs of their own.
    pub(crate) fn of_recordings(&self, wanted: impl Fn(&Recording) -> bool) -> Inputs {
        let recordings = self.recordings.iter().filter(|recording| wanted(recording));
        Inputs {
            recordings: recordings.cloned().collect(),
            unread: Vec::new(),
            unknown: Vec::new(),
            options: self.options.clone(),
            jobs: self.jobs,
            aligns: self.aligns,
            readings: Arc::clone(&self.readings),
        }
    }

    fn add_folder(&mut self, path: &Path) -> Result<(), OpenError> {
        let failed = |source| OpenError::Io {
            path: path.to_owned(),
            source,
        };
        let entries = fs::read_dir(path).map_err(failed)?;
        let entries: io::Result<Vec<_>> = entries.collect();
        let mut files: Vec<PathBuf> = entries
            .map_err(failed)?
            .into_iter()
            .map(|entry| entry.path())
            .collect();
        files.sort();
        let before = self.recordings.len();
        for file in &files {
            if !file.is_file() {
                let found = if file.is_dir() {
                    "a folder in a folder"
                } else {
                    "no file"
                };
                self.unread.push((file.clone(), found.to_owned()));
                continue;
            }
            let source = open(file)?;
            match recognise(file, &source)? {
                Ok(format) => self.add(format, source),
                Err(found) => self.unread.push((file.clone(), found)),
            }
        }
        self.drop_copies(before);
        if self.recordings.len() == before {
            return Err(OpenError::NothingKnown {
                path: path.to_owned(),
                files: files.len(),
            });
        }
        Ok(())
    }

    /// rocprof writes its records several times: of files from `before` on that have one name, the one with most of them is
    /// kept.
    fn drop_copies(&mut self, before: usize) {
        let stem = |recording: &Recording| recording.sources[0].name().with_extension("");
        for (whole, copies) in [
            (
                InputFormat::RocprofDatabase,
                &[InputFormat::RocprofEvents, InputFormat::RocprofTable][..],
            ),
            (InputFormat::RocprofEvents, &[InputFormat::RocprofTable]),
        ] {
            let added = self.recordings[before..].iter();
            let whole: Vec<PathBuf> = added
                .filter(|recording| recording.format == whole)
                .map(|recording| recording.sources[0].name().to_owned())
                .collect();
            let mut place = 0;
            self.recordings.retain(|recording| {
                place += 1;
                if place <= before || !copies.contains(&recording.format) {
                    return true;
                }
                let same = |name: &&PathBuf| name.with_extension("") == stem(recording);
                let Some(name) = whole.iter().find(same) else {
                    return true;
                };
                let found = format!("the same records as {}", name.display());
                let path = recording.sources[0].name().to_owned();
                self.unread.push((path, found));
                false
            });
        }
    }

    fn add(&mut self, format: InputFormat, source: InputFile) {
        let folder = |source: &InputFile| source.name().parent().map(Path::to_owned);
        let belongs = |recording: &&mut Recording| {
            recording.format == format
                && format.is_in_parts()
                // All captures of a command line are of one machine.
                && (format == InputFormat::Capture
                    || folder(&recording.sources[0]) == folder(&source))
        };
        match self.recordings.iter_mut().find(belongs) {
            Some(recording) => recording.sources.push(source),
            None => self.recordings.push(Recording {
                format,
                sources: vec![source],
            }),
        }
    }
}

impl Producer for Inputs {
    type Outcome = Report;

    fn produce(self, consumer: &mut dyn Consumer) -> io::Result<Report> {
        (&self).produce(consumer)
    }
}

/// Inputs can be read several times.
impl Producer for &Inputs {
    type Outcome = Report;

    fn produce(self, consumer: &mut dyn Consumer) -> io::Result<Report> {
        let mut report = Report::default();
        self.begin_reading();
        for recording in &self.recordings {
            for (place, source) in recording.sources.iter().enumerate() {
                let format = recording.format_of(place);
                let file = (source.name().to_owned(), format, source.length());
                report.files.push(file);
            }
        }
        for (path, found) in &self.unread {
            report.not_read(path.clone(), found.clone());
        }
        for (path, found) in &self.unknown {
            report.finding(path, None, found.clone(), supported());
        }
        let jobs = self.jobs.clamp(1, self.recordings.len().max(1));
        let allowance = Allowance {
            memory: SORTING / jobs,
            has_threads: self.has_threads(),
        };
        let (joined, reports) = parallel::pass_on(
            &self.recordings,
            Joined::new(consumer).aligning(self.aligns),
            jobs,
            |recording, consumer, report| {
                recording.produce((&self.options, allowance), consumer, report)?;
                for source in &recording.sources {
                    source.progress().store(source.length(), Ordering::Relaxed);
                }
                Ok(())
            },
        )?;
        for one in reports {
            report.append(one);
        }
        let finished = joined.finish_all()?;
        report.counts = finished.counts;
        for (recording, alignment) in finished.aligned {
            if let Some(recording) = self.recordings.get(recording as usize) {
                report.aligned.push(Aligned {
                    file: recording.sources[0].name().to_owned(),
                    moved: alignment.moved,
                    error: Nanos(alignment.error),
                    operations: alignment.operations as u64,
                });
            }
        }
        for recording in finished.without_common_clock {
            if let Some(recording) = self.recordings.get(recording as usize) {
                let reason = "file that has no clock in common with the first one: its times are shown as they are, and events of the two are not to be compared by time";
                report.remark(recording.sources[0].name(), reason, None);
            }
        }
        Ok(report)
    }
}

fn open(path: &Path) -> Result<InputFile, OpenError> {
    InputFile::open(path).map_err(|source| OpenError::Io {
        path: path.to_owned(),
        source,
    })
}

/// The format of a file, or a description of its content.
fn recognise(path: &Path, source: &InputFile) -> Result<Result<InputFormat, String>, OpenError> {
    match InputFormat::recognise(source.head()) {
        #[cfg(feature = "sqlite")]
        Some(format) if format.is_database() => {
            super::databases::recognise(source).map_err(|source| OpenError::Io {
                path: path.to_owned(),
                source,
            })
        }
        Some(InputFormat::ChromeTrace) if proton_tree::is_file(source.head()) => {
            Ok(Err(proton_tree::NO_TIMELINE.into()))
        }
        Some(InputFormat::ChromeTrace) => {
            let has_events = chrome::has_events(source);
            // The look at the beginning is no reading.
            source.progress().store(0, Ordering::Relaxed);
            match has_events {
                Ok(true) => Ok(Ok(InputFormat::ChromeTrace)),
                Ok(false) => Ok(Err(
                    "JSON without trace events (objects with `ph`, or an array `traceEvents`)"
                        .into(),
                )),
                Err(source) => Err(OpenError::Io {
                    path: path.to_owned(),
                    source,
                }),
            }
        }
        Some(InputFormat::NsightArrow) if nsys::is_arrow_table(path) => {
            Ok(Ok(InputFormat::NsightArrowTable))
        }
        Some(format) => Ok(Ok(format)),
        None if nsys::is_arrow_stream(source.head()) && nsys::is_arrow_table(path) => {
            Ok(Ok(InputFormat::NsightArrowTable))
        }
        None if source.head().starts_with(b"PAR1") && nsys::is_parquet_table(path) => {
            Ok(Ok(InputFormat::NsightParquet))
        }
        None => Ok(Err(format::describe(source.head()))),
    }
}

#[cfg(feature = "sqlite")]
use super::databases::read as databases;

/// Databases cannot be read.
#[cfg(not(feature = "sqlite"))]
fn databases(
    _: InputFormat,
    sources: &[InputFile],
    _: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    for source in sources {
        let expected = "another format: this gputrail was built without the feature `sqlite`";
        report.finding(source.name(), None, "an SQLite database", expected);
    }
    consumer.begin(&TraceHeader::default())?;
    consumer.finish()
}

fn captures(
    sources: &[InputFile],
    options: &Options,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let files: io::Result<Vec<_>> = sources.iter().map(InputFile::local_file).collect();
    let files = files?;
    let mut readers = Vec::new();
    for (source, file) in sources.iter().zip(&files) {
        match Reader::open(&file.path()) {
            Ok(reader) => readers.push(reader),
            Err(error) => report.finding(source.name(), None, error.to_string(), "a capture"),
        }
    }
    let outcome = Captures::new(&readers, options).produce(consumer)?;
    for (path, finding) in &outcome.findings {
        // A capture that was unpacked has another path than its file.
        let place = files.iter().position(|file| *file.path() == **path);
        let name = place.map_or(&**path, |place| sources[place].name());
        report.finding(
            name,
            Some(finding.offset),
            finding.what.clone(),
            "records of a capture",
        );
    }
    let left_out = outcome.left_out_counter_values;
    if let (Some(first), 1..) = (sources.first(), left_out) {
        let reason = "value of a counter that is not shown over time: too many, or their dispatch or span is not complete";
        report.unrepresented_many(first.name(), reason, left_out);
    }
    report.captures = Some(outcome);
    Ok(())
}

fn perfetto(
    source: &InputFile,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let replayed = TraceReplay::new(source.reader()?).produce(consumer)?;
    let findings = &replayed.outcome.findings;
    report.further_findings += findings.unlisted();
    for finding in findings.list() {
        report.finding(
            source.name(),
            Some(finding.position.offset),
            finding.what.clone(),
            "a Perfetto trace",
        );
    }
    for left_out in replayed.left_out {
        let first = left_out.first.iter().map(|position| position.offset);
        report.unrepresented_at(source.name(), left_out.reason, left_out.count, first);
    }
    for late in replayed.late {
        let first = late.first.iter().map(|position| position.offset);
        report.remarks_at(source.name(), late.reason, late.count, first);
    }
    Ok(())
}
