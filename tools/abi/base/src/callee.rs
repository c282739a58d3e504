//! Functions of tools that the libraries call: an exception that leaves one is told, and ends the program as an exception
//! that nobody catches does.
//!
//! Between a tool's function and whoever could catch lie frames of Rust, which cannot let an exception of C++ pass. So the
//! function is called through a frame whose personality routine ends the search for a handler: `throw` finds none, and the C++
//! runtime calls `std::terminate`, whose message has the exception.

use crate::file_of;
use core::ffi::{CStr, c_int, c_void};
use std::fmt::Write;

/// A function of a tool's.
#[derive(Copy, Clone)]
pub struct Callee {
    /// The library that calls it, as messages name it.
    pub library: &'static str,
    /// The function by which the tool has set it, or its name if it is found by that.
    pub set_by: &'static str,
    /// Its address.
    pub function: *const (),
}

/// A call in progress.
#[repr(C)]
struct Called<W, R> {
    /// First, where the personality routine finds it.
    callee: Callee,
    work: Option<W>,
    result: Option<R>,
}

impl Callee {
    /// Calls the function: `work` does, by a pointer of the ABI `C-unwind`.
    pub fn call<R>(self, work: impl FnOnce() -> R) -> R {
        let mut called = Called {
            callee: self,
            work: Some(work),
            result: None,
        };
        let run = run_of(&called);
        // SAFETY: `run` takes what is at the address, which lives until it returns.
        unsafe { gputrail_abi_called(run, (&raw mut called).cast()) };
        match called.result {
            Some(result) => result,
            // `run` has returned, and with a result.
            None => std::process::abort(),
        }
    }

    /// The sentence about what has left it.
    fn tell(&self, what: &str) {
        let mut text = format!("{}: {what} left the function", self.library);
        if let Some(name) = name_of(self.function) {
            let _ = write!(text, " {}", name.to_string_lossy());
        }
        if let Some(file) = file_of(self.function) {
            let _ = write!(text, " of {}", file.display());
        }
        eprintln!("{text}, set by {}, which ends the program", self.set_by);
    }
}

/// The name of a function, if its library exports it.
fn name_of(function: *const ()) -> Option<&'static CStr> {
    // SAFETY: zeros are a valid value of this structure of pointers.
    let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked about, and there is a place for the answer.
    let is_known = unsafe { libc::dladdr(function.cast(), &mut found) } != 0;
    let is_it =
        is_known && !found.dli_sname.is_null() && found.dli_saddr.cast() == function.cast_mut();
    // SAFETY: the loader's text, which lasts as long as the library: that of a function which is being called.
    is_it.then(|| unsafe { CStr::from_ptr(found.dli_sname) })
}

type Run = unsafe extern "C-unwind" fn(*mut c_void);

fn run_of<W: FnOnce() -> R, R>(_: &Called<W, R>) -> Run {
    run::<W, R>
}

/// # Safety
///
/// `called` leads to a `Called` of these types, which nobody else uses.
unsafe extern "C-unwind" fn run<W: FnOnce() -> R, R>(called: *mut c_void) {
    // SAFETY: `called` leads to one.
    let called = unsafe { &mut *called.cast::<Called<W, R>>() };
    called.result = called.work.take().map(|work| work());
}

unsafe extern "C-unwind" {
    /// Calls `run` with `called`, from a frame that lets no exception pass.
    fn gputrail_abi_called(run: Run, called: *mut c_void);
}

// The address of the call is in a register that functions preserve, in which the personality routine finds it.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".pushsection .text.gputrail_abi_called,\"ax\",@progbits",
    ".hidden gputrail_abi_called",
    ".globl gputrail_abi_called",
    ".hidden {personality}",
    ".type gputrail_abi_called,@function",
    "gputrail_abi_called:",
    ".cfi_startproc",
    ".cfi_personality 0x1b, {personality}",
    "push rbx",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset 3, -16",
    "mov rbx, rsi",
    "mov rax, rdi",
    "mov rdi, rsi",
    "call rax",
    "pop rbx",
    ".cfi_def_cfa_offset 8",
    "ret",
    ".cfi_endproc",
    ".size gputrail_abi_called, . - gputrail_abi_called",
    ".popsection",
    personality = sym personality,
);
#[cfg(target_arch = "x86_64")]
const REGISTER: c_int = 3;

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".pushsection .text.gputrail_abi_called,\"ax\",@progbits",
    ".hidden gputrail_abi_called",
    ".globl gputrail_abi_called",
    ".hidden {personality}",
    ".type gputrail_abi_called,@function",
    "gputrail_abi_called:",
    ".cfi_startproc",
    ".cfi_personality 0x1b, {personality}",
    "stp x29, x30, [sp, #-32]!",
    ".cfi_def_cfa_offset 32",
    ".cfi_offset 29, -32",
    ".cfi_offset 30, -24",
    "str x19, [sp, #16]",
    ".cfi_offset 19, -16",
    "mov x29, sp",
    "mov x19, x1",
    "mov x8, x0",
    "mov x0, x1",
    "blr x8",
    "ldr x19, [sp, #16]",
    "ldp x29, x30, [sp], #32",
    ".cfi_def_cfa_offset 0",
    "ret",
    ".cfi_endproc",
    ".size gputrail_abi_called, . - gputrail_abi_called",
    ".popsection",
    personality = sym personality,
);
#[cfg(target_arch = "aarch64")]
const REGISTER: c_int = 19;

/// `_UA_SEARCH_PHASE`: a handler is looked for, and nothing has been unwound.
const SEARCH_PHASE: c_int = 1;
/// `_UA_FORCE_UNWIND`: the thread ends, by `pthread_exit` or cancellation.
const FORCE_UNWIND: c_int = 8;
/// `_URC_FATAL_PHASE1_ERROR`: there is no handler.
const NO_HANDLER: c_int = 3;
/// `_URC_CONTINUE_UNWIND`
const CONTINUE: c_int = 8;

unsafe extern "C" {
    fn _Unwind_GetGR(context: *mut c_void, register: c_int) -> usize;
}

/// The personality routine of `gputrail_abi_called`.
///
/// # Safety
///
/// The unwinder calls it for this frame.
unsafe extern "C" fn personality(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    let is_search = actions & SEARCH_PHASE != 0;
    let is_forced = actions & FORCE_UNWIND != 0;
    if is_search || is_forced {
        // SAFETY: the context of this frame, in which the register has the address of the call.
        let called = unsafe { _Unwind_GetGR(context, REGISTER) };
        let called = std::ptr::with_exposed_provenance::<Callee>(called);
        // SAFETY: a call in progress, which begins with its callee.
        let callee = unsafe { *called };
        callee.tell(if is_search {
            "an exception"
        } else {
            "pthread_exit"
        });
    }
    if is_search { NO_HANDLER } else { CONTINUE }
}
