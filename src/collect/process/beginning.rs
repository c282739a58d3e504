//! The beginning of a process, and the sources that attach to it.
//!
//! One thread at a time begins the process, under the lock of the process. A source whose thread does not get the lock is
//! attached by the thread that has it.

use super::observed::{ObservedProcess, PROCESS, board, inherited, process};
use super::table::{OFF, WANTED, wanted};
use super::thread::overhead;
use crate::exit;
use crate::recorder::Recorder;
use crate::source::{self, Source, SourceSet};
use crate::switchboard::{Switchboard, WantedTable};
use gputrail_buffer::clock;
use gputrail_buffer::platform::inside::{Uncancelled, message};
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_buffer::platform::system;
use gputrail_record::{NoteKind, OverheadKind};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The process and thread that is beginning one, `process << 32 | thread`, or 0.
static BEGINNING: AtomicU64 = AtomicU64::new(0);
/// The sources that are to attach: whoever has the lock of the process attaches them before it goes on.
static ARRIVED: AtomicU32 = AtomicU32::new(0);
/// The function that begins the recording of a process, which forked children call too. Null stands for
/// [`session::begin`](crate::session::begin), the recording that the environment asks for.
static BEGIN_RECORDING: AtomicPtr<BeginRecording> = AtomicPtr::new(std::ptr::null_mut());

/// Begins the recording of a process, whose records come by way of the switchboard; `None` if it is not recorded.
pub type BeginRecording = fn(&Arc<Switchboard>) -> Option<Recorder>;

/// The switchboard of this process, which begins with it where it has not. `None` where the system refuses the
/// memory, after the end, or from within a signal handler that interrupted this.
pub fn begin() -> Option<&'static Arc<Switchboard>> {
    if process().is_none() {
        alone(patience::ENDLESS, begin_locked)?;
    }
    board()
}

/// Begins the process for a tool: sources that are attached, or will be, observe from now on.
pub fn begin_for_tool() -> Option<&'static Arc<Switchboard>> {
    let is_there = |process: &ObservedProcess| process.has_tools.load(Ordering::Acquire) != 0;
    if !process().is_some_and(is_there) {
        alone(patience::ENDLESS, || {
            begin_locked();
            if let Some(process) = process() {
                process.has_tools.store(1, Ordering::Release);
                observe_locked(process);
            }
        })?;
    }
    board()
}

/// How long to wait for another thread that has the lock of the process.
mod patience {
    use super::Duration;

    /// Not at all: the caller is in a call of the program, which then passes through.
    pub const NONE: Duration = Duration::ZERO;
    /// The other thread may itself wait for a lock of the caller's, such as the dynamic linker's.
    pub const SOME: Duration = Duration::from_secs(1);
    /// Until the other thread has given the lock back.
    pub const ENDLESS: Duration = Duration::MAX;
}

/// The lock of the process, held by this thread.
struct ProcessLock {
    _uncancelled: Uncancelled,
}

impl ProcessLock {
    /// `None`: this thread has it further up its stack, being in a signal handler, or another one has it and does not give
    /// it back in time.
    fn take(patience: Duration) -> Option<ProcessLock> {
        let _uncancelled = Uncancelled::begin();
        let process = u64::from(std::process::id());
        let me = process << 32 | u64::from(system::thread_id());
        let mut since = None;
        loop {
            let holder = BEGINNING.load(Ordering::SeqCst);
            // A child may have inherited the lock from a thread that it does not have. The lock then names another
            // process, and is free.
            if holder >> 32 == process {
                let waited = since.get_or_insert_with(Instant::now).elapsed();
                if holder == me || waited >= patience {
                    return None;
                }
                std::thread::sleep(Duration::from_micros(100));
            } else if BEGINNING
                .compare_exchange(holder, me, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
            {
                return Some(ProcessLock { _uncancelled });
            }
        }
    }
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        BEGINNING.store(0, Ordering::SeqCst);
    }
}

/// Does `work` under the lock of the process, and attaches the sources that arrive meanwhile. `None` as for
/// [`ProcessLock::take`].
fn alone<R>(patience: Duration, work: impl FnOnce() -> R) -> Option<R> {
    let lock = ProcessLock::take(patience)?;
    let result = work();
    drop(lock);
    // A source arrives before its thread looks at the lock, so that either the thread finds the lock free, or it is seen
    // here.
    while ARRIVED.load(Ordering::SeqCst) != 0
        && let Some(_lock) = ProcessLock::take(patience::NONE)
    {
        attach_arrived_locked();
    }
    Some(result)
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

/// The outcome of a request to attach a source.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AttachOutcome {
    /// The source has attached.
    Now,
    /// The source had attached before, or the process has ended.
    Before,
    /// Another thread attaches it, and has not done so yet.
    Later,
}

/// Lets `source` observe this process and its forked children, as soon as they are recorded or have a tool. The first
/// source begins the recording that the environment asks for.
///
/// Tools that the environment names are loaded behind it.
pub fn attach(source: &'static dyn Source) -> AttachOutcome {
    let attached = attach_before_tools(source);
    load_tools();
    attached
}

/// [Attaches](attach) `source`, which has something to say before tools are loaded by [`load_tools`]: of its agents, say.
pub fn attach_before_tools(source: &'static dyn Source) -> AttachOutcome {
    // Sources may attach from several threads at once.
    attach_all(patience::SOME, source::add(source))
}

/// Loads the tools that the environment names, once a source has attached.
pub fn load_tools() {
    exit::begin();
}

/// Attaches the `sources` of the parent in a forked child, unless another thread is at it.
pub(super) fn attach_again(sources: SourceSet) -> bool {
    attach_all(patience::NONE, sources) == AttachOutcome::Now
}

/// [Attaches](attach) `source` with a recording of the caller's own, if no source has attached yet: for programs that
/// have the source inside.
pub fn attach_with(source: &'static dyn Source, begin: BeginRecording) -> AttachOutcome {
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

fn attach_all(patience: Duration, sources: SourceSet) -> AttachOutcome {
    ARRIVED.fetch_or(sources, Ordering::SeqCst);
    match alone(patience, attach_arrived_locked) {
        Some(attached) if attached & sources != 0 => AttachOutcome::Now,
        Some(_) => AttachOutcome::Before,
        None => AttachOutcome::Later,
    }
}

/// Attaches the sources that have arrived, and returns those that had not attached before.
fn attach_arrived_locked() -> SourceSet {
    begin_locked();
    let sources = ARRIVED.swap(0, Ordering::SeqCst);
    process().map_or(0, |process| attach_locked(process, sources))
}

fn attach_locked(process: &ObservedProcess, sources: SourceSet) -> SourceSet {
    // Not again at every call, whatever comes of it.
    let before = process.attached.fetch_or(sources, Ordering::AcqRel);
    let new = sources & !before;
    if new == 0 || process.has_ended() {
        return 0;
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
    new
}

fn begin_recording(board: &Arc<Switchboard>) -> Option<Recorder> {
    // SAFETY: null or a leaked box.
    if let Some(begin) = unsafe { BEGIN_RECORDING.load(Ordering::Acquire).as_ref() } {
        return begin(board);
    }
    #[cfg(target_os = "linux")]
    // An error leaves tools as they are.
    return crate::session::begin(board).unwrap_or_else(|error| {
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
            let text = format!("{name} is not observed: {error}");
            names.note(NoteKind::MISSING, &text);
            message(format_args!("{text}"));
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
fn process_table() -> Option<&'static WantedTable> {
    if !std::ptr::eq(wanted(), &OFF) {
        return Some(wanted());
    }
    let bytes = size_of::<WantedTable>();
    let start = system::wiped_in_children(bytes)?;
    // SAFETY: mapped for ever, page aligned, and all zeros are a valid `WantedTable`.
    Some(unsafe { &*start.cast() })
}
