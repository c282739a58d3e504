//! PC sampling of agents that are processors of the host and run kernels on threads of the program,
//! such as PoCL's.
//!
//! Each thread of the program has its own perf event (`event`), stamped with the clock that PoCL uses for its work. A
//! drain thread inside the program empties the rings of the events ten times a second, finds the kernel whose code a
//! sample lies in (`mappings`) and the dispatch that it belongs to (`attribution`), and writes the records. It exists
//! only while an agent is sampled. It runs inside the program because completions are known there, tools receive their
//! records there, the file of a kernel must be copied before it is deleted, and recording must work without a parent.
//! It blocks all signals. A forked child has neither the thread nor the events.
//!
//! Where perf events are forbidden, POSIX timers can take the samples on request (`source`, `timer`).
//!
//! The events of the threads that run kernels can be counted, too (`counters`): for each dispatch, or at a period.
//!
//! Samples outside of kernels (the runtime, its compiler, the program) are counted by mapping. A malformed sample is an
//! `InvalidSample` record. Source lines come from builds with `-g`, also in binaries that the program gets from the runtime; a
//! kernel's library that was deleted before it could be copied is restored from memory (`deleted_file`), without lines.

mod attribution;
mod clocks;
mod counters;
mod deleted_file;
mod event;
mod image;
mod mappings;
mod ring;
mod sampler;
mod source;
mod threads;
mod timer;

pub use attribution::EnqueuedKernel;
pub(crate) use counters::CountedKernel;
pub use counters::HostCounters;
pub use ring::{RingRecord, RingRecords, RingSample};
pub use sampler::HostSampler;
pub use source::permitted;

pub(crate) use attribution::DispatchEvent;
