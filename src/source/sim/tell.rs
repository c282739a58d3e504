//! Callbacks of subscribers of the simulated runtime, on the threads of the simulation.
//!
//! The address space is a simulated one too, so callbacks get arguments as records keep them: nothing is read through them.

use super::operations::Function;
use crate::collect::correlation::{Call, HostThread};
use crate::collect::notify::{self, Followers, Notifier};
use crate::collect::switchboard::{CallArguments, Callback, Payload, Phase, Within};
use crate::record::{Completion, ExternalId, KernelId, Operation, Record, RecordRef, WorkId};

/// Calls back about a call's enter, or about its exit with a status. Returns the external id that a subscriber supplies.
pub(super) fn call(
    host: &HostThread,
    call: &Call,
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
        .tell_within(host.state(), place, subscribers, &mut callback)
}

/// Calls back at the enter of something within a call.
pub(super) fn begin<R: Record>(
    host: &HostThread,
    call: &Call,
    within: Within,
    operation: Operation,
    kernel: KernelId,
    record: &R,
) {
    let notifier = Notifier::inside(host, call);
    notifier.begin(within, WorkId::NONE);
    notifier.enter(within, operation, RecordRef::of(record), kernel);
}

/// Calls back at its exit.
pub(super) fn end<R: Record>(
    host: &HostThread,
    call: &Call,
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

/// Calls back at the enter and the exit of an enqueue, and returns the followers of the work.
pub(super) fn enqueued<R: Record>(
    host: &HostThread,
    call: &Call,
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

/// Calls back the followers of work that has completed.
pub(super) fn completed(host: &HostThread, followers: &mut Followers, completion: &Completion) {
    notify::completed(host.board(), host.state(), followers, completion);
}

/// Calls back about an object that has come or is going: `id` is that of an `R`.
pub(super) fn object<R: Record>(host: &HostThread, call: &Call, operation: Operation, id: u32) {
    Notifier::inside(host, call).object::<R>(operation, id);
}
