//! Texts that programs pass, and those that are kept of them.

use super::handles;
use core::ffi::{c_char, c_void};
use gputrail_collect::marker::{CText, KeptText, MarkerText, Registry, WideText};
use std::borrow::Cow;
use std::ptr::NonNull;

static STRINGS: Registry<Box<str>, KeptText> = Registry::new();

/// A message: its type decides which pointer it is.
pub(super) mod message {
    pub const ASCII: i32 = 1;
    pub const UNICODE: i32 = 2;
    pub const REGISTERED: i32 = 3;
}

/// The text of a message.
///
/// # Safety
///
/// `message` is null or what `kind` says, and lives for `'a`.
#[inline]
pub(super) unsafe fn text<'a>(kind: i32, message: *const c_void) -> MarkerText<'a> {
    // SAFETY: `message` is null or what `kind` says, and lives for `'a`. The handle of a registered text leads to ours,
    // which lives for ever, or is unknown and becomes null.
    unsafe {
        match kind {
            message::REGISTERED => {
                let registered = handles::STRINGS.ours(message.cast());
                registered
                    .as_ref()
                    .map_or(MarkerText::None, MarkerText::Kept)
            }
            message::ASCII => ascii(message.cast()),
            message::UNICODE => wide(message.cast()),
            _ => MarkerText::None,
        }
    }
}

/// # Safety
///
/// `text` is null, or a text that ends with a zero, and lives and stays as it is for `'a`.
#[inline]
pub(super) unsafe fn ascii<'a>(text: *const c_char) -> MarkerText<'a> {
    let text = NonNull::new(text.cast_mut());
    text.map_or(MarkerText::None, |text| {
        // SAFETY: a `text` that is not null ends with a zero, and lives and stays as it is for `'a` (`# Safety`).
        MarkerText::C(unsafe { CText::new(text) })
    })
}

/// # Safety
///
/// As for [`ascii`], with wide characters.
pub(super) unsafe fn wide<'a>(text: *const u32) -> MarkerText<'a> {
    match NonNull::new(text.cast_mut()) {
        // SAFETY: `text` is not null, so that it ends with a zero, and lives and stays as it is for `'a`.
        Some(text) => MarkerText::Wide(unsafe { WideText::new(text) }),
        None => MarkerText::None,
    }
}

/// The text, kept for ever; `None` if there are too many.
pub(super) fn kept(text: &str) -> Option<&'static KeptText> {
    STRINGS.get_or_put(text.into(), || KeptText::new(Cow::Owned(text.to_owned())))
}
