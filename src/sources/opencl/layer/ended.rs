//! Whether work has ended, which the layer waits for before and after counted kernels.

use super::below::{below, next};
use super::completion;
use super::counters;
use super::ffi::*;
use super::functions::ask;
use super::waits::WaitList;
use super::work::list;
use std::time::{Duration, Instant};

/// How long the work before a kernel may take.
const LONGEST_WORK_BEFORE: Duration = Duration::from_secs(1);
/// An event is asked so often without a pause, and then after each pause.
const POLLS: u32 = 100;
const PAUSE: Duration = Duration::from_micros(50);

/// Whether the work in `queue` has ended, or does within the time that work before a kernel may take.
pub(super) fn soon(queue: cl_command_queue) -> bool {
    // SAFETY: no list.
    !counters::may_wait_for_program() && unsafe { before(queue, WaitList::NONE) }
}

/// Waits until the work in `queue` and that of `waits` have ended. `false`: they did not in time, or cannot be asked.
///
/// # Safety
///
/// `queue` is the program's. `waits` is the program's list, of valid events, which it keeps during the call.
pub(super) unsafe fn before(queue: cl_command_queue, waits: WaitList) -> bool {
    let Some(enqueue_marker) = below().clEnqueueMarkerWithWaitList else {
        return false;
    };
    let until = Instant::now() + LONGEST_WORK_BEFORE;
    let mut marker = cl_event::NULL;
    // SAFETY: the program's queue, an empty list, a place for the event.
    let result = unsafe { enqueue_marker(queue, 0, core::ptr::null(), &raw mut marker) };
    if result != CL_SUCCESS {
        return false;
    }
    // SAFETY: the queue of the program's call, or one that `replay` holds a reference to.
    unsafe { next!(clFlush(queue)) };
    let is_empty = by(marker, until);
    completion::release(marker);
    let (count, events) = waits.list().unwrap_or((0, core::ptr::null()));
    // SAFETY: the list is the program's, which keeps it during the call: it leads to `count` events, or is null.
    let mut events = unsafe { list(events, count) }.iter();
    is_empty
        && events.all(|event| {
            let queue =
                ask!(below(), clGetEventInfo(*event, CL_EVENT_COMMAND_QUEUE) -> cl_command_queue);
            if let Some(queue) = queue.filter(|queue| !queue.is_null()) {
                // SAFETY: the queue of an event in the program's list, which keeps it alive.
                unsafe { next!(clFlush(queue)) };
            }
            by(*event, until)
        })
}

/// Waits until the work of `event` has ended. `false`: it did not until then, or may wait for the program.
pub(super) fn by(event: cl_event, until: Instant) -> bool {
    let mut polls = 0;
    loop {
        match completion::status_of(event) {
            None => return false,
            Some(status) if status <= CL_COMPLETE => return true,
            Some(_) => {}
        }
        if counters::may_wait_for_program() || Instant::now() >= until {
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
