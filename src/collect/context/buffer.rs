//! Record buffers: memory, delivery, and counts of dropped records.

use super::{ProcessAttributes, ToolError};
use crate::counting::is_choosing;
use crate::delivering::{InCallback, is_delivering};
use crate::process;
use crate::switchboard::{BufferKey, Flush, Switchboard};
use gputrail_buffer::clock;
use gputrail_buffer::platform::sync::lock_std;
use gputrail_buffer::{
    BlockClient, BlockView, Buffer, CLIENT_BLOCKS, CallbackThread, ClientBlock, Collector,
    CollectorOptions, CompletedBlock, Layout, Mapping, Policy, QueuePlace, Sink,
};
use gputrail_record::{KINDS, Kind, OverheadKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The options of a buffer.
#[derive(Clone, Debug)]
pub struct BufferOptions {
    /// The size of all blocks in bytes. Ignored if a mapping or a client supplies them.
    pub pool_bytes: usize,
    /// The size of a block in bytes, a multiple of 4096. Each recording thread holds one. Ignored if a mapping or a
    /// client supplies the blocks.
    pub block_bytes: usize,
    /// The number of bytes in a thread's block from which they are delivered at the next poll. 0 delivers any
    /// records; the size of a block or more delivers full blocks only.
    pub watermark: u32,
    /// The policy when no block is empty.
    pub policy: Policy,
    /// The longest interval between polls.
    pub period: Duration,
    /// The number of threads that may record at a time.
    pub threads: u32,
    /// The thread that delivers, or `None` for the thread shared by such buffers.
    pub callback_thread: Option<CallbackThread>,
    /// The number of empty blocks that a client is asked for ahead of need. 0: one, and more when they run out.
    pub blocks_ahead: u32,
}

impl Default for BufferOptions {
    /// The sizes of [`ProcessAttributes`].
    fn default() -> Self {
        let attributes = ProcessAttributes::get();
        BufferOptions {
            pool_bytes: attributes.pool_bytes,
            block_bytes: attributes.block_bytes,
            watermark: u32::MAX,
            policy: Policy::Discard,
            period: Duration::from_millis(100),
            threads: attributes.threads,
            callback_thread: None,
            blocks_ahead: 0,
        }
    }
}

/// A buffer of a tool. Dropping it delivers all records and destroys it. In a forked child, a buffer of its parent has no
/// records, and dropping it does nothing.
pub struct RecordBuffer {
    board: Arc<Switchboard>,
    key: BufferKey,
    buffer: Buffer,
    collector: Collector,
    failed: Arc<AtomicBool>,
    /// The drops returned by [`RecordBuffer::dropped`].
    reported: Mutex<[u64; KINDS]>,
}

/// The number of dropped records, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drops([u64; KINDS]);

impl Drops {
    /// The number for `kind`.
    pub fn of(&self, kind: Kind) -> u64 {
        self.0[kind.index()]
    }

    /// The number for all kinds.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Code of the tool, which is called until it panics.
struct Guarded<T> {
    tool: T,
    failed: Arc<AtomicBool>,
}

impl<T> Guarded<T> {
    fn call<R>(&mut self, call: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let delivering = InCallback::begin();
        let result = catch_unwind(AssertUnwindSafe(|| call(&mut self.tool)));
        drop(delivering);
        match result {
            Ok(result) => Some(result),
            Err(panic) => {
                self.failed.store(true, Ordering::Relaxed);
                // The payload may panic when it is dropped.
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
    /// Creates a buffer of this process with its own memory. `deliver` receives the records in place, in runs of one
    /// thread's records in the order written. It is called on the buffer's callback thread, or on a thread that flushes
    /// or destroys the buffer. If it panics, it is not called again.
    ///
    /// # Errors
    ///
    /// [`ToolError::Layout`] for invalid sizes; [`ToolError::Memory`] and [`ToolError::Thread`] for errors of the
    /// system; [`ToolError::TooMany`] with 32 buffers in the process; [`ToolError::NotAvailable`].
    pub fn create(
        options: BufferOptions,
        deliver: impl FnMut(&BlockView<'_>) + Send + 'static,
    ) -> Result<RecordBuffer, ToolError> {
        Self::on(begin()?, options, deliver)
    }

    /// Like [`RecordBuffer::create`], for `board`.
    ///
    /// # Errors
    ///
    /// As for [`RecordBuffer::create`].
    pub fn on(
        board: &Arc<Switchboard>,
        options: BufferOptions,
        deliver: impl FnMut(&BlockView<'_>) + Send + 'static,
    ) -> Result<RecordBuffer, ToolError> {
        let start = clock::now();
        let layout = Layout::new(options.pool_bytes, options.block_bytes, options.threads)?;
        let mapping = Mapping::anonymous(layout)?;
        let buffer = Self::in_mapping_on(board, mapping, options, deliver)?;
        process::overhead(OverheadKind::RESOURCE, start);
        Ok(buffer)
    }

    /// Creates a buffer in memory that the tool supplies, such as a file or shared memory in which another process
    /// finds the records after the death of this one ([`gputrail_capture::recover`]).
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

    /// Like [`RecordBuffer::in_mapping`], for `board`.
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

    /// Creates a buffer whose blocks `client` supplies, and receives back with the records.
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

    /// Like [`RecordBuffer::of_client`], for `board`.
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
        // Forked children do not need the blocks; systems that cannot exclude them copy them.
        let _ = mapping.keep_from_children();
        let buffer = Buffer::new(mapping, options.policy);
        let collecting = CollectorOptions {
            period: options.period,
            watermark: options.watermark,
            ..CollectorOptions::default()
        };
        let mut collector = Collector::without_thread(buffer.clone(), sinks, collecting);
        if let Some(client) = client {
            collector = collector.with_client(client, options.blocks_ahead);
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
            reported: Mutex::new([0; KINDS]),
        })
    }

    /// Makes `thread` deliver from now on. The previous thread may still be delivering when this returns.
    pub fn assign(&self, thread: &CallbackThread) {
        if self.board.is_inherited() {
            return;
        }
        self.collector.serve_on(thread);
    }

    /// Asks the sources for completed work, and delivers all records on the calling thread. A client gets its blocks
    /// back, however full they are (CUPTI: `cuptiActivityFlushAll`).
    ///
    /// # Errors
    ///
    /// [`ToolError::Busy`] from within a callback, of a buffer or of a call; [`ToolError::NoSuchBuffer`] in a forked child.
    pub fn flush(&self) -> Result<(), ToolError> {
        self.flush_after(Flush::Completed)
    }

    /// Like [`RecordBuffer::flush`], and also delivers an [unfinished](gputrail_record::Unfinished::AT_FLUSH)
    /// completion for device work that has not completed. Its final completion follows later (CUPTI:
    /// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`).
    ///
    /// # Errors
    ///
    /// As for [`RecordBuffer::flush`].
    pub fn flush_forced(&self) -> Result<(), ToolError> {
        self.flush_after(Flush::Outstanding(self.key.buffers()))
    }

    /// Waits until the work of the queues that `queues` selects has completed, as `clFinish` does, and
    /// [flushes](RecordBuffer::flush). Of OpenCL's queues; the work of other sources is not waited for. Work that never
    /// completes, because it waits for an event that the program has yet to set, is waited for without end.
    /// (CUPTI: `cuptiActivityFlush`, which synchronises the streams.)
    ///
    /// # Errors
    ///
    /// As for [`RecordBuffer::flush`].
    pub fn flush_synchronized(&self, queues: QueuePlace) -> Result<(), ToolError> {
        self.flush_after(Flush::Synchronized(queues))
    }

    /// Has an [unfinished](gputrail_record::Unfinished::AT_FLUSH) completion written for work that has not completed.
    ///
    /// # Errors
    ///
    /// As for [`RecordBuffer::flush`].
    pub fn write_unfinished(&self) -> Result<(), ToolError> {
        self.refuse_to_wait()?;
        let outstanding = Flush::Outstanding(self.key.buffers());
        self.board.flush_sources(outstanding);
        Ok(())
    }

    fn refuse_to_wait(&self) -> Result<(), ToolError> {
        if self.board.is_inherited() {
            return Err(ToolError::NoSuchBuffer);
        }
        if is_delivering() || process::is_in_callback() || self.collector.is_delivered_here() {
            return Err(ToolError::Busy);
        }
        Ok(())
    }

    fn flush_after(&self, sources: Flush) -> Result<(), ToolError> {
        self.refuse_to_wait()?;
        let start = clock::now();
        self.board.flush_sources(sources);
        if let Some(thread) = process::current() {
            thread.with(|host| host.write_left_retirements());
        }
        if self.buffer.mapping().is_of_client() && self.buffer.policy() != Policy::Overwrite {
            self.board.give_blocks(self.key);
        }
        self.collector.flush();
        process::overhead(OverheadKind::FLUSH, start);
        Ok(())
    }

    /// Counts a record that was written, and dropped on its way to the tool.
    pub fn count_drop(&self, kind: Kind) {
        self.buffer.count_unlaned(kind);
    }

    /// The policy when no block is empty.
    pub fn policy(&self) -> Policy {
        self.buffer.policy()
    }

    /// The records dropped since the last call.
    pub fn dropped(&self) -> Drops {
        let Drops(now) = self.dropped_in_total();
        if self.board.is_inherited() {
            return Drops(now);
        }
        let mut reported = lock_std(&self.reported);
        let mut since = [0; KINDS];
        for (kind, since) in since.iter_mut().enumerate() {
            *since = now[kind].saturating_sub(reported[kind]);
            reported[kind] = reported[kind].max(now[kind]);
        }
        Drops(since)
    }

    /// The records dropped since the buffer was created.
    pub fn dropped_in_total(&self) -> Drops {
        if self.board.is_inherited() {
            Drops([0; KINDS])
        } else {
            Drops(self.buffer.dropped())
        }
    }

    /// The dropped records of kernels, copies, fills, waits and allocations that name a place which `selected` has, since
    /// the last call that counted them; `QueuePlace::NONE`: all of those. In 128 places; the drops of further ones are in
    /// [`RecordBuffer::dropped`] only (CUPTI: `cuptiActivityGetNumDroppedRecords`).
    pub fn dropped_at(&self, selected: QueuePlace) -> u64 {
        if self.board.is_inherited() {
            0
        } else {
            self.buffer.take_drops_of(selected)
        }
    }

    /// Whether the callback has panicked, which ends delivery.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    pub(super) fn slot_on(&self, board: &Arc<Switchboard>) -> Result<usize, ToolError> {
        (Arc::ptr_eq(board, &self.board) && !board.is_inherited())
            .then_some(self.key.slot)
            .ok_or(ToolError::NoSuchBuffer)
    }

    /// Delivers what has been recorded, and ends the buffer: nothing is recorded to it any more.
    pub fn end(&self) {
        if self.board.remove_buffer(self.key).is_some() {
            self.collector.finish();
        }
    }

    /// Whether a callback of the buffer has called exit(3) on the calling thread: it delivers nothing any more.
    pub fn is_left_delivering(&self) -> bool {
        !is_delivering() && self.collector.is_delivered_here()
    }
}

impl Drop for RecordBuffer {
    fn drop(&mut self) {
        if self.board.is_inherited() {
            // The mapping is not there: its place may be that of other memory, which must not be unmapped.
            std::mem::forget((self.buffer.clone(), self.collector.clone()));
            return;
        }
        if !(is_delivering() || is_choosing()) {
            return self.end();
        }
        // Within a callback: the drop might wait for this very thread, so another one does it.
        let (board, key, collector) = (self.board.clone(), self.key, self.collector.clone());
        let later = move || {
            if board.remove_buffer(key).is_some() {
                collector.finish();
            }
        };
        // If no thread can be spawned, the buffer lives until the process ends.
        let _ = gputrail_buffer::platform::internal_thread::spawn(later);
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
