//! Machine code of devices: code objects, symbols and source lines, and samples counted by address.

pub mod aggregate;
pub mod reader;
pub mod symbols;
