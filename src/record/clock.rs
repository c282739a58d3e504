//! Simultaneous clock readings, from which ticks and device times are converted to nanoseconds.

use super::*;

/// A reading of the host's clocks, with the ticks before and after it. 56 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ClockSnapshot {
    /// Kind [`Kind::CLOCK_SNAPSHOT`].
    pub header: Header,
    /// Ticks before the clocks were read.
    pub before: Ticks,
    /// Ticks after the clocks were read.
    pub after: Ticks,
    /// CLOCK_MONOTONIC.
    pub monotonic: Nanos,
    /// CLOCK_MONOTONIC_RAW.
    pub monotonic_raw: Nanos,
    /// CLOCK_BOOTTIME, the trace's clock.
    pub boottime: Nanos,
    /// CLOCK_REALTIME.
    pub realtime: Nanos,
}
record!(ClockSnapshot, Kind::CLOCK_SNAPSHOT, 56);

/// A reading of an agent's clock at some moment between two ticks. 40 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ClockPair {
    /// Kind [`Kind::CLOCK_PAIR`].
    pub header: Header,
    /// Ticks before.
    pub before: Ticks,
    /// Ticks after.
    pub after: Ticks,
    /// The time of the agent's clock.
    pub device: DeviceTime,
    /// The agent.
    pub agent: AgentId,
    /// Reserved, 0.
    pub reserved: u32,
}
record!(ClockPair, Kind::CLOCK_PAIR, 40);
