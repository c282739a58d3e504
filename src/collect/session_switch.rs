//! The position of the session's switch, as this process sees and follows it.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The bit of the switch's word that is set while the session is off. The other bits count commands.
pub(crate) const OFF: u32 = 1;

/// The word of a process without a session.
static ALWAYS_ON: AtomicU32 = AtomicU32::new(0);

/// The words that each observed call reads, in one cache line that changes with the switch only.
#[repr(align(64))]
struct FollowedSwitch {
    word: AtomicPtr<AtomicU32>,
    /// The value of the word that the recording has followed.
    latest: AtomicU32,
}

static FOLLOWED: FollowedSwitch = FollowedSwitch {
    word: AtomicPtr::new((&raw const ALWAYS_ON).cast_mut()),
    latest: AtomicU32::new(0),
};

/// The word. Its lowest bit is [`OFF`].
#[inline(always)]
pub(crate) fn value() -> u32 {
    // SAFETY: points to `ALWAYS_ON` or to memory that is never unmapped, which forked children inherit.
    unsafe { (*FOLLOWED.word.load(Ordering::Acquire)).load(Ordering::Acquire) }
}

/// Whether a value of the word says that the session is on.
pub(crate) fn is_on(value: u32) -> bool {
    value & OFF == 0
}

/// Whether the switch was used since the recording followed it.
#[inline(always)]
pub(crate) fn has_moved() -> bool {
    value() != FOLLOWED.latest.load(Ordering::Relaxed)
}

/// The recording of this process is as `value` says.
pub(crate) fn followed(value: u32) {
    FOLLOWED.latest.store(value, Ordering::Relaxed);
}

/// This process follows the switch at `word` from now on. A forked child inherits that of its parent, which is of the
/// same session.
#[cfg(target_os = "linux")]
pub(crate) fn follow(word: &'static AtomicU32) {
    let word = std::ptr::from_ref(word).cast_mut();
    FOLLOWED.word.store(word, Ordering::Release);
}

/// Whether this process follows a switch.
#[cfg(target_os = "linux")]
pub(crate) fn is_there() -> bool {
    !std::ptr::eq(FOLLOWED.word.load(Ordering::Acquire), &ALWAYS_ON)
}
