//! Sources: what observes one runtime and produces records.

#[cfg(all(feature = "opencl", target_os = "linux"))]
pub mod opencl;
#[cfg(all(feature = "opencl", target_os = "linux"))]
pub mod perf;
#[cfg(feature = "sim")]
pub mod sim;
