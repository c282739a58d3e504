//! What an in-process source needs to know of the process it lives in: whether to record, which
//! [`HostThread`] belongs to the calling thread, and when the process forks or ends.
//!
//! The switch lies in a page that the kernel wipes in forked children: a child reads "off" without
//! being told. Its first traced call finds the switch wiped, and attaches anew: with a pool, names
//! and capture of its own. What it inherited of its parent's is never touched again.
//!
//! A thread's cell has no destructor of Rust's; a pthread key gives its blocks back. A call that
//! comes after that makes a new cell.

use crate::correlation::HostThread;
use crate::record::{Domain, Kind, ThreadId};
use crate::recorder::Recorder;
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence};

/// The switch, alone in its page.
#[repr(C, align(64))]
struct Switch {
    /// Bit `n`: calls of the domain with number `n` are recorded.
    domains: AtomicU64,
    /// Counts the attachments of this process and its ancestors; 0 in a child that has not attached.
    generation: AtomicU64,
}

static OFF: Switch = Switch {
    domains: AtomicU64::new(0),
    generation: AtomicU64::new(0),
};

static SWITCH: AtomicPtr<Switch> = AtomicPtr::new((&raw const OFF).cast_mut());

/// What only changes when the process attaches or ends. Not wiped by fork.
static ATTACHED: AtomicPtr<Attached> = AtomicPtr::new(std::ptr::null_mut());
/// The process that is attaching, or 0.
static ATTACHING: AtomicU32 = AtomicU32::new(0);
/// Calls seen after the recording had ended.
static LATE_CALLS: AtomicU64 = AtomicU64::new(0);
/// Records that a signal handler could not write, because it had interrupted a write.
static INTERRUPTED: AtomicU64 = AtomicU64::new(0);

/// One attachment. It is never freed: a thread may be using it.
struct Attached {
    recorder: Recorder,
    generation: u64,
    domains: u64,
    attach: fn() -> Option<Recorder>,
    ended: AtomicU32,
}

/// One thread's state, on the heap.
struct ThreadCell {
    generation: u64,
    /// Set while `host` is borrowed: a signal handler that finds it set must stay away.
    busy: Cell<bool>,
    host: UnsafeCell<HostThread>,
}

thread_local! {
    static CELL: Cell<*mut ThreadCell> = const { Cell::new(std::ptr::null_mut()) };
}

/// The calling thread's [`HostThread`]. Read it once per call and pass it down.
#[derive(Copy, Clone)]
pub struct Current {
    cell: *const ThreadCell,
}

impl Current {
    /// Runs `work` on the thread's state. `None`, and nothing is run, when it is in use already: in a
    /// signal handler that interrupted a write, which is counted.
    #[inline]
    pub fn with<R>(self, work: impl FnOnce(&mut HostThread) -> R) -> Option<R> {
        // SAFETY: the cell belongs to this thread (`Current` is not Send) and lives until its
        // pthread destructor runs, which is after the thread's last call of ours has returned.
        let cell = unsafe { &*self.cell };
        if cell.busy.get() {
            INTERRUPTED.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        cell.busy.set(true);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: only this thread has the cell, and `busy` says that nobody else up its stack
        // borrows the state.
        let result = work(unsafe { &mut *cell.host.get() });
        compiler_fence(Ordering::SeqCst);
        cell.busy.set(false);
        Some(result)
    }

    /// Whether the thread still belongs to the recording it belonged to when this was read: not after
    /// a fork or the end in the middle of a call.
    #[inline]
    pub fn is_current(self) -> bool {
        // SAFETY: as in `with`; a forked child has inherited the cell's memory.
        let cell = unsafe { &*self.cell };
        cell.generation == switch().generation.load(Ordering::Relaxed)
    }
}

#[inline]
fn switch() -> &'static Switch {
    // SAFETY: points to `OFF` or to a page that is never unmapped.
    unsafe { &*SWITCH.load(Ordering::Acquire) }
}

/// The calling thread, if calls of `domain` are recorded now. `None` means: pass the call through.
#[inline]
pub fn current(domain: Domain) -> Option<Current> {
    let switch = switch();
    if switch.domains.load(Ordering::Relaxed) & bit(domain) == 0 {
        return off(domain);
    }
    let cell = CELL.get();
    // SAFETY: a cell that is set is valid until the thread's destructor unsets it.
    if !cell.is_null() && unsafe { (*cell).generation } == switch.generation.load(Ordering::Relaxed)
    {
        return Some(Current { cell });
    }
    new_cell()
}

const fn bit(domain: Domain) -> u64 {
    1 << (domain.0 & 63)
}

/// The switch is off: in a forked child that is to be recorded, attach; else count late calls.
#[cold]
#[inline(never)]
fn off(domain: Domain) -> Option<Current> {
    let attached = attached()?;
    if attached.domains & bit(domain) == 0 {
        return None;
    }
    if attached.ended.load(Ordering::Acquire) != 0 {
        LATE_CALLS.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    let forked = switch().generation.load(Ordering::Acquire) == 0;
    if forked && attach_with(attached.attach, attached.domains) {
        return current(domain);
    }
    None
}

fn attached() -> Option<&'static Attached> {
    // SAFETY: null or a leaked box.
    unsafe { ATTACHED.load(Ordering::Acquire).as_ref() }
}

/// Begins to record calls of `domains` in this process, with the recorder that `attach` makes; in
/// forked children it is called again. `false` if it made none, or this process is recorded already.
pub fn attach(domains: &[Domain], attach: fn() -> Option<Recorder>) -> bool {
    attach_with(
        attach,
        domains
            .iter()
            .map(|domain| bit(*domain))
            .fold(0, |all, bit| all | bit),
    )
}

fn attach_with(attach: fn() -> Option<Recorder>, domains: u64) -> bool {
    // A child may have inherited the lock from a thread that it does not have: then it is another
    // process's, and free.
    let me = std::process::id();
    loop {
        let holder = ATTACHING.load(Ordering::Acquire);
        if holder == me {
            // Another thread is at it, or this one, called from within: pass through meanwhile.
            return false;
        }
        if ATTACHING
            .compare_exchange(holder, me, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            break;
        }
    }
    let done = switch().generation.load(Ordering::Acquire) == 0 && attach_locked(attach, domains);
    ATTACHING.store(0, Ordering::Release);
    done
}

fn attach_locked(attach: fn() -> Option<Recorder>, domains: u64) -> bool {
    let generation = attached().map_or(0, |earlier| earlier.generation) + 1;
    let Some(recorder) = attach() else {
        // Do not try again at every call.
        if let Some(inherited) = attached() {
            inherited.ended.store(1, Ordering::Release);
        }
        return false;
    };
    // Without this a child would write into its parent's blocks; the switch below keeps it away
    // from them too, so a kernel without it is no reason not to record.
    let _ = recorder.buffer().mapping().keep_from_children();
    let Some(page) = switch_page() else {
        return false;
    };
    let attached = Box::leak(Box::new(Attached {
        recorder,
        generation,
        domains,
        attach,
        ended: AtomicU32::new(0),
    }));
    ATTACHED.store(attached, Ordering::Release);
    page.generation.store(generation, Ordering::Release);
    page.domains.store(domains, Ordering::Release);
    SWITCH.store(std::ptr::from_ref(page).cast_mut(), Ordering::Release);
    true
}

/// The page of the switch: the inherited one, wiped, or a new one.
fn switch_page() -> Option<&'static Switch> {
    if !std::ptr::eq(switch(), &OFF) {
        return Some(switch());
    }
    let page = memmap2::MmapOptions::new().len(4096).map_anon().ok()?;
    let page = Box::leak(Box::new(page));
    // SAFETY: the page is ours alone, and wiping it in children loses nothing of theirs.
    unsafe {
        rustix::mm::madvise(
            page.as_mut_ptr().cast(),
            4096,
            rustix::mm::Advice::LinuxWipeOnFork,
        )
    }
    .ok()?;
    // SAFETY: mapped for ever, page aligned, and all zeros are a valid `Switch`.
    Some(unsafe { &*page.as_ptr().cast() })
}

/// The recorder of this process, if it is recorded now.
pub fn recorder() -> Option<&'static Recorder> {
    let attached = attached()?;
    let mine = attached.generation == switch().generation.load(Ordering::Acquire);
    (mine && attached.ended.load(Ordering::Acquire) == 0).then_some(&attached.recorder)
}

/// Stops recording: calls pass through from now on. Returns the recorder, to finish it, to the first
/// who asks; never to a forked child that has not attached.
pub fn end() -> Option<&'static Recorder> {
    let recorder = recorder()?;
    let attached = attached()?;
    switch().domains.store(0, Ordering::Release);
    (attached.ended.swap(1, Ordering::AcqRel) == 0).then_some(recorder)
}

/// Calls that came after the end of the recording.
pub fn late_calls() -> u64 {
    LATE_CALLS.load(Ordering::Relaxed)
}

/// Records that signal handlers could not write.
pub fn interrupted() -> u64 {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The thread's first recorded call, or the first after a fork.
#[cold]
#[inline(never)]
fn new_cell() -> Option<Current> {
    let attached = attached()?;
    let id = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let is_main = id == std::process::id();
    let recorder = &attached.recorder;
    // A signal handler that calls in here while the interrupted thread does would make two cells;
    // signals wait meanwhile.
    with_signals_blocked(|| {
        let Some(host) = recorder.host_thread(ThreadId(id), is_main) else {
            recorder.count_unlaned(Kind::API);
            return None;
        };
        let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
        recorder.names().thread(ThreadId(id), name.trim_end());
        let cell = Box::into_raw(Box::new(ThreadCell {
            generation: attached.generation,
            busy: Cell::new(false),
            host: UnsafeCell::new(host),
        }));
        // What a forked thread inherits stays where it is: its lane lies in memory that is gone.
        CELL.set(cell);
        exit_key::set(cell.cast());
        Some(Current { cell })
    })
}

/// The pthread key whose destructor gives a thread's blocks back.
mod exit_key {
    use super::{CELL, ThreadCell, switch};
    use std::ffi::c_void;
    use std::sync::OnceLock;
    use std::sync::atomic::Ordering;

    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

    /// Has `cell` given back when the calling thread ends. Where no key can be had, the cell's
    /// block stays in the mapping until the end of the recording.
    pub fn set(cell: *mut c_void) {
        let key = KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: `key` is writable; the destructor is a function of this library, which is
            // never unloaded (it is linked with -z nodelete).
            let result = unsafe { libc::pthread_key_create(&mut key, Some(thread_ends)) };
            (result == 0).then_some(key)
        });
        if let Some(key) = key {
            // SAFETY: the key exists, and is never deleted.
            unsafe { libc::pthread_setspecific(*key, cell) };
        }
    }

    unsafe extern "C" fn thread_ends(cell: *mut c_void) {
        let cell: *mut ThreadCell = cell.cast();
        if CELL.get() == cell {
            CELL.set(std::ptr::null_mut());
        }
        // SAFETY: the value was set by `set` from a leaked box that only this thread has, and
        // pthread calls this once for it.
        let cell = unsafe { Box::from_raw(cell) };
        if cell.generation != switch().generation.load(Ordering::Acquire) {
            // Inherited by fork: its lane lies in memory that this process does not have.
            std::mem::forget(cell);
        }
    }
}

/// Runs `work` with every signal blocked on the calling thread. A thread that is started meanwhile
/// keeps them blocked: signals are for the program's own threads.
pub fn with_signals_blocked<R>(work: impl FnOnce() -> R) -> R {
    /// Puts the mask back, also when `work` panics.
    struct Restore(libc::sigset_t);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: the mask was filled in by the system.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
        }
    }
    // SAFETY: a zeroed set is valid memory for these calls to fill in.
    let _restore = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        Restore(before)
    };
    work()
}
