//! Counters that a tool chooses for each kernel.

use super::{CounterSetHandle, sized::sized};
use core::ffi::{c_char, c_void};
use gputrail_record::{CounterValue, KernelDispatch};

/// The counters of a set.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct CounterSetOptions {
    /// `sizeof(gputrail_counter_set_options)`.
    pub size: usize,
    /// The names of counters and metrics, with commas between them.
    pub counters: *const c_char,
    /// The most counters of a pass of a kernel, 0 for as many as the hardware counts at a time.
    pub per_pass: u32,
    /// The most instances of each block that are read, the first ones; 0 for all of them.
    pub instances: u32,
    /// 1 for a value of each instance of a block in the place of their sum: the values of a counter follow each other, by
    /// the number of the instance.
    pub each_instance: u32,
    /// 0.
    pub reserved: u32,
}
sized!(CounterSetOptions, "gputrail_counter_set_options", 16);

/// Chooses the counters of a kernel that is about to be enqueued: writes `set`, which is 0 before: a kernel whose set stays
/// 0 is not counted. The record has no id of the work, and of the times the start of the call, in nanoseconds of
/// CLOCK_BOOTTIME; its correlation id is that of the values. Called on
/// threads of the program, possibly on several at a time. Its own calls are not observed. It may create sets; it must not
/// wait for kernels of the same agent, and must not throw. A set may be an entry of a pool (`gputrail_counter_pool_fetch`).
pub type ChooseFunction = Option<
    unsafe extern "C-unwind" fn(
        dispatch: *const KernelDispatch,
        set: *mut CounterSetHandle,
        user_data: *mut c_void,
    ),
>;

/// Gets the values of a kernel that was counted, in the order of the names of its set, when it has ended; their times are
/// nanoseconds of CLOCK_BOOTTIME. Its completion may be delivered later. Called on threads of the program, possibly on several
/// at a time. It must not throw.
pub type CountedFunction = Option<
    unsafe extern "C-unwind" fn(values: *const CounterValue, count: usize, user_data: *mut c_void),
>;
