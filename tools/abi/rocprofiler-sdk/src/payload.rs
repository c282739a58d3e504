//! The common part of callbacks and records: how gputrail's records of work appear.

use crate::agents;
use core::mem::offset_of;
use gputrail_abi::records::agent_of;
use gputrail_record::{
    self as record, Allocation, AllocationOperation, KernelDispatch, MemoryCopy, MemorySet,
    TransferKind, WorkHeader,
};
use gputrail_rocprofiler::{
    AgentId, Dim3, KernelDispatchInfo, MemoryAllocationOperation, MemoryCopyOperation, QueueId,
};

/// How a kernel was dispatched. A dimension of a workgroup that the runtime chose and does not tell is 1.
pub fn dispatch_info(kernel: &KernelDispatch) -> KernelDispatchInfo {
    let local = u64::from(kernel.static_local_memory) + u64::from(kernel.dynamic_local_memory);
    let word = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let [x, y, z] = kernel.workgroup.map(|size| size.max(1));
    let grid = kernel.grid.map(word);
    KernelDispatchInfo {
        size: offset_of!(KernelDispatchInfo, reserved_padding) as u64,
        agent_id: agents::of_record(kernel.work.agent),
        queue_id: queue(&kernel.work),
        kernel_id: kernel.kernel.0.into(),
        dispatch_id: kernel.work.id.0,
        private_segment_size: kernel.private_memory,
        group_segment_size: word(local),
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

/// A copy: its direction, its ends with their addresses, and its bytes.
pub struct Transfer {
    /// The direction.
    pub operation: MemoryCopyOperation,
    /// The destination: agent and address.
    pub to: (AgentId, u64),
    /// The source: agent and address.
    pub from: (AgentId, u64),
    /// Bytes.
    pub bytes: u64,
}

/// How a copy appears. A map is a copy to the host, and its end one from it; the release of memory by a queue is none.
pub fn copy(copy: &MemoryCopy) -> Option<Transfer> {
    use {MemoryCopyOperation as Direction, TransferKind as Of};
    let operation = match copy.transfer {
        Of::HOST_TO_DEVICE | Of::HOST_TO_ARRAY | Of::UNMAP => Direction::HOST_TO_DEVICE,
        Of::DEVICE_TO_HOST | Of::ARRAY_TO_HOST | Of::MAP => Direction::DEVICE_TO_HOST,
        Of::HOST_TO_HOST => Direction::HOST_TO_HOST,
        Of::FREE => return None,
        Of::MIGRATE if !copy.destination_agent.is_some() => Direction::DEVICE_TO_HOST,
        Of::MIGRATE => Direction::HOST_TO_DEVICE,
        _ => Direction::DEVICE_TO_DEVICE,
    };
    let device = |agent: record::AgentId| match agent.is_some() {
        true => agents::of_record(agent),
        false => agents::of_record(copy.work.agent),
    };
    let (is_to_host, is_from_host) = match operation {
        Direction::HOST_TO_DEVICE => (false, true),
        Direction::DEVICE_TO_HOST => (true, false),
        Direction::HOST_TO_HOST => (true, true),
        _ => (false, false),
    };
    let end = |is_host, agent, address: u64, offset| {
        let agent = match is_host {
            true => agents::host(),
            false => device(agent),
        };
        let at = match address {
            0 => 0,
            known => known.wrapping_add(offset),
        };
        (agent, at)
    };
    Some(Transfer {
        operation,
        to: end(
            is_to_host,
            copy.destination_agent,
            copy.destination_address,
            copy.destination_offset,
        ),
        from: end(
            is_from_host,
            copy.source_agent,
            copy.source_address,
            copy.source_offset,
        ),
        bytes: copy.bytes,
    })
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
