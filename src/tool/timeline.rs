//! Timelines: enqueue records and completions put together.

use super::functions::{ask, call, check};
use super::{Batch, Error};
use core::ffi::c_void;
use gputrail_buffer::CompletedBlock;
pub use gputrail_interface::c::{Batch as BatchData, SizedStruct, TimelineHandle, WorkData};
use gputrail_record::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A piece of work: a kernel, a copy, a fill, a marker or barrier.
#[derive(Copy, Clone)]
pub struct Work<'a>(&'a WorkData);

impl Work<'_> {
    /// Its enqueue record, if it is an `R`: that says what it is.
    pub fn record<R: Record>(&self) -> Option<&R> {
        // SAFETY: null or the library's record, all of it.
        let header = unsafe { self.0.record.as_ref() }?;
        let whole = header.kind == R::KIND && header.bytes() >= size_of::<R>();
        // SAFETY: of this kind and at least this size, and borrowed no longer than the callback.
        whole.then(|| unsafe { &*self.0.record.cast::<R>() })
    }

    /// Its completion.
    pub fn completion(&self) -> Option<&Completion> {
        // SAFETY: null or the library's record.
        unsafe { self.0.completion.as_ref() }
    }

    /// When the call that enqueued it was entered, on CLOCK_BOOTTIME.
    pub fn enqueued(&self) -> Nanos {
        self.0.enqueued
    }

    /// When it began to run, on CLOCK_BOOTTIME; none if that is not known.
    pub fn start(&self) -> Nanos {
        self.0.start
    }

    /// When it ended.
    pub fn end(&self) -> Nanos {
        self.0.end
    }

    /// How long it ran, if that is known.
    pub fn duration(&self) -> Option<Nanos> {
        let known = self.0.start.is_some() && self.0.end.is_some();
        known.then(|| Nanos(self.0.end.0.saturating_sub(self.0.start.0)))
    }
}

/// Puts the enqueue records and completions of batches together.
#[derive(Debug)]
pub struct Timeline(TimelineHandle);

impl Timeline {
    /// An empty one.
    ///
    /// # Errors
    ///
    /// `NOT_INITIALISED` after the tool's end.
    pub fn new() -> Result<Timeline, Error> {
        ask!(gputrail_timeline_create()).map(Timeline)
    }

    /// Takes in a batch, and tells `callback` of the work that is known in full by it.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_TIMELINE` after the tool's end.
    pub fn add(
        &mut self,
        batch: Batch<'_>,
        mut callback: impl FnMut(Work<'_>),
    ) -> Result<(), Error> {
        let function = of(&callback);
        // SAFETY: a batch of the library's, and a function with what it is given, which lasts as long as the call.
        check(unsafe {
            call!(gputrail_timeline_add(
                self.0,
                batch.0,
                Some(function),
                (&raw mut callback).cast()
            ))
        })
    }

    /// Takes in the records of a block of the tool's own ([`Buffer::of_client`](super::Buffer::of_client)), as
    /// [`Timeline::add`] does with a batch.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_TIMELINE` after the tool's end.
    pub fn add_block(
        &mut self,
        block: &CompletedBlock,
        callback: impl FnMut(Work<'_>),
    ) -> Result<(), Error> {
        let records = block.bytes();
        let batch = BatchData {
            records: records.as_ptr(),
            bytes: records.len(),
            ..BatchData::blank()
        };
        self.add(Batch(&batch), callback)
    }

    /// Ends it, and tells `callback` of the work of which only a part is known.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_TIMELINE` after the tool's end.
    pub fn finish(self, mut callback: impl FnMut(Work<'_>)) -> Result<(), Error> {
        let function = of(&callback);
        let handle = std::mem::ManuallyDrop::new(self).0;
        // SAFETY: a function with what it is given, which lasts as long as the call.
        check(unsafe {
            call!(gputrail_timeline_destroy(
                handle,
                Some(function),
                (&raw mut callback).cast()
            ))
        })
    }
}

/// The function that calls one like this.
fn of<F: FnMut(Work<'_>)>(_: &F) -> unsafe extern "C-unwind" fn(*const WorkData, *mut c_void) {
    unsafe extern "C-unwind" fn trampoline<F: FnMut(Work<'_>)>(
        work: *const WorkData,
        user_data: *mut c_void,
    ) {
        // SAFETY: the library's structure, and what is given beside this.
        let (work, callback) = unsafe { (&*work, &mut *user_data.cast::<F>()) };
        let _ = catch_unwind(AssertUnwindSafe(|| callback(Work(work))));
    }
    trampoline::<F>
}

impl Drop for Timeline {
    fn drop(&mut self) {
        // SAFETY: no function, and no user data.
        let _ = unsafe {
            call!(gputrail_timeline_destroy(
                self.0,
                None,
                std::ptr::null_mut()
            ))
        };
    }
}
