//! Events of other programs in the order of their times, as far as these differ from their order in the file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::WINDOW_BYTES;
use super::host::Moment;
use gputrail_record::Nanos;

/// Events that wait for earlier ones. Events with equal times keep their order.
#[derive(Debug, Default)]
pub(super) struct Window {
    waiting: BinaryHeap<Reverse<Waiting>>,
    bytes: usize,
    count: u64,
    /// The time of the event that was taken last.
    latest: Nanos,
}

#[derive(Debug)]
struct Waiting {
    key: (Nanos, u64),
    moment: Moment,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.key == other.key
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl Window {
    /// Adds an event. Returns whether it comes too late: after an event with a later time has been taken.
    pub fn add(&mut self, moment: Moment) -> bool {
        let late = moment.time < self.latest;
        self.count += 1;
        self.bytes += moment.bytes();
        self.waiting.push(Reverse(Waiting {
            key: (moment.time, self.count),
            moment,
        }));
        late
    }

    /// The next event, if there are so many that it cannot wait.
    pub fn take_if_full(&mut self) -> Option<Moment> {
        if self.bytes > WINDOW_BYTES {
            self.take()
        } else {
            None
        }
    }

    /// The next event.
    pub fn take(&mut self) -> Option<Moment> {
        let Reverse(Waiting { moment, .. }) = self.waiting.pop()?;
        self.bytes -= moment.bytes();
        self.latest = self.latest.max(moment.time);
        Some(moment)
    }
}
