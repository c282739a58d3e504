//! Rows of tables about work and slices, which stand before them in the order of time.

use std::path::Path;

use crate::import::Report;
use crate::import::chrome::record::EventRecord;

/// Most rows about what begins at one time.
const MAX_ROWS: usize = 1 << 10;

/// The rows of one time.
#[derive(Debug)]
pub(super) struct Details<'a> {
    table: &'a Path,
    time: i64,
    rows: Vec<DetailRow>,
}

#[derive(Debug)]
struct DetailRow {
    name: String,
    /// Blocks of arguments.
    args: Vec<u8>,
    offset: u64,
    is_taken: bool,
}

impl<'a> Details<'a> {
    /// No rows yet of `table`.
    pub fn new(table: &'a Path) -> Details<'a> {
        Details {
            table,
            time: i64::MIN,
            rows: Vec::new(),
        }
    }

    /// The stream has come to `time`: counts rows of an earlier time that belonged to nothing.
    pub fn go_to(&mut self, time: i64, report: &mut Report) {
        if self.time == time {
            return;
        }
        self.time = time;
        for row in self.rows.drain(..).filter(|row| !row.is_taken) {
            let reason = "row of a table of kernels that belongs to no kernel of the trace";
            report.unrepresented(self.table, reason, Some(row.offset));
        }
    }

    /// Adds a row.
    pub fn add(&mut self, name: String, record: &EventRecord<'_>, report: &mut Report) {
        if self.rows.len() >= MAX_ROWS {
            let reason = "row of a table of kernels beyond the first 1,024 of one time";
            report.unrepresented(self.table, reason, Some(record.head.offset));
            return;
        }
        self.rows.push(DetailRow {
            name,
            args: record.args.to_owned(),
            offset: record.head.offset,
            is_taken: false,
        });
    }

    /// Calls `take` with the arguments of each row about what is called `name`, once.
    pub fn take(&mut self, name: &str, mut take: impl FnMut(&[u8])) {
        for row in &mut self.rows {
            if !row.is_taken && row.name == name {
                row.is_taken = true;
                take(&row.args);
            }
        }
    }
}
