//! The state of a device, and of the memory that it shares with the host (CUPTI: `CUpti_ActivityEnvironment`,
//! `CUpti_ActivityUnifiedMemoryCounter2`).

use super::*;

open_enum! {
    /// The quantity of an environment record, and its unit.
    EnvironmentKind(u8) {
        /// The clock of the compute units, in MHz.
        CLOCK = 1, "clock MHz";
        /// The clock of the memory, in MHz.
        MEMORY_CLOCK = 2, "memory clock MHz";
        /// The PCIe generation of the link.
        PCIE_GENERATION = 3, "PCIe generation";
        /// The lanes of the PCIe link.
        PCIE_WIDTH = 4, "PCIe lanes";
        /// The reasons for lower clocks, in bits of the vendor.
        THROTTLE_REASONS = 5, "throttle reasons";
        /// The temperature, in degrees Celsius.
        TEMPERATURE = 6, "temperature C";
        /// The power drawn, in milliwatts.
        POWER = 7, "power mW";
        /// The limit of the power drawn, in milliwatts.
        POWER_LIMIT = 8, "power limit mW";
        /// The speed of the fan, in percent of the highest.
        FAN_SPEED = 9, "fan %";
    }
}

/// A reading of one quantity of an agent. 32 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Environment {
    /// Kind [`Kind::ENVIRONMENT`].
    pub header: Header,
    /// When it was read.
    pub time: Ticks,
    /// The value, in the unit of the quantity.
    pub value: u64,
    /// The agent.
    pub agent: AgentId,
    /// The quantity.
    pub what: EnvironmentKind,
    /// Reserved, 0.
    pub reserved: [u8; 3],
}
record!(Environment, Kind::ENVIRONMENT, 32);

open_enum! {
    /// The event that a unified-memory counter counts (CUPTI: `CUpti_ActivityUnifiedMemoryCounterKind`, same values).
    /// Pages that moved are copies ([`MemoryCopy`]).
    UnifiedMemoryCounterKind(u8) {
        /// Unknown.
        UNKNOWN = 0, "unified memory";
        /// The host accessed pages that are on a device.
        HOST_PAGE_FAULT = 3, "host page faults";
        /// A device accessed pages that are elsewhere.
        DEVICE_PAGE_FAULT = 4, "device page faults";
        /// A page moved to and fro.
        THRASHING = 5, "thrashing";
        /// Accesses of a device were delayed to prevent thrashing.
        THROTTLING = 6, "throttling";
        /// Pages were mapped instead of moved.
        REMOTE_MAP = 7, "remote maps";
    }
}

/// Page faults and similar events of managed memory. 56 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct UnifiedMemoryCounter {
    /// Kind [`Kind::UNIFIED_MEMORY_COUNTER`].
    pub header: Header,
    /// When the first event occurred.
    pub start: Ticks,
    /// When the last one was handled.
    pub end: Ticks,
    /// The number of page faults, or CUPTI's value of the counter.
    pub value: u64,
    /// The address of the pages.
    pub address: u64,
    /// The agent that caused the events; none for the host.
    pub source_agent: AgentId,
    /// The other agent, or none.
    pub destination_agent: AgentId,
    /// Flags of CUPTI.
    pub flags: u32,
    /// The event.
    pub what: UnifiedMemoryCounterKind,
    /// Reserved, 0.
    pub reserved: [u8; 3],
}
record!(UnifiedMemoryCounter, Kind::UNIFIED_MEMORY_COUNTER, 56);
