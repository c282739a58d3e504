//! What subscribers are told of the simulated runtime, on the threads of the simulation.
//!
//! The address space is a simulated one too, so arguments are told as records keep them: nothing is read through them.

use super::operations::Function;
use crate::collect::correlation::{Call, HostThread};
use crate::collect::operations;
use crate::collect::switchboard::{
    CallArguments, Callback, Payload, Phase, SubscriberSet, UserData, Within,
};
use crate::record::{
    Completion, CorrelationId, ExternalId, KernelId, Operation, Record, RecordRef, WorkId,
};

/// Who is told when work completes, and what they left when it was enqueued.
pub(super) struct Followers {
    operation: Operation,
    subscribers: SubscriberSet,
    kernel: KernelId,
    user_data: UserData,
}

fn subscribers(host: &HostThread, operation: Operation) -> SubscriberSet {
    host.board().interest(operation).subscribers()
}

fn callback<'a>(
    host: &'a HostThread,
    operation: Operation,
    phase: Phase,
    correlation: CorrelationId,
) -> Callback<'a> {
    let name = operations::name(operation);
    let mut callback = Callback::new(operation, name, phase);
    (callback.thread, callback.correlation) = (host.thread(), correlation);
    callback.with_kernel(KernelId::NONE, host.board().names())
}

/// Tells of a call's enter, or of its exit with a status. Returns the external id that somebody supplies for it.
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
    let phase = if status.is_none() {
        Phase::Enter
    } else {
        Phase::Exit
    };
    let mut callback = callback(host, call.operation, phase, call.correlation);
    let info = function.info();
    callback.payload = Payload::Call(CallArguments::kept(info.arguments, arguments));
    callback.return_code = status;
    let place = (call.depth, Within::Call);
    host.board()
        .tell_within(host.state(), place, subscribers, &mut callback)
}

/// Tells that something begins within a call.
pub(super) fn begin<R: Record>(
    host: &HostThread,
    call: &Call,
    within: Within,
    operation: Operation,
    kernel: KernelId,
    record: &R,
) {
    let place = (call.depth, within);
    host.board().begin_within(host.state(), place, WorkId::NONE);
    let subscribers = subscribers(host, operation);
    if !subscribers.is_none() {
        let mut callback = callback(host, operation, Phase::Enter, call.correlation);
        (callback.payload, callback.kernel) = (Payload::Record(RecordRef::of(record)), kernel);
        host.board()
            .tell_within(host.state(), place, subscribers, &mut callback);
    }
}

/// Tells that it has ended.
pub(super) fn end<R: Record>(
    host: &HostThread,
    call: &Call,
    within: Within,
    operation: Operation,
    kernel: KernelId,
    record: &R,
) -> UserData {
    let place = (call.depth, within);
    let mut callback = callback(host, operation, Phase::Exit, call.correlation);
    (callback.payload, callback.kernel) = (Payload::Record(RecordRef::of(record)), kernel);
    callback.return_code = Some(0);
    host.board().tell_exit(host.state(), place, &mut callback);
    host.board().end_within(host.state(), place)
}

/// Tells that work has been put into a queue, and says who follows it.
pub(super) fn enqueued<R: Record>(
    host: &HostThread,
    call: &Call,
    (enqueue, complete): (Operation, Operation),
    kernel: KernelId,
    record: &R,
) -> Option<Followers> {
    begin(host, call, Within::Work, enqueue, kernel, record);
    let user_data = end(host, call, Within::Work, enqueue, kernel, record);
    let subscribers = subscribers(host, complete);
    (!subscribers.is_none()).then_some(Followers {
        operation: complete,
        subscribers,
        kernel,
        user_data,
    })
}

/// Tells `followers` that work has completed.
pub(super) fn completed(host: &HostThread, followers: &mut Followers, completion: &Completion) {
    let correlation = completion.correlation;
    let mut callback = callback(host, followers.operation, Phase::Complete, correlation);
    callback.payload = Payload::Record(RecordRef::of(completion));
    (callback.kernel, callback.return_code) = (followers.kernel, Some(completion.status));
    let (subscribers, user_data) = (followers.subscribers, &mut followers.user_data);
    host.board()
        .tell(host.state(), subscribers, &mut callback, user_data);
}

/// Tells of an object that has come or is going: `id` is that of an `R`.
pub(super) fn object<R: Record>(host: &HostThread, call: &Call, operation: Operation, id: u32) {
    let subscribers = subscribers(host, operation);
    if subscribers.is_none() {
        return;
    }
    let record = host.board().names().get::<R>(id);
    let mut callback = callback(host, operation, Phase::Instant, call.correlation);
    if let Some(record) = &record {
        callback.payload = Payload::Record(RecordRef::of(record));
    }
    let mut user_data = host.board().new_user_data();
    host.board()
        .tell(host.state(), subscribers, &mut callback, &mut user_data);
}
