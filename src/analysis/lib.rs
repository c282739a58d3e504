//! Analyses of a recording: the time of calls, devices and kernels, and the hotspots inside kernels.
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

pub mod hotspots;
pub mod summary;
