//! Clocks: ticks on the hot path, converted to nanoseconds of CLOCK_BOOTTIME afterwards.
//!
//! The hot path calls [`now`] only. A capture stores its [`TickSource`], the [`frequency`] of its ticks, [`snapshot`]s
//! of the host's clocks (at the start, at least every second, at the end) and, for each agent, pairs of ticks and
//! device times. From these a reader builds one [`HostClock`] and one [`AgentClock`] per agent. Both state their error
//! bound; within the sum of both bounds, [`clamp`] moves work that appears to start before its enqueue.

mod agent;
mod clamp;
mod host;
mod line;
mod own;
mod snapshot;
mod system;
mod tick;

pub use agent::{AgentClock, ClockDomain};
pub use clamp::{Causality, Clamped, clamp, clamp_all};
pub use host::{HostClock, NoSnapshot};
#[cfg(all(not(loom), target_os = "linux"))]
pub use snapshot::measure_frequency;
pub use snapshot::{frequency, snapshot, snapshot_of, virtual_snapshot};
#[cfg(not(loom))]
pub use snapshot::{frequency_of, ticks_of};
pub use system::SystemClock;
pub(crate) use tick::now_ordered_of;
pub use tick::{CLOCK_VARIABLE, TickSource, UnknownTickSource, init, now, now_of, now_ordered};

#[cfg(test)]
mod tests;
