//! The latest calls by CUPTI's correlation id: activity records come after their calls have returned, and find them here.
//!
//! A record takes the correlation id, thread, start and external id of its call, and the buffers that wanted it at the enqueue. The
//! call itself announces its first piece of work (a dependency record with flag 128), from which the trace has its arrow; further
//! kernels of a graph launch carry the call's id. A call that makes a node of a graph, in a stream that is captured, announces
//! nothing: CUPTI's callback "graph node created" comes inside of it.
//!
//! The table is a ring: a call takes the place of the one whose id is [`CALLS`] smaller. Work of calls that were
//! overwritten is recorded without a call, and counted.

use gputrail_collect::correlation::HostThread;
use gputrail_collect::process;
use gputrail_collect::switchboard::Buffers;
use gputrail_record::{CorrelationId, ExternalId, Kind, ThreadId, Ticks, WorkId};
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

/// Calls in the table.
const CALLS: usize = 1 << 18;
/// The bit of a work id that says that the work was taken. Ids are smaller.
const TAKEN: u64 = 1 << 63;
/// The kinds of records that a call may cause and CUPTI delivers.
pub(super) const KINDS: [Kind; 6] = [
    Kind::KERNEL_DISPATCH,
    Kind::MEMORY_COPY,
    Kind::MEMORY_SET,
    Kind::MEMORY_ALLOCATION,
    Kind::SYNCHRONIZATION,
    Kind::OVERHEAD,
];

/// A call as its work needs it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RecentCall {
    pub correlation: CorrelationId,
    pub external: ExternalId,
    pub start: Ticks,
    pub thread: ThreadId,
    /// The id of its first piece of work.
    pub work: WorkId,
    /// The buffers that wanted each of [`KINDS`] when it was made.
    pub wanted: [Buffers; KINDS.len()],
}

impl RecentCall {
    /// The buffers that wanted `kind`, which is one of [`KINDS`], when the call was made.
    #[inline]
    pub fn wanted(&self, kind: Kind) -> Buffers {
        let place = KINDS.iter().position(|one| *one == kind);
        place.map_or(Buffers::NONE, |place| self.wanted[place])
    }
}

/// A place of the table. `key` is CUPTI's id, or 0 while the place is written: a reader that finds the id before and after
/// the fields has read those of one call (a sequence lock).
#[repr(C, align(64))]
struct CallSlot {
    key: AtomicU32,
    thread: AtomicU32,
    correlation: AtomicU64,
    external: AtomicU64,
    start: AtomicU64,
    work: AtomicU64,
    wanted: [AtomicU32; KINDS.len()],
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

    fn place(&self, id: u32) -> Option<&CallSlot> {
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
        place.key.store(id, Ordering::Release);
    }

    /// The call to which CUPTI has given `id`.
    #[inline]
    pub fn get(&self, id: u32) -> Option<RecentCall> {
        let place = self.place(id).filter(|_| id != 0)?;
        if place.key.load(Ordering::Acquire) != id {
            return None;
        }
        let call = RecentCall {
            correlation: CorrelationId(place.correlation.load(Ordering::Relaxed)),
            external: ExternalId(place.external.load(Ordering::Relaxed)),
            start: Ticks(place.start.load(Ordering::Relaxed)),
            work: WorkId(place.work.load(Ordering::Relaxed) & !TAKEN),
            thread: ThreadId(place.thread.load(Ordering::Relaxed)),
            wanted: std::array::from_fn(|at| Buffers(place.wanted[at].load(Ordering::Relaxed))),
        };
        fence(Ordering::Acquire);
        if place.key.load(Ordering::Relaxed) != id {
            return None;
        }
        Some(call)
    }

    /// Sets the external id of the work of the call to which CUPTI has given `id`.
    pub fn set_external(&self, id: u32, external: ExternalId) {
        if let Some(place) = self.place(id)
            && place.key.load(Ordering::Acquire) == id
        {
            place.external.store(external.0, Ordering::Relaxed);
        }
    }

    /// Whether the caller is the first to take the work id of the call to which CUPTI has given `id`. Further work of
    /// the call needs ids of its own.
    pub fn take_work(&self, id: u32, work: WorkId) -> bool {
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

/// The calls that CUPTI's records may belong to.
pub(super) static RECENT: RecentCalls = RecentCalls::new();

/// Notes a call whose work CUPTI reports later, and to which it has given `id`. Returns the id of its first piece of work.
pub(super) fn note(
    host: &mut HostThread,
    id: u32,
    (correlation, start): (CorrelationId, Ticks),
) -> WorkId {
    let work = host.new_work();
    RECENT.put(
        id,
        &RecentCall {
            correlation,
            external: host.external(),
            start,
            thread: host.thread(),
            work,
            wanted: KINDS.map(|kind| host.buffers_for(kind)),
        },
    );
    work
}

/// Notes a call that nobody records, if it is one, so that its counters have ids of their own.
#[cold]
pub(super) fn note_unrecorded(id: u32) {
    if RECENT.get(id).is_some() {
        return;
    }
    let Some(thread) = process::current() else {
        return;
    };
    if let Some(mut host) = thread.borrow() {
        let correlation = host.new_correlation();
        note(&mut host, id, (correlation, Ticks::NONE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u64) -> RecentCall {
        RecentCall {
            correlation: CorrelationId(number),
            work: WorkId(number + 1),
            wanted: [1, 2, 3, 4, 5, 6].map(Buffers),
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
        let found = calls.get(1).unwrap();
        assert_eq!(found.wanted(Kind::MEMORY_ALLOCATION), Buffers(4));
        assert_eq!(found.wanted(Kind::MARKER), Buffers::NONE);
        assert!(calls.take_work(1, WorkId(11)));
        assert!(!calls.take_work(1, WorkId(11)));
        // Samples of the work that come later find it still.
        assert_eq!(calls.get(1), Some(call(10)));
        let next = 1 + CALLS as u32;
        assert_eq!(calls.get(next), None);
        calls.put(next, &call(11));
        assert_eq!((calls.get(1), calls.get(next)), (None, Some(call(11))));
    }
}
