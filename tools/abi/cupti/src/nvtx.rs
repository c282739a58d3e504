//! NVTX's entry points: a program whose `NVTX_INJECTION64_PATH` names this library, as CUPTI's do, has its markers taken by
//! gputrail's.

use crate::load::prepared;
use core::ffi::{CStr, c_int, c_void};
use gputrail_abi::contained;

const GPUTRAIL: &CStr = c"libgputrail.so.0";

/// A function by which NVTX initialises a library: it answers 0 if the library takes no markers.
type Initialise = unsafe extern "C" fn(*mut c_void) -> c_int;

/// Calls gputrail's function `name`.
///
/// # Safety
///
/// `name` is such a function, and `argument` is NVTX's for it.
unsafe fn forward(name: &CStr, argument: *mut c_void) -> c_int {
    let function = contained(|| {
        prepared().ok()?;
        // SAFETY: asks for a library that is loaded already.
        let library =
            unsafe { libc::dlopen(GPUTRAIL.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        if library.is_null() {
            return None;
        }
        // SAFETY: an open library, and a name that ends with a 0.
        let function = unsafe { libc::dlsym(library, name.as_ptr()) };
        (!function.is_null()).then_some(function)
    });
    let Some(function) = function.flatten() else {
        return 0;
    };
    // SAFETY: gputrail's functions of these names have this type.
    let function = unsafe { core::mem::transmute::<*mut c_void, Initialise>(function) };
    // SAFETY: the caller's promise.
    unsafe { function(argument) }
}

/// Called by NVTX, once in each binary that has it.
///
/// # Safety
///
/// The argument is NVTX's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(export: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { forward(c"InitializeInjectionNvtx2", export) }
}

/// Called by NVTX, once for each extension in each binary.
///
/// # Safety
///
/// The argument is NVTX's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtxExtension(module: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { forward(c"InitializeInjectionNvtxExtension", module) }
}
