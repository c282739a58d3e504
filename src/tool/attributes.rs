//! Attributes and limits of the process.

use super::Error;
use super::functions::{call, check};
use gputrail_interface::attributes::{Limits, ThreadIds};
pub use gputrail_interface::c::{AttributeValues, LimitValues, SizedStruct};
use gputrail_record::Nanos;

/// Attributes of the process. They may be read at any time, and set before the first context is started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// Bytes of a buffer's blocks together, where its options say nothing else.
    pub pool_bytes: u64,
    /// Bytes of a block, where a buffer's options say nothing else.
    pub block_bytes: u64,
    /// Threads that may record into a buffer at a time, where its options say nothing else.
    pub threads: u32,
    /// The kind of thread id in records of threads that make their first call from now on.
    pub thread_ids: ThreadIds,
    /// Whether completions say when work was queued and submitted. Where they do not, these times are none.
    pub latency_times: bool,
    /// The period at which clocks, temperature, power and fan of agents are read for buffers that want records of that
    /// kind. Where the recording has a period of its own, the shorter one holds. CUDA reports them at a period of its own.
    pub environment_period: Option<Nanos>,
}

impl Attributes {
    /// The current attributes.
    ///
    /// # Errors
    ///
    /// `NOT_INITIALISED` after the tool's end.
    pub fn get() -> Result<Attributes, Error> {
        let mut now = AttributeValues::blank();
        // SAFETY: a structure of this size.
        check(unsafe { call!(gputrail_attributes_get(&mut now)) })?;
        Ok(Attributes {
            pool_bytes: now.pool_bytes,
            block_bytes: now.block_bytes,
            threads: now.threads,
            thread_ids: if now.thread_ids == ThreadIds::Pthread as u32 {
                ThreadIds::Pthread
            } else {
                ThreadIds::System
            },
            latency_times: now.latency_times != 0,
            environment_period: Some(now.environment_period).filter(|period| *period != Nanos(0)),
        })
    }

    /// Sets the attributes from now on.
    ///
    /// # Errors
    ///
    /// `ATTRIBUTES_LOCKED` once a context of the process has been started, `LAYOUT` for invalid buffer sizes.
    /// Nothing is changed then.
    pub fn set(&self) -> Result<(), Error> {
        let values = AttributeValues {
            pool_bytes: self.pool_bytes,
            block_bytes: self.block_bytes,
            threads: self.threads,
            thread_ids: self.thread_ids as u32,
            latency_times: self.latency_times.into(),
            environment_period: self.environment_period.unwrap_or(Nanos(0)),
            ..AttributeValues::blank()
        };
        // SAFETY: a structure of this size.
        check(unsafe { call!(gputrail_attributes_set(&values)) })
    }
}

/// The limits of the process: how many buffers, contexts and so on it may have at a time.
///
/// # Errors
///
/// `NOT_AVAILABLE` outside of a program that gputrail observes.
pub fn limits() -> Result<Limits, Error> {
    let mut all = LimitValues::blank();
    // SAFETY: a structure of this size.
    check(unsafe { call!(gputrail_limits_get(&mut all)) })?;
    Ok(Limits {
        buffers: all.buffers as usize,
        subscribers: all.subscribers as usize,
        contexts: all.contexts as usize,
        callback_threads: all.callback_threads as usize,
        smallest_client_block: all.smallest_block as usize,
    })
}
