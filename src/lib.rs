//! gputrail: an activity-trace collector for GPUs.
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]
// What serves sources has nobody to call it where there are none.
#![cfg_attr(not(feature = "layer"), allow(dead_code))]

pub mod buffer;
#[cfg(all(feature = "capi", target_os = "linux", not(loom)))]
pub mod capi;
#[cfg(not(loom))]
pub mod capture;
pub mod clock;
#[cfg(not(loom))]
pub mod context;
#[cfg(not(loom))]
pub mod correlation;
#[cfg(not(loom))]
pub mod external;
#[cfg(not(loom))]
mod internal_thread;
#[cfg(not(loom))]
mod join;
#[cfg(not(loom))]
pub mod marker;
#[cfg(not(loom))]
pub mod names;
#[cfg(not(loom))]
mod number_map;
#[cfg(not(loom))]
pub mod operations;
#[cfg(all(feature = "perfetto", not(loom)))]
pub mod perfetto;
#[cfg(not(loom))]
pub mod process;
#[cfg(not(loom))]
mod rank;
pub mod record;
#[cfg(not(loom))]
pub mod recorder;
#[cfg(not(loom))]
pub mod sampling;
// For its model.
#[cfg(not(loom))]
pub mod scope;
#[cfg(all(not(loom), target_os = "linux"))]
pub mod session;
#[cfg(loom)]
#[path = "sampling/perf/signal_ring.rs"]
mod signal_ring;
pub mod source;
#[cfg(all(feature = "perfetto", not(loom)))]
pub mod summary;
#[cfg(not(loom))]
pub mod switchboard;
mod sync;
#[cfg(not(loom))]
mod system;
#[cfg(not(loom))]
pub mod timeline;
#[cfg(not(loom))]
pub mod times;
#[cfg(all(feature = "tool", target_os = "linux", not(loom)))]
pub mod tool;
