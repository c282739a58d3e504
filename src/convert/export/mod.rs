//! The model in formats of other programs.

pub(crate) mod chrome;
mod csv;
mod device_rows;

#[cfg(feature = "parquet")]
mod parquet;
mod rows;
pub mod schema;
mod spans;

pub use chrome::ChromeWriter;
pub use csv::CsvFolder;
#[cfg(feature = "parquet")]
pub use parquet::ParquetFolder;
pub use rows::{NoRows, RowSink, RowWriter};
