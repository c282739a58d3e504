//! The calls in progress on a lane, in memory that outlives the process: recovery and dumps read them there.

use super::{BufferState, LaneSlot};
use gputrail_record::{CorrelationId, Operation, Ticks};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The open-call stack of a lane. Only the lane's thread uses it, and only while the thread has the lane.
pub struct OpenCalls {
    slot: *const LaneSlot,
    /// Keeps `slot` mapped.
    _shared: Arc<BufferState>,
}

// SAFETY: `slot` points to atomics in memory that `_shared` keeps mapped.
unsafe impl Send for OpenCalls {}

impl OpenCalls {
    pub(super) fn new(slot: &LaneSlot, shared: Arc<BufferState>) -> OpenCalls {
        OpenCalls {
            slot: std::ptr::from_ref(slot),
            _shared: shared,
        }
    }

    #[inline(always)]
    fn slot(&self) -> &LaneSlot {
        // SAFETY: within the mapping that `_shared` keeps alive; atomics only.
        unsafe { &*self.slot }
    }

    /// Writes the frame of a call that is about to begin at `depth`. Calls below it that this lane does not record
    /// become gaps.
    #[inline(always)]
    pub fn prepare(&self, depth: u32, correlation: CorrelationId, operation: Operation) {
        let slot = self.slot();
        let known = slot.depth.load(Ordering::Relaxed);
        if known != depth {
            self.reach(depth, known);
        }
        if let Some(call) = slot.calls.get(depth as usize) {
            call.correlation.store(correlation.0, Ordering::Relaxed);
            let operation = u32::from(operation.domain.0) | u32::from(operation.number) << 16;
            call.operation.store(operation, Ordering::Relaxed);
        }
    }

    /// Puts the call at `depth` on the stack.
    #[inline(always)]
    pub fn enter(&self, depth: u32, start: Ticks) {
        let slot = self.slot();
        if let Some(call) = slot.calls.get(depth as usize) {
            call.start.store(start.0, Ordering::Relaxed);
        }
        // Release: a reader that sees the depth sees the call.
        slot.depth.store(depth + 1, Ordering::Release);
    }

    /// Changes the number of calls on the stack from `known` to `depth`.
    #[cold]
    #[inline(never)]
    fn reach(&self, depth: u32, known: u32) {
        if known > depth {
            // A longjmp or an exception has left calls above `depth`.
            return self.close(depth);
        }
        let calls = self.slot().calls.iter();
        for gap in calls.take(depth as usize).skip(known as usize) {
            gap.correlation.store(0, Ordering::Relaxed);
        }
    }

    /// Leaves `depth` calls on the stack.
    #[inline]
    pub fn close(&self, depth: u32) {
        self.slot().depth.store(depth, Ordering::Release);
    }
}
