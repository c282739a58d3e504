//! Names of processes and queues, and counters of allocated memory.

use std::collections::BTreeMap;

use gputrail_record::Nanos;
use gputrail_record::number_map::NumberMap;
use gputrail_trace::model::{
    AgentIndex, CounterValue, Process, ProcessIndex, Queue, QueueIndex, TrackIndex,
};
use gputrail_trace::ranks::{NO_RANK, rank_of};

/// Maximum number of processes, queues and counters of memory that have a name.
const MAX_NAMES: usize = 1 << 16;

/// A process, as people call it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessLabel {
    /// Its name.
    pub name: String,
    /// Its id; 0 if unknown.
    pub pid: u32,
    /// Its rank, if it has one.
    pub rank: Option<i64>,
}

impl ProcessLabel {
    /// Its rank, or its name and id.
    pub fn text(&self) -> String {
        match (self.rank, &*self.name, self.pid) {
            (Some(rank), _, _) => format!("rank {rank}"),
            (None, "", 0) => "-".to_owned(),
            (None, "", pid) => format!("process {pid}"),
            (None, name, pid) => format!("{name} {pid}"),
        }
    }
}

/// A queue, as people call it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueLabel {
    /// Its name among the queues of its process on its device.
    pub name: String,
    /// Its device.
    pub agent: AgentIndex,
}

/// A counter of allocated memory.
#[derive(Debug)]
struct MemoryTrack {
    process: ProcessIndex,
    name: Box<str>,
    peak: Option<(u64, Nanos)>,
}

/// All names.
#[derive(Debug, Default)]
pub(super) struct Names {
    processes: BTreeMap<ProcessIndex, ProcessLabel>,
    queues: NumberMap<QueueIndex, QueueLabel>,
    memory: NumberMap<TrackIndex, MemoryTrack>,
}

impl Names {
    pub fn declare_process(&mut self, index: ProcessIndex, process: &Process<'_>) {
        if self.processes.len() < MAX_NAMES {
            let rank = rank_of(process);
            let label = ProcessLabel {
                name: process.name.to_owned(),
                pid: process.pid.0,
                rank: (rank != NO_RANK).then_some(rank),
            };
            self.processes.insert(index, label);
        }
    }

    pub fn declare_queue(&mut self, index: QueueIndex, queue: &Queue<'_>) {
        if self.queues.len() < MAX_NAMES {
            let label = QueueLabel {
                name: queue.name.to_owned(),
                agent: queue.agent,
            };
            self.queues.insert(index, label);
        }
    }

    /// Declares a counter in bytes.
    pub fn declare_memory(&mut self, index: TrackIndex, process: Option<ProcessIndex>, name: &str) {
        let is_allocated = ["memory allocated", "memory in use"]
            .iter()
            .any(|end| name.ends_with(end));
        if let Some(process) = process
            && is_allocated
            && !name.starts_with("CPU")
            && self.memory.len() < MAX_NAMES
        {
            let track = MemoryTrack {
                process,
                name: name.into(),
                peak: None,
            };
            self.memory.insert(index, track);
        }
    }

    /// Adds a value of a counter. If it is one of allocated memory, the result is its process, and the bytes.
    pub fn memory(
        &mut self,
        track: TrackIndex,
        time: Nanos,
        value: CounterValue,
    ) -> Option<(ProcessIndex, u64)> {
        if self.memory.is_empty() {
            return None;
        }
        let track = self.memory.get_mut(&track)?;
        let bytes = match value {
            CounterValue::Int(bytes) => u64::try_from(bytes).ok()?,
            CounterValue::Double(bytes) => bytes as u64,
        };
        if track.peak.is_none_or(|(peak, _)| bytes > peak) {
            track.peak = Some((bytes, time));
        }
        Some((track.process, bytes))
    }

    /// The greatest value of each counter of memory.
    pub fn memory_peaks(&self) -> impl Iterator<Item = (ProcessIndex, &str, u64, Nanos)> {
        let mut peaks: Vec<_> = self
            .memory
            .values()
            .filter_map(|track| {
                let (bytes, time) = track.peak?;
                Some((track.process, &*track.name, bytes, time))
            })
            .collect();
        peaks.sort();
        peaks.into_iter()
    }

    pub fn process(&self, index: ProcessIndex) -> ProcessLabel {
        self.processes.get(&index).cloned().unwrap_or_default()
    }

    pub fn queue(&self, index: QueueIndex) -> QueueLabel {
        self.queues.get(&index).cloned().unwrap_or_default()
    }
}
