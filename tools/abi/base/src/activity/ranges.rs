//! Ranges of markers that are open: each end of a range finds its begin.

use gputrail_record::{Marker, MarkerKind, StringId, ThreadId};
use std::collections::HashMap;

/// The most ranges of a thread that are kept, and ranges that were started.
const MOST: usize = 1 << 16;

/// The meaning of a marker for ranges.
#[derive(Debug, PartialEq, Eq)]
pub enum RangeEvent<T> {
    /// A moment.
    Mark,
    /// A range begins, which is kept with [`Ranges::begin`].
    Begin,
    /// It ends: what was kept of its begin.
    End(T),
}

/// The ranges that have not ended, each with what is kept of its begin.
#[derive(Debug)]
pub struct Ranges<T> {
    /// By thread and, where the ranges of a domain nest by themselves, domain; each range with its level.
    pushed: HashMap<(ThreadId, StringId), Vec<(u32, T)>>,
    started: HashMap<u64, T>,
}

impl<T> Default for Ranges<T> {
    fn default() -> Ranges<T> {
        Ranges {
            pushed: HashMap::new(),
            started: HashMap::new(),
        }
    }
}

impl<T> Ranges<T> {
    /// The meaning of a marker; none of an end whose begin is not known, and of other events of marker libraries.
    pub fn event(&mut self, marker: &Marker) -> Option<RangeEvent<T>> {
        match marker.what {
            MarkerKind::INSTANT => Some(RangeEvent::Mark),
            MarkerKind::PUSH | MarkerKind::START => Some(RangeEvent::Begin),
            MarkerKind::POP => {
                let level = marker.level();
                let ranges = self.of_thread(marker, level.saturating_add(1));
                // A range within the last one may have begun without a record.
                let is_it = |last: &mut (u32, T)| level == 0 || last.0 == 0 || last.0 == level;
                let ended = ranges.pop_if(is_it);
                ended.map(|(_, begun)| RangeEvent::End(begun))
            }
            MarkerKind::END => self.started.remove(&marker.id).map(RangeEvent::End),
            _ => None,
        }
    }

    /// Keeps `begun` of the range that `marker` begins.
    pub fn begin(&mut self, marker: &Marker, begun: T) {
        if marker.what == MarkerKind::PUSH {
            let level = marker.level();
            let ranges = self.of_thread(marker, level);
            if ranges.len() < MOST {
                ranges.push((level, begun));
            }
        } else if self.started.len() < MOST {
            self.started.insert(marker.id, begun);
        }
    }

    /// What is kept of the range that `marker` has begun.
    pub fn begun(&mut self, marker: &Marker) -> Option<&mut T> {
        if marker.what == MarkerKind::PUSH {
            let pushed = self.pushed.get_mut(&stack(marker));
            pushed.and_then(|ranges| ranges.last_mut().map(|(_, begun)| begun))
        } else {
            self.started.get_mut(&marker.id)
        }
    }

    /// The ranges around a marker. Those from `level` on, and as many as the marker says, have ended without a record.
    fn of_thread(&mut self, marker: &Marker, level: u32) -> &mut Vec<(u32, T)> {
        let ranges = self.pushed.entry(stack(marker)).or_default();
        if marker.level() == 0 {
            let left = ranges
                .len()
                .saturating_sub(marker.ended_unrecorded() as usize);
            ranges.truncate(left);
        } else {
            while ranges.last().is_some_and(|(last, _)| *last >= level) {
                ranges.pop();
            }
        }
        ranges
    }
}

/// The ranges among which a marker nests.
fn stack(marker: &Marker) -> (ThreadId, StringId) {
    let domain = if marker.nests_in_its_domain() {
        marker.domain
    } else {
        StringId::NONE
    };
    (marker.thread, domain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::Ticks;

    fn marker(what: MarkerKind, id: u64, time: u64) -> Marker {
        Marker {
            what,
            id,
            time: Ticks(time),
            thread: ThreadId(7),
            ..Marker::blank()
        }
    }

    /// The times at which the ranges began that `all` ends.
    fn ended(all: &[Marker]) -> Vec<Option<u64>> {
        let mut ranges = Ranges::default();
        let ends = all.iter().filter_map(|one| match ranges.event(one) {
            Some(RangeEvent::Begin) => {
                ranges.begin(one, one.time.0);
                None
            }
            Some(RangeEvent::End(begun)) => Some(Some(begun)),
            Some(RangeEvent::Mark) => None,
            None => Some(None),
        });
        ends.collect()
    }

    #[test]
    fn ranges_end_where_they_began() {
        let all = [
            marker(MarkerKind::PUSH, 1, 10),
            marker(MarkerKind::START, 500, 11),
            marker(MarkerKind::PUSH, 2, 12),
            marker(MarkerKind::INSTANT, 0, 13),
            marker(MarkerKind::POP, 2, 14),
            marker(MarkerKind::POP, 1, 15),
            marker(MarkerKind::END, 500, 16),
        ];
        assert_eq!(ended(&all), [Some(12), Some(10), Some(11)]);
    }

    #[test]
    fn a_range_that_ended_without_a_marker_is_left_out() {
        let all = [
            marker(MarkerKind::PUSH, 1, 10),
            marker(MarkerKind::PUSH, 2, 11),
            marker(MarkerKind::POP, 1, 12),
            marker(MarkerKind::POP, 1, 13),
            marker(MarkerKind::END, 500, 14),
        ];
        assert_eq!(ended(&all), [Some(10), None, None]);
        let all = [
            marker(MarkerKind::PUSH, 1, 10),
            marker(MarkerKind::POP, 2, 11),
            marker(MarkerKind::POP, 1, 12),
        ];
        assert_eq!(ended(&all), [None, Some(10)]);
        // Where levels are not known, the number of ranges that have ended says it.
        let all = [
            marker(MarkerKind::PUSH, 0, 10),
            marker(MarkerKind::PUSH, 0, 11),
            marker(MarkerKind::POP, 1 << 32, 12),
        ];
        assert_eq!(ended(&all), [Some(10)]);
    }

    #[test]
    fn ranges_of_domains_nest_by_themselves() {
        let of = |domain, marker| Marker {
            domain: StringId(domain),
            ..marker
        };
        let all = [
            of(1, marker(MarkerKind::PUSH, 1, 10)),
            of(2, marker(MarkerKind::PUSH, 1, 11)),
            of(1, marker(MarkerKind::POP, 1, 12)),
            of(2, marker(MarkerKind::POP, 1, 13)),
        ];
        assert_eq!(ended(&all), [Some(10), Some(11)]);
    }
}
