//! Buffers of tools: memory, a thread that delivers, and what was dropped.

use super::{Attributes, ToolError};
use crate::buffer::{
    BlockClient, BlockView, Buffer, CLIENT_BLOCKS, CallbackThread, ClientBlock, Collector,
    CollectorOptions, CompletedBlock, Layout, Mapping, Policy, Sink,
};
use crate::clock;
use crate::collect::delivering::{Delivering, is_delivering};
use crate::collect::process;
use crate::collect::switchboard::{BufferKey, Flush, Switchboard};
use crate::platform::sync::lock_std;
use crate::record::{KINDS, Kind, OverheadKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How a buffer is made.
#[derive(Clone, Debug)]
pub struct BufferOptions {
    /// Bytes of all its blocks together. Not used where a mapping or a client supplies them.
    pub pool_bytes: usize,
    /// Bytes of a block: each recording thread holds one. A multiple of 4096. Not used where a mapping or a client
    /// supplies the blocks.
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
    /// The thread that delivers; `None` for the one that all buffers share which have none.
    pub callback_thread: Option<CallbackThread>,
}

impl Default for BufferOptions {
    /// Sizes are those of [`Attributes`].
    fn default() -> Self {
        let attributes = Attributes::get();
        BufferOptions {
            pool_bytes: attributes.pool_bytes,
            block_bytes: attributes.block_bytes,
            watermark: u32::MAX,
            policy: Policy::Discard,
            period: Duration::from_millis(100),
            threads: attributes.threads,
            callback_thread: None,
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

/// A tool's own code, which is called until it panics.
struct Guarded<T> {
    tool: T,
    failed: Arc<AtomicBool>,
}

impl<T> Guarded<T> {
    fn call<R>(&mut self, call: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let delivering = Delivering::begin();
        let result = catch_unwind(AssertUnwindSafe(|| call(&mut self.tool)));
        drop(delivering);
        match result {
            Ok(result) => Some(result),
            Err(panic) => {
                self.failed.store(true, Ordering::Relaxed);
                // Its payload may be anything, and may panic when it is dropped.
                std::mem::forget(panic);
                None
            }
        }
    }
}

impl<F: FnMut(&BlockView<'_>) + Send> Sink for Guarded<F> {
    fn records(&mut self, view: &BlockView<'_>) {
        self.call(|deliver| deliver(view));
    }
}

impl<C: BlockClient> BlockClient for Guarded<C> {
    fn request(&mut self) -> Option<ClientBlock> {
        self.call(C::request).flatten()
    }

    fn partial(&mut self, view: &BlockView<'_>) {
        self.call(|client| client.partial(view));
    }

    fn complete(&mut self, block: CompletedBlock) {
        self.call(|client| client.complete(block));
    }
}

impl RecordBuffer {
    /// A buffer of this process, in memory of its own. `deliver` gets what has been recorded, in place, in runs of one
    /// thread's records in the order in which it wrote them; on the buffer's callback thread, or on one that flushes
    /// or destroys it. If it panics, it is not called again.
    ///
    /// # Errors
    ///
    /// [`ToolError::Layout`] for sizes that make no pool; [`ToolError::Memory`], [`ToolError::Thread`] when the system
    /// refuses; [`ToolError::TooMany`] with 32 buffers in the process; [`ToolError::NotAvailable`].
    pub fn create(
        options: BufferOptions,
        deliver: impl FnMut(&BlockView<'_>) + Send + 'static,
    ) -> Result<RecordBuffer, ToolError> {
        Self::on(begin()?, options, deliver)
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
        Self::in_mapping_on(board, mapping, options, deliver)
    }

    /// A buffer in memory that the tool supplies: of a file or of memory that processes share, say, where another process
    /// finds what was recorded when this one has died ([`crate::capture::recover`]).
    ///
    /// # Errors
    ///
    /// As for [`RecordBuffer::create`].
    pub fn in_mapping(
        mapping: Mapping,
        options: BufferOptions,
        deliver: impl FnMut(&BlockView<'_>) + Send + 'static,
    ) -> Result<RecordBuffer, ToolError> {
        Self::in_mapping_on(begin()?, mapping, options, deliver)
    }

    /// The same for what comes by way of `board`.
    ///
    /// # Errors
    ///
    /// As for [`RecordBuffer::create`].
    pub fn in_mapping_on(
        board: &Arc<Switchboard>,
        mapping: Mapping,
        options: BufferOptions,
        deliver: impl FnMut(&BlockView<'_>) + Send + 'static,
    ) -> Result<RecordBuffer, ToolError> {
        let failed = Arc::new(AtomicBool::new(false));
        let sink = Guarded {
            tool: deliver,
            failed: failed.clone(),
        };
        Self::collected(board, mapping, options, failed, vec![Box::new(sink)], None)
    }

    /// A buffer whose blocks `client` supplies, and gets back with the records.
    ///
    /// # Errors
    ///
    /// As for [`RecordBuffer::create`].
    pub fn of_client(
        options: BufferOptions,
        client: impl BlockClient + 'static,
    ) -> Result<RecordBuffer, ToolError> {
        Self::of_client_on(begin()?, options, client)
    }

    /// The same for what comes by way of `board`.
    ///
    /// # Errors
    ///
    /// As for [`RecordBuffer::create`].
    pub fn of_client_on(
        board: &Arc<Switchboard>,
        options: BufferOptions,
        client: impl BlockClient + 'static,
    ) -> Result<RecordBuffer, ToolError> {
        let mapping = Mapping::for_client(CLIENT_BLOCKS, options.threads)?;
        let failed = Arc::new(AtomicBool::new(false));
        let client = Guarded {
            tool: client,
            failed: failed.clone(),
        };
        let client = Box::new(client);
        Self::collected(board, mapping, options, failed, Vec::new(), Some(client))
    }

    fn collected(
        board: &Arc<Switchboard>,
        mapping: Mapping,
        options: BufferOptions,
        failed: Arc<AtomicBool>,
        sinks: Vec<Box<dyn Sink>>,
        client: Option<Box<dyn BlockClient>>,
    ) -> Result<RecordBuffer, ToolError> {
        let thread = match options.callback_thread {
            Some(thread) => thread,
            None => board.shared_thread().map_err(ToolError::of_thread)?,
        };
        // A forked child has no use for its parent's blocks; where the system does not know how, it gets a copy.
        let _ = mapping.keep_from_children();
        let buffer = Buffer::new(mapping, options.policy);
        let collecting = CollectorOptions {
            period: options.period,
            watermark: options.watermark,
        };
        let mut collector = Collector::without_thread(buffer.clone(), sinks, collecting);
        if let Some(client) = client {
            collector = collector.with_client(client);
        }
        let key = match board.add_buffer(buffer.clone()) {
            Ok(key) => key,
            Err(too_many) => {
                collector.finish();
                return Err(too_many.into());
            }
        };
        collector.serve_on(&thread);
        Ok(RecordBuffer {
            board: board.clone(),
            key,
            buffer,
            collector,
            failed,
            told: Mutex::new([0; KINDS]),
        })
    }

    /// Has `thread` deliver from now on. The thread that did so before may still be at it when this returns.
    pub fn assign(&self, thread: &CallbackThread) {
        self.collector.serve_on(thread);
    }

    /// Asks the sources after work that has completed, delivers everything that has been recorded so far, on the
    /// calling thread, and returns when that is done.
    ///
    /// # Errors
    ///
    /// [`ToolError::Busy`] from within a callback, of a buffer or of a call.
    pub fn flush(&self) -> Result<(), ToolError> {
        self.flush_after(Flush::Completed)
    }

    /// The same, and device work that has not completed is delivered too, by a completion that is flagged as
    /// [unfinished](crate::record::Unfinished::AT_FLUSH); its real completion comes later (CUPTI:
    /// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`).
    ///
    /// # Errors
    ///
    /// As for [`RecordBuffer::flush`].
    pub fn flush_forced(&self) -> Result<(), ToolError> {
        self.flush_after(Flush::Outstanding(self.key.buffers()))
    }

    fn flush_after(&self, sources: Flush) -> Result<(), ToolError> {
        if is_delivering() || process::is_in_callback() {
            return Err(ToolError::Busy);
        }
        let start = clock::now();
        self.board.flush_sources(sources);
        self.collector.flush();
        process::overhead(OverheadKind::FLUSH, start);
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

    /// Delivers what has been recorded, and ends the buffer: nothing is recorded to it any more.
    pub(crate) fn end(&self) {
        if self.board.remove_buffer(self.key).is_some() {
            self.collector.finish();
        }
    }
}

impl Drop for RecordBuffer {
    fn drop(&mut self) {
        if !is_delivering() {
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
        let _ = crate::platform::internal_thread::spawn(later);
    }
}

fn begin() -> Result<&'static Arc<Switchboard>, ToolError> {
    process::begin_for_tool().ok_or(ToolError::NotAvailable)
}

impl std::fmt::Debug for RecordBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordBuffer")
            .field("slot", &self.key.slot)
            .field("layout", self.buffer.mapping().layout())
            .finish_non_exhaustive()
    }
}
