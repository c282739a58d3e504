//! `gputrail summary`: prints where the time of a recording went, as tables.

pub(crate) mod columns;
mod launches;
mod places;

use self::columns::{COUNT, NAME, SHARE, SIZES, TIMES, TOTAL, column, share, spread, time};
use crate::cli::contents::Contents;
use crate::cli::summary::{By, Summary as Arguments};
use crate::failure::{DAMAGED, Failure};
use crate::flame::{self, FlameUnit};
use crate::input;
use crate::messages::say;
use crate::proton;
use crate::tables::{Cell, Column, Table};
use anyhow::anyhow;
use gputrail_analysis::advice::{Evidence, advise};
use gputrail_analysis::summary::{
    CounterSummary, Distribution, InvalidCounter, PeriodSummary, RangeCounterSummary, RangeKernel,
    RangeSummary, Roofline, Summary, WorkSummary,
};
use gputrail_record::Nanos;

/// Runs the command; the result is the exit code.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    if let Some(trees) = proton::open(&arguments.files)? {
        return proton::print(&trees, arguments);
    }
    let mut summary = Summary::with_steps(&arguments.step);
    match (arguments.by, arguments.flame) {
        (Some(By::Stack), _) => summary = summary.with_launch_stacks(),
        (None, Some(_)) => summary = summary.with_stacks(),
        (Some(_), Some(_)) => return Err(anyhow!("--flame: expected --by stack or none").into()),
        (_, None) => {}
    }
    let problems = input::read(&arguments.files, Contents::default(), &mut summary)?;
    for problem in &problems {
        say!("{problem}");
    }
    if let Some(format) = arguments.flame {
        let tree = match arguments.by {
            Some(_) => summary.launch_stack_tree(),
            None => summary.take_stacks(),
        };
        flame::print(
            &tree.unwrap_or_default(),
            (format, FlameUnit::DeviceTime),
            arguments.tables.output.as_deref(),
        )?;
        return Ok(if problems.is_empty() { 0 } else { DAMAGED });
    }
    let mut tables = tables_of(&summary, problems.len() as u64, arguments.by);
    let mut advice = advise(&Evidence::of(&summary));
    advice.truncate(crate::advise::FIRST);
    let begin = summary.span().map_or(Nanos(0), |(first, _)| first);
    tables.push(crate::advise::short_table(&advice, begin));
    arguments.tables.print(tables)?;
    if problems.is_empty() {
        Ok(0)
    } else {
        Ok(DAMAGED)
    }
}

/// The tables of a summary. `problems` is the number of problems of the recording.
/// `by` is the grouping of the first table; without one, several processes with work of devices are compared.
pub fn tables_of(summary: &Summary, problems: u64, by: Option<By>) -> Vec<Table> {
    let settled = summary.places();
    let mut tables = places::first(summary, &settled, by);
    tables.extend([
        recording(summary, problems),
        missing(summary),
        calls(summary),
        failures(summary),
        work(column("Kernels", "kernels"), &summary.kernels()),
        work(
            column("Memory operations and barriers by time", "operations"),
            &summary.other_work(),
        ),
        work(
            column(
                "Graph launches, of which the work above is part",
                "graph_launches",
            ),
            &summary.graph_launches(),
        ),
        sizes(summary),
        launches::latencies(summary),
        devices(summary),
        places::communication(summary, &settled),
        launches::collectives(summary),
        launches::memory(summary),
        gaps(summary),
    ]);
    tables.extend(places::steps(summary, &settled));
    if by != Some(By::Range) {
        tables.extend(ranges(summary));
    }
    tables.push(counters(summary));
    tables.push(range_counters(summary));
    tables.push(invalid_counters(summary));
    tables.push(period_counters(summary));
    tables.push(rooflines(summary));
    tables
}

fn recording(summary: &Summary, problems: u64) -> Table {
    let length = summary.span().map_or(Cell::Nothing, |(first, last)| {
        time(last.0.saturating_sub(first.0))
    });
    let (_, off) = summary.off();
    let late = summary
        .gpus()
        .iter()
        .filter_map(|gpu| gpu.busy.as_ref())
        .map(|busy| busy.late)
        .sum();
    let rows = [
        ("length", length),
        ("records lost", Cell::Count(summary.lost())),
        ("switched off", time(off.0)),
        ("places that could not be read", Cell::Count(problems)),
        ("intervals too late for busy times", Cell::Count(late)),
        (
            "medians are off by at most",
            Cell::Share(Distribution::MEDIAN_ERROR),
        ),
    ];
    Table {
        name: column("Recording", "recording"),
        columns: vec![column("What", "what"), column("Value", "value")],
        rows: rows
            .into_iter()
            .map(|(what, value)| vec![Cell::Text(what.into()), value])
            .collect(),
    }
}

fn missing(summary: &Summary) -> Table {
    let row =
        |(reason, count): (&String, &u64)| vec![Cell::Count(*count), Cell::Name(reason.clone())];
    Table {
        name: column(
            "MISSING records, for other reasons than a want of memory",
            "missing",
        ),
        // The long text comes last.
        columns: vec![COUNT, column("Reason", "reason")],
        rows: summary.missing().iter().map(row).collect(),
    }
}

fn calls(summary: &Summary) -> Table {
    let functions = summary.functions();
    let all = functions.iter().map(|function| function.times.total).sum();
    let mut columns = vec![NAME, SHARE, TOTAL, column("Calls", "count")];
    columns.extend(TIMES);
    columns.extend([
        column("Failed", "failed"),
        column("Unfinished", "unfinished"),
    ]);
    let rows = functions.iter().map(|function| {
        let times = &function.times;
        let mut row = vec![
            Cell::Text(function.name.clone()),
            share(times.total, all),
            time(times.total),
            Cell::Count(times.count + function.unfinished),
        ];
        row.extend(spread(times, time));
        row.push(Cell::Count(function.failures.values().sum()));
        row.push(Cell::Count(function.unfinished));
        row
    });
    Table {
        name: column("API calls", "calls"),
        rows: rows.collect(),
        columns,
    }
}

/// The call stacks of launches.
fn call_stacks(summary: &Summary) -> Table {
    let stacks = summary.launch_stacks().unwrap_or_default();
    let all = stacks.iter().map(|(stack, _)| stack.time.0).sum();
    let rows = stacks.iter().map(|(stack, work)| {
        vec![
            share(stack.time.0, all),
            time(stack.time.0),
            Cell::Count(stack.count),
            Cell::Text((*work).to_owned()),
            Cell::Text(
                stack
                    .stack
                    .as_deref()
                    .unwrap_or("(no call stack)")
                    .to_owned(),
            ),
        ]
    });
    Table {
        name: column(
            "Device time by the call stack of the launch, innermost function first",
            "by_stack",
        ),
        rows: rows.collect(),
        // The long text comes last.
        columns: vec![
            SHARE,
            TOTAL,
            COUNT,
            column("Most of it in", "work"),
            column("Call stack", "stack"),
        ],
    }
}

fn failures(summary: &Summary) -> Table {
    let rows = summary.failures().into_iter().map(|failure| {
        vec![
            Cell::Text(failure.name),
            Cell::Text(gputrail_interface::return_codes::text(
                failure.domain,
                failure.code,
            )),
            Cell::Count(failure.count),
        ]
    });
    Table {
        name: column("Failed calls", "failures"),
        columns: vec![NAME, column("Result", "result"), COUNT],
        rows: rows.collect(),
    }
}

fn work(name: Column, list: &[WorkSummary]) -> Table {
    let all = list.iter().map(|work| work.times.total).sum();
    let mut columns = vec![NAME, SHARE, TOTAL, COUNT];
    columns.extend(TIMES);
    columns.extend([
        column("Failed", "failed"),
        column("Unfinished", "unfinished"),
    ]);
    let rows = list.iter().map(|work| {
        let times = &work.times;
        let mut row = vec![
            Cell::Text(work.name.clone()),
            share(times.total, all),
            time(times.total),
            Cell::Count(times.count + work.untimed),
        ];
        row.extend(spread(times, time));
        row.extend([Cell::Count(work.failed), Cell::Count(work.unfinished)]);
        row
    });
    Table {
        name,
        rows: rows.collect(),
        columns,
    }
}

fn sizes(summary: &Summary) -> Table {
    let mut list = summary.other_work();
    list.retain(|work| work.sizes.count > 0);
    list.sort_by_key(|work| std::cmp::Reverse(work.sizes.total));
    let all = list.iter().map(|work| work.sizes.total).sum();
    let mut columns = vec![NAME, SHARE, column("Total", "total_bytes"), COUNT];
    columns.extend(SIZES);
    columns.push(column("Bytes/s", "bytes_per_second"));
    let rows = list.iter().map(|work| {
        let sizes = &work.sizes;
        let mut row = vec![
            Cell::Text(work.name.clone()),
            share(sizes.total, all),
            Cell::Bytes(sizes.total),
            Cell::Count(sizes.count),
        ];
        row.extend(spread(sizes, Cell::Bytes));
        // Copies that a graph made may have times and no size.
        row.push(match work.sized_time {
            0 => Cell::Nothing,
            nanos => Cell::Bytes((sizes.total as f64 * 1e9 / nanos as f64) as u64),
        });
        row
    });
    Table {
        name: column("Memory operations by size", "sizes"),
        rows: rows.collect(),
        columns,
    }
}

fn devices(summary: &Summary) -> Table {
    let rows = summary.gpus().into_iter().map(|gpu| {
        let mut row = vec![
            Cell::Text(gpu.title.clone()),
            Cell::Text(places::processes(summary, &gpu.processes)),
            Cell::Text(gpu.name.clone()),
        ];
        match &gpu.busy {
            None => row.extend([const { Cell::Nothing }; 7]),
            Some(busy) => {
                let span = busy.last.0.saturating_sub(busy.first.0);
                let gap = busy
                    .largest_gap
                    .map_or(0, |(from, to)| to.0.saturating_sub(from.0));
                row.extend([
                    Cell::Share(busy.share()),
                    time(busy.busy.0),
                    time(span.saturating_sub(busy.busy.0)),
                    time(gap),
                    Cell::Time(gpu.kernels),
                    Cell::Time(gpu.transfers),
                    Cell::Time(gpu.overlap),
                ]);
            }
        }
        row
    });
    Table {
        name: column("Devices, from their first work to their last", "devices"),
        columns: vec![
            column("Device", "device"),
            columns::PROCESS,
            NAME,
            column("Busy", "busy_share"),
            column("Busy", "busy_ns"),
            column("Idle", "idle_ns"),
            column("Largest gap", "largest_gap_ns"),
            column("Kernels", "kernels_ns"),
            column("Transfers", "transfers_ns"),
            column("Both at once", "overlap_ns"),
        ],
        rows: rows.collect(),
    }
}

/// Ranges, operators, and the kernels of both.
fn ranges(summary: &Summary) -> Vec<Table> {
    let all = summary.ranges();
    let named = |title, key, operators| {
        let wanted = all.iter().filter(|range| range.is_operator == operators);
        range_table(column(title, key), summary, wanted)
    };
    vec![
        named(
            "Ranges of markers, and what was called and enqueued in them",
            "ranges",
            false,
        ),
        named(
            "Operators, and what was called and enqueued in them",
            "operators",
            true,
        ),
        range_kernels(summary),
    ]
}

fn range_table<'r>(
    name: Column,
    summary: &Summary,
    ranges: impl Iterator<Item = &'r RangeSummary>,
) -> Table {
    // Ranges nest: each one has its share of the whole recording.
    let length = summary.span();
    let length = length.map_or(0, |(first, last)| last.0.saturating_sub(first.0));
    let mut columns = vec![NAME, SHARE, TOTAL, COUNT];
    columns.extend(TIMES);
    columns.extend([
        column("Unfinished", "unfinished"),
        column("Calls", "calls"),
        column("In calls", "calls_ns"),
        column("Device work", "work"),
        column("Work ran", "work_ns"),
    ]);
    let rows = ranges.map(|range| {
        let times = &range.times;
        let mut row = vec![
            Cell::Text(range.name.clone()),
            share(times.total, length),
            time(times.total),
            Cell::Count(times.count + range.unfinished),
        ];
        row.extend(spread(times, time));
        row.extend([
            Cell::Count(range.unfinished),
            Cell::Count(range.calls),
            Cell::Time(range.call_time),
            Cell::Count(range.work),
            Cell::Time(range.work_time),
        ]);
        row
    });
    Table {
        name,
        rows: rows.collect(),
        columns,
    }
}

fn range_kernels(summary: &Summary) -> Table {
    let row = |one: RangeKernel| {
        vec![
            Cell::Text(one.range),
            Cell::Text(one.kernel),
            Cell::Time(one.time),
            Cell::Count(one.count),
            time(one.time.0.checked_div(one.count).unwrap_or(0)),
        ]
    };
    Table {
        name: column("Kernels launched in ranges and operators", "range_kernels"),
        columns: vec![
            column("Range", "range"),
            column("Kernel", "kernel"),
            TOTAL,
            COUNT,
            column("Average", "average_ns"),
        ],
        rows: summary.range_kernels().into_iter().map(row).collect(),
    }
}

fn gaps(summary: &Summary) -> Table {
    let mut rows = Vec::new();
    for gpu in summary.gpus() {
        for (name, gaps) in &gpu.gaps {
            let times = &gaps.times;
            let known = gaps.host.0.saturating_add(gaps.waiting.0);
            rows.push(vec![
                Cell::Text(gpu.title.clone()),
                Cell::Text(places::processes(summary, &gpu.processes)),
                Cell::Text(name.clone()),
                time(times.total),
                Cell::Count(times.count),
                time(times.mean()),
                time(times.most),
                Cell::Time(gaps.host),
                Cell::Time(gaps.waiting),
                time(times.total.saturating_sub(known)),
            ]);
        }
    }
    Table {
        name: column(
            "Gaps by the work that ended them: before it was enqueued, and after",
            "gaps",
        ),
        columns: vec![
            column("Device", "device"),
            columns::PROCESS,
            NAME,
            TOTAL,
            COUNT,
            column("Average", "average_ns"),
            column("Max", "max_ns"),
            column("Nothing enqueued", "host_ns"),
            column("Enqueued, waiting", "waiting_ns"),
            column("Unknown", "unknown_ns"),
        ],
        rows,
    }
}

fn counters(summary: &Summary) -> Table {
    let row = |counter: CounterSummary| {
        vec![
            Cell::Text(counter.kernel),
            Cell::Text(counter.counter),
            Cell::Count(counter.dispatches),
            Cell::Number(counter.min),
            Cell::Number(counter.median),
            Cell::Number(counter.max),
            counter.total.map_or(Cell::Nothing, Cell::Number),
        ]
    };
    Table {
        name: column("Counters and metrics of kernels", "counters"),
        columns: vec![
            column("Kernel", "kernel"),
            column("Counter", "counter"),
            column("Dispatches", "dispatches"),
            column("Min", "min"),
            column("Median", "median"),
            column("Max", "max"),
            column("Sum", "sum"),
        ],
        rows: summary.counters().into_iter().map(row).collect(),
    }
}

fn range_counters(summary: &Summary) -> Table {
    let row = |counter: RangeCounterSummary| {
        vec![
            Cell::Text(counter.range),
            Cell::Text(counter.counter),
            Cell::Count(counter.ranges),
            Cell::Number(counter.min),
            Cell::Number(counter.median),
            Cell::Number(counter.max),
            counter.total.map_or(Cell::Nothing, Cell::Number),
        ]
    };
    Table {
        name: column("Counters and metrics of ranges", "range_counters"),
        columns: vec![
            column("Range", "range"),
            column("Counter", "counter"),
            column("Ranges", "ranges"),
            column("Min", "min"),
            column("Median", "median"),
            column("Max", "max"),
            column("Sum", "sum"),
        ],
        rows: summary.range_counters().into_iter().map(row).collect(),
    }
}

fn invalid_counters(summary: &Summary) -> Table {
    let row = |invalid: InvalidCounter| {
        vec![
            Cell::Text(invalid.kernel),
            Cell::Text(invalid.counter),
            Cell::Count(invalid.values),
            Cell::Text(invalid.reason),
        ]
    };
    Table {
        name: column("Counters and metrics without a number", "invalid_counters"),
        columns: vec![
            column("Kernel or range", "kernel"),
            column("Counter", "counter"),
            column("Values", "dispatches"),
            column("Reason", "reason"),
        ],
        rows: summary.invalid_counters().into_iter().map(row).collect(),
    }
}

fn period_counters(summary: &Summary) -> Table {
    let row = |counter: PeriodSummary| {
        vec![
            Cell::Text(counter.agent),
            Cell::Text(counter.counter),
            Cell::Count(counter.periods),
            Cell::Number(counter.min),
            Cell::Number(counter.median),
            Cell::Number(counter.max),
            counter.total.map_or(Cell::Nothing, Cell::Number),
        ]
    };
    Table {
        name: column(
            "Counters and metrics of devices at a period",
            "period_counters",
        ),
        columns: vec![
            column("Device", "device"),
            column("Counter", "counter"),
            column("Periods", "periods"),
            column("Min", "min"),
            column("Median", "median"),
            column("Max", "max"),
            column("Sum", "sum"),
        ],
        rows: summary.period_counters().into_iter().map(row).collect(),
    }
}

fn rooflines(summary: &Summary) -> Table {
    let row = |roofline: Roofline| {
        let intensity = roofline.intensity();
        vec![
            Cell::Text(roofline.kernel),
            Cell::Number(roofline.operations),
            Cell::Bytes(roofline.bytes as u64),
            intensity.map_or(Cell::Nothing, Cell::Number),
            roofline.busy.map_or(Cell::Nothing, Cell::Share),
            Cell::Text(roofline.counters.join(", ")),
        ]
    };
    Table {
        name: column("Operations and bytes of kernels", "roofline"),
        columns: vec![
            column("Kernel", "kernel"),
            column("Operations", "operations"),
            column("Memory", "bytes"),
            column("Per byte", "operations_per_byte"),
            column("Compute busy", "compute_busy"),
            column("From", "from"),
        ],
        rows: summary.rooflines().into_iter().map(row).collect(),
    }
}
