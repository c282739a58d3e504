//! The capture: the raw file of records as the lanes wrote them (`.gputrail`).
//!
//! A file header, then chunks. A chunk is written by one write(2), so what is in the file survives
//! the death of the process; it names its size and has checksums, so a torn or damaged one costs
//! itself alone. `schemas/capture.md` describes the format.
//!
//! * [`Writer`] appends chunks: blocks of records, metadata, the end.
//! * [`Reader`] reads all names and clocks first, then streams the records.
//! * [`Follower`] reads a capture while it is being written.
//! * [`recover`] appends what a dead process had committed to its mapping and not yet written.

pub mod code;
mod follow;
mod format;
mod metadata;
pub mod names;
mod reader;
mod readings;
mod recover;
mod writer;

#[cfg(test)]
mod tests;

pub use follow::{Follower, Step};
pub use format::{ChunkKind, FileHeader};
pub use metadata::Metadata;
pub use reader::{Chunk, Chunks, Finding, ReadError, Reader};
pub use recover::{Cause, Recovered, recover};
#[cfg(target_os = "linux")]
pub(crate) use recover::{note, open_calls};
#[cfg(target_os = "linux")]
pub(crate) use writer::whole_bytes;
pub use writer::{CaptureSink, WriteError, Writer};
