//! Kernels that kernels launched: what they say of their parents, beside their own work. Preemptions are instants.

use std::io;

use crate::model::{
    EventArgument, Instant, Parent, ProcessIndex, Stream, Track, TrackIndex, TrackKind, Value,
};
use gputrail_capture::{Metadata, kernel_names};
use gputrail_record::number_map::NumberMap;
use gputrail_record::{ChildKernel, KernelId, Nanos, Preemption, WorkId};

/// Children whose work comes, at most.
const MAX_CHILDREN: usize = 1 << 16;

/// The children and preemptions of one process.
#[derive(Debug)]
pub(super) struct Children {
    process: ProcessIndex,
    of_work: NumberMap<WorkId, ChildKernel>,
    /// The track of preemptions.
    preemptions: Option<TrackIndex>,
}

/// What a child says of its parent.
pub(super) struct ChildOf {
    kernel: String,
    grid: i64,
    workgroup: String,
}

impl ChildOf {
    pub fn arguments(&self) -> [(&str, Value<'_>); 3] {
        [
            ("parent", Value::Text(&self.kernel)),
            ("parent_grid", Value::Int(self.grid)),
            ("parent_workgroup", Value::Text(&self.workgroup)),
        ]
    }
}

impl Children {
    pub fn new(process: ProcessIndex) -> Children {
        Children {
            process,
            of_work: NumberMap::default(),
            preemptions: None,
        }
    }

    /// Keeps the parent of a kernel until the kernel is passed on.
    pub fn add(&mut self, child: &ChildKernel) {
        if self.of_work.len() >= MAX_CHILDREN {
            // Children of work that was dropped.
            self.of_work.clear();
        }
        self.of_work.insert(child.work, *child);
    }

    /// The parent of a piece of work, if a kernel launched it.
    pub fn take(&mut self, metadata: &Metadata, work: WorkId) -> Option<ChildOf> {
        if self.of_work.is_empty() {
            return None;
        }
        let child = self.of_work.remove(&work)?;
        Some(ChildOf {
            kernel: kernel_name(metadata, child.parent_kernel),
            grid: child.parent_grid,
            workgroup: place(child.parent_workgroup),
        })
    }

    /// Passes on a preemption on the agent with this title at `time`.
    pub fn preempted(
        &mut self,
        stream: &mut Stream<'_>,
        title: &str,
        record: &Preemption,
        time: Nanos,
    ) -> io::Result<()> {
        let track = match self.preemptions {
            Some(track) => track,
            None => *self.preemptions.insert(stream.new_track(&Track {
                parent: Parent::Process(self.process),
                name: "preemptions",
                kind: TrackKind::Ranges,
                order: None,
            })?),
        };
        let workgroup = place(record.workgroup);
        let arguments = [
            ("device", Value::Text(title)),
            ("grid", Value::Int(record.grid)),
            ("workgroup", Value::Text(&workgroup)),
        ];
        stream.consumer.instant(&Instant {
            track,
            name: record.what.name().unwrap_or("preemption"),
            category: "preemption",
            time,
            arguments: &arguments.map(|(name, value)| EventArgument { name, value }),
            flows: &[],
        })
    }
}

fn kernel_name(metadata: &Metadata, kernel: KernelId) -> String {
    let Some(symbol) = metadata.kernels.get(&kernel) else {
        return "unknown kernel".to_owned();
    };
    let name = metadata.string(symbol.name);
    kernel_names::kernel_name(name, metadata.string(symbol.demangled)).to_owned()
}

/// A workgroup, or all of them.
fn place(workgroup: [u32; 3]) -> String {
    match workgroup {
        [u32::MAX, u32::MAX, u32::MAX] => "all".to_owned(),
        [x, y, z] => format!("{x}, {y}, {z}"),
    }
}
