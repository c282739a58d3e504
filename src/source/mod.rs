//! Sources: what observes one runtime and produces records.

#[cfg(all(feature = "opencl", target_os = "linux", not(loom)))]
pub mod opencl;
#[cfg(all(feature = "sim", not(loom)))]
pub mod sim;
