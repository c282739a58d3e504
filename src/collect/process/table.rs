//! The table of who wants what in this process.

use crate::switchboard::{Buffers, WantedTable};
use gputrail_record::Kind;
use std::sync::atomic::{AtomicPtr, Ordering};

pub(super) static OFF: WantedTable = WantedTable::new();

/// The process's table of who wants what, in memory that the kernel wipes in forked children; [`OFF`] before there is
/// one.
pub(super) static WANTED: AtomicPtr<WantedTable> = AtomicPtr::new((&raw const OFF).cast_mut());

#[inline]
pub(super) fn wanted() -> &'static WantedTable {
    // SAFETY: points to `OFF` or to memory that is never unmapped.
    unsafe { &*WANTED.load(Ordering::Acquire) }
}

/// The buffers that want records of `kind` in this process.
#[inline]
pub(crate) fn buffers_for(kind: Kind) -> Buffers {
    wanted().kind(kind)
}

/// A number that differs between a process and its forked children; 0 in one that has not begun.
#[inline]
pub fn generation() -> u64 {
    wanted().generation.load(Ordering::Relaxed)
}
