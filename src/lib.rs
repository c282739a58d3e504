//! gputrail: an activity-trace collector for GPUs.
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]

pub mod clock;
#[cfg(feature = "perfetto")]
pub mod perfetto;
pub mod record;
