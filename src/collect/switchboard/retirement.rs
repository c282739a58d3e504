//! Retirement of correlation ids (rocprofiler-sdk: correlation-id retirement). Enabled on demand, as the work of each
//! call must be counted.

use super::interest::Buffers;
use gputrail_buffer::platform::sync::lock_std;
use gputrail_record::{CorrelationId, Retirement};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most calls whose work is counted at a time. Further ones never retire.
const MAX_CALLS: usize = 1 << 20;

/// Calls that wait for their work, or whose work began before their exit.
#[derive(Default)]
pub(crate) struct Retirements {
    calls: Mutex<HashMap<CorrelationId, UnretiredCall>>,
    /// The number of calls.
    open: AtomicUsize,
    /// Retirements that completion callbacks could not write, and the buffers that lack them.
    left: Mutex<Vec<(Buffers, Retirement)>>,
    /// The number of these.
    left_count: AtomicUsize,
}

/// The most retirements that wait to be written.
const MAX_LEFT: usize = 1 << 16;

#[derive(Default)]
struct UnretiredCall {
    /// Work that has not completed.
    work: u32,
    /// Whether the call has exited.
    exited: bool,
}

impl Retirements {
    /// Counts work enqueued by `call`. `is_heard_of` is whether the exit of the call is reported, which it is not if
    /// the call was entered before retirements were enabled. Then the call retires after its work.
    #[cold]
    pub fn work_begins(&self, call: CorrelationId, is_heard_of: bool) {
        let mut calls = lock_std(&self.calls);
        if calls.len() < MAX_CALLS || calls.contains_key(&call) {
            let open = calls.entry(call).or_default();
            open.work += 1;
            open.exited |= !is_heard_of;
            self.open.store(calls.len(), Ordering::Relaxed);
        }
    }

    /// Counts work as completed or untracked. Returns whether it was the last of `call`.
    #[inline]
    pub fn work_ends(&self, call: CorrelationId) -> bool {
        self.open.load(Ordering::Relaxed) > 0 && self.counted_work_ends(call)
    }

    #[cold]
    fn counted_work_ends(&self, call: CorrelationId) -> bool {
        let mut calls = lock_std(&self.calls);
        let Some(open) = calls.get_mut(&call) else {
            return false;
        };
        open.work = open.work.saturating_sub(1);
        let retires = open.work == 0 && open.exited;
        // A call that has not exited may enqueue more work, and then waits again.
        if open.work == 0 {
            calls.remove(&call);
            self.open.store(calls.len(), Ordering::Relaxed);
        }
        retires
    }

    /// Keeps a retirement that a completion callback could not write to `buffers`. Returns `false` if there are too many.
    #[cold]
    pub fn leave(&self, buffers: Buffers, record: Retirement) -> bool {
        let mut left = lock_std(&self.left);
        let has_room = left.len() < MAX_LEFT;
        if has_room {
            left.push((buffers, record));
            self.left_count.store(left.len(), Ordering::Relaxed);
        }
        has_room
    }

    /// Takes the retirements that completion callbacks could not write.
    pub fn take_left(&self) -> Vec<(Buffers, Retirement)> {
        if self.left_count.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let mut left = lock_std(&self.left);
        self.left_count.store(0, Ordering::Relaxed);
        std::mem::take(&mut left)
    }

    /// Forgets the retirements that were left for the buffer of `buffers`, and returns their number.
    pub fn forget_left(&self, buffers: Buffers) -> usize {
        let mut forgotten = 0;
        lock_std(&self.left).retain_mut(|(lacking, _)| {
            forgotten += usize::from(!lacking.and(buffers).is_none());
            *lacking = lacking.without(buffers);
            !lacking.is_none()
        });
        forgotten
    }

    /// Marks `call` as exited. Returns whether it retires.
    #[cold]
    pub fn call_exits(&self, call: CorrelationId) -> bool {
        // The work of `call` was counted by this thread: a later 0 says that it has completed.
        if self.open.load(Ordering::Relaxed) == 0 {
            return true;
        }
        match lock_std(&self.calls).get_mut(&call) {
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
        let retirements = Retirements::default();
        let [plain, early, late] = [1, 2, 3].map(CorrelationId);
        assert!(retirements.call_exits(plain));

        retirements.work_begins(early, true);
        assert!(!retirements.work_ends(early));
        assert!(retirements.call_exits(early));

        retirements.work_begins(late, true);
        retirements.work_begins(late, true);
        assert!(!retirements.call_exits(late));
        assert!(!retirements.work_ends(late));
        assert!(retirements.work_ends(late));
        assert!(!retirements.work_ends(late), "it has retired");

        // Entered before retirements were enabled.
        let unheard = CorrelationId(4);
        retirements.work_begins(unheard, false);
        assert!(retirements.work_ends(unheard));
    }
}
