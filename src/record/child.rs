//! Kernels that kernels launch, and the preemption of kernels that wait for them (CUPTI: `CUpti_ActivityCdpKernel`,
//! `CUpti_ActivityPreemption`).

use super::*;

/// The parent of a kernel that a kernel launched (CUPTI: the fields that `CUpti_ActivityCdpKernel` has beyond those of a
/// kernel). 48 bytes. It precedes the record of the child's enqueue on the same lane. Both have the call that launched
/// the outermost kernel.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ChildKernel {
    /// Kind [`Kind::CHILD_KERNEL`].
    pub header: Header,
    /// The child.
    pub work: WorkId,
    /// The kernel that launched it, as work.
    pub parent: WorkId,
    /// The id of the parent's grid (CUPTI: parentGridId).
    pub parent_grid: i64,
    /// The parent's kernel.
    pub parent_kernel: KernelId,
    /// The workgroup of the parent that launched the child, in x, y, z (CUPTI: parentBlockX to parentBlockZ).
    pub parent_workgroup: [u32; 3],
}
record!(ChildKernel, Kind::CHILD_KERNEL, 48);

open_enum! {
    /// The kind of a preemption (CUPTI: `CUpti_ActivityPreemptionKind`, same values).
    PreemptionKind(u8) {
        /// The workgroup was saved, and makes room.
        SAVE = 1, "save";
        /// The workgroup was restored, and goes on.
        RESTORE = 2, "restore";
    }
}

/// A workgroup was taken from the agent while it waits for its children, or all of a kernel while other kernels have their turn;
/// or it came back (CUPTI: `CUpti_ActivityPreemption`). 56 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Preemption {
    /// Kind [`Kind::PREEMPTION`].
    pub header: Header,
    /// When it happened.
    pub time: DeviceTime,
    /// The kernel, as work.
    pub work: WorkId,
    /// The id of its grid (CUPTI: gridId).
    pub grid: i64,
    /// The agent.
    pub agent: AgentId,
    /// The workgroup in x, y, z; all of the kernel's if each is 0xffffffff: other kernels have their turn.
    pub workgroup: [u32; 3],
    /// What happened.
    pub what: PreemptionKind,
    /// Reserved, 0.
    pub reserved: [u8; 7],
}
record!(Preemption, Kind::PREEMPTION, 56);
