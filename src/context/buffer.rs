//! Buffers of tools: memory, a thread that delivers, and what was dropped.

use super::ToolError;
use crate::buffer::{
    BlockView, Buffer, Collector, CollectorOptions, Layout, Mapping, Policy, Sink,
};
use crate::process;
use crate::record::{KINDS, Kind};
use crate::recorder::{DEFAULT_BLOCK_BYTES, DEFAULT_LANES, DEFAULT_POOL_BYTES};
use crate::switchboard::{BufferKey, Switchboard};
use crate::sync::lock_std;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a buffer is made.
#[derive(Clone, Debug)]
pub struct BufferOptions {
    /// Bytes of all its blocks together.
    pub pool_bytes: usize,
    /// Bytes of a block: each recording thread holds one. A multiple of 4096.
    pub block_bytes: usize,
    /// Bytes in a thread's block from which on they are delivered at the next look; 0 delivers whatever is there,
    /// a block's size or more only full blocks.
    pub watermark: u32,
    /// What happens when no block is empty.
    pub policy: Policy,
    /// Longest time between two looks.
    pub period: Duration,
    /// Threads that may record at a time.
    pub threads: u32,
}

impl Default for BufferOptions {
    fn default() -> Self {
        BufferOptions {
            pool_bytes: DEFAULT_POOL_BYTES,
            block_bytes: DEFAULT_BLOCK_BYTES,
            watermark: u32::MAX,
            policy: Policy::Discard,
            period: Duration::from_millis(100),
            threads: DEFAULT_LANES,
        }
    }
}

/// A buffer of a tool's own. Dropping it destroys it: what has been recorded is delivered first.
pub struct RecordBuffer {
    board: Arc<Switchboard>,
    key: BufferKey,
    buffer: Buffer,
    collector: Collector,
    failed: Arc<AtomicBool>,
    /// Drops that [`RecordBuffer::dropped`] has told.
    told: Mutex<[u64; KINDS]>,
}

/// Records that were dropped, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drops([u64; KINDS]);

impl Drops {
    /// How many of `kind`.
    pub fn of(&self, kind: Kind) -> u64 {
        self.0[kind.index()]
    }

    /// How many of all kinds.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

thread_local! {
    /// Whether the calling thread is in a buffer's callback.
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
}

/// A tool's callback, as a sink.
struct Deliver<F> {
    deliver: F,
    failed: Arc<AtomicBool>,
}

impl<F: FnMut(&BlockView<'_>) + Send> Sink for Deliver<F> {
    fn records(&mut self, view: &BlockView<'_>) {
        if self.failed.load(Ordering::Relaxed) {
            return;
        }
        DELIVERING.set(true);
        let result = catch_unwind(AssertUnwindSafe(|| (self.deliver)(view)));
        DELIVERING.set(false);
        if let Err(panic) = result {
            self.failed.store(true, Ordering::Relaxed);
            // Its payload may be anything, and may panic when it is dropped.
            std::mem::forget(panic);
        }
    }
}

impl RecordBuffer {
    /// A buffer of this process. `deliver` gets what has been recorded, in place, in runs of one thread's records
    /// in the order in which it wrote them; on a thread of ours, or on one that flushes. If it panics, it is
    /// not called again.
    ///
    /// # Errors
    ///
    /// [`ToolError::Layout`] for sizes that make no pool; [`ToolError::Memory`], [`ToolError::Thread`] when the system
    /// refuses; [`ToolError::TooMany`] with 32 buffers in the process; [`ToolError::NotAvailable`].
    pub fn create(
        options: BufferOptions,
        deliver: impl FnMut(&BlockView<'_>) + Send + 'static,
    ) -> Result<RecordBuffer, ToolError> {
        let board = process::begin_for_tool().ok_or(ToolError::NotAvailable)?;
        Self::on(board, options, deliver)
    }

    /// A buffer for what comes by way of `board`.
    ///
    /// # Errors
    ///
    /// As for [`RecordBuffer::create`].
    pub fn on(
        board: &Arc<Switchboard>,
        options: BufferOptions,
        deliver: impl FnMut(&BlockView<'_>) + Send + 'static,
    ) -> Result<RecordBuffer, ToolError> {
        let layout = Layout::new(options.pool_bytes, options.block_bytes, options.threads)?;
        let mapping = Mapping::anonymous(layout)?;
        // A forked child has no use for its parent's blocks; where the system does not know how, it gets a copy.
        let _ = mapping.keep_from_children();
        let buffer = Buffer::new(mapping, options.policy);
        let failed = Arc::new(AtomicBool::new(false));
        let sink = Deliver {
            deliver,
            failed: failed.clone(),
        };
        let collecting = CollectorOptions {
            period: options.period,
            watermark: options.watermark,
        };
        let collector = Collector::start(buffer.clone(), vec![Box::new(sink)], collecting)
            .map_err(ToolError::Thread)?;
        let key = match board.add_buffer(buffer.clone()) {
            Ok(key) => key,
            Err(too_many) => {
                collector.finish();
                return Err(too_many.into());
            }
        };
        Ok(RecordBuffer {
            board: board.clone(),
            key,
            buffer,
            collector,
            failed,
            told: Mutex::new([0; KINDS]),
        })
    }

    /// Delivers everything that has been recorded so far, on the calling thread, and returns when that is done.
    ///
    /// # Errors
    ///
    /// [`ToolError::Busy`] from within a buffer's callback.
    pub fn flush(&self) -> Result<(), ToolError> {
        if DELIVERING.get() {
            return Err(ToolError::Busy);
        }
        self.collector.flush();
        Ok(())
    }

    /// What has been dropped since this was asked the last time.
    pub fn dropped(&self) -> Drops {
        let now = self.buffer.dropped();
        let mut told = lock_std(&self.told);
        let mut since = [0; KINDS];
        for (kind, since) in since.iter_mut().enumerate() {
            *since = now[kind].saturating_sub(told[kind]);
            told[kind] = told[kind].max(now[kind]);
        }
        Drops(since)
    }

    /// What has been dropped since the buffer was created.
    pub fn dropped_in_total(&self) -> Drops {
        Drops(self.buffer.dropped())
    }

    /// Whether its callback has panicked, so that records are no longer delivered.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    pub(super) fn slot_on(&self, board: &Arc<Switchboard>) -> Result<usize, ToolError> {
        Arc::ptr_eq(board, &self.board)
            .then_some(self.key.slot)
            .ok_or(ToolError::NoSuchBuffer)
    }

    fn end(&self) {
        if self.board.remove_buffer(self.key).is_some() {
            self.collector.finish();
        }
    }
}

impl Drop for RecordBuffer {
    fn drop(&mut self) {
        if !DELIVERING.get() {
            return self.end();
        }
        // From within a buffer's callback: what it would wait for may be this very thread.
        let (board, key, collector) = (self.board.clone(), self.key, self.collector.clone());
        let later = move || {
            if board.remove_buffer(key).is_some() {
                collector.finish();
            }
        };
        // Where no thread can be had, the buffer lives on until the process ends.
        let _ = std::thread::Builder::new()
            .name("gputrail".into())
            .spawn(later);
    }
}

impl std::fmt::Debug for RecordBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordBuffer")
            .field("slot", &self.key.slot)
            .field("layout", self.buffer.mapping().layout())
            .finish_non_exhaustive()
    }
}
