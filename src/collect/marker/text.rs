//! Texts of markers, and how they become string ids: from a thread's cache, or from the text itself where it is used
//! again and again.

use super::c_text::{CText, WideText};
use crate::correlation::HostThread;
use crate::process;
use gputrail_record::StringId;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

/// A text that is kept for ever, with its id in the names store of the process that used it last.
#[derive(Debug)]
pub struct KeptText {
    text: Cow<'static, str>,
    /// The process's generation in the upper half, the id in the lower half.
    id: AtomicU64,
}

impl KeptText {
    /// Keeps `text`, which has no id yet.
    pub const fn new(text: Cow<'static, str>) -> KeptText {
        KeptText {
            text,
            id: AtomicU64::new(0),
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its id in the names store of `host`.
    #[inline]
    pub fn id(&self, host: &HostThread) -> StringId {
        let generation = process::generation() << 32;
        let known = self.id.load(Ordering::Relaxed);
        // Before the process has begun, every thread state has a names store of its own.
        if known >> 32 << 32 == generation && generation != 0 {
            return StringId(known as u32);
        }
        let id = match &*self.text {
            "" => StringId::NONE,
            text => host.board().names().string(text),
        };
        self.id
            .store(generation | u64::from(id.0), Ordering::Relaxed);
        id
    }
}

/// A text of a marker.
#[derive(Copy, Clone, Debug, Default)]
pub enum MarkerText<'a> {
    /// No text.
    #[default]
    None,
    /// A text.
    Plain(&'a str),
    /// A text in C.
    C(CText<'a>),
    /// A text of wide characters.
    Wide(WideText<'a>),
    /// A text that is kept.
    Kept(&'a KeptText),
}

impl<'a> MarkerText<'a> {
    /// The text, for comparisons off the hot path.
    pub fn read(&self) -> Cow<'a, str> {
        match self {
            MarkerText::None => Cow::Borrowed(""),
            MarkerText::Plain(text) => Cow::Borrowed(text),
            MarkerText::C(text) => text.to_c_str().to_string_lossy(),
            MarkerText::Wide(text) => Cow::Owned(text.to_text()),
            MarkerText::Kept(kept) => Cow::Borrowed(kept.text()),
        }
    }

    /// Whether the text may begin with `beginning`: that of wide characters is not read.
    #[inline]
    pub fn may_begin_with(&self, beginning: &[u8]) -> bool {
        match self {
            MarkerText::None => beginning.is_empty(),
            MarkerText::Plain(text) => text.as_bytes().starts_with(beginning),
            MarkerText::C(text) => text.begins_with(beginning),
            MarkerText::Wide(_) => true,
            MarkerText::Kept(kept) => kept.text().as_bytes().starts_with(beginning),
        }
    }

    /// Its id in the names store of `host`.
    #[inline]
    pub fn id(&self, host: &mut HostThread) -> StringId {
        match self {
            MarkerText::None => StringId::NONE,
            MarkerText::Kept(kept) => kept.id(host),
            MarkerText::C(text) => host.c_string(*text),
            MarkerText::Plain(text) => host.string(text),
            MarkerText::Wide(text) => host.string(&text.to_text()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switchboard::Switchboard;
    use gputrail_record::ThreadId;
    use std::ptr::NonNull;

    #[test]
    fn equal_texts_of_all_kinds_have_one_id() {
        let board = Switchboard::new();
        let mut host = HostThread::new(&board, ThreadId(1), true).unwrap();
        let wide: Vec<u32> = "Größe\0".chars().map(u32::from).collect();
        // SAFETY: both texts end with a zero and outlive their use.
        let (c, wide) = unsafe {
            (
                CText::new(NonNull::new(c"Größe".as_ptr().cast_mut()).unwrap()),
                WideText::new(NonNull::new(wide.as_ptr().cast_mut()).unwrap()),
            )
        };
        let kept = KeptText::new(Cow::Borrowed("Größe"));
        let texts = [
            MarkerText::Plain("Größe"),
            MarkerText::C(c),
            MarkerText::C(c),
            MarkerText::Wide(wide),
            MarkerText::Kept(&kept),
        ];
        let ids: Vec<StringId> = texts.iter().map(|text| text.id(&mut host)).collect();
        assert!(ids[0].is_some() && ids.iter().all(|id| *id == ids[0]));
        assert!(texts.iter().all(|text| text.read() == "Größe"));
        assert_eq!(MarkerText::None.id(&mut host), StringId::NONE);
        assert_eq!(MarkerText::Plain("").id(&mut host), StringId::NONE);
    }

    #[test]
    fn the_beginning_of_a_text_is_compared_up_to_its_end() {
        let kept = KeptText::new(Cow::Borrowed("step 1"));
        // SAFETY: the text ends with a zero and lives for ever.
        let c = unsafe { CText::new(NonNull::new(c"step 1".as_ptr().cast_mut()).unwrap()) };
        for text in [
            MarkerText::Plain("step 1"),
            MarkerText::C(c),
            MarkerText::Kept(&kept),
        ] {
            for (beginning, begins) in [
                ("", true),
                ("s", true),
                ("step 1", true),
                ("step 10", false),
                ("t", false),
                ("sT", false),
            ] {
                assert_eq!(text.may_begin_with(beginning.as_bytes()), begins);
            }
        }
        assert!(MarkerText::None.may_begin_with(b"") && !MarkerText::None.may_begin_with(b"s"));
    }

    #[test]
    fn a_text_that_changes_in_place_gets_a_new_id() {
        let board = Switchboard::new();
        let mut host = HostThread::new(&board, ThreadId(1), true).unwrap();
        let mut bytes = *b"step 1\0";
        let mut id = |bytes: &mut [u8; 7]| {
            // SAFETY: the bytes end with a zero and stay as they are during the call.
            let text = unsafe { CText::new(NonNull::from(bytes).cast()) };
            MarkerText::C(text).id(&mut host)
        };
        let first = id(&mut bytes);
        bytes[5] = b'2';
        let second = id(&mut bytes);
        bytes[5] = b'1';
        assert_ne!(first, second);
        assert_eq!(id(&mut bytes), first);
    }
}
