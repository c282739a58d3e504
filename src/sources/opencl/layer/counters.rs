//! Counters of devices whose kernels run on threads of the program: PoCL's processors. Offers them to the counter
//! collection service. Panics are contained here and do not affect the layer.

use super::callers;
use super::contained::contained;
use super::device::ClDevice;
use super::ffi::*;
use crate::perf::HostCounters;
use gputrail_buffer::platform::inside::message;
use gputrail_collect::counting::CountingError;
use gputrail_collect::process;
use gputrail_record::{AgentId, NoteKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The counters of this process. Never freed, since a thread may be using them.
static COUNTERS: AtomicPtr<Arc<HostCounters>> = AtomicPtr::new(std::ptr::null_mut());
/// Whether work may wait for the program itself: it has user events, native kernels or fine-grained shared memory.
static WAITS_FOR_PROGRAM: AtomicBool = AtomicBool::new(false);

/// Creates the counters when the process begins, also in a forked child.
pub(super) fn begin() {
    let new = Box::leak(Box::new(Arc::new(HostCounters::new())));
    COUNTERS.store(new, Ordering::Release);
}

/// The counters of this process, once it has begun.
pub(super) fn of_process() -> Option<&'static Arc<HostCounters>> {
    // SAFETY: null or a leaked box.
    unsafe { COUNTERS.load(Ordering::Acquire).as_ref() }
}

/// Whether kernels of any agent are counted.
#[inline(always)]
pub(super) fn is_on() -> bool {
    HostCounters::is_active()
}

/// Whether kernels of any agent are to run in several passes.
#[inline(always)]
pub(super) fn have_passes() -> bool {
    HostCounters::has_passes()
}

/// Whether work may wait for the program itself.
pub(super) fn may_wait_for_program() -> bool {
    WAITS_FOR_PROGRAM.load(Ordering::Relaxed)
}

/// Notes that the program's work may wait for the program from now on.
pub(super) fn work_waits_for_program() {
    WAITS_FOR_PROGRAM.store(true, Ordering::Relaxed);
}

/// Notes that the program has allocated shared virtual memory with these flags.
pub(super) fn svm_allocated(flags: cl_bitfield) {
    if flags.0 & CL_MEM_SVM_FINE_GRAIN_BUFFER != 0 {
        work_waits_for_program();
    }
}

/// Offers a new agent to the service if its kernels run in this process, and starts counting if the recording asks for
/// that.
pub(super) fn new_agent(agent: AgentId, device: cl_device_id, known: &ClDevice) {
    contained(|| {
        if known.has_host_threads() {
            callers::add_runtime(device);
        }
        offer(agent, known);
    });
}

fn offer(agent: AgentId, device: &ClDevice) {
    let (Some(board), Some(counters)) = (process::board(), of_process()) else {
        return;
    };
    if device.has_host_threads() {
        let offered = counters.agent(agent, board.names());
        board.counting().offer(agent, &device.name, offered);
    }
    if let Some(recorder) = process::recorder()
        && let Err(error) = recorder.count(agent, &device.name)
    {
        // Agents without counters may stand beside some that have them.
        if !matches!(error, CountingError::NotSupported { .. }) {
            message(format_args!("{error}. Nothing is counted on this device"));
        }
        if let Some(names) = process::names() {
            names.note(NoteKind::OTHER, &format!("counters: {error}"));
        }
    }
}

/// Whether the calling thread is one of the runtime, which a kernel may need to run.
pub(super) fn is_of_runtime() -> bool {
    of_process().is_some_and(|counters| counters.is_of_runtime(callers::may_be_of_runtime))
}
