//! The answers to the SDK's requests for external ids: our id of the call that enqueues work, which comes back with the records of
//! the work and with its samples and counters.
//!
//! The SDK asks on the thread that enqueues, within the call. It asks once for each context, so that a dispatch which is
//! recorded, sampled and counted has one id. Work of a call that nobody records has an id of its own, by which it finds its thread and
//! external id.

use super::recent::{KINDS, RECENT, RecentCall};
use super::session::current_session;
use super::streams;
use crate::calls::stack;
use core::ffi::{c_int, c_void};
use gputrail_buffer::platform::inside::contain;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::process::{self, Current};
use gputrail_record::{CorrelationId, Dependency, Ticks, flags};
use gputrail_rocprofiler::{
    ContextId, ExternalCorrelationRequestKind, ThreadId, TracingOperation, UserData,
};

/// The function that answers.
pub(super) unsafe extern "C" fn answer(
    _: ThreadId,
    _: ContextId,
    kind: ExternalCorrelationRequestKind,
    _: TracingOperation,
    _: u64,
    place: *mut UserData,
    _: *mut c_void,
) -> c_int {
    contain(|| {
        let call = enqueuing_call(matches!(
            kind,
            ExternalCorrelationRequestKind::KERNEL_DISPATCH
                | ExternalCorrelationRequestKind::MEMORY_COPY
        ));
        if !place.is_null() {
            // SAFETY: the SDK's place for the answer.
            unsafe { place.write(UserData::from(call.0)) };
        }
    });
    0
}

/// The innermost call in progress of the calling thread, noted for its work. `is_work` says that it enqueues work now, which it
/// announces the first time.
fn enqueuing_call(is_work: bool) -> CorrelationId {
    let thread = current_session().and_then(|_| process::current());
    let noted = thread.and_then(|thread| note(thread, is_work));
    noted.unwrap_or(CorrelationId::NONE)
}

fn note(thread: Current, is_work: bool) -> Option<CorrelationId> {
    let mut host = thread.borrow()?;
    let (correlation, depth) = host.innermost();
    if !correlation.is_some() {
        let call = RecentCall {
            correlation: host.new_correlation(),
            ..of_thread(&host, thread)
        };
        RECENT.put(&call);
        return Some(call.correlation);
    }
    let known = RECENT.get(correlation);
    if known.is_some_and(|known| known.work.is_some() || !is_work) {
        return Some(correlation);
    }
    // Calls of other sources, such as OpenCL's, are not on this stack: their start is not known here.
    let open = stack(thread).calls.get(depth as usize);
    let open = open.map(|open| open.get().call);
    let start = open.filter(|open| open.correlation == correlation);
    let mut call = known.unwrap_or_else(|| RecentCall {
        correlation,
        is_call: true,
        start: start.map_or(Ticks::NONE, |open| open.start),
        ..of_thread(&host, thread)
    });
    if is_work {
        call.work = host.new_work();
        let mut announcement = Dependency::blank();
        announcement.header = announcement.header.with(flags::LATE);
        (announcement.correlation, announcement.waited_for) = (correlation, call.work);
        host.write(announcement);
    }
    RECENT.put(&call);
    Some(correlation)
}

/// The part of a call of a thread that its work takes over.
fn of_thread(host: &HostThread, thread: Current) -> RecentCall {
    RecentCall {
        external: host.external(),
        thread: host.thread(),
        stream: streams::current(thread),
        wanted: KINDS.map(|kind| host.buffers_for(kind)),
        ..RecentCall::default()
    }
}
