//! Has gputrail know an agent that is listed before the program makes a context for it: to sample it or to count on it.

use crate::agents;
use crate::result::Answer;
use core::ffi::{CStr, c_void};
use gputrail_buffer::platform::sync::with_signals_blocked;
use gputrail_record as record;
use gputrail_rocprofiler::{AgentId, Status};
use std::ptr::{NonNull, null, null_mut};

type CreateContext = unsafe extern "C" fn(
    *const isize,
    u32,
    *const *mut c_void,
    Option<unsafe extern "C" fn()>,
    *mut c_void,
    *mut i32,
) -> *mut c_void;
type ReleaseContext = unsafe extern "C" fn(*mut c_void) -> i32;

/// gputrail's agent. If gputrail does not know it yet, a context is made for it, and released.
///
/// # Errors
///
/// `AGENT_NOT_FOUND`, also for the host; `NOT_AVAILABLE` if OpenCL makes no context for it.
pub fn agent(id: AgentId) -> Answer<record::AgentId> {
    if let Some(known) = agents::of_id(id)? {
        return Ok(known);
    }
    let handle = agents::runtime_handle(id)?;
    // Calls of a thread within a callback of gputrail's are not observed; the program's first call is such a callback.
    let other = with_signals_blocked(|| {
        std::thread::Builder::new()
            .name("gputrail".into())
            .spawn(move || make_known(handle))
    });
    if let Ok(other) = other {
        let _ = other.join();
    }
    agents::of_id(id)?.ok_or(Status::ERROR_NOT_AVAILABLE)
}

/// Makes a context for a device of OpenCL, by which gputrail comes to know it.
fn make_known(device: u64) {
    let loader = libc::RTLD_NOW | libc::RTLD_NOLOAD;
    // SAFETY: asks for a library that is loaded, by a text that ends with a 0.
    let library = unsafe { libc::dlopen(c"libOpenCL.so.1".as_ptr(), loader) };
    let Some(library) = NonNull::new(library) else {
        return;
    };
    let find = |name: &CStr| {
        // SAFETY: an open library, and a text that ends with a 0.
        NonNull::new(unsafe { libc::dlsym(library.as_ptr(), name.as_ptr()) })
    };
    let (Some(create), Some(release)) = (find(c"clCreateContext"), find(c"clReleaseContext"))
    else {
        return;
    };
    // SAFETY: OpenCL's functions of these names have these types.
    let (create, release) = unsafe {
        (
            core::mem::transmute::<*mut c_void, CreateContext>(create.as_ptr()),
            core::mem::transmute::<*mut c_void, ReleaseContext>(release.as_ptr()),
        )
    };
    let device = core::ptr::with_exposed_provenance_mut::<c_void>(device as usize);
    // SAFETY: a device that the loader has listed, and no properties, callback or place for an error.
    let context = unsafe { create(null(), 1, &device, None, null_mut(), null_mut()) };
    if !context.is_null() {
        // SAFETY: the context that was made above.
        unsafe { release(context) };
    }
}
