//! Buffers, and the batches of records that come from them.

use super::Error;
use super::callee::{Callee, call};
use super::functions::{check, functions};
use crate::capi::{Batch as BatchData, BufferHandle, BufferSettings, DropCounts, Sized_, Status};
use crate::record::*;
use core::ffi::c_void;
use std::sync::Mutex;
use std::time::Duration;

/// How a buffer is made; see [`crate::context::BufferOptions`]. 0 asks for what is usual.
#[derive(Clone, Debug, Default)]
pub struct BufferOptions {
    /// Bytes of all its blocks together.
    pub pool_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes in a thread's block from which on they are delivered at the next look; 1 delivers whatever is there.
    pub watermark: u32,
    /// What happens when no block is empty.
    pub policy: crate::buffer::Policy,
    /// Longest time between two looks.
    pub period: Duration,
    /// Threads that may record at a time.
    pub threads: u32,
}

/// Some records of one thread, in place.
#[derive(Copy, Clone)]
pub struct Batch<'a>(pub(super) &'a BatchData);

impl<'a> Batch<'a> {
    /// Its records, one after the other.
    pub fn records(&self) -> Records<'a> {
        // SAFETY: the library's batch, whose records are there while it is borrowed.
        Records::new(unsafe { std::slice::from_raw_parts(self.0.records, self.0.bytes) })
    }

    /// The thread that wrote them; none for records of the library's own.
    pub fn thread(&self) -> ThreadId {
        self.0.thread
    }
}

type Deliver = Box<dyn FnMut(Batch<'_>) + Send>;

/// A buffer. Dropping it destroys it; what has been recorded is delivered first. Dropped within a callback, it stays
/// until the end.
pub struct Buffer {
    pub(super) handle: BufferHandle,
    callee: *mut Callee<Mutex<Deliver>>,
}

// SAFETY: the function that `callee` leads to is `Send`, and behind a lock.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer whose records `deliver` gets. If that panics, it is not called again.
    ///
    /// # Errors
    ///
    /// As for `gputrail_buffer_create` in `gputrail.h`.
    pub fn new(
        options: BufferOptions,
        deliver: impl FnMut(Batch<'_>) + Send + 'static,
    ) -> Result<Buffer, Error> {
        unsafe extern "C" fn deliver_to(batch: *const BatchData, user_data: *mut c_void) {
            // SAFETY: the library's batch, and what was given below, which lasts as long as the buffer.
            let (batch, callee) =
                unsafe { (&*batch, &*user_data.cast::<Callee<Mutex<Deliver>>>()) };
            call(&callee.failed, || {
                crate::sync::lock_std(&callee.function)(Batch(batch))
            });
        }
        let functions = functions()?;
        let settings = BufferSettings {
            size: size_of::<BufferSettings>(),
            pool_bytes: options.pool_bytes,
            block_bytes: options.block_bytes,
            period_nanos: options.period.as_nanos().try_into().unwrap_or(u64::MAX),
            watermark: options.watermark,
            policy: options.policy as u32,
            threads: options.threads,
            ..BufferSettings::blank()
        };
        let callee = Callee::new(Mutex::new(Box::new(deliver) as Deliver));
        let mut handle = BufferHandle::default();
        // SAFETY: a structure of this size, a function, what it is given, and a place for the id.
        let status = unsafe {
            (functions.buffer_create)(&settings, Some(deliver_to), callee.cast(), &mut handle)
        };
        check(status).inspect_err(|_| {
            // SAFETY: made above, and the library did not take it.
            drop(unsafe { Box::from_raw(callee) })
        })?;
        Ok(Buffer { handle, callee })
    }

    /// Delivers everything that has been recorded so far, on the calling thread.
    ///
    /// # Errors
    ///
    /// `BUSY` within a callback; `NO_SUCH_BUFFER` after the tool's end.
    pub fn flush(&self) -> Result<(), Error> {
        check((functions()?.buffer_flush)(self.handle))
    }

    /// The same, and device work that has not completed is delivered too, by a completion that is flagged as unfinished;
    /// its real completion comes later.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::flush`].
    pub fn flush_forced(&self) -> Result<(), Error> {
        check((functions()?.buffer_flush_forced)(self.handle))
    }

    /// How many records have been dropped since it was made, of all kinds.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_BUFFER` after the tool's end.
    pub fn dropped_in_total(&self) -> Result<u64, Error> {
        let mut drops = DropCounts {
            size: size_of::<DropCounts>(),
            total: 0,
            of_kind: [0; 256],
        };
        // SAFETY: a structure of this size.
        check(unsafe { (functions()?.buffer_dropped)(self.handle, &mut drops) })?;
        Ok(drops.total)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Ok(functions) = functions()
            && (functions.buffer_destroy)(self.handle) == Status::OK
        {
            // SAFETY: made by `new`; the library has let go of it.
            drop(unsafe { Box::from_raw(self.callee) });
        }
    }
}
