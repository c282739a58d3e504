//! Traces: the joined model of a recording, its producers, and its Perfetto form.

mod arguments;
pub mod capture;
mod convert;
mod directory;
pub mod filter;
pub mod json;
pub mod model;
pub mod perfetto;
pub mod selection;
pub mod sorter;

pub use convert::{ConvertError, Converted, convert};
