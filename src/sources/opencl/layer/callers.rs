//! Threads that call OpenCL: those of the program, and those of the runtime, which are in a callback of the program's then.
//!
//! A thread of the program has no function of the runtime below the layer's on its stack: the layer stands between the two.

use super::ffi::*;
use core::ffi::{c_int, c_void};
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_buffer::platform::system::library_of;
use std::path::PathBuf;

/// The most functions on a stack that are looked at.
const MAX_DEPTH: usize = 4096;
/// PoCL's drivers are libraries of their own, beside the one that has the functions of OpenCL.
const POCL: &str = "libpocl";

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(frame: *mut c_void) -> usize;
}

/// The stack of the calling thread, from the inside to the outside.
struct Stack {
    /// The libraries of its functions; functions of one library that follow each other are one entry. `None` stands for code that
    /// no library has.
    libraries: Vec<Option<PathBuf>>,
    depth: usize,
}

extern "C" fn visit(frame: *mut c_void, stack: *mut c_void) -> c_int {
    const CONTINUE: c_int = 0;
    const STOP: c_int = 4;
    // SAFETY: the place that `Stack::of_caller` passes, which nobody else uses meanwhile.
    let stack = unsafe { &mut *stack.cast::<Stack>() };
    stack.depth += 1;
    if stack.depth > MAX_DEPTH {
        return STOP;
    }
    // SAFETY: a frame of the unwinder's, during its call.
    let address = unsafe { _Unwind_GetIP(frame) };
    if address != 0 {
        let library = library_of(core::ptr::without_provenance(address));
        if stack.libraries.last() != Some(&library) {
            stack.libraries.push(library);
        }
    }
    CONTINUE
}

impl Stack {
    fn of_caller() -> Stack {
        let mut stack = Stack {
            libraries: Vec::new(),
            depth: 0,
        };
        // SAFETY: `visit` is called with frames and with this place, until the call returns.
        unsafe { _Unwind_Backtrace(visit, (&raw mut stack).cast()) };
        stack
    }

    /// Whether the stack is known up to the function of libc that runs the thread.
    fn is_complete(&self) -> bool {
        let libc = library_of(libc::getpid as *const ());
        libc.is_some() && self.libraries.last() == Some(&libc)
    }
}

/// The libraries of the runtimes whose kernels run on threads of this process.
static RUNTIMES: PerProcess<Vec<PathBuf>> = PerProcess::new();

/// Adds the runtime of `device`.
pub(super) fn add_runtime(device: cl_device_id) {
    let functions = device.0.cast::<*const *const ()>();
    if functions.is_null() {
        return;
    }
    // SAFETY: an object of OpenCL's begins with a pointer to the functions of its runtime (cl_khr_icd), the first of which is
    // always there.
    let library = library_of(unsafe { **functions });
    let mut runtimes = RUNTIMES.lock();
    if let Some(library) = library.filter(|library| !runtimes.contains(library)) {
        runtimes.push(library);
    }
}

/// Whether the calling thread may be one of a runtime's: it is in a callback of the runtime's, or its stack cannot be read.
pub(super) fn may_be_of_runtime() -> bool {
    let stack = Stack::of_caller();
    let runtimes = RUNTIMES.lock();
    if runtimes.is_empty() || !stack.is_complete() {
        return true;
    }
    let is_of_runtime = |library: &PathBuf| {
        let name = library.file_name().unwrap_or_default();
        runtimes.contains(library) || name.to_string_lossy().starts_with(POCL)
    };
    stack.libraries.iter().flatten().any(is_of_runtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_of_a_thread_is_known_up_to_its_begin() {
        let stack = std::thread::spawn(Stack::of_caller).join().unwrap();
        assert!(stack.is_complete(), "{:?}", stack.libraries);
        let program = std::env::current_exe().unwrap();
        let is_program =
            |library: &PathBuf| library.canonicalize().is_ok_and(|path| path == program);
        assert!(stack.libraries.iter().flatten().any(is_program));
    }
}
