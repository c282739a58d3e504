//! Counters of devices whose kernels run on threads of the program: PoCL's processors. Offers them to the counter
//! collection service, and separates counted kernels from other work. Panics are contained here and do not affect the
//! layer.

use super::device::Device;
use super::dispatch::{contained, next};
use super::ffi::*;
use super::queues;
use super::waits::WaitList;
use super::work::{Enqueue, EnqueueInfo, OnQueue};
use crate::collect::correlation::HostThread;
use crate::collect::counting::CountingError;
use crate::collect::counting::values::Subject;
use crate::collect::process;
use crate::platform::inside::message;
use crate::record::{AgentId, NoteKind};
use crate::source::perf::HostCounters;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The counters of this process. Never freed, since a thread may be using them.
static COUNTERS: AtomicPtr<Arc<HostCounters>> = AtomicPtr::new(std::ptr::null_mut());
/// Whether the program has created user events: work may wait for the program itself then.
static HAS_USER_EVENTS: AtomicBool = AtomicBool::new(false);

/// Creates the counters when the process begins, also in a forked child.
pub(super) fn begin() {
    let new = Box::leak(Box::new(Arc::new(HostCounters::new())));
    COUNTERS.store(new, Ordering::Release);
}

fn counters() -> Option<&'static Arc<HostCounters>> {
    // SAFETY: null or a leaked box.
    unsafe { COUNTERS.load(Ordering::Acquire).as_ref() }
}

/// Whether kernels of any agent are counted.
#[inline(always)]
pub(super) fn is_on() -> bool {
    HostCounters::is_active()
}

/// Notes that the program has created a user event.
pub(super) fn user_event() {
    HAS_USER_EVENTS.store(true, Ordering::Relaxed);
}

/// Offers a new agent to the service if its kernels run in this process, and starts counting if the recording asks for
/// that.
pub(super) fn new_agent(agent: AgentId, device: &Device) {
    contained(|| offer(agent, device));
}

fn offer(agent: AgentId, device: &Device) {
    let (Some(board), Some(counters)) = (process::board(), counters()) else {
        return;
    };
    if device.has_host_threads() {
        let offered = counters.agent(agent, board.names());
        board.counting().offer(agent, &device.name, offered);
    }
    if let Some(recorder) = process::recorder()
        && let Err(error) = recorder.count(agent, &device.name)
    {
        // Agents without counters may stand beside some that have them.
        if !matches!(error, CountingError::NotSupported { .. }) {
            message(format_args!("{error}"));
        }
        if let Some(names) = process::names() {
            names.note(NoteKind::OTHER, &format!("counters: {error}"));
        }
    }
}

/// Prepares to count `work` if it is a kernel, which the program is about to enqueue: waits until the work before it has ended, and reads.
///
/// # Safety
///
/// `queue` is the program's, `waits` is its list.
#[cold]
#[inline(never)]
pub(super) unsafe fn before(queue: impl OnQueue, work: impl Enqueue, waits: WaitList) {
    contained(|| {
        if !work.is_kernel() {
            return;
        }
        let Some(counters) = counters() else {
            return;
        };
        // SAFETY: the caller's promise.
        let queue = unsafe { queue.queue() };
        let agent = queues::ids(queue).agent;
        if HAS_USER_EVENTS.load(Ordering::Relaxed) || !counters.acquire(agent) {
            return;
        }
        // Errors are those of the enqueue, too, which reports them.
        next!(clFinish(queue));
        if let Some((count, events)) = waits.list() {
            next!(clWaitForEvents(count, events));
        }
        counters.begin(agent);
    });
}

/// Waits for a kernel that [`before`] has prepared, and reads. The runtime has taken it into a queue of `agent`.
#[cold]
#[inline(never)]
pub(super) fn after(agent: AgentId, event: cl_event) {
    if let Some(counters) = counters()
        && counters.is_owner()
        && !event.is_null()
    {
        next!(clWaitForEvents(1, &event));
        counters.end(agent);
    }
}

/// Writes the values of a kernel that `host` has enqueued; `times` are those of its completion, if they are known.
#[cold]
#[inline(never)]
pub(super) fn write(host: &mut HostThread, info: &EnqueueInfo, times: Option<[u64; 4]>) {
    let Some(counters) = counters() else {
        return;
    };
    if info.buffers.is_none() {
        return counters.release();
    }
    let subject = Subject {
        work: info.work.id,
        correlation: info.work.correlation,
        queue: info.work.queue,
        duration: times.map(|[_, _, start, end]| end.saturating_sub(start)),
        ..Subject::default()
    };
    counters.write(host, info.work.agent, &subject);
}

/// Ends counting a kernel that the runtime refused, or that is not recorded.
#[cold]
#[inline(never)]
pub(super) fn abandon() {
    if let Some(counters) = counters() {
        counters.release();
    }
}
