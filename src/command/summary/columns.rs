//! Columns and cells that several tables have.

use crate::tables::{Cell, Column};
use gputrail_analysis::summary::Distribution;
use gputrail_record::Nanos;

pub const fn column(title: &'static str, key: &'static str) -> Column {
    Column { title, key }
}

pub const NAME: Column = column("Name", "name");
pub const COUNT: Column = column("Count", "count");
pub const TOTAL: Column = column("Total", "total_ns");
/// The process, or its rank.
pub const PROCESS: Column = column("Process", "process");
pub const SHARE: Column = column("Share", "share");

/// The columns of [`spread`], for times.
pub const TIMES: [Column; 5] = [
    column("Average", "average_ns"),
    column("Median", "median_ns"),
    column("Min", "min_ns"),
    column("Max", "max_ns"),
    column("StdDev", "stddev_ns"),
];

/// The columns of [`spread`], for bytes.
pub const SIZES: [Column; 5] = [
    column("Average", "average_bytes"),
    column("Median", "median_bytes"),
    column("Min", "min_bytes"),
    column("Max", "max_bytes"),
    column("StdDev", "stddev_bytes"),
];

pub fn spread(values: &Distribution, cell: fn(u64) -> Cell) -> [Cell; 5] {
    if values.count == 0 {
        return [const { Cell::Nothing }; 5];
    }
    [
        cell(values.mean()),
        cell(values.median()),
        cell(values.least),
        cell(values.most),
        cell(values.deviation().round() as u64),
    ]
}

pub fn time(nanos: u64) -> Cell {
    Cell::Time(Nanos(nanos))
}

pub fn share(part: u64, whole: u64) -> Cell {
    Cell::Share(match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    })
}
