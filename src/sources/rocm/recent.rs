//! The latest calls that have enqueued work, by our correlation id, which the SDK's records of the work bring back as their
//! external one.
//!
//! A call is noted when the SDK asks for that id, within the call. Records take the thread, start and external id of their
//! call, the stream that it was made for, and the buffers that wanted them then. The first piece of work has its id from the call, which
//! announces it (a dependency record with flag 128), so that the trace has its arrow; further work of the call carries the call's
//! id.
//!
//! The table is a ring: a call takes the place of one whose id differs by a multiple of [`CALLS`]. Work of calls that were
//! overwritten is recorded without a call, and counted.

use gputrail_collect::switchboard::Buffers;
use gputrail_record::{CorrelationId, ExternalId, Kind, ThreadId, Ticks, WorkId};
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

/// Calls in the table.
const CALLS: usize = 1 << 18;
/// The bit of a work id that says that the work was taken. Ids are smaller.
const TAKEN: u64 = 1 << 63;
/// The kinds of records that a call may cause and the SDK delivers.
pub(super) const KINDS: [Kind; 4] = [
    Kind::KERNEL_DISPATCH,
    Kind::MEMORY_COPY,
    Kind::MEMORY_ALLOCATION,
    Kind::OVERHEAD,
];

/// A call as its work needs it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RecentCall {
    pub correlation: CorrelationId,
    /// Whether there is a call. Programs of HSA put kernels into queues without one: the id is of that work alone.
    pub is_call: bool,
    pub external: ExternalId,
    pub start: Ticks,
    pub thread: ThreadId,
    /// The id of its first piece of work, or none before there is one.
    pub work: WorkId,
    /// The SDK's id of the stream that the work was put into, plus 1; 0 if it is not known.
    pub stream: u64,
    /// The buffers that wanted each of [`KINDS`] when it was made.
    pub wanted: [Buffers; KINDS.len()],
}

impl RecentCall {
    /// The call, for records of its work.
    pub fn call(&self) -> CorrelationId {
        match self.is_call {
            true => self.correlation,
            false => CorrelationId::NONE,
        }
    }

    /// The buffers that wanted `kind`, which is one of [`KINDS`], when the call was made.
    #[inline]
    pub fn wanted(&self, kind: Kind) -> Buffers {
        let place = KINDS.iter().position(|one| *one == kind);
        place.map_or(Buffers::NONE, |place| self.wanted[place])
    }
}

/// A place of the table. `correlation` is 0 while the place is written: a reader that finds the id before and after the fields
/// has read those of one call (a sequence lock).
#[repr(C, align(64))]
struct CallSlot {
    correlation: AtomicU64,
    external: AtomicU64,
    start: AtomicU64,
    work: AtomicU64,
    stream: AtomicU64,
    wanted: [AtomicU32; KINDS.len()],
    thread: AtomicU32,
    is_call: AtomicU32,
}

const _: () = assert!(size_of::<CallSlot>() == 64);

/// The table.
pub(super) struct RecentCalls(AtomicPtr<CallSlot>);

impl RecentCalls {
    pub const fn new() -> RecentCalls {
        RecentCalls(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Maps the table. Pages take memory when they are first used.
    pub fn open(&self) -> io::Result<()> {
        let memory = memmap2::MmapOptions::new()
            .len(CALLS * size_of::<CallSlot>())
            .no_reserve_swap()
            .map_anon()?;
        let start = std::mem::ManuallyDrop::new(memory).as_mut_ptr();
        self.0.store(start.cast(), Ordering::Release);
        Ok(())
    }

    fn place(&self, id: CorrelationId) -> Option<&CallSlot> {
        let start = self.0.load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        // SAFETY: the mapping is never unmapped, holds `CALLS` places, and zeros are valid ones.
        Some(unsafe { &*start.add(id.0 as usize % CALLS) })
    }

    /// Notes a call. The thread that makes it does so.
    #[inline]
    pub fn put(&self, call: &RecentCall) {
        let Some(place) = self.place(call.correlation) else {
            return;
        };
        place.correlation.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        place.external.store(call.external.0, Ordering::Relaxed);
        place.start.store(call.start.0, Ordering::Relaxed);
        place.work.store(call.work.0, Ordering::Relaxed);
        place.stream.store(call.stream, Ordering::Relaxed);
        place.thread.store(call.thread.0, Ordering::Relaxed);
        place.is_call.store(call.is_call.into(), Ordering::Relaxed);
        for (to, wanted) in place.wanted.iter().zip(call.wanted) {
            to.store(wanted.0, Ordering::Relaxed);
        }
        place
            .correlation
            .store(call.correlation.0, Ordering::Release);
    }

    /// The call with this id.
    #[inline]
    pub fn get(&self, id: CorrelationId) -> Option<RecentCall> {
        let place = self.place(id).filter(|_| id.is_some())?;
        if place.correlation.load(Ordering::Acquire) != id.0 {
            return None;
        }
        let call = RecentCall {
            correlation: id,
            is_call: place.is_call.load(Ordering::Relaxed) != 0,
            external: ExternalId(place.external.load(Ordering::Relaxed)),
            start: Ticks(place.start.load(Ordering::Relaxed)),
            work: WorkId(place.work.load(Ordering::Relaxed) & !TAKEN),
            stream: place.stream.load(Ordering::Relaxed),
            thread: ThreadId(place.thread.load(Ordering::Relaxed)),
            wanted: std::array::from_fn(|at| Buffers(place.wanted[at].load(Ordering::Relaxed))),
        };
        fence(Ordering::Acquire);
        if place.correlation.load(Ordering::Relaxed) != id.0 {
            return None;
        }
        Some(call)
    }

    /// Whether the caller is the first to take the work id of the call with this id. Further work of the call needs ids of
    /// its own.
    pub fn take_work(&self, id: CorrelationId, work: WorkId) -> bool {
        // A call that overwrites the place just now keeps its work id: ids are never used twice.
        work.is_some()
            && self.place(id).is_some_and(|place| {
                let taken = place.work.compare_exchange(
                    work.0,
                    work.0 | TAKEN,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                taken.is_ok()
            })
    }
}

/// The calls that the SDK's records may belong to.
pub(super) static RECENT: RecentCalls = RecentCalls::new();

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u64) -> RecentCall {
        RecentCall {
            correlation: CorrelationId(number),
            is_call: number % 2 == 1,
            work: WorkId(number + 1),
            stream: 3,
            wanted: [1, 2, 3, 4].map(Buffers),
            ..RecentCall::default()
        }
    }

    #[test]
    fn a_call_is_found_until_another_takes_its_place() {
        let calls = RecentCalls::new();
        assert_eq!(calls.get(CorrelationId(1)), None);
        calls.open().unwrap();
        calls.put(&call(1));
        let found = calls.get(CorrelationId(1)).unwrap();
        assert_eq!(found, call(1));
        assert_eq!(found.call(), CorrelationId(1));
        assert_eq!(call(2).call(), CorrelationId::NONE);
        assert_eq!(found.wanted(Kind::MEMORY_ALLOCATION), Buffers(3));
        assert_eq!(found.wanted(Kind::MARKER), Buffers::NONE);
        assert!(calls.take_work(CorrelationId(1), WorkId(2)));
        assert!(!calls.take_work(CorrelationId(1), WorkId(2)));
        // Samples of the work that come later find it still.
        assert_eq!(calls.get(CorrelationId(1)), Some(call(1)));
        let next = 1 + CALLS as u64;
        assert_eq!(calls.get(CorrelationId(next)), None);
        calls.put(&call(next));
        assert_eq!(calls.get(CorrelationId(1)), None);
        assert_eq!(calls.get(CorrelationId(next)), Some(call(next)));
    }
}
