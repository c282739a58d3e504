//! `gputrail advise`: says what to do about a recording.

use crate::cli::answers::Advise as Arguments;
use crate::cli::contents::Contents;
use crate::failure::{DAMAGED, Failure};
use crate::figures::time;
use crate::messages::say;
use crate::summary::columns::column;
use crate::tables::{Cell, Format, Table};
use crate::{input, stdout};
use gputrail_analysis::advice::{Advice, Evidence, advise};
use gputrail_analysis::summary::Summary;
use gputrail_record::Nanos;
use std::fmt::Write;

/// Number of pieces of advice in a summary and at the end of a recording.
pub const FIRST: usize = 3;

/// Runs the command; the result is the exit code.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let mut summary = Summary::with_steps(&arguments.step);
    let problems = input::read(&arguments.files, Contents::default(), &mut summary)?;
    for problem in &problems {
        say!("{problem}");
    }
    let advice = advise(&Evidence::of(&summary));
    let begin = summary.span().map_or(Nanos(0), |(first, _)| first);
    if arguments.tables.format == Format::Table && arguments.tables.output.is_none() {
        let top = arguments.tables.top.unwrap_or(usize::MAX);
        let text = in_words(&advice[..advice.len().min(top)], begin);
        stdout::print_styled(&text, stdout::heading)?;
    } else {
        arguments.tables.print(vec![table(&advice, begin)])?;
    }
    Ok(if problems.is_empty() { 0 } else { DAMAGED })
}

/// The advice as lines for people.
fn in_words(advice: &[Advice], begin: Nanos) -> String {
    if advice.is_empty() {
        return "no rule has anything to say: `gputrail help answers` lists them\n".to_owned();
    }
    let mut text = String::new();
    for one in advice {
        let stake = match one.stake {
            Some(stake) => format!(" ({} at stake)", time(stake)),
            None => String::new(),
        };
        let _ = writeln!(text, "{}{stake}", one.rule);
        let _ = writeln!(text, "  seen:  {}", one.seen);
        if let Some(place) = one.place {
            let after = Nanos(place.0.saturating_sub(begin.0));
            let _ = writeln!(
                text,
                "  at:    {} ns, {} after the begin",
                place.0,
                time(after)
            );
        }
        let _ = writeln!(text, "  why:   {}", one.why);
        let _ = writeln!(text, "  try:   {}", one.attempt);
    }
    text
}

/// The first pieces of advice as one line each, for the end of a summary.
pub fn first_lines(summary: &Summary) -> Vec<String> {
    let advice = advise(&Evidence::of(summary));
    let line = |one: &Advice| format!("advice: {}: {}", one.rule, one.seen);
    let mut lines: Vec<String> = advice.iter().take(FIRST).map(line).collect();
    if let Some(last) = lines.last_mut() {
        last.push_str(" (`gputrail advise` says more)");
    }
    lines
}

/// The advice as a table: findings only.
pub fn short_table(advice: &[Advice], begin: Nanos) -> Table {
    let row = |one: &Advice| {
        let after = |place: Nanos| Cell::Time(Nanos(place.0.saturating_sub(begin.0)));
        vec![
            Cell::Text(one.rule.to_owned()),
            one.stake.map_or(Cell::Nothing, Cell::Time),
            one.place.map_or(Cell::Nothing, Cell::Instant),
            one.place.map_or(Cell::Nothing, after),
            Cell::Name(one.seen.clone()),
        ]
    };
    Table {
        name: column(
            "Advice: `gputrail advise` says why, and what to try",
            "advice",
        ),
        columns: vec![
            column("Rule", "rule"),
            column("At stake", "stake_ns"),
            column("At", "at_ns"),
            column("After", "after_ns"),
            column("Seen", "seen"),
        ],
        rows: advice.iter().map(row).collect(),
    }
}

/// The advice as a table: findings, reasons and what to try.
fn table(advice: &[Advice], begin: Nanos) -> Table {
    let mut table = short_table(advice, begin);
    table.name.title = "Advice";
    let more = [column("Why", "why"), column("Try", "try")];
    table.columns.extend(more);
    for (row, one) in table.rows.iter_mut().zip(advice) {
        let texts = [one.why.to_owned(), one.attempt.clone()];
        row.extend(texts.map(Cell::Name));
    }
    table
}
