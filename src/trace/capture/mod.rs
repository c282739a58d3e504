//! Captures as producers of the [model](super::model).
//!
//! [`Captures`] reads the captures of a recording, [`Following`] the capture of a process that still runs. The names
//! and clocks of a capture are known before its records (opening a [`Reader`](gputrail_capture::Reader) reads them), so
//! that the records can be streamed: memory is bounded by the number of names, threads and queues and by the work in
//! flight, not by the length of the recording.
//!
//! A record takes this way: `records` takes it in and converts its times; calls are brought into the order of their
//! begins (`Nesting`) with the work that they submitted or waited for (`links`); enqueues and completions are joined (`join`) and passed
//! on as work (`devices`), after their samples (`sampling`).

mod agents;
mod announced;
mod calls;
mod captures;
mod children;
mod counters;
mod devices;
mod environment;
mod following;
mod functions;
mod graphs;
mod join;
mod lane;
mod links;
mod markers;
mod memory;
mod notes;
mod off;
mod process;
mod ranges;
mod records;
mod report;
mod sampling;
mod stages;
mod thread_markers;
mod times;
mod waits;

pub use captures::{Captures, Options};
pub use following::{FollowOutcome, Following};
pub use gputrail_capture::kernel_names::short_name;
pub use report::Report;
pub use sampling::MAX_SHOWN as MAX_SAMPLES_SHOWN;

use std::borrow::Cow;

use super::model::Stream;
use gputrail_record::{Record, RecordRef};

/// The stream that captures become, and the counts of its contents.
struct StreamOutput<'a> {
    stream: Stream<'a>,
    options: &'a Options,
    report: Report,
}

/// A record whose kind has been looked at.
#[inline]
fn read<'r, R: Record>(record: &RecordRef<'r>) -> Cow<'r, R> {
    record.view().expect("the kind was looked at")
}
