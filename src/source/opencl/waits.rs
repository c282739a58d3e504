//! Waits of the host: which work they waited for, as far as a glance can tell.

use super::call::Call;
use super::dispatch::next;
use super::ffi::*;
use super::queues::{self, QueueInfo};
use super::work::{list, synchronization};
use crate::record::{Kind, QueueId, Synchronization, SynchronizationType, WorkId};
use std::sync::atomic::{AtomicU64, Ordering};

/// Queues whose last work is known.
const QUEUES: usize = 4096;
/// Events that the program was given, of which the work is known: a power of two.
const EVENTS: usize = 1024;

/// The last work of each queue.
static LAST: [AtomicU64; QUEUES] = [const { AtomicU64::new(0) }; QUEUES];
/// Events and their work, each at the place that its handle gives; a newer one takes the place. A reader that
/// meets a writer may see one event's work as another's: that costs a wrong arrow.
static RECENT: [[AtomicU64; 2]; EVENTS] = [const { [const { AtomicU64::new(0) }; 2] }; EVENTS];

pub(super) fn forget_all() {
    LAST.iter()
        .chain(RECENT.iter().flatten())
        .for_each(|word| word.store(0, Ordering::Relaxed));
}

/// `work` was put into `queue`.
#[inline(always)]
pub(super) fn last_work(queue: QueueId, work: WorkId) {
    if let Some(last) = LAST.get(queue.0 as usize) {
        last.store(work.0, Ordering::Relaxed);
    }
}

/// The program was given `event`, which is that of `work`.
#[inline(always)]
pub(super) fn remember(event: cl_event, work: WorkId) {
    let place = place(event);
    place[1].store(work.0, Ordering::Relaxed);
    place[0].store(event.into(), Ordering::Relaxed);
}

fn place(event: cl_event) -> &'static [AtomicU64; 2] {
    let hash = (u64::from(event) >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    &RECENT[hash as usize % EVENTS]
}

fn work_of(event: cl_event) -> WorkId {
    let [known, work] = place(event);
    let known = known.load(Ordering::Relaxed) == u64::from(event);
    if known {
        WorkId(work.load(Ordering::Relaxed))
    } else {
        WorkId::NONE
    }
}

pub(super) unsafe fn for_events(
    call: &mut Call,
    count: cl_uint,
    events: *const cl_event,
) -> cl_int {
    let mut before = Synchronization::blank();
    (before.what, before.events) = (SynchronizationType::EVENT_SYNCHRONIZE, count);
    call.tell_wait(before);
    let result = next!(clWaitForEvents(count, events));
    call.end();
    // SAFETY: the program's list, if the runtime did not refuse it.
    let record = unsafe {
        let (count, events) = if result == CL_INVALID_VALUE {
            (0, core::ptr::null())
        } else {
            (count, events)
        };
        let mut record = synchronization(SynchronizationType::EVENT_SYNCHRONIZE, count, events);
        record.waited_for = list(events, count)
            .last()
            .map_or(WorkId::NONE, |event| work_of(*event));
        record
    };
    write(call, record, result);
    result
}

pub(super) unsafe fn finish(call: &mut Call, queue: cl_command_queue) -> cl_int {
    if call.tells_inside().is_some() {
        let info = queues::lookup(call, queue);
        call.tell_wait(for_queue(&info));
    }
    let result = next!(clFinish(queue));
    call.end();
    if result == CL_SUCCESS {
        let info = queues::lookup(call, queue);
        let last = LAST
            .get(info.id.0 as usize)
            .map_or(0, |last| last.load(Ordering::Relaxed));
        waited_for_queue(call, &info, WorkId(last));
    }
    result
}

/// A call waited until the work that it put into a queue had completed.
pub(super) fn blocked(call: &mut Call, queue: &QueueInfo, work: WorkId) {
    waited_for_queue(call, queue, work);
}

/// A wait for `queue`.
pub(super) fn for_queue(queue: &QueueInfo) -> Synchronization {
    let mut record = Synchronization::blank();
    record.what = SynchronizationType::STREAM_SYNCHRONIZE;
    (record.agent, record.context, record.queue) = (queue.agent, queue.context, queue.id);
    record
}

fn waited_for_queue(call: &mut Call, queue: &QueueInfo, work: WorkId) {
    let mut record = for_queue(queue);
    record.waited_for = work;
    write(call, record, CL_SUCCESS);
}

fn write(call: &mut Call, mut record: Synchronization, status: cl_int) {
    record.correlation = call.correlation();
    (record.start, record.end) = (call.start(), call.end());
    call.host(|host| {
        (record.external, record.thread) = (host.external(), host.thread());
        let buffers = host
            .board()
            .buffers_in(Kind::SYNCHRONIZATION, record.context);
        host.write_to(buffers, record);
    });
    call.tell_waited(&record, status);
}
