//! Analyses of a recording: the time of calls, devices and kernels, and the hotspots inside kernels.

pub mod hotspots;
pub mod summary;
