//! Symbols, source lines and instructions of ELF files: the reader behind [`gputrail_code::reader`].
//!
//! The command links with this crate. It is also built as the library `libgputrail-symbols.so`, which a recorded program
//! opens only when a tool requests source lines.
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

mod elf;
mod functions;

pub use functions::GPUTRAIL_SYMBOLS;
