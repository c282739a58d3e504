//! The layer's place in the process: when recording begins, and how it ends.
//!
//! It begins when the loader initialises the layer, and again in a forked child at its first call. Where the
//! environment asks for no recording, the layer waits for a tool, and calls pass through until there is one. It ends
//! in a handler of exit, before the runtime's own threads and destructors go: outstanding work gets two
//! seconds to complete, is asked after, and then marked as unfinished. Calls that come later pass through.

use super::completion::{self, OUTSTANDING};
use super::dispatch;
use super::functions::{self, Description};
use super::{objects, sampling};
use crate::capture::names::Names;
use crate::collect::operations::OperationInfo;
use crate::collect::process::{self, Source};
use crate::collect::recorder::Recorder;
use crate::collect::switchboard::{Observed, Switchboard};
use crate::record::Operation;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

/// How long outstanding work may take to complete when the program ends.
const PATIENCE: Duration = Duration::from_secs(2);

/// The names store of this process.
pub(super) fn names() -> Option<&'static Names> {
    process::board().map(|board| board.names())
}

/// Begins to record this process, if its environment asks for it, and to observe it for its tools.
pub(super) fn start() {
    static EXIT: Once = Once::new();
    let source = Source {
        operations,
        begin,
        prepare,
    };
    if process::attach(source) {
        EXIT.call_once(|| {
            // SAFETY: a function of this library, which is never unloaded. What was registered later
            // runs earlier: the handlers of libraries that the program loaded after this one.
            unsafe { libc::atexit(at_exit) };
        });
    }
    #[cfg(feature = "capi")]
    crate::tool::c::load_tools();
}

/// Begins the recording that the environment asks for. What hinders it, hinders no tool.
fn begin(board: &Arc<Switchboard>) -> Option<Recorder> {
    crate::collect::session::begin(board).unwrap_or_else(|error| {
        eprintln!("gputrail: {error}");
        None
    })
}

/// What the layer does with each of its operations.
fn operations() -> Vec<(Operation, Observed)> {
    let numbered =
        |(number, function): (u16, &Description)| (functions::operation(number), function.observed);
    functions::functions().map(numbered).collect()
}

/// Forgets what a parent process knew, and names the operations.
fn prepare(board: &Switchboard) -> bool {
    let names = board.names();
    objects::forget_all();
    sampling::begin();
    if let Err(error) = OUTSTANDING.open() {
        eprintln!("gputrail: OpenCL is not observed: {error}");
        return false;
    }
    board.on_flush(completion::flush);
    names.operations(functions::functions().map(|(number, function)| {
        let arguments = if function.annotated() {
            OperationInfo::signature(function.arguments)
        } else {
            String::new()
        };
        let operation = functions::operation(number);
        (operation, function.name, arguments, function.group)
    }));
    true
}

/// The program ends through exit, or by returning from main.
extern "C" fn at_exit() {
    dispatch::contained(finish);
}

fn finish() {
    // A forked child that made no calls has no recording.
    if process::board().is_none() {
        return;
    }
    // What is outstanding in a child that is not observed is its parent's.
    if process::is_observed()
        && let Some(thread) = process::current()
    {
        let deadline = Instant::now() + PATIENCE;
        loop {
            completion::sweep(thread);
            if OUTSTANDING.len() == 0 || Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        sampling::finish();
        completion::abandon(thread);
    }
    #[cfg(feature = "capi")]
    crate::tool::c::finalise_tools();
    if let Some(recorder) = process::end() {
        // What went wrong with the capture stands in the mapping, where the parent reads it.
        let _ = recorder.finish();
    }
}
