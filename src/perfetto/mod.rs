//! Captures into Perfetto traces.
//!
//! [`TraceWriter`] takes what happened, at the level of what a trace shows, and writes packets. The
//! hot kinds of packets are encoded by hand ([`wire`]), the others through the messages of
//! [`schema`]. Traces open without errors in Perfetto from version 52 on; newer versions show more.

mod events;
mod header;
mod names;
mod packets;
pub mod schema;
pub mod wire;
mod work;
mod writer;

pub use events::{Annotation, Event, Label, Value};
pub use header::{Machine, SystemClocks};
pub use names::Name;
pub use work::{
    ContextApi, Detail, DetailValue, GpuContext, HardwareQueue, Launch, QueueDescription,
    Resources, Stage, Work,
};
pub use writer::{Device, Gpu, ProcessTrack, TraceWriter, Track};

#[cfg(test)]
mod tests;
