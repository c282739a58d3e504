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
//! `beginning` begins a process and attaches sources to it; `thread` has the state of each of its threads.

mod beginning;
mod thread;

pub use beginning::{
    Attached, BeginRecording, attach, attach_before_tools, attach_with, begin, begin_for_tool,
    load_tools,
};
pub use thread::Borrowed;
pub use thread::{Current, current, interrupted};
pub(crate) use thread::{is_in_callback, leave_callbacks};

use crate::recorder::Recorder;
use crate::scope::{Due, Gate};
use crate::session_switch;
use crate::source::{self, Source};
use crate::switchboard::{Buffers, Interest, Switchboard, Wanted};
use gputrail_buffer::clock;
use gputrail_buffer::platform::inside::{Uncancelled, defer_cancellation};
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_capture::names::Names;
use gputrail_record::{Kind, Operation, Overhead, OverheadKind, ThreadId, Ticks};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

static OFF: Wanted = Wanted::new();

/// The process's table of who wants what, in memory that the kernel wipes in forked children; [`OFF`] before there is
/// one.
static WANTED: AtomicPtr<Wanted> = AtomicPtr::new((&raw const OFF).cast_mut());

/// The state that only changes when a process begins. Not wiped by fork.
static PROCESS: AtomicPtr<ObservedProcess> = AtomicPtr::new(std::ptr::null_mut());
/// Calls seen after the recording had ended.
static LATE_CALLS: AtomicU64 = AtomicU64::new(0);

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
    if session_switch::has_moved() {
        follow_switch(operation)
    } else {
        interest
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
    uncancelled_at_any_instruction(follow_session, operation)
}

/// Does `work`, which is not to be unwound where it cannot be. A pointer to a function has no destructor (see
/// [`Wanted::operation`]).
#[inline(always)]
fn uncancelled_at_any_instruction(
    work: fn(Operation) -> Interest,
    operation: Operation,
) -> Interest {
    let cancel_type = defer_cancellation();
    let interest = work(operation);
    cancel_type.restore();
    interest
}

#[inline(never)]
fn follow_session(operation: Operation) -> Interest {
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
    uncancelled_at_any_instruction(begin_again, operation)
}

#[inline(never)]
fn begin_again(operation: Operation) -> Interest {
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
    if beginning::attach_again(sources) {
        wanted().operation(operation)
    } else {
        Interest::NONE
    }
}

/// A call of `operation` comes to the gate of the recording. Returns its consumers then, and what is due with it
/// ([`flush_due`]).
#[cold]
#[inline(never)]
pub fn pass_gate(operation: Operation) -> (Interest, Due) {
    let due = gate().map_or_else(Due::default, |gate| gate.pass(operation));
    (wanted().operation(operation).without_gate(), due)
}

/// Ends the recording or has it dumped, as its gate has found due.
#[cold]
pub fn flush_due(due: Due) {
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
pub fn generation() -> u64 {
    wanted().generation.load(Ordering::Relaxed)
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
pub fn give_thread_name(thread: ThreadId, name: &str) {
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
