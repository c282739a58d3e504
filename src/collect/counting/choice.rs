//! Counters that are chosen for each dispatch (rocprofiler-sdk: the dispatch counting service with its callbacks;
//! ROCProfiler v1: queue callbacks). On processors, another set than that of the kernel before takes the time to open its events.

use super::{CounterSet, Reading};
use crate::process;
use crate::switchboard::Buffers;
use gputrail_buffer::platform::inside::Uncancelled;
use gputrail_counters::{Counted, Property};
use gputrail_record::{CorrelationId, CounterValue, KernelDispatch, Nanos, WorkId};
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A tool that chooses the counters of each kernel of an agent, and gets their values.
///
/// Both functions are called on threads of the program, `choose` on several at a time. Calls that they make are not
/// observed. They must not wait for a kernel of the same agent: kernels run one after the other.
pub trait DispatchCounting: Send + Sync {
    /// The counters of a kernel that is about to be enqueued, or `None` for a kernel that is not counted. The record has
    /// no id of the work and no times; its correlation id is that of the values.
    fn choose(&self, dispatch: &KernelDispatch) -> Option<Arc<CounterSet>>;

    /// The kernel of `call` for which counters were chosen last has been enqueued as `work`. Told where the kernels of one
    /// call may end in another order than that in which they were enqueued.
    fn enqueued(&self, call: CorrelationId, work: WorkId) {
        let _ = (call, work);
    }

    /// A kernel has ended: the values of the counters that were chosen for it, in the order of their names. The kernel's
    /// completion record may come later.
    fn counted(&self, values: &[CounterValue]) {
        let _ = values;
    }

    /// A kernel has ended: what was read of the basic counters that were chosen for it. The readings of a kernel that ran
    /// without being counted are invalid.
    fn measured(&self, dispatch: &DispatchReadings) {
        let _ = dispatch;
    }

    /// Values that have become complete with the kernel that was told last, and the buffers to which the caller writes them.
    #[doc(hidden)]
    fn take_ready(&self) -> ReadyValues {
        Vec::new()
    }

    /// A kernel for which counters were chosen does not run, or is not recorded: none of the other functions is called for
    /// it. `work` is none unless it was told.
    fn abandoned(&self, call: CorrelationId, work: WorkId) {
        let _ = (call, work);
    }
}

/// Values that are to be written, each with its buffers.
pub type ReadyValues = Vec<(Buffers, CounterValue)>;

/// The readings of the basic counters of one dispatch.
#[derive(Clone, Debug, Default)]
pub struct DispatchReadings {
    /// The call that enqueued it.
    pub call: CorrelationId,
    /// Its work.
    pub work: WorkId,
    /// Its duration, if it is known.
    pub duration: Option<Nanos>,
    /// The readings of the basic counters.
    pub readings: Vec<(Counted, Reading)>,
    /// The properties of the agent.
    pub properties: HashMap<Property, f64>,
}

/// The tool of a request, which is called until it panics or the request ends.
#[derive(Clone)]
pub struct Choice {
    /// Locked for reading during a call.
    tool: Arc<RwLock<Option<Arc<dyn DispatchCounting>>>>,
    has_failed: Arc<AtomicBool>,
    /// The most passes of a kernel, which the agent allows.
    pub passes: usize,
}

thread_local! {
    static IS_CHOOSING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is in a function of a tool that chooses counters, which the end of its request waits for.
pub fn is_choosing() -> bool {
    IS_CHOOSING.get()
}

impl Choice {
    /// The choice of `tool`, in at most `passes` passes of a kernel.
    pub fn new(tool: Arc<dyn DispatchCounting>, passes: usize) -> Choice {
        Choice {
            tool: Arc::new(RwLock::new(Some(tool))),
            has_failed: Arc::default(),
            passes,
        }
    }

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

    /// Waits for the calls in progress. The tool is not called any more.
    pub fn end(&self) {
        let mut tool = self.tool.write().unwrap_or_else(PoisonError::into_inner);
        *tool = None;
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

impl PartialEq for Choice {
    fn eq(&self, other: &Choice) -> bool {
        Arc::ptr_eq(&self.tool, &other.tool)
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Choice")
    }
}
