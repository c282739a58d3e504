//! PC sampling of agents that are processors of the host, and whose kernels run on threads of the program: PoCL's.
//!
//! Each thread of the program has a perf event of its own (`event`), stamped with the clock that stamps the agent's work.
//! A thread of ours in the program drains the events' rings ten times a second, finds out which kernel's code a sample
//! is in (`mappings`) and which dispatch it belongs to (`book`), and writes the records. It is there only while
//! something is sampled. It has to be in the program: the completions are known there, tools get their records there, a
//! kernel's file has to be copied before it vanishes, and it is the same with and without a parent. It takes no signals, and
//! a forked child has neither the thread nor the events.
//!
//! Where perf events are forbidden, timers may take the samples, if that is asked for (`source`, `timer`).
//!
//! Samples outside of kernels (the runtime, its compiler, the program) are counted by where they are.

mod book;
mod clocks;
mod event;
mod image;
mod loaded;
mod mappings;
mod ring;
mod sampler;
mod source;
mod threads;
mod timer;

pub use book::Enqueued;
pub use event::SampleClock;
pub use ring::{RingRecord, RingRecords, Taken};
pub use sampler::HostSampler;
pub use source::SampleSource;

#[cfg(feature = "layer")]
pub(crate) use book::Note;
