//! Counts of what captures hold.

use std::path::PathBuf;

use crate::capture::Finding;
use crate::record::Nanos;
use crate::trace::model::{AgentIndex, ProcessIndex, WorkKind};

/// Counts of what captures hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Processes.
    pub processes: u32,
    /// API calls.
    pub calls: u64,
    /// Of these, calls that failed.
    pub failed_calls: u64,
    /// Kernels.
    pub kernels: u64,
    /// Copies, maps, unmaps and migrations.
    pub copies: u64,
    /// Fills.
    pub sets: u64,
    /// Markers and barriers.
    pub synchronizations: u64,
    /// Completions whose enqueue record is missing.
    pub unknown_work: u64,
    /// Work whose end is not known.
    pub unfinished: u64,
    /// Work whose end could not be known: the runtime gave no event to track it by.
    pub untracked: u64,
    /// Calls that did not return.
    pub unfinished_calls: u64,
    /// Records that were dropped while recording.
    pub lost: u64,
    /// Work that seemed to start before it was enqueued, by no more than the clocks' error: moved.
    pub clamped: u64,
    /// Work that starts before it was enqueued, by more than the clocks' error: shown as measured.
    pub before_enqueue: u64,
    /// Work of agents whose clock is not known: placed by the time at which the host learnt of its end.
    pub estimated: u64,
    /// Samples of the program counter.
    pub samples: u64,
    /// Samples that their agent could not complete.
    pub invalid_samples: u64,
    /// Samples that were dropped, by the totals of their dispatches.
    pub dropped_samples: u64,
    /// The flame graph shows one of so many samples; 0 if there is none.
    pub samples_shown_one_of: u64,
    /// Parts of captures that could not be read.
    pub findings: Vec<(PathBuf, Finding)>,
    /// The clock of each agent of each process, in words.
    pub clocks: Vec<(ProcessIndex, AgentIndex, String)>,
}

impl Report {
    /// All device work.
    pub fn work(&self) -> u64 {
        self.kernels + self.copies + self.sets + self.synchronizations + self.unknown_work
    }

    /// Counts a piece of work.
    pub(super) fn count(
        &mut self,
        kind: WorkKind,
        interval: Option<(Nanos, Nanos)>,
        untracked: bool,
    ) {
        match kind {
            WorkKind::Kernel => self.kernels += 1,
            WorkKind::Copy => self.copies += 1,
            WorkKind::Set => self.sets += 1,
            WorkKind::Synchronization => self.synchronizations += 1,
            WorkKind::Unknown => self.unknown_work += 1,
        }
        self.untracked += u64::from(interval.is_none() && untracked);
        self.unfinished += u64::from(interval.is_none() && !untracked);
    }
}
