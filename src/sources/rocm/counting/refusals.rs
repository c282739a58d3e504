//! Why the SDK does not count, and what to do.

use crate::rocm::sdk::{Refused, Sdk};
use gputrail_buffer::platform::inside::message;
use gputrail_collect::process;
use gputrail_record::NoteKind;
use gputrail_rocprofiler::Status;

/// A sentence about the status with which the SDK refuses to count, and what to do.
pub(super) fn why(sdk: &Sdk, status: Refused) -> String {
    explain(status, &sdk.version_text(), sdk.sentence(status))
}

fn explain(status: Status, version: &str, sentence: Option<String>) -> String {
    let meaning = match status {
        Status::ERROR_NOT_IMPLEMENTED => {
            &format!("rocprofiler-sdk {version} lacks the function: install a later ROCm")
        }
        Status::ERROR_CONFIGURATION_LOCKED => {
            "rocprofiler-sdk takes services only while it initialises, before the first call of HIP or HSA: ask for counters when \
             the program starts (gputrail record --counters, or a tool that is loaded then)"
        }
        Status::ERROR_AGENT_ARCH_NOT_SUPPORTED => {
            "rocprofiler-sdk defines no counters for the architecture of the GPU: a later ROCm may"
        }
        Status::ERROR_METRIC_NOT_VALID_FOR_AGENT => {
            "the GPU has no such counter: `gputrail counters list --agent rocm:N` lists them"
        }
        Status::ERROR_COUNTER_NOT_FOUND | Status::ERROR_PROFILE_COUNTER_NOT_FOUND => {
            "rocprofiler-sdk has no such counter: `gputrail counters list --agent rocm:N` lists them"
        }
        Status::ERROR_EXCEEDS_HW_LIMIT => {
            "the counters do not fit one pass, which is all that rocprofiler-sdk has: name fewer, `gputrail counters check` tells \
             which go together"
        }
        Status::ERROR_CONTEXT_CONFLICT => {
            "another tool of this process counts kernels, or the GPU is sampled in the same context: leave the tool out of \
             ROCP_TOOL_LIBRARIES"
        }
        Status::ERROR_SERVICE_ALREADY_CONFIGURED | Status::ERROR_AGENT_DISPATCH_CONFLICT => {
            "the GPU is counted already, by another tool of this process: leave it out of ROCP_TOOL_LIBRARIES"
        }
        Status::ERROR_NO_HARDWARE_COUNTERS => {
            "rocprofiler-sdk finds no counters in the hardware of the GPU"
        }
        Status::ERROR_HSA_NOT_LOADED => {
            "HSA is not initialised: the program does not use the GPU yet"
        }
        Status::ERROR_NO_PROFILE_QUEUE => {
            "rocprofiler-sdk has no queue of its own on the GPU to read its counters with"
        }
        Status::ERROR_PERMISSION_DENIED => {
            "the system does not allow it: the user has to be in the groups render and video"
        }
        Status::ERROR_OUT_OF_RESOURCES => "rocprofiler-sdk has no memory left for the values",
        Status::ERROR_AGENT_NOT_FOUND => "rocprofiler-sdk does not know the GPU any more",
        Status::ERROR_FINALIZED => "rocprofiler-sdk has ended",
        Status::ERROR_INCOMPATIBLE_KERNEL => {
            "the amdgpu driver of this system has no counters: install that of the ROCm in use"
        }
        _ => sentence.as_deref().unwrap_or("an unknown error"),
    };
    let name = status.name().map(|name| name.to_string_lossy());
    let name = name.as_deref().unwrap_or("unknown");
    format!("{meaning} (ROCPROFILER_STATUS_{name}, {})", status.0)
}

/// Says in a message and in a note what the matter is.
pub(super) fn report(text: &str) {
    message(format_args!("{text}"));
    if let Some(names) = process::names() {
        names.note(NoteKind::OTHER, &format!("counters: {text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_sentence_and_its_name() {
        for (status, name) in Status::ALL {
            let said = explain(*status, "1.1.0", Some("its own words".to_owned()));
            let name = format!("ROCPROFILER_STATUS_{}", name.to_str().unwrap());
            assert!(said.contains(&name), "{said}");
        }
        let unknown = explain(Status(-7), "1.1.0", None);
        assert!(unknown.contains("unknown error") && unknown.contains("-7"));
    }
}
