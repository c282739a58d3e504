//! What holds for the whole process: defaults of buffers, and how sources record (CUPTI: `cuptiActivityGetAttribute`,
//! `cuptiActivitySetAttribute`, `cuptiActivityEnableLatencyTimestamps`, `cuptiSetThreadIdType`).

use super::ToolError;
use crate::collect::attributes;
use crate::collect::recorder::{DEFAULT_BLOCK_BYTES, DEFAULT_LANES, DEFAULT_POOL_BYTES};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

static POOL_BYTES: AtomicUsize = AtomicUsize::new(DEFAULT_POOL_BYTES);
static BLOCK_BYTES: AtomicUsize = AtomicUsize::new(DEFAULT_BLOCK_BYTES);
static THREADS: AtomicU32 = AtomicU32::new(DEFAULT_LANES);
/// A context of a tool has been started.
static LOCKED: AtomicBool = AtomicBool::new(false);

/// What a record's thread id is (CUPTI: `CUpti_ActivityThreadIdType`).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(u32)]
pub enum ThreadIds {
    /// The system's, gettid(2): unlike CUPTI's default it names one thread only while that lives.
    #[default]
    System = 1,
    /// The low half of pthread_self(3) (CUPTI's default).
    Pthread = 0,
}

/// Attributes of the process. They may be read at any time, and set before the first context is started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// Bytes of a buffer's blocks together, where its options say nothing else.
    pub pool_bytes: usize,
    /// Bytes of a block, where a buffer's options say nothing else.
    pub block_bytes: usize,
    /// Threads that may record into a buffer at a time, where its options say nothing else.
    pub threads: u32,
    /// What records of threads that make their first call from now on call their thread.
    pub thread_ids: ThreadIds,
    /// Whether completions say when work was queued and submitted. On at first, unlike CUPTI's: runtimes that are asked
    /// know it anyway. Where it is off these times are 0.
    pub latency_times: bool,
}

/// What a process may have at a time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Buffers.
    pub buffers: usize,
    /// Subscribers.
    pub subscribers: usize,
    /// Contexts.
    pub contexts: usize,
    /// Callback threads.
    pub callback_threads: usize,
    /// Bytes of the smallest block that a client may supply.
    pub smallest_client_block: usize,
}

impl Limits {
    /// The limits of this version.
    pub const ALL: Limits = Limits {
        buffers: crate::collect::switchboard::BUFFERS,
        subscribers: crate::collect::switchboard::SUBSCRIBERS,
        contexts: crate::collect::switchboard::CONTEXTS,
        callback_threads: crate::buffer::CALLBACK_THREADS,
        smallest_client_block: crate::buffer::SMALLEST_CLIENT_BLOCK,
    };
}

impl Attributes {
    /// What holds now.
    pub fn get() -> Attributes {
        Attributes {
            pool_bytes: POOL_BYTES.load(Ordering::Relaxed),
            block_bytes: BLOCK_BYTES.load(Ordering::Relaxed),
            threads: THREADS.load(Ordering::Relaxed),
            thread_ids: match attributes::has_pthread_ids() {
                true => ThreadIds::Pthread,
                false => ThreadIds::System,
            },
            latency_times: attributes::latency_times(),
        }
    }

    /// Lets them hold from now on.
    ///
    /// # Errors
    ///
    /// [`ToolError::AttributesLocked`] once a context has been started; [`ToolError::Layout`] for sizes that make no
    /// pool. Nothing is changed then.
    pub fn set(&self) -> Result<(), ToolError> {
        crate::buffer::Layout::new(self.pool_bytes, self.block_bytes, self.threads)?;
        if LOCKED.load(Ordering::Acquire) {
            return Err(ToolError::AttributesLocked);
        }
        POOL_BYTES.store(self.pool_bytes, Ordering::Relaxed);
        BLOCK_BYTES.store(self.block_bytes, Ordering::Relaxed);
        THREADS.store(self.threads, Ordering::Relaxed);
        attributes::set(self.thread_ids == ThreadIds::Pthread, self.latency_times);
        Ok(())
    }
}

/// A context of a tool starts.
pub(super) fn lock() {
    LOCKED.store(true, Ordering::Release);
}
