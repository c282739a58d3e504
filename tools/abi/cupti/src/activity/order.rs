//! The order of records while external correlations are recorded: those of a call, and the record of the call, come before the
//! records of what the call enqueued.
//!
//! gputrail delivers the records of each thread in their order, and work when it has ended, which may be before the record of its
//! call has come. Records of work wait for that then. Those that no call comes for are put at the next flush.

use super::kind::ActivityKind;
use super::record::ActivityRecord;
use super::wanted::is_anywhere;
use super::{selected, sink};
use gputrail_record::CorrelationId;
use std::collections::{HashSet, VecDeque};

/// The latest calls that are known to have been put.
const CALLS: usize = 1 << 17;
/// The records that may wait.
const WAITING: usize = 1 << 14;

/// A record that waits, and what puts it.
struct Waiting {
    call: CorrelationId,
    put: Box<dyn FnOnce()>,
}

// SAFETY: the closure has a record alone, whose pointers are to texts that last for ever.
unsafe impl Send for Waiting {}

/// The calls whose records have been put, and the records that wait for theirs.
#[derive(Default)]
pub struct Order {
    calls: HashSet<CorrelationId>,
    /// The calls by age, the oldest first.
    oldest: VecDeque<CorrelationId>,
    waiting: VecDeque<Waiting>,
}

/// Whether calls have external correlations.
fn has_external() -> bool {
    is_anywhere(ActivityKind::EXTERNAL_CORRELATION) && selected::has_calls()
}

impl Order {
    /// Puts the record of work that `call` enqueued, or keeps it until the call's has been put.
    pub fn put<R: ActivityRecord + 'static>(&mut self, call: CorrelationId, record: R) {
        if !has_external() || !call.is_some() || self.calls.contains(&call) {
            sink::put(&record);
            return;
        }
        let put = Box::new(move || sink::put(&record));
        self.waiting.push_back(Waiting { call, put });
        if self.waiting.len() > WAITING
            && let Some(longest) = self.waiting.pop_front()
        {
            (longest.put)();
        }
    }

    /// The record of `call` has been put, and before it its external correlations.
    pub fn called(&mut self, call: CorrelationId) {
        if !has_external() || !self.calls.insert(call) {
            return;
        }
        self.oldest.push_back(call);
        if self.oldest.len() > CALLS
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.calls.remove(&oldest);
        }
        if !self.waiting.iter().any(|one| one.call == call) {
            return;
        }
        for one in std::mem::take(&mut self.waiting) {
            if one.call == call {
                (one.put)();
            } else {
                self.waiting.push_back(one);
            }
        }
    }

    /// Puts all that wait.
    pub fn finish(&mut self) {
        for one in self.waiting.drain(..) {
            (one.put)();
        }
    }
}
