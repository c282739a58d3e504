//! Recordings of rocprofv3, the profiler of ROCm: folders of CSV.
//!
//! `docs/convert.md` says what becomes of each column.

mod csv;
mod csv_reader;
mod table;
#[cfg(test)]
mod tests;

pub(super) use csv_reader::read as read_csv;

/// Whether a file that begins so is a table of rocprofv3.
pub(super) fn is_csv(head: &[u8]) -> bool {
    table::Table::is_head(head)
}
