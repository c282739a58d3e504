//! The tool API: in Rust for libraries that are loaded into a program, and in C.

#[cfg(all(feature = "capi", target_os = "linux"))]
pub mod c;
#[cfg(all(feature = "tool", target_os = "linux"))]
mod rust;
pub mod timeline;

#[cfg(all(feature = "tool", target_os = "linux"))]
pub use rust::*;
