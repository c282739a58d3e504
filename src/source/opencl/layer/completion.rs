//! Completions: the callback that every piece of work gets, and what it finds out.
//!
//! The callback runs on whatever thread the runtime chooses, the enqueuing one included, and perhaps under
//! the runtime's locks: it never waits. Work whose callback never comes is found by [`sweep`].

use super::clocks;
use super::dispatch::{below, contained, next};
use super::ffi::*;
use super::functions::ask;
use super::outstanding::{Claim, Enqueued, Kept, Outstanding, Ticket};
use super::sampling;
use super::tell;
use super::work::Place;
use crate::clock;
use crate::collect::context;
use crate::collect::correlation::HostThread;
use crate::collect::process::{self, Current};
use crate::collect::switchboard::{Buffers, Flush};
use crate::record::{
    AgentId, Completion, CorrelationId, DeviceTime, Header, Ticks, Unfinished, WorkId, flags,
};
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

/// Work that has not completed.
pub(super) static OUTSTANDING: Outstanding = Outstanding::new();

/// The header of a completion with these fields.
#[inline(always)]
pub(super) fn header(status: cl_int, unfinished: Unfinished) -> Header {
    let of_unfinished = match unfinished {
        Unfinished::AT_END | Unfinished::AT_FLUSH => flags::UNFINISHED,
        Unfinished::NO_TIMES => flags::TIME_UNKNOWN,
        _ => 0,
    };
    let of_status = if status < 0 { flags::FAILED } else { 0 };
    const { Header::of::<Completion>() }.with(of_unfinished | of_status)
}

/// The event callback. `user_data` is the [`Ticket`].
pub(super) unsafe extern "C-unwind" fn completed(
    _: cl_event,
    status: cl_int,
    user_data: *mut c_void,
) {
    contained(|| {
        let (ticket, thread) = (Ticket(user_data as u64), process::current());
        let own = thread.map(|thread| OUTSTANDING.of_lane(thread.state().number()));
        let at_once = own.and_then(|own| {
            let claim = OUTSTANDING.claim_at_once(ticket, own)?;
            own.set_completes_at_once(true);
            Some(claim)
        });
        if let Some(claim) = at_once.or_else(|| OUTSTANDING.claim(ticket)) {
            finish(claim, status, thread);
        }
    });
}

/// The callback has come, on another thread, before the one that set it was done.
#[cold]
pub(super) fn overtaken(claim: Claim<'_>, thread: Current) {
    let status = status_of(claim.enqueued().event).unwrap_or(CL_COMPLETE);
    finish(claim, status, Some(thread));
}

/// Finds out when the work ran, says so on `thread`'s lane, and lets go of the event.
#[inline(always)]
fn finish(claim: Claim<'_>, status: cl_int, thread: Option<Current>) {
    let enqueued = claim.enqueued();
    let mut times = [0; 4];
    let known = ask_times(enqueued.event, &mut times);
    release(enqueued.event);
    let [queued, _, start, end] = times;
    sampling::completed(enqueued.work, DeviceTime(start), DeviceTime(end));
    let of = (enqueued.work, enqueued.correlation, enqueued.agent);
    let put = |to: &mut Completion, now| fill(to, of, known.then_some(&times), status, now);
    let (mut left, mut own, mut now) = (enqueued.buffers, None, Ticks::NONE);
    if let Some(thread) = thread
        && let Some(mut host) = thread.borrow()
    {
        let kept = OUTSTANDING.of_lane(host.number());
        now = kept.callback_time().unwrap_or_else(clock::now);
        left = host.try_fill(enqueued.buffers, |place| put(place, now));
        host.work_ends(enqueued.correlation, now);
        own = Some(kept);
    }
    if own.is_some() && left.is_none() && !claim.has_followers() {
        OUTSTANDING.free(claim, own);
    } else {
        let mut completion = Completion::blank();
        put(&mut completion, now);
        leave(claim, left, completion, thread, own);
    }
    if known {
        clocks::offer(enqueued.agent, enqueued.window, DeviceTime(queued));
    }
}

/// Makes `to` the completion of a piece of work, which was learnt at `completed`. `times` are queued, submitted, start and
/// end.
#[inline(always)]
fn fill(
    to: &mut Completion,
    (work, correlation, agent): (WorkId, CorrelationId, AgentId),
    times: Option<&[u64; 4]>,
    status: cl_int,
    completed: Ticks,
) {
    let (latency, unfinished) = match times {
        Some(_) => (context::latency_times(), Unfinished::default()),
        None => (false, Unfinished::NO_TIMES),
    };
    let time = |at: usize| {
        // Each by itself, as the runtime has just stored it: a processor waits for what it loads in another size.
        // SAFETY: a reference.
        times.map_or(0, |times| unsafe { (&raw const times[at]).read_volatile() })
    };
    let latency_time = |at: usize| DeviceTime(if latency { time(at) } else { 0 });
    *to = Completion {
        header: header(status, unfinished),
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

/// Whether the work of `event` is complete already, and when it ran: some runtimes run it before they say that it is
/// enqueued, and blocking calls wait for it. It needs no callback then, nor a slot. Asked only where it is likely.
#[inline(always)]
pub(super) fn at_once(event: cl_event, is_likely: bool, own: &Kept, times: &mut [u64; 4]) -> bool {
    if !(is_likely || own.completes_at_once()) {
        return false;
    }
    let known = ask_times(event, times);
    if !known {
        own.set_completes_at_once(false);
    }
    known
}

/// Writes the completion of work that had completed when its enqueue returned, at `now`.
pub(super) fn put_at_once(host: &mut HostThread, place: &Place, times: [u64; 4], now: Ticks) {
    let [_, _, start, end] = times.map(DeviceTime);
    sampling::completed(place.work.id, start, end);
    let of = (place.work.id, place.work.correlation, place.work.agent);
    host.fill(place.buffers, |to| {
        fill(to, of, Some(&times), CL_COMPLETE, now);
    });
    host.work_ends(place.work.correlation, now);
}

/// Leaves to others what could not be written now, and tells those who follow the work.
#[cold]
fn leave(
    claim: Claim<'_>,
    left: Buffers,
    completion: Completion,
    thread: Option<Current>,
    own: Option<&Kept>,
) {
    let mut followers = claim.take_followers();
    let in_callback = |thread: &Current| thread.state().is_in_callback();
    if thread.as_ref().is_some_and(in_callback)
        && let Some(waiting) = followers.take()
    {
        // They are told when that has returned.
        claim.keep_followers(waiting);
    }
    match thread {
        // After the end, or one too many; both are counted where that is found out.
        None => return OUTSTANDING.free(claim, None),
        // In a signal handler that interrupted a write, `own` is not known, and all is left.
        Some(_) if !left.is_none() || claim.has_followers() => {
            OUTSTANDING.park(claim, left, &completion)
        }
        Some(_) => OUTSTANDING.free(claim, own),
    }
    if let (Some(thread), Some(mut followers)) = (thread, followers) {
        tell::completed(&mut followers, &completion, thread);
    }
}

#[inline(always)]
fn completion_of(enqueued: &Enqueued) -> Completion {
    let mut completion = Completion::blank();
    completion.work = enqueued.work;
    completion.correlation = enqueued.correlation;
    completion.agent = enqueued.agent;
    completion
}

/// Asks when the work of `event` was queued, submitted, started and ended; whether the runtime says, which it does not
/// before the work is complete. If not, the times are 0.
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
        status |= next!(clGetEventProfilingInfo(
            event,
            point,
            8,
            time,
            ptr::null_mut()
        ));
        if status != CL_SUCCESS {
            break;
        }
    }
    // Work that failed before it ran has no times, whatever the runtime answers.
    let known = status == CL_SUCCESS && times[3] != 0;
    if !known {
        *times = [0; 4];
    }
    known
}

/// How far the work of `event` is.
fn status_of(event: cl_event) -> Option<cl_int> {
    ask!(below(), clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS) -> cl_int)
}

/// Lets go of our reference.
pub(super) fn release(event: cl_event) {
    next!(clReleaseEvent(event));
}

/// Writes what callbacks had to leave in their slots.
#[inline(always)]
pub(super) fn write_parked(host: &mut HostThread) {
    if OUTSTANDING.any_parked() {
        write_those_parked(host);
    }
}

#[cold]
#[inline(never)]
fn write_those_parked(host: &mut HostThread) {
    OUTSTANDING.unpark(|buffers, completion| {
        host.write_to(buffers, completion);
    });
}

/// Status of work of which the runtime does not say more.
const NOT_COMPLETE: cl_int = 1;

/// Somebody flushes.
pub(super) fn flush(flush: Flush) {
    let Some(thread) = process::current() else {
        return;
    };
    sweep(thread);
    // A callback may have claimed work before the sweep came to it, and be about to write.
    OUTSTANDING.settle();
    thread.with(write_parked);
    if let Flush::Outstanding(buffers) = flush {
        show_outstanding(thread, buffers);
    }
}

/// Says to `buffers` of all work that is still outstanding that it has not completed, and leaves it as it is.
fn show_outstanding(thread: Current, buffers: Buffers) {
    OUTSTANDING.sweep(
        |enqueued| {
            let mut completion = completion_of(enqueued);
            completion.unfinished = Unfinished::AT_FLUSH;
            completion.status = status_of(enqueued.event).unwrap_or(NOT_COMPLETE);
            completion.completed = clock::now();
            completion.header = header(completion.status, completion.unfinished);
            let buffers = enqueued.buffers.and(buffers);
            thread.with(|host| host.write_to(buffers, completion));
            false
        },
        // Its callback came meanwhile, and left it to us.
        |claim| overtaken(claim, thread),
    );
}

/// Tells of work that completed while the thread that learned of it was in a callback.
#[cold]
pub(super) fn tell_postponed(thread: Current) {
    if thread.state().is_in_callback() {
        return;
    }
    OUTSTANDING.take_postponed(|claim, completion| {
        let followers = claim.take_followers();
        thread.with(|host| host.write_to(claim.enqueued().buffers, completion));
        OUTSTANDING.free(claim, None);
        if let Some(mut followers) = followers {
            tell::completed(&mut followers, &completion, thread);
        }
    });
}

/// Asks after all outstanding work: callbacks of failed or abandoned work may never come.
pub(super) fn sweep(thread: Current) {
    thread.with(write_parked);
    OUTSTANDING.sweep(
        // CL_COMPLETE, or an error.
        |enqueued| status_of(enqueued.event).is_some_and(|status| status <= CL_COMPLETE),
        |claim| {
            overtaken(claim, thread);
        },
    );
    thread.with(write_parked);
    if OUTSTANDING.any_parked() {
        tell_postponed(thread);
    }
}

/// Looks for slots of work whose callbacks never came. A look at all of them takes milliseconds: not more than
/// one a second.
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

/// Says of all work that is still outstanding that it did not finish. Its events are left alone: the
/// runtime may be at them.
pub(super) fn abandon(thread: Current) {
    OUTSTANDING.sweep(
        |_| true,
        |claim| {
            let mut completion = completion_of(&claim.enqueued());
            completion.unfinished = Unfinished::AT_END;
            completion.status = 1;
            completion.header = header(completion.status, completion.unfinished);
            thread.with(|host| host.write_to(claim.enqueued().buffers, completion));
            let followers = claim.take_followers();
            OUTSTANDING.free(claim, None);
            if let Some(mut followers) = followers {
                tell::completed(&mut followers, &completion, thread);
            }
        },
    );
}
