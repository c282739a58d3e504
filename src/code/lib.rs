//! Machine code of devices: code objects, symbols and source lines, and samples counted by address.
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

pub mod aggregate;
pub mod call_stacks;
pub mod disassembly;
pub mod reader;
pub mod symbols;
