//! Recordings of rocprofv3, the profiler of ROCm: folders of CSV, JSON, and databases (rocpd).
//!
//! `docs/convert-tables.md` says what becomes of each column.

mod agents;
mod calls;
mod csv_reader;
mod json;
mod json_reader;
#[cfg(test)]
mod json_tests;
mod kernels;
mod memory;
mod reader;
#[cfg(feature = "sqlite")]
mod rocpd;
#[cfg(all(test, feature = "sqlite"))]
mod rocpd_tests;
mod samples;
mod table;
#[cfg(test)]
mod tests;

pub(super) use csv_reader::read as read_csv;
pub(super) use json_reader::{is_json, read as read_json};
#[cfg(feature = "sqlite")]
pub(super) use rocpd::{is_rocpd, read as read_rocpd};

/// Whether a file that begins so is a table of rocprofv3.
pub(super) fn is_csv(head: &[u8]) -> bool {
    table::RocprofTable::is_head(head)
}
