//! Retirements: when nothing more will come for a correlation id (rocprofiler-sdk: correlation-id retirement).
//!
//! Only where somebody wants these records: the work of each call has to be counted.

use super::Switchboard;
use crate::platform::sync::lock_std;
use crate::record::CorrelationId;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls whose work is counted at a time. Those beyond it are never said to be retired.
const MAX_CALLS: usize = 1 << 20;

/// Calls that wait for their work, or whose work has begun before their exit.
#[derive(Default)]
pub(super) struct Retirements {
    calls: Mutex<HashMap<CorrelationId, Open>>,
    /// How many there are.
    open: AtomicUsize,
}

#[derive(Default)]
struct Open {
    /// Pieces of work that have not completed.
    work: u32,
    /// The call has returned.
    exited: bool,
}

impl Switchboard {
    /// `call` enqueues a piece of work. Its exit `is_heard_of`, unless it was entered before anybody wanted that: then
    /// nothing is expected to come after its work.
    #[cold]
    pub(crate) fn work_begins(&self, call: CorrelationId, is_heard_of: bool) {
        let mut calls = lock_std(&self.retirements.calls);
        if calls.len() < MAX_CALLS || calls.contains_key(&call) {
            let open = calls.entry(call).or_default();
            open.work += 1;
            open.exited |= !is_heard_of;
            self.retirements.open.store(calls.len(), Ordering::Relaxed);
        }
    }

    /// A piece of its work has completed, or will not be heard of. Whether that was the last of `call`.
    #[inline]
    pub(crate) fn work_ends(&self, call: CorrelationId) -> bool {
        self.retirements.open.load(Ordering::Relaxed) > 0 && self.counted_work_ends(call)
    }

    #[cold]
    fn counted_work_ends(&self, call: CorrelationId) -> bool {
        let mut calls = lock_std(&self.retirements.calls);
        let Some(open) = calls.get_mut(&call) else {
            return false;
        };
        open.work = open.work.saturating_sub(1);
        let retires = open.work == 0 && open.exited;
        // One that has not exited may enqueue more; its exit finds nothing to wait for.
        if open.work == 0 {
            calls.remove(&call);
            self.retirements.open.store(calls.len(), Ordering::Relaxed);
        }
        retires
    }

    /// `call` has returned. Whether nothing more will come of it.
    #[cold]
    pub(crate) fn call_exits(&self, call: CorrelationId) -> bool {
        match lock_std(&self.retirements.calls).get_mut(&call) {
            Some(open) => {
                open.exited = true;
                false
            }
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_retires_with_its_exit_or_the_last_of_its_work_whatever_comes_later() {
        let board = Switchboard::new();
        let [plain, early, late] = [1, 2, 3].map(CorrelationId);
        assert!(board.call_exits(plain));

        board.work_begins(early, true);
        assert!(!board.work_ends(early));
        assert!(board.call_exits(early));

        board.work_begins(late, true);
        board.work_begins(late, true);
        assert!(!board.call_exits(late));
        assert!(!board.work_ends(late));
        assert!(board.work_ends(late));
        assert!(!board.work_ends(late), "it has retired");

        // Entered before anybody wanted to hear of exits.
        let unheard = CorrelationId(4);
        board.work_begins(unheard, false);
        assert!(board.work_ends(unheard));
    }
}
