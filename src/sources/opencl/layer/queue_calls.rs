//! Calls that create, change, query and release command queues. Profiling is forced on, and the program's queries are answered
//! as if it were not.

use super::below::next;
use super::call::ObservedCall;
use super::completion;
use super::contained::contained;
use super::counters;
use super::ffi::*;
use super::queues::{QUEUES, QueueInfo, lookup, name};
use super::replay;
use core::{ptr, slice};
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_collect::process;
use gputrail_interface::operations::resource;
use gputrail_record::Queue;
use std::collections::HashMap;

/// The property arrays with which the program created queues, including the final 0.
static ARRAYS: PerProcess<HashMap<u64, Box<[cl_ulong]>>> = PerProcess::new();

pub(super) unsafe fn create(
    call: &mut ObservedCall,
    context: cl_context,
    device: cl_device_id,
    properties: cl_bitfield,
    errcode: *mut cl_int,
) -> cl_command_queue {
    let forced = cl_bitfield(properties.0 | CL_QUEUE_PROFILING_ENABLE);
    // SAFETY: the program's own arguments, but for a flag.
    let queue = unsafe { next!(clCreateCommandQueue(context, device, forced, errcode)) };
    // SAFETY: the wrapper's place for the status, which the runtime wrote.
    if queue.is_null() && properties != forced && unsafe { is_about_properties(*errcode) } {
        // With the program's own properties, so that it gets the runtime's answer to these.
        // SAFETY: the program's own arguments.
        let queue = unsafe { next!(clCreateCommandQueue(context, device, properties, errcode)) };
        return created(call, queue, properties.0, properties.0, None);
    }
    created(call, queue, properties.0, forced.0, None)
}

pub(super) unsafe fn create_with_properties(
    call: &mut ObservedCall,
    context: cl_context,
    device: cl_device_id,
    properties: *const cl_ulong,
    errcode: *mut cl_int,
) -> cl_command_queue {
    let create = |list| {
        // SAFETY: the program's own arguments, or a list of `create_by` in the place of its list.
        unsafe {
            next!(clCreateCommandQueueWithProperties(
                context, device, list, errcode
            ))
        }
    };
    // SAFETY: the program's list.
    unsafe { create_by(call, properties, errcode, create) }
}

/// Creates a queue by `create`, with a list of properties.
///
/// # Safety
///
/// `properties` is null or the program's list, as [`property_list`] takes it; `create` writes a status to `errcode`.
pub(super) unsafe fn create_by(
    call: &mut ObservedCall,
    properties: *const cl_ulong,
    errcode: *mut cl_int,
    create: impl Fn(*const cl_ulong) -> cl_command_queue,
) -> cl_command_queue {
    // SAFETY: `properties` is null or a list that ends with a 0, which the program keeps during the call.
    let asked = unsafe { property_list(properties) };
    let forced = with_profiling(asked);
    let (before, after) = (flags(asked), flags(&forced));
    let queue = create(forced.as_ptr());
    // SAFETY: `create` was called, and has written a status to `errcode`.
    if queue.is_null() && before != after && unsafe { is_about_properties(*errcode) } {
        // With the program's own properties, so that it gets the runtime's answer to these.
        return created(call, create(properties), before, before, None);
    }
    created(call, queue, before, after, Some(asked))
}

/// Whether the creation of a queue may have failed because of our properties. For other errors a second try would only
/// repeat the error.
fn is_about_properties(status: cl_int) -> bool {
    matches!(status, CL_INVALID_VALUE | CL_INVALID_QUEUE_PROPERTIES)
}

/// A list of properties and values with its final 0; empty if there is none.
///
/// # Safety
///
/// `list` is null, or leads to pairs of a property that is not 0 and its value, and then a 0, which stay as they are for
/// `'a`.
unsafe fn property_list<'a>(list: *const cl_ulong) -> &'a [cl_ulong] {
    if list.is_null() {
        return &[];
    }
    let mut length = 0;
    // SAFETY: `list` is not null, so that it has pairs up to a 0 in the place of a property: nothing behind that 0 is read.
    unsafe {
        while *list.add(length) != 0 {
            length += 2;
        }
        slice::from_raw_parts(list, length + 1)
    }
}

/// A copy of the list with profiling enabled.
fn with_profiling(asked: &[cl_ulong]) -> Vec<cl_ulong> {
    const FLAGS: cl_ulong = CL_QUEUE_PROPERTIES as cl_ulong;
    let pairs = asked.chunks_exact(2);
    if pairs.clone().any(|pair| pair[0] == FLAGS) {
        let force = |pair: &[cl_ulong]| match pair[0] {
            FLAGS => [FLAGS, pair[1] | CL_QUEUE_PROFILING_ENABLE],
            other => [other, pair[1]],
        };
        return pairs.flat_map(force).chain([0]).collect();
    }
    let asked = &asked[..asked.len().saturating_sub(1)];
    [FLAGS, CL_QUEUE_PROFILING_ENABLE]
        .into_iter()
        .chain(asked.iter().copied())
        .chain([0])
        .collect()
}

/// The queue's flags in a property list.
fn flags(list: &[cl_ulong]) -> u64 {
    let pair = list
        .chunks_exact(2)
        .find(|pair| pair[0] == cl_ulong::from(CL_QUEUE_PROPERTIES));
    pair.map_or(0, |pair| pair[1])
}

fn created(
    call: &mut ObservedCall,
    queue: cl_command_queue,
    asked: u64,
    actual: u64,
    array: Option<&[cl_ulong]>,
) -> cl_command_queue {
    contained(|| {
        call.end();
        if queue.is_null() {
            return;
        }
        match array {
            Some(array) => drop(ARRAYS.lock().insert(queue.into(), array.into())),
            None => drop(ARRAYS.lock().remove(&queue.into())),
        }
        let info = name(queue, asked, actual);
        call.notify_object::<Queue>(resource::QUEUE_CREATED, info.ids.id.0);
    });
    queue
}

/// Counts a reference that the program has added.
pub(super) fn retained(_: &mut ObservedCall, queue: cl_command_queue) {
    QUEUES.update(queue, |info| info.references += 1);
}

/// Counts a reference that the program releases. The queue stays tracked.
pub(super) unsafe fn release(call: &mut ObservedCall, queue: cl_command_queue) -> cl_int {
    if counters::have_passes() && QUEUES.get(queue).is_some_and(|info| info.references == 1) {
        contained(|| replay::queue_going(queue));
    }
    let less = |info: &mut QueueInfo| {
        info.references = info.references.saturating_sub(1);
        (info.references == 0).then_some(info.ids.id)
    };
    if let Some(Some(id)) = QUEUES.update(queue, less) {
        call.notify_object::<Queue>(resource::QUEUE_DESTROYED, id.0);
    }
    // SAFETY: the program's own arguments.
    let result = unsafe { next!(clReleaseCommandQueue(queue)) };
    if result != CL_SUCCESS {
        QUEUES.update(queue, |info| info.references += 1);
    }
    result
}

/// Removes profiling from a runtime's answer about properties. A property list arrives here only if the runtime
/// constructed it for a queue that was created without one.
///
/// # Safety
///
/// `value` leads to the runtime's answer about `what`, one of `CL_QUEUE_PROPERTIES` and `CL_QUEUE_PROPERTIES_ARRAY`, with
/// all the bytes that it has.
unsafe fn hide_profiling(queue: cl_command_queue, what: cl_uint, value: *mut cl_ulong) {
    if what == CL_QUEUE_PROPERTIES {
        // SAFETY: the answer about this property is a set of flags, and `value` leads to it.
        unsafe { *value &= !CL_QUEUE_PROFILING_ENABLE };
        return;
    }
    let mut bytes = 0;
    // SAFETY: the queue of the program's query; the runtime writes the size alone.
    unsafe {
        next!(clGetCommandQueueInfo(
            queue,
            what,
            0,
            ptr::null_mut(),
            &raw mut bytes
        ))
    };
    // SAFETY: the answer is a list of properties, of as many bytes as the runtime has just said, and `value` leads to it.
    let list = unsafe { slice::from_raw_parts_mut(value, bytes / size_of::<cl_ulong>()) };
    for pair in list.chunks_exact_mut(2) {
        if pair[0] == cl_ulong::from(CL_QUEUE_PROPERTIES) {
            pair[1] &= !CL_QUEUE_PROFILING_ENABLE;
        }
    }
}

pub(super) unsafe fn info(
    _: &mut ObservedCall,
    queue: cl_command_queue,
    what: cl_uint,
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
) -> cl_int {
    if what == CL_QUEUE_PROPERTIES_ARRAY {
        // A copy, since the runtime is called in between.
        let asked = ARRAYS.lock().get(&queue.into()).cloned();
        if let Some(asked) = asked {
            // A runtime that rejects the query still rejects it. It must not write its own answer: no byte of the
            // program's memory may change that our answer does not write.
            let (none, no_size) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: the queue of the program's query; the runtime writes nothing.
            let known = unsafe { next!(clGetCommandQueueInfo(queue, what, 0, none, no_size)) };
            return match known {
                CL_SUCCESS => answer(&asked, size, value, size_ret),
                failed => failed,
            };
        }
    }
    if what == CL_QUEUE_REFERENCE_COUNT
        && let Some(thread) = process::current()
    {
        // An event refers to its queue, and those of failed work may still be referred to by us.
        completion::sweep(thread);
    }
    // SAFETY: the program's own arguments.
    let result = unsafe { next!(clGetCommandQueueInfo(queue, what, size, value, size_ret)) };
    let answered = result == CL_SUCCESS && !value.is_null();
    let asked_for = what == CL_QUEUE_PROPERTIES || what == CL_QUEUE_PROPERTIES_ARRAY;
    if answered && asked_for && lookup(queue).hides_profiling() {
        // SAFETY: the runtime wrote its answer there.
        unsafe { hide_profiling(queue, what, value.cast()) };
    }
    result
}

/// Answers a query for a list of properties as a runtime does.
fn answer(list: &[cl_ulong], size: usize, value: *mut c_void, size_ret: *mut usize) -> cl_int {
    let bytes = size_of_val(list);
    if !value.is_null() {
        if size < bytes {
            return CL_INVALID_VALUE;
        }
        // SAFETY: the program's memory, of which it says that it is large enough.
        unsafe { ptr::copy_nonoverlapping(list.as_ptr().cast(), value.cast::<u8>(), bytes) };
    }
    if !size_ret.is_null() {
        // SAFETY: the program's place for the size.
        unsafe { size_ret.write(bytes) };
    }
    CL_SUCCESS
}

/// clSetCommandQueueProperty of OpenCL 1.0, which may disable profiling.
pub(super) unsafe fn set_property(
    _: &mut ObservedCall,
    queue: cl_command_queue,
    properties: cl_bitfield,
    enable: cl_bool,
    old: *mut cl_bitfield,
) -> cl_int {
    // SAFETY: the program's own arguments.
    let result = unsafe { next!(clSetCommandQueueProperty(queue, properties, enable, old)) };
    if result != CL_SUCCESS {
        return result;
    }
    let before = lookup(queue);
    let asked = if enable.0 != 0 {
        before.asked | properties.0
    } else {
        before.asked & !properties.0
    };
    if !old.is_null() && before.hides_profiling() {
        // SAFETY: the runtime wrote the old properties there.
        unsafe { (*old).0 &= !CL_QUEUE_PROFILING_ENABLE };
    }
    let mut actual = if enable.0 != 0 {
        before.actual | properties.0
    } else {
        before.actual & !properties.0
    };
    if actual & CL_QUEUE_PROFILING_ENABLE == 0 {
        let (profiling, none) = (cl_bitfield(CL_QUEUE_PROFILING_ENABLE), ptr::null_mut());
        // SAFETY: the program's queue, and a flag; the runtime writes nothing.
        if unsafe {
            next!(clSetCommandQueueProperty(
                queue,
                profiling,
                cl_bool(1),
                none
            ))
        } == CL_SUCCESS
        {
            actual |= CL_QUEUE_PROFILING_ENABLE;
        }
    }
    QUEUES.update(queue, |info| info.set_properties(asked, actual));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: cl_ulong = CL_QUEUE_PROPERTIES as cl_ulong;

    #[test]
    fn profiling_is_added_to_the_flags_and_nothing_else_changes() {
        assert_eq!(with_profiling(&[]), [FLAGS, 2, 0]);
        assert_eq!(with_profiling(&[0]), [FLAGS, 2, 0]);
        assert_eq!(with_profiling(&[FLAGS, 1, 0]), [FLAGS, 3, 0]);
        assert_eq!(with_profiling(&[0x1096, 7, 0]), [FLAGS, 2, 0x1096, 7, 0]);
        assert_eq!(
            with_profiling(&[0x1096, 7, FLAGS, 0, 0]),
            [0x1096, 7, FLAGS, 2, 0]
        );
    }

    #[test]
    fn a_property_list_ends_with_its_zero() {
        let list = [FLAGS, 0, 0x1096, 9, 0, 77];
        // SAFETY: the list ends with a 0 after two pairs.
        assert_eq!(unsafe { property_list(list.as_ptr()) }, &list[..5]);
        // SAFETY: null is allowed.
        assert!(unsafe { property_list(ptr::null()) }.is_empty());
    }
}
