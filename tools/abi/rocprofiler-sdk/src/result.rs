//! Statuses: what functions answer, and the texts about them.

use core::ffi::CStr;
use gputrail_abi::contained;
use gputrail_rocprofiler::Status;
use gputrail_tool as tool;

/// The answer of a function.
pub type Answer<T = ()> = Result<T, Status>;

/// Runs a function of the API.
pub fn api(work: impl FnOnce() -> Answer) -> Status {
    match contained(work) {
        Some(Ok(())) => Status::SUCCESS,
        Some(Err(status)) => status,
        None => Status::ERROR,
    }
}

/// The status of an error of gputrail's.
pub fn failed(error: tool::Error) -> Status {
    match error.status {
        tool::Status::INVALID_ARGUMENT => Status::ERROR_INVALID_ARGUMENT,
        tool::Status::TOO_MANY | tool::Status::OUT_OF_MEMORY | tool::Status::NO_THREAD => {
            Status::ERROR_OUT_OF_RESOURCES
        }
        tool::Status::STACK_FULL => Status::ERROR_OUT_OF_RESOURCES,
        tool::Status::NO_SUCH_AGENT => Status::ERROR_AGENT_NOT_FOUND,
        tool::Status::CONTEXT_CONFLICT => Status::ERROR_CONTEXT_CONFLICT,
        tool::Status::BUSY => Status::ERROR_BUFFER_BUSY,
        tool::Status::NOT_INITIALISED | tool::Status::NOT_AVAILABLE => Status::ERROR_NOT_AVAILABLE,
        _ => Status::ERROR,
    }
}

/// A sentence about a status, if it is one.
pub fn sentence(status: Status) -> Option<&'static CStr> {
    Some(match status {
        Status::SUCCESS => c"no error",
        Status::ERROR => c"an error that has no status of its own",
        Status::ERROR_CONTEXT_NOT_FOUND => c"there is no such context",
        Status::ERROR_BUFFER_NOT_FOUND => c"there is no such buffer",
        Status::ERROR_KIND_NOT_FOUND => c"there is no such kind",
        Status::ERROR_OPERATION_NOT_FOUND => c"the kind has no such operation",
        Status::ERROR_THREAD_NOT_FOUND => c"there is no such callback thread",
        Status::ERROR_AGENT_NOT_FOUND => c"there is no such agent",
        Status::ERROR_COUNTER_NOT_FOUND => c"there is no such counter",
        Status::ERROR_CONTEXT_ERROR => c"the context cannot be made",
        Status::ERROR_CONTEXT_INVALID => c"the context cannot be started as it is configured",
        Status::ERROR_CONTEXT_NOT_STARTED => c"the context could not be started",
        Status::ERROR_CONTEXT_CONFLICT => c"another context has what this one needs for itself",
        Status::ERROR_CONTEXT_ID_NOT_ZERO => c"the place for the id of a context has to hold 0",
        Status::ERROR_BUFFER_BUSY => c"the buffer is in use: it cannot be flushed or destroyed in its callback",
        Status::ERROR_SERVICE_ALREADY_CONFIGURED => c"the service has been configured before",
        Status::ERROR_CONFIGURATION_LOCKED => {
            c"this can be configured only while clients are initialized, and started only before they are finalized"
        }
        Status::ERROR_NOT_IMPLEMENTED => c"this is not implemented",
        Status::ERROR_INCOMPATIBLE_ABI => c"the size of a structure is not one of this version",
        Status::ERROR_INVALID_ARGUMENT => c"an argument is invalid",
        Status::ERROR_METRIC_NOT_VALID_FOR_AGENT => c"the agent does not have the metric",
        Status::ERROR_FINALIZED => c"the library has been finalized",
        Status::ERROR_HSA_NOT_LOADED => c"the runtime has to be loaded before",
        Status::ERROR_DIM_NOT_FOUND => c"the counter does not have the dimension",
        Status::ERROR_PROFILE_COUNTER_NOT_FOUND => c"the agent does not have a counter of the set",
        Status::ERROR_AST_GENERATION_FAILED => c"the expression of a counter cannot be understood",
        Status::ERROR_AST_NOT_FOUND => c"the counter has no expression",
        Status::ERROR_AQL_NO_EVENT_COORD => c"the place of an event on the agent is not known",
        Status::ERROR_INCOMPATIBLE_KERNEL => c"the system's driver does not support this",
        Status::ERROR_OUT_OF_RESOURCES => c"there are not enough resources",
        Status::ERROR_CONFIG_NOT_FOUND => c"there is no such set of counters",
        Status::ERROR_AGENT_DISPATCH_CONFLICT => {
            c"a context counts either dispatches or what its agents do"
        }
        Status::INTERNAL_NO_AGENT_CONTEXT => c"no context counts what agents do",
        Status::ERROR_SAMPLE_RATE_EXCEEDED => c"the values before are still being read",
        Status::ERROR_NO_PROFILE_QUEUE => c"the agent has no queue for its counters",
        Status::ERROR_NO_HARDWARE_COUNTERS => c"the set has no counters of the hardware",
        Status::ERROR_AGENT_MISMATCH => c"the set of counters is another agent's",
        Status::ERROR_NOT_AVAILABLE => c"the service is not available now",
        Status::ERROR_EXCEEDS_HW_LIMIT => c"the hardware cannot collect all of this at the same time",
        Status::ERROR_AGENT_ARCH_NOT_SUPPORTED => c"no counters of the agent are known",
        Status::ERROR_PERMISSION_DENIED => c"the system does not allow this",
        Status::ERROR_INCOMPATIBLE_REGISTER_VERSION => c"the library of registrations is too old",
        _ => return None,
    })
}
