//! Counters that are chosen for each dispatch (rocprofiler-sdk: the dispatch counting service with its callbacks;
//! ROCProfiler v1: queue callbacks). On processors, another set than that of the kernel before takes the time to open its events.

use super::{CounterReading, CounterSet};
use crate::switchboard::Buffers;
use gputrail_counters::{Counted, Property};
use gputrail_record::{CorrelationId, CounterValue, KernelDispatch, Nanos, WorkId};
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
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
    pub readings: Vec<(Counted, CounterReading)>,
    /// The properties of the agent.
    pub properties: HashMap<Property, f64>,
}

/// The tool of a request, which is called until it panics or the request ends.
#[derive(Clone)]
pub struct Choice {
    /// Locked for reading during a call.
    pub(super) tool: Arc<RwLock<Option<Arc<dyn DispatchCounting>>>>,
    pub(super) has_failed: Arc<AtomicBool>,
    /// The most passes of a kernel, which the agent allows.
    pub passes: usize,
}

thread_local! {
    pub(super) static IS_CHOOSING: Cell<bool> = const { Cell::new(false) };
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

    /// Waits for the calls in progress. The tool is not called any more.
    pub fn end(&self) {
        let mut tool = self.tool.write().unwrap_or_else(PoisonError::into_inner);
        *tool = None;
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
