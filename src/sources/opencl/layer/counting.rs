//! Kernels that are counted, on devices whose kernels run on threads of the program: separates them from other work, and
//! reads the counters around them. Panics are contained here and do not affect the layer.

use super::below::next;
use super::call::ObservedCall;
use super::callers;
use super::contained::contained;
use super::counters;
use super::ended;
use super::ffi::*;
use super::queues;
use super::replay;
use super::waits::WaitList;
use super::work::{EnqueueInfo, EnqueuedRecords, OnQueue};
use crate::perf::CountedKernel;
use gputrail_buffer::platform::inside::Uncancelled;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::counting::values::Subject;
use gputrail_record::{AgentId, KernelDispatch, WorkId};
use std::time::{Duration, Instant};

/// How long a counted kernel may take.
const LONGEST_KERNEL: Duration = Duration::from_secs(10);

/// Prepares to count `work` if it is a kernel, which the program is about to enqueue by `call`: waits until the work before
/// it has ended, runs it for all passes but the last, and reads. Returns whether [`abandon`] is to be called afterwards: the
/// calling thread may own the counters, or a tool has chosen some.
///
/// # Safety
///
/// `queue` is the program's, and a list is null or leads to a queue. `waits` is the program's list, of valid events, which
/// it keeps during the call.
#[cold]
#[inline(never)]
pub(super) unsafe fn before(
    call: &ObservedCall,
    queue: impl OnQueue,
    work: impl EnqueuedRecords,
    waits: WaitList,
) -> bool {
    let mut is_begun = false;
    contained(|| {
        replay::wait_for_others();
        if !work.is_kernel() {
            return;
        }
        let Some(counters) = counters::of_process() else {
            return;
        };
        // The runtime must not be unwound through the frames of the layer.
        let _uncancelled = Uncancelled::begin();
        // SAFETY: `queue` is a queue, or a list that is null or leads to one.
        let queue = unsafe { queue.queue() };
        let agent = queues::ids(queue).agent;
        is_begun = !counters::may_wait_for_program()
            && counters.acquire(agent, callers::may_be_of_runtime);
        // SAFETY: `queue` is the program's, and `waits` is its list.
        let is_alone = is_begun && unsafe { ended::before(queue, waits) };
        if is_begun && !is_alone {
            counters.release();
        }
        is_begun = counters.choose(agent, is_alone, || dispatch_of(call, queue, work));
        if !is_alone {
            return;
        }
        if !is_begun {
            counters.release();
            return;
        }
        let passes = counters.passes(agent);
        if passes < 2 {
            return counters.begin(agent, 0);
        }
        let launch = work.launch();
        let told = |done| call.notify_replay(&work, done, passes);
        if let Err(reason) = replay::run(counters, agent, queue, launch, passes, told) {
            counters.refuse(agent, reason);
        }
    });
    is_begun
}

/// The record of a kernel that the call is going to put into `queue`, without what is known later.
fn dispatch_of(
    call: &ObservedCall,
    queue: cl_command_queue,
    work: impl EnqueuedRecords,
) -> Option<KernelDispatch> {
    let thread = call.thread?.state().thread();
    let info = call.enqueue_info(thread, &queues::ids(queue), WorkId::NONE, false);
    let mut dispatch = None;
    work.describe(&info, &mut |command| {
        dispatch = command.record.read::<KernelDispatch>();
    });
    dispatch
}

/// Waits for a kernel that [`before`] has prepared, and reads. The runtime has taken it into `queue`, which belongs to
/// `agent`. Returns whether the kernel has ended.
#[cold]
#[inline(never)]
pub(super) fn after(
    call: &ObservedCall,
    work: impl EnqueuedRecords,
    agent: AgentId,
    queue: cl_command_queue,
    event: cl_event,
) -> bool {
    let Some(counters) = counters::of_process() else {
        return false;
    };
    if event.is_null() || !counters.is_counting() {
        return false;
    }
    let _uncancelled = Uncancelled::begin();
    // SAFETY: the queue of the program's call.
    unsafe { next!(clFlush(queue)) };
    let has_ended = ended::by(event, Instant::now() + LONGEST_KERNEL);
    if has_ended {
        counters.end()
    } else {
        counters.release()
    }
    let passes = counters.passes(agent);
    if has_ended && passes > 1 {
        call.notify_replay(&work, passes, passes);
    }
    has_ended
}

/// Writes the values of a kernel that `host` has enqueued; `times` are those of its completion, if they are known. The
/// result passes them to the tool that has chosen the counters.
#[cold]
#[inline(never)]
pub(super) fn write(
    host: &mut HostThread,
    info: &EnqueueInfo,
    times: Option<[u64; 4]>,
) -> CountedKernel {
    let Some(counters) = counters::of_process() else {
        return CountedKernel::default();
    };
    if info.buffers.is_none() {
        return counters.abandon(info.work.correlation, false);
    }
    let subject = Subject {
        work: info.work.id,
        correlation: info.work.correlation,
        queue: info.work.queue,
        duration: times.map(|[_, _, start, end]| end.saturating_sub(start)),
        ..Subject::default()
    };
    counters.write(host, info.work.agent, &subject)
}

/// Ends counting a kernel that [`before`] has begun, unless its values have been written: the runtime refused it, or it
/// has `run` without having been counted.
#[cold]
#[inline(never)]
pub(super) fn abandon(call: &ObservedCall, run: bool) {
    if let Some(counters) = counters::of_process() {
        counters.abandon(call.correlation(), run).tell();
    }
}
