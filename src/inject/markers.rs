//! The functions of `libroctx64.so`, `librocprofiler-sdk-roctx.so` and `libCLPerfMarker.so`. A recorded program finds this
//! library under each of these names.

use crate::c::serve_tools;
use crate::elder::ElderFunction;
use core::ffi::{c_char, c_int, c_void};
use gputrail_sources::{clperfmarker, roctx};
use std::sync::atomic::{AtomicBool, Ordering};

/// Has tools loaded when the process begins, which may be with a marker.
fn begin() {
    static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
    if !HAS_BEGUN.load(Ordering::Relaxed) {
        serve_tools();
        HAS_BEGUN.store(true, Ordering::Relaxed);
    }
}

/// Declares a function of an interface. It calls the same function of the copy of this library that records, if that is
/// another one.
macro_rules! exported {
    ($($(#[$about:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $work:block)*) => {$(
        $(#[$about])*
        ///
        /// # Safety
        ///
        /// Texts are null or end with a zero; other pointers are null, or aligned and lead to an initialised value of their
        /// type. Until the function returns, nobody writes what it reads or uses what it writes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            static ELDER: ElderFunction = ElderFunction::new();
            if let Some(elder) = ELDER.get(stringify!($name)) {
                type Function = unsafe extern "C" fn($($type),*) $(-> $result)?;
                // SAFETY: a function of this name in a library of ours has this type.
                let elder = unsafe { core::mem::transmute::<*mut c_void, Function>(elder) };
                // SAFETY: the function of the first copy is this function, and is promised the same of its arguments.
                return unsafe { elder($($argument),*) };
            }
            $work
        }
    )*};
}

exported! {
    /// Marks a moment.
    fn roctxMarkA(message: *const c_char) {
        begin();
        // SAFETY: `message` is null or a text that ends with a zero (the caller's promise).
        unsafe { roctx::mark(message) }
    }

    /// Begins a range of the calling thread, and returns its level.
    fn roctxRangePushA(message: *const c_char) -> c_int {
        begin();
        // SAFETY: `message` is null or a text that ends with a zero (the caller's promise).
        unsafe { roctx::push(message) }
    }

    /// Ends the innermost range of the calling thread, and returns its level.
    fn roctxRangePop() -> c_int {
        roctx::pop()
    }

    /// Starts a range that may end on any thread, and returns its id.
    fn roctxRangeStartA(message: *const c_char) -> u64 {
        begin();
        // SAFETY: `message` is null or a text that ends with a zero (the caller's promise).
        unsafe { roctx::start(message) }
    }

    /// Ends a started range.
    fn roctxRangeStop(range: u64) {
        begin();
        roctx::stop(range);
    }

    /// Pauses the recording of this process.
    fn roctxProfilerPause(thread: u64) -> c_int {
        begin();
        roctx::pause(thread)
    }

    /// Lets the recording of this process go on.
    fn roctxProfilerResume(thread: u64) -> c_int {
        begin();
        roctx::resume(thread)
    }

    /// Stores the id of the calling thread.
    fn roctxGetThreadId(thread: *mut u64) -> c_int {
        if thread.is_null() {
            return -1;
        }
        // SAFETY: not null, so that it leads to room for a number (the caller's promise), aligned or not.
        unsafe { thread.write_unaligned(roctx::thread_id()) };
        0
    }

    /// Names the calling thread.
    fn roctxNameOsThread(name: *const c_char) -> c_int {
        // SAFETY: `name` is null or a text that ends with a zero (the caller's promise).
        unsafe { roctx::name_os_thread(name) }
    }

    /// Names an agent of HSA, whose handle is at `agent`.
    fn roctxNameHsaAgent(name: *const c_char, agent: *const u64) -> c_int {
        // SAFETY: `agent` is null, or aligned and leads to a handle that nobody writes (the caller's promise).
        match unsafe { agent.as_ref() } {
            // SAFETY: `name` is null or a text that ends with a zero (the caller's promise).
            Some(agent) => unsafe { roctx::name_object(name, "HSA agent", *agent) },
            None => -1,
        }
    }

    /// Names a device of HIP.
    fn roctxNameHipDevice(name: *const c_char, device: c_int) -> c_int {
        // SAFETY: `name` is null or a text that ends with a zero (the caller's promise).
        unsafe { roctx::name_object(name, "HIP device", device as u64) }
    }

    /// Names a stream of HIP.
    fn roctxNameHipStream(name: *const c_char, stream: usize) -> c_int {
        // SAFETY: `name` is null or a text that ends with a zero (the caller's promise).
        unsafe { roctx::name_object(name, "HIP stream", stream as u64) }
    }

    /// The major version of ROCTx.
    fn roctx_version_major() -> u32 {
        roctx::VERSION.0
    }

    /// The minor version of ROCTx.
    fn roctx_version_minor() -> u32 {
        roctx::VERSION.1
    }

    /// The text of the last error: there are none.
    fn roctracer_error_string() -> *const c_char {
        c"".as_ptr()
    }

    /// Begins to take markers of CLPerfMarker, as the library's header spells it.
    fn clInitializePerfMarkerAMD() -> c_int {
        begin();
        clperfmarker::initialize()
    }

    /// Begins to take markers of CLPerfMarker, as its documentation spells it.
    fn clinitializePerfMarkerAMD() -> c_int {
        begin();
        clperfmarker::initialize()
    }

    /// Begins a marker on the calling thread.
    fn clBeginPerfMarkerAMD(name: *const c_char, group: *const c_char) -> c_int {
        // SAFETY: `name` and `group` are null or texts that end with a zero (the caller's promise).
        unsafe { clperfmarker::begin(name, group) }
    }

    /// Ends the innermost marker of the calling thread.
    fn clEndPerfMarkerAMD() -> c_int {
        clperfmarker::end()
    }

    /// Takes no further markers, and writes the file of markers that was asked for.
    fn clFinalizePerfMarkerAMD() -> c_int {
        clperfmarker::finalize()
    }
}
