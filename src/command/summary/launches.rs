//! Tables of launch latency, collective operations and memory.

use super::columns::{COUNT, NAME, PROCESS, TIMES, TOTAL, column, spread, time};
use crate::tables::{Cell, Table};
use gputrail_analysis::summary::Summary;
use gputrail_record::Nanos;

/// Launch latency by kernel or kind of work, and the means of its parts.
pub fn latencies(summary: &Summary) -> Table {
    let mut columns = vec![NAME, COUNT];
    columns.extend(TIMES);
    columns.extend([
        column("In the call", "in_call_ns"),
        column("Behind its queue", "behind_ns"),
        column("Depending", "depending_ns"),
        column("Rest", "rest_ns"),
    ]);
    let mut list = summary.kernels();
    list.extend(summary.other_work());
    list.retain(|work| work.latency.count > 0);
    // Waiting behind work of the queue is no cost: the device was busy.
    let cost = |work: &gputrail_analysis::summary::WorkSummary| match work.parts.count {
        0 => work.latency.total,
        _ => work.parts.in_call + work.parts.rest,
    };
    list.sort_by_key(|work| std::cmp::Reverse(cost(work)));
    let rows = list.iter().map(|work| {
        let latency = &work.latency;
        let mut row = vec![Cell::Text(work.name.clone()), Cell::Count(latency.count)];
        row.extend(spread(latency, time));
        let parts = &work.parts;
        let mean = |sum: u64| sum.checked_div(parts.count).map_or(Cell::Nothing, time);
        row.extend([
            mean(parts.in_call),
            mean(parts.behind),
            mean(parts.depending),
            mean(parts.rest),
        ]);
        row
    });
    Table {
        name: column(
            "Launch latency from the begin of the call to the start, and the means of its parts",
            "latency",
        ),
        rows: rows.collect(),
        columns,
    }
}

/// Communication of kernels by operation and group.
pub fn collectives(summary: &Summary) -> Table {
    let rows = summary.collectives().into_iter().map(|(key, sum)| {
        let bandwidth = match (sum.sizes.count, sum.sized_time.0) {
            (0, _) | (_, 0) => Cell::Nothing,
            (_, took) => Cell::Bytes((sum.sizes.total as f64 * 1e9 / took as f64) as u64),
        };
        let bytes = match sum.sizes.count {
            0 => Cell::Nothing,
            _ => Cell::Bytes(sum.sizes.total),
        };
        let ranks = match key.ranks {
            0 => Cell::Nothing,
            ranks => Cell::Count(ranks),
        };
        vec![
            Cell::Text(key.operation),
            Cell::Text(key.group),
            ranks,
            time(sum.times.total),
            Cell::Count(sum.times.count),
            time(sum.times.median()),
            time(sum.times.most),
            bytes,
            bandwidth,
        ]
    });
    Table {
        name: column("Collective operations", "collectives"),
        columns: vec![
            column("Operation", "operation"),
            column("Group", "group"),
            column("Ranks", "ranks"),
            TOTAL,
            COUNT,
            column("Median", "median_ns"),
            column("Max", "max_ns"),
            column("Bytes", "total_bytes"),
            column("Bytes/s", "bytes_per_second"),
        ],
        rows: rows.collect(),
    }
}

/// The peaks of allocated memory.
pub fn memory(summary: &Summary) -> Table {
    let begin = summary.span().map_or(0, |(first, _)| first.0);
    let rows = summary.memory_peaks().map(|(process, name, bytes, at)| {
        let during = summary.host_during(process, at, Nanos(at.0.saturating_add(1)));
        vec![
            Cell::Text(summary.process_label(process).text()),
            Cell::Text(name.to_owned()),
            Cell::Bytes(bytes),
            time(at.0.saturating_sub(begin)),
            Cell::Instant(at),
            during.map_or(Cell::Nothing, |(name, _)| Cell::Text(name.to_owned())),
        ]
    });
    Table {
        name: column("Peaks of allocated memory", "memory"),
        columns: vec![
            PROCESS,
            column("Counter", "counter"),
            column("Peak", "peak_bytes"),
            column("After", "after_ns"),
            column("At", "at_ns"),
            column("During", "during"),
        ],
        rows: rows.collect(),
    }
}
