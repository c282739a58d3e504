//! The users of the library in a process, the program and its tools: who owns an object and is called back, with which data,
//! and under which name messages tell of it.

use core::ffi::c_void;
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_collect::process;
use gputrail_interface::c::ToolHandle;
use std::cell::Cell;

/// The user of the library that an object belongs to: a tool, or the program. Callbacks run as the owner of the object
/// that they belong to; threads of a tool's own count as the program's.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Owner(ToolHandle);

thread_local! {
    /// The owner of the callback that the thread is in, and the [generation](process::generation) of the process that
    /// called back: a forked child has another one, and has left its parent's callbacks.
    static OWNER: Cell<(Owner, u64)> = const { Cell::new((Owner::PROGRAM, NO_PROCESS)) };
}

/// The generation of no process.
const NO_PROCESS: u64 = u64::MAX;

impl Owner {
    /// The program, which has called `gputrail_initialise` itself.
    pub const PROGRAM: Owner = Owner(ToolHandle { handle: 0 });

    pub fn tool(tool: ToolHandle) -> Owner {
        Owner(tool)
    }

    /// The owner of the callback that the thread is in; else the program.
    pub fn current() -> Owner {
        Self::calling().unwrap_or_default()
    }

    /// The owner of the callback that the thread is in.
    pub fn calling() -> Option<Owner> {
        let (owner, of) = OWNER.try_with(Cell::get).ok()?;
        (of == process::generation()).then_some(owner)
    }

    /// Calls a function of this owner's. An exception must not leave it: it would unwind our frames.
    pub fn run<R>(self, function: impl FnOnce() -> R) -> R {
        let now = (self, process::generation());
        let before = OWNER.try_with(|owner| owner.replace(now));
        let unwound = Unwound(self.0);
        let result = function();
        std::mem::forget(unwound);
        if let Ok(before) = before {
            let _ = OWNER.try_with(|owner| owner.set(before));
        }
        result
    }

    /// The calling thread leaves the callbacks that it is in, to which it never returns: it ends the process.
    pub fn leave_callbacks() {
        let none = (Owner::PROGRAM, NO_PROCESS);
        let _ = OWNER.try_with(|owner| owner.set(none));
    }
}

/// The names of the tools of a process in messages.
static LABELS: PerProcess<Vec<(ToolHandle, String)>> = PerProcess::new();

/// Calls `tool` by `label` in messages from now on.
pub(super) fn name(tool: ToolHandle, label: String) {
    let mut labels = LABELS.lock();
    labels.retain(|(of, _)| *of != tool);
    labels.push((tool, label));
}

/// The name of `tool` in messages; the program has no handle.
pub(super) fn label(tool: ToolHandle) -> String {
    let labels = LABELS.lock();
    let found = labels.iter().find(|(of, _)| *of == tool);
    found.map_or_else(|| "the program".into(), |(_, label)| label.clone())
}

/// Dropped when the stack is unwound through a function of this tool's, or of the program's: ends the process. No code of ours
/// can catch an exception of C++, nor stop the end of a thread.
struct Unwound(ToolHandle);

impl Drop for Unwound {
    fn drop(&mut self) {
        let label = label(self.0);
        message(format_args!(
            "{label}: an exception or pthread_exit left a function that gputrail had called, which ends the program"
        ));
        std::process::abort();
    }
}

/// A tool's pointer, which it gets back on other threads.
pub(super) struct ToolPointer(pub *mut c_void);

// SAFETY: the library only hands it back; the data is the tool's, whose documentation names the threads.
unsafe impl Send for ToolPointer {}
// SAFETY: as above.
unsafe impl Sync for ToolPointer {}

impl ToolPointer {
    /// The pointer.
    pub fn get(&self) -> *mut c_void {
        self.0
    }
}
