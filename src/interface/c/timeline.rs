//! Timelines: enqueue records and completions put together, in nanoseconds.

use super::sized::sized;
use core::ffi::c_void;
use gputrail_record::{AgentId, Completion, Header, KernelId, Nanos};

/// A piece of work: a kernel, a copy, a fill, a marker or barrier. Valid during the callback.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct WorkData {
    /// Size of this structure.
    pub size: usize,
    /// Its enqueue record, which says what it is by its kind; null if that was dropped.
    pub record: *const Header,
    /// Its completion; null if it has not completed, or that was dropped.
    pub completion: *const Completion,
    /// When the call that enqueued it was entered, in nanoseconds of CLOCK_BOOTTIME; 0 if that is not known.
    pub enqueued: Nanos,
    /// When it began to run; 0 if that is not known.
    pub start: Nanos,
    /// When it ended; 0 if that is not known.
    pub end: Nanos,
    /// Bytes of a copy or fill; 0 for other work.
    pub bytes: u64,
    /// The kernel, if it is one.
    pub kernel: KernelId,
    /// Where it ran.
    pub agent: AgentId,
}
sized!(WorkData, "gputrail_work", 64);

/// Gets a piece of work. It must not throw, and must not call a function of the same timeline.
pub type WorkFunction =
    Option<unsafe extern "C-unwind" fn(work: *const WorkData, user_data: *mut c_void)>;
