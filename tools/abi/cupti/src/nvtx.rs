//! NVTX's entry points: a program whose `NVTX_INJECTION64_PATH` names this library, as CUPTI's do, has its markers taken by
//! gputrail's.

use crate::load::prepared;
use core::ffi::{CStr, c_int, c_void};
use gputrail_abi::contained;

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
        gputrail_abi::function(name)
    });
    let Some(function) = function.flatten() else {
        return 0;
    };
    // SAFETY: gputrail's functions of these names have this type.
    let function = unsafe { core::mem::transmute::<*mut c_void, Initialise>(function.as_ptr()) };
    // SAFETY: `argument` is what NVTX passes to a function of this name.
    unsafe { function(argument) }
}

/// Called by NVTX, once in each binary that has it.
///
/// # Safety
///
/// The argument is NVTX's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(export: *mut c_void) -> c_int {
    // SAFETY: NVTX calls this function, with what it passes to any library's function of this name.
    unsafe { forward(c"InitializeInjectionNvtx2", export) }
}

/// Called by NVTX, once for each extension in each binary.
///
/// # Safety
///
/// The argument is NVTX's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtxExtension(module: *mut c_void) -> c_int {
    // SAFETY: NVTX calls this function, with what it passes to any library's function of this name.
    unsafe { forward(c"InitializeInjectionNvtxExtension", module) }
}
