//! Attributes of the process: defaults of buffers, and options of sources (CUPTI: `cuptiActivityGetAttribute`,
//! `cuptiActivitySetAttribute`, `cuptiActivityEnableLatencyTimestamps`, `cuptiSetThreadIdType`).

use super::ToolError;
use crate::attributes;
use crate::recorder::{DEFAULT_BLOCK_BYTES, DEFAULT_LANES, DEFAULT_POOL_BYTES};
use gputrail_interface::attributes::{Limits, ThreadIds};
use gputrail_record::Nanos;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

static POOL_BYTES: AtomicUsize = AtomicUsize::new(DEFAULT_POOL_BYTES);
static BLOCK_BYTES: AtomicUsize = AtomicUsize::new(DEFAULT_BLOCK_BYTES);
static THREADS: AtomicU32 = AtomicU32::new(DEFAULT_LANES);
/// Whether a context has been started.
static LOCKED: AtomicBool = AtomicBool::new(false);

/// Attributes of the process. They may be read at any time, and set before the first context is started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessAttributes {
    /// The default size of a buffer's pool, in bytes.
    pub pool_bytes: usize,
    /// The default size of a block, in bytes.
    pub block_bytes: usize,
    /// The default number of threads that may record to a buffer at a time.
    pub threads: u32,
    /// The type of thread ids, for threads that make their first call from now on.
    pub thread_ids: ThreadIds,
    /// Whether completions contain the times of queueing and submission; otherwise these are 0. On by default, unlike
    /// CUPTI's, since the runtimes measure them anyway.
    pub latency_times: bool,
    /// The period at which clocks, temperature, power and fan of agents are read for buffers that want such records
    /// ([`Kind::ENVIRONMENT`](gputrail_record::Kind::ENVIRONMENT)). Where the recording has a period of its own, the shorter one
    /// applies. CUDA reports them at a period of its own.
    pub environment_period: Option<Nanos>,
}

/// The limits of this version.
pub const LIMITS: Limits = Limits {
    buffers: crate::switchboard::BUFFERS,
    subscribers: crate::switchboard::SUBSCRIBERS,
    contexts: crate::switchboard::CONTEXTS,
    callback_threads: gputrail_buffer::CALLBACK_THREADS,
    smallest_client_block: gputrail_buffer::SMALLEST_CLIENT_BLOCK,
};

impl ProcessAttributes {
    /// The current attributes.
    pub fn get() -> ProcessAttributes {
        ProcessAttributes {
            pool_bytes: POOL_BYTES.load(Ordering::Relaxed),
            block_bytes: BLOCK_BYTES.load(Ordering::Relaxed),
            threads: THREADS.load(Ordering::Relaxed),
            thread_ids: if attributes::has_pthread_ids() {
                ThreadIds::Pthread
            } else {
                ThreadIds::System
            },
            latency_times: attributes::latency_times(),
            environment_period: attributes::environment_period_of_tools(),
        }
    }

    /// Whether a context has been started, after which they stay as they are.
    pub(crate) fn are_locked() -> bool {
        LOCKED.load(Ordering::Acquire)
    }

    /// Sets the attributes.
    ///
    /// # Errors
    ///
    /// [`ToolError::AttributesLocked`] once a context has been started; [`ToolError::Layout`] for invalid sizes. The
    /// attributes are unchanged then.
    pub fn set(&self) -> Result<(), ToolError> {
        gputrail_buffer::Layout::new(self.pool_bytes, self.block_bytes, self.threads)?;
        if ProcessAttributes::are_locked() {
            return Err(ToolError::AttributesLocked);
        }
        POOL_BYTES.store(self.pool_bytes, Ordering::Relaxed);
        BLOCK_BYTES.store(self.block_bytes, Ordering::Relaxed);
        THREADS.store(self.threads, Ordering::Relaxed);
        attributes::set(
            self.thread_ids == ThreadIds::Pthread,
            self.latency_times,
            self.environment_period,
        );
        Ok(())
    }
}

/// Locks the attributes when a context starts.
pub(super) fn lock() {
    LOCKED.store(true, Ordering::Release);
}
