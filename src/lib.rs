//! gputrail: an activity-trace collector for GPUs.
//!
//! The library is divided into rooms. Each room is one module, says on its first page what it promises, and imports
//! only from the rooms listed below it; `tools/rooms` checks that.
//!
//! | room | what it holds |
//! |---|---|
#![cfg_attr(
    all(any(feature = "capi", doc), target_os = "linux", not(loom)),
    doc = "| `tool` | the tool API in Rust and in C |"
)]
#![cfg_attr(
    all(feature = "perfetto", not(loom)),
    doc = "| [`analysis`] | summary and hotspots of a recording |"
)]
//! | [`trace`] | the model of a trace, and its Perfetto form |
//! | [`source`] | what observes a runtime: OpenCL, the simulated GPU, the CPU's performance events |
//! | [`collect`] | the recorded process: its threads, who wants what, sessions, correlation, services |
//! | [`counters`] | definitions of counters, metrics and passes |
//! | [`code`] | machine code of devices: symbols, source lines, samples by address |
//! | [`capture`] | the raw file of records, and the names that records refer to |
//! | [`buffer`] | blocks, lanes, the pool and the collector |
//! | [`clock`] | ticks, clock domains and their conversion to nanoseconds |
//! | [`record`] | the layouts of records |
//! | `platform` | what the operating system provides |
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]
// Code that supports sources is unused without the `layer` feature.
#![cfg_attr(not(feature = "layer"), allow(dead_code))]

#[cfg(all(feature = "perfetto", not(loom)))]
pub mod analysis;
pub mod buffer;
#[cfg(not(loom))]
pub mod capture;
pub mod clock;
#[cfg(not(loom))]
pub mod code;
#[cfg(not(loom))]
pub mod collect;
#[cfg(not(loom))]
pub mod counters;
mod platform;
pub mod record;
#[cfg(not(loom))]
pub mod source;
#[cfg(not(loom))]
pub mod tool;
#[cfg(not(loom))]
pub mod trace;

#[cfg(all(feature = "import", not(loom)))]
pub use trace::conversion as convert;
