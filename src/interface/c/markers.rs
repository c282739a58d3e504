//! Markers and ranges, names for objects, threads and the process, and the recording of the process itself.

use super::sized::sized;
use core::ffi::c_char;

/// The attributes of a marker or a range. An attribute that is null or 0 is not given.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct MarkOptions {
    /// `sizeof(gputrail_mark_options)`.
    pub size: usize,
    /// Its name.
    pub name: *const c_char,
    /// The library or component that it belongs to.
    pub domain: *const c_char,
    /// Its category.
    pub category: *const c_char,
    /// A value beside it, as bits; see `payload_kind`.
    pub payload: u64,
    /// Alpha, red, green and blue, a byte each, from the highest down.
    pub color: u32,
    /// `GPUTRAIL_PAYLOAD_KIND_NONE`, or what `payload` is.
    pub payload_kind: u32,
}
sized!(MarkOptions, "gputrail_mark_options", 48);
