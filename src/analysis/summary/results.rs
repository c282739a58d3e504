//! Results of a summary: functions, work and devices.

use std::collections::BTreeMap;

use gputrail_record::{Domain, Nanos, OperationGroup};
use gputrail_trace::model::{AgentIndex, Launch, ProcessIndex, Resources, WorkKind};

use super::{Busy, Distribution, FunctionRole, Gaps, LaunchParts};

/// The size up to which a copy is tiny, in bytes.
pub const TINY_BYTES: u64 = 16 << 10;

/// A function of an API.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionSummary {
    /// Its name.
    pub name: String,
    /// Its API.
    pub domain: Domain,
    /// Its group.
    pub group: OperationGroup,
    /// The durations of its calls that returned, ns. Calls made by other calls count here and in their callers.
    pub times: Distribution,
    /// The number and the time of those that no other call made, ns.
    pub outermost: (u64, u64),
    /// The number of calls that did not return.
    pub unfinished: u64,
    /// The number of failed calls, by return code.
    pub failures: BTreeMap<i32, u64>,
    /// Its role.
    pub role: FunctionRole,
    /// Its longest call.
    pub longest: Option<Occasion>,
    /// Its first call that failed.
    pub first_failure: Option<Nanos>,
}

/// When something happened, and how long it took.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Occasion {
    /// Its begin.
    pub start: Nanos,
    /// Its duration, ns.
    pub took: u64,
}

impl Occasion {
    /// Keeps the longer of two.
    pub(super) fn keep_longest(longest: &mut Option<Occasion>, other: Option<Occasion>) {
        if let Some(other) = other
            && longest.is_none_or(|longest| other.took > longest.took)
        {
            *longest = Some(other);
        }
    }
}

/// A return code of a function that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureCode {
    /// Its name.
    pub name: String,
    /// Its API.
    pub domain: Domain,
    /// The return code.
    pub code: i32,
    /// The number of calls that returned it.
    pub count: u64,
}

/// A kernel, or a kind of copy, fill or barrier.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkSummary {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: WorkKind,
    /// The durations of work, ns: of completed work, and of work that was running at the end. Work without an end whose
    /// start was not measured may never have started, and is not among them.
    pub times: Distribution,
    /// The times from the begin of the call that enqueued it to its start, ns, if both are known.
    pub latency: Distribution,
    /// The number of pieces of work that did not complete, or have no times.
    pub unfinished: u64,
    /// The number of those that are not in `times`.
    pub untimed: u64,
    /// The number of pieces of work that completed with an error.
    pub failed: u64,
    /// The sizes of copies and fills in bytes, if known.
    pub sizes: Distribution,
    /// The time of copies and fills whose size is known, ns.
    pub sized_time: u64,
    /// The number of those of at most [`TINY_BYTES`].
    pub tiny_count: u64,
    /// The time of these, ns.
    pub tiny_time: u64,
    /// The latencies taken apart, of launches whose calls are known.
    pub parts: LaunchParts,
    /// The first piece of work of the first process that ran it.
    pub first: Option<Occasion>,
    /// The longest.
    pub longest: Option<Occasion>,
    /// The launch and the resources of the first kernel that had both.
    pub shape: Option<(Launch, Resources)>,
    /// The sum of times and their shares of the most waves that a device holds, ns, where the input says the share.
    pub occupied: f64,
    /// The sum of the times in `occupied`, ns.
    pub occupancy_time: u64,
}

impl WorkSummary {
    pub(super) fn named(name: &str, kind: WorkKind) -> WorkSummary {
        WorkSummary {
            name: name.to_owned(),
            kind,
            times: Distribution::default(),
            latency: Distribution::default(),
            unfinished: 0,
            untimed: 0,
            failed: 0,
            sizes: Distribution::default(),
            sized_time: 0,
            tiny_count: 0,
            tiny_time: 0,
            parts: LaunchParts::default(),
            first: None,
            longest: None,
            shape: None,
            occupied: 0.0,
            occupancy_time: 0,
        }
    }

    /// The mean share of the most waves that a device holds, by time, 0 to 1; `None` if the input does not say it.
    pub fn occupancy(&self) -> Option<f64> {
        (self.occupancy_time > 0).then(|| self.occupied / self.occupancy_time as f64)
    }
}

/// The use of a device over time.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuSummary {
    /// Its short name, as its tracks have it: "GPU 0".
    pub title: String,
    /// Its name.
    pub name: String,
    /// Its index.
    pub agent: AgentIndex,
    /// The processes that had work on it.
    pub processes: Vec<ProcessIndex>,
    /// Its busy time; `None` if it did no work, or none with times.
    pub busy: Option<Busy>,
    /// The number of pieces of its work whose times the runtime did not give.
    pub untimed: u64,
    /// The time in which kernels ran.
    pub kernels: Nanos,
    /// The time in which copies, fills, and unknown work ran.
    pub transfers: Nanos,
    /// The time in which both ran.
    pub overlap: Nanos,
    /// The gaps between its work by the name of the work that ended them, in descending order of time.
    pub gaps: Vec<(String, Gaps)>,
}
