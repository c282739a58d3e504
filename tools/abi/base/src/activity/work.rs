//! Work: its times, the geometry of kernels, the ends of copies.

use core::ops::Deref;
use gputrail_record::{
    AgentId, KernelDispatch, MemoryCopy, MemoryKind, TransferKind, Unfinished, WorkRecord, flags,
};
use gputrail_tool::WorkTimes;

/// A record of work with its times.
#[derive(Copy, Clone)]
pub struct Joined<'r, R> {
    /// The record.
    pub record: &'r R,
    /// Its times; 0 where they are not known.
    pub times: WorkTimes,
}

impl<R> Deref for Joined<'_, R> {
    type Target = R;

    fn deref(&self) -> &R {
        self.record
    }
}

impl<R: WorkRecord> Joined<'_, R> {
    /// Whether the work has ended. Records also come of work that was unfinished when the program ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.times.unfinished, Unfinished::NO | Unfinished::NO_TIMES)
    }

    /// Whether the call has returned before the work ended.
    pub fn is_asynchronous(&self) -> bool {
        self.record.header().flags & flags::ASYNCHRONOUS != 0
    }
}

/// The work-items of a workgroup; 1 in a dimension that the runtime chose and does not tell.
pub fn workgroup(kernel: &KernelDispatch) -> [u32; 3] {
    kernel.workgroup.map(|size| size.max(1))
}

/// The number of workgroups.
pub fn workgroups(kernel: &KernelDispatch) -> [u64; 3] {
    let size = workgroup(kernel);
    core::array::from_fn(|axis| kernel.grid[axis].div_ceil(size[axis].into()))
}

/// The local memory of a workgroup, in bytes: that of the kernel, and that of the launch.
pub fn local_memory(kernel: &KernelDispatch) -> u32 {
    let of_launch = kernel.dynamic_local_memory;
    kernel.static_local_memory.saturating_add(of_launch)
}

/// Whether a copy is a migration: pages of managed memory move because the host or a device accesses
/// them, without a call.
pub fn is_migration(copy: &MemoryCopy) -> bool {
    let ends = [copy.source_memory, copy.destination_memory];
    !copy.work.correlation.is_some() && ends == [MemoryKind::MANAGED; 2]
}

/// An end of a copy: the agent, which is none for the host, and the address, 0 if it is not known.
pub type End = (Option<AgentId>, u64);

/// A copy as other APIs have it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The direction. A map is a copy to the host, and its end one from it.
    pub kind: TransferKind,
    /// The source.
    pub from: End,
    /// The destination.
    pub to: End,
}

impl Transfer {
    /// How a copy appears; the release of memory by a queue is none.
    pub fn of(copy: &MemoryCopy) -> Option<Transfer> {
        use TransferKind as Kind;
        let kind = match copy.transfer {
            Kind::FREE => return None,
            Kind::MAP => Kind::DEVICE_TO_HOST,
            Kind::UNMAP => Kind::HOST_TO_DEVICE,
            other => other,
        };
        let (is_from_host, is_to_host) = match kind {
            Kind::HOST_TO_DEVICE | Kind::HOST_TO_ARRAY => (true, false),
            Kind::DEVICE_TO_HOST | Kind::ARRAY_TO_HOST => (false, true),
            Kind::HOST_TO_HOST => (true, true),
            Kind::MIGRATE if copy.destination_agent.is_some() => (true, false),
            Kind::MIGRATE => (false, true),
            _ => (false, false),
        };
        let agent = |is_host: bool, known: AgentId| match known.is_some() {
            _ if is_host => None,
            true => Some(known),
            false => Some(copy.work.agent),
        };
        let at = |address: u64, offset| match address {
            0 => 0,
            known => known.wrapping_add(offset),
        };
        let from = at(copy.source_address, copy.source_offset);
        let to = at(copy.destination_address, copy.destination_offset);
        Some(Transfer {
            kind,
            from: (agent(is_from_host, copy.source_agent), from),
            to: (agent(is_to_host, copy.destination_agent), to),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(transfer: TransferKind) -> MemoryCopy {
        let mut copy = MemoryCopy::blank();
        copy.transfer = transfer;
        copy.work.agent = AgentId(3);
        (copy.source_address, copy.source_offset) = (0x100, 4);
        (copy.destination_address, copy.destination_offset) = (0, 8);
        copy
    }

    #[test]
    fn maps_and_migrations_have_a_direction() {
        let ends = |copy: &MemoryCopy| {
            let transfer = Transfer::of(copy)?;
            Some((transfer.kind, transfer.from.0, transfer.to.0))
        };
        let agent = Some(AgentId(3));
        for (of, kind, from, to) in [
            (TransferKind::MAP, TransferKind::DEVICE_TO_HOST, agent, None),
            (
                TransferKind::UNMAP,
                TransferKind::HOST_TO_DEVICE,
                None,
                agent,
            ),
            (TransferKind::MIGRATE, TransferKind::MIGRATE, agent, None),
            (
                TransferKind::HOST_TO_HOST,
                TransferKind::HOST_TO_HOST,
                None,
                None,
            ),
            (
                TransferKind::ARRAY_TO_ARRAY,
                TransferKind::ARRAY_TO_ARRAY,
                agent,
                agent,
            ),
        ] {
            assert_eq!(ends(&copy(of)), Some((kind, from, to)));
        }
        assert_eq!(ends(&copy(TransferKind::FREE)), None);
        let mut to_device = copy(TransferKind::MIGRATE);
        to_device.destination_agent = AgentId(5);
        let wanted = (TransferKind::MIGRATE, None, Some(AgentId(5)));
        assert_eq!(ends(&to_device), Some(wanted));
    }

    #[test]
    fn offsets_count_from_addresses_that_are_known() {
        let transfer = Transfer::of(&copy(TransferKind::DEVICE_TO_HOST)).unwrap();
        assert_eq!((transfer.from.1, transfer.to.1), (0x104, 0));
    }

    #[test]
    fn a_workgroup_that_the_runtime_chose_counts_as_one_work_item() {
        let mut kernel = KernelDispatch::blank();
        (kernel.workgroup, kernel.grid) = ([64, 0, 0], [100, 3, 1]);
        assert_eq!(workgroup(&kernel), [64, 1, 1]);
        assert_eq!(workgroups(&kernel), [2, 3, 1]);
    }
}
