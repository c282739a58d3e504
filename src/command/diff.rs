//! `gputrail diff`: compares recordings, and fails if a figure has changed too much.

mod condition;

pub use self::condition::{Condition, condition};
use crate::cli::answers::Diff as Arguments;
use crate::cli::contents::Contents;
use crate::failure::{CHANGED, DAMAGED, Failure};
use crate::input;
use crate::messages::say;
use crate::stdout;
use crate::summary::columns::column;
use crate::tables::{Cell, Column, Format, Table};
use anyhow::anyhow;
use gputrail_analysis::diff::{
    Comparison, DiffRow, FigureChange, Match, Profile, SideValue, Subject, difference,
};
use gputrail_analysis::summary::Summary;
use gputrail_record::Nanos;
use std::path::PathBuf;

/// Runs the command; the result is the exit code.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let (before, after) = match (&arguments.files[..], &arguments.after[..]) {
        ([before, after], []) => (vec![before], vec![after]),
        (_, []) => {
            return Err(anyhow!(
                "two files or folders are compared: `gputrail diff A B`; for several runs of each side, `gputrail diff A1 A2 -- B1 B2`"
            )
            .into());
        }
        (before, after) => (before.iter().collect(), after.iter().collect()),
    };
    let mut damaged = false;
    let mut profiles = |files: Vec<&PathBuf>| -> Result<Vec<Profile>, Failure> {
        let mut side = Vec::new();
        for file in files {
            let mut summary = Summary::with_steps(&arguments.step);
            let files = std::slice::from_ref(file);
            let problems = input::read(files, Contents::default(), &mut summary)?;
            for problem in &problems {
                say!("{problem}");
            }
            damaged |= !problems.is_empty();
            side.push(Profile::of(&summary));
        }
        Ok(side)
    };
    let before = profiles(before)?;
    let after = profiles(after)?;
    let comparison = Comparison::of(&before, &after);
    let several = before.len() > 1 || after.len() > 1;
    let tables = tables_of(&comparison, several);
    let is_empty = tables.iter().all(|table| table.rows.is_empty());
    let for_people = matches!(arguments.tables.format, Format::Table | Format::Markdown);
    if is_empty && for_people && arguments.tables.output.is_none() {
        stdout::print("no difference\n")?;
    } else {
        arguments.tables.print(tables)?;
    }
    let mut changed = false;
    for condition in &arguments.fail_if {
        if let Some(why) = condition.holds(&comparison)? {
            say!("{why}");
            changed = true;
        }
    }
    Ok(match (changed, damaged) {
        (true, _) => CHANGED,
        (false, true) => DAMAGED,
        (false, false) => 0,
    })
}

fn title(subject: Subject) -> Column {
    match subject {
        Subject::Kernels => column("Kernels", "kernels"),
        Subject::Calls => column("API calls", "calls"),
        Subject::Operations => column("Memory operations and barriers", "operations"),
        Subject::Gaps => column("Gaps by the work that ended them", "gaps"),
        Subject::Ranges => column("Ranges and operators", "ranges"),
        Subject::Steps => column("Steps", "steps"),
    }
}

/// The relative change of a value.
fn relative(before: u64, after: u64) -> Cell {
    match before {
        0 => Cell::Nothing,
        _ => Cell::Change((after as f64 - before as f64) / before as f64),
    }
}

/// The tables of a comparison. With several runs of a side, they say the spread.
fn tables_of(comparison: &Comparison, several: bool) -> Vec<Table> {
    let mut tables = vec![figures(comparison, several)];
    let subjects = Subject::ALL.into_iter();
    tables.extend(subjects.map(|subject| rows_table(comparison, subject, several)));
    tables
}

fn figures(comparison: &Comparison, several: bool) -> Table {
    let changed = comparison.figures.iter();
    let changed = changed.filter(|figure| figure.before.mean != figure.after.mean);
    let row = |figure: &FigureChange| {
        let (before, after) = (figure.before, figure.after);
        let cell = |value: u64| match figure.is_time {
            true => Cell::Time(Nanos(value)),
            false => Cell::Count(value),
        };
        let change = difference(before.mean, after.mean);
        let change = match figure.is_time {
            true => Cell::TimeChange(change),
            false => Cell::Number(change as f64),
        };
        let mut row = vec![
            Cell::Text(figure.name.to_owned()),
            cell(before.mean),
            cell(after.mean),
            change,
            relative(before.mean, after.mean),
        ];
        if several {
            row.extend([cell(before.spread), cell(after.spread)]);
        }
        row
    };
    let mut columns = vec![
        column("Figure", "figure"),
        column("Before", "before"),
        column("After", "after"),
        column("Change", "change"),
        column("Share", "change_share"),
    ];
    if several {
        columns.extend([
            column("Spread before", "before_spread"),
            column("Spread after", "after_spread"),
        ]);
    }
    Table {
        name: column("Whole recordings", "figures"),
        columns,
        rows: changed.map(row).collect(),
    }
}

fn rows_table(comparison: &Comparison, subject: Subject, several: bool) -> Table {
    let mut columns = vec![
        column("Name", "name"),
        column("Change", "change_ns"),
        column("Share", "change_share"),
        column("Before", "before_ns"),
        column("After", "after_ns"),
        column("Count", "before_count"),
        column("After", "after_count"),
        column("Median", "before_median_ns"),
        column("After", "after_median_ns"),
        column("Share", "median_change_share"),
        column("Match", "match"),
    ];
    if several {
        columns.extend([
            column("Spread before", "before_spread_ns"),
            column("Spread after", "after_spread_ns"),
        ]);
    }
    let time = |value: SideValue| Cell::Time(Nanos(value.mean));
    let row = |row: &DiffRow| {
        let (before, after) = (&row.before, &row.after);
        let by = match row.by {
            Match::Same => "",
            Match::Similar => "similar",
            Match::New => "new",
            Match::Gone => "gone",
        };
        let mut cells = vec![
            Cell::Text(row.name.clone()),
            Cell::TimeChange(row.change()),
            relative(before.total.mean, after.total.mean),
            time(before.total),
            time(after.total),
            Cell::Count(before.count.mean),
            Cell::Count(after.count.mean),
            time(before.median),
            time(after.median),
            match row.by {
                Match::New | Match::Gone => Cell::Nothing,
                _ => relative(before.median.mean, after.median.mean),
            },
            Cell::Text(by.to_owned()),
        ];
        if several {
            cells.extend([before.total, after.total].map(|side| Cell::Time(Nanos(side.spread))));
        }
        cells
    };
    Table {
        name: title(subject),
        columns,
        rows: comparison.changed(subject).map(row).collect(),
    }
}
