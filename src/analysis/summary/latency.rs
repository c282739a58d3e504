//! The time from the begin of the call that launched work to its start, taken apart: in the call, behind earlier work of its
//! queue, until the work that it depends on had ended, and the rest, in which the driver and the device prepare.
//!
//! The parts follow each other: each begins where the one before it ends. Calls and work find each other by the id of the work,
//! whichever comes first.

use std::collections::VecDeque;

use gputrail_record::Nanos;
use gputrail_record::number_map::NumberMap;
use gputrail_trace::model::{Call, EventId, QueueIndex, Work};

/// Maximum number of calls and of work that wait for the other, and of ends that are kept.
const MAX_WAITING: usize = 1 << 16;
/// Maximum number of queues.
const MAX_QUEUES: usize = 1 << 14;

/// The parts of launch latencies, summed up.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchParts {
    /// The number of launches that are taken apart.
    pub count: u64,
    /// In the call that enqueued the work.
    pub in_call: u64,
    /// The part of it in which the queue ran nothing: a call that waits for earlier work has none.
    pub idle_call: u64,
    /// After the call, while earlier work of its queue ran.
    pub behind: u64,
    /// After that, until the work of other queues that it waited for had ended.
    pub depending: u64,
    /// The rest.
    pub rest: u64,
    /// The number of launches that are the only one of their call: a launch of a graph has many.
    pub single: u64,
    /// The number of these whose work ran for a shorter time than the call took.
    pub shorter_than_call: u64,
    /// The time of the calls of those, up to the start of the work.
    pub short_calls: u64,
}

impl LaunchParts {
    /// Adds those of others.
    pub fn add(&mut self, other: &LaunchParts) {
        self.count += other.count;
        self.in_call = self.in_call.saturating_add(other.in_call);
        self.idle_call = self.idle_call.saturating_add(other.idle_call);
        self.behind = self.behind.saturating_add(other.behind);
        self.depending = self.depending.saturating_add(other.depending);
        self.rest = self.rest.saturating_add(other.rest);
        self.single += other.single;
        self.shorter_than_call += other.shorter_than_call;
        self.short_calls = self.short_calls.saturating_add(other.short_calls);
    }
}

/// A launch whose work has come.
#[derive(Copy, Clone, Debug)]
struct Launched {
    /// The number of the work's kind, of the caller's choosing.
    label: u32,
    enqueued: u64,
    start: u64,
    ran: u64,
    /// The end of the work before it on its queue.
    before: u64,
    /// The end of the work that it depends on.
    dependency: u64,
}

impl Launched {
    fn parts(&self, of: EndOfCall) -> LaunchParts {
        let part = |from: &mut u64, to: u64| {
            let to = to.clamp(*from, self.start.max(*from));
            let length = to - *from;
            *from = to;
            length
        };
        let mut from = self.enqueued.min(self.start);
        let call = of.end.saturating_sub(self.enqueued);
        let is_short = of.is_single && self.ran < call;
        let busy = self.before.clamp(from, self.start.max(from)) - from;
        let in_call = part(&mut from, of.end);
        LaunchParts {
            count: 1,
            in_call,
            idle_call: in_call.saturating_sub(busy),
            behind: part(&mut from, self.before),
            depending: part(&mut from, self.dependency),
            rest: part(&mut from, self.start),
            single: u64::from(of.is_single),
            shorter_than_call: u64::from(is_short),
            short_calls: if is_short { in_call } else { 0 },
        }
    }
}

/// The end of a call, and whether it submitted one piece of work.
#[derive(Copy, Clone, Debug)]
struct EndOfCall {
    end: u64,
    is_single: bool,
}

/// The half of a launch that came first.
#[derive(Copy, Clone, Debug)]
enum Half {
    Call(EndOfCall),
    Work(Launched),
}

/// Puts calls and work together.
#[derive(Debug, Default)]
pub(super) struct Launches {
    halves: NumberMap<EventId, Half>,
    order: VecDeque<EventId>,
    /// The end of the latest work of each queue.
    queues: NumberMap<QueueIndex, u64>,
    /// The ends of work, and their order.
    ends: NumberMap<EventId, u64>,
    ended: VecDeque<EventId>,
    /// Whether any work has waited for other work.
    has_waits: bool,
}

impl Launches {
    /// Adds a call. `add` gets the parts of each launch that is complete, and the label of its work.
    pub fn call(&mut self, call: &Call<'_>, mut add: impl FnMut(u32, LaunchParts)) {
        let Some(end) = call.end else {
            return;
        };
        let end = EndOfCall {
            end: end.0,
            is_single: call.submitted.len() == 1,
        };
        for event in call.submitted {
            match self.halves.get(event) {
                Some(Half::Work(launched)) => {
                    let launched = *launched;
                    self.halves.remove(event);
                    add(launched.label, launched.parts(end));
                }
                _ => self.hold(*event, Half::Call(end)),
            }
        }
    }

    /// Adds work that ran. The result is its parts, if its call has come.
    pub fn work(&mut self, label: u32, work: &Work<'_>) -> Option<LaunchParts> {
        let (start, end) = work.interval?;
        let room = self.queues.len() < MAX_QUEUES;
        let latest = match self.queues.get_mut(&work.queue) {
            Some(latest) => Some(latest),
            None if room => Some(self.queues.entry(work.queue).or_default()),
            None => None,
        };
        let before = latest.map_or(0, |latest| {
            let before = *latest;
            *latest = end.0.max(before);
            before
        });
        let dependency = work.waits.iter().filter_map(|event| self.ends.get(event));
        let dependency = dependency.copied().max().unwrap_or(0);
        let event = work.event?;
        self.has_waits |= !work.waits.is_empty();
        // Most recordings name no dependencies: then the first ends are enough.
        if self.has_waits || self.ended.len() < MAX_WAITING {
            self.keep_end(event, end);
        }
        let launched = Launched {
            label,
            enqueued: work.enqueued?.0,
            start: start.0,
            ran: end.0.saturating_sub(start.0),
            before,
            dependency,
        };
        match self.halves.get(&event) {
            Some(Half::Call(of)) => {
                let parts = launched.parts(*of);
                self.halves.remove(&event);
                Some(parts)
            }
            _ => {
                self.hold(event, Half::Work(launched));
                None
            }
        }
    }

    fn keep_end(&mut self, event: EventId, end: Nanos) {
        if self.ended.len() >= MAX_WAITING
            && let Some(old) = self.ended.pop_front()
        {
            self.ends.remove(&old);
        }
        if self.ends.insert(event, end.0).is_none() {
            self.ended.push_back(event);
        }
    }

    fn hold(&mut self, event: EventId, half: Half) {
        // Halves that were completed have left the map, and their places in the order go now.
        while self.order.len() >= MAX_WAITING
            && let Some(old) = self.order.pop_front()
        {
            self.halves.remove(&old);
        }
        if self.halves.insert(event, half).is_none() {
            self.order.push_back(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_trace::model::Function;

    fn work(event: u64, queue: u32, enqueued: u64, (start, end): (u64, u64)) -> Work<'static> {
        Work {
            event: Some(EventId(event)),
            queue: QueueIndex(queue),
            enqueued: Some(Nanos(enqueued)),
            interval: Some((Nanos(start), Nanos(end))),
            ..Work::default()
        }
    }

    fn call(launches: &mut Launches, events: &[EventId], end: u64) -> Vec<LaunchParts> {
        let function = Function::default();
        let call = Call {
            end: Some(Nanos(end)),
            submitted: events,
            ..Call::blank(&function)
        };
        let mut parts = Vec::new();
        launches.call(&call, |_, part| parts.push(part));
        parts
    }

    #[test]
    fn the_parts_of_a_latency_follow_each_other() {
        let mut launches = Launches::default();
        assert_eq!(call(&mut launches, &[EventId(1)], 105), []);
        let first = launches.work(0, &work(1, 0, 100, (110, 150)));
        let expected = LaunchParts {
            count: 1,
            in_call: 5,
            idle_call: 5,
            rest: 5,
            single: 1,
            ..LaunchParts::default()
        };
        assert_eq!(first, Some(expected));
        // On another queue, until 170.
        assert_eq!(launches.work(0, &work(2, 1, 100, (120, 170))), None);
        let waits = [EventId(2)];
        let third = Work {
            waits: &waits,
            ..work(3, 0, 106, (180, 182))
        };
        assert_eq!(launches.work(0, &third), None);
        // The call comes behind its work.
        let expected = LaunchParts {
            count: 1,
            in_call: 6,
            // Its queue was busy.
            idle_call: 0,
            behind: 38,
            depending: 20,
            rest: 10,
            single: 1,
            shorter_than_call: 1,
            short_calls: 6,
        };
        assert_eq!(call(&mut launches, &[EventId(3)], 112), [expected]);
    }

    #[test]
    fn work_of_a_call_that_launches_more_is_not_compared_with_it() {
        let mut launches = Launches::default();
        call(&mut launches, &[EventId(1), EventId(2)], 200);
        for event in [1, 2] {
            let parts = launches.work(0, &work(event, 0, 100, (130, 140))).unwrap();
            assert_eq!(
                (parts.count, parts.single, parts.shorter_than_call),
                (1, 0, 0)
            );
        }
    }

    #[test]
    fn work_that_starts_in_its_call_has_no_other_part() {
        let mut launches = Launches::default();
        call(&mut launches, &[EventId(1)], 200);
        let parts = launches.work(0, &work(1, 0, 100, (130, 190))).unwrap();
        assert_eq!((parts.in_call, parts.behind, parts.rest), (30, 0, 0));
        assert_eq!(parts.shorter_than_call, 1);
    }
}
