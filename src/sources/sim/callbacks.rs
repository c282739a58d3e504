//! Callbacks to subscribers of the simulated runtime, on the threads that make the calls.
//!
//! The address space is simulated as well, so arguments are passed as they are recorded, without reading memory.

use super::operations::SimFunction;
use gputrail_collect::correlation::CallInProgress;
use gputrail_collect::notify::{self, Followers, Notifier};
use gputrail_collect::switchboard::{
    CallArguments, CallbackArguments, Payload, ReportedPart, Switchboard, ThreadState,
};
use gputrail_interface::operations::Phase;
use gputrail_interface::operations::{kernel_dispatch, resource};
use gputrail_record::{
    CodeObject, Completion, ContextId, CorrelationId, GraphChange, KernelId, Operation, Record,
    RecordRef, WorkId,
};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// A thread of the simulation, from which subscribers are called back.
pub struct SimSite {
    pub board: Arc<Switchboard>,
    pub state: Arc<ThreadState>,
}

impl SimSite {
    fn notifier(&self, call: &CallInProgress) -> Notifier<'_> {
        Notifier {
            board: &self.board,
            state: &self.state,
            correlation: call.correlation,
            depth: call.depth,
        }
    }
}

/// Reports the enter of a call in `context`, or its exit if it has returned: its status, and what it made or found out.
pub(super) fn call(
    site: &SimSite,
    call: &CallInProgress,
    context: ContextId,
    (function, arguments): (SimFunction, &[u64]),
    returned: Option<(i32, Option<u64>)>,
) {
    let subscribers = call.interest.subscribers();
    if subscribers.is_none() {
        return;
    }
    let phase = match returned {
        None => Phase::Enter,
        Some(_) => Phase::Exit,
    };
    let info = function.info();
    let kernel = match (function, arguments) {
        (SimFunction::LaunchKernel, [kernel, ..]) => KernelId(*kernel as u32),
        _ => KernelId::NONE,
    };
    let mut callback = CallbackArguments::new(call.operation, info.name, phase)
        .with_kernel(kernel, site.board.names());
    (callback.thread, callback.correlation) = (site.state.thread(), call.correlation);
    callback.payload = Payload::Call(CallArguments::kept(info.arguments, arguments));
    if let Some((status, result)) = returned {
        callback.return_code = Some(status);
        callback.return_value = result.unwrap_or(i64::from(status) as u64);
    }
    callback.runtime_context = context;
    let place = (call.depth, ReportedPart::Call);
    site.board
        .notify_within(&site.state, place, subscribers, &callback);
}

/// Reports the enter of an activity within a call.
pub(super) fn begin<R: Record>(
    site: &SimSite,
    call: &CallInProgress,
    within: ReportedPart,
    operation: Operation,
    kernel: KernelId,
    record: &R,
) {
    let notifier = site.notifier(call);
    notifier.begin(within, WorkId::NONE);
    notifier.enter(within, operation, RecordRef::of(record), kernel);
}

/// Reports the exit of an activity within a call.
pub(super) fn end<R: Record>(
    site: &SimSite,
    call: &CallInProgress,
    within: ReportedPart,
    operation: Operation,
    kernel: KernelId,
    record: &R,
) {
    let notifier = site.notifier(call);
    let payload = Payload::Record(RecordRef::of(record));
    notifier.exit(within, operation, payload, kernel, 0);
    notifier.end(within);
}

/// Reports an enqueue, and returns the followers of the work.
pub(super) fn enqueued<R: Record>(
    site: &SimSite,
    call: &CallInProgress,
    (enqueue, complete): (Operation, Operation),
    kernel: KernelId,
    record: &R,
) -> Option<Followers> {
    begin(site, call, ReportedPart::Work, enqueue, kernel, record);
    let notifier = site.notifier(call);
    let payload = Payload::Record(RecordRef::of(record));
    notifier.exit(ReportedPart::Work, enqueue, payload, kernel, 0);
    let user_data = notifier.end(ReportedPart::Work);
    let followers = notifier.followers(complete, kernel)?;
    Some(followers.with_user_data(user_data))
}

/// Reports the completion of work to its followers.
pub(super) fn completed(site: &SimSite, followers: &mut Followers, completion: &Completion) {
    notify::completed(&site.board, &site.state, followers, completion);
}

/// The followers of the passes of a kernel that is being enqueued.
pub(super) fn of_passes(
    site: &SimSite,
    call: &CallInProgress,
    kernel: KernelId,
) -> Option<Followers> {
    site.notifier(call)
        .followers(kernel_dispatch::REPLAY, kernel)
}

/// Reports each pass of a kernel that has run once for each pass that its counters need.
pub(super) fn replayed(site: &SimSite, followers: &Followers, of: (CorrelationId, u32)) {
    notify::replayed(&site.board, &site.state, followers, of);
}

/// Reports a change of a graph within a call.
pub(super) fn graph_changed(site: &SimSite, call: &CallInProgress, change: &GraphChange) {
    site.notifier(call).graph_changed(change);
}

/// Reports the module of a kernel that is sampled or counted, the first time.
pub(super) fn profiled(site: &SimSite, call: &CallInProgress, kernel: KernelId) {
    site.notifier(call).profiled(kernel);
}

/// Reports that code was loaded, with its bytes.
pub(super) fn code_loaded(
    site: &SimSite,
    call: &CallInProgress,
    code: &CodeObject,
    bytes: impl FnOnce() -> Vec<u8>,
) {
    let (notifier, loaded) = (site.notifier(call), resource::CODE_OBJECT_LOADED);
    if !notifier.subscribers(loaded).is_none() {
        notifier.instant(loaded, Payload::Code(code, &bytes()));
    }
}

/// Reports that an object was created or destroyed. `id` is the id of an `R`.
pub(super) fn object<R: Record>(
    site: &SimSite,
    call: &CallInProgress,
    operation: Operation,
    id: u32,
) {
    site.notifier(call).object::<R>(operation, id);
}
