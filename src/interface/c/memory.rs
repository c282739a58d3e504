//! Buffers in memory that the tool supplies: blocks that it lends one by one, or a file that another process can look
//! into when this one has died.

use super::{Batch, sized::sized};
use core::ffi::c_void;

/// A block that a tool supplies.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct Block {
    /// Size of this structure.
    pub size: usize,
    /// Its first byte, aligned to 8; null if there is none now.
    pub memory: *mut u8,
    /// How many bytes it has: 1024 or more, see `gputrail_limits`.
    pub bytes: usize,
    /// How many records it may take at most; 0 for as many as have room.
    pub max_records: u32,
    /// 0.
    pub reserved: u32,
    /// Of a complete block: the bytes of records in it that were passed to `partial` before.
    pub shown: usize,
}
sized!(Block, "gputrail_block", 40);

/// Supplies a block: writes `memory`, `bytes` and, if it likes, `max_records`. If it leaves `memory` null, records for
/// which there is no block are dropped and counted; it is called again a little later. It must not throw.
pub type RequestFunction =
    Option<unsafe extern "C-unwind" fn(block: *mut Block, user_data: *mut c_void)>;

/// Gets a block back, which is the tool's from then on, and the records in it, if any; raw ones are all of one lane. A block
/// that is too small or misaligned comes back at once. Records of losses that no thread could write come in a block of their own,
/// when the buffer is destroyed. It must not throw.
pub type CompleteFunction = Option<
    unsafe extern "C-unwind" fn(block: *const Block, records: *const Batch, user_data: *mut c_void),
>;
