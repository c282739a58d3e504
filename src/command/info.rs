//! `gputrail info`: prints the contents of a trace or a capture, and how complete it is.

use crate::cli::Info;
use crate::cli::contents::Contents;
use crate::failure::{DAMAGED, Failure};
use crate::figures::{bytes, count, grouped, time};
use crate::input::{Input, refuse_without_packets, unpacked};
use crate::lines::{Lines, span};
use crate::report::problems;
use crate::terminal::Style;
use crate::trace::TraceOrder;
use crate::{contents, stdout};
use anyhow::{Context, anyhow};
use gputrail_analysis::summary::Summary;
use gputrail_capture::{Metadata, Reader};
use gputrail_record::{AgentId, Link, Nanos, NoteKind};
use gputrail_trace::capture::Captures;
use gputrail_trace::model::{Note, Producer};
use gputrail_trace::perfetto::reader;
use std::fmt::Write;
use std::path::Path;

/// Runs the command; the result is the exit code.
pub fn run(arguments: &Info) -> Result<u8, Failure> {
    let path = &arguments.file;
    let length = || -> anyhow::Result<u64> {
        let cannot = || format!("cannot read {}", path.display());
        Ok(std::fs::metadata(path).with_context(cannot)?.len())
    };
    let (text, is_sound) = match Input::open(path)? {
        Input::Trace(file) => {
            let info = reader::info(unpacked(&file)?);
            refuse_without_packets(path, &info.outcome)?;
            let is_sound = info.outcome.findings.count() == 0;
            (trace(path, length()?, &info), is_sound)
        }
        Input::Capture(reader) => capture(path, length()?, &reader)?,
        Input::Foreign(inputs) => {
            let mut contents = contents::StreamContents::default();
            let report = inputs
                .produce(&mut contents)
                .map_err(|error| anyhow!(error))?;
            stdout::print(&contents.text(&report))?;
            return Ok(problems(&report));
        }
    };
    stdout::print_styled(&text, style)?;
    Ok(if is_sound { 0 } else { DAMAGED })
}

/// How a line stands out: the first names the file, and what is lost, missing or damaged is in lines of those names.
fn style(line: &str) -> Style {
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some("lost"), Some(what)) if what != "nothing" => Style::Loss,
        (Some("missing" | "damaged"), _) => Style::Loss,
        _ => stdout::heading(line),
    }
}

/// The number of samples, of dropped and of invalid ones, and how many samples one sample of the flame graph stands
/// for.
fn samples([samples, dropped, invalid]: [u64; 3], shown_one_of: u64) -> Option<String> {
    if [samples, dropped, invalid] == [0; 3] {
        return None;
    }
    let mut text = count(samples, "sample") + " of the program counter";
    let _ = match dropped {
        0 => write!(text, ", none dropped"),
        dropped => write!(text, ", {} dropped", grouped(dropped)),
    };
    if invalid > 0 {
        let _ = write!(text, ", {} invalid", grouped(invalid));
    }
    if shown_one_of > 1 {
        let _ = write!(text, "; the flame graph shows one of {shown_one_of}");
    }
    Some(text)
}

fn trace(path: &Path, length: u64, info: &reader::TraceContents) -> String {
    let outcome = &info.outcome;
    let by = match (&info.version, &info.writer[..]) {
        (Some(version), _) => format!("a trace by gputrail {version}"),
        (None, "") => "a Perfetto trace".to_owned(),
        (None, writer) => format!("a Perfetto trace by {writer}"),
    };
    let mut lines = Lines::title(path, &by);
    let packed = match (outcome.gzipped, outcome.groups) {
        (true, _) => format!(", gzipped, {} unpacked", bytes(outcome.bytes)),
        (false, 0) => String::new(),
        (false, groups) => format!(", {} compressed", count(groups, "group")),
    };
    lines.line(
        "size",
        format!(
            "{}{packed}; {} on {}",
            bytes(length),
            count(outcome.packets, "packet"),
            count(outcome.sequences, "sequence")
        ),
    );
    match info.span {
        Some((first, last)) => lines.line("time", span(first, last)),
        None => lines.line("time", "no events"),
    }
    if !info.host.is_empty() {
        lines.line("host", &info.host);
    }
    let processes = info.processes.iter().map(|process| {
        let name = if process.name.is_empty() {
            "process"
        } else {
            &process.name
        };
        format!(
            "{name} {}, {}",
            process.pid.0,
            count(process.threads, "thread")
        )
    });
    lines.list("processes", processes);
    let devices = info.devices.iter().map(|device| {
        let name = if device.name.is_empty() {
            "not described"
        } else {
            &device.name
        };
        format!(
            "{}: {name}, {}",
            device.title,
            count(device.work, "operation")
        )
    });
    lines.list("devices", devices);
    let links = info.devices.iter().flat_map(|device| {
        let links = device.links.iter();
        links.map(|(to, link)| {
            let peer = info
                .devices
                .iter()
                .find(|peer| !to.is_empty() && peer.address == *to);
            let to = peer.map_or(to, |peer| &peer.title);
            format!("{} to {to}: {link}", device.title)
        })
    });
    lines.list("links", links);
    lines.line(
        "holds",
        format!(
            "{}, {}, {}; on devices {} and {}",
            count(info.slices, "slice"),
            count(info.instants, "instant"),
            count(info.values, "counter value"),
            count(info.kernels, "kernel"),
            count(info.other_work, "other operation"),
        ),
    );
    if info.version.is_some() && info.kernels + info.other_work > 0 {
        lines.line(
            "arrows",
            "from calls to their work in Perfetto v58; v52 draws none",
        );
    }
    if let Some(text) = samples(
        [info.samples, info.dropped_samples, info.invalid_samples],
        info.samples_shown_one_of,
    ) {
        lines.line("samples", text);
    }
    lines.executed(info.executed_instructions);
    let clocks = info
        .clocks
        .iter()
        .map(|clock| format!("{}: {}", clock.name, count(clock.snapshots, "snapshot")));
    lines.list("clocks", clocks);
    lines.list("device clocks", &info.device_clocks);
    lines.line("lost", lost(info.lost, &info.missing));
    lines.list("missing", &info.missing);
    let others = info.open_slices - info.open_calls - info.open_ranges;
    let unfinished = [
        (info.open_calls, "call"),
        (info.open_ranges, "range"),
        (others, "slice"),
        (info.unfinished, "operation"),
    ];
    lines.line("unfinished", listed(&unfinished));
    lines.without_times(info.untimed, info.unrecorded);
    let notes = info.notes.iter().map(|(note, number)| match number {
        1 => note.clone(),
        number => format!("{} x {note}", grouped(*number)),
    });
    lines.list("notes", notes);
    let findings = &outcome.findings;
    lines.list("not readable", findings.list());
    if findings.unlisted() > 0 {
        lines.line("", format!("{} findings in all", grouped(findings.count())));
    }
    // Notes say which parts of captures could not be read when the trace was made.
    let is_unreadable = |note: &str| note.starts_with(Note::NOT_READABLE);
    let complete = findings.count() == 0
        && info.lost == 0
        && info.missing.is_empty()
        && !info.notes.keys().any(|note| is_unreadable(note));
    let end = RecordingEnd {
        early: &info.ended_early,
        causes: &info.ends,
        in_progress: &unfinished,
    };
    lines.line("complete", verdict(complete, &end));
    lines.text
}

/// The contents of a capture, and whether all of it could be read.
fn capture(path: &Path, length: u64, reader: &Reader) -> Result<(String, bool), Failure> {
    let mut summary = Summary::default();
    let captures = std::slice::from_ref(reader);
    let options = TraceOrder::options(Contents {
        arguments: true,
        ..Contents::default()
    });
    let report = Captures::new(captures, &options)
        .produce(&mut summary)
        .map_err(|error| anyhow!(error))?;
    let metadata = reader.metadata();
    let text = |id: fn(&gputrail_record::Process) -> gputrail_record::StringId| {
        metadata
            .process
            .as_ref()
            .map_or("", |process| metadata.string(id(process)))
    };
    let version = text(|process| process.version);
    let by = match version {
        "" => "a capture".to_owned(),
        version => format!("a capture by gputrail {version}"),
    };
    let mut lines = Lines::title(path, &by);
    lines.line(
        "size",
        format!(
            "{}, of which {} are records",
            bytes(length),
            bytes(reader.record_bytes())
        ),
    );
    match summary.span() {
        Some((first, last)) => lines.line("time", span(first, last)),
        None => lines.line("time", "no events"),
    }
    for (name, text) in [
        ("host", text(|process| process.host)),
        ("program", text(|process| process.command)),
        ("configuration", text(|process| process.configuration)),
    ] {
        if !text.is_empty() {
            lines.line(name, text);
        }
    }
    lines.line(
        "process",
        format!(
            "{}, {}",
            reader.header().process.0,
            count(metadata.threads.len() as u64, "thread")
        ),
    );
    let devices = summary.gpus();
    lines.list(
        "devices",
        devices
            .iter()
            .map(|gpu| format!("{}: {}", gpu.title, gpu.name)),
    );
    lines.list("links", links(metadata));
    lines.line(
        "holds",
        format!(
            "{}; on devices {} and {}",
            count(report.calls, "call"),
            count(report.kernels, "kernel"),
            count(report.work() - report.kernels, "other operation"),
        ),
    );
    let counts = [
        report.samples,
        report.dropped_samples,
        report.invalid_samples,
    ];
    if let Some(text) = samples(counts, 0) {
        lines.line("samples", text);
    }
    lines.executed(report.executed_instructions);
    if report.counter_values > 0 {
        let values = count(report.counter_values, "value");
        let invalid = grouped(report.invalid_counter_values);
        lines.line("counters", format!("{values}, {invalid} of them invalid"));
    }
    lines.list(
        "device clocks",
        report.clocks.iter().map(|(_, _, clock)| clock),
    );
    lines.line("lost", lost(report.lost, &report.missing));
    lines.list("missing", &report.missing);
    let ranges = summary.ranges().iter().map(|range| range.unfinished).sum();
    let unfinished = [
        (report.unfinished_calls, "call"),
        (ranges, "range"),
        (report.unfinished, "operation"),
    ];
    lines.line("unfinished", listed(&unfinished));
    lines.without_times(report.untimed, report.unrecorded);
    let notes = metadata.notes.iter();
    let notes = notes.filter(|note| note.what != NoteKind::MISSING);
    let notes = notes.map(|note| {
        let what = note.what.name().unwrap_or("note");
        match metadata.string(note.text) {
            "" => what.to_owned(),
            text => format!("{what}: {text}"),
        }
    });
    lines.list("notes", notes);
    lines.list(
        "not readable",
        report.findings.iter().map(|(_, finding)| finding),
    );
    let complete = report.findings.is_empty() && report.lost == 0 && report.missing.is_empty();
    let early = metadata.notes.iter();
    let early = early.filter(|note| note.what == NoteKind::ENDED_EARLY);
    let end = summary.span().map_or(Nanos(0), |(_, last)| last);
    let early: Vec<_> = early
        .map(|note| (end, metadata.string(note.text).to_owned()))
        .collect();
    let causes = metadata.notes.iter();
    let causes = causes.filter(|note| NoteKind::PROCESS_ENDS.contains(&note.what));
    let causes: Vec<_> = causes
        .map(|note| metadata.string(note.text).to_owned())
        .collect();
    let end = RecordingEnd {
        early: &early,
        causes: &causes,
        in_progress: &unfinished,
    };
    lines.line("complete", verdict(complete, &end));
    Ok((lines.text, report.findings.is_empty()))
}

/// The records that were dropped, apart from those of which `missing` says why.
fn lost(records: u64, missing: &[String]) -> String {
    match (records, missing) {
        (0, []) => "nothing".to_owned(),
        (0, _) => "see \"missing\"".to_owned(),
        (records, []) => format!("{} dropped for lack of memory", count(records, "record")),
        (records, _) => format!("{} dropped, see also \"missing\"", count(records, "record")),
    }
}

/// The numbers that are not 0, with their nouns.
fn listed(counts: &[(u64, &str)]) -> String {
    let some = counts.iter().filter(|(number, _)| *number > 0);
    let some: Vec<String> = some.map(|(number, one)| count(*number, one)).collect();
    if some.is_empty() {
        "nothing".to_owned()
    } else {
        some.join(", ")
    }
}

/// The end of the recordings in a file.
struct RecordingEnd<'a> {
    /// When recordings ended before their processes, and why.
    early: &'a [(Nanos, String)],
    /// How processes ended that did not end their recordings themselves.
    causes: &'a [String],
    /// The numbers of things that were in progress.
    in_progress: &'a [(u64, &'a str)],
}

fn verdict(complete: bool, end: &RecordingEnd<'_>) -> String {
    let in_progress: u64 = end.in_progress.iter().map(|(number, _)| number).sum();
    match (complete, end.early, end.causes) {
        (_, [(since, reason), ..], _) => {
            let since = time(*since);
            format!("no, from {since} after the machine was started on: {reason}")
        }
        (false, [], _) => "no: see above".to_owned(),
        (true, [], [cause, rest @ ..]) => {
            let others = match rest.len() as u64 {
                0 => String::new(),
                rest => format!(" (and {} that ended likewise)", count(rest, "process")),
            };
            let verb = if in_progress > 1 { "were" } else { "was" };
            let list = listed(end.in_progress);
            format!("up to the end of the process, {cause}{others}; {list} {verb} in progress")
        }
        (true, [], []) => "nothing is missing, as far as the file shows".to_owned(),
    }
}

/// The links of the agents of a capture, in words.
fn links(metadata: &Metadata) -> Vec<String> {
    let address = |id: AgentId| match metadata.agents.get(&id) {
        Some(agent) if agent.bus.is_some() => metadata.string(agent.bus).to_owned(),
        _ => format!("agent {id}"),
    };
    let mut agents: Vec<AgentId> = metadata.agents.keys().copied().collect();
    agents.sort_unstable();
    let links = agents.iter().flat_map(|agent| metadata.links(*agent));
    let in_words = |link: &Link| {
        let to = match link.peer {
            AgentId::NONE => "host".to_owned(),
            peer => address(peer),
        };
        let words = link.in_words(metadata.string(link.upstream));
        format!("{} to {to}: {words}", address(link.agent))
    };
    links.map(in_words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_killed_program_says_what_was_in_progress() {
        let killed = ["killed by signal 9 (SIGKILL)".to_owned()];
        let end = |in_progress| RecordingEnd {
            early: &[],
            causes: &killed,
            in_progress,
        };
        assert_eq!(
            verdict(true, &end(&[(1, "call"), (2, "range"), (0, "operation")])),
            "up to the end of the process, killed by signal 9 (SIGKILL); 1 call, 2 ranges were in progress"
        );
        assert!(verdict(true, &end(&[(0, "call")])).ends_with("; nothing was in progress"));
        assert!(verdict(true, &end(&[(1, "range")])).ends_with("; 1 range was in progress"));
        assert_eq!(verdict(false, &end(&[])), "no: see above");
    }
}
