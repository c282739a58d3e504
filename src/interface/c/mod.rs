//! The structures, handles, functions of tools and statuses of the C API, as `include/gputrail.h` declares them. The header
//! is generated from this module, from the records, and from the functions in `gputrail-inject`.
//!
//! Structures begin with their size ([`SizedStruct`]), so that a library of another version knows which of their fields are
//! there.

mod arguments;
mod attributes;
mod buffer;
mod callback;
mod context;
mod counter_group;
mod counter_pool;
mod counter_sessions;
mod counter_set;
mod counting;
mod external;
mod flight;
mod handles;
mod log;
mod markers;
mod memory;
mod metric;
mod sampling;
mod simulation;
mod sized;
mod source_line;
mod status;
mod threads;
mod timeline;
mod tools;

pub use arguments::*;
pub use attributes::*;
pub use buffer::*;
pub use callback::*;
pub use context::*;
pub use counter_group::*;
pub use counter_pool::*;
pub use counter_sessions::*;
pub use counter_set::*;
pub use counting::*;
pub use external::*;
pub use flight::*;
pub use handles::*;
pub use log::*;
pub use markers::*;
pub use memory::*;
pub use metric::*;
pub use sampling::*;
pub use simulation::*;
pub use sized::SizedStruct;
pub use source_line::*;
pub use status::*;
pub use threads::*;
pub use timeline::*;
pub use tools::*;

/// Version of the C API, which tools are built for: raised when one built for an earlier version would no longer work.
pub const GPUTRAIL_API_VERSION: u32 = 2;
