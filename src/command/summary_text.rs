//! The summary at the end of a recording: what was recorded, what failed, and what took the time.

use crate::figures::{count, grouped, shortened_apart, time};
use crate::messages::say_styled;
use crate::report::trace_line;
use crate::terminal::Style;
use crate::trace::Made;
use gputrail_analysis::summary::{Distribution, FunctionSummary, GpuSummary, Summary};
use gputrail_collect::counting::CounterChoice;
use gputrail_interface::counting::CountingMode;
use gputrail_record::{Nanos, OperationGroup, printable};
use gputrail_trace::capture::Report;
use gputrail_trace::model::Work;
use std::collections::HashMap;
use std::fmt::Write;

/// Maximum number of lines of each list.
const MAX_LINES: usize = 5;

/// The titles of the tables.
const TITLES: [&str; 3] = [
    "kernels with most time",
    "calls with most time",
    "ranges with most time",
];

/// Facts about a trace that it does not contain.
#[derive(Default)]
pub struct TraceFacts<'a> {
    /// The reason why it may be empty.
    pub unseen: Option<&'a str>,
    /// Whether it is incomplete for a reason that has been printed.
    pub incomplete: bool,
    /// Whether threads waited for memory.
    pub lossless: bool,
    /// The counters that were asked for.
    pub counters: Option<&'a CounterChoice>,
}

/// Prints the summary of a trace.
pub fn print(made: &Made, known: &TraceFacts<'_>) {
    let report = &made.report;
    let records = report.calls + report.work() + report.marker_records + report.others;
    let mut text = match known.unseen {
        // Its counts end at the cut, and so would mislead.
        _ if made.cut => String::new(),
        Some(reason) if records == 0 => format!("nothing was recorded: {reason}\n"),
        None if records == 0 => "nothing was recorded\n".into(),
        _ => summary(&made.report, &made.summary, known),
    };
    if records == 0 {
        missing(&mut text, report);
    }
    let length = std::fs::metadata(&made.path).map_or(0, |data| data.len());
    text += &trace_line(&made.path, length);
    say_styled(&text, style);
}

/// How a line of the summary stands out.
fn style(line: &str) -> Style {
    if line.starts_with("LOST: ") || line.starts_with("MISSING: ") || line.ends_with(" failed:") {
        Style::Loss
    } else if TITLES.iter().any(|title| line.starts_with(title)) {
        Style::Heading
    } else {
        Style::Plain
    }
}

fn summary(report: &Report, summary: &Summary, known: &TraceFacts<'_>) -> String {
    let mut text = String::new();
    headline(&mut text, report, summary);
    losses(&mut text, report, known);
    off(&mut text, summary);
    failures(&mut text, summary);
    let (kernels, calls) = (kernels(summary), calls(summary));
    let all = |rows: &[TimesRow]| rows.iter().map(|(_, times)| times.total).sum();
    let [of_kernels, of_calls, of_ranges] = TITLES;
    let _ = table(&mut text, of_kernels, &kernels, all(&kernels));
    let _ = table(&mut text, of_calls, &calls, all(&calls));
    // Ranges nest: each one has its share of the whole recording.
    let length = summary.span();
    let length = length.map_or(0, |(first, last)| last.0.saturating_sub(first.0));
    let _ = table(&mut text, of_ranges, &ranges(summary), length);
    for gpu in summary.gpus() {
        device(&mut text, &gpu, summary);
    }
    let ranges = summary.ranges();
    let unfinished = ranges.iter().map(|range| range.unfinished).sum();
    remarks(&mut text, report, summary, unfinished);
    if let Some(choice) = known.counters {
        uncounted(&mut text, report, choice, Nanos(length));
    }
    for line in crate::advise::first_lines(summary) {
        let _ = writeln!(text, "{}", printable(&line));
    }
    text
}

fn headline(text: &mut String, report: &Report, summary: &Summary) {
    let mut parts = vec![count(report.calls, "call"), count(report.kernels, "kernel")];
    parts.push(count(report.copies, "copy"));
    if report.sets > 0 {
        parts.push(count(report.sets, "fill"));
    }
    if report.synchronizations > 0 {
        parts.push(count(report.synchronizations, "barrier"));
    }
    if report.markers > 0 {
        parts.push(count(report.markers, "marker"));
    }
    if report.others > 0 && report.calls + report.work() + report.marker_records == 0 {
        parts = vec![count(report.others, "other record")];
    }
    if report.processes > 1 {
        parts.push(count(report.processes.into(), "process"));
    }
    let _ = write!(text, "{}", parts.join(", "));
    if let Some((first, last)) = summary.span().filter(|(first, last)| first < last) {
        let _ = write!(text, " in {}", time(Nanos(last.0.saturating_sub(first.0))));
    }
    text.push('\n');
}

fn losses(text: &mut String, report: &Report, known: &TraceFacts<'_>) {
    missing(text, report);
    let _ = match report.lost.saturating_sub(report.lost_by_runtime) {
        // Lines before this one, or further down for unreadable parts, say what is missing.
        0 if known.incomplete
            || report.lost > 0
            || !(report.missing.is_empty() && report.findings.is_empty()) =>
        {
            Ok(())
        }
        0 => writeln!(text, "nothing was lost"),
        lost => writeln!(
            text,
            "LOST: {} dropped for want of memory ({})",
            count(lost, "record"),
            if known.lossless {
                "--buffers makes more; what runs in callbacks and signal handlers, and more than 1024 threads, cannot wait for it"
            } else {
                "--buffers makes more, --policy lossless waits for it"
            }
        ),
    };
}

/// What is missing for other reasons than a want of memory: each reason once.
fn missing(text: &mut String, report: &Report) {
    let mut reasons: Vec<(&str, u64)> = Vec::new();
    for reason in &report.missing {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, times)) => *times += 1,
            None => reasons.push((reason, 1)),
        }
    }
    for (reason, times) in reasons {
        let _ = match times {
            1 => writeln!(text, "MISSING: {}", printable(reason)),
            _ => writeln!(text, "MISSING: {} x {}", grouped(times), printable(reason)),
        };
    }
}

/// The time in which the recording was switched off.
fn off(text: &mut String, summary: &Summary) {
    let (spans, off) = summary.off();
    if spans > 0 {
        let _ = writeln!(
            text,
            "the recording was off for {}: {} on the tracks \"recording\"",
            time(off),
            count(spans as u64, "slice")
        );
    }
}

fn failures(text: &mut String, summary: &Summary) {
    let failures = summary.failures();
    let total = failures.iter().map(|failure| failure.count).sum();
    if total == 0 {
        return;
    }
    let _ = writeln!(text, "{} failed:", count(total, "call"));
    for failure in failures.iter().take(MAX_LINES) {
        let code = gputrail_interface::return_codes::text(failure.domain, failure.code);
        let _ = writeln!(
            text,
            "{:>12} x  {}  {code}",
            grouped(failure.count),
            printable(&failure.name)
        );
    }
    if failures.len() > MAX_LINES {
        let rest = failures[MAX_LINES..]
            .iter()
            .map(|failure| failure.count)
            .sum();
        let _ = writeln!(text, "{:>12} x  others", grouped(rest));
    }
}

/// A row of a table: a name, and the times.
type TimesRow = (String, Distribution);

fn kernels(summary: &Summary) -> Vec<TimesRow> {
    let kernels = summary.kernels().into_iter();
    let timed = kernels.filter(|kernel| kernel.times.count > 0);
    timed.map(|kernel| (kernel.name, kernel.times)).collect()
}

fn ranges(summary: &Summary) -> Vec<TimesRow> {
    let ranges = summary.ranges().into_iter();
    let ended = ranges.filter(|range| range.times.count > 0);
    series(ended.map(|range| (range.name, range.times)).collect())
}

/// Rows whose names differ in the number at their end are one row: `step *` of `step 1` and `step 2`.
fn series(single: Vec<TimesRow>) -> Vec<TimesRow> {
    let mut rows: Vec<TimesRow> = Vec::new();
    // The row of each name without its number.
    let mut numbered: HashMap<String, usize> = HashMap::new();
    for (name, times) in single {
        let begin = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let is_numbered = begin.len() < name.len() && !begin.is_empty();
        match numbered.get(begin) {
            Some(place) if is_numbered => {
                let (row, sum) = &mut rows[*place];
                *row = format!("{begin}*");
                sum.merge(&times);
            }
            _ => {
                if is_numbered {
                    numbered.insert(begin.to_owned(), rows.len());
                }
                rows.push((name, times));
            }
        }
    }
    rows.sort_by_key(|(_, times)| std::cmp::Reverse(times.total));
    rows
}

/// Functions by time. Functions that only query information share one line.
fn calls(summary: &Summary) -> Vec<TimesRow> {
    let mut rows = Vec::new();
    let mut queries = Distribution::default();
    let (mut has_query, mut others) = (false, 0);
    // The functions are in the order of their times: of those that ask for information, the first has a line of its own.
    for function in summary.functions() {
        let FunctionSummary {
            name, group, times, ..
        } = function;
        let is_query = group == OperationGroup::QUERY;
        if is_query && has_query {
            queries.merge(&times);
            others += 1;
        } else {
            has_query |= is_query;
            rows.push((name, times));
        }
    }
    match others {
        0 => {}
        some => rows.push((count(some, "other query"), queries)),
    }
    rows.sort_by_key(|(_, times)| std::cmp::Reverse(times.total));
    rows
}

/// Writes the first rows, with their shares of `all` nanoseconds.
fn table(text: &mut String, title: &str, rows: &[TimesRow], all: u64) -> std::fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    let title = format!("{title}:");
    writeln!(
        text,
        "{title:<28} {:>8}  {:>6}  {:>9}  {:>8}",
        "total", "share", "count", "mean"
    )?;
    let rows = &rows[..rows.len().min(MAX_LINES)];
    let names = shortened_apart(rows.iter().map(|(name, _)| &**name), 26);
    for (name, (_, times)) in names.iter().zip(rows) {
        let share = 100.0 * times.total as f64 / all.max(1) as f64;
        let total = time(Nanos(times.total));
        let (count, mean) = (grouped(times.count), time(Nanos(times.mean())));
        writeln!(
            text,
            "  {name:<26} {total:>8}  {share:>4.1} %  {count:>9}  {mean:>8}"
        )?;
    }
    Ok(())
}

fn device(text: &mut String, gpu: &GpuSummary, summary: &Summary) {
    let name = format!("{} ({})", gpu.title, gpu.name);
    let name = printable(&name);
    let _ = match &gpu.busy {
        None if gpu.untimed > 0 => writeln!(text, "{name}: no times"),
        None => writeln!(text, "{name}: no work"),
        Some(busy) => {
            let share = 100.0 * busy.share();
            let start = summary.span().map_or(0, |(first, _)| first.0);
            let gap = busy.largest_gap.map_or("no gap".into(), |(from, to)| {
                let (length, place) = (to.0.saturating_sub(from.0), from.0.saturating_sub(start));
                format!(
                    "largest gap {} at {}",
                    time(Nanos(length)),
                    time(Nanos(place))
                )
            });
            writeln!(
                text,
                "{name}: busy {share:.1} % from its first work to its last, {gap}"
            )
        }
    };
}

/// Why nothing was counted in a recording of this length, if that is so.
fn uncounted(text: &mut String, report: &Report, choice: &CounterChoice, length: Nanos) {
    if report.counter_values > 0 {
        return;
    }
    let _ = match choice.mode {
        CountingMode::Device { period } if length < period => writeln!(
            text,
            "no counter was read: the period of {} was longer than the run of {}",
            time(period),
            time(length)
        ),
        CountingMode::Dispatch | CountingMode::Range if report.kernels == 0 => {
            writeln!(text, "nothing was counted: no kernel ran")
        }
        CountingMode::Range => writeln!(
            text,
            "nothing was counted: no kernel was enqueued in a range of markers that is counted, or no agent that was used counts \
             these"
        ),
        _ => writeln!(
            text,
            "nothing was counted: no agent that was used counts these, or a tool counted instead, which was said; `gputrail \
             agents` tells which count, and `gputrail counters list --agent` what"
        ),
    };
}

/// A text with the names of what it is about, if they are known.
fn with_names(what: &str, names: &[String]) -> String {
    let named = names.iter().take(MAX_LINES);
    let named: Vec<_> = named.map(|name| printable(name)).collect();
    match names.len() {
        0 => what.to_owned(),
        number if number > MAX_LINES => format!("{what}: {}, ...", named.join(", ")),
        _ => format!("{what}: {}", named.join(", ")),
    }
}

/// Remarks for readers of the trace.
fn remarks(text: &mut String, report: &Report, summary: &Summary, unfinished_ranges: u64) {
    let mut remark = |number: u64, one: &str, what: &str| {
        if number > 0 {
            let _ = writeln!(text, "{} {what}", count(number, one));
        }
    };
    remark(
        report.counter_values,
        "value",
        "of counters beside kernels and ranges and over time: `gputrail summary` has them",
    );
    remark(
        report.invalid_counter_values,
        "value",
        "of counters without a number: `gputrail summary` has the reasons",
    );
    remark(
        report.left_out_counter_values,
        "value",
        "of counters not shown over time: too many, or of a dispatch or span that is not complete",
    );
    let functions = summary.functions().into_iter();
    let unreturned = functions.filter(|function| function.unfinished > 0);
    let unreturned: Vec<String> = unreturned.map(|function| function.name).collect();
    let work = summary.kernels().into_iter().chain(summary.other_work());
    let incomplete = work.filter(|work| work.unfinished > 0);
    let incomplete: Vec<String> = incomplete.map(|work| work.name).collect();
    remark(
        report.unfinished_calls,
        "call",
        &with_names("had not returned at the end", &unreturned),
    );
    remark(unfinished_ranges, "range", "had not ended at the end");
    remark(
        report.unfinished,
        "operation",
        &with_names("of a device had not completed at the end", &incomplete),
    );
    let unrecorded = format!("of a device without times: {}", Work::UNRECORDED);
    remark(report.unrecorded, "operation", &unrecorded);
    remark(
        report.untimed,
        "operation",
        "of a device completed without times: the runtime gave none",
    );
    remark(
        report.untracked,
        "operation",
        "of a device could not be tracked to the end",
    );
    remark(
        report.unknown_work,
        "operation",
        "of a device came from calls that are not recorded",
    );
    remark(
        report.clamped,
        "device interval",
        "moved to the enqueue, within the error of the clocks",
    );
    remark(
        report.before_enqueue,
        "device interval",
        "before the enqueue by more than the error of the clocks",
    );
    remark(
        report.estimated,
        "device interval",
        "placed by when the end was learnt: the device's clock is unknown",
    );
    remark(
        report.commands,
        "command",
        "of command buffers: their times are estimates, equal shares of the time of the whole buffer",
    );
    if report.samples > 0 {
        let dropped = match report.dropped_samples {
            0 => "none dropped".to_owned(),
            dropped => format!("{} dropped", grouped(dropped)),
        };
        let samples = count(report.samples, "sample");
        let _ = writeln!(
            text,
            "{samples} of the program counter, {dropped}: see `gputrail hotspots`"
        );
    }
    if report.executed_instructions > 0 {
        let executed = count(report.executed_instructions, "instruction");
        let _ = writeln!(
            text,
            "{executed} of waves, counted where they were executed: see `gputrail hotspots`"
        );
    }
    for (path, finding) in report.findings.iter().take(MAX_LINES) {
        let line = format!("{}: {finding}", path.display());
        let _ = writeln!(text, "{}", printable(&line));
    }
    if report.findings.len() > MAX_LINES {
        let _ = writeln!(
            text,
            "and {} that could not be read",
            count((report.findings.len() - MAX_LINES) as u64, "more place")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, total: u64) -> TimesRow {
        let mut times = Distribution::default();
        times.add(total);
        (name.to_owned(), times)
    }

    #[test]
    fn numbered_names_are_one_row() {
        let rows = [
            ("warm up", 5),
            ("step 1", 10),
            ("step 2", 20),
            ("epoch 1", 7),
            ("12", 1),
            ("13", 1),
            ("step 10", 30),
        ];
        let rows = series(rows.map(|(name, total)| row(name, total)).into());
        let rows: Vec<_> = rows
            .iter()
            .map(|(name, times)| (&**name, times.count, times.total))
            .collect();
        let expected = [
            ("step *", 3, 60),
            ("epoch 1", 1, 7),
            ("warm up", 1, 5),
            ("12", 1, 1),
            ("13", 1, 1),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn what_is_lost_and_what_is_a_title_stand_out() {
        assert_eq!(style("LOST: 3 records dropped"), Style::Loss);
        assert_eq!(style("2 calls failed:"), Style::Loss);
        assert_eq!(style("calls with most time:   total"), Style::Heading);
        assert_eq!(style("nothing was lost"), Style::Plain);
    }
}
