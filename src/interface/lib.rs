//! What the library in a program and its tools share: the structures, handles and functions of the C API ([`c`],
//! [`functions`]), and the words of its services, which are the same in Rust.
//!
//! `gputrail-inject` implements the functions and `gputrail-tool` calls them; neither depends on the other. Nothing here
//! observes a program: a tool finds the functions in the library that is in its process.
//!
//! A part of gputrail-tool, not meant for others: what is public here may change in any version.

pub mod c;
mod function;
pub mod functions;
pub mod joined;
pub mod sampling;

pub use function::Function;
