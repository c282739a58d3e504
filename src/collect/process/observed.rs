//! The observed process: its switchboard, its recording, and the sources that observe it.

use super::table::wanted;
use crate::recorder::Recorder;
use crate::scope::Gate;
use crate::switchboard::Switchboard;
use gputrail_buffer::platform::function_names;
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_capture::names::Names;
use gputrail_record::{KernelId, KernelSymbol, ThreadId};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// The state that only changes when a process begins. Not wiped by fork.
pub(super) static PROCESS: AtomicPtr<ObservedProcess> = AtomicPtr::new(std::ptr::null_mut());

/// One process. It is never freed: a thread may be using it.
pub(super) struct ObservedProcess {
    pub board: Arc<Switchboard>,
    pub generation: u64,
    pub recorder: OnceLock<Recorder>,
    /// The sources that have attached.
    pub attached: AtomicU32,
    /// 1 once a tool has begun the process.
    pub has_tools: AtomicU32,
    /// The sources that observe it, or have tried to.
    pub observing: AtomicU32,
    pub ended: AtomicU32,
    /// Names that the program has given to threads that have not recorded yet. They go before the names in the system.
    pub given_thread_names: QuietMutex<Vec<(ThreadId, Box<str>)>>,
}

impl ObservedProcess {
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) != 0
    }

    /// Takes the name that the program has given to a thread which now records.
    pub fn given_thread_name(&self, thread: ThreadId) -> Option<Box<str>> {
        let mut names = self.given_thread_names.lock();
        let place = names.iter().position(|(of, _)| *of == thread)?;
        Some(names.swap_remove(place).1)
    }
}

/// The gate of the recording, if names switch it.
pub(crate) fn gate() -> Option<&'static Gate> {
    let gate = recorder()?.gate();
    (!gate.scope().is_everything()).then_some(gate)
}

pub(super) fn inherited() -> Option<&'static ObservedProcess> {
    // SAFETY: null or a leaked box.
    unsafe { PROCESS.load(Ordering::Acquire).as_ref() }
}

/// This process, if it has begun.
pub(super) fn process() -> Option<&'static ObservedProcess> {
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

/// Registers a kernel of `name`, also with that name as C++ writes it, and asks the recording whether it has it.
pub fn add_kernel(names: &Names, name: &str, mut symbol: KernelSymbol) -> KernelId {
    symbol.name = names.string(name);
    let demangled = function_names::demangled(name.as_bytes()).unwrap_or_default();
    if !demangled.is_empty() {
        symbol.demangled = names.string(&demangled);
    }
    let id = names.kernel(symbol);
    if let Some(recorder) = recorder() {
        recorder.kernel_named(id, name, &demangled);
    }
    id
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
    observing() != 0
}

/// The sources that observe this process, as a [set](crate::source::SourceSet).
pub(crate) fn observing() -> u32 {
    process().map_or(0, |process| process.observing.load(Ordering::Acquire))
}
