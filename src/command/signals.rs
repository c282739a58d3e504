//! Signals while a program runs. The program receives signals from the terminal itself; others are forwarded to it. A
//! signal never interrupts the making of a trace.

use crate::messages::say;
use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::process::Signal;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of interruptions so far (Ctrl-C and the like).
static INTERRUPTS: AtomicU32 = AtomicU32::new(0);
/// Number of signals so far that ask the command to end.
static TAKEN_SO_FAR: AtomicU32 = AtomicU32::new(0);
/// The latest of these signals.
static LATEST: AtomicI32 = AtomicI32::new(0);
/// Signals to be forwarded: bit n is signal n.
static FORWARD: AtomicU32 = AtomicU32::new(0);
/// Number of requested dumps of a flight recorder.
static TRIGGERS: AtomicU32 = AtomicU32::new(0);
/// The descriptor that wakes the main loop.
static WAKE: AtomicI32 = AtomicI32::new(-1);

const TAKEN: [libc::c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// Handlers for the signals, except those that the parent process has set to be ignored.
pub struct Signals {
    wake: OwnedFd,
    /// The number of signals that had come before.
    before: u32,
}

impl Signals {
    /// Installs the handlers. A program started later gets its own defaults: handlers do not survive exec.
    pub fn take() -> io::Result<Signals> {
        let before = taken();
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        WAKE.store(wake.as_raw_fd(), Ordering::Release);
        for signal in TAKEN {
            if disposition(signal)? != libc::SIG_IGN {
                handle(signal, take as *const () as usize)?;
            }
        }
        // A file that grows too large is an error to report for this command, but not for the program.
        if disposition(libc::SIGXFSZ)? != libc::SIG_IGN {
            handle(libc::SIGXFSZ, pass as *const () as usize)?;
        }
        Ok(Signals { wake, before })
    }

    /// Installs a handler for a signal that triggers a dump, see [`Signals::has_triggered`].
    pub fn trigger_by(&self, signal: libc::c_int) -> io::Result<()> {
        handle(signal, trigger as *const () as usize)
    }

    /// Whether that signal has come since the last call.
    pub fn has_triggered(&self) -> bool {
        TRIGGERS.swap(0, Ordering::AcqRel) != 0
    }

    /// A descriptor that is readable when a signal has come.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// The number of interruptions, and the signals to be forwarded.
    pub fn news(&self) -> (u32, impl Iterator<Item = Signal>) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.wake, &mut count);
        let forward = FORWARD.swap(0, Ordering::AcqRel);
        let signals = (0..32).filter(move |signal| forward & 1 << signal != 0);
        let interrupts = INTERRUPTS.load(Ordering::Acquire);
        (interrupts, signals.filter_map(Signal::from_named_raw))
    }
}

impl Signals {
    /// From now on a signal ends the command at once, after `folder` and all that is in it have been removed. Ends when the
    /// result is dropped.
    pub fn end_at_once(self, folder: &Path) -> EndsAtOnce {
        let shared = Arc::new(Mutex::new(Some(folder.to_owned())));
        let ends = EndsAtOnce(Arc::clone(&shared));
        // The thread sleeps until a signal comes or the process ends. Without it a signal ends the command when it next writes.
        let thread = std::thread::Builder::new().name("signals".into());
        let _ = thread.spawn(move || {
            while taken() == self.before {
                let mut wait = [PollFd::new(&self.wake, PollFlags::IN)];
                let _ = rustix::event::poll(&mut wait, None);
            }
            // Held to the end: the folder's files do not get their final names meanwhile.
            let folder = shared.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(folder) = &*folder {
                remove(folder);
                say!("interrupted");
                std::process::exit(128 + LATEST.load(Ordering::Acquire));
            }
        });
        ends
    }
}

/// See [`Signals::end_at_once`].
#[derive(Debug)]
pub struct EndsAtOnce(Arc<Mutex<Option<PathBuf>>>);

impl Drop for EndsAtOnce {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Removes a folder in which another thread may still create files.
fn remove(folder: &Path) {
    const TRIES: usize = 100;
    for _ in 0..TRIES {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            _ => return,
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // The handlers stay installed, and the descriptor's number may be reused for another file.
        WAKE.store(-1, Ordering::Release);
    }
}

/// Number of signals so far that ask the command to end.
pub fn taken() -> u32 {
    TAKEN_SO_FAR.load(Ordering::Acquire)
}

fn disposition(signal: libc::c_int) -> io::Result<libc::sighandler_t> {
    // SAFETY: zeros are a valid sigaction, and a null pointer changes nothing.
    let (result, action) = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (
            libc::sigaction(signal, std::ptr::null(), &mut action),
            action,
        )
    };
    if result == 0 {
        Ok(action.sa_sigaction)
    } else {
        Err(io::Error::last_os_error())
    }
}

fn handle(signal: libc::c_int, handler: usize) -> io::Result<()> {
    // SAFETY: zeros are a valid sigaction, and both handlers do only what a handler may do: atomics,
    // write(2) and errno.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, &action, std::ptr::null_mut())
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

extern "C" fn take(signal: libc::c_int, info: *const libc::siginfo_t, _: *const libc::c_void) {
    LATEST.store(signal, Ordering::Release);
    TAKEN_SO_FAR.fetch_add(1, Ordering::AcqRel);
    if matches!(signal, libc::SIGINT | libc::SIGQUIT) {
        INTERRUPTS.fetch_add(1, Ordering::AcqRel);
    }
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo.
    let from_terminal = unsafe { (*info).si_code } > 0;
    if !from_terminal || signal == libc::SIGTERM {
        FORWARD.fetch_or(1 << signal, Ordering::AcqRel);
    }
    wake();
}

extern "C" fn trigger(_: libc::c_int, _: *const libc::siginfo_t, _: *const libc::c_void) {
    TRIGGERS.fetch_add(1, Ordering::AcqRel);
    wake();
}

/// Makes [`Signals::wake`] readable, from within a handler.
fn wake() {
    // SAFETY: the location is this thread's, and eight bytes are written to the eventfd, or to no file
    // when it is gone.
    unsafe {
        let errno = *libc::__errno_location();
        let one = 1u64.to_ne_bytes();
        libc::write(WAKE.load(Ordering::Acquire), one.as_ptr().cast(), one.len());
        *libc::__errno_location() = errno;
    }
}

extern "C" fn pass(_: libc::c_int, _: *const libc::siginfo_t, _: *const libc::c_void) {}
