//! Functions of ROCm's header that need what is not there: they fail with a sentence that says what.

use crate::errors::api;
use crate::types::{AgentHandle, Failure, Feature, Handle, Properties, Queue, Status};
use core::ffi::c_void;

/// Fails the function `name`, for the reason `why`.
fn unavailable(name: &str, why: &str) -> Status {
    api(name, || Err(Failure::state(why)))
}

/// Why nothing can be done with a set of features (`rocprofiler_feature_set_t`).
const NO_SETS: &str =
    "no function of the API makes a set of features: give an array of features to rocprofiler_open";

/// Adds a feature to a set.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_add_feature(_: *const Feature, _: *mut c_void) -> Status {
    unavailable("rocprofiler_add_feature", NO_SETS)
}

/// Opens a context with the features of a set.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_features_set_open(
    _: AgentHandle,
    _: *mut c_void,
    _: *mut Handle,
    _: u32,
    _: *mut Properties,
) -> Status {
    unavailable("rocprofiler_features_set_open", NO_SETS)
}

/// A callback on errors of a queue.
type ErrorCallback = unsafe extern "C" fn(status: Status, queue: *mut Queue, data: *mut c_void);

/// Creates a queue of HSA.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_queue_create_profiled(
    _: AgentHandle,
    _: u32,
    _: u32,
    _: Option<ErrorCallback>,
    _: *mut c_void,
    _: u32,
    _: u32,
    _: *mut *mut Queue,
) -> Status {
    let why = "there is no HSA runtime that has queues: kernels of all queues of the program are intercepted";
    unavailable("rocprofiler_queue_create_profiled", why)
}

/// Callbacks on calls of HSA (`rocprofiler_hsa_callbacks_t`): six functions.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct HsaCallbacks([*mut c_void; 6]);

/// Has callbacks called for calls of HSA.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_set_hsa_callbacks(_: HsaCallbacks, _: *mut c_void) -> Status {
    let why = "there is no HSA runtime whose calls could be intercepted";
    unavailable("rocprofiler_set_hsa_callbacks", why)
}
