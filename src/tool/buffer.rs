//! Buffers, and the batches of records that come from them.

use super::callee::{Callee, HeldCallee, call};
use super::functions::{act, ask, call, check};
use super::{CallbackThread, Error};
use core::ffi::c_void;
use gputrail_buffer::{BlockView, QueuePlace};
use gputrail_interface::c::{
    Batch as BatchData, BufferHandle, BufferSettings, DropCounts, SizedStruct, Status,
};
use gputrail_interface::joined::RecordFormat;
use gputrail_record::*;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

/// Options of a buffer. 0 asks for the usual value.
#[derive(Clone, Debug, Default)]
pub struct BufferOptions {
    /// Bytes of all its blocks together.
    pub pool_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes in a thread's block from which on they are delivered at the next look; `Some(0)` delivers whatever is
    /// there, `None` full blocks only.
    pub watermark: Option<u32>,
    /// The policy for when no block is empty.
    pub policy: gputrail_buffer::Policy,
    /// Longest time between two looks.
    pub period: Duration,
    /// Threads that may record at a time.
    pub threads: u32,
    /// Whether work comes as one record with its times ([`WorkTimes::of`](super::WorkTimes::of)), and all times in
    /// nanoseconds, or records as they were written.
    pub format: RecordFormat,
    /// Empty blocks that a client is asked for ahead of need; see [`Buffer::of_client`]. 0: one, and more when they run out.
    pub blocks_ahead: u32,
}

/// Some records. Raw ones are those of one thread, in place and in the order in which it wrote them; joined ones have come with
/// records of one thread, and work among them may be that of others.
#[derive(Copy, Clone)]
pub struct Batch<'a>(pub(super) &'a BatchData);

impl<'a> Batch<'a> {
    /// Its records, one after the other.
    pub fn records(&self) -> Records<'a> {
        self.view().records()
    }

    /// The thread that wrote them, of joined ones the latest; none for records of the library's own, and for work that has not
    /// completed at a forced flush or at the end.
    pub fn thread(&self) -> ThreadId {
        self.0.thread
    }

    /// The lane that wrote them, unique in the process.
    pub fn lane(&self) -> u32 {
        self.0.lane
    }

    /// The records and where they stand in the block.
    pub fn view(&self) -> BlockView<'a> {
        BlockView {
            lane: self.0.lane,
            thread: self.0.thread,
            sequence: self.0.block,
            offset: self.0.offset,
            first_record: self.0.first_record,
            // SAFETY: the library's batch, whose records are there while it is borrowed.
            bytes: unsafe { std::slice::from_raw_parts(self.0.records, self.0.bytes) },
        }
    }
}

type DeliverCallee = Callee<Mutex<Box<dyn FnMut(Batch<'_>) + Send>>>;

/// A buffer. Dropping it destroys it; what has been recorded is delivered first. Dropped within a callback, it stays
/// until the end.
pub struct Buffer {
    pub(super) handle: BufferHandle,
    callee: Option<HeldCallee>,
}

/// Calls the tool's function.
unsafe extern "C-unwind" fn deliver_to(batch: *const BatchData, user_data: *mut c_void) {
    // SAFETY: the library's batch, and what `Buffer::new` or `Buffer::in_file` gave, which lasts as long as the buffer.
    let (batch, callee) = unsafe { (&*batch, &*user_data.cast::<DeliverCallee>()) };
    call(&callee.failed, || {
        gputrail_buffer::platform::sync::lock_std(&callee.function)(Batch(batch))
    });
}

/// The function that [`deliver_to`] calls.
fn delivering(deliver: impl FnMut(Batch<'_>) + Send + 'static) -> HeldCallee {
    let deliver: Box<dyn FnMut(Batch<'_>) + Send> = Box::new(deliver);
    HeldCallee::new(Mutex::new(deliver))
}

impl BufferOptions {
    /// For C.
    pub(super) fn settings(&self) -> BufferSettings {
        BufferSettings {
            size: size_of::<BufferSettings>(),
            pool_bytes: self.pool_bytes,
            block_bytes: self.block_bytes,
            period_nanos: self.period.as_nanos().try_into().unwrap_or(u64::MAX),
            watermark: self.watermark.map_or(0, |bytes| bytes.max(1)),
            policy: self.policy as u32,
            threads: self.threads,
            format: self.format as u32,
            blocks_ahead: self.blocks_ahead,
            ..BufferSettings::blank()
        }
    }
}

impl Buffer {
    /// A buffer that `create` makes and that calls `callee`.
    pub(super) fn made(
        callee: HeldCallee,
        create: impl FnOnce(*mut c_void, *mut BufferHandle) -> Result<Status, Error>,
    ) -> Result<Buffer, Error> {
        let mut handle = BufferHandle::default();
        match check(create(callee.pointer(), &mut handle)) {
            Ok(()) => Ok(Buffer {
                handle,
                callee: Some(callee),
            }),
            Err(error) => {
                // SAFETY: the library did not take it.
                unsafe { callee.release() };
                Err(error)
            }
        }
    }

    /// A buffer whose records `deliver` gets, on a thread of the library's or on one that flushes or destroys the
    /// buffer. If it panics, it is not called again.
    ///
    /// # Errors
    ///
    /// `LAYOUT` for invalid buffer sizes, `TOO_MANY`, `OUT_OF_MEMORY`, `NO_THREAD`.
    pub fn new(
        options: BufferOptions,
        deliver: impl FnMut(Batch<'_>) + Send + 'static,
    ) -> Result<Buffer, Error> {
        let settings = options.settings();
        Buffer::made(delivering(deliver), |callee, handle| {
            // SAFETY: a structure of this size, a function, its user data, and a place for the id.
            unsafe {
                call!(gputrail_buffer_create(
                    &settings,
                    Some(deliver_to),
                    callee,
                    handle
                ))
            }
        })
    }

    /// A buffer in a file, or in memory that processes share: another process that has it too finds there what was
    /// recorded when this one has died ([`recover`]). The file is empty but for its length, which
    /// [`BufferOptions::file_bytes`] tells; it may be closed afterwards, and must not shrink while the buffer is there.
    ///
    /// # Errors
    ///
    /// `TOO_SMALL` for a file that is; `INVALID_ARGUMENT` for one that is not open for reading and writing, or holds
    /// something; else as for [`Buffer::new`].
    pub fn in_file(
        file: BorrowedFd<'_>,
        options: BufferOptions,
        deliver: impl FnMut(Batch<'_>) + Send + 'static,
    ) -> Result<Buffer, Error> {
        let (file, settings) = (file.as_raw_fd(), options.settings());
        Buffer::made(delivering(deliver), |callee, handle| {
            // SAFETY: a structure of this size, a function, its user data, and a place for the id.
            unsafe {
                call!(gputrail_buffer_create_in_file(
                    file,
                    &settings,
                    Some(deliver_to),
                    callee,
                    handle
                ))
            }
        })
    }

    /// Delivers everything that has been recorded so far, on the calling thread, and returns when that is done.
    ///
    /// # Errors
    ///
    /// `BUSY` within a callback; `NO_SUCH_BUFFER` after the tool's end.
    pub fn flush(&self) -> Result<(), Error> {
        act!(gputrail_buffer_flush(self.handle))
    }

    /// Flushes, and also delivers device work that has not completed, flagged as unfinished: joined its record, raw a
    /// completion. That comes again when the work has completed.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::flush`].
    pub fn flush_forced(&self) -> Result<(), Error> {
        act!(gputrail_buffer_flush_forced(self.handle))
    }

    /// Waits until the work of the queues that `queues` selects has completed, as `clFinish` does, and flushes. Of
    /// OpenCL's queues: those of CUDA and of the simulated GPU are flushed without. Does not return while work waits
    /// for an event that the program sets later. Its `stream` is not used.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::flush`].
    pub fn flush_synchronized(&self, queues: QueuePlace) -> Result<(), Error> {
        act!(gputrail_buffer_flush_synchronized(
            self.handle,
            queues.context,
            queues.queue
        ))
    }

    /// The records of kernels, copies, fills, waits and allocations that have been dropped since the last call that
    /// counted them, at the places that `selected` has. The drops of 128 places are counted so; all are in
    /// [`Buffer::dropped`].
    ///
    /// # Errors
    ///
    /// `NO_SUCH_BUFFER` after the tool's end.
    pub fn dropped_at(&self, selected: QueuePlace) -> Result<u64, Error> {
        ask!(gputrail_buffer_dropped_at(
            self.handle,
            selected.context,
            selected.queue,
            selected.stream
        ))
    }

    /// The records that have been dropped since the last call of this.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_BUFFER` after the tool's end.
    pub fn dropped(&self) -> Result<Drops, Error> {
        let mut drops = Drops::blank();
        // SAFETY: a structure of this size.
        check(unsafe { call!(gputrail_buffer_dropped(self.handle, &mut *drops.0)) })?;
        Ok(drops)
    }

    /// The records that have been dropped since the buffer was made.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_BUFFER` after the tool's end.
    pub fn dropped_in_total(&self) -> Result<Drops, Error> {
        let mut drops = Drops::blank();
        // SAFETY: a structure of this size.
        check(unsafe { call!(gputrail_buffer_dropped_in_total(self.handle, &mut *drops.0)) })?;
        Ok(drops)
    }

    /// Has a callback thread deliver what it gets from now on. The thread that did so before may still be at it when
    /// this returns.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_BUFFER` after the tool's end.
    pub fn assign(&self, thread: &CallbackThread) -> Result<(), Error> {
        act!(gputrail_buffer_assign(self.handle, thread.handle()))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if act!(gputrail_buffer_destroy(self.handle)).is_ok()
            && let Some(callee) = self.callee.take()
        {
            // SAFETY: the library has let go of it.
            unsafe { callee.release() };
        }
    }
}

/// Records that were dropped, by kind.
pub struct Drops(Box<DropCounts>);

impl Drops {
    fn blank() -> Drops {
        Drops(Box::new(DropCounts::blank()))
    }

    /// How many of `kind`.
    pub fn of(&self, kind: Kind) -> u64 {
        self.0.of_kind[usize::from(kind.0)]
    }

    /// How many of all kinds.
    pub fn total(&self) -> u64 {
        self.0.total
    }
}

impl BufferOptions {
    /// How many bytes a file needs for a buffer with these options, for [`Buffer::in_file`].
    ///
    /// # Errors
    ///
    /// As for [`Buffer::new`].
    pub fn file_bytes(&self) -> Result<u64, Error> {
        let settings = self.settings();
        let mut bytes = 0;
        // SAFETY: a structure of this size, and a place for the number.
        check(unsafe { call!(gputrail_buffer_file_bytes(&settings, &mut bytes)) })?;
        Ok(bytes)
    }
}

/// Shows `show` the records that a process that has died has left in the file of a buffer ([`Buffer::in_file`]) and not
/// delivered, on the calling thread. What the file says is not trusted. They are shown once.
///
/// # Errors
///
/// `MALFORMED` for a file that holds no buffer of this version; `INVALID_ARGUMENT` for one that is not open for reading
/// and writing; `NOT_INITIALISED` after the tool's end.
pub fn recover(file: BorrowedFd<'_>, mut show: impl FnMut(Batch<'_>)) -> Result<(), Error> {
    unsafe extern "C-unwind" fn shown<F: FnMut(Batch<'_>)>(
        batch: *const BatchData,
        user_data: *mut c_void,
    ) {
        // SAFETY: the library's batch, and what was given below.
        let (batch, show) = unsafe { (&*batch, &mut *user_data.cast::<F>()) };
        let _ = catch_unwind(AssertUnwindSafe(|| show(Batch(batch))));
    }
    fn of<F: FnMut(Batch<'_>)>(
        _: &F,
    ) -> unsafe extern "C-unwind" fn(*const BatchData, *mut c_void) {
        shown::<F>
    }
    let function = of(&show);
    // SAFETY: a function with what it is given, which lasts as long as the call.
    check(unsafe {
        call!(gputrail_recover(
            file.as_raw_fd(),
            Some(function),
            (&raw mut show).cast()
        ))
    })
}
