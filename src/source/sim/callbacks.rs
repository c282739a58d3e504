//! Callbacks to subscribers of the simulated runtime, on the threads of the simulation.
//!
//! The address space is simulated as well, so arguments are passed as they are recorded, without reading memory.

use super::operations::Function;
use crate::collect::correlation::{CallInProgress, HostThread};
use crate::collect::notify::{self, Followers, Notifier};
use crate::collect::switchboard::{CallArguments, Callback, Payload, Phase, Within};
use crate::record::{Completion, ExternalId, KernelId, Operation, Record, RecordRef, WorkId};

/// Reports the enter of a call, or its exit if there is a status. Returns the external id that a subscriber
/// supplied.
pub(super) fn call(
    host: &HostThread,
    call: &CallInProgress,
    function: Function,
    arguments: &[u64],
    status: Option<i32>,
) -> Option<ExternalId> {
    let subscribers = call.interest.subscribers();
    if subscribers.is_none() {
        return None;
    }
    let phase = match status {
        None => Phase::Enter,
        Some(_) => Phase::Exit,
    };
    let info = function.info();
    let mut callback = Callback::new(call.operation, info.name, phase)
        .with_kernel(KernelId::NONE, host.board().names());
    (callback.thread, callback.correlation) = (host.thread(), call.correlation);
    callback.payload = Payload::Call(CallArguments::kept(info.arguments, arguments));
    callback.return_code = status;
    let place = (call.depth, Within::Call);
    host.board()
        .notify_within(host.state(), place, subscribers, &mut callback)
}

/// Reports the enter of an activity within a call.
pub(super) fn begin<R: Record>(
    host: &HostThread,
    call: &CallInProgress,
    within: Within,
    operation: Operation,
    kernel: KernelId,
    record: &R,
) {
    let notifier = Notifier::inside(host, call);
    notifier.begin(within, WorkId::NONE);
    notifier.enter(within, operation, RecordRef::of(record), kernel);
}

/// Reports the exit of an activity within a call.
pub(super) fn end<R: Record>(
    host: &HostThread,
    call: &CallInProgress,
    within: Within,
    operation: Operation,
    kernel: KernelId,
    record: &R,
) {
    let notifier = Notifier::inside(host, call);
    let payload = Payload::Record(RecordRef::of(record));
    notifier.exit(within, operation, payload, kernel, 0);
    notifier.end(within);
}

/// Reports an enqueue, and returns the followers of the work.
pub(super) fn enqueued<R: Record>(
    host: &HostThread,
    call: &CallInProgress,
    (enqueue, complete): (Operation, Operation),
    kernel: KernelId,
    record: &R,
) -> Option<Followers> {
    begin(host, call, Within::Work, enqueue, kernel, record);
    let notifier = Notifier::inside(host, call);
    let payload = Payload::Record(RecordRef::of(record));
    notifier.exit(Within::Work, enqueue, payload, kernel, 0);
    let user_data = notifier.end(Within::Work);
    let followers = notifier.followers(complete, kernel)?;
    Some(followers.with_user_data(user_data))
}

/// Reports the completion of work to its followers.
pub(super) fn completed(host: &HostThread, followers: &mut Followers, completion: &Completion) {
    notify::completed(host.board(), host.state(), followers, completion);
}

/// Reports that an object was created or destroyed. `id` is the id of an `R`.
pub(super) fn object<R: Record>(
    host: &HostThread,
    call: &CallInProgress,
    operation: Operation,
    id: u32,
) {
    Notifier::inside(host, call).object::<R>(operation, id);
}
