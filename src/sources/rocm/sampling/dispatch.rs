//! The dispatches of agents that are sampled, as the SDK calls back about them: when they are enqueued, on the thread that does it, and
//! when they have completed, on a thread of its own.

use crate::rocm::callbacks::{self, Receiver};
use crate::rocm::dispatches;
use crate::rocm::sdk::Sdk;
use crate::rocm::session::Session;
use gputrail_buffer::platform::sync::{OnceBox, PerProcess};
use gputrail_collect::process;
use gputrail_rocprofiler::{
    AgentId, CallbackPhase, CallbackTracingRecord, ContextId, DispatchId, KernelDispatchData,
    KernelDispatchInfo, Status, TracingOperation, read,
};

/// Dispatches that have completed and whose totals are not written; the totals of more are written at the end.
const MOST_COMPLETED: usize = 1 << 20;

/// The library's numbers of the operations.
static OPERATIONS: OnceBox<DispatchOperations> = OnceBox::new();
static COMPLETED: PerProcess<Vec<(DispatchId, AgentId)>> = PerProcess::new();

struct DispatchOperations {
    enqueue: Option<TracingOperation>,
    complete: Option<TracingOperation>,
}

impl DispatchOperations {
    fn of(named: &[(TracingOperation, String)]) -> DispatchOperations {
        let with = |end: &str| {
            let mut named = named.iter();
            let found = named.find(|(_, name)| name.ends_with(end));
            found.map(|(operation, _)| *operation)
        };
        DispatchOperations {
            enqueue: with("ENQUEUE"),
            complete: with("COMPLETE"),
        }
    }
}

/// Has the SDK call back about the dispatches while `context` is started.
pub(super) fn trace(session: &Session, context: ContextId) -> Result<(), Status> {
    let sdk: &Sdk = &session.sdk;
    let kind = sdk.callback_kind(c"KERNEL_DISPATCH");
    let kind = kind.ok_or(Status::ERROR_KIND_NOT_FOUND)?;
    OPERATIONS.get_or_init(|| DispatchOperations::of(&sdk.callback_operations(kind)));
    let callback = callbacks::of_version(sdk);
    sdk.trace_to_callback(context, kind, callback, Receiver::Dispatches.number())
}

/// A callback about a dispatch.
///
/// # Safety
///
/// The payload of `record` is the structure of dispatches.
pub(in crate::rocm) unsafe fn dispatched(record: &CallbackTracingRecord) {
    let Some(operations) = OPERATIONS.get() else {
        return;
    };
    // SAFETY: the structure of dispatches, which begins with its size (the caller's promise).
    let info = || unsafe { read(record.payload.cast::<KernelDispatchData>()) }.dispatch_info;
    let operation = Some(record.operation);
    if operation == operations.enqueue && record.phase == CallbackPhase::ENTER {
        enqueued(&info());
    } else if operation == operations.complete {
        let info = info();
        let mut completed = COMPLETED.lock();
        if info.dispatch_id != 0 && completed.len() < MOST_COMPLETED {
            completed.push((info.dispatch_id, info.agent_id));
        }
    }
}

fn enqueued(info: &KernelDispatchInfo) {
    if let Some(mut host) = process::current().and_then(|thread| thread.borrow()) {
        dispatches::note(&mut host, info.dispatch_id, info.kernel_id);
    }
}

/// The dispatches that have completed since this was last asked, with their agents, in the order of their numbers.
pub(super) fn take_completed() -> Vec<(DispatchId, AgentId)> {
    let mut completed = std::mem::take(&mut *COMPLETED.lock());
    completed.sort_unstable();
    completed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_by_name() {
        let named = |names: [&str; 2]| {
            let names = names.map(str::to_owned);
            let named: Vec<_> = (7..).zip(names).collect();
            let found = DispatchOperations::of(&named);
            (found.enqueue, found.complete)
        };
        let both = ["KERNEL_DISPATCH_COMPLETE", "KERNEL_DISPATCH_ENQUEUE"];
        assert_eq!(named(both), (Some(8), Some(7)));
        assert_eq!(named(["KERNEL_DISPATCH_NONE", ""]), (None, None));
    }
}
