//! Perfetto traces: writing, reading, merging.
//!
//! [`Exporter`] consumes the [model](super::model) and decides which track shows an event. Below it, [`TraceWriter`]
//! writes packets: the frequent kinds are encoded by hand ([`wire`]), the others through the messages of [`schema`].
//! [`reader::Replay`] produces the model from a trace. Perfetto opens traces without errors from version 52 on; newer
//! versions show more. `docs/trace.md` lists the contents of a trace.

mod counters;
mod events;
mod exporter;
mod header;
pub mod merge;
mod names;
mod packets;
pub mod reader;
mod samples;
pub mod schema;
mod stacks;
pub mod wire;
mod work;
mod writer;

pub use events::{Annotation, Event, Label};
pub use exporter::Exporter;
pub use names::Name;
pub use packets::CompressedGroups;
pub use work::{
    ContextApi, Detail, DetailValue, GpuContext, HardwareQueue, QueueDescription, RenderStageEvent,
};
pub use writer::{Device, ProcessTrack, TraceWriter, Track};
