//! Dependencies between pieces of device work: the event lists of their enqueues, and the barriers of their queues.
//!
//! Work waits for the events in its list (the latest thousand are remembered), a barrier or marker without a list for the last
//! work of its queue, and what follows a barrier in an out-of-order queue for the barrier.

use crate::directory::Directory;
use crate::model::EventId;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{QueueId, Ticks, WorkId};

/// Maximum number of pieces of work whose dependencies are kept until they are passed on.
const MAX_WORK: usize = 1 << 16;

/// The dependencies of the work of one process, by event ids.
#[derive(Debug, Default)]
pub(super) struct Waits {
    of: NumberMap<WorkId, Vec<EventId>>,
    queues: Vec<QueueOrder>,
    /// The index of each queue in `queues`.
    places: Directory<QueueId>,
}

/// The state of a queue that barriers need.
#[derive(Debug, Default)]
struct QueueOrder {
    /// The work enqueued last, and when.
    latest: Option<(Ticks, EventId)>,
    /// The barrier that all later work waits for.
    barrier: Option<(Ticks, EventId)>,
}

/// Work that enters its queue.
#[derive(Copy, Clone, Debug)]
pub(super) struct Entering {
    pub work: WorkId,
    pub event: EventId,
    pub queue: QueueId,
    pub enqueued: Ticks,
    /// Whether it waits for all earlier work in the queue.
    pub after_all: bool,
    /// Whether all later work waits for it, in an out-of-order queue.
    pub before_all: bool,
}

impl Waits {
    /// Adds a dependency of `work` on `event`.
    pub fn add(&mut self, work: WorkId, event: EventId) {
        if self.of.len() >= MAX_WORK {
            // Dependencies of work that was dropped.
            self.of.clear();
        }
        self.of.entry(work).or_default().push(event);
    }

    /// Adds the dependencies that follow from `entering` being put into its queue. The records of several threads come
    /// one thread after the other: work that was enqueued later does not count.
    #[inline(always)]
    pub fn enter(&mut self, entering: &Entering) {
        let order = self.order(entering.queue);
        let before = |(time, _): &(Ticks, EventId)| *time < entering.enqueued;
        let own = (entering.enqueued, entering.event);
        let behind = if entering.after_all {
            order.latest
        } else {
            order.barrier
        };
        let latest = order.latest.filter(|latest| !before(latest));
        order.latest = Some(latest.unwrap_or(own));
        if entering.before_all {
            order.barrier = Some(own);
        }
        if let Some((_, event)) = behind.filter(before) {
            self.add(entering.work, event);
        }
    }

    #[inline(always)]
    fn order(&mut self, queue: QueueId) -> &mut QueueOrder {
        let place = self.places.get(queue.0, queue).unwrap_or_else(|| {
            self.queues.push(QueueOrder::default());
            self.places.insert(queue, self.queues.len() - 1);
            self.queues.len() - 1
        });
        &mut self.queues[place]
    }

    /// Takes the work that `work` waits for; it is kept if other work shares the id.
    #[inline]
    pub fn take(&mut self, work: WorkId, shared: bool) -> Vec<EventId> {
        match shared {
            _ if self.of.is_empty() => Vec::new(),
            true => self.of.get(&work).cloned().unwrap_or_default(),
            false => self.of.remove(&work).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entering(event: u64, enqueued: u64) -> Entering {
        Entering {
            work: WorkId(event),
            event: EventId(event),
            queue: QueueId(1),
            enqueued: Ticks(enqueued),
            after_all: false,
            before_all: false,
        }
    }

    #[test]
    fn a_barrier_stands_between_what_is_before_and_behind_it() {
        let mut waits = Waits::default();
        waits.enter(&entering(1, 10));
        waits.enter(&entering(2, 20));
        waits.enter(&Entering {
            after_all: true,
            before_all: true,
            ..entering(3, 30)
        });
        waits.enter(&entering(4, 40));
        waits.enter(&entering(5, 25));
        let all: Vec<_> = (1..=5)
            .map(|work| waits.take(WorkId(work), false))
            .collect();
        let ids = |ids: &[u64]| ids.iter().copied().map(EventId).collect::<Vec<_>>();
        assert_eq!(all, [ids(&[]), ids(&[]), ids(&[2]), ids(&[3]), ids(&[])]);
    }

    #[test]
    fn parts_of_one_work_share_what_it_waits_for() {
        let mut waits = Waits::default();
        waits.add(WorkId(1), EventId(7));
        waits.add(WorkId(1), EventId(8));
        assert_eq!(waits.take(WorkId(1), true), [EventId(7), EventId(8)]);
        assert_eq!(waits.take(WorkId(1), false), [EventId(7), EventId(8)]);
        assert!(waits.take(WorkId(1), false).is_empty());
    }
}
