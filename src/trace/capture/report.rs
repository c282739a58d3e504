//! Counts of the contents of captures.

use std::path::PathBuf;

use crate::model::{AgentIndex, ProcessIndex, WorkKind};
use gputrail_capture::CaptureFinding;
use gputrail_record::Nanos;

/// Counts of the contents of captures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of processes.
    pub processes: u32,
    /// Number of API calls.
    pub calls: u64,
    /// Number of calls that failed.
    pub failed_calls: u64,
    /// Number of kernels.
    pub kernels: u64,
    /// Number of copies, maps, unmaps and migrations.
    pub copies: u64,
    /// Number of fills.
    pub sets: u64,
    /// Number of markers and barriers.
    pub synchronizations: u64,
    /// Number of markers of the program: ranges and moments.
    pub markers: u64,
    /// Number of all records of markers: also ends of ranges, values, names of objects, samples of counters and external
    /// ids.
    pub marker_records: u64,
    /// Number of completions whose enqueue record is missing.
    pub unknown_work: u64,
    /// Number of pieces of work that had not completed when the recording ended.
    pub unfinished: u64,
    /// Number of pieces of work without a completion in a recording that lacks some: those that its flight recorder
    /// overwrote, or that were lost.
    pub unrecorded: u64,
    /// Number of pieces of work that completed without times: the runtime gave none.
    pub untimed: u64,
    /// Number of pieces of work that could not be tracked: the runtime gave no event for them.
    pub untracked: u64,
    /// Number of calls that did not return.
    pub unfinished_calls: u64,
    /// Number of records that were dropped while recording.
    pub lost: u64,
    /// Number of those that the runtime dropped: a text of `missing` says why.
    pub lost_by_runtime: u64,
    /// What is missing, and why, by the notes of the recording.
    pub missing: Vec<String>,
    /// Number of records that are neither calls, work, markers nor values of counters.
    pub others: u64,
    /// Number of pieces of work that seemed to start before their enqueue by no more than the clocks' error, and were
    /// moved.
    pub clamped: u64,
    /// Number of pieces of work that started before their enqueue by more than the clocks' error, and are shown as
    /// measured.
    pub before_enqueue: u64,
    /// Number of pieces of work of agents whose clock is unknown, placed by the time at which the host learnt of their
    /// end.
    pub estimated: u64,
    /// Number of commands of command buffers. Their times are shares of the time of the whole buffer.
    pub commands: u64,
    /// Number of samples of the program counter.
    pub samples: u64,
    /// Number of those that came one by one, each with its own fields: other agents give counts.
    pub single_samples: u64,
    /// Number of instructions that waves executed, where they are counted.
    pub executed_instructions: u64,
    /// Number of samples that their agent could not complete.
    pub invalid_samples: u64,
    /// Number of dropped samples, by the totals of their dispatches.
    pub dropped_samples: u64,
    /// How many samples one sample of the flame graph stands for; 0 if there is none.
    pub samples_shown_one_of: u64,
    /// Number of values of counters.
    pub counter_values: u64,
    /// Number of values of counters that are invalid.
    pub invalid_counter_values: u64,
    /// Number of values of counters that are not shown over time: beyond the limits of a dispatch, of a span and of a process,
    /// of a span whose last value is missing, or of a dispatch that was not recorded.
    pub left_out_counter_values: u64,
    /// Parts of captures that could not be read.
    pub findings: Vec<(PathBuf, CaptureFinding)>,
    /// The clock of each agent of each process, as text.
    pub clocks: Vec<(ProcessIndex, AgentIndex, String)>,
}

/// What is known of the end of a piece of work without times.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum WorkEnd {
    /// It had not completed, as far as the records say.
    Unknown,
    /// It could not be tracked.
    Untracked,
    /// It may have completed, and its completion is not recorded.
    Unrecorded,
    /// It completed.
    Untimed,
}

impl Report {
    /// The number of all pieces of device work.
    pub fn work(&self) -> u64 {
        self.kernels + self.copies + self.sets + self.synchronizations + self.unknown_work
    }

    /// Counts values of counters: valid ones and invalid ones.
    pub(super) fn count_values(&mut self, (valid, invalid): (u64, u64)) {
        self.counter_values += valid + invalid;
        self.invalid_counter_values += invalid;
    }

    /// Counts a piece of work.
    pub(super) fn count(&mut self, kind: WorkKind, interval: Option<(Nanos, Nanos)>, end: WorkEnd) {
        match kind {
            WorkKind::Kernel => self.kernels += 1,
            WorkKind::Copy => self.copies += 1,
            WorkKind::Set => self.sets += 1,
            WorkKind::Synchronization => self.synchronizations += 1,
            WorkKind::Graph => {}
            WorkKind::Unknown => self.unknown_work += 1,
        }
        match end {
            _ if interval.is_some() => {}
            WorkEnd::Unknown => self.unfinished += 1,
            WorkEnd::Unrecorded => self.unrecorded += 1,
            WorkEnd::Untracked => self.untracked += 1,
            WorkEnd::Untimed => self.untimed += 1,
        }
    }
}
