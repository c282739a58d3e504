//! Application replay: a program that runs once for each set of counters, and is one recording.

use crate::failure::Failure;
use crate::figures::count;
use crate::messages::say;
use crate::program;
use anyhow::Context;
use gputrail_capture::Reader;
use gputrail_capture::joining::{Joining, Unmatched};
use gputrail_collect::counting::runs_of_note;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// A run of the program.
pub struct Run {
    /// The captures of its processes; the program's own comes first.
    pub captures: Vec<PathBuf>,
    pub status: ExitStatus,
}

/// Runs the program as often as the counters need that `first` has not counted, and adds their values to its captures.
/// `again` runs it with a number, from 1; `None` if it is not to run any more.
pub fn replay(
    first: &Run,
    again: &mut dyn FnMut(u32) -> Result<Option<Run>, Failure>,
) -> Result<(), Failure> {
    let joinings: Result<Vec<Joining>, _> = first
        .captures
        .iter()
        .map(|path| Joining::new(path))
        .collect();
    let mut joinings = joinings.context("the first run cannot be read")?;
    let runs = joinings.iter().filter_map(|one| runs_of(one.base())).max();
    let runs = runs.unwrap_or(1);
    for run in 1..runs {
        let Some(other) = again(run)? else {
            say!(
                "the counters of {} are missing: it was interrupted",
                count((runs - run).into(), "run")
            );
            break;
        };
        if other.status != first.status {
            say!(
                "run {} of {runs} ended otherwise than the first one: with exit code {}, and not {}",
                run + 1,
                program::exit_code(other.status),
                program::exit_code(first.status)
            );
        }
        let text = add(&mut joinings, &other.captures)?;
        for text in text {
            let text = format!("run {} of {runs}: {text}", run + 1);
            say!("{text}");
            if let Some(program) = joinings.first_mut() {
                program.note(text);
            }
        }
    }
    for (joining, path) in joinings.into_iter().zip(&first.captures) {
        let joined = path.with_extension("joined");
        let write = || -> std::io::Result<()> {
            joining.write(&joined)?;
            std::fs::rename(&joined, path)
        };
        write().context("the counters of all runs cannot be written")?;
    }
    Ok(())
}

/// The number of runs that a process needs; `None` if it counts nothing.
fn runs_of(capture: &Reader) -> Option<u32> {
    let metadata = capture.metadata();
    let notes = metadata.notes.iter();
    notes
        .filter_map(|note| runs_of_note(metadata.string(note.text)))
        .max()
}

fn executable(capture: &Reader) -> String {
    let metadata = capture.metadata();
    let process = metadata.process.as_ref();
    process.map_or(String::new(), |process| {
        metadata.string(process.executable).to_owned()
    })
}

/// Adds the values of a run: the n-th process of an executable is the n-th one of the first run. Returns what does not
/// match.
fn add(joinings: &mut [Joining], captures: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let mut first: HashMap<String, Vec<usize>> = HashMap::new();
    for (place, joining) in joinings.iter().enumerate().rev() {
        first
            .entry(executable(joining.base()))
            .or_default()
            .push(place);
    }
    let (mut matched, mut unmatched, mut others) = (0, Unmatched::default(), 0);
    for path in captures {
        let reader = open(path)?;
        let place = first.get_mut(&executable(&reader)).and_then(Vec::pop);
        let Some(place) = place else {
            others += 1;
            continue;
        };
        let (of_process, not) = joinings[place].add(&reader);
        matched += of_process;
        unmatched += not;
    }
    let missing: u64 = first.values().map(|places| places.len() as u64).sum();
    let mut text = Vec::new();
    if others + missing > 0 {
        text.push(format!(
            "{} that the first run does not have, {} that this one does not have: nothing of them is joined",
            count(others, "process"),
            count(missing, "process")
        ));
    }
    if unmatched.total() > 0 {
        text.push(format!(
            "{} match the first run, and {} do not, whose values are left out: {}",
            count(matched, "dispatch"),
            unmatched.total(),
            reasons(&unmatched)
        ));
    }
    Ok(text)
}

fn open(path: &Path) -> Result<Reader, Failure> {
    Ok(Reader::open(path).context("a run cannot be read")?)
}

fn reasons(unmatched: &Unmatched) -> String {
    let all = [
        (unmatched.missing, "missing in this run"),
        (unmatched.added, "missing in the first run"),
        (unmatched.other_grid, "of another grid"),
        (unmatched.other_order, "in another order"),
    ];
    let told = all.iter().filter(|(number, _)| *number > 0);
    let told: Vec<String> = told
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    told.join(", ")
}
