//! nvprof, CUDA's profiler before Nsight Systems: its databases (`nvprof -o FILE`, also of the Visual Profiler), and its lists
//! of activities (`nvprof --csv --print-gpu-trace`, `--print-api-trace`).
//!
//! `docs/convert-tables.md` says what becomes of each table and column.

#[cfg(feature = "sqlite")]
mod database;
#[cfg(all(test, feature = "sqlite"))]
mod tests;
mod trace;
#[cfg(test)]
mod trace_tests;
#[cfg(feature = "sqlite")]
mod work;

#[cfg(feature = "sqlite")]
pub(super) use database::{is_nvprof, read as read_database};
pub(super) use trace::{is_trace, read as read_trace};

/// The functions of an API by their numbers in CUPTI, from 1 on: a line for each.
#[cfg(feature = "sqlite")]
const RUNTIME: &str = include_str!("runtime.txt");
#[cfg(feature = "sqlite")]
const DRIVER: &str = include_str!("driver.txt");
