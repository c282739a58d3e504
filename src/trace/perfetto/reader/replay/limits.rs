//! What a replay holds at most.

/// Maximum number of bytes that the details of open slices take, those of slices that wait for the end of their outermost
/// one, and those of work whose call has not come.
pub(super) const MAX_DETAIL_BYTES: usize = if cfg!(test) { 4 << 20 } else { 128 << 20 };
/// Maximum number of bytes of the arguments of one event.
pub(super) const MAX_EVENT_BYTES: usize = if cfg!(test) { 1 << 20 } else { 16 << 20 };
/// What is counted where there are more.
pub(super) const TOO_MANY_ARGUMENTS: &str = "argument of an event beyond 16 MiB of them";
/// Maximum number of ids of an event that are read.
pub(super) const MAX_IDS: usize = 1 << 20;
/// Maximum number of bytes of the names and categories of slices, of the names of functions and their parameters, of stages and
/// kernels, and of the names and command lines of processes.
pub(super) const MAX_NAME_BYTES: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// Maximum number of processes.
pub(super) const MAX_PROCESSES: usize = 1 << 16;
/// Maximum number of devices.
pub(super) const MAX_GPUS: u32 = 1 << 12;
