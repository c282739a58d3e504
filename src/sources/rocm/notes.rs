//! Notes for the trace and the user: of refusals of the SDK, and what to do; of the runtimes that were initialised; and of what is
//! missing.

use super::sdk::{Refused, Sdk};
use super::session::Session;
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_capture::names::Names;
use gputrail_collect::process;
use gputrail_record::{Domain, NoteKind, Operation, count};
use gputrail_rocprofiler::{
    RuntimeInitializationData, RuntimeInitializationOperation, Status, TracingOperation,
};
use std::sync::atomic::{AtomicU64, Ordering};

/// The meaning of a status of the SDK, and what to do.
pub(super) fn why(sdk: &Sdk, status: Refused) -> String {
    let known = match status {
        Status::ERROR_CONFIGURATION_LOCKED => Some(
            "rocprofiler-sdk takes services only while it initialises, before the first call of HIP or HSA: start the program under \
             `gputrail record`",
        ),
        Status::ERROR_NOT_IMPLEMENTED => {
            Some("this version of rocprofiler-sdk does not have it: a newer ROCm does")
        }
        Status::ERROR_KIND_NOT_FOUND => {
            Some("this version of rocprofiler-sdk does not know the kind: a newer ROCm does")
        }
        Status::ERROR_SERVICE_ALREADY_CONFIGURED => Some(
            "another tool of this process has the service already: leave it out of ROCP_TOOL_LIBRARIES",
        ),
        Status::ERROR_CONTEXT_CONFLICT => Some(
            "another context has a service that excludes it: leave other profilers out of ROCP_TOOL_LIBRARIES",
        ),
        Status::ERROR_INCOMPATIBLE_KERNEL => {
            Some("the amdgpu driver of this system is too old for it: install that of a newer ROCm")
        }
        Status::ERROR_INCOMPATIBLE_ABI => Some(
            "the library has other structures than this version of gputrail knows: say so to gputrail's authors",
        ),
        Status::ERROR_INCOMPATIBLE_REGISTER_VERSION => {
            Some("librocprofiler-register is too old for it: install that of the same ROCm")
        }
        Status::ERROR_PERMISSION_DENIED => {
            Some("the system does not allow it: the user has to be in the groups render and video")
        }
        Status::ERROR_OUT_OF_RESOURCES => Some("the GPU or its driver has no room for it"),
        Status::ERROR_HSA_NOT_LOADED => Some("the HSA runtime has not been loaded"),
        Status::ERROR_FINALIZED => Some("rocprofiler-sdk has ended"),
        _ => None,
    };
    let sentence = known.map_or_else(|| sdk.sentence(status), |known| Some(known.to_owned()));
    let sentence = sentence.unwrap_or_else(|| "an unknown error".to_owned());
    let name = status.name().map(|name| name.to_string_lossy());
    let name = name.as_deref().unwrap_or("unknown");
    format!("{sentence} (ROCPROFILER_STATUS_{name}, {})", status.0)
}

/// A service that the SDK has refused is missing from the recording.
pub(super) fn refused(sdk: &Sdk, names: Option<&Names>, what: &str, status: Refused) {
    let version = sdk.version_text();
    let text = format!(
        "rocprofiler-sdk {version} records no {what}: {}",
        why(sdk, status)
    );
    message(format_args!("{text}"));
    if let Some(names) = names {
        names.note(NoteKind::MISSING, &text);
    }
}

/// A kind that this version of the SDK does not have is noted.
pub(super) fn unknown_kind(sdk: &Sdk, names: Option<&Names>, what: &str) {
    let version = sdk.version_text();
    if let Some(names) = names {
        let text = format!("rocprofiler-sdk {version} has no {what}");
        names.note(NoteKind::OTHER, &text);
    }
}

/// Notes a fact about the recording. The summary of a recording says what is missing; a process that only tools observe says
/// it itself.
pub(super) fn note(names: &Names, text: &str, is_loss: bool) {
    let what = if is_loss {
        NoteKind::MISSING
    } else {
        NoteKind::OTHER
    };
    names.note(what, text);
    if is_loss && process::recorder().is_none() {
        message(format_args!("{text}"));
    }
}

/// A call in a forked child of the process that the SDK was configured in: the SDK's threads are not in the child.
#[cold]
pub(super) fn forked() {
    static SAID: PerProcess<bool> = PerProcess::new();
    // The child begins with its first call.
    let _ = process::interest(Operation {
        domain: Domain::HIP,
        number: 1,
    });
    let Some(names) = process::names() else {
        return;
    };
    if !std::mem::replace(&mut *SAID.lock(), true) {
        let text = "ROCm: a forked process is not observed, as the threads of rocprofiler-sdk are not in it: have the program start \
                    its processes by exec (Python: multiprocessing's method `spawn`)";
        note(names, text, true);
    }
}

/// A runtime was initialised.
pub(super) fn runtime(
    session: &Session,
    operation: TracingOperation,
    runtime: &RuntimeInitializationData,
) {
    let Some(names) = process::names() else {
        return;
    };
    let runtime_name = RuntimeInitializationOperation(operation).name();
    let runtime_name = runtime_name.map_or_else(
        || format!("runtime {operation}").into(),
        |name| name.to_string_lossy(),
    );
    let version = version_text(runtime.version);
    let sdk = session.sdk.version_text();
    let text = match runtime.instance {
        0 => format!("{runtime_name} {version} was initialised (rocprofiler-sdk {sdk})"),
        number => format!(
            "{runtime_name} {version} was initialised as copy {}",
            number + 1
        ),
    };
    names.note(NoteKind::OTHER, &text);
}

/// A version that is 10 000 times the major one, 100 times the minor one, and the patch.
fn version_text(version: u64) -> String {
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    format!("{major}.{minor}.{patch}")
}

/// A count of the SDK's records, and the words with which the notes of a recording state it.
pub(super) struct NotedCount {
    number: AtomicU64,
    is_loss: bool,
    /// The predicate, in words that fit one and several.
    fact: &'static str,
}

impl NotedCount {
    const fn new(is_loss: bool, fact: &'static str) -> NotedCount {
        NotedCount {
            number: AtomicU64::new(0),
            is_loss,
            fact,
        }
    }

    /// Adds `number`.
    pub fn add(&self, number: u64) {
        self.number.fetch_add(number, Ordering::Relaxed);
    }

    /// The count is at least `number`.
    pub fn raise(&self, number: u64) {
        self.number.fetch_max(number, Ordering::Relaxed);
    }

    fn describe(&self) -> Option<String> {
        let number = self.number.load(Ordering::Relaxed);
        (number > 0).then(|| format!("ROCm: {} {}", count(number, "record"), self.fact))
    }
}

pub(super) static DROPPED: NotedCount = NotedCount::new(
    true,
    "dropped by rocprofiler-sdk, whose buffer was full: recording less (--kind, --kernel) leaves more",
);
pub(super) static DROPPED_BY_DRIVER: NotedCount = NotedCount::new(
    true,
    "of migrations and page faults dropped by the amdgpu driver",
);
pub(super) static AFTER_END: NotedCount =
    NotedCount::new(true, "came after the end, or on a thread too many");
pub(super) static BUSY: NotedCount =
    NotedCount::new(true, "came in the middle of another record of the thread");
pub(super) static MALFORMED: NotedCount = NotedCount::new(true, "could not be read");
pub(super) static BEFORE_START: NotedCount =
    NotedCount::new(false, "from before the start left out");
pub(super) static UNTIMED: NotedCount = NotedCount::new(false, "without times");
pub(super) static WITHOUT_CALL: NotedCount = NotedCount::new(false, "without a recorded call");
pub(super) static FOREIGN: NotedCount =
    NotedCount::new(false, "of a kind that is not recorded left out");

static ALL: [&NotedCount; 9] = [
    &DROPPED,
    &DROPPED_BY_DRIVER,
    &AFTER_END,
    &BUSY,
    &MALFORMED,
    &BEFORE_START,
    &UNTIMED,
    &WITHOUT_CALL,
    &FOREIGN,
];

/// Notes each count that is not 0.
pub(super) fn note_counts(names: &Names) {
    for count in ALL {
        if let Some(text) = count.describe() {
            note(names, &text, count.is_loss);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_rocprofiler::Functions;

    #[test]
    fn a_refusal_says_what_to_do_and_names_the_status() {
        let sdk = Sdk::with(Functions::default());
        let locked = why(&sdk, Status::ERROR_CONFIGURATION_LOCKED);
        assert!(locked.contains("gputrail record") && locked.contains("CONFIGURATION_LOCKED, 16"));
        assert!(why(&sdk, Status(999)).contains("999"));
    }

    #[test]
    fn a_count_is_stated_unless_it_is_0() {
        let dropped = NotedCount::new(true, "dropped");
        assert_eq!(dropped.describe(), None);
        dropped.add(1);
        dropped.raise(1);
        assert_eq!(
            dropped.describe().as_deref(),
            Some("ROCm: 1 record dropped")
        );
    }

    #[test]
    fn versions_of_runtimes_are_taken_apart() {
        assert_eq!(version_text(70_105), "7.1.5");
    }
}
