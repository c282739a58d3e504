//! Kernels that kernels launch: each workgroup of the parent launches one child when half of the parent's work is done,
//! and waits for it. The device saves the waiting workgroups, which makes room for the children, and restores them. Where
//! kernels take turns, it saves all workgroups of a kernel whose turn is over.

use super::counters::DispatchCounters;
use super::device::QueueChoice;
use super::enqueue::{Launch, Module};
use super::machine::{Preempted, WaitsFor, WorkIndex};
use super::runtime::{EnqueuedWork, Runtime};
use super::thread::Thread;
use super::time::{DeviceClock, Moment};
use gputrail_collect::correlation::{CallInProgress, HostThread};
use gputrail_record::{AgentId, ChildKernel, KernelDispatch, Preemption, PreemptionKind, WorkId};

/// All workgroups of a kernel, in a record of its preemption.
const ALL_WORKGROUPS: [u32; 3] = [u32::MAX; 3];
/// The workgroups of a child.
const CHILD_GROUPS: [u32; 3] = [24, 1, 1];

/// The children of a kernel, and when it was saved and restored.
#[derive(Debug, Default)]
pub(super) struct Family {
    grid: i64,
    children: u32,
    preempted: Vec<(Moment, PreemptionKind, WaitsFor)>,
}

impl Thread {
    /// Enqueues the children that the workgroups of `parent` launch, if its kernel has any.
    pub(super) fn enqueue_children(
        &mut self,
        call: &CallInProgress,
        module: &Module,
        launch: Launch,
        (parent, dispatch): (&EnqueuedWork, &KernelDispatch),
        kernel: usize,
    ) {
        let child = module.child(kernel);
        self.runtime.set_family(Family {
            grid: dispatch.grid_id,
            children: child.map_or(0, |_| launch.groups[0]),
            preempted: Vec::new(),
        });
        let Some(child) = child else {
            return;
        };
        for workgroup in 0..launch.groups[0] {
            let launch = Launch {
                groups: CHILD_GROUPS,
                managed: None,
                ..launch
            };
            let mut record = ChildKernel::blank();
            record.parent = parent.work.id;
            record.parent_grid = dispatch.grid_id;
            record.parent_kernel = dispatch.kernel;
            record.parent_workgroup = [workgroup, 0, 0];
            self.enqueue_child(call, module, child, launch, (parent, record));
        }
    }

    fn enqueue_child(
        &mut self,
        call: &CallInProgress,
        module: &Module,
        index: usize,
        launch: Launch,
        (parent, mut child): (&EnqueuedWork, ChildKernel),
    ) {
        let mut record = self.kernel_record(module, index, launch);
        let demand = self.kernel_demand(module, index, launch);
        // Counters of dispatches are those of kernels that the host enqueues.
        let chosen = DispatchCounters::default();
        let runtime = self.runtime.clone();
        let enqueued = runtime.enqueue(
            &mut self.host(),
            call,
            launch.stream,
            QueueChoice::Device,
            demand,
            Some(parent.index),
        );
        self.runtime.set_family(Family {
            grid: record.grid_id,
            ..Family::default()
        });
        record.work = enqueued.work;
        child.work = enqueued.work.id;
        let mut host = self.host();
        host.write(child);
        runtime.write_work(&mut host, record);
        drop(host);
        self.kernel_launched(module, index, launch, (&enqueued, demand), chosen);
    }
}

impl Runtime {
    /// Notes that work was saved or restored. Its children are queued and submitted when it is saved.
    pub(super) fn note_preempted(&self, preempted: &Preempted) {
        let Preempted {
            work,
            at,
            saved,
            waits_for,
        } = *preempted;
        let mut works = self.works.borrow_mut();
        let Some(family) = &mut works.live_mut(work).family else {
            return;
        };
        let what = if saved {
            PreemptionKind::SAVE
        } else {
            PreemptionKind::RESTORE
        };
        family.preempted.push((at, what, waits_for));
        if waits_for != WaitsFor::Children {
            return;
        }
        let children = family.children as usize;
        for child in work.0 + 1..=work.0 + children {
            if saved && let Some(child) = works.get_mut(WorkIndex(child)) {
                (child.queued, child.submitted) = (at, at);
            }
        }
    }
}

impl Family {
    /// Writes the preemptions of the workgroups of `work`.
    pub(super) fn record(
        &self,
        host: &mut HostThread,
        clock: &mut DeviceClock,
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
