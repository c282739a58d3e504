//! Flight recorders: keep what was recorded last, and write it out when something happens.

use super::{SelectionOptions, sized::sized};
use core::ffi::c_char;

/// How a flight recorder works. A field of 0 asks for the usual value.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct FlightSettings {
    /// `sizeof(gputrail_flight_options)`.
    pub size: usize,
    /// Bytes that are kept, of all threads together; usually 16 MiB.
    pub keep_bytes: u64,
    /// Time that is written out, counted back from the dump, in nanoseconds; usually all that is kept.
    pub keep_nanos: u64,
    /// A call that takes at least as long, in nanoseconds, triggers a dump; usually none does.
    pub slow_call_nanos: u64,
    /// This signal triggers a dump; usually none does. It must be one that the program has no handler for.
    pub signal: i32,
    /// Triggered dumps, at most; usually 10.
    pub max_dumps: u32,
    /// The folder for triggered dumps, `flight-PROCESS-NUMBER.gputrail`; usually the current one.
    pub folder: *const c_char,
    /// The selection of what is recorded; usually everything.
    pub selection: *const SelectionOptions,
    /// Bytes of a block, the smallest piece that is overwritten, a multiple of 4096; usually 64 KiB.
    pub block_bytes: u64,
    /// Threads that may record at a time; usually 1024.
    pub threads: u32,
    /// 0.
    pub reserved: u32,
}
sized!(FlightSettings, "gputrail_flight_options", 48);
