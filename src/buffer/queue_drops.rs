//! Counts of dropped records by the context, queue and stream of the runtime that they name.

use crate::platform::sync::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
use core::mem::offset_of;
#[cfg(not(loom))]
use gputrail_record::{Allocation, Header, Kind, WorkHeader};
use gputrail_record::{ContextId, QueueId, StreamId};

/// Places whose drops are counted. Those of further places are counted by kind only.
const PLACES: usize = 128;

/// A place in a runtime: a context, a queue and a stream of it. As a selection of places, 0 stands for any.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePlace {
    /// The context.
    pub context: ContextId,
    /// The queue.
    pub queue: QueueId,
    /// The stream, of runtimes that have streams.
    pub stream: StreamId,
}

impl QueuePlace {
    /// The place of records that name none: calls, completions, samples.
    pub const NONE: QueuePlace = QueuePlace {
        context: ContextId::NONE,
        queue: QueueId::NONE,
        stream: StreamId::NONE,
    };

    /// Whether `place` is among those that this selects.
    pub fn selects(&self, place: QueuePlace) -> bool {
        let fits = |wanted: u32, has: u32| wanted == 0 || wanted == has;
        fits(self.context.0, place.context.0)
            && fits(self.queue.0, place.queue.0)
            && fits(self.stream.0, place.stream.0)
    }
}

// Buffers of models have no place for the counts, which have models of their own.
#[cfg(not(loom))]
impl QueuePlace {
    /// Whether records of `kind` name a place.
    pub const fn is_in(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::KERNEL_DISPATCH
                | Kind::MEMORY_COPY
                | Kind::MEMORY_SET
                | Kind::SYNCHRONIZATION
                | Kind::MEMORY_ALLOCATION
        )
    }

    /// The place that a record of `kind` with these bytes names.
    pub fn of(kind: Kind, bytes: &[u8]) -> QueuePlace {
        let word = |offset: usize| {
            let bytes = bytes.get(offset..offset + 4);
            bytes.map_or(0, bytemuck::pod_read_unaligned::<u32>)
        };
        let work = size_of::<Header>();
        match kind {
            Kind::MEMORY_ALLOCATION => QueuePlace {
                context: ContextId(word(offset_of!(Allocation, context))),
                ..QueuePlace::NONE
            },
            kind if QueuePlace::is_in(kind) => QueuePlace {
                context: ContextId(word(work + offset_of!(WorkHeader, context))),
                queue: QueueId(word(work + offset_of!(WorkHeader, queue))),
                stream: StreamId(word(work + offset_of!(WorkHeader, stream))),
            },
            _ => QueuePlace::NONE,
        }
    }
}

/// An entry that no thread uses.
const FREE: u32 = 0;
/// A thread writes the place of the entry.
const TAKEN: u32 = 1;
/// The place of the entry is there, and stays.
const READY: u32 = 2;

struct PlaceDrops {
    state: AtomicU32,
    context: AtomicU32,
    queue: AtomicU32,
    stream: AtomicU32,
    count: AtomicU64,
}

/// The counts of one buffer. Two entries may have the same place, if two threads added it at a time.
pub(super) struct QueueDrops<const N: usize = PLACES>([PlaceDrops; N]);

impl<const N: usize> QueueDrops<N> {
    pub fn new() -> QueueDrops<N> {
        QueueDrops(std::array::from_fn(|_| PlaceDrops {
            state: AtomicU32::new(FREE),
            context: AtomicU32::new(0),
            queue: AtomicU32::new(0),
            stream: AtomicU32::new(0),
            count: AtomicU64::new(0),
        }))
    }

    /// Counts a record that was dropped. Neither waits nor allocates.
    pub fn count(&self, place: QueuePlace) {
        for entry in &self.0 {
            let state = entry.state.load(Ordering::Acquire);
            if state == READY && entry.place() == place {
                entry.count.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let take = |entry: &PlaceDrops| {
                let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
                let taken = entry.state.compare_exchange(FREE, TAKEN, success, failure);
                taken.is_ok()
            };
            if state == FREE && take(entry) {
                entry.context.store(place.context.0, Ordering::Relaxed);
                entry.queue.store(place.queue.0, Ordering::Relaxed);
                entry.stream.store(place.stream.0, Ordering::Relaxed);
                entry.count.store(1, Ordering::Relaxed);
                // Release: whoever sees the state sees the place and the count.
                entry.state.store(READY, Ordering::Release);
                return;
            }
        }
    }

    /// The records dropped at the places that `selected` has, which begin again at 0.
    pub fn take(&self, selected: QueuePlace) -> u64 {
        let ready = |entry: &&PlaceDrops| {
            entry.state.load(Ordering::Acquire) == READY && selected.selects(entry.place())
        };
        let counts = self.0.iter().filter(ready);
        counts
            .map(|entry| entry.count.swap(0, Ordering::Relaxed))
            .sum()
    }
}

impl PlaceDrops {
    fn place(&self) -> QueuePlace {
        QueuePlace {
            context: ContextId(self.context.load(Ordering::Relaxed)),
            queue: QueueId(self.queue.load(Ordering::Relaxed)),
            stream: StreamId(self.stream.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn place(context: u32, queue: u32) -> QueuePlace {
        QueuePlace {
            context: ContextId(context),
            queue: QueueId(queue),
            stream: StreamId(queue + 100),
        }
    }

    #[test]
    fn drops_are_counted_by_place_and_taken_once() {
        let drops = <QueueDrops>::new();
        for (context, queue, times) in [(1, 1, 3), (1, 2, 4), (2, 3, 5)] {
            (0..times).for_each(|_| drops.count(place(context, queue)));
        }
        assert_eq!(drops.take(place(1, 2)), 4);
        let of_context = QueuePlace {
            context: ContextId(1),
            ..QueuePlace::NONE
        };
        assert_eq!(drops.take(of_context), 3);
        assert_eq!(drops.take(of_context), 0);
        let of_stream = QueuePlace {
            stream: StreamId(103),
            ..QueuePlace::NONE
        };
        drops.count(place(2, 3));
        assert_eq!(drops.take(of_stream), 6);
        drops.count(place(1, 1));
        assert_eq!(drops.take(QueuePlace::NONE), 1);
    }

    #[test]
    fn drops_at_too_many_places_are_counted_elsewhere_only() {
        let drops = <QueueDrops>::new();
        for queue in 1..=PLACES as u32 + 10 {
            drops.count(place(1, queue));
        }
        assert_eq!(drops.take(QueuePlace::NONE), PLACES as u64);
    }

    #[test]
    fn records_name_their_places() {
        let mut copy = gputrail_record::MemoryCopy::blank();
        (copy.work.context, copy.work.queue, copy.work.stream) =
            (ContextId(1), QueueId(2), StreamId(102));
        let bytes = bytemuck::bytes_of(&copy);
        assert_eq!(QueuePlace::of(Kind::MEMORY_COPY, bytes), place(1, 2));
        let mut allocation = Allocation::blank();
        allocation.context = ContextId(7);
        let found = QueuePlace::of(Kind::MEMORY_ALLOCATION, bytemuck::bytes_of(&allocation));
        assert_eq!((found.context, found.queue), (ContextId(7), QueueId::NONE));
        assert_eq!(QueuePlace::of(Kind::API, bytes), QueuePlace::NONE);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::{sync::Arc, thread};

    /// Two threads count drops at `places`, while a third takes those of the first place.
    fn counted_by_two_threads(places: [u32; 2]) {
        loom::model(move || {
            let drops = Arc::new(QueueDrops::<2>::new());
            let [first, second] = places.map(|context| QueuePlace {
                context: ContextId(context),
                ..QueuePlace::NONE
            });
            let counting = [first, second].map(|place| {
                let drops = drops.clone();
                thread::spawn(move || drops.count(place))
            });
            let early = drops.take(first);
            for thread in counting {
                thread.join().expect("it counts");
            }
            if first == second {
                assert_eq!(early + drops.take(first), 2);
            } else {
                assert_eq!(early + drops.take(first), 1);
                assert_eq!(drops.take(second), 1);
            }
        });
    }

    #[test]
    fn drops_at_one_place_are_all_counted_once() {
        counted_by_two_threads([1, 1]);
    }

    #[test]
    fn drops_at_two_places_are_counted_at_theirs() {
        counted_by_two_threads([1, 2]);
    }
}
