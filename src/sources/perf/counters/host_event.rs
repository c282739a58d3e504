//! The events of threads that are counted.

use gputrail_counters::{Architecture, Counted, Usage};

/// An event of the kernel (`PERF_TYPE_SOFTWARE`) or of the processor (`PERF_TYPE_HARDWARE`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct PerfEvent {
    pub name: &'static str,
    pub description: &'static str,
    pub usage: Usage,
    pub is_hardware: bool,
    /// Its number among those of its type.
    pub config: u64,
}

impl PerfEvent {
    const fn software(name: &'static str, config: u64, description: &'static str) -> PerfEvent {
        PerfEvent {
            name,
            description,
            usage: Usage::Items,
            is_hardware: false,
            config,
        }
    }

    const fn hardware(name: &'static str, config: u64, description: &'static str) -> PerfEvent {
        PerfEvent {
            is_hardware: true,
            ..PerfEvent::software(name, config, description)
        }
    }

    /// The event of a basic counter of the architecture.
    pub fn of(architecture: &Architecture, counted: Counted) -> Option<&'static PerfEvent> {
        let name = &architecture.counter(counted.0).name;
        EVENTS.iter().find(|event| event.name == name)
    }
}

/// The time that threads run.
pub(super) const TASK_CLOCK: &str = "TASK_CLOCK";

/// The events, with the names of `perf_event.h`.
pub(super) const EVENTS: [PerfEvent; 15] = [
    PerfEvent {
        usage: Usage::Nanoseconds,
        ..PerfEvent::software(
            TASK_CLOCK,
            1,
            "Time that the threads of the agent ran, in ns",
        )
    },
    PerfEvent {
        usage: Usage::Nanoseconds,
        ..PerfEvent::software(
            "CPU_CLOCK",
            0,
            "Time of the processors while the threads of the agent ran, in ns",
        )
    },
    PerfEvent::software("PAGE_FAULTS", 2, "Page faults of the threads of the agent"),
    PerfEvent::software(
        "CONTEXT_SWITCHES",
        3,
        "Context switches of the threads of the agent",
    ),
    PerfEvent::software(
        "CPU_MIGRATIONS",
        4,
        "Moves of the threads of the agent to another processor",
    ),
    PerfEvent::software(
        "PAGE_FAULTS_MIN",
        5,
        "Page faults that needed no data from a disk",
    ),
    PerfEvent::software(
        "PAGE_FAULTS_MAJ",
        6,
        "Page faults that needed data from a disk",
    ),
    PerfEvent::software(
        "ALIGNMENT_FAULTS",
        7,
        "Accesses that the kernel repaired because they were not aligned",
    ),
    PerfEvent::software(
        "EMULATION_FAULTS",
        8,
        "Instructions that the kernel emulated",
    ),
    PerfEvent {
        usage: Usage::Cycles,
        ..PerfEvent::hardware("CPU_CYCLES", 0, "Cycles of the processors")
    },
    PerfEvent::hardware("INSTRUCTIONS", 1, "Instructions that were retired"),
    PerfEvent::hardware("CACHE_REFERENCES", 2, "Accesses to the last level of cache"),
    PerfEvent::hardware("CACHE_MISSES", 3, "Misses of the last level of cache"),
    PerfEvent::hardware("BRANCH_INSTRUCTIONS", 4, "Branches that were retired"),
    PerfEvent::hardware("BRANCH_MISSES", 5, "Branches that were predicted wrongly"),
];
