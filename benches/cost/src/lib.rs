//! The work of a source in a call, and nothing else, as a shared library: so the cost is measured as in programs,
//! including thread-local access through the dynamic loader.

mod tool;

use gputrail_buffer::clock;
use gputrail_capture::Writer;
use gputrail_collect::correlation::Extra;
use gputrail_collect::operations::OperationInfo;
use gputrail_collect::process;
use gputrail_collect::recorder::{Recorder, RecorderOptions};
use gputrail_collect::source::Source;
use gputrail_collect::switchboard::{Observed, Switchboard};
use gputrail_record::ExternalKind;
use gputrail_record::{Domain, ExternalId, Operation, OperationGroup, ProcessId};
use std::ffi::{CStr, OsStr, c_char};
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

const OPERATION: Operation = Operation {
    domain: Domain::SIM,
    number: 1,
};

/// A source with one operation.
struct OneCall;

impl Source for OneCall {
    fn domain(&self) -> Domain {
        Domain::SIM
    }

    fn operations(&self) -> Vec<OperationInfo> {
        vec![OperationInfo {
            operation: OPERATION,
            name: "simCall",
            group: OperationGroup::OTHER,
            arguments: &[],
            keeps_arguments: false,
            observed: Observed::No,
        }]
    }
}

static CAPTURE: OnceLock<Box<Path>> = OnceLock::new();

/// Begins to record this process into a new capture at `path`. Returns whether that worked.
///
/// # Safety
///
/// `path` is a string that ends with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cost_begin(path: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) };
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    CAPTURE.get_or_init(|| path.into());
    let attached = process::attach_with(&OneCall, recorder);
    attached == process::AttachOutcome::Now && process::recorder().is_some()
}

fn recorder(board: &Arc<Switchboard>) -> Option<Recorder> {
    let options = RecorderOptions::default();
    let header = Recorder::file_header(options.ticks, ProcessId(std::process::id()));
    let writer = Writer::create(CAPTURE.get()?, &header).ok()?;
    Recorder::start_on(board, &options, None, writer).ok()
}

/// Makes `count` recorded calls that do nothing, and returns the ticks that took.
#[unsafe(no_mangle)]
pub extern "C" fn cost_calls(count: u64) -> u64 {
    let start = clock::now_ordered();
    for _ in 0..count {
        call();
    }
    clock::now_ordered() - start
}

/// Pushes two external ids, of different kinds, on the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn cost_push_external() {
    if let Some(thread) = process::current() {
        thread.with(|host| {
            host.push_external(ExternalKind::CUSTOM0, ExternalId(1), clock::now());
            host.push_external(ExternalKind::CUSTOM1, ExternalId(2), clock::now());
        });
    }
}

/// Reads the ticks twice, `count` times over, and returns the ticks that took.
#[unsafe(no_mangle)]
pub extern "C" fn cost_tick_pairs(count: u64) -> u64 {
    let start = clock::now_ordered();
    for _ in 0..count {
        tick_pair();
    }
    clock::now_ordered() - start
}

/// Ticks per second.
#[unsafe(no_mangle)]
pub extern "C" fn cost_frequency() -> u64 {
    clock::frequency()
}

/// Writes everything recorded so far, so that no round pays for the one before.
#[unsafe(no_mangle)]
pub extern "C" fn cost_flush() {
    if let Some(recorder) = process::recorder() {
        recorder.flush();
    }
}

/// One call, from enter to exit.
#[inline(never)]
fn call() {
    let interest = process::interest(OPERATION);
    if interest.is_none() {
        return;
    }
    let Some(thread) = process::current() else {
        return;
    };
    let frame = 0_u8;
    let stack_pointer = (&raw const frame) as usize;
    let entered =
        thread.with(|host| host.enter_wanted(OPERATION, interest, stack_pointer, clock::now));
    let Some(entered) = entered else {
        return;
    };
    // Here the runtime would do its work.
    let end = clock::now();
    if thread.is_current() {
        thread.with(|host| host.exit(&entered, end, 0, Extra::NONE));
    }
}

#[inline(never)]
fn tick_pair() {
    black_box(clock::now());
    black_box(clock::now());
}
