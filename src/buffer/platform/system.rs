//! System calls of Linux, with replacements for other systems, where the library builds, and reads and converts
//! recordings made on Linux.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

pub use here::*;

/// The dynamic loader's reason for a failure, which is the source of the error.
pub fn loader_reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(target_os = "linux")]
mod here {
    use super::*;
    use rustix::thread::futex;

    /// The kernel's id of the calling thread.
    pub fn thread_id() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    }

    /// Sleeps while `word` is `seen`, until woken or for `longest`. Spurious wake-ups are possible.
    pub fn sleep_on(word: &AtomicU32, seen: u32, longest: Duration) {
        let longest = longest.try_into().expect("seconds fit");
        // Errors are ignored: the caller checks its condition again.
        let _ = futex::wait(word, futex::Flags::empty(), seen, Some(&longest));
    }

    /// Wakes up to `most` threads that sleep on `word`.
    pub fn wake(word: &AtomicU32, most: u32) {
        let _ = futex::wake(word, futex::Flags::empty(), most);
    }

    /// Fills `bytes` with random bytes. Returns `false` if the system has none yet.
    pub fn random(bytes: &mut [u8]) -> bool {
        rustix::rand::getrandom(bytes, rustix::rand::GetRandomFlags::NONBLOCK).is_ok()
    }

    /// The address of errno of the calling thread.
    pub fn errno() -> *mut libc::c_int {
        // SAFETY: no preconditions.
        unsafe { libc::__errno_location() }
    }

    /// Reads memory of the program at `address`. Returns `false` if it is not mapped: the system call reports that
    /// instead of faulting.
    pub fn peek(address: u64, into: &mut [u8]) -> bool {
        let local = libc::iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: into.len(),
        };
        let remote = libc::iovec {
            iov_base: address as *mut _,
            iov_len: into.len(),
        };
        let process = std::process::id() as libc::pid_t;
        // SAFETY: `local` is ours to write; `remote` is checked by the system.
        let read = unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) };
        read == into.len() as isize
    }

    /// The bounds of the calling thread's stack, its lowest address and the one behind its highest.
    pub fn stack_bounds() -> Option<(u64, u64)> {
        // SAFETY: the attributes are filled in by the first call, read by the second, and destroyed.
        unsafe {
            let mut attributes = std::mem::zeroed();
            if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
                return None;
            }
            let (mut low, mut bytes) = (std::ptr::null_mut(), 0);
            let failed = libc::pthread_attr_getstack(&attributes, &raw mut low, &raw mut bytes);
            libc::pthread_attr_destroy(&raw mut attributes);
            let high = (low as u64).checked_add(bytes as u64)?;
            (failed == 0).then_some((low as u64, high))
        }
    }

    /// Path of the library or program that `code` lies in, as the dynamic loader opened it.
    pub fn library_of(code: *const ()) -> Option<std::path::PathBuf> {
        use std::ffi::{CStr, OsStr};
        use std::os::unix::ffi::OsStrExt;

        // SAFETY: plain data, for which zeros are valid.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: any address, and a place for the answer.
        let found = unsafe { libc::dladdr(code.cast(), &raw mut info) } != 0;
        if !found || info.dli_fname.is_null() {
            return None;
        }
        // SAFETY: a text of the loader, which lasts as long as the library.
        let path = unsafe { CStr::from_ptr(info.dli_fname) };
        Some(OsStr::from_bytes(path.to_bytes()).into())
    }

    /// Brings `memory` into place.
    pub fn populate(memory: *mut [u8]) {
        // Older kernels do not support this: the first write maps each page then.
        // SAFETY: contents are unchanged, and unmapped memory is reported as an error.
        let _ = unsafe {
            rustix::mm::madvise(
                memory.cast(),
                memory.len(),
                rustix::mm::Advice::LinuxPopulateWrite,
            )
        };
    }

    /// Excludes `memory` from forked children.
    pub fn keep_from_children(memory: &memmap2::MmapRaw) -> std::io::Result<()> {
        memory.advise(memmap2::Advice::DontFork)
    }

    /// Zeroed memory that the kernel zeroes again in forked children. It is never freed.
    pub fn wiped_in_children(bytes: usize) -> Option<*const u8> {
        let mut memory = memmap2::MmapOptions::new().len(bytes).map_anon().ok()?;
        let advice = rustix::mm::Advice::LinuxWipeOnFork;
        // SAFETY: the memory is exclusively ours, and children expect it to be zeroed.
        unsafe { rustix::mm::madvise(memory.as_mut_ptr().cast(), bytes, advice) }.ok()?;
        let start = memory.as_ptr();
        std::mem::forget(memory);
        Some(start)
    }
}

#[cfg(not(target_os = "linux"))]
mod here {
    use super::*;
    use std::io::Read;
    use std::sync::atomic::Ordering;

    /// A number of our own for the calling thread, as there is no portable one.
    pub fn thread_id() -> u32 {
        static LAST: AtomicU32 = AtomicU32::new(0);
        thread_local! {
            static NUMBER: u32 = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        }
        NUMBER.with(|number| *number)
    }

    /// Sleeps briefly while `word` is `seen`, at most for `longest`. There are no wake-ups on these systems.
    pub fn sleep_on(word: &AtomicU32, seen: u32, longest: Duration) {
        if word.load(Ordering::Acquire) == seen {
            std::thread::sleep(longest.min(Duration::from_millis(1)));
        }
    }

    /// Does nothing: sleepers wake by themselves.
    pub fn wake(_: &AtomicU32, _: u32) {}

    /// Fills `bytes` with random bytes, if the system has any.
    pub fn random(bytes: &mut [u8]) -> bool {
        std::fs::File::open("/dev/urandom").is_ok_and(|mut from| from.read_exact(bytes).is_ok())
    }

    /// The address of errno of the calling thread.
    pub fn errno() -> *mut libc::c_int {
        // SAFETY: no preconditions.
        unsafe { libc::__error() }
    }

    /// Unsupported: returns `false`.
    pub fn peek(_: u64, _: &mut [u8]) -> bool {
        false
    }

    /// Not available: nothing is recorded on this system.
    pub fn stack_bounds() -> Option<(u64, u64)> {
        None
    }

    /// Not available: nothing is recorded on this system.
    pub fn library_of(_: *const ()) -> Option<std::path::PathBuf> {
        None
    }

    /// The first writes bring the pages.
    pub fn populate(_: *mut [u8]) {}

    /// Does nothing: there are no sources on these systems, so it does not matter.
    pub fn keep_from_children(_: &memmap2::MmapRaw) -> std::io::Result<()> {
        Ok(())
    }

    /// Unsupported: nothing is recorded on these systems.
    pub fn wiped_in_children(_: usize) -> Option<*const u8> {
        None
    }
}
