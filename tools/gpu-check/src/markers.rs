//! Ranges of gputrail's own markers, where it records the program; elsewhere nothing.

use crate::library::Library;
use std::ffi::CStr;

crate::functions! {
    /// The functions of gputrail's library.
    Markers("gputrail") {
        gputrail_range_push_name(name: *const std::ffi::c_char);
        gputrail_range_pop();
    }
}

/// A range, which ends when it is dropped.
pub struct Range(Option<Markers>);

impl Range {
    /// Begins a range with this name.
    pub fn push(name: &CStr) -> Range {
        // The driver has loaded it by now.
        let library = std::env::var("CUDA_INJECTION64_PATH");
        let library = library.ok().and_then(|path| Library::open(&path).ok());
        let markers = library.map(Markers::of);
        // SAFETY: the library copies the text.
        let begin = |markers: &Markers| unsafe { markers.gputrail_range_push_name(name.as_ptr()) };
        Range(markers.filter(|markers| begin(markers).is_ok()))
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        if let Some(markers) = &self.0 {
            // SAFETY: no arguments.
            let _ = unsafe { markers.gputrail_range_pop() };
        }
    }
}
