//! Kernels that kernels launch: each workgroup of the parent launches one child when half of the parent's work is done,
//! and waits for it.

use super::counters::DispatchCounters;
use super::device::QueueChoice;
use super::family::Family;
use super::kernels::{SimLaunch, SimModule};
use super::runtime::EnqueuedWork;
use super::thread::SimThread;
use gputrail_collect::correlation::CallInProgress;
use gputrail_record::{ChildKernel, KernelDispatch};

/// The workgroups of a child.
const CHILD_GROUPS: [u32; 3] = [24, 1, 1];

impl SimThread {
    /// Enqueues the children that the workgroups of `parent` launch, if its kernel has any.
    pub(super) fn enqueue_children(
        &mut self,
        call: &CallInProgress,
        module: &SimModule,
        launch: SimLaunch,
        (parent, dispatch): (&EnqueuedWork, &KernelDispatch),
        kernel: usize,
    ) {
        let child = module.child(kernel);
        let children = child.map_or(0, |_| launch.groups[0]);
        let family = Family::new(dispatch.grid_id, children);
        self.runtime.set_family(family);
        let Some(child) = child else {
            return;
        };
        for workgroup in 0..launch.groups[0] {
            let launch = SimLaunch {
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
        module: &SimModule,
        index: usize,
        launch: SimLaunch,
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
        self.runtime.set_family(Family::new(record.grid_id, 0));
        record.work = enqueued.work;
        child.work = enqueued.work.id;
        let mut host = self.host();
        host.write(child);
        runtime.write_work(&mut host, record);
        drop(host);
        self.kernel_launched(module, index, launch, (&enqueued, demand), chosen);
    }
}
