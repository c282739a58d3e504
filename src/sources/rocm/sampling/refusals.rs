//! Notes about missing samples: why the SDK does not sample an agent and what to do, and what was lost.

use crate::rocm::sdk::{Refused, Sdk};
use gputrail_buffer::platform::environment::variable;
use gputrail_buffer::platform::inside::message;
use gputrail_collect::process;
use gputrail_record::{NoteKind, count};
use gputrail_rocprofiler::Status;

/// The variable without which the SDK answers that PC sampling is not implemented.
const ENABLING_VARIABLE: &str = "ROCPROFILER_PC_SAMPLING_BETA_ENABLED";

/// Whether the SDK takes a value of [`ENABLING_VARIABLE`] for yes.
fn is_yes(value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    match value.parse::<i64>() {
        Ok(number) => number != 0,
        Err(_) => !matches!(&*value, "" | "off" | "false" | "no" | "n" | "f"),
    }
}

/// A sentence about the status with which the SDK refuses to sample an agent, and what to do.
pub(super) fn why(sdk: &Sdk, status: Refused) -> String {
    let value = variable(ENABLING_VARIABLE);
    let is_enabled = value.is_some_and(|value| is_yes(&value.to_string_lossy()));
    explain(
        status,
        is_enabled,
        &sdk.version_text(),
        sdk.sentence(status),
    )
}

fn explain(status: Status, is_enabled: bool, version: &str, sentence: Option<String>) -> String {
    let meaning = match status {
        Status::ERROR_NOT_IMPLEMENTED if !is_enabled => {
            return format!(
                "rocprofiler-sdk samples only where {ENABLING_VARIABLE}=1 is in the environment, since AMD calls PC sampling a beta \
                 feature, which may hang the machine: set it, and start the program again"
            );
        }
        Status::ERROR_NOT_IMPLEMENTED => {
            &format!("rocprofiler-sdk {version} has no PC sampling: install ROCm 6.4 or later")
        }
        Status::ERROR_NOT_AVAILABLE => {
            "the GPU, or the HSA runtime, has no such sampling, or another process samples the GPU otherwise, or the program runs \
             under ROCgdb: end the others, or sample as they do"
        }
        Status::ERROR_INCOMPATIBLE_KERNEL => {
            "the amdgpu driver of this system has no PC sampling: install the driver that comes with ROCm 6.4 or later"
        }
        Status::ERROR_CONFIGURATION_LOCKED => {
            "rocprofiler-sdk takes services only while it initialises, before the first call of HIP or HSA: ask for samples when the \
             program starts (gputrail record --sample, or a tool that is loaded then)"
        }
        Status::ERROR_CONTEXT_CONFLICT => {
            "counters are collected in the same context: sample and count in two recordings"
        }
        Status::ERROR_SERVICE_ALREADY_CONFIGURED => {
            "another tool of this process samples the GPU: only one can, so leave it out of ROCP_TOOL_LIBRARIES"
        }
        Status::ERROR_INVALID_ARGUMENT => {
            "the driver does not take the interval: choose another --interval"
        }
        Status::ERROR_AGENT_NOT_FOUND => "rocprofiler-sdk does not know the GPU any more",
        Status::ERROR_AGENT_ARCH_NOT_SUPPORTED => {
            "the architecture of the GPU has no PC sampling: gfx90a, gfx94x, gfx950 and gfx12 have it"
        }
        Status::ERROR_PERMISSION_DENIED => {
            "the system does not allow it: the user has to be in the groups render and video"
        }
        Status::ERROR_FINALIZED => "rocprofiler-sdk has ended",
        Status::ERROR_OUT_OF_RESOURCES => "rocprofiler-sdk has no memory left for samples",
        Status::ERROR => "the amdgpu driver reports an error, which `dmesg` may tell",
        _ => sentence.as_deref().unwrap_or("an unknown error"),
    };
    let name = status.name().map(|name| name.to_string_lossy());
    let name = name.as_deref().unwrap_or("unknown");
    format!("{meaning} (ROCPROFILER_STATUS_{name}, {})", status.0)
}

/// Samples that are missing, and what was said of it.
#[derive(Default)]
pub(super) struct SampleLosses {
    /// By a buffer of the SDK.
    pub dropped: u64,
    /// Samples for which there was no room.
    pub unwritten: u64,
    /// Samples of dispatches that are not known.
    pub without_kernel: u64,
    /// Records that are not known here.
    pub foreign: u64,
}

impl SampleLosses {
    /// A sentence about each loss, and whether it is one of samples.
    pub fn describe(&self) -> Vec<(String, bool)> {
        let samples = |number| count(number, "sample");
        let all = [
            (
                self.dropped,
                true,
                format!(
                    "{} dropped by rocprofiler-sdk: a longer --interval makes fewer",
                    samples(self.dropped)
                ),
            ),
            (
                self.unwritten,
                true,
                format!("{} could not be written", samples(self.unwritten)),
            ),
            (
                self.without_kernel,
                false,
                format!(
                    "{} without a kernel: their dispatch was enqueued before sampling began, or long ago",
                    samples(self.without_kernel)
                ),
            ),
            (
                self.foreign,
                false,
                format!("{} of an unknown kind", count(self.foreign, "record")),
            ),
        ];
        let said = all.into_iter().filter(|(number, ..)| *number > 0);
        said.map(|(_, is_loss, text)| (format!("ROCm: PC sampling: {text}"), is_loss))
            .collect()
    }
}

/// Says in a message and in a note what the matter is.
pub(super) fn report(text: &str) {
    message(format_args!("{text}"));
    if let Some(names) = process::names() {
        names.note(NoteKind::MISSING, &format!("PC sampling: {text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_variable_is_named_before_all_else() {
        let said = explain(Status::ERROR_NOT_IMPLEMENTED, false, "1.1.0", None);
        assert!(
            said.contains("ROCPROFILER_PC_SAMPLING_BETA_ENABLED=1"),
            "{said}"
        );
        let said = explain(Status::ERROR_NOT_IMPLEMENTED, true, "0.5.0", None);
        assert!(
            said.contains("rocprofiler-sdk 0.5.0 has no PC sampling"),
            "{said}"
        );
    }

    #[test]
    fn every_status_has_a_sentence_and_its_name() {
        for (status, name) in Status::ALL {
            let said = explain(*status, true, "1.1.0", Some("its own words".to_owned()));
            let name = format!("ROCPROFILER_STATUS_{}", name.to_str().unwrap());
            assert!(said.contains(&name), "{said}");
        }
        let unknown = explain(Status(-7), true, "1.1.0", None);
        assert!(unknown.contains("unknown error") && unknown.contains("-7"));
        let own = explain(
            Status::ERROR_DIM_NOT_FOUND,
            true,
            "",
            Some("own".to_owned()),
        );
        assert!(own.starts_with("own ("), "{own}");
    }

    #[test]
    fn values_of_the_variable_are_read_as_the_sdk_reads_them() {
        assert!(
            ["1", "ON", "true", "yes", "2"]
                .map(is_yes)
                .iter()
                .all(|yes| *yes)
        );
        assert!(
            !["0", "off", "False", "no", ""]
                .map(is_yes)
                .iter()
                .any(|yes| *yes)
        );
    }

    #[test]
    fn losses_are_told_where_there_are_some() {
        let none = SampleLosses::default();
        assert!(none.describe().is_empty());
        let some = SampleLosses {
            dropped: 1,
            without_kernel: 2,
            ..none
        };
        let said = some.describe();
        assert_eq!(said.len(), 2);
        assert!(said[0].0.contains("1 sample dropped") && said[0].1 && !said[1].1);
    }
}
