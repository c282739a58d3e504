//! The records of dispatches, which tools own.
//!
//! ROCm's library allocates a record for each dispatch and never frees it: its tools do, by `delete` or `free`, when they have
//! read the times. So a record is memory of `malloc`, and belongs to the tool from the callback on. A tool that
//! frees no records has them to the end of the process.

use crate::types::DispatchRecord;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

/// A record that a tool was given, and may have freed.
pub struct Record {
    /// The time of the enqueuing call.
    dispatch: u64,
    theirs: NonNull<DispatchRecord>,
}

// SAFETY: the fields are written by one thread, that of the completion, each at once; the tool knows that its times come then.
unsafe impl Send for Record {}
// SAFETY: as above.
unsafe impl Sync for Record {}

impl Record {
    /// A record of a kernel that is enqueued at `dispatch`, if there is memory for it.
    pub fn new(dispatch: u64) -> Option<Record> {
        // SAFETY: a size that is not 0.
        let memory = unsafe { libc::malloc(size_of::<DispatchRecord>()) };
        let theirs = NonNull::new(memory.cast::<DispatchRecord>())?;
        let new = DispatchRecord {
            dispatch,
            ..DispatchRecord::default()
        };
        // SAFETY: as many bytes are there, with the alignment of all types, and nobody else has them yet.
        unsafe { theirs.write(new) };
        Some(Record { dispatch, theirs })
    }

    /// The time of the enqueuing call.
    pub fn dispatch(&self) -> u64 {
        self.dispatch
    }

    /// The record, for the tool.
    pub fn address(&self) -> *const DispatchRecord {
        self.theirs.as_ptr()
    }

    /// Tells the tool its times. A record that is not as it was given was freed before there were any, and is left alone.
    pub fn fill(&self, begin: u64, end: u64, complete: u64) {
        let end = end.clamp(self.dispatch, complete);
        let begin = begin.clamp(self.dispatch, end);
        let record = self.theirs.as_ptr();
        // SAFETY: places in memory of `malloc` which the tool keeps until the times are there, which it is told to. Memory
        // that it has freed all the same is still mapped, as the heap is: what the allocator or another owner
        // has put there differs from an empty record.
        let [known, times @ ..] = unsafe {
            [
                &raw mut (*record).dispatch,
                &raw mut (*record).begin,
                &raw mut (*record).end,
                &raw mut (*record).complete,
            ]
            .map(|place| AtomicU64::from_ptr(place))
        };
        let is_empty = times.iter().all(|time| time.load(Ordering::Relaxed) == 0);
        if known.load(Ordering::Relaxed) != self.dispatch || !is_empty {
            return;
        }
        // Tools wait for the last of them.
        for (place, time) in times.into_iter().zip([begin, end, complete]) {
            place.store(time, Ordering::Release);
        }
    }
}
