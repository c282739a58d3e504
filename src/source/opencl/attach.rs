//! The layer's place in the process: when recording begins, and how it ends.
//!
//! It begins when the loader initialises the layer, and again in a forked child at its first call. It ends
//! in a handler of exit, before the runtime's own threads and destructors go: outstanding work gets two
//! seconds to complete, is asked after, and then marked as unfinished. Calls that come later pass through.

use super::completion::{self, OUTSTANDING};
use super::dispatch::{self, FUNCTIONS};
use super::{extensions, objects};
use crate::process::{self, Current};
use crate::record::Domain;
use crate::recorder::Recorder;
use std::sync::Once;
use std::time::{Duration, Instant};

/// How long outstanding work may take to complete when the program ends.
const PATIENCE: Duration = Duration::from_secs(2);

/// The calling thread, if its calls are recorded.
#[inline(always)]
pub(super) fn thread() -> Option<Current> {
    process::current(Domain::OPENCL)
}

/// The recording, if there is one now.
pub(super) fn recorder() -> Option<&'static Recorder> {
    process::recorder()
}

/// Begins to record this process, if its environment asks for it.
pub(super) fn start() {
    static EXIT: Once = Once::new();
    if process::attach(&[Domain::OPENCL], begin) {
        EXIT.call_once(|| {
            // SAFETY: a function of this library, which is never unloaded. What was registered later
            // runs earlier: the handlers of libraries that the program loaded after this one.
            unsafe { libc::atexit(at_exit) };
        });
    }
}

/// A recorder for this process, which may be a forked child.
fn begin() -> Option<Recorder> {
    let recorder = match crate::session::begin() {
        Ok(recorder) => recorder?,
        Err(error) => {
            eprintln!("gputrail: {error}");
            return None;
        }
    };
    prepare(&recorder)?;
    Some(recorder)
}

/// Forgets what a parent process knew, and names the operations.
fn prepare(recorder: &Recorder) -> Option<()> {
    objects::forget_all();
    OUTSTANDING
        .open()
        .inspect_err(|error| eprintln!("gputrail: not recorded: {error}"))
        .ok()?;
    let core = FUNCTIONS
        .iter()
        .enumerate()
        .map(|(number, function)| (number as u16, function));
    recorder.names().together(|names| {
        for (number, function) in core.chain(extensions::functions()) {
            let arguments = if function.annotated() {
                function.signature()
            } else {
                String::new()
            };
            names.operation(
                dispatch::operation(number),
                function.name,
                &arguments,
                function.group,
            );
        }
    });
    Some(())
}

/// The program ends through exit, or by returning from main.
extern "C" fn at_exit() {
    // A forked child that made no calls has no recording.
    if recorder().is_none() {
        return;
    }
    if let Some(thread) = thread() {
        let deadline = Instant::now() + PATIENCE;
        loop {
            completion::sweep(thread);
            if OUTSTANDING.len() == 0 || Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        completion::abandon(thread);
    }
    if let Some(recorder) = process::end() {
        // What went wrong with the capture stands in the mapping, where the parent reads it.
        let _ = recorder.finish();
    }
}
