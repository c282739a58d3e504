//! The calls of AMD's own ROCTx, which the SDK tells of. A program that finds our library in its place calls us directly, and the SDK
//! tells nothing of these calls: a marker comes one way or the other.

use crate::roctx;
use core::ffi::{c_char, c_void};
use foldhash::HashMap;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_rocprofiler::{
    CallbackPhase, CallbackTracingRecord, MarkerControlApi, MarkerCoreApi, MarkerNameApi,
    RESULT_BYTES,
};

/// Ranges that are kept until they end.
const MAX_RANGES: usize = 1 << 16;

/// The ranges that have started: ours by AMD's ids.
static STARTED: PerProcess<HashMap<u64, u64>> = PerProcess::new();
/// The calls of a start in progress, by the addresses of their structures: our ranges.
static STARTING: PerProcess<HashMap<usize, u64>> = PerProcess::new();

/// The argument with this place in a call's structure, as 8 bytes: each function has arguments of 8 bytes.
///
/// # Safety
///
/// `record` is that of a call with as many arguments.
unsafe fn argument(record: &CallbackTracingRecord, place: usize) -> u64 {
    // SAFETY: the arguments follow the size (`# Safety`).
    unsafe { record.payload.cast::<u64>().add(1 + place).read() }
}

/// The result of a call that has returned.
///
/// # Safety
///
/// `record` is that of the exit of a call.
unsafe fn result(record: &CallbackTracingRecord) -> u64 {
    // SAFETY: the structure begins with its size and ends with the result (`# Safety`).
    unsafe {
        let size = record.payload.cast::<u64>().read() as usize;
        match size.checked_sub(RESULT_BYTES) {
            Some(at) => record.payload.byte_add(at).cast::<u64>().read(),
            None => 0,
        }
    }
}

/// A text among the arguments.
///
/// # Safety
///
/// As for [`argument`].
unsafe fn text(record: &CallbackTracingRecord, place: usize) -> *const c_char {
    // SAFETY: as for this function.
    let address = unsafe { argument(record, place) };
    core::ptr::with_exposed_provenance(address as usize)
}

/// A call of a marker or range.
///
/// # Safety
///
/// `record` is the SDK's, and its payload the structure of its operation.
pub(super) unsafe fn core(record: &CallbackTracingRecord) {
    let key = record.payload as *const c_void as usize;
    // SAFETY: the structure of the operation, whose texts the program keeps during its call (`# Safety`).
    unsafe {
        match (MarkerCoreApi(record.operation), record.phase) {
            (MarkerCoreApi::roctxMarkA, CallbackPhase::ENTER) => roctx::mark(text(record, 0)),
            (MarkerCoreApi::roctxRangePushA, CallbackPhase::ENTER) => {
                roctx::push(text(record, 0));
            }
            (MarkerCoreApi::roctxRangePop, CallbackPhase::ENTER) => {
                roctx::pop();
            }
            (MarkerCoreApi::roctxRangeStartA, CallbackPhase::ENTER) => {
                let range = roctx::start(text(record, 0));
                STARTING.lock().insert(key, range);
            }
            (MarkerCoreApi::roctxRangeStartA, CallbackPhase::EXIT) => {
                let range = STARTING.lock().remove(&key);
                let mut started = STARTED.lock();
                if let Some(range) = range.filter(|_| started.len() < MAX_RANGES) {
                    started.insert(result(record), range);
                }
            }
            (MarkerCoreApi::roctxRangeStop, CallbackPhase::ENTER) => {
                let range = STARTED.lock().remove(&argument(record, 0));
                if let Some(range) = range {
                    roctx::stop(range);
                }
            }
            _ => {}
        }
    }
}

/// A call that pauses the recording or lets it go on.
///
/// # Safety
///
/// As for [`core`].
pub(super) unsafe fn control(record: &CallbackTracingRecord) {
    if record.phase != CallbackPhase::ENTER {
        return;
    }
    // SAFETY: the thread is the one argument (`# Safety`).
    let thread = unsafe { argument(record, 0) };
    match MarkerControlApi(record.operation) {
        MarkerControlApi::roctxProfilerPause => {
            roctx::pause(thread);
        }
        MarkerControlApi::roctxProfilerResume => {
            roctx::resume(thread);
        }
        _ => {}
    }
}

/// A call that names a thread or an object.
///
/// # Safety
///
/// As for [`core`].
pub(super) unsafe fn name(record: &CallbackTracingRecord) {
    if record.phase != CallbackPhase::ENTER {
        return;
    }
    // SAFETY: the name comes first, and what it names second (`# Safety`).
    unsafe {
        let name = text(record, 0);
        match MarkerNameApi(record.operation) {
            MarkerNameApi::roctxNameOsThread => {
                roctx::name_os_thread(name);
            }
            // The agent is passed by its address.
            MarkerNameApi::roctxNameHsaAgent => {
                let agent = core::ptr::with_exposed_provenance::<u64>(argument(record, 1) as usize);
                if let Some(agent) = agent.as_ref() {
                    roctx::name_object(name, "HSA agent", *agent);
                }
            }
            // A number of 4 bytes.
            MarkerNameApi::roctxNameHipDevice => {
                roctx::name_object(name, "HIP device", argument(record, 1) & 0xffff_ffff);
            }
            MarkerNameApi::roctxNameHipStream => {
                roctx::name_object(name, "HIP stream", argument(record, 1));
            }
            _ => {}
        }
    }
}
