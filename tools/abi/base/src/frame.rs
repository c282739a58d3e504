//! The frame through which functions of tools are called: its personality routine lets no exception pass.

use crate::callee::Run;
use core::ffi::c_void;

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub use guarded::gputrail_abi_called as called;

/// Calls `run` with `called`. On this system an exception ends the program without being told.
///
/// # Safety
///
/// As for `run`.
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub unsafe fn called(run: Run, called: *mut c_void) {
    // SAFETY: the promise of this function.
    unsafe { run(called) };
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod guarded {
    use super::{Run, c_void};
    use crate::callee;
    use core::ffi::c_int;

    unsafe extern "C-unwind" {
        /// Calls `run` with `called`, from a frame that lets no exception pass.
        pub fn gputrail_abi_called(run: Run, called: *mut c_void);
    }

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
        "sub rsp, 8",
        ".cfi_def_cfa_offset 16",
        "mov rax, rdi",
        "mov rdi, rsi",
        "call rax",
        "add rsp, 8",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
        ".size gputrail_abi_called, . - gputrail_abi_called",
        ".popsection",
        personality = sym personality,
    );
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
        "stp x29, x30, [sp, #-16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset 29, -16",
        ".cfi_offset 30, -8",
        "mov x29, sp",
        "mov x8, x0",
        "mov x0, x1",
        "blr x8",
        "ldp x29, x30, [sp], #16",
        ".cfi_def_cfa_offset 0",
        "ret",
        ".cfi_endproc",
        ".size gputrail_abi_called, . - gputrail_abi_called",
        ".popsection",
        personality = sym personality,
    );
    /// `_UA_SEARCH_PHASE`: a handler is looked for, and nothing has been unwound.
    const SEARCH_PHASE: c_int = 1;
    /// `_UA_FORCE_UNWIND`: the thread ends, by `pthread_exit` or cancellation.
    const FORCE_UNWIND: c_int = 8;
    /// `_URC_FATAL_PHASE1_ERROR`: there is no handler.
    const NO_HANDLER: c_int = 3;
    /// `_URC_CONTINUE_UNWIND`
    const CONTINUE: c_int = 8;

    /// The personality routine of `gputrail_abi_called`, which the unwinder calls for this frame. It asks nothing of the unwinder: the
    /// one that throws may be another library than the one that this library is linked with.
    extern "C" fn personality(
        _version: c_int,
        actions: c_int,
        _class: u64,
        _exception: *mut c_void,
        _context: *mut c_void,
    ) -> c_int {
        let is_search = actions & SEARCH_PHASE != 0;
        let is_forced = actions & FORCE_UNWIND != 0;
        if is_search || is_forced {
            callee::tell(if is_search {
                "an exception"
            } else {
                "pthread_exit"
            });
        }
        if is_search { NO_HANDLER } else { CONTINUE }
    }
}
