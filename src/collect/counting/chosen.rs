//! Calls of the tool that chooses the counters of each dispatch.

use super::choice::{Choice, DispatchCounting, DispatchReadings, IS_CHOOSING, ReadyValues};
use super::set::CounterSet;
use crate::process;
use gputrail_buffer::platform::inside::Uncancelled;
use gputrail_record::{CorrelationId, CounterValue, KernelDispatch, WorkId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl Choice {
    /// The counters of `dispatch`.
    pub fn choose(&self, dispatch: &KernelDispatch) -> Option<Arc<CounterSet>> {
        self.call(|tool| tool.choose(dispatch))?
            .filter(|set| set.passes().len() <= self.passes)
    }

    /// Tells the tool the work of the kernel for which it has chosen counters.
    pub fn enqueued(&self, call: CorrelationId, work: WorkId) {
        self.call(|tool| tool.enqueued(call, work));
    }

    /// Passes the values of a kernel to the tool.
    pub fn counted(&self, values: &[CounterValue]) {
        self.call(|tool| tool.counted(values));
    }

    /// Passes what was read of a kernel to the tool.
    pub fn measured(&self, dispatch: &DispatchReadings) {
        self.call(|tool| tool.measured(dispatch));
    }

    /// Tells the tool that the kernel of this call has no values.
    pub fn abandoned(&self, call: CorrelationId, work: WorkId) {
        self.call(|tool| tool.abandoned(call, work));
    }

    /// The values that have become complete, for the caller to write.
    pub fn take_ready(&self) -> ReadyValues {
        self.call(|tool| tool.take_ready()).unwrap_or_default()
    }

    fn call<R>(&self, call: impl FnOnce(&dyn DispatchCounting) -> R) -> Option<R> {
        if self.has_failed.load(Ordering::Relaxed) {
            return None;
        }
        let tool = self.tool.read().unwrap_or_else(PoisonError::into_inner);
        let tool = tool.as_ref()?;
        let _uncancelled = Uncancelled::begin();
        let contained = || catch_unwind(AssertUnwindSafe(|| call(&**tool)));
        let before = IS_CHOOSING.replace(true);
        let result = match process::current() {
            Some(thread) => thread.state().in_tool(contained),
            None => contained(),
        };
        IS_CHOOSING.set(before);
        match result {
            Ok(result) => Some(result),
            Err(panic) => {
                self.has_failed.store(true, Ordering::Relaxed);
                // The payload may panic when it is dropped.
                std::mem::forget(panic);
                None
            }
        }
    }
}
