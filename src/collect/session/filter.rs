//! Filters of system calls (seccomp) that the program has installed. One may end the program at a call that it does not make
//! itself, and that it would make for us.

use std::ptr;

/// Whether a filter ends this process at a system call by which it would reach its parent.
///
/// A filter cannot be read, so a child tries the calls. It is made only where there is a filter.
pub fn ends_process() -> bool {
    has_filter() && ends_child()
}

fn has_filter() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mode = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| mode.trim() == "2")
}

/// Whether a child ends at the calls by a signal.
fn ends_child() -> bool {
    const NO_FILE: i32 = -1;
    let none = ptr::null_mut::<libc::c_void>();
    // SAFETY: a child with a copy of the memory, as fork makes one; it tells nobody of its end (no signal), and only
    // `__WCLONE` finds it. It makes system calls only: other threads may hold locks of the C library.
    let child = unsafe { libc::syscall(libc::SYS_clone, 0_usize, none, none, none, none) };
    let child = child as libc::pid_t;
    if child == 0 {
        // SAFETY: calls that fail, or make a socket that ends with the child.
        unsafe {
            let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
            libc::syscall(libc::SYS_socket, libc::AF_UNIX, kind, 0);
            libc::syscall(libc::SYS_setsockopt, NO_FILE, 0, 0, none, 0);
            libc::syscall(libc::SYS_connect, NO_FILE, none, 0);
            libc::syscall(libc::SYS_sendto, NO_FILE, none, 0, 0, none, 0);
            libc::syscall(libc::SYS_recvmsg, NO_FILE, none, 0);
            libc::syscall(libc::SYS_exit_group, 0);
        }
    }
    if child < 0 {
        return false;
    }
    let mut status = 0;
    loop {
        // SAFETY: our child, and a place for its status.
        let waited = unsafe { libc::waitpid(child, &mut status, libc::__WCLONE) };
        if waited == child {
            return libc::WIFSIGNALED(status);
        }
        // SAFETY: no preconditions.
        if unsafe { *libc::__errno_location() } != libc::EINTR {
            return false;
        }
    }
}
