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

use super::{Report, Source};
use crate::record::{CorrelationId, Nanos, ProcessId, ThreadId};
use crate::trace::model::{
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
const MAX_DEPTH: u32 = 1 << 16;

/// Whether a file begins as these files do.
pub(super) fn is_file(head: &[u8]) -> bool {
    head.starts_with(FIRST_LINE)
}

/// What a line says.
#[derive(Debug, PartialEq)]
enum Line<'a> {
    /// The id of a thread, or a number of lines.
    Number(u64),
    Begin(&'a str, u64, &'a str),
    End(u64),
}

fn parse(line: &str) -> Option<Line<'_>> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    Some(match words[..] {
        // A name may be empty.
        ["clBeginPerfMarker", time, group] if time.parse::<u64>().is_ok() => {
            Line::Begin("", time.parse().ok()?, group)
        }
        ["clBeginPerfMarker", name, time, group] => Line::Begin(name, time.parse().ok()?, group),
        ["clBeginPerfMarker", name, time] => Line::Begin(name, time.parse().ok()?, DEFAULT_GROUP),
        ["clEndPerfMarker", time] | ["clEndPerfMarkerEx", time, ..] => {
            Line::End(time.parse().ok()?)
        }
        [number] => Line::Number(number.parse().ok()?),
        _ => return None,
    })
}

/// The thread whose lines are being read.
struct Thread {
    id: ThreadId,
    track: TrackIndex,
    /// Lines that are to come; `None` before their number.
    lines: Option<u64>,
    groups: HashMap<Box<str>, TrackIndex>,
    /// The track of the group of the outermost open marker.
    current: TrackIndex,
    depth: u32,
    time: u64,
}

struct Reading<'a> {
    file: &'a Path,
    stream: Stream<'a>,
    report: &'a mut Report,
    thread: Option<Thread>,
    has_process: bool,
    tracks: usize,
}

/// Passes the markers of a file to `consumer`.
pub(super) fn read(
    source: &Source,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut reading = Reading {
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
        let length = match reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes) {
            Ok(0) => break,
            Ok(length) => length as u64,
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
    if let Some(Thread { lines, .. }) = &reading.thread
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

impl Reading<'_> {
    fn line(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if offset == 0 && is_file(bytes) || bytes.trim_ascii().is_empty() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(bytes);
        let line = parse(&text);
        let is_in_lines = |thread: &Thread| thread.lines.is_some_and(|lines| lines > 0);
        match (line, &mut self.thread) {
            (Some(Line::Number(count)), Some(thread)) if thread.lines.is_none() => {
                thread.lines = Some(count);
                Ok(())
            }
            (Some(Line::Number(id)), thread) if !thread.as_ref().is_some_and(is_in_lines) => {
                self.thread(id)
            }
            (Some(Line::Begin(name, time, group)), Some(thread)) if is_in_lines(thread) => {
                self.begin(name, time, group, offset)
            }
            (Some(Line::End(time)), Some(thread)) if is_in_lines(thread) => self.end(time, offset),
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
                if let Some(Thread {
                    lines: Some(lines), ..
                }) = thread
                {
                    *lines = lines.saturating_sub(1);
                }
                Ok(())
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
        let track = self.stream.new_track(&Track {
            parent: Parent::Process(process),
            name: "",
            kind: TrackKind::Thread(process, id),
            order: None,
        })?;
        self.tracks += 1;
        self.thread = Some(Thread {
            id,
            track,
            lines: None,
            groups: HashMap::new(),
            current: track,
            depth: 0,
            time: 0,
        });
        Ok(())
    }

    fn begin(&mut self, name: &str, time: u64, group: &str, offset: u64) -> io::Result<()> {
        let Some(thread) = &mut self.thread else {
            return Ok(());
        };
        thread.lines = thread.lines.map(|lines| lines - 1);
        if thread.depth >= MAX_DEPTH {
            let reason = "markers nested too deeply";
            self.report.unrepresented(self.file, reason, Some(offset));
            return Ok(());
        }
        if thread.depth == 0 {
            thread.current = match thread.groups.get(group) {
                Some(track) => *track,
                None if self.tracks >= MAX_TRACKS => {
                    let first = thread.groups.values().next();
                    first.copied().unwrap_or(thread.track)
                }
                None => {
                    let of_group = match group {
                        DEFAULT_GROUP => String::new(),
                        group => format!(": {}", group.replace(SPACE, " ")),
                    };
                    self.tracks += 1;
                    let track = self.stream.new_track(&Track {
                        parent: Parent::Track(thread.track),
                        name: &format!("markers: CLPerfMarker{of_group}"),
                        kind: TrackKind::ThreadRanges(ProcessIndex(0), thread.id),
                        order: None,
                    })?;
                    thread.groups.insert(group.into(), track);
                    track
                }
            };
        }
        thread.depth += 1;
        thread.time = time.max(thread.time);
        self.stream.consumer.slice(&Slice {
            track: thread.current,
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

    fn end(&mut self, time: u64, offset: u64) -> io::Result<()> {
        let Some(thread) = &mut self.thread else {
            return Ok(());
        };
        thread.lines = thread.lines.map(|lines| lines - 1);
        let Some(depth) = thread.depth.checked_sub(1) else {
            let reason = "ends of markers without a begin";
            self.report.unrepresented(self.file, reason, Some(offset));
            return Ok(());
        };
        thread.depth = depth;
        thread.time = time.max(thread.time);
        self.stream.consumer.end(thread.current, Nanos(thread.time))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Inputs;
    use super::*;
    use crate::analysis::summary::Summary;
    use crate::trace::model::Producer;

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
}
