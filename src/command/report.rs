//! What a conversion reports of its inputs, in words.

use crate::failure::DAMAGED;
use crate::figures::{bytes, count, time};
use crate::messages::say;
use crate::output::STANDARD_OUTPUT;
use gputrail_convert::import::{Aligned, Report, Unrepresented};
use gputrail_record::{Nanos, printable};
use std::path::Path;

/// Lines of each list of findings.
const MAX_LINES: usize = 10;

/// Counts of what went in.
pub fn summary(report: &Report) -> String {
    let mut text = String::new();
    for (file, format, length) in report.files.iter().take(MAX_LINES) {
        let line = format!("{}: {format}, {}", file.display(), bytes(*length));
        text += &format!("{}\n", printable(&line));
    }
    if report.files.len() > MAX_LINES {
        let more = report.files.len() - MAX_LINES;
        text += &format!("and {}\n", count(more as u64, "more file"));
    }
    text += &counts(report);
    text += "\n";
    text += &remarks(report);
    text.truncate(text.trim_end().len());
    text
}

/// The numbers of events of each family.
pub fn counts(report: &Report) -> String {
    let counts = report.counts;
    let all = [
        (counts.calls, "call", ""),
        (counts.kernels, "kernel", ""),
        (counts.copies, "copy", ""),
        (counts.sets, "fill", ""),
        (counts.other_work, "other operation", ""),
        (counts.slices, "slice", ""),
        (counts.instants, "instant", ""),
        (counts.samples, "sample", ""),
        (counts.values, "counter value", ""),
        (report.arrows, "arrow end", ""),
        (report.loose_arrows, "arrow end", " without device work"),
    ];
    let parts = all.into_iter().filter(|(number, ..)| *number > 0);
    let parts: Vec<_> = parts
        .map(|(number, one, which)| count(number, one) + which)
        .collect();
    if parts.is_empty() {
        "no events".to_owned()
    } else {
        parts.join(", ")
    }
}

/// Lines about what was changed, left out and not read.
pub fn remarks(report: &Report) -> String {
    let list = |before: &str, list: &[Unrepresented]| {
        let lines = list.iter().take(MAX_LINES);
        let mut text: String = lines.map(|one| format!("{before}{one}\n")).collect();
        if list.len() > MAX_LINES {
            let more = list.len() - MAX_LINES;
            text += &format!("{before}{}\n", count(more as u64, "more kind"));
        }
        text
    };
    let mut text = aligned(report);
    text += &list("", &report.remarks);
    text += &list("not in the output: ", &report.unrepresented);
    for (path, found) in report.unread.iter().take(MAX_LINES) {
        let line = format!("not read: {} ({found})", path.display());
        text += &format!("{}\n", printable(&line));
    }
    let unread = report.unread.len() as u64 + report.further_unread;
    if unread > MAX_LINES as u64 {
        let more = count(unread - MAX_LINES as u64, "more file");
        text += &format!("not read: {more}\n");
    }
    text
}

/// A line about clocks that were aligned.
fn aligned(report: &Report) -> String {
    let list = &report.aligned;
    let Some(error) = list.iter().map(|one| one.error).max() else {
        return String::new();
    };
    let signed = |nanos: i64| {
        let sign = if nanos < 0 { "-" } else { "+" };
        format!("{sign}{}", time(Nanos(nanos.unsigned_abs())))
    };
    let moved = |one: &Aligned| one.moved;
    let least = list.iter().map(moved).min().unwrap_or(0);
    let most = list.iter().map(moved).max().unwrap_or(0);
    format!(
        "clocks of {} aligned with the first by collective operations: moved by {} to {}; half of the operations then end within {} of each other (--no-align leaves the clocks)\n",
        count(list.len() as u64, "file"),
        signed(least),
        signed(most),
        time(error)
    )
}

/// Says what was damaged; the result is the exit code.
pub fn problems(report: &Report) -> u8 {
    for finding in report.findings.iter().take(MAX_LINES) {
        say!("{finding}");
    }
    let more = report.findings.len().saturating_sub(MAX_LINES) as u64 + report.further_findings;
    if more > 0 {
        say!("and {more} more");
    }
    if report.is_sound() { 0 } else { DAMAGED }
}

/// The line that names a trace, and what opens it if it is a file.
pub fn trace_line(path: &Path, length: u64) -> String {
    if path == Path::new(STANDARD_OUTPUT) {
        return format!("trace: {STANDARD_OUTPUT} ({})", bytes(length));
    }
    let path = path.display();
    let text = format!(
        "trace: {path} ({}); `gputrail view {path}` opens it, or https://ui.perfetto.dev",
        bytes(length)
    );
    printable(&text).into_owned()
}
