//! Work of agents: kernels, copies, fills, barriers.

use super::{AgentIndex, EventArgument, EventId, ProcessIndex, QueueIndex, StageId};
use gputrail_record::{CorrelationId, Nanos, ThreadId, Unfinished};

/// The kind of a piece of work.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum WorkKind {
    /// A kernel.
    Kernel,
    /// A copy, map, unmap or migration.
    Copy,
    /// A fill.
    Set,
    /// A marker or barrier.
    Synchronization,
    /// A launch of a graph or command buffer, from its first node to its last one. The nodes are work of their own.
    Graph,
    /// Work whose enqueue was not recorded.
    #[default]
    Unknown,
}

impl Work<'_> {
    /// Value of [`Work::unfinished`] in a recording that lacks completions.
    pub const UNRECORDED: &'static str =
        "no completion was recorded: it was overwritten or lost, or the work had not completed";

    /// When it ran, as far as it was measured: its interval, or from a measured start to the end of the recording if it
    /// was still running. The start and the duration of other work without an end say where it is shown, and not that
    /// it ever started.
    pub fn measured(&self) -> Option<(Nanos, Nanos)> {
        self.interval.or_else(|| {
            let was_running = self.unfinished == Unfinished::AT_END.name();
            let (start, ran) = self.start.zip(self.duration.filter(|ran| *ran > 0))?;
            was_running.then_some((start, Nanos(start.0.saturating_add(ran))))
        })
    }
}

impl WorkKind {
    /// The name of fills.
    pub const FILL: &'static str = "fill";
    /// The name of launches of graphs.
    pub const GRAPH: &'static str = "graph launch";
    /// The name of work whose enqueue was not recorded.
    pub const NO_ENQUEUE: &'static str = "work without its enqueue";

    /// Whether such work keeps an agent busy by itself.
    pub fn is_busy(self) -> bool {
        !matches!(self, WorkKind::Synchronization | WorkKind::Graph)
    }
}

/// A kernel, or a kind of copy, fill or barrier.
#[derive(Copy, Clone, Debug, Default)]
pub struct Stage<'a> {
    /// Its id, by which a consumer may find again what it derived from the other fields for this process.
    pub id: StageId,
    /// Its kind.
    pub kind: WorkKind,
    /// Its name.
    pub name: &'a str,
    /// The full name of a C++ function, if it differs.
    pub demangled: &'a str,
    /// The architecture that it was compiled for; may be empty.
    pub architecture: &'a str,
}

/// The size of a launch.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Launch {
    /// Work-items in x, y, z.
    pub grid: [u64; 3],
    /// Work-items per workgroup; 0 if unknown.
    pub workgroup: [u32; 3],
}

impl Launch {
    /// Workgroups in x, y, z; `None` if the size of a workgroup is not known.
    pub fn workgroups(&self) -> Option<[u32; 3]> {
        let mut groups = [0; 3];
        for ((groups, items), size) in groups.iter_mut().zip(self.grid).zip(self.workgroup) {
            if size == 0 {
                return None;
            }
            *groups = u32::try_from(items.div_ceil(u64::from(size))).unwrap_or(u32::MAX);
        }
        Some(groups)
    }
}

/// Resources of the agent that a kernel uses. 0 means unknown or none.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Resources {
    /// Registers per work-item. Where scalar ones and those of matrix instructions are counted apart, the ordinary ones.
    pub registers: u32,
    /// Registers per work-item in which matrix instructions accumulate (AMD: accumulation VGPRs).
    pub accumulation_registers: u32,
    /// Scalar registers per wave (AMD: SGPRs).
    pub scalar_registers: u32,
    /// Local memory that the kernel declares, bytes per workgroup.
    pub static_local: u32,
    /// Local memory that the launch added, bytes per workgroup.
    pub dynamic_local: u32,
    /// Private memory, bytes per work-item.
    pub private: u32,
}

/// A piece of work. Times are in CLOCK_BOOTTIME.
#[derive(Copy, Clone, Debug, Default)]
pub struct Work<'a> {
    /// The process that enqueued it.
    pub process: ProcessIndex,
    /// The thread that enqueued it; none if unknown.
    pub thread: ThreadId,
    /// The call that enqueued it.
    pub correlation: CorrelationId,
    /// Its id; `None` if the file it comes from gives none.
    pub event: Option<EventId>,
    /// The agent that it ran on.
    pub agent: AgentIndex,
    /// The queue that it ran on.
    pub queue: QueueIndex,
    /// The number of its stream in its process.
    pub stream: u32,
    /// The kernel, or the kind of the copy, fill or barrier.
    pub stage: Stage<'a>,
    /// When the call that enqueued it began.
    pub enqueued: Option<Nanos>,
    /// When the runtime accepted it.
    pub queued: Option<Nanos>,
    /// When it was passed to the agent.
    pub submitted: Option<Nanos>,
    /// When it ran; `None` if unknown or if it did not end.
    pub interval: Option<(Nanos, Nanos)>,
    /// The time at which it is shown to begin: its start, or its enqueue if the start is unknown.
    pub start: Option<Nanos>,
    /// The duration that is shown, ns.
    pub duration: Option<u64>,
    /// Why `interval` is not known, as text, such as [`Work::UNRECORDED`].
    pub unfinished: Option<&'a str>,
    /// The size of the launch, for kernels.
    pub launch: Option<Launch>,
    /// The resources of the agent that it uses, for kernels.
    pub resources: Resources,
    /// The number of bytes copied or filled.
    pub bytes: u64,
    /// The status of the runtime; negative for errors.
    pub status: i32,
    /// The work that it waited for.
    pub waits: &'a [EventId],
    /// Its samples, if it was sampled.
    pub samples: Option<&'a WorkSamples>,
    /// Further values.
    pub arguments: &'a [EventArgument<'a>],
}

/// The samples of a piece of work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkSamples {
    /// The number of all samples.
    pub samples: u64,
    /// The number of dropped samples.
    pub dropped: u64,
    /// The most frequent instruction and stall reason of its samples, as text; may be empty.
    pub leading: String,
}
