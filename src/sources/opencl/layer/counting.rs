//! Counters of devices whose kernels run on threads of the program: PoCL's processors. Offers them to the counter
//! collection service, and separates counted kernels from other work. Panics are contained here and do not affect the
//! layer.

use super::call::ObservedCall;
use super::completion;
use super::device::Device;
use super::dispatch::{below, contained, next};
use super::ffi::*;
use super::functions::ask;
use super::queues;
use super::replay;
use super::waits::WaitList;
use super::work::{Enqueue, EnqueueInfo, OnQueue};
use crate::perf::{CountedKernel, HostCounters};
use gputrail_buffer::platform::inside::{Uncancelled, message};
use gputrail_collect::correlation::HostThread;
use gputrail_collect::counting::CountingError;
use gputrail_collect::counting::values::Subject;
use gputrail_collect::process;
use gputrail_record::{AgentId, NoteKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::{Duration, Instant};

/// The counters of this process. Never freed, since a thread may be using them.
static COUNTERS: AtomicPtr<Arc<HostCounters>> = AtomicPtr::new(std::ptr::null_mut());
/// Whether work may wait for the program itself: it has user events, native kernels or fine-grained shared memory.
static WAITS_FOR_PROGRAM: AtomicBool = AtomicBool::new(false);
/// How long the work before a kernel may take.
const LONGEST_WORK_BEFORE: Duration = Duration::from_secs(1);
/// How long a counted kernel may take.
const LONGEST_KERNEL: Duration = Duration::from_secs(10);
/// An event is asked so often without a pause, and then after each pause.
const POLLS: u32 = 100;
const PAUSE: Duration = Duration::from_micros(50);

/// Creates the counters when the process begins, also in a forked child.
pub(super) fn begin() {
    let new = Box::leak(Box::new(Arc::new(HostCounters::new())));
    COUNTERS.store(new, Ordering::Release);
    replay::begin();
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

/// Notes that the program's work may wait for the program from now on.
pub(super) fn work_waits_for_program() {
    WAITS_FOR_PROGRAM.store(true, Ordering::Relaxed);
}

/// Notes that the program has allocated shared virtual memory with these flags.
pub(super) fn svm_allocated(flags: cl_bitfield) {
    if flags.0 & CL_MEM_SVM_FINE_GRAIN_BUFFER != 0 {
        work_waits_for_program();
    }
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
            message(format_args!("{error}. Nothing is counted on this device"));
        }
        if let Some(names) = process::names() {
            names.note(NoteKind::OTHER, &format!("counters: {error}"));
        }
    }
}

/// Whether `thread` is one of the runtime, which a kernel may need to run.
pub(super) fn is_of_runtime(thread: u32) -> bool {
    counters().is_some_and(|counters| counters.is_of_runtime(thread))
}

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
    work: impl Enqueue,
    waits: WaitList,
) -> bool {
    let mut is_begun = false;
    contained(|| {
        replay::wait_for_others();
        if !work.is_kernel() {
            return;
        }
        let Some(counters) = counters() else {
            return;
        };
        // The runtime must not be unwound through the frames of the layer.
        let _uncancelled = Uncancelled::begin();
        // SAFETY: `queue` is a queue, or a list that is null or leads to one.
        let queue = unsafe { queue.queue() };
        let agent = queues::ids(queue).agent;
        is_begun = !WAITS_FOR_PROGRAM.load(Ordering::Relaxed) && counters.acquire(agent);
        // SAFETY: `queue` is the program's, and `waits` is its list.
        let is_alone = is_begun && unsafe { ended_before(queue, waits) };
        if is_begun && !is_alone {
            counters.release();
        }
        is_begun = counters.choose(agent, is_alone, || call.dispatch_of(queue, work));
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

/// Whether the work in `queue` has ended, or does within the time that work before a kernel may take.
pub(super) fn has_ended_soon(queue: cl_command_queue) -> bool {
    // SAFETY: no list.
    !WAITS_FOR_PROGRAM.load(Ordering::Relaxed) && unsafe { ended_before(queue, WaitList::NONE) }
}

/// Waits until the work in `queue` and that of `waits` have ended. `false`: they did not in time, or cannot be asked.
///
/// # Safety
///
/// As for [`before`].
unsafe fn ended_before(queue: cl_command_queue, waits: WaitList) -> bool {
    let Some(enqueue_marker) = below().clEnqueueMarkerWithWaitList else {
        return false;
    };
    let until = Instant::now() + LONGEST_WORK_BEFORE;
    let mut marker = cl_event::NULL;
    // SAFETY: the program's queue, an empty list, a place for the event.
    let result = unsafe { enqueue_marker(queue, 0, std::ptr::null(), &raw mut marker) };
    if result != CL_SUCCESS {
        return false;
    }
    // SAFETY: the queue of the program's call, or one that `replay` holds a reference to.
    unsafe { next!(clFlush(queue)) };
    let is_empty = has_ended(marker, until);
    completion::release(marker);
    let (count, events) = waits.list().unwrap_or((0, std::ptr::null()));
    // SAFETY: the list is the program's, which keeps it during the call: it leads to `count` events, or is null.
    let mut events = unsafe { super::work::list(events, count) }.iter();
    is_empty
        && events.all(|event| {
            let queue =
                ask!(below(), clGetEventInfo(*event, CL_EVENT_COMMAND_QUEUE) -> cl_command_queue);
            if let Some(queue) = queue.filter(|queue| !queue.is_null()) {
                // SAFETY: the queue of an event in the program's list, which keeps it alive.
                unsafe { next!(clFlush(queue)) };
            }
            has_ended(*event, until)
        })
}

/// Waits until the work of `event` has ended. `false`: it did not until then, or may wait for the program.
fn has_ended(event: cl_event, until: Instant) -> bool {
    let mut polls = 0;
    loop {
        match completion::status_of(event) {
            None => return false,
            Some(status) if status <= CL_COMPLETE => return true,
            Some(_) => {}
        }
        if WAITS_FOR_PROGRAM.load(Ordering::Relaxed) || Instant::now() >= until {
            return false;
        }
        if polls < POLLS {
            std::thread::yield_now()
        } else {
            std::thread::sleep(PAUSE)
        }
        polls += 1;
    }
}

/// Waits for a kernel that [`before`] has prepared, and reads. The runtime has taken it into `queue`, which belongs to
/// `agent`. Returns whether the kernel has ended.
#[cold]
#[inline(never)]
pub(super) fn after(
    call: &ObservedCall,
    work: impl Enqueue,
    agent: AgentId,
    queue: cl_command_queue,
    event: cl_event,
) -> bool {
    let Some(counters) = counters() else {
        return false;
    };
    if event.is_null() || !counters.is_counting() {
        return false;
    }
    let _uncancelled = Uncancelled::begin();
    // SAFETY: the queue of the program's call.
    unsafe { next!(clFlush(queue)) };
    let has_ended = has_ended(event, Instant::now() + LONGEST_KERNEL);
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
    let Some(counters) = counters() else {
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
    if let Some(counters) = counters() {
        counters.abandon(call.correlation(), run).tell();
    }
}
