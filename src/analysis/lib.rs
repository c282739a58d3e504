//! Analyses of a recording: the time of calls, devices and kernels, advice, comparisons, and the hotspots inside
//! kernels.
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

pub mod advice;
pub mod diff;
pub mod figures;
pub mod hotspots;
pub mod stacks;
pub mod summary;
