//! Time: taken in ticks, told in nanoseconds of CLOCK_BOOTTIME.
//!
//! The hot path takes [`now`]; everything else happens behind it. A capture holds snapshots of
//! the host's clocks and pairs of ticks and device times; a reader builds the conversions from them.

mod clamp;
mod snapshot;
mod system;
mod tick;

pub use clamp::{Causality, Clamped, clamp};
pub use snapshot::{frequency, snapshot, virtual_snapshot};
pub use system::SystemClock;
pub use tick::{CLOCK_VARIABLE, TickSource, UnknownTickSource, init, now, now_ordered};
