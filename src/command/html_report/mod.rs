//! `gputrail report`: a page of HTML about a recording, in one file that needs no network and no script.
//!
//! Everything in it that comes from the input passes [`html::text`], and the page forbids scripts and loads by its own policy.
//! Its size is bounded: lanes of the timeline, points of the roofline, rows of tables and lengths of names are.

mod html;
mod roofline;
mod style;
mod timeline;

use self::html::{Page, text, with_code};
use crate::cli::answers::Report as Arguments;
use crate::cli::contents::Contents;
use crate::failure::{DAMAGED, Failure};
use crate::figures::{bytes, count, grouped, time};
use crate::input;
use crate::messages::say;
use crate::output::{Output, refuse_inputs};
use crate::signals::Signals;
use crate::summary::tables_of;
use crate::tables::Table;
use anyhow::Context;
use gputrail_analysis::advice::{Advice, Evidence, advise};
use gputrail_analysis::summary::{SettledPlaces, Summary};
use gputrail_record::Nanos;
use std::fmt::Write;
use std::path::PathBuf;

/// Maximum number of problems of the input that the page names.
const MAX_PROBLEMS: usize = 8;
/// Tables that are open when the page is.
const OPEN: [&str; 10] = [
    "by_rank",
    "by_process",
    "recording",
    "missing",
    "kernels",
    "calls",
    "failures",
    "devices",
    "communication",
    "step_series",
];

/// Runs the command; the result is the exit code.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let output = match &arguments.output {
        Some(name) => Output::named_or_standard(name)?,
        None => Output::beside(&arguments.files[0], "html")?,
    };
    let signals = Signals::take().context("cannot take signals")?;
    let workshop = output.workshop()?;
    output.ends_at_once(signals, workshop.path());
    let path = output.path(std::process::id())?;
    let inputs = arguments.files.iter().map(PathBuf::as_path);
    refuse_inputs(std::slice::from_ref(&path), inputs)?;
    let mut summary = Summary::with_steps(&arguments.step).with_timelines();
    let problems = input::read(&arguments.files, Contents::default(), &mut summary)?;
    for problem in &problems {
        say!("{problem}");
    }
    let names = arguments
        .files
        .iter()
        .map(|file| file.display().to_string());
    let page = page(
        &names.collect::<Vec<_>>(),
        &summary,
        &problems,
        arguments.top,
    );
    let file = workshop.path().join("report");
    let cannot = || format!("cannot write {}", path.display());
    std::fs::write(&file, &page).with_context(cannot)?;
    let made = output.deliver(&file, &path).with_context(cannot)?;
    if !arguments.quiet && output.is_file() {
        say!(
            "report: {} ({}), for a browser",
            made.display(),
            bytes(page.len() as u64)
        );
    }
    Ok(if problems.is_empty() { 0 } else { DAMAGED })
}

/// The page.
fn page(names: &[String], summary: &Summary, problems: &[String], top: usize) -> String {
    let settled = summary.places();
    let advice = advise(&Evidence::of(summary));
    let tables = tables_of(summary, problems.len() as u64, None);
    let filled: Vec<&Table> = tables
        .iter()
        .filter(|table| !table.rows.is_empty())
        .collect();
    let title = match names {
        [] => String::new(),
        [only] => only.clone(),
        [first, others @ ..] => {
            format!("{first} and {}", count(others.len() as u64, "more file"))
        }
    };
    let mut page = Page::new(&title);
    head(&mut page, &title, summary, &settled);
    damage(&mut page, problems);
    let Some(span) = summary.span() else {
        page.section("empty", "Nothing was recorded");
        page += "<p>The input has no call, no device work and no marker. <code>gputrail info</code> says what it has.</p>";
        page.end_section();
        return page.finish(&[]);
    };
    advice_cards(&mut page, &advice, span.0);
    timeline::draw(&mut page, summary, &settled, &advice, span);
    roofline::draw(&mut page, summary);
    page.section("tables", "Tables");
    page += "<p class=\"note\">Tables begin with what took most. <code>gputrail summary</code> has all rows, also as CSV and JSON; \
             <code>gputrail help answers</code> explains the columns.</p>";
    for table in &filled {
        page.table(table, top, OPEN.contains(&table.name.key));
    }
    page.end_section();
    page.finish(&filled)
}

/// The title and the first figures.
fn head(page: &mut Page, title: &str, summary: &Summary, settled: &SettledPlaces) {
    let _ = write!(page, "<header><h1>{}</h1>", text(title));
    let Some((first, last)) = summary.span() else {
        *page += "</header>";
        return;
    };
    let gpus = summary.gpus();
    let used = gpus.iter().filter(|gpu| gpu.busy.is_some()).count();
    let (busy, span) = settled.devices.values().fold((0, 0), |sums, place| {
        (sums.0 + place.times.busy().0, sums.1 + place.span.0)
    });
    let kernels = summary.kernels();
    let runs: u64 = kernels
        .iter()
        .map(|one| one.times.count + one.untimed)
        .sum();
    let calls: u64 = summary
        .functions()
        .iter()
        .map(|one| one.times.count + one.unfinished)
        .sum();
    let failed: u64 = summary.failures().iter().map(|one| one.count).sum();
    let mut figures = vec![(
        time(Nanos(last.0.saturating_sub(first.0))),
        "from the first event to the last",
        false,
    )];
    if used > 0 {
        figures.push((count(used as u64, "device"), "did work", false));
        let share = 100.0 * busy as f64 / span.max(1) as f64;
        figures.push((
            format!("{share:.1} %"),
            "busy, from first work to last",
            false,
        ));
    }
    if runs > 0 {
        let distinct = count(kernels.len() as u64, "kernel");
        figures.push((grouped(runs), "kernel executions", false));
        figures.push((distinct, "by name", false));
    }
    if calls > 0 {
        figures.push((grouped(calls), "API calls", false));
    }
    if failed > 0 {
        figures.push((grouped(failed), "calls failed", true));
    }
    if summary.lost() > 0 {
        figures.push((grouped(summary.lost()), "records lost", true));
    }
    *page += "<div class=\"figures\">";
    for (value, name, is_bad) in figures {
        let class = if is_bad { " class=\"bad\"" } else { "" };
        let _ = write!(
            page,
            "<div{class}><b>{}</b><span>{name}</span></div>",
            text(&value)
        );
    }
    *page += "</div></header>";
}

/// The parts of the input that could not be read.
fn damage(page: &mut Page, problems: &[String]) {
    if problems.is_empty() {
        return;
    }
    *page += "<aside class=\"bad\"><b>Parts of the input could not be read; all figures are of the rest.</b><ul>";
    for problem in problems.iter().take(MAX_PROBLEMS) {
        let _ = write!(page, "<li>{}</li>", text(problem));
    }
    if problems.len() > MAX_PROBLEMS {
        let more = grouped((problems.len() - MAX_PROBLEMS) as u64);
        let _ = write!(page, "<li>and {more} more</li>");
    }
    *page += "</ul></aside>";
}

/// The advice, numbered as its marks on the timeline.
fn advice_cards(page: &mut Page, advice: &[Advice], begin: Nanos) {
    page.section("advice", "Advice");
    if advice.is_empty() {
        *page += "<p>No rule has anything to say.</p>";
    }
    *page += "<ol class=\"advice\">";
    for (number, one) in (1..).zip(advice) {
        let class = if one.stake.is_none() {
            " class=\"bad\""
        } else {
            ""
        };
        let _ = write!(
            page,
            "<li id=\"advice-{number}\"{class}><h3><i>{number}</i>{}",
            text(one.rule)
        );
        if let Some(stake) = one.stake {
            let _ = write!(page, "<span>{} at stake</span>", text(&time(stake)));
        }
        let _ = write!(page, "</h3><p>{}</p><dl>", text(&one.seen));
        if let Some(place) = one.place {
            let after = time(Nanos(place.0.saturating_sub(begin.0)));
            let _ = write!(
                page,
                "<dt>At</dt><dd>{} after the begin, <code>{}</code> ns</dd>",
                text(&after),
                place.0
            );
        }
        let _ = write!(
            page,
            "<dt>Why</dt><dd>{}</dd><dt>Try</dt><dd>{}</dd></dl></li>",
            text(one.why),
            with_code(&one.attempt)
        );
    }
    *page += "</ol>";
    page.end_section();
}
