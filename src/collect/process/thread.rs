//! The state of the threads of the observed process.
//!
//! A thread's cell has no destructor of Rust's; a pthread key gives its blocks back. A call that comes after that makes a
//! new cell.

use super::observed::{ObservedProcess, board, process};
use super::table::wanted;
use crate::correlation::HostThread;
use crate::delivering;
use crate::exit;
use crate::switchboard::{CallbackArguments, ExternalIds, SubscriberSet, Switchboard, ThreadState};
use gputrail_buffer::clock;
use gputrail_buffer::platform::sync::with_signals_blocked;
use gputrail_buffer::platform::system;
use gputrail_record::{Kind, Overhead, OverheadKind, ThreadId, Ticks};
use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// Records that a signal handler could not write, because it had interrupted a write.
static INTERRUPTED: AtomicU64 = AtomicU64::new(0);

/// One thread's state, on the heap. What every call needs comes first, and is near together.
#[repr(C, align(64))]
struct ThreadCell {
    /// That of `process`.
    generation: u64,
    /// The part of `host` that may be used while `host` is borrowed.
    state: Arc<ThreadState>,
    /// Set while `host` is borrowed: a signal handler that finds it set must stay away.
    busy: Cell<bool>,
    host: UnsafeCell<HostThread>,
    process: &'static ObservedProcess,
}

/// The calling thread's [`ThreadCell`], or null.
///
/// The variable has a TLS descriptor: two words that the dynamic linker fills in, a function and its argument. In a process
/// with room among its static thread-local variables the argument is the variable's offset from the thread pointer, the
/// same one for each thread, so an access is two loads: a `thread_local!`, which calls `__tls_get_addr` in a library, takes
/// 1.6 ns more, which the limit of a recorded call (two tick reads + 9 ns) has no margin for. Without that room the argument
/// is a pointer, and the function returns the thread's offset. The initial-exec model has no second way: a library with such
/// a variable is refused there.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
mod cell {
    use super::ThreadCell;

    std::arch::global_asm!(
        ".pushsection .tbss.gputrail_thread_cell, \"awT\", @nobits",
        ".hidden gputrail_thread_cell",
        ".globl gputrail_thread_cell",
        ".type gputrail_thread_cell, @object",
        ".size gputrail_thread_cell, 8",
        ".p2align 3",
        "gputrail_thread_cell:",
        ".zero 8",
        ".popsection",
    );

    /// The offset of the calling thread's word from its thread pointer.
    #[inline(always)]
    fn offset() -> isize {
        let offset;
        // SAFETY: the sequence of the ABI for a variable with a descriptor, with a shortcut. Offsets of static variables are
        // negative, pointers are not. The linker replaces the first instruction by one that loads the offset, and the
        // call by nothing, where it links a program. The function keeps all registers; that of glibc before 2.40 loses
        // those of vectors when it allocates the thread's variables.
        unsafe {
            std::arch::asm!(
                "leaq gputrail_thread_cell@tlsdesc(%rip), %rax",
                "testq %rax, %rax",
                "js 2f",
                "movq %rax, {descriptor}",
                "movq 8(%rax), %rax",
                "testq %rax, %rax",
                "js 2f",
                "movq {descriptor}, %rax",
                "call *gputrail_thread_cell@tlscall(%rax)",
                "2:",
                descriptor = out(reg) _,
                out("rax") offset,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                options(att_syntax),
            );
        }
        offset
    }

    #[inline(always)]
    pub fn get() -> *mut ThreadCell {
        let cell;
        // SAFETY: loads the calling thread's word, which `set` alone stores, and touches nothing else.
        unsafe {
            std::arch::asm!(
                "mov {cell}, qword ptr fs:[{offset}]",
                offset = in(reg) offset(),
                cell = lateout(reg) cell,
                options(nostack, preserves_flags, readonly),
            );
        }
        cell
    }

    pub fn set(cell: *mut ThreadCell) {
        // SAFETY: stores to the calling thread's word, which is for this, and touches nothing else.
        unsafe {
            std::arch::asm!(
                "mov qword ptr fs:[{offset}], {cell}",
                offset = in(reg) offset(),
                cell = in(reg) cell,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// The calling thread's [`ThreadCell`], or null.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")))]
mod cell {
    use super::ThreadCell;
    use std::cell::Cell;

    thread_local! {
        static CELL: Cell<*mut ThreadCell> = const { Cell::new(std::ptr::null_mut()) };
    }

    #[inline(always)]
    pub fn get() -> *mut ThreadCell {
        CELL.get()
    }

    pub fn set(cell: *mut ThreadCell) {
        CELL.set(cell);
    }
}

/// The calling thread's [`HostThread`]. Read it once per call and pass it down.
#[derive(Copy, Clone)]
pub struct Current {
    cell: NonNull<ThreadCell>,
}

impl Current {
    /// Runs `work` on the thread's state. `None`, and nothing is run, when it is in use already: in a signal handler
    /// that interrupted a write, which is counted.
    #[inline(always)]
    pub fn with<R>(self, work: impl FnOnce(&mut HostThread) -> R) -> Option<R> {
        self.borrow().map(|mut host| work(&mut host))
    }

    /// The thread's state, for as long as the result lives; `None` as in [`Current::with`]. For work that is to be
    /// compiled into its surroundings.
    #[inline(always)]
    pub fn borrow(self) -> Option<Borrowed> {
        let cell = self.cell();
        if cell.busy.get() {
            count_interrupted();
            return None;
        }
        cell.busy.set(true);
        compiler_fence(Ordering::SeqCst);
        Some(Borrowed { cell: self.cell })
    }

    /// Whether the thread still belongs to the process it belonged to when this was read: not after
    /// a fork in the middle of a call.
    #[inline]
    pub fn is_current(self) -> bool {
        self.cell().generation == wanted().generation.load(Ordering::Relaxed)
    }

    /// The switchboard of its process, if that has not ended.
    #[inline]
    pub fn board(self) -> Option<&'static Arc<Switchboard>> {
        let process = self.cell().process;
        let lasts = self.is_current() && process.ended.load(Ordering::Acquire) == 0;
        lasts.then_some(&process.board)
    }

    /// Calls back `subscribers` about something that happens once. The thread's state may be used meanwhile.
    #[cold]
    pub(crate) fn notify(self, subscribers: SubscriberSet, callback: &CallbackArguments<'_>) {
        if let Some(board) = self.board() {
            let mut user_data = board.new_user_data();
            let ids = ExternalIds::OF_CALL;
            board.notify(self.state(), subscribers, callback, &mut user_data, ids);
        }
    }

    /// The part of the thread's state that other threads share.
    #[inline]
    pub fn state(&self) -> &Arc<ThreadState> {
        &self.cell().state
    }

    #[inline]
    fn cell(&self) -> &ThreadCell {
        // SAFETY: the cell belongs to this thread (`Current` is not Send) and lives until its
        // pthread destructor runs, which is after the thread's last call of ours has returned. A forked
        // child has inherited its memory.
        unsafe { self.cell.as_ref() }
    }
}

/// Counts a record of a signal handler that is lost.
#[cold]
#[inline(never)]
fn count_interrupted() {
    INTERRUPTED.fetch_add(1, Ordering::Relaxed);
}

/// A thread's state, borrowed.
pub struct Borrowed {
    cell: NonNull<ThreadCell>,
}

impl Deref for Borrowed {
    type Target = HostThread;

    #[inline(always)]
    fn deref(&self) -> &HostThread {
        // SAFETY: as in `deref_mut`.
        unsafe { &*self.cell.as_ref().host.get() }
    }
}

impl DerefMut for Borrowed {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut HostThread {
        // SAFETY: only this thread has the cell, which lives as `Current::borrow` says, and `busy` says
        // that nobody else up its stack borrows the state.
        unsafe { &mut *self.cell.as_ref().host.get() }
    }
}

impl Drop for Borrowed {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the cell lives as `Current::borrow` says.
        unsafe { self.cell.as_ref().busy.set(false) };
    }
}

/// Whether the calling thread is in a callback of a call.
pub(crate) fn is_in_callback() -> bool {
    let cell = cell::get();
    // SAFETY: a cell that is set is valid until the thread's destructor unsets it.
    unsafe { cell.as_ref() }.is_some_and(|cell| cell.state.is_in_callback())
}

/// The calling thread leaves the callbacks that it is in, to which it never returns: it ends the process.
pub(crate) fn leave_callbacks() {
    delivering::leave();
    let cell = cell::get();
    // SAFETY: a cell that is set is valid until the thread's destructor unsets it.
    if let Some(cell) = unsafe { cell.as_ref() } {
        // SAFETY: the cell is the calling thread's, which ends the process.
        unsafe {
            match process() {
                Some(process) => process.board.leave_callback(&cell.state),
                None => cell.state.leaves_callback(),
            }
        }
    }
}

/// The calling thread.
#[inline]
pub fn current() -> Option<Current> {
    match NonNull::new(cell::get()).map(|cell| Current { cell }) {
        Some(thread) if thread.is_current() => Some(thread),
        _ => new_cell(),
    }
}

/// Records that the calling thread has spent the time since `start` on our own work.
pub(crate) fn overhead(what: OverheadKind, start: Ticks) {
    let mut overhead = Overhead::blank();
    (overhead.start, overhead.end, overhead.what) = (start, clock::now(), what);
    if board().is_some_and(|board| !board.buffers_for(Kind::OVERHEAD).is_none())
        && let Some(thread) = current()
    {
        thread.with(|host| {
            overhead.thread = host.thread();
            host.write(overhead);
        });
    }
}

/// Records that signal handlers could not write.
pub fn interrupted() -> u64 {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The thread's first recorded call, or the first after a fork.
#[cold]
#[inline(never)]
fn new_cell() -> Option<Current> {
    let process = process()?;
    let id = system::thread_id();
    let is_main = id == std::process::id();
    let id = crate::attributes::thread_id(id);
    let board = &process.board;
    // A signal handler that calls in here while the interrupted thread does would make two cells;
    // signals wait meanwhile.
    with_signals_blocked(|| {
        let Some(host) = HostThread::new(board, ThreadId(id), is_main) else {
            board.count_lost(Kind::API);
            return None;
        };
        match process.given_thread_name(ThreadId(id)) {
            Some(name) => board.names().thread(ThreadId(id), &name),
            None => {
                let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
                board.names().thread(ThreadId(id), name.trim_end());
            }
        }
        let cell = Box::into_raw(Box::new(ThreadCell {
            process,
            generation: process.generation,
            busy: Cell::new(false),
            state: host.state().clone(),
            host: UnsafeCell::new(host),
        }));
        // A cell that a forked thread has inherited stays where it is: its lane lies in memory that is gone.
        cell::set(cell);
        exit_key::set(cell.cast());
        exit::at_end_of_thread();
        NonNull::new(cell).map(|cell| Current { cell })
    })
}

/// The pthread key whose destructor gives a thread's blocks back.
mod exit_key {
    use super::ThreadCell;
    use crate::process::table::wanted;
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The key and 1, or 0 before it is made.
    static KEY: AtomicU64 = AtomicU64::new(0);

    /// Has `cell` given back when the calling thread ends. Where no key can be had, the cell's
    /// block stays in the mapping until the end of the recording.
    pub fn set(cell: *mut c_void) {
        if let Some(key) = key() {
            // SAFETY: the key exists, and is never deleted.
            unsafe { libc::pthread_setspecific(key, cell) };
        }
    }

    /// Threads that make it at the same time do not wait for each other: a forked child may lack the one that is at it.
    fn key() -> Option<libc::pthread_key_t> {
        if let Some(key) = KEY.load(Ordering::Acquire).checked_sub(1) {
            return Some(key as libc::pthread_key_t);
        }
        let mut key = 0;
        // SAFETY: `key` is writable; the destructor is a function of this library, which is
        // never unloaded (it is linked with -z nodelete).
        if unsafe { libc::pthread_key_create(&mut key, Some(thread_ends)) } != 0 {
            return None;
        }
        match KEY.compare_exchange(0, u64::from(key) + 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(key),
            Err(there) => {
                // SAFETY: made just above, and nobody has seen it.
                unsafe { libc::pthread_key_delete(key) };
                Some((there - 1) as libc::pthread_key_t)
            }
        }
    }

    unsafe extern "C" fn thread_ends(cell: *mut c_void) {
        let cell: *mut ThreadCell = cell.cast();
        if super::cell::get() == cell {
            super::cell::set(std::ptr::null_mut());
        }
        // SAFETY: the value was set by `set` from a leaked box that only this thread has, and
        // pthread calls this once for it.
        let cell = unsafe { Box::from_raw(cell) };
        if cell.generation != wanted().generation.load(Ordering::Acquire) {
            // Inherited by fork: its lane lies in memory that this process does not have.
            std::mem::forget(cell);
        }
    }
}
