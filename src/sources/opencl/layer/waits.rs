//! Waits of the host, and the work that they waited for, from the last work of each queue and from recent events.

use super::below::{below, next};
use super::call::ObservedCall;
use super::completion::OUTSTANDING;
use super::contained::contained;
use super::contexts;
use super::ffi::*;
use super::functions::{ArgumentForm, ask, bits};
use super::queues::{self, QueueIds};
use super::work::{self, synchronization};
use gputrail_collect::correlation::HostThread;
use gputrail_collect::switchboard::Buffers;
use gputrail_record::{
    ContextId, CorrelationId, Dependency, Kind, QueueId, Synchronization, SynchronizationType,
    WorkId,
};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of queues whose last work is kept.
const QUEUES: usize = 4096;
/// Number of the program's events whose work is kept: a power of two.
const EVENTS: usize = 1024;

/// The last work of each queue.
static LAST: [AtomicU64; QUEUES] = [const { AtomicU64::new(0) }; QUEUES];
/// Recent events with their work and its queue, in the slot given by the handle; a newer event replaces an older one. A
/// reader that races with a writer may see one event's work as another's, which costs a wrong arrow.
static RECENT: [RecentEvent; EVENTS] =
    [const { RecentEvent([const { AtomicU64::new(0) }; 3]) }; EVENTS];

/// An event, its work, and the queue of the work with its context in the high half.
#[repr(align(32))]
struct RecentEvent([AtomicU64; 3]);

/// Maximum number of events of one list that are read.
const MAX_EVENTS: usize = 256;
/// Maximum number of queues that one call is recorded to wait for.
const MAX_QUEUES: usize = 16;

pub(super) fn forget_all() {
    LAST.iter()
        .chain(RECENT.iter().flat_map(|recent| &recent.0))
        .for_each(|word| word.store(0, Ordering::Relaxed));
}

/// Notes that `work` was put into `queue`.
#[inline(always)]
pub(super) fn last_work(queue: QueueId, work: WorkId) {
    if let Some(last) = LAST.get(queue.0 as usize) {
        last.store(work.0, Ordering::Relaxed);
    }
}

/// Notes that the program got `event`, which belongs to `work` in `queue`.
#[inline(always)]
pub(super) fn remember(event: cl_event, work: WorkId, queue: &QueueIds) {
    let [known, of, its_queue] = place(event);
    let ids = u64::from(queue.context.0) << 32 | u64::from(queue.id.0);
    its_queue.store(ids, Ordering::Relaxed);
    of.store(work.0, Ordering::Relaxed);
    known.store(event.into(), Ordering::Relaxed);
}

fn place(event: cl_event) -> &'static [AtomicU64; 3] {
    let hash = (u64::from(event) >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    &RECENT[hash as usize % EVENTS].0
}

/// The work of a recent event, and its queue.
fn work_of(event: cl_event) -> Option<(WorkId, QueueId)> {
    let [known, work, queue] = place(event);
    if known.load(Ordering::Relaxed) != u64::from(event) {
        return None;
    }
    let work = WorkId(work.load(Ordering::Relaxed));
    let queue = QueueId(queue.load(Ordering::Relaxed) as u32);
    work.is_some().then_some((work, queue))
}

/// The context of an event, which the runtime is asked for unless the event is a recent one of work.
fn context_of(event: cl_event) -> ContextId {
    let [known, _, queue] = place(event);
    let is_known = || known.load(Ordering::Relaxed) == u64::from(event);
    if is_known() {
        let context = ContextId((queue.load(Ordering::Relaxed) >> 32) as u32);
        if is_known() && context.is_some() {
            return context;
        }
    }
    let context = ask!(below(), clGetEventInfo(event, CL_EVENT_CONTEXT) -> cl_context);
    let context = context.map(|context| contexts::context(context).id);
    context.unwrap_or_default()
}

/// The event wait list of a call, and its length.
#[derive(Copy, Clone)]
pub(super) struct WaitList {
    count: cl_uint,
    events: *const cl_event,
}

impl WaitList {
    pub const NONE: WaitList = WaitList {
        count: 0,
        events: core::ptr::null(),
    };

    /// Takes the next of a call's arguments: a list of events follows its length.
    #[inline(always)]
    pub fn after<T: ArgumentForm>(self, argument: T) -> WaitList {
        match T::LIST_OF_EVENTS {
            true => WaitList {
                events: bits(argument) as *const cl_event,
                ..self
            },
            false if self.events.is_null() => WaitList {
                count: bits(argument) as cl_uint,
                ..self
            },
            false => self,
        }
    }

    /// The number of events and the list, unless it is empty.
    pub fn list(self) -> Option<(cl_uint, *const cl_event)> {
        (!self.is_empty()).then_some((self.count, self.events))
    }

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.events.is_null() || self.count == 0
    }
}

/// Records that `work`, which goes to `buffers` and was enqueued by the call `correlation`, waits for the events of
/// `list`.
///
/// # Safety
///
/// The list is the program's, which keeps it during the call, and the runtime has taken it.
#[cold]
#[inline(never)]
pub(super) unsafe fn depend(
    host: &mut HostThread,
    buffers: Buffers,
    (correlation, work): (CorrelationId, WorkId),
    list: WaitList,
) {
    let buffers = buffers.and(host.board().selected(Kind::DEPENDENCY));
    if buffers.is_none() {
        return;
    }
    // SAFETY: the runtime has taken the list: it is null or leads to as many events as it says, and the program keeps it
    // during the call.
    let events = unsafe { work::list(list.events, list.count) };
    for (waited_for, _) in known(events) {
        let mut record = Dependency::blank();
        (record.correlation, record.work) = (correlation, work);
        record.waited_for = waited_for;
        host.write_to(buffers, record);
    }
}

/// The work of those `events` whose work is known.
fn known(events: &[cl_event]) -> impl Iterator<Item = (WorkId, QueueId)> {
    let events = events.iter().take(MAX_EVENTS);
    events.filter_map(|event| work_of(*event))
}

/// The last work of each queue to which `events` belong.
fn last_of_each_queue(events: &[cl_event]) -> ([(QueueId, WorkId); MAX_QUEUES], usize) {
    let (mut last, mut count) = ([(QueueId::NONE, WorkId::NONE); MAX_QUEUES], 0);
    for (work, queue) in known(events) {
        match last[..count].iter_mut().find(|(of, _)| *of == queue) {
            Some((_, latest)) => *latest = (*latest).max(work),
            None if count < MAX_QUEUES => {
                last[count] = (queue, work);
                count += 1;
            }
            None => {}
        }
    }
    (last, count)
}

pub(super) unsafe fn for_events(
    call: &mut ObservedCall,
    count: cl_uint,
    events: *const cl_event,
) -> cl_int {
    let mut before = Synchronization::blank();
    (before.what, before.events) = (SynchronizationType::EVENT_SYNCHRONIZE, count);
    call.notify_wait(before);
    // SAFETY: the program's list, of as many events as it says, or null.
    let first = unsafe { work::list(events, count) }.first();
    // All events of a wait have the same context. It is asked for as long as the program has to keep them.
    let context = first.map_or(ContextId::NONE, |event| context_of(*event));
    // SAFETY: the program's own arguments.
    let result = unsafe { next!(clWaitForEvents(count, events)) };
    call.end();
    let (count, events) = if result == CL_INVALID_VALUE {
        (0, core::ptr::null())
    } else {
        (count, events)
    };
    // SAFETY: the program's list, which the runtime did not refuse.
    let (mut record, list) = unsafe {
        let what = SynchronizationType::EVENT_SYNCHRONIZE;
        (
            synchronization(what, count, events),
            work::list(events, count),
        )
    };
    let waited = last_of_each_queue(list);
    if result == CL_SUCCESS {
        record.work.context = context;
    }
    let (last, queues) = waited;
    if let [(_, first), others @ ..] = &last[..queues] {
        record.waited_for = *first;
        for (_, other) in others {
            let mut also = Dependency::blank();
            (also.correlation, also.waited_for) = (call.correlation(), *other);
            call.host(|host| host.write(also));
        }
    }
    write(call, record, result);
    result
}

pub(super) unsafe fn finish(call: &mut ObservedCall, queue: cl_command_queue) -> cl_int {
    if call.inner_call_site().is_some() {
        let info = queues::ids(queue);
        call.notify_wait(for_queue(&info));
    }
    // SAFETY: the program's own arguments.
    let result = unsafe { next!(clFinish(queue)) };
    call.end();
    if result == CL_SUCCESS {
        let info = ids_of(call, queue);
        let last = LAST
            .get(info.id.0 as usize)
            .map_or(0, |last| last.load(Ordering::Relaxed));
        waited_for_queue(call, &info, WorkId(last));
    }
    result
}

/// The fields of records that describe `queue`.
#[inline(always)]
fn ids_of(call: &ObservedCall, queue: cl_command_queue) -> QueueIds {
    match call.thread {
        Some(thread) => OUTSTANDING
            .of_thread(thread.state().number())
            .source
            .queue(queue),
        None => queues::ids(queue),
    }
}

/// Records that a call waited until the work that it enqueued had completed.
pub(super) fn blocked(call: &mut ObservedCall, queue: QueueIds, work: WorkId) {
    waited_for_queue(call, &queue, work);
}

/// The record of a wait for `queue`.
#[inline(always)]
pub(super) fn for_queue(queue: &QueueIds) -> Synchronization {
    let mut record = Synchronization::blank();
    record.what = SynchronizationType::STREAM_SYNCHRONIZE;
    let work = &mut record.work;
    (work.agent, work.context, work.queue) = (queue.agent, queue.context, queue.id);
    record
}

/// Records that the call has waited for `queue`, whose last work was `work`.
fn waited_for_queue(call: &mut ObservedCall, queue: &QueueIds, work: WorkId) {
    let mut record = for_queue(queue);
    record.waited_for = work;
    write(call, record, CL_SUCCESS);
}

#[inline(never)]
fn write(call: &mut ObservedCall, mut record: Synchronization, status: cl_int) {
    contained(|| {
        let end = call.end();
        let by = call.host(|host| host.thread());
        call.of_call(&mut record, by.unwrap_or_default(), end);
        let interest = call.interest();
        call.host(|host| {
            let (kind, context) = (Kind::SYNCHRONIZATION, record.work.context);
            let buffers = host.board().buffers_of(interest, kind, context);
            host.write_to(buffers, record);
        });
        call.notify_waited(&record, status);
    });
}
