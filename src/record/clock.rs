//! Clocks read together, from which ticks and device times become nanoseconds.

use super::*;

/// The host's clocks at one moment: ticks read before and after, system clocks between. 56 bytes.
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

/// An agent's clock was at `device` at some moment between two ticks. 40 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ClockPair {
    /// Kind [`Kind::CLOCK_PAIR`].
    pub header: Header,
    /// Ticks before.
    pub before: Ticks,
    /// Ticks after.
    pub after: Ticks,
    /// The agent's clock.
    pub device: DeviceTime,
    /// Whose clock.
    pub agent: AgentId,
    /// 0.
    pub reserved: u32,
}
record!(ClockPair, Kind::CLOCK_PAIR, 40);
