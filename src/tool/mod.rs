//! The tool API: in Rust for libraries that are loaded into a program, and in C.

#[cfg(all(any(feature = "capi", doc), target_os = "linux"))]
pub mod c;
pub mod joined;
mod nanos;
pub mod packer;
#[cfg(all(any(feature = "tool", doc), target_os = "linux"))]
mod rust;
pub mod timeline;

#[cfg(all(any(feature = "tool", doc), target_os = "linux"))]
pub use rust::*;
