//! The common part of callbacks and records: how gputrail's records of work appear.

use crate::agents;
use core::mem::offset_of;
use gputrail_abi::activity::{End, Transfer, agent_of, local_memory, workgroup};
use gputrail_record::{Allocation, AllocationOperation, KernelDispatch, MemorySet, WorkHeader};
use gputrail_rocprofiler::{
    AgentId, Dim3, KernelDispatchInfo, MemoryAllocationOperation, MemoryCopyOperation, QueueId,
};

/// How a kernel was dispatched. A dimension of a workgroup that the runtime chose and does not tell is 1.
pub fn dispatch_info(kernel: &KernelDispatch) -> KernelDispatchInfo {
    let [x, y, z] = workgroup(kernel);
    let grid = kernel.grid.map(|size| size.try_into().unwrap_or(u32::MAX));
    KernelDispatchInfo {
        size: offset_of!(KernelDispatchInfo, reserved_padding) as u64,
        agent_id: agents::of_record(kernel.work.agent),
        queue_id: queue(&kernel.work),
        kernel_id: kernel.kernel.0.into(),
        dispatch_id: kernel.work.id.0,
        private_segment_size: kernel.private_memory,
        group_segment_size: local_memory(kernel),
        workgroup_size: Dim3 { x, y, z },
        grid_size: Dim3 {
            x: grid[0],
            y: grid[1],
            z: grid[2],
        },
        reserved_padding: [0; 56],
    }
}

/// The code object and the kernel that fills are dispatches of, whichever the agent: AMD's runtime fills with a kernel of its own.
/// gputrail's ids have 32 bits.
pub const FILL: u64 = 1 << 32;

/// How a fill appears: a dispatch of [`FILL`] with a work-item for each byte.
pub fn fill_info(fill: &MemorySet) -> KernelDispatchInfo {
    let kernel = KernelDispatch {
        work: fill.work,
        workgroup: [1; 3],
        grid: [fill.bytes, 1, 1],
        ..KernelDispatch::blank()
    };
    KernelDispatchInfo {
        kernel_id: FILL,
        ..dispatch_info(&kernel)
    }
}

/// The queue of work.
pub fn queue(work: &WorkHeader) -> QueueId {
    QueueId {
        handle: work.queue.0.into(),
    }
}

/// An end of a copy: agent and address.
pub fn end((agent, address): End) -> (AgentId, u64) {
    (agent.map_or_else(agents::host, agents::of_record), address)
}

/// The direction of a copy.
pub fn direction(copy: &Transfer) -> MemoryCopyOperation {
    match (copy.from.0, copy.to.0) {
        (None, None) => MemoryCopyOperation::HOST_TO_HOST,
        (None, Some(_)) => MemoryCopyOperation::HOST_TO_DEVICE,
        (Some(_), None) => MemoryCopyOperation::DEVICE_TO_HOST,
        (Some(_), Some(_)) => MemoryCopyOperation::DEVICE_TO_DEVICE,
    }
}

/// How an allocation or release appears; that of a pool is none.
pub fn allocation(allocation: &Allocation) -> Option<MemoryAllocationOperation> {
    match allocation.operation {
        AllocationOperation::ALLOCATE => Some(MemoryAllocationOperation::ALLOCATE),
        AllocationOperation::FREE => Some(MemoryAllocationOperation::FREE),
        _ => None,
    }
}

/// The agent of memory: where the runtime decides, the first one of the context.
pub fn agent_of_memory(allocation: &Allocation) -> AgentId {
    agents::of_record(agent_of(allocation))
}
