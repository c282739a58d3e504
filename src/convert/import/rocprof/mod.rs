//! Recordings of rocprof, ROCm's profiler before rocprofv3, and of the roctracer library that it used: the table of kernels
//! (`results.csv`), the database (`results.db`), the trace events (`results.json`), and roctracer's lists in text
//! (`hip_api_trace.txt` and others).
//!
//! All of them have the same records, one for each kernel with its counters, call, operation of a device, copy and marker: each
//! reader offers them as rows. `docs/convert-tables.md` says what becomes of each column.

#[cfg(feature = "sqlite")]
mod database;
mod events;
mod records;
mod table;
#[cfg(test)]
mod tests;
mod text;

#[cfg(feature = "sqlite")]
pub(super) use database::{is_rocprof, read as read_database};
pub(super) use events::{is_events, read as read_events};
pub(super) use table::{is_table, read as read_table};
pub(super) use text::{is_list, read as read_lists};
