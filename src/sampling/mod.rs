//! PC sampling: where a kernel spends its time, and why its waves wait.

pub mod aggregate;
pub mod code;
#[cfg(feature = "symbols")]
pub mod symbols;
