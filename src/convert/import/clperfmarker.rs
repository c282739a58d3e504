//! Files of CLPerfMarker, as AMD's APP Profiler and `gputrail record --clperfmarker` write them: behind the first line, for
//! each thread its id, the number of its lines, and those lines in the order of time.
//!
//! ```text
//! =====Perfmarker Output=====
//! 4711
//! 2
//! clBeginPerfMarker   NAME   TIME   GROUP
//! clEndPerfMarker     TIME
//! ```
//!
//! Each line is passed on as it is read. Markers nest on a track of their thread for each group; the group is that of the
//! outermost marker.

use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::path::Path;

use super::{InputFile, Report};
use gputrail_record::{CorrelationId, Nanos, ProcessId, ThreadId};
use gputrail_trace::model::{
    Consumer, Parent, Process, ProcessIndex, Slice, Stream, TraceHeader, Track, TrackIndex,
    TrackKind, category,
};

/// The first line.
const FIRST_LINE: &[u8] = b"=====Perfmarker Output=====";
/// A space in a name.
const SPACE: &str = "&nbsp;";
/// The group of markers that name none.
const DEFAULT_GROUP: &str = "Default";
/// Maximum length of a line.
const MAX_LINE: u64 = 1 << 20;
/// Maximum number of tracks.
const MAX_TRACKS: usize = 1 << 14;
/// Maximum depth of markers in markers.
const MAX_DEPTH: usize = 1 << 16;
/// The beginning of lines that begin and of lines that end a marker.
const BEGIN: &str = "clBeginPerfMarker";
const END: &str = "clEndPerfMarker";

/// Whether a file begins as these files do.
pub(super) fn is_file(head: &[u8]) -> bool {
    head.starts_with(FIRST_LINE)
}

/// A line of the file, parsed.
#[derive(Debug, PartialEq)]
enum MarkerLine<'a> {
    /// The id of a thread, or a number of lines.
    Number(u64),
    Begin(&'a str, u64, &'a str),
    End(u64),
}

fn parse(line: &str) -> Option<MarkerLine<'_>> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    Some(match words[..] {
        // A name may be empty.
        ["clBeginPerfMarker", time, group] if time.parse::<u64>().is_ok() => {
            MarkerLine::Begin("", time.parse().ok()?, group)
        }
        ["clBeginPerfMarker", name, time, group] => {
            MarkerLine::Begin(name, time.parse().ok()?, group)
        }
        ["clBeginPerfMarker", name, time] => {
            MarkerLine::Begin(name, time.parse().ok()?, DEFAULT_GROUP)
        }
        ["clEndPerfMarker", time] | ["clEndPerfMarkerEx", time, ..] => {
            MarkerLine::End(time.parse().ok()?)
        }
        [number] => MarkerLine::Number(number.parse().ok()?),
        _ => return None,
    })
}

/// The thread whose lines are being read.
struct MarkerThread {
    id: ThreadId,
    /// Its track; `None` for a thread beyond the maximum number of tracks, whose markers are counted.
    track: Option<TrackIndex>,
    /// Lines that are to come; `None` before their number.
    lines: Option<u64>,
    groups: HashMap<Box<str>, TrackIndex>,
    /// The track of the group of the outermost open marker.
    current: Option<TrackIndex>,
    /// Whether each open marker was passed on, outermost first.
    open: Vec<bool>,
    /// Number of open markers that were passed on.
    passed_on: usize,
    /// Number of open markers beyond the maximum depth.
    too_deep: u64,
    time: u64,
}

impl MarkerThread {
    /// A line of the thread has been read.
    fn count_line(&mut self) {
        self.lines = self.lines.map(|lines| lines.saturating_sub(1));
    }

    /// A marker begins that is not passed on.
    fn skip_begin(&mut self) {
        if self.open.len() < MAX_DEPTH {
            self.open.push(false)
        } else {
            self.too_deep += 1
        }
    }
}

struct MarkerImport<'a> {
    file: &'a Path,
    stream: Stream<'a>,
    report: &'a mut Report,
    thread: Option<MarkerThread>,
    has_process: bool,
    tracks: usize,
}

/// Passes the markers of a file to `consumer`.
pub(super) fn read(
    source: &InputFile,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut reading = MarkerImport {
        file: source.name(),
        stream: Stream::new(consumer),
        report,
        thread: None,
        has_process: false,
        tracks: 0,
    };
    reading.stream.consumer.begin(&TraceHeader::default())?;
    let (mut reader, mut offset, mut bytes) = (source.reader()?, 0, Vec::new());
    loop {
        bytes.clear();
        let length = match read_line(&mut reader, &mut bytes) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) => {
                let found = error.to_string();
                reading
                    .report
                    .finding(reading.file, Some(offset), found, "a readable file");
                break;
            }
        };
        reading.line(&bytes, offset)?;
        offset += length;
    }
    if let Some(MarkerThread { lines, .. }) = &reading.thread
        && *lines != Some(0)
    {
        let expected = "the lines of a thread, as many as it announces";
        let found = "the end of the file";
        reading
            .report
            .finding(reading.file, Some(offset), found, expected);
    }
    reading.stream.consumer.finish()
}

/// Puts the next line, or as much of it as is read, into `bytes`, and returns its length.
fn read_line(reader: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<u64> {
    let mut length = reader.take(MAX_LINE).read_until(b'\n', bytes)? as u64;
    let mut is_whole = length < MAX_LINE || bytes.ends_with(b"\n");
    while !is_whole {
        let rest = reader.fill_buf()?;
        let end = rest.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(rest.len(), |end| end + 1);
        is_whole = end.is_some() || rest.is_empty();
        reader.consume(count);
        length += count as u64;
    }
    Ok(length)
}

impl MarkerImport<'_> {
    fn line(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if offset == 0 && is_file(bytes) || bytes.trim_ascii().is_empty() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(bytes);
        let line = if bytes.len() as u64 >= MAX_LINE {
            None
        } else {
            parse(&text)
        };
        let is_in_lines = |thread: &MarkerThread| thread.lines.is_some_and(|lines| lines > 0);
        match (line, &mut self.thread) {
            (Some(MarkerLine::Number(count)), Some(thread)) if thread.lines.is_none() => {
                thread.lines = Some(count);
                Ok(())
            }
            (Some(MarkerLine::Number(id)), thread) if !thread.as_ref().is_some_and(is_in_lines) => {
                self.thread(id)
            }
            (Some(MarkerLine::Begin(name, time, group)), Some(thread)) if is_in_lines(thread) => {
                self.begin(name, time, group, offset)
            }
            (Some(MarkerLine::End(time)), Some(thread)) if is_in_lines(thread) => {
                thread.count_line();
                self.end_marker(Some(time), offset)
            }
            (_, thread) => {
                let expected = match thread {
                    Some(thread) if thread.lines.is_none() => "the number of lines of a thread",
                    Some(thread) if is_in_lines(thread) => {
                        "clBeginPerfMarker NAME TIME GROUP or clEndPerfMarker TIME"
                    }
                    _ => "the id of a thread",
                };
                let found: String = text.trim_end().chars().take(60).collect();
                self.report
                    .finding(self.file, Some(offset), format!("{found:?}"), expected);
                match thread {
                    Some(thread) if is_in_lines(thread) => {
                        thread.count_line();
                        // Markers nest: the ends of those around a damaged one are to be theirs.
                        match found.trim_start() {
                            found if found.starts_with(BEGIN) => thread.skip_begin(),
                            found if found.starts_with(END) => {
                                return self.end_marker(None, offset);
                            }
                            _ => {}
                        }
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// The lines of another thread follow.
    fn thread(&mut self, id: u64) -> io::Result<()> {
        let id = ThreadId(id as u32);
        let process = ProcessIndex(0);
        if !self.has_process {
            self.has_process = true;
            // The main thread has the lowest id, which is that of the process.
            self.stream.consumer.process(
                process,
                &Process {
                    pid: ProcessId(id.0),
                    name: "",
                    rank: "",
                    command: &[],
                    order: None,
                },
            )?;
        }
        let track = if self.tracks < MAX_TRACKS {
            Some(self.stream.new_track(&Track {
                parent: Parent::Process(process),
                name: "",
                kind: TrackKind::Thread(process, id),
                order: None,
            })?)
        } else {
            None
        };
        self.tracks += usize::from(track.is_some());
        self.thread = Some(MarkerThread {
            id,
            track,
            lines: None,
            groups: HashMap::new(),
            current: track,
            open: Vec::new(),
            passed_on: 0,
            too_deep: 0,
            time: 0,
        });
        Ok(())
    }

    fn begin(&mut self, name: &str, time: u64, group: &str, offset: u64) -> io::Result<()> {
        let Some(thread) = &mut self.thread else {
            return Ok(());
        };
        thread.count_line();
        if thread.passed_on == 0 && thread.track.is_some() {
            thread.current = match thread.groups.get(group) {
                Some(track) => Some(*track),
                None if self.tracks >= MAX_TRACKS => {
                    let first = thread.groups.values().next();
                    first.copied().or(thread.track)
                }
                None => {
                    let of_group = match group {
                        DEFAULT_GROUP => String::new(),
                        group => format!(": {}", group.replace(SPACE, " ")),
                    };
                    self.tracks += 1;
                    let track = self.stream.new_track(&Track {
                        parent: thread.track.map_or(Parent::Trace, Parent::Track),
                        name: &format!("markers: CLPerfMarker{of_group}"),
                        kind: TrackKind::ThreadRanges(ProcessIndex(0), thread.id),
                        order: None,
                    })?;
                    thread.groups.insert(group.into(), track);
                    Some(track)
                }
            };
        }
        let (track, reason) = match thread.current {
            None => (None, "markers of threads beyond the first 16,384 tracks"),
            Some(_) if thread.open.len() >= MAX_DEPTH => (None, "markers nested too deeply"),
            track => (track, ""),
        };
        let Some(track) = track else {
            thread.skip_begin();
            self.report.unrepresented(self.file, reason, Some(offset));
            return Ok(());
        };
        thread.open.push(true);
        thread.passed_on += 1;
        thread.time = time.max(thread.time);
        self.stream.consumer.slice(&Slice {
            track,
            name: &name.replace(SPACE, " "),
            category: category::MARKER,
            start: Nanos(thread.time),
            end: None,
            open: true,
            correlation: CorrelationId::NONE,
            arguments: &[],
            flows: &[],
        })
    }

    /// The innermost marker ends. Without a time, which is damaged, it ends with the latest time of its thread.
    fn end_marker(&mut self, time: Option<u64>, offset: u64) -> io::Result<()> {
        let Some(thread) = &mut self.thread else {
            return Ok(());
        };
        if let Some(too_deep) = thread.too_deep.checked_sub(1) {
            thread.too_deep = too_deep;
            return Ok(());
        }
        let Some(was_passed_on) = thread.open.pop() else {
            let reason = "ends of markers without a begin";
            self.report.unrepresented(self.file, reason, Some(offset));
            return Ok(());
        };
        thread.time = time.unwrap_or(0).max(thread.time);
        thread.passed_on -= usize::from(was_passed_on);
        match thread.current.filter(|_| was_passed_on) {
            Some(track) => self.stream.consumer.end(track, Nanos(thread.time)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Inputs;
    use super::*;
    use gputrail_analysis::summary::Summary;
    use gputrail_trace::model::Producer;

    fn read(text: &str) -> (Report, Vec<(String, u64, u64)>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.amdtperfmarker");
        std::fs::write(&path, text).unwrap();
        let mut summary = Summary::default();
        let report = Inputs::open(&[path])
            .unwrap()
            .produce(&mut summary)
            .unwrap();
        let ranges = summary.ranges().into_iter();
        let ranges = ranges.map(|one| (one.name, one.times.total, one.times.count));
        (report, ranges.collect())
    }

    #[test]
    fn markers_nest_and_spaces_come_back() {
        let (report, ranges) = read(
            "=====Perfmarker Output=====\n7\n5\n\
             clBeginPerfMarker   load&nbsp;it      100      my&nbsp;group\n\
             clBeginPerfMarker   inner   110   ignored\nclEndPerfMarker  130\n\
             clEndPerfMarkerEx   200  load&nbsp;it  Default\nclBeginPerfMarker  300  Default\n\
             8\n0\n",
        );
        assert_eq!((report.findings.len(), report.unrepresented.len()), (0, 0));
        let expected = [("load it", 100, 1), ("inner", 20, 1), ("", 0, 0)];
        let expected = expected.map(|(name, total, count)| (name.to_owned(), total, count));
        assert_eq!(ranges, expected);
        assert_eq!(report.counts.slices, 3);
    }

    #[test]
    fn damage_is_named_with_its_place_and_the_rest_is_read() {
        let (report, ranges) = read(
            "=====Perfmarker Output=====\n7\n5\nclEndPerfMarker 5\nclBeginPerfMarker a x y\n\
             clBeginPerfMarker a 10 Default\nclEndPerfMarker 12\n",
        );
        assert_eq!(ranges, [("a".to_owned(), 2, 1)]);
        let findings: Vec<String> = report.findings.iter().map(|one| one.to_string()).collect();
        assert!(
            findings[0].contains("at byte 50: found \"clBeginPerfMarker a x y\", expected clBegin"),
            "{findings:?}"
        );
        assert!(
            findings[1].contains("found the end of the file"),
            "{findings:?}"
        );
        assert_eq!(
            report.unrepresented[0].reason,
            "ends of markers without a begin"
        );
    }

    #[test]
    fn a_damaged_begin_takes_its_own_end_with_it() {
        let (report, ranges) = read(
            "=====Perfmarker Output=====\n7\n6\nclBeginPerfMarker outer 10 Default\n\
             clBeginPerfMarker damaged x y\nclEndPerfMarker 20\nclBeginPerfMarker inner 30 Default\n\
             clEndPerfMarker x\nclEndPerfMarker 50\n",
        );
        let expected = [("outer", 40, 1), ("inner", 0, 1)];
        let expected = expected.map(|(name, total, count)| (name.to_owned(), total, count));
        assert_eq!(ranges, expected);
        assert_eq!(report.findings.len(), 2);
        assert_eq!(report.unrepresented.len(), 0);
    }

    #[test]
    fn ends_of_markers_that_are_nested_too_deeply_end_none_around_them() {
        let begins = "clBeginPerfMarker a 10 Default\n".repeat(MAX_DEPTH + 3);
        let ends = "clEndPerfMarker 10\n".repeat(MAX_DEPTH + 2);
        let lines = 2 * (MAX_DEPTH + 3);
        let text =
            format!("=====Perfmarker Output=====\n7\n{lines}\n{begins}{ends}clEndPerfMarker 90\n");
        /// The number of begins, the number of ends, and the time of the last one.
        #[derive(Default)]
        struct Ends(usize, usize, u64);
        impl Consumer for Ends {
            gputrail_trace::leave_out!(
                clocks attributes agents process track queue counters call instant work value counter_values samples
                stack stack_samples loss note
            );

            fn slice(&mut self, _: &Slice<'_>) -> io::Result<()> {
                self.0 += 1;
                Ok(())
            }

            fn end(&mut self, _: TrackIndex, end: Nanos) -> io::Result<()> {
                (self.1, self.2) = (self.1 + 1, end.0);
                Ok(())
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep.clperfmarker");
        std::fs::write(&path, text).unwrap();
        let mut ends = Ends::default();
        let report = Inputs::open(&[path]).unwrap().produce(&mut ends).unwrap();
        assert_eq!((ends.0, ends.1, ends.2), (MAX_DEPTH, MAX_DEPTH, 90));
        assert_eq!(report.unrepresented.len(), 1);
        assert_eq!(report.unrepresented[0].count, 3);
    }

    #[test]
    fn a_line_that_is_too_long_is_one_finding() {
        let long = "x".repeat(3 << 20);
        let (report, ranges) = read(&format!(
            "=====Perfmarker Output=====\n7\n4\nclBeginPerfMarker a 10 Default\n\
             clBeginPerfMarker {long} 11 Default\nclEndPerfMarker 12\nclEndPerfMarker 14\n",
        ));
        assert_eq!(ranges, [("a".to_owned(), 4, 1)]);
        assert_eq!(report.findings.len(), 1);
    }

    #[test]
    fn markers_of_too_many_threads_are_counted() {
        let threads = (0..MAX_TRACKS + 5).map(|id| format!("{id}\n0\n"));
        let threads: String = threads.collect();
        let (report, ranges) = read(&format!(
            "=====Perfmarker Output=====\n{threads}7\n2\nclBeginPerfMarker a 10 Default\nclEndPerfMarker 12\n",
        ));
        assert_eq!(ranges, []);
        assert_eq!(report.unrepresented[0].count, 1);
    }
}
