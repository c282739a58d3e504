//! Files of other profilers into gputrail's traces and tables.

mod behind;
mod conversion;
pub mod export;
pub mod import;
mod parts;
mod size;

pub use conversion::*;
