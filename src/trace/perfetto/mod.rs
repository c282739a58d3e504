//! Perfetto traces: writing, reading, merging.
//!
//! [`Exporter`] consumes the [model](super::model) and decides which track shows an event. Each track writes its packets:
//! the frequent kinds are encoded by hand ([`wire`]), the others through the messages of [`schema`].
//! [`reader::TraceReplay`] produces the model from a trace. Perfetto opens traces without errors from version 52 on; newer
//! versions show more. `docs/trace.md` lists the contents of a trace.

mod calls;
mod counters;
mod events;
mod exporter;
mod header;
pub mod merge;
mod names;
mod packets;
pub mod reader;
mod rows;
mod samples;
pub mod schema;
mod stacks;
mod trace_file;
pub mod wire;
mod work;

pub use exporter::Exporter;
pub use packets::CompressedGroups;
