//! Traces: the joined model of a recording, its producers, and its Perfetto form.

pub mod ahead;
mod arguments;
pub mod capture;
mod directory;
pub mod filter;
pub mod json;
mod make;
pub mod model;
pub mod perfetto;
pub mod ranks;
pub mod selection;
pub mod sorter;

pub use make::{MadeTrace, MakeTraceError, make_trace};
