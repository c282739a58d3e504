//! Work of agents: kernels, copies, fills, barriers.

use super::{AgentIndex, Argument, EventId, ProcessIndex, QueueIndex, StageId};
use crate::record::{CorrelationId, Nanos, ThreadId};

/// What kind of work an event is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum WorkKind {
    /// A kernel.
    Kernel,
    /// A copy, map, unmap or migration.
    Copy,
    /// A fill.
    Set,
    /// A marker or barrier.
    Synchronization,
    /// Its enqueue was not recorded.
    Unknown,
}

impl WorkKind {
    /// The name of fills.
    pub const FILL: &'static str = "fill";
    /// The name of work whose enqueue was not recorded.
    pub const NO_ENQUEUE: &'static str = "work without its enqueue";
}

/// A kernel, or a kind of copy, fill or barrier.
#[derive(Copy, Clone, Debug)]
pub struct Stage<'a> {
    /// Its id. A consumer may remember by it, and by the process, what it made of the rest.
    pub id: StageId,
    /// Its kind.
    pub kind: WorkKind,
    /// Its name.
    pub name: &'a str,
    /// The full name of a function of C++, if it differs.
    pub demangled: &'a str,
    /// The architecture that it is compiled for; may be empty.
    pub architecture: &'a str,
}

/// Size of a launch.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Launch {
    /// Work-items in x, y, z.
    pub grid: [u64; 3],
    /// Work-items per workgroup; 0 if unknown.
    pub workgroup: [u32; 3],
}

impl Launch {
    /// Workgroups in x, y, z; none if the size of a workgroup is not known.
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

/// Resources of its agent that a kernel takes. 0 is unknown, or none.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Resources {
    /// Registers per work-item.
    pub registers: u32,
    /// Local memory that the kernel declares, bytes per workgroup.
    pub static_local: u32,
    /// Local memory that the launch added, bytes per workgroup.
    pub dynamic_local: u32,
    /// Private memory, bytes per work-item.
    pub private: u32,
}

/// A piece of work. Times are CLOCK_BOOTTIME.
#[derive(Copy, Clone, Debug)]
pub struct Work<'a> {
    /// The process that enqueued it.
    pub process: ProcessIndex,
    /// The thread that enqueued it; none if that is not known.
    pub thread: ThreadId,
    /// The call that enqueued it.
    pub correlation: CorrelationId,
    /// Its id; none if the file that it comes from gives none.
    pub event: Option<EventId>,
    /// The agent that it ran on.
    pub agent: AgentIndex,
    /// The queue that it ran on.
    pub queue: QueueIndex,
    /// Number of its stream in its process.
    pub stream: u32,
    /// What it is.
    pub stage: Stage<'a>,
    /// When the call that enqueued it began.
    pub enqueued: Option<Nanos>,
    /// When the runtime took it in.
    pub queued: Option<Nanos>,
    /// When it was passed to the agent.
    pub submitted: Option<Nanos>,
    /// When it ran; none if that is not known or it did not end.
    pub interval: Option<(Nanos, Nanos)>,
    /// Where it is shown to begin: at its start, or where that is not known, where it was enqueued.
    pub start: Option<Nanos>,
    /// How long it is shown to last, ns.
    pub duration: Option<u64>,
    /// Why `interval` is not known, in words.
    pub unfinished: Option<&'a str>,
    /// Size of the launch, of kernels.
    pub launch: Option<Launch>,
    /// Resources of the agent that it takes, of kernels.
    pub resources: Resources,
    /// Bytes moved or set.
    pub bytes: u64,
    /// Status of the runtime, negative for errors.
    pub status: i32,
    /// The work that it waited for.
    pub waits: &'a [EventId],
    /// Its samples, if it was sampled.
    pub samples: Option<&'a WorkSamples>,
    /// Further values.
    pub arguments: &'a [Argument<'a>],
}

/// The samples of a piece of work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkSamples {
    /// All of them.
    pub samples: u64,
    /// The dropped ones among them.
    pub dropped: u64,
    /// What its waves mostly did, in words; may be empty.
    pub leading: String,
}
