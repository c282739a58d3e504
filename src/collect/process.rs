//! The observed process: its sources, its switchboard and recording, and the state of its threads.
//!
//! A [source] [`attach`]es when its runtime is first used. The first one begins the recording that the environment asks
//! for; sources observe from the moment on at which there is a recording or a tool ([`begin_for_tool`]). Until then a
//! call passes through, at the cost of one look at the table.
//!
//! The table of who wants what lies in memory that the kernel wipes in forked children. A child's first call finds the
//! table wiped, and the child begins anew, with a switchboard, a pool, names and capture of its own and the sources of
//! its parent. It never touches again what it inherited.
//!
//! A thread's cell has no destructor of Rust's; a pthread key gives its blocks back. A call that
//! comes after that makes a new cell.

use crate::capture::names::Names;
use crate::clock;
use crate::collect::correlation::HostThread;
use crate::collect::exit;
use crate::collect::recorder::Recorder;
use crate::collect::scope::{Due, Gate};
use crate::collect::session_switch;
use crate::collect::source::{self, Source, SourceSet};
use crate::collect::switchboard::{
    Buffers, Callback, ExternalIds, Interest, SubscriberSet, Switchboard, ThreadState, Wanted,
};
use crate::platform::inside::{Uncancelled, message};
use crate::platform::sync::{QuietMutex, with_signals_blocked};
use crate::platform::system;
use crate::record::{Kind, Operation, Overhead, OverheadKind, ThreadId, Ticks};
use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence};
use std::sync::{Arc, OnceLock};

static OFF: Wanted = Wanted::new();

/// The process's table of who wants what, in memory that the kernel wipes in forked children; [`OFF`] before there is
/// one.
static WANTED: AtomicPtr<Wanted> = AtomicPtr::new((&raw const OFF).cast_mut());

/// The state that only changes when a process begins. Not wiped by fork.
static PROCESS: AtomicPtr<ObservedProcess> = AtomicPtr::new(std::ptr::null_mut());
/// The process and thread that is beginning one, `process << 32 | thread`, or 0.
static BEGINNING: AtomicU64 = AtomicU64::new(0);
/// The function that begins the recording of a process, which forked children call too. Null stands for
/// [`session::begin`](super::session::begin), the recording that the environment asks for.
static BEGIN_RECORDING: AtomicPtr<BeginRecording> = AtomicPtr::new(std::ptr::null_mut());
/// Calls seen after the recording had ended.
static LATE_CALLS: AtomicU64 = AtomicU64::new(0);
/// Records that a signal handler could not write, because it had interrupted a write.
static INTERRUPTED: AtomicU64 = AtomicU64::new(0);

/// One process. It is never freed: a thread may be using it.
struct ObservedProcess {
    board: Arc<Switchboard>,
    generation: u64,
    recorder: OnceLock<Recorder>,
    /// The sources that have attached.
    attached: AtomicU32,
    /// 1 once a tool has begun the process.
    has_tools: AtomicU32,
    /// The sources that observe it, or have tried to.
    observing: AtomicU32,
    ended: AtomicU32,
    /// Names that the program has given to threads that have not recorded yet. They go before the names in the system.
    given_thread_names: QuietMutex<Vec<(ThreadId, Box<str>)>>,
}

impl ObservedProcess {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) != 0
    }

    /// Takes the name that the program has given to a thread which now records.
    fn given_thread_name(&self, thread: ThreadId) -> Option<Box<str>> {
        let mut names = self.given_thread_names.lock();
        let place = names.iter().position(|(of, _)| *of == thread)?;
        Some(names.swap_remove(place).1)
    }
}

/// Begins the recording of a process, whose records come by way of the switchboard; `None` if it is not recorded.
pub type BeginRecording = fn(&Arc<Switchboard>) -> Option<Recorder>;

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
/// A variable of the initial-exec model: an access is two loads. Stable Rust cannot choose the model for
/// `thread_local!`, which calls `__tls_get_addr` in a library: 1.6 ns more an access, which leaves no margin to the
/// limit of a recorded call (two tick reads + 9 ns; in one run + 13.8 ns with it, + 10.0 ns with this variable and a
/// longer exit).
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

    #[inline(always)]
    pub fn get() -> *mut ThreadCell {
        let cell;
        // SAFETY: loads the calling thread's word, which `set` alone stores, and touches nothing else.
        unsafe {
            std::arch::asm!(
                "mov {cell}, qword ptr [rip + gputrail_thread_cell@GOTTPOFF]",
                "mov {cell}, qword ptr fs:[{cell}]",
                cell = out(reg) cell,
                options(nostack, preserves_flags, readonly),
            );
        }
        cell
    }

    pub fn set(cell: *mut ThreadCell) {
        // SAFETY: stores to the calling thread's word, which is for this, and touches nothing else.
        unsafe {
            std::arch::asm!(
                "mov {place}, qword ptr [rip + gputrail_thread_cell@GOTTPOFF]",
                "mov qword ptr fs:[{place}], {cell}",
                place = out(reg) _,
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
    pub(crate) fn borrow(self) -> Option<Borrowed> {
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
    pub(crate) fn board(self) -> Option<&'static Arc<Switchboard>> {
        let process = self.cell().process;
        let lasts = self.is_current() && process.ended.load(Ordering::Acquire) == 0;
        lasts.then_some(&process.board)
    }

    /// Calls back `subscribers` about something that happens once. The thread's state may be used meanwhile.
    #[cold]
    pub(crate) fn notify(self, subscribers: SubscriberSet, callback: &Callback<'_>) {
        if let Some(board) = self.board() {
            let mut user_data = board.new_user_data();
            let ids = ExternalIds::OF_CALL;
            board.notify(self.state(), subscribers, callback, &mut user_data, ids);
        }
    }

    /// The part of the thread's state that other threads share.
    #[inline]
    pub(crate) fn state(&self) -> &Arc<ThreadState> {
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
pub(crate) struct Borrowed {
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

#[inline]
fn wanted() -> &'static Wanted {
    // SAFETY: points to `OFF` or to memory that is never unmapped.
    unsafe { &*WANTED.load(Ordering::Acquire) }
}

/// The consumers of calls of `operation` in this process. Without any, the call passes through.
#[inline]
pub fn interest(operation: Operation) -> Interest {
    let wanted = wanted();
    let interest = wanted.operation(operation);
    if interest.is_none_or_late() {
        return not_wanted(wanted, operation, interest);
    }
    match session_switch::has_moved() {
        true => follow_switch(operation),
        false => interest,
    }
}

#[inline]
fn not_wanted(wanted: &Wanted, operation: Operation, interest: Interest) -> Interest {
    if interest.is_late() {
        LATE_CALLS.fetch_add(1, Ordering::Relaxed);
    } else if wanted.generation.load(Ordering::Relaxed) == 0 {
        return new_process(operation);
    } else if session_switch::has_moved() {
        return follow_switch(operation);
    }
    Interest::NONE
}

/// The session was switched: the recording follows before this call is looked at.
#[cold]
#[inline(never)]
fn follow_switch(operation: Operation) -> Interest {
    // Without a recorder the process is at its beginning or end.
    if let Some(recorder) = recorder() {
        let _uncancelled = Uncancelled::begin();
        recorder.gate().follow_session();
    }
    wanted().operation(operation)
}

/// Before the process has begun, or in a forked child, which attaches at its first call.
#[cold]
#[inline(never)]
fn new_process(operation: Operation) -> Interest {
    // The parent's, in a child that has inherited it.
    let Some(parent) = inherited() else {
        return Interest::NONE;
    };
    let sources = parent.attached.load(Ordering::Acquire);
    if sources == 0 {
        return Interest::NONE;
    }
    if parent.has_ended() {
        LATE_CALLS.fetch_add(1, Ordering::Relaxed);
        return Interest::NONE;
    }
    match attach_all(Patience::None, || sources) {
        true => wanted().operation(operation),
        false => Interest::NONE,
    }
}

/// A call of `operation` comes to the gate of the recording. Returns its consumers then, and what is due with it
/// ([`flush_due`]).
#[cold]
#[inline(never)]
pub(crate) fn pass_gate(operation: Operation) -> (Interest, Due) {
    let due = gate().map_or_else(Due::default, |gate| gate.pass(operation));
    (wanted().operation(operation).without_gate(), due)
}

/// Ends the recording or has it dumped, as its gate has found due.
#[cold]
pub(crate) fn flush_due(due: Due) {
    let Some(recorder) = recorder() else {
        return;
    };
    let _uncancelled = Uncancelled::begin();
    if due.dump {
        // A recording that keeps everything has nothing to dump.
        recorder.dump();
    }
    if due.close {
        recorder.gate().close();
    }
}

/// The gate of the recording, if names switch it.
pub(crate) fn gate() -> Option<&'static Gate> {
    let gate = recorder()?.gate();
    (!gate.scope().is_everything()).then_some(gate)
}

/// Whether the calling thread is in a callback of a call.
pub(crate) fn is_in_callback() -> bool {
    let cell = cell::get();
    // SAFETY: a cell that is set is valid until the thread's destructor unsets it.
    unsafe { cell.as_ref() }.is_some_and(|cell| cell.state.is_in_callback())
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

/// The buffers that want records of `kind` in this process.
#[inline]
pub(crate) fn buffers_for(kind: Kind) -> Buffers {
    wanted().kind(kind)
}

/// A number that differs between a process and its forked children; 0 in one that has not begun.
#[inline]
pub(crate) fn generation() -> u64 {
    wanted().generation.load(Ordering::Relaxed)
}

/// The calling thread.
#[inline]
pub fn current() -> Option<Current> {
    match NonNull::new(cell::get()).map(|cell| Current { cell }) {
        Some(thread) if thread.is_current() => Some(thread),
        _ => new_cell(),
    }
}

fn inherited() -> Option<&'static ObservedProcess> {
    // SAFETY: null or a leaked box.
    unsafe { PROCESS.load(Ordering::Acquire).as_ref() }
}

/// This process, if it has begun.
fn process() -> Option<&'static ObservedProcess> {
    inherited().filter(|process| process.generation == wanted().generation.load(Ordering::Acquire))
}

/// The switchboard of this process, if it has begun and has not ended.
pub fn board() -> Option<&'static Arc<Switchboard>> {
    process()
        .filter(|process| !process.has_ended())
        .map(|process| &process.board)
}

/// Keeps the name of a thread until the thread records, unless too many threads have such names.
pub(crate) fn give_thread_name(thread: ThreadId, name: &str) {
    const MAX_NAMES: usize = 4096;
    if let Some(process) = process() {
        let mut names = process.given_thread_names.lock();
        names.retain(|(of, _)| *of != thread);
        if names.len() < MAX_NAMES {
            names.push((thread, name.into()));
        }
    }
}

/// The names store of this process, if it has begun and has not ended.
pub fn names() -> Option<&'static Names> {
    board().map(|board| board.names())
}

/// The switchboard of this process, which begins with it where it has not. `None` where the system refuses the
/// memory, after the end, or from within a signal handler that interrupted this.
pub fn begin() -> Option<&'static Arc<Switchboard>> {
    if process().is_none() {
        alone(Patience::Waits, begin_locked)?;
    }
    board()
}

/// Begins the process for a tool: sources that are attached, or will be, observe from now on.
pub fn begin_for_tool() -> Option<&'static Arc<Switchboard>> {
    let is_there = |process: &ObservedProcess| process.has_tools.load(Ordering::Acquire) != 0;
    if !process().is_some_and(is_there) {
        alone(Patience::Waits, || {
            begin_locked();
            if let Some(process) = process() {
                process.has_tools.store(1, Ordering::Release);
                observe_locked(process);
            }
        })?;
    }
    board()
}

/// Whether to wait while another thread begins the process.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Patience {
    /// Do not wait: the caller is in a call of the program, which then passes through.
    None,
    /// Wait for about 100 ms: the other thread may itself wait for a lock of the caller's, such as the dynamic linker's.
    Briefly,
    /// Wait until it has begun.
    Waits,
}

/// Does `work` under the lock of the process. `None`: this thread holds it further up its stack, being in a signal
/// handler, or another one does and `patience` says not to wait.
fn alone<R>(patience: Patience, work: impl FnOnce() -> R) -> Option<R> {
    // A child may have inherited the lock from a thread that it does not have. The lock then names another process, and
    // is free.
    let _uncancelled = Uncancelled::begin();
    let process = u64::from(std::process::id());
    let me = process << 32 | u64::from(system::thread_id());
    let mut waits = 0;
    loop {
        let holder = BEGINNING.load(Ordering::Acquire);
        if holder == me {
            return None;
        }
        if holder >> 32 == process {
            match patience {
                Patience::None => return None,
                Patience::Briefly if waits == 1000 => return None,
                Patience::Briefly => {
                    waits += 1;
                    std::thread::sleep(std::time::Duration::from_micros(100));
                }
                Patience::Waits => std::thread::yield_now(),
            }
        } else if BEGINNING
            .compare_exchange(holder, me, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            break;
        }
    }
    /// Releases the lock, also after a panic.
    struct Release;
    impl Drop for Release {
        fn drop(&mut self) {
            BEGINNING.store(0, Ordering::Release);
        }
    }
    let _release = Release;
    Some(work())
}

fn begin_locked() {
    if process().is_some() {
        return;
    }
    let Some(page) = process_table() else {
        return;
    };
    let parent = inherited();
    let generation = parent.map_or(0, |parent| parent.generation) + 1;
    let new = Box::leak(Box::new(ObservedProcess {
        board: Switchboard::of_process(page),
        generation,
        recorder: OnceLock::new(),
        attached: AtomicU32::new(0),
        has_tools: AtomicU32::new(0),
        observing: AtomicU32::new(0),
        ended: AtomicU32::new(0),
        given_thread_names: QuietMutex::default(),
    }));
    PROCESS.store(new, Ordering::Release);
    page.generation.store(generation, Ordering::Release);
    WANTED.store(std::ptr::from_ref(page).cast_mut(), Ordering::Release);
}

/// Lets `source` observe this process and its forked children, as soon as they are recorded or have a tool. The first
/// source begins the recording that the environment asks for. `false` if it has attached before.
///
/// Tools that the environment names are loaded behind it.
pub fn attach(source: &'static dyn Source) -> bool {
    // Sources may attach from several threads at once.
    let attached = attach_all(Patience::Briefly, || source::add(source));
    exit::begin();
    attached
}

/// [Attaches](attach) `source` with a recording of the caller's own, if no source has attached yet: for programs that
/// have the source inside.
pub fn attach_with(source: &'static dyn Source, begin: BeginRecording) -> bool {
    let begin = Box::into_raw(Box::new(begin));
    let first = BEGIN_RECORDING.compare_exchange(
        std::ptr::null_mut(),
        begin,
        Ordering::AcqRel,
        Ordering::Relaxed,
    );
    if first.is_err() {
        // SAFETY: made just above, and not shared.
        drop(unsafe { Box::from_raw(begin) });
    }
    attach(source)
}

/// Attaches the sources that `sources` gives under the lock of the process. `false` if all of them have attached
/// before.
fn attach_all(patience: Patience, sources: impl FnOnce() -> SourceSet) -> bool {
    alone(patience, || {
        begin_locked();
        let sources = sources();
        process().is_some_and(|process| attach_locked(process, sources))
    })
    .unwrap_or(false)
}

fn attach_locked(process: &ObservedProcess, sources: SourceSet) -> bool {
    // Not again at every call, whatever comes of it.
    let before = process.attached.fetch_or(sources, Ordering::AcqRel);
    if sources & !before == 0 || process.has_ended() {
        return false;
    }
    let start = clock::now();
    // Nothing is recorded before all that begins has its names.
    process.board.names().batch(0, |_| {
        if before == 0
            && let Some(recorder) = begin_recording(&process.board)
        {
            // Without this a child would write into its parent's blocks; the wiped table keeps it away from them too,
            // so a kernel without it is no reason not to record.
            let _ = recorder.buffer().mapping().keep_from_children();
            let _ = process.recorder.set(recorder);
        }
        observe_locked(process);
    });
    if let Some(recorder) = process.recorder.get() {
        recorder.open_gate();
        overhead(OverheadKind::INSTRUMENTATION, start);
    }
    true
}

fn begin_recording(board: &Arc<Switchboard>) -> Option<Recorder> {
    // SAFETY: null or a leaked box.
    if let Some(begin) = unsafe { BEGIN_RECORDING.load(Ordering::Acquire).as_ref() } {
        return begin(board);
    }
    #[cfg(target_os = "linux")]
    // An error leaves tools as they are.
    return super::session::begin(board).unwrap_or_else(|error| {
        message(format_args!("{error}"));
        None
    });
    #[cfg(not(target_os = "linux"))]
    None
}

/// Has the attached sources observe, if a recording or a tool is there to take what they see.
fn observe_locked(process: &ObservedProcess) {
    let is_wanted =
        process.recorder.get().is_some() || process.has_tools.load(Ordering::Acquire) != 0;
    if !is_wanted {
        return;
    }
    let attached = process.attached.load(Ordering::Acquire);
    let before = process.observing.fetch_or(attached, Ordering::AcqRel);
    let (board, names) = (&process.board, process.board.names());
    for (_, source) in source::of(attached & !before) {
        if let Err(error) = source.begin(board) {
            let name = source.domain().name().unwrap_or_default();
            message(format_args!("{name} is not observed: {error}"));
            continue;
        }
        let operations = source.operations();
        let named = operations.iter();
        names.operations(
            named.map(|info| (info.operation, info.name, info.signature(), info.group)),
        );
        board.on_flush(|flush| source.flush(flush));
        board.observe(&operations);
    }
}

/// The memory of the table: the inherited one, wiped, or new.
fn process_table() -> Option<&'static Wanted> {
    if !std::ptr::eq(wanted(), &OFF) {
        return Some(wanted());
    }
    let bytes = size_of::<Wanted>();
    let start = system::wiped_in_children(bytes)?;
    // SAFETY: mapped for ever, page aligned, and all zeros are a valid `Wanted`.
    Some(unsafe { &*start.cast() })
}

/// The recorder of this process, if it is recorded now.
pub fn recorder() -> Option<&'static Recorder> {
    let process = process()?;
    let recorder = process.recorder.get()?;
    (!process.has_ended()).then_some(recorder)
}

/// Stops everything: calls pass through from now on. Returns the recorder, to finish it, to the first who asks; never
/// to a forked child that has not attached.
pub fn end() -> Option<&'static Recorder> {
    let process = process()?;
    if process.ended.swap(1, Ordering::AcqRel) != 0 {
        return None;
    }
    process.board.end();
    process.recorder.get()
}

/// Whether a source observes this process.
pub fn is_observed() -> bool {
    observing().next().is_some()
}

/// The sources that observe this process.
pub(super) fn observing() -> impl Iterator<Item = &'static dyn Source> {
    let observing = process().map_or(0, |process| process.observing.load(Ordering::Acquire));
    source::of(observing).map(|(_, source)| source)
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
    let process = process()?;
    let id = system::thread_id();
    let is_main = id == std::process::id();
    let id = crate::collect::attributes::thread_id(id);
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
    use super::{ThreadCell, wanted};
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
