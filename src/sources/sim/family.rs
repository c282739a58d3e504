//! The children of kernels, and the preemptions of their parents: the device saves the waiting workgroups, which makes room
//! for the children, and restores them. Where kernels take turns, it saves all workgroups of a kernel whose turn is over.

use super::machine::{Preempted, WaitsFor};
use super::time::{Moment, SimClock};
use gputrail_collect::correlation::HostThread;
use gputrail_record::{AgentId, Preemption, PreemptionKind, WorkId};

/// All workgroups of a kernel, in a record of its preemption.
const ALL_WORKGROUPS: [u32; 3] = [u32::MAX; 3];

/// The children of a kernel, and when it was saved and restored.
#[derive(Debug)]
pub(super) struct Family {
    grid: i64,
    pub(super) children: u32,
    preempted: Vec<(Moment, PreemptionKind, WaitsFor)>,
}

impl Family {
    pub(super) fn new(grid: i64, children: u32) -> Family {
        Family {
            grid,
            children,
            preempted: Vec::new(),
        }
    }

    /// Notes that the kernel was saved or restored.
    pub(super) fn note(&mut self, preempted: &Preempted) {
        let what = if preempted.saved {
            PreemptionKind::SAVE
        } else {
            PreemptionKind::RESTORE
        };
        let (at, waits_for) = (preempted.at, preempted.waits_for);
        self.preempted.push((at, what, waits_for));
    }

    /// Writes the preemptions of the workgroups of `work`.
    pub(super) fn record(
        &self,
        host: &mut HostThread,
        clock: &mut SimClock,
        (agent, work): (AgentId, WorkId),
    ) {
        for (at, what, waits_for) in &self.preempted {
            let mut record = Preemption::blank();
            (record.time, record.what) = (clock.read(*at), *what);
            (record.work, record.grid, record.agent) = (work, self.grid, agent);
            if *waits_for == WaitsFor::Turn {
                record.workgroup = ALL_WORKGROUPS;
                host.write(record);
                continue;
            }
            for workgroup in 0..self.children {
                record.workgroup = [workgroup, 0, 0];
                host.write(record);
            }
        }
    }
}
