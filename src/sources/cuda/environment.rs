//! The library that the driver was to load before the recording named ours.

use gputrail_collect::loading::cuda::{INJECTION_VARIABLE, NEXT_VARIABLE};

/// Initialises the library that the variable named before ours.
pub(super) fn call_next() {
    use libloading::os::unix::Library;
    use std::sync::atomic::{AtomicBool, Ordering};

    static ONCE: AtomicBool = AtomicBool::new(false);
    let next = gputrail_buffer::platform::environment::variable(NEXT_VARIABLE);
    let Some(path) = next.filter(|_| !ONCE.swap(true, Ordering::Relaxed)) else {
        return;
    };
    // SAFETY: the driver would have opened the library.
    let library = match unsafe { Library::new(&path) } {
        Ok(library) => library,
        Err(error) => {
            let reason = gputrail_buffer::platform::system::loader_reason(&error);
            return gputrail_buffer::platform::inside::message(format_args!(
                "the library that {INJECTION_VARIABLE} named before, {}, is not initialised: {reason}",
                path.display()
            ));
        }
    };
    type Initialize = unsafe extern "C" fn() -> i32;
    // SAFETY: a function of this name in a library for injection has this type.
    if let Ok(initialize) = unsafe { library.get::<Initialize>("InitializeInjection") } {
        // SAFETY: called once, as the driver would have.
        unsafe { initialize() };
    }
    let _ = library.into_raw();
}
