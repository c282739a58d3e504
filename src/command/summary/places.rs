//! Tables by rank, process, device, queue and step.

use super::columns::{COUNT, PROCESS, TOTAL, column, share, time};
use crate::cli::summary::By;
use crate::tables::{Cell, Column, Table};
use gputrail_analysis::summary::steps::{self, StepSeries, StepSummary, median};
use gputrail_analysis::summary::{PlaceSummary, SettledPlaces, Summary, WorkClass};
use gputrail_record::Nanos;
use gputrail_trace::model::{AgentIndex, ProcessIndex};
use std::collections::BTreeMap;

/// The least share by which a part of a row must exceed the median to be named.
const NAMED_EXCESS: f64 = 0.02;

/// Processes as people call them: the one, or their number.
pub fn processes(summary: &Summary, list: &[ProcessIndex]) -> String {
    match list {
        [] => "-".to_owned(),
        [only] => summary.process_label(*only).text(),
        several => format!("{} processes", several.len()),
    }
}

/// The table that stands first: what is asked for, or else the comparison of several processes.
pub fn first(summary: &Summary, settled: &SettledPlaces, by: Option<By>) -> Vec<Table> {
    let by = by.or_else(|| {
        let mut processes: Vec<_> = settled
            .devices
            .keys()
            .map(|(process, _)| *process)
            .collect();
        processes.dedup();
        let has_rank = |process: &ProcessIndex| summary.process_label(*process).rank.is_some();
        match processes.iter().any(has_rank) {
            _ if processes.len() < 2 => None,
            true => Some(By::Rank),
            false => Some(By::Process),
        }
    });
    match by {
        None => Vec::new(),
        Some(By::Range) => super::ranges(summary),
        Some(By::Stack) => vec![super::call_stacks(summary)],
        Some(by) => vec![grouped(summary, settled, by)],
    }
}

/// A row of a table by place: the names of the place, and its sums.
type PlaceRow = (Vec<String>, PlaceSummary);

fn rows_by(summary: &Summary, settled: &SettledPlaces, by: By) -> Vec<PlaceRow> {
    let mut groups: BTreeMap<(u32, u32, u32), PlaceRow> = BTreeMap::new();
    let mut add = |key, names: Vec<String>, place: &PlaceSummary| {
        let (_, sum) = groups
            .entry(key)
            .or_insert_with(|| (names, PlaceSummary::default()));
        sum.add(place);
    };
    let process = |index: ProcessIndex| summary.process_label(index).text();
    let device = |index: AgentIndex| summary.device(index);
    match by {
        By::Rank => {
            // Several processes of a rank are one row.
            let mut firsts: BTreeMap<i64, u32> = BTreeMap::new();
            for ((of, _), place) in &settled.devices {
                let rank = summary.process_label(*of).rank;
                let key = rank.map_or(of.0, |rank| *firsts.entry(rank).or_insert(of.0));
                add((key, 0, 0), vec![process(*of)], place);
            }
        }
        By::Process => {
            for ((of, _), place) in &settled.devices {
                add((of.0, 0, 0), vec![process(*of)], place);
            }
        }
        By::Device | By::Range | By::Stack => {
            for ((of, agent), place) in &settled.devices {
                let names = vec![process(*of), device(*agent)];
                add((of.0, agent.0, 0), names, place);
            }
        }
        By::Queue => {
            for ((of, agent, queue), place) in &settled.queues {
                let name = summary.queue_label(*queue).name;
                let names = vec![process(*of), device(*agent), name];
                add((of.0, agent.0, queue.0), names, place);
            }
        }
    }
    groups.into_values().collect()
}

/// The parts of a row, by which it may differ from others.
fn parts(place: &PlaceSummary) -> [(&'static str, u64); 3] {
    let times = &place.times;
    [
        ("computing", times.of(WorkClass::Compute).0),
        ("copies", times.exposed_transfers().0),
        ("idle", place.idle().0),
    ]
}

/// By what a row is slower than the median of all.
fn excess(place: &PlaceSummary, all: &[PlaceRow]) -> Cell {
    let typical = median(all.iter().map(|(_, other)| other.own_time().0).collect());
    let more = parts(place)
        .into_iter()
        .enumerate()
        .map(|(number, (name, value))| {
            let others = all.iter().map(|(_, other)| parts(other)[number].1);
            (name, value.saturating_sub(median(others.collect())))
        });
    let Some((name, more)) = more.max_by_key(|(_, more)| *more) else {
        return Cell::Nothing;
    };
    if all.len() < 2 || more as f64 <= NAMED_EXCESS * typical as f64 {
        return Cell::Nothing;
    }
    Cell::Text(format!("{name} +{}", crate::figures::time(Nanos(more))))
}

/// The name of the table, and the columns of the names of its rows.
fn heads(by: By) -> (Column, &'static [Column]) {
    const DEVICE: Column = column("Device", "device");
    const RANK: [Column; 1] = [column("Rank", "rank")];
    const OF_DEVICES: [Column; 2] = [PROCESS, DEVICE];
    const OF_QUEUES: [Column; 3] = [PROCESS, DEVICE, column("Queue", "queue")];
    match by {
        By::Rank => (
            column(
                "Ranks, the slowest first: own time is all but waiting for others",
                "by_rank",
            ),
            &RANK,
        ),
        By::Process => (
            column("Processes, the slowest first", "by_process"),
            &[PROCESS],
        ),
        By::Device | By::Range | By::Stack => {
            (column("Devices of processes", "by_device"), &OF_DEVICES)
        }
        By::Queue => (column("Queues", "by_queue"), &OF_QUEUES),
    }
}

fn grouped(summary: &Summary, settled: &SettledPlaces, by: By) -> Table {
    let (name, names) = heads(by);
    let mut all = rows_by(summary, settled, by);
    all.sort_by_key(|(_, place)| std::cmp::Reverse(place.own_time()));
    let typical = median(all.iter().map(|(_, place)| place.own_time().0).collect());
    let rows = all.iter().map(|(names, place)| {
        let times = &place.times;
        let mut row: Vec<Cell> = names.iter().cloned().map(Cell::Text).collect();
        row.extend([
            Cell::Time(place.own_time()),
            change(place.own_time().0, typical),
            Cell::Time(place.span),
            share(times.busy().0, place.span.0),
            Cell::Time(times.of(WorkClass::Compute)),
            Cell::Time(times.of(WorkClass::Communication)),
            Cell::Time(times.exposed_communication()),
            Cell::Time(times.of(WorkClass::Transfer)),
            Cell::Time(place.idle()),
            Cell::Count(times.kernels),
            excess(place, &all),
        ]);
        row
    });
    let mut columns = names.to_vec();
    columns.extend([
        column("Own time", "own_ns"),
        column("To median", "to_median"),
        column("Length", "length_ns"),
        column("Busy", "busy_share"),
        column("Computing", "computing_ns"),
        column("Communicating", "communication_ns"),
        column("Exposed", "exposed_ns"),
        column("Copies", "transfers_ns"),
        column("Idle", "idle_ns"),
        column("Kernels", "kernels"),
        column("Slower by", "slower_by"),
    ]);
    Table {
        name,
        rows: rows.collect(),
        columns,
    }
}

fn change(value: u64, base: u64) -> Cell {
    match base {
        0 => Cell::Nothing,
        _ => Cell::Change((value as f64 - base as f64) / base as f64),
    }
}

/// Communication and computation of each process.
pub fn communication(summary: &Summary, settled: &SettledPlaces) -> Table {
    let rows = rows_by(summary, settled, By::Process);
    let rows = rows.into_iter().filter_map(|(names, place)| {
        let times = &place.times;
        let communication = times.of(WorkClass::Communication);
        let mut row: Vec<Cell> = names.into_iter().map(Cell::Text).collect();
        row.extend([
            Cell::Time(communication),
            Cell::Time(times.hidden_communication()),
            share(times.hidden_communication().0, communication.0),
            Cell::Time(times.exposed_communication()),
            share(times.exposed_communication().0, place.span.0),
        ]);
        (communication.0 > 0).then_some(row)
    });
    Table {
        name: column(
            "Communication, and how much of it computation hides",
            "communication",
        ),
        columns: vec![
            PROCESS,
            column("Communicating", "communication_ns"),
            column("Hidden", "hidden_ns"),
            column("Of it", "hidden_share"),
            column("Exposed", "exposed_ns"),
            column("Of all", "exposed_share"),
        ],
        rows: rows.collect(),
    }
}

/// Steps: by series, and each.
pub fn steps(summary: &Summary, settled: &SettledPlaces) -> [Table; 2] {
    let series = steps::series(&settled.steps);
    [
        series_table(summary, settled, &series),
        steps_table(summary, settled, &series),
    ]
}

fn series_table(summary: &Summary, settled: &SettledPlaces, series: &[StepSeries]) -> Table {
    let rows = series.iter().map(|one| {
        let steps = one.steps.iter().map(|place| &settled.steps[*place]);
        let durations: Vec<u64> = steps
            .clone()
            .filter_map(StepSummary::duration)
            .map(|d| d.0)
            .collect();
        let total: u64 = durations.iter().sum();
        let sum = |part: fn(&StepSummary) -> u64| steps.clone().map(part).sum::<u64>();
        let device_time = sum(|step| step.duration().map_or(0, |d| d.0) * step.devices);
        let count = durations.len() as u64;
        let mean = |sum: u64| time(sum.checked_div(count).unwrap_or(0));
        let peaks = steps.clone().filter_map(|step| step.memory_peak);
        vec![
            Cell::Text(summary.process_label(one.process).text()),
            Cell::Text(one.name.clone()),
            time(total),
            Cell::Count(count),
            Cell::Time(one.median),
            time(durations.iter().copied().min().unwrap_or(0)),
            time(durations.iter().copied().max().unwrap_or(0)),
            Cell::Count(one.outliers.len() as u64),
            share(sum(|step| step.times.busy().0), device_time),
            mean(sum(|step| step.times.of(WorkClass::Compute).0)),
            mean(sum(|step| step.times.exposed_communication().0)),
            mean(sum(|step| step.idle().map_or(0, |idle| idle.0))),
            Cell::Count(sum(|step| step.times.kernels) / count.max(1)),
            peaks.max().map_or(Cell::Nothing, Cell::Bytes),
        ]
    });
    Table {
        name: column(
            "Steps, and means of what devices did in them",
            "step_series",
        ),
        columns: vec![
            PROCESS,
            column("Steps", "steps"),
            TOTAL,
            COUNT,
            column("Median", "median_ns"),
            column("Min", "min_ns"),
            column("Max", "max_ns"),
            column("Outliers", "outliers"),
            column("Busy", "busy_share"),
            column("Computing", "computing_ns"),
            column("Exposed", "exposed_ns"),
            column("Idle", "idle_ns"),
            column("Kernels", "kernels"),
            column("Memory peak", "memory_peak_bytes"),
        ],
        rows: rows.collect(),
    }
}

fn steps_table(summary: &Summary, settled: &SettledPlaces, series: &[StepSeries]) -> Table {
    let begin = summary.span().map_or(0, |(first, _)| first.0);
    let mut rows = Vec::new();
    for one in series {
        for place in &one.steps {
            let step = &settled.steps[*place];
            let duration = step.duration().map_or(0, |duration| duration.0);
            let times = &step.times;
            let remark = match one.outliers.contains(place) {
                true => "outlier",
                false => "",
            };
            rows.push(vec![
                Cell::Text(summary.process_label(step.process).text()),
                Cell::Text(step.name.to_string()),
                time(step.start.0.saturating_sub(begin)),
                Cell::Instant(step.start),
                time(duration),
                change(duration, one.median.0),
                Cell::Time(times.busy()),
                step.idle().map_or(Cell::Nothing, Cell::Time),
                Cell::Time(times.of(WorkClass::Compute)),
                Cell::Time(times.exposed_communication()),
                Cell::Count(times.kernels),
                step.memory_peak.map_or(Cell::Nothing, Cell::Bytes),
                Cell::Text(remark.to_owned()),
            ]);
        }
    }
    Table {
        name: column("Each step, and what devices did in it", "steps"),
        columns: vec![
            PROCESS,
            column("Step", "step"),
            column("After", "after_ns"),
            column("At", "at_ns"),
            column("Duration", "duration_ns"),
            column("To median", "to_median"),
            column("Busy", "busy_ns"),
            column("Idle", "idle_ns"),
            column("Computing", "computing_ns"),
            column("Exposed", "exposed_ns"),
            column("Kernels", "kernels"),
            column("Memory peak", "memory_peak_bytes"),
            column("Remark", "remark"),
        ],
        rows,
    }
}
