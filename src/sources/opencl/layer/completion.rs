//! Completions of work: the callback of each event, and the times of its work.
//!
//! The callback runs on any thread that the runtime chooses, including the enqueuing one, and perhaps under the
//! runtime's locks: it never waits. [`sweep`] finds work whose callback never comes.

use super::below::{below, next};
use super::clocks;
use super::contained::contained;
use super::device::is_measured;
use super::ffi::*;
use super::functions::ask;
use super::queues::{self, LastQueue, QueueIds};
use super::sampling;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use gputrail_buffer::clock;
use gputrail_collect::attributes;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::notify::{self, Followers};
use gputrail_collect::outstanding::{
    ClaimedSlot, OfThread, Outstanding, OutstandingWork, THREADS, Ticket, completion_header,
};
use gputrail_collect::process::{self, Current};
use gputrail_collect::switchboard::{Buffers, Flush};
use gputrail_record::{
    AgentId, Completion, CorrelationId, DeviceTime, Ticks, Unfinished, WorkHeader, WorkId,
};

/// Work that has not completed. The key is the handle of an event to which the slot holds a reference.
pub(super) static OUTSTANDING: Outstanding<ThreadBooks> =
    Outstanding::new([const { OfThread::new(ThreadBooks::new()) }; THREADS]);

/// The layer's state of one thread.
pub(super) struct ThreadBooks {
    /// Whether the last work that the thread enqueued had completed when its enqueue returned.
    completes_in_enqueue: AtomicBool,
    queue: LastQueue,
}

impl ThreadBooks {
    const fn new() -> ThreadBooks {
        ThreadBooks {
            completes_in_enqueue: AtomicBool::new(false),
            queue: LastQueue::new(),
        }
    }

    /// The ids of `queue`, which is nearly always the last one of the thread.
    #[inline(always)]
    pub fn queue(&self, queue: cl_command_queue) -> QueueIds {
        self.queue.ids(queue)
    }

    #[inline(always)]
    fn completes_in_enqueue(&self) -> bool {
        self.completes_in_enqueue.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn set_completes_in_enqueue(&self, completes: bool) {
        self.completes_in_enqueue
            .store(completes, Ordering::Relaxed);
    }
}

/// The event that is the key of `work`.
#[inline(always)]
fn event_of(work: &OutstandingWork) -> cl_event {
    cl_event(work.key as *mut _)
}

/// The event callback. `user_data` is the [`Ticket`].
pub(super) unsafe extern "C-unwind" fn completed(
    _: cl_event,
    status: cl_int,
    user_data: *mut c_void,
) {
    contained(|| {
        let (ticket, thread) = (Ticket(user_data as u64), process::current());
        let own = thread.map(|thread| OUTSTANDING.of_thread(thread.state().number()));
        let in_enqueue = own.and_then(|own| {
            let claim = OUTSTANDING.claim_in_enqueue(ticket, own)?;
            own.source.set_completes_in_enqueue(true);
            Some(claim)
        });
        if let Some(claim) = in_enqueue.or_else(|| OUTSTANDING.claim(ticket)) {
            finish(claim, status, thread);
        }
    });
}

/// Completes work whose callback has come on another thread before the enqueuing thread has published the slot.
#[cold]
pub(super) fn overtaken(claim: ClaimedSlot<'_>, thread: Current) {
    let status = status_of(event_of(&claim.work())).unwrap_or(CL_COMPLETE);
    finish(claim, status, Some(thread));
}

/// Completes work: queries its times, writes its completion to the lane of `thread`, and releases the event.
#[inline(always)]
fn finish(claim: ClaimedSlot<'_>, status: cl_int, thread: Option<Current>) {
    let work = claim.work();
    let mut times = [0; 4];
    let known = ask_times(event_of(&work), &mut times);
    release(event_of(&work));
    let [queued, _, start, end] = times;
    if known {
        // Before the completion is written: a consumer of it finds the agent's clock.
        clocks::offer(work.agent, work.window, DeviceTime(queued));
    }
    sampling::completed(work.work, DeviceTime(start), DeviceTime(end));
    let of = (work.work, work.correlation, work.agent);
    let put = |to: &mut Completion, now| fill(to, of, known.then_some(&times), status, now);
    let (mut left, mut own, mut now) = (work.buffers, None, Ticks::NONE);
    if let Some(thread) = thread
        && let Some(mut host) = thread.borrow()
    {
        let kept = OUTSTANDING.of_thread(host.number());
        now = clock::now();
        left = host.try_fill(work.buffers, |completion| put(completion, now));
        if left.is_none() {
            host.work_ends(work.correlation, now);
        }
        own = Some(kept);
    }
    if own.is_some() && left.is_none() && !claim.has_followers() {
        OUTSTANDING.free(claim, own);
    } else {
        let mut completion = Completion::blank();
        put(&mut completion, now);
        leave(claim, left, completion, thread, own);
    }
}

/// Fills in the completion of a piece of work, which the host learnt at `completed`. `times` are queued, submitted,
/// start and end.
#[inline(always)]
fn fill(
    to: &mut Completion,
    (work, correlation, agent): (WorkId, CorrelationId, AgentId),
    times: Option<&[u64; 4]>,
    status: cl_int,
    completed: Ticks,
) {
    let (latency, unfinished) = match times {
        Some(_) => (attributes::latency_times(), Unfinished::default()),
        None => (false, Unfinished::NO_TIMES),
    };
    let time = |at: usize| {
        // Each by itself, as the runtime has just stored it: a processor waits for what it loads in another size.
        // SAFETY: a reference.
        times.map_or(0, |times| unsafe { (&raw const times[at]).read_volatile() })
    };
    let latency_time = |at: usize| DeviceTime(if latency { time(at) } else { 0 });
    *to = Completion {
        header: completion_header(status, unfinished),
        work,
        correlation,
        queued: latency_time(0),
        submitted: latency_time(1),
        start: DeviceTime(time(2)),
        end: DeviceTime(time(3)),
        completed,
        agent,
        status,
        unfinished,
        reserved: [0; 7],
    };
}

/// Whether the work of `event` is complete already, with its times in `times`: some runtimes run work during its
/// enqueue, and blocking calls wait for it. Such work needs neither a callback nor a slot. The event is queried only if
/// `is_likely`, or if the thread's previous work was complete, too.
#[inline(always)]
pub(super) fn completed_in_enqueue(
    event: cl_event,
    is_likely: bool,
    own: &OfThread<ThreadBooks>,
    times: &mut [u64; 4],
) -> bool {
    if !(is_likely || own.source.completes_in_enqueue()) {
        return false;
    }
    let known = ask_times(event, times);
    if !known {
        own.source.set_completes_in_enqueue(false);
    }
    known
}

/// Writes to `buffers` the completion of work that had completed when the runtime was asked, after its enqueue.
pub(super) fn write_completed(
    host: &mut HostThread,
    work: &WorkHeader,
    buffers: Buffers,
    times: [u64; 4],
) {
    let [_, _, start, end] = times;
    // Later than the enqueue's end: a device with threads of its own may have run the work since.
    let now = clock::now();
    sampling::completed(work.id, DeviceTime(start), DeviceTime(end));
    let of = (work.id, work.correlation, work.agent);
    host.fill(buffers, |to| {
        fill(to, of, Some(&times), CL_COMPLETE, now);
    });
    host.work_ends(work.correlation, now);
}

/// Parks a completion that could not be written, and notifies the followers of the work.
#[cold]
fn leave(
    claim: ClaimedSlot<'_>,
    left: Buffers,
    completion: Completion,
    thread: Option<Current>,
    own: Option<&OfThread<ThreadBooks>>,
) {
    let mut followers = claim.take_followers();
    let in_callback = |thread: &Current| thread.state().is_in_callback();
    if thread.as_ref().is_some_and(in_callback)
        && let Some(waiting) = followers.take()
    {
        // They are notified after that callback has returned.
        claim.keep_followers(waiting);
    }
    match thread {
        // The recording has ended or the thread limit is reached; both are counted elsewhere.
        None => return OUTSTANDING.free(claim, None),
        // In a signal handler that interrupted a write, `own` is unknown and no buffer has the completion.
        Some(_) if !left.is_none() || claim.has_followers() => {
            OUTSTANDING.park(claim, left, &completion)
        }
        Some(_) => OUTSTANDING.free(claim, own),
    }
    if let (Some(thread), Some(mut followers)) = (thread, followers) {
        notify_followers(&mut followers, &completion, thread);
    }
}

/// Notifies the followers of work that has completed, unless the thread is in a callback.
fn notify_followers(followers: &mut Followers, completion: &Completion, thread: Current) {
    if let Some(board) = thread.board() {
        notify::completed(board, thread.state(), followers, completion);
    }
}

#[inline(always)]
fn completion_of(work: &OutstandingWork) -> Completion {
    let mut completion = Completion::blank();
    completion.work = work.work;
    completion.correlation = work.correlation;
    completion.agent = work.agent;
    completion
}

/// The times of work that has ended, if the runtime knows them.
pub(super) fn times_of(event: cl_event) -> Option<[u64; 4]> {
    let mut times = [0; 4];
    (!event.is_null() && ask_times(event, &mut times)).then_some(times)
}

/// Queries when the work of `event` was queued, submitted, started and ended. Returns whether the runtime knows, which
/// requires that the work is complete; otherwise the times are 0.
#[inline(always)]
fn ask_times(event: cl_event, times: &mut [u64; 4]) -> bool {
    const POINTS: [(usize, cl_uint); 4] = [
        (3, CL_PROFILING_COMMAND_END),
        (2, CL_PROFILING_COMMAND_START),
        (1, CL_PROFILING_COMMAND_SUBMIT),
        (0, CL_PROFILING_COMMAND_QUEUED),
    ];
    let mut status = CL_SUCCESS;
    for (time, point) in POINTS {
        let time = &mut times[time];
        let time = ptr::from_mut(time).cast();
        // SAFETY: we or the program hold a reference to the event; `time` is a place of 8 bytes.
        status |= unsafe {
            next!(clGetEventProfilingInfo(
                event,
                point,
                8,
                time,
                ptr::null_mut()
            ))
        };
        if status != CL_SUCCESS {
            break;
        }
    }
    // Work that failed before it ran has no times, even if the runtime returns some.
    let known = status == CL_SUCCESS && is_measured(times[3]);
    if !known {
        *times = [0; 4];
    }
    known
}

/// The execution status of the work of `event`.
pub(super) fn status_of(event: cl_event) -> Option<cl_int> {
    ask!(below(), clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS) -> cl_int)
}

/// Releases our reference.
pub(super) fn release(event: cl_event) {
    // SAFETY: the reference is ours, and is used no more.
    unsafe { next!(clReleaseEvent(event)) };
}

/// Writes the completions that callbacks have parked in their slots.
#[inline(always)]
pub(super) fn write_parked(host: &mut HostThread) {
    if OUTSTANDING.any_parked() {
        write_those_parked(host);
    }
}

#[cold]
#[inline(never)]
fn write_those_parked(host: &mut HostThread) {
    OUTSTANDING.unpark(|buffers, completion| write_late(host, buffers, completion));
}

/// Writes a completion that its callback had to leave. The call retires behind it.
fn write_late(host: &mut HostThread, buffers: Buffers, completion: Completion) {
    host.write_to(buffers, completion);
    if !buffers.is_none() {
        host.work_ends(completion.correlation, completion.completed);
    }
}

/// Status of incomplete work for which the runtime reports none: that of work which has been enqueued (CL_QUEUED).
const NOT_COMPLETE: cl_int = 3;

/// Writes completions as requested by `flush`.
pub(super) fn flush(flush: Flush) {
    let Some(thread) = process::current() else {
        return;
    };
    if let Flush::Synchronized(queues) = flush {
        queues::finish_selected(queues);
    }
    sweep(thread);
    // A callback may have claimed work before the sweep reached it, and be about to write.
    OUTSTANDING.settle();
    thread.with(write_parked);
    if let Flush::Outstanding(buffers) = flush {
        show_outstanding(thread, buffers);
    }
}

/// Writes to `buffers`, for all outstanding work, that it has not completed; the work stays outstanding.
fn show_outstanding(thread: Current, buffers: Buffers) {
    OUTSTANDING.sweep(
        |claim| {
            let work = claim.work();
            let completion = unfinished(&work, Unfinished::AT_FLUSH);
            let buffers = work.buffers.and(buffers);
            thread.with(|host| host.write_to(buffers, completion));
            false
        },
        // Its callback came during the sweep, which completes the work in its place.
        |claim| overtaken(claim, thread),
    );
}

/// A completion that says that the work has not completed.
fn unfinished(work: &OutstandingWork, reason: Unfinished) -> Completion {
    let mut completion = completion_of(work);
    completion.unfinished = reason;
    // Its callback may not have come yet.
    let status = status_of(event_of(work)).filter(|status| *status > CL_COMPLETE);
    completion.status = status.unwrap_or(NOT_COMPLETE);
    completion.completed = clock::now();
    completion.header = completion_header(completion.status, completion.unfinished);
    completion
}

/// Notifies the followers of work that completed while its thread was in a callback.
#[cold]
pub(super) fn notify_postponed(thread: Current) {
    if thread.state().is_in_callback() {
        return;
    }
    OUTSTANDING.take_postponed(|claim, completion| {
        let followers = claim.take_followers();
        thread.with(|host| write_late(host, claim.work().buffers, completion));
        OUTSTANDING.free(claim, None);
        if let Some(mut followers) = followers {
            notify_followers(&mut followers, &completion, thread);
        }
    });
}

/// Queries all outstanding work: callbacks of failed or abandoned work may never come.
pub(super) fn sweep(thread: Current) {
    thread.with(write_parked);
    OUTSTANDING.sweep(
        // CL_COMPLETE, or an error.
        |claim| status_of(event_of(&claim.work())).is_some_and(|status| status <= CL_COMPLETE),
        |claim| {
            overtaken(claim, thread);
        },
    );
    thread.with(write_parked);
    if OUTSTANDING.any_parked() {
        notify_postponed(thread);
    }
}

/// Looks for slots of work whose callbacks never came. A sweep of all slots takes milliseconds, so there is at most one
/// a second.
#[cold]
pub(super) fn make_room(thread: Current) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let (now, last) = (clock::now().0, LAST.load(Ordering::Relaxed));
    let due = last == 0 || now.saturating_sub(last) > clock::frequency();
    if due
        && LAST
            .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    {
        sweep(thread);
    }
}

/// Writes to `buffers`, and notifies all subscribers, that outstanding work did not complete before the end. Other buffers
/// may get its completion later.
pub(super) fn end(thread: Current, buffers: Buffers) {
    OUTSTANDING.sweep(
        |claim| {
            let work = claim.work();
            claim.keep_for(work.buffers.without(buffers));
            write_unfinished(claim, work.buffers.and(buffers), thread);
            false
        },
        // Its callback came during the sweep, which completes the work in its place.
        |claim| overtaken(claim, thread),
    );
}

/// Completes or gives up all outstanding work, and releases its events: a callback that comes later finds nothing, and touches
/// no object of the runtime.
pub(super) fn abandon(thread: Current) {
    thread.with(write_parked);
    OUTSTANDING.sweep(
        |_| true,
        |claim| {
            let event = event_of(&claim.work());
            match status_of(event) {
                Some(status) if status <= CL_COMPLETE => finish(claim, status, Some(thread)),
                _ => {
                    write_unfinished(&claim, claim.work().buffers, thread);
                    release(event);
                    OUTSTANDING.free(claim, None);
                }
            }
        },
    );
    // Callbacks that had claimed their work before use its event until they have written its completion.
    OUTSTANDING.settle();
    thread.with(write_parked);
}

/// Writes to `buffers`, and notifies the followers of the work, that it did not complete before the end.
fn write_unfinished(claim: &ClaimedSlot<'_>, buffers: Buffers, thread: Current) {
    let followers = claim.take_followers();
    if buffers.is_none() && followers.is_none() {
        return;
    }
    let completion = unfinished(&claim.work(), Unfinished::AT_END);
    thread.with(|host| host.write_to(buffers, completion));
    if let Some(mut followers) = followers {
        notify_followers(&mut followers, &completion, thread);
    }
}
