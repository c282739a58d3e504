//! Captures into Perfetto traces.
//!
//! [`convert`] makes one trace of the captures of a recording ([`Following`] of one that is still being made), and lets an
//! [`Observer`] hear of all that happened. Below it, [`TraceWriter`] takes what happened, at the level of what a trace shows, and writes packets. The
//! hot kinds of packets are encoded by hand ([`wire`]), the others through the messages of
//! [`schema`]. Traces open without errors in Perfetto from version 52 on; newer versions show more.
//! `docs/trace.md` says what a trace shows, and where.

mod ahead;
mod calls;
mod convert;
mod counters;
mod devices;
mod directory;
mod events;
mod functions;
mod gauges;
mod gpus;
mod header;
mod join;
mod markers;
mod memory;
pub mod merge;
mod names;
mod observer;
mod packets;
mod place;
mod process;
pub mod reader;
mod sampling;
pub mod schema;
mod stages;
mod ties;
mod waits;
pub mod wire;
mod work;
mod writer;

pub use ahead::{Ahead, Following};
pub use convert::{ConvertError, Options, Report, convert};
pub use counters::{BlockDescription, CounterBlock, CounterDescription, CounterUnit, CounterValue};
pub use events::{Annotation, Event, Label, Value};
pub use header::{Machine, SystemClocks};
pub use names::Name;
pub use observer::{Call, DeviceWork, GpuIndex, Missing, Observer, ProcessIndex, WorkKind};
pub use sampling::MAX_SHOWN as MAX_SAMPLES_SHOWN;
pub use work::{
    ContextApi, Detail, DetailValue, GpuContext, HardwareQueue, Launch, QueueDescription,
    Resources, Stage, Work,
};
pub use writer::{Device, Gpu, ProcessTrack, TraceWriter, Track};

#[cfg(test)]
mod tests;
