//! Time: taken in ticks, told in nanoseconds of CLOCK_BOOTTIME.
//!
//! The hot path takes [`now`] and nothing else. A capture names its [`TickSource`] and the
//! [`frequency`] of its ticks, and holds [`snapshot`]s of the host's clocks (one at the start, one every
//! second or less, one at the end) and pairs of ticks and device times for each agent. From these a reader
//! builds one [`HostClock`] and an [`AgentClock`] for each agent. Both state how far they may be off;
//! within the sum of that, [`clamp`] corrects work that seems to start before it was enqueued.

mod agent;
mod clamp;
mod host;
mod line;
mod own;
mod snapshot;
mod system;
mod tick;

pub use agent::{AgentClock, Domain};
pub use clamp::{Causality, Clamped, clamp};
pub use host::{HostClock, NoSnapshot};
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) use snapshot::measure_frequency;
pub use snapshot::{frequency, snapshot, snapshot_of, virtual_snapshot};
pub use system::SystemClock;
pub(crate) use tick::now_ordered_of;
pub use tick::{CLOCK_VARIABLE, TickSource, UnknownTickSource, init, now, now_of, now_ordered};

#[cfg(test)]
mod tests;
