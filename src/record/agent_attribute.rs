//! Attributes of agents beyond those that [`Agent`] has (CUPTI: `CUpti_ActivityDevice2`,
//! `CUpti_ActivityDeviceAttribute`).

use super::*;

open_enum! {
    /// An attribute of an agent, and its unit. An agent has those that its runtime or the system reports.
    AgentAttributeKind(u16) {
        /// Constant memory that a kernel can use, in bytes.
        CONSTANT_MEMORY = 1, "constant memory bytes";
        /// The last cache before global memory (CUPTI: l2CacheSize), of processors that of the second level, in bytes.
        L2_CACHE = 2, "L2 cache bytes";
        /// The line of that cache, in bytes.
        CACHE_LINE = 3, "cache line bytes";
        /// The bandwidth of global memory, in bytes per second.
        MEMORY_BANDWIDTH = 4, "memory bandwidth bytes per second";
        /// The largest workgroup in x, in work-items.
        MAX_WORKGROUP_X = 5, "max workgroup x";
        /// The largest workgroup in y, in work-items.
        MAX_WORKGROUP_Y = 6, "max workgroup y";
        /// The largest workgroup in z, in work-items.
        MAX_WORKGROUP_Z = 7, "max workgroup z";
        /// The largest grid in x, in workgroups.
        MAX_GRID_X = 8, "max grid x";
        /// The largest grid in y, in workgroups.
        MAX_GRID_Y = 9, "max grid y";
        /// The largest grid in z, in workgroups.
        MAX_GRID_Z = 10, "max grid z";
        /// Work-items in a wave (CUPTI: numThreadsPerWarp).
        WAVE_SIZE = 11, "wave size";
        /// Waves that a compute unit holds at a time.
        MAX_WAVES = 12, "max waves per compute unit";
        /// Workgroups that a compute unit holds at a time.
        MAX_WORKGROUPS = 13, "max workgroups per compute unit";
        /// Registers of 32 bits that a workgroup can have.
        MAX_REGISTERS_OF_WORKGROUP = 14, "max registers per workgroup";
        /// Registers of 32 bits of a compute unit.
        REGISTERS = 15, "registers per compute unit";
        /// Local memory that a workgroup can have, in bytes.
        MAX_LOCAL_MEMORY_OF_WORKGROUP = 16, "max local memory per workgroup bytes";
        /// Engines that copy while kernels run.
        COPY_ENGINES = 17, "copy engines";
        /// The most instructions that a compute unit issues in a cycle.
        MAX_INSTRUCTIONS_PER_CYCLE = 18, "max instructions per cycle";
        /// Whether memory corrects errors: 1 or 0.
        ECC = 19, "ECC";
        /// The major number of the compute capability.
        COMPUTE_CAPABILITY_MAJOR = 20, "compute capability major";
        /// The minor number of the compute capability.
        COMPUTE_CAPABILITY_MINOR = 21, "compute capability minor";
        /// The vendor's number on the PCI bus.
        PCI_VENDOR = 22, "PCI vendor";
        /// The device's number on the PCI bus.
        PCI_DEVICE = 23, "PCI device";
    }
}

/// One attribute of an agent. 24 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct AgentAttribute {
    /// Kind [`Kind::AGENT_ATTRIBUTE`].
    pub header: Header,
    /// The agent.
    pub agent: AgentId,
    /// The attribute.
    pub what: AgentAttributeKind,
    /// Reserved, 0.
    pub reserved: u16,
    /// The value, in the unit of the attribute.
    pub value: u64,
}
record!(AgentAttribute, Kind::AGENT_ATTRIBUTE, 24);
