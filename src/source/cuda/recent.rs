//! The latest calls by CUPTI's correlation id: activity records come after their calls have returned, and find them here.
//!
//! The table is a ring: a call takes the place of the one whose id is [`CALLS`] smaller. Work of calls that were
//! overwritten is recorded without a call, and counted.

use crate::collect::switchboard::Buffers;
use crate::record::{CorrelationId, ExternalId, ThreadId, Ticks, WorkId};
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

/// Calls in the table.
const CALLS: usize = 1 << 18;

/// A call as its work needs it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RecentCall {
    pub correlation: CorrelationId,
    pub external: ExternalId,
    pub start: Ticks,
    pub thread: ThreadId,
    /// The id of its first piece of work.
    pub work: WorkId,
    /// The buffers that wanted kernels, copies and fills when it was made.
    pub wanted: [Buffers; 3],
}

/// A place of the table. `key` is 0 while it is written.
#[repr(C, align(64))]
struct Place {
    key: AtomicU64,
    correlation: AtomicU64,
    external: AtomicU64,
    start: AtomicU64,
    work: AtomicU64,
    thread: AtomicU32,
    wanted: [AtomicU32; 3],
}

/// The table.
pub(super) struct RecentCalls(AtomicPtr<Place>);

impl RecentCalls {
    pub const fn new() -> RecentCalls {
        RecentCalls(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Maps the table. Pages take memory when they are first used.
    pub fn open(&self) -> io::Result<()> {
        let memory = memmap2::MmapOptions::new()
            .len(CALLS * size_of::<Place>())
            .no_reserve_swap()
            .map_anon()?;
        let start = std::mem::ManuallyDrop::new(memory).as_mut_ptr();
        self.0.store(start.cast(), Ordering::Release);
        Ok(())
    }

    fn place(&self, id: u32) -> Option<&Place> {
        let start = self.0.load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        // SAFETY: the mapping is never unmapped, holds `CALLS` places, and zeros are valid ones.
        Some(unsafe { &*start.add(id as usize % CALLS) })
    }

    /// Notes the call to which CUPTI has given `id`.
    #[inline]
    pub fn put(&self, id: u32, call: &RecentCall) {
        let Some(place) = self.place(id) else {
            return;
        };
        place.key.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        place
            .correlation
            .store(call.correlation.0, Ordering::Relaxed);
        place.external.store(call.external.0, Ordering::Relaxed);
        place.start.store(call.start.0, Ordering::Relaxed);
        place.work.store(call.work.0, Ordering::Relaxed);
        place.thread.store(call.thread.0, Ordering::Relaxed);
        for (to, wanted) in place.wanted.iter().zip(call.wanted) {
            to.store(wanted.0, Ordering::Relaxed);
        }
        place.key.store(key(id), Ordering::Release);
    }

    /// The call to which CUPTI has given `id`.
    #[inline]
    pub fn get(&self, id: u32) -> Option<RecentCall> {
        let place = self.place(id).filter(|_| id != 0)?;
        if place.key.load(Ordering::Acquire) != key(id) {
            return None;
        }
        let call = RecentCall {
            correlation: CorrelationId(place.correlation.load(Ordering::Relaxed)),
            external: ExternalId(place.external.load(Ordering::Relaxed)),
            start: Ticks(place.start.load(Ordering::Relaxed)),
            work: WorkId(place.work.load(Ordering::Relaxed)),
            thread: ThreadId(place.thread.load(Ordering::Relaxed)),
            wanted: std::array::from_fn(|at| Buffers(place.wanted[at].load(Ordering::Relaxed))),
        };
        fence(Ordering::Acquire);
        if place.key.load(Ordering::Relaxed) != key(id) {
            return None;
        }
        Some(call)
    }

    /// Whether the caller is the first to take the work id of the call to which CUPTI has given `id`. Further work of
    /// the call needs ids of its own.
    pub fn take_work(&self, id: u32, work: WorkId) -> bool {
        // A call that overwrites the place just now keeps its work id: ids are never used twice.
        work.is_some()
            && self.place(id).is_some_and(|place| {
                let taken =
                    place
                        .work
                        .compare_exchange(work.0, 0, Ordering::Relaxed, Ordering::Relaxed);
                taken.is_ok()
            })
    }
}

/// The key of an id: never 0.
fn key(id: u32) -> u64 {
    u64::from(id) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u64) -> RecentCall {
        RecentCall {
            correlation: CorrelationId(number),
            work: WorkId(number + 1),
            wanted: [Buffers(1), Buffers(2), Buffers(3)],
            ..RecentCall::default()
        }
    }

    #[test]
    fn a_call_is_found_until_another_takes_its_place() {
        let calls = RecentCalls::new();
        assert_eq!(calls.get(1), None);
        calls.open().unwrap();
        calls.put(1, &call(10));
        assert_eq!(calls.get(1), Some(call(10)));
        assert!(calls.take_work(1, WorkId(11)));
        assert!(!calls.take_work(1, WorkId(11)));
        let next = 1 + CALLS as u32;
        assert_eq!(calls.get(next), None);
        calls.put(next, &call(11));
        assert_eq!((calls.get(1), calls.get(next)), (None, Some(call(11))));
    }
}
