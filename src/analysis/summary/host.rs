//! The host: its longest calls and ranges, and threads that wait after each launch.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gputrail_record::number_map::NumberMap;
use gputrail_record::{Nanos, ThreadId};
use gputrail_trace::model::ProcessIndex;

use super::roles::FunctionRole;

/// Number of calls and ranges of a process that are kept: the longest.
const LONGEST: usize = 256;
/// Maximum number of processes, and of threads, that are looked at.
const MAX_PROCESSES: usize = 1 << 10;
const MAX_THREADS: usize = 1 << 14;

/// A call or a range of the host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostSpan {
    /// Its duration, ns.
    pub took: u64,
    /// When it began.
    pub start: Nanos,
    /// Its name.
    pub name: Box<str>,
}

impl HostSpan {
    /// The time that it has in common with another interval, ns.
    pub fn overlap(&self, from: Nanos, to: Nanos) -> u64 {
        let end = self.start.0.saturating_add(self.took);
        end.min(to.0).saturating_sub(self.start.0.max(from.0))
    }
}

/// Waits that follow launches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    /// The number of launches.
    pub launches: u64,
    /// The number of waits behind at least one launch.
    pub waits: u64,
    /// The number of waits behind exactly one launch.
    pub after_one: u64,
    /// The time of these, ns.
    pub after_one_time: u64,
    /// The longest of these: its begin, and its duration.
    pub longest: Option<(Nanos, u64)>,
    /// The function of the longest.
    pub function: String,
}

/// The longest spans and the waits of the host.
#[derive(Debug, Default)]
pub(super) struct Host {
    longest: NumberMap<ProcessIndex, BinaryHeap<Reverse<HostSpan>>>,
    /// The number of launches of each thread since its last wait.
    since_wait: NumberMap<(ProcessIndex, ThreadId), u64>,
    pub waits: Waits,
}

impl Host {
    /// Adds a call that no call made, or a range.
    pub fn span(&mut self, process: ProcessIndex, name: &str, start: Nanos, took: u64) {
        if self.longest.len() >= MAX_PROCESSES && !self.longest.contains_key(&process) {
            return;
        }
        let longest = self.longest.entry(process).or_default();
        if longest.len() >= LONGEST {
            let is_longer = longest
                .peek()
                .is_some_and(|Reverse(least)| took > least.took);
            if !is_longer {
                return;
            }
            longest.pop();
        }
        longest.push(Reverse(HostSpan {
            took,
            start,
            name: name.into(),
        }));
    }

    /// Adds a call with a role.
    pub fn call(
        &mut self,
        thread: (ProcessIndex, ThreadId),
        role: FunctionRole,
        (name, start, took): (&str, Nanos, u64),
    ) {
        let is_wait = match role {
            FunctionRole::Launch => false,
            FunctionRole::Synchronize => true,
            _ => return,
        };
        if self.since_wait.len() >= MAX_THREADS && !self.since_wait.contains_key(&thread) {
            return;
        }
        let since = self.since_wait.entry(thread).or_default();
        let waits = &mut self.waits;
        if !is_wait {
            *since += 1;
            waits.launches += 1;
            return;
        }
        match std::mem::take(since) {
            0 => return,
            1 => {
                waits.after_one += 1;
                waits.after_one_time = waits.after_one_time.saturating_add(took);
                if waits.longest.is_none_or(|(_, longest)| took > longest) {
                    waits.longest = Some((start, took));
                    name.clone_into(&mut waits.function);
                }
            }
            _ => {}
        }
        waits.waits += 1;
    }

    /// The name of the shortest call or range that fills at least half of a time of a process, and how much of it; without one,
    /// that of the one that fills most. The shortest says most.
    pub fn during(&self, process: ProcessIndex, from: Nanos, to: Nanos) -> Option<(&str, u64)> {
        let spans = || self.longest.get(&process).into_iter().flatten();
        let half = to.0.saturating_sub(from.0).div_ceil(2);
        let fills = |span: &&Reverse<HostSpan>| span.0.overlap(from, to) >= half.max(1);
        let shortest = spans().filter(fills).min_by_key(|span| span.0.took);
        let most = || spans().max_by_key(|span| span.0.overlap(from, to));
        let Reverse(span) = shortest.or_else(most)?;
        let overlap = span.overlap(from, to);
        (overlap > 0).then_some((&*span.name, overlap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESS: ProcessIndex = ProcessIndex(0);

    #[test]
    fn the_shortest_span_that_fills_half_of_a_time_says_what_the_host_did() {
        let mut host = Host::default();
        host.span(PROCESS, "epoch", Nanos(0), 1000);
        host.span(PROCESS, "load data", Nanos(90), 70);
        host.span(PROCESS, "read", Nanos(95), 20);
        for _ in 0..2 * LONGEST {
            host.span(PROCESS, "short", Nanos(500), 1);
        }
        let during = |from, to| host.during(PROCESS, Nanos(from), Nanos(to));
        assert_eq!(during(100, 150), Some(("load data", 50)));
        assert_eq!(during(100, 110), Some(("read", 10)));
        assert_eq!(during(100, 125), Some(("read", 15)));
        assert_eq!(during(150, 350), Some(("epoch", 200)));
        assert_eq!(during(2000, 2100), None);
        assert_eq!(host.during(ProcessIndex(1), Nanos(0), Nanos(9)), None);
    }

    #[test]
    fn waits_behind_one_launch_are_counted() {
        let mut host = Host::default();
        let thread = (PROCESS, ThreadId(1));
        let mut call = |role, start, took| host.call(thread, role, ("wait", Nanos(start), took));
        for time in [0, 100] {
            call(FunctionRole::Launch, time, 5);
            call(FunctionRole::Synchronize, time + 10, 7 + time);
        }
        call(FunctionRole::Synchronize, 300, 9);
        call(FunctionRole::Launch, 400, 5);
        call(FunctionRole::Launch, 410, 5);
        call(FunctionRole::Other, 415, 5);
        call(FunctionRole::Synchronize, 420, 9);
        let expected = Waits {
            launches: 4,
            waits: 3,
            after_one: 2,
            after_one_time: 114,
            longest: Some((Nanos(110), 107)),
            function: "wait".to_owned(),
        };
        assert_eq!(host.waits, expected);
    }
}
