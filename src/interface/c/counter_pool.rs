//! Pools of entries that count one kernel each.

use super::{CounterPoolHandle, CounterSetHandle, sized::sized};
use core::ffi::{c_char, c_void};
use gputrail_record::CounterValue;

/// An entry of a pool, from `gputrail_counter_pool_fetch` to `gputrail_counter_pool_release`.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct CounterPoolEntry {
    /// The pool.
    pub pool: CounterPoolHandle,
    /// The entry as a set of counters: a kernel for which it is chosen is counted in this entry.
    pub set: CounterSetHandle,
    /// The entry's memory for the tool, of as many bytes as the options say; null if they say 0. It is all 0 when the entry is
    /// fetched, aligned to 16 bytes, and valid until the entry is released.
    pub payload: *mut c_void,
}

/// Gets the values of a kernel that was counted in an entry, when it has ended: none if it did not run or was not recorded.
/// Their times are nanoseconds of CLOCK_BOOTTIME.
/// If it returns another value than 0, the entry is released. Called on threads of the program, possibly on several at a
/// time. It must not wait for kernels of the agent, and must not throw.
pub type CounterPoolHandler = Option<
    unsafe extern "C-unwind" fn(
        entry: *const CounterPoolEntry,
        values: *const CounterValue,
        count: usize,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Called for each fetched entry of a pool. If it returns another value than 0, it is not called for further ones.
pub type CounterPoolVisitor = Option<
    unsafe extern "C-unwind" fn(entry: *const CounterPoolEntry, user_data: *mut c_void) -> i32,
>;

/// The counters and entries of a pool.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct CounterPoolOptions {
    /// `sizeof(gputrail_counter_pool_options)`.
    pub size: usize,
    /// The names of counters and metrics, with commas between them.
    pub counters: *const c_char,
    /// The number of entries: kernels that are in flight or whose values have not been released.
    pub entries: u32,
    /// The bytes of each entry that are the tool's.
    pub payload_bytes: u32,
    /// The most counters of a pass of a kernel, 0 for as many as the hardware counts at a time.
    pub per_pass: u32,
    /// The most passes of a kernel, 0 for as many as the agent can do.
    pub passes: u32,
    /// The most instances of each block that are read, the first ones; 0 for all of them.
    pub instances: u32,
    /// 0.
    pub reserved: u32,
    /// Called when the kernel of an entry has ended; may be null.
    pub handler: CounterPoolHandler,
    /// Passed to `handler`.
    pub user_data: *mut c_void,
}
sized!(CounterPoolOptions, "gputrail_counter_pool_options", 56);
