//! Answers to the program's queries about events, as they would be without the layer.

use super::below::{below, next};
use super::call::ObservedCall;
use super::completion::OUTSTANDING;
use super::ffi::*;
use super::functions::ask;
use super::queues;

pub(super) unsafe fn info(
    _: &mut ObservedCall,
    event: cl_event,
    what: cl_uint,
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
) -> cl_int {
    if what != CL_EVENT_REFERENCE_COUNT || value.is_null() {
        // SAFETY: the program's own arguments.
        return unsafe { next!(clGetEventInfo(event, what, size, value, size_ret)) };
    }
    loop {
        let before = OUTSTANDING.with_key(event.into());
        // SAFETY: the program's own arguments.
        let result = unsafe { next!(clGetEventInfo(event, what, size, value, size_ret)) };
        // A callback may release our reference meanwhile.
        if before == OUTSTANDING.with_key(event.into()) {
            if result == CL_SUCCESS {
                // SAFETY: the runtime wrote the count there.
                unsafe {
                    (*value.cast::<cl_uint>()) = (*value.cast::<cl_uint>()).saturating_sub(before)
                };
            }
            return result;
        }
    }
}

pub(super) unsafe fn profiling_info(
    _: &mut ObservedCall,
    event: cl_event,
    what: cl_uint,
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
) -> cl_int {
    if queues::any_hides_profiling() && is_hidden(event) {
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    }
    // SAFETY: the program's own arguments.
    unsafe { next!(clGetEventProfilingInfo(event, what, size, value, size_ret)) }
}

/// Whether `event` belongs to a queue that the program created without profiling.
fn is_hidden(event: cl_event) -> bool {
    let queue = ask!(below(), clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE) -> cl_command_queue);
    // User events have no queue, and no profiling either; the runtime rejects handles that are not events.
    let queue = queue.filter(|queue| !queue.is_null());
    queue.is_some_and(|queue| queues::lookup(queue).hides_profiling())
}
