//! The capture: the raw file of records as the lanes wrote them (`.gputrail`).
//!
//! A capture is a file header followed by chunks. One write(2) appends one chunk, so chunks survive the death of the
//! process. A chunk states its size and has checksums, so a torn or damaged chunk does not affect others.
//! `schemas/capture.md` describes the format.
//!
//! * [`Writer`] appends chunks: runs of records, metadata, the end.
//! * [`Reader`] reads all names and clocks first, then streams the records.
//! * [`Follower`] reads a capture while it is being written.
//! * [`joining`] puts the counters of several runs of a program together.
//! * [`recover`] appends the records that a dead process had committed to its mapping but not written.
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

pub mod code;
pub mod description;
mod follow;
mod format;
pub mod join;
pub mod joining;
pub mod kernel_names;
mod metadata;
pub mod names;
#[cfg(target_os = "linux")]
pub mod queue;
mod reader;
mod readings;
mod recover;
mod stacks;
mod writer;

#[cfg(test)]
mod tests;

pub use follow::{Follower, Step};
pub use format::{ChunkKind, FileHeader};
pub use metadata::Metadata;
pub use reader::{CaptureFinding, Chunk, Chunks, ReadError, Reader};
pub use recover::{Cause, Recovered, recover};
#[cfg(target_os = "linux")]
pub use recover::{note, open_calls, write_open_calls};
#[cfg(target_os = "linux")]
pub use writer::complete_bytes;
pub use writer::{CaptureSink, WriteError, Writer};
