//! Names of events, categories and annotations, each sent once to each sequence that uses it.

use std::collections::HashMap;

use super::schema::field::event_name;
use super::wire::Encoder;
use crate::model::category;

/// Maximum number of interned names. Later ones are written in full each time.
const MAX_NAMES: usize = 1 << 16;

/// The text of [`Name::CORRELATION`].
pub(super) const CORRELATION: &str = "correlation_id";

/// A name that can be sent as a number.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name(u32);

impl Name {
    /// The name of the annotation that holds correlation ids. TrackEvent's own `correlation_id` is not used: viewers
    /// give each of its values a colour, but calls of one function are to look alike.
    pub const CORRELATION: Name = Name(0);

    /// The number of the name, which is the same on every sequence.
    #[inline]
    pub fn iid(self) -> u64 {
        u64::from(self.0) + 1
    }
}

/// The names that have a number.
#[derive(Debug)]
pub(super) struct NumberedNames {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, Name, foldhash::fast::RandomState>,
}

impl Default for NumberedNames {
    fn default() -> NumberedNames {
        NumberedNames {
            texts: vec![CORRELATION.into()],
            numbers: HashMap::from_iter([(CORRELATION.into(), Name::CORRELATION)]),
        }
    }
}

impl NumberedNames {
    /// The number of `text`; `None` if too many names have one.
    pub fn intern(&mut self, text: &str) -> Option<Name> {
        if let Some(name) = self.numbers.get(text) {
            return Some(*name);
        }
        if self.texts.len() >= MAX_NAMES {
            return None;
        }
        let name = Name(self.texts.len() as u32);
        self.texts.push(text.into());
        self.numbers.insert(text.into(), name);
        Some(name)
    }

    /// The number of `text`, if it has one or is not longer than `room`, which it then takes.
    pub fn intern_within(&mut self, text: &str, room: &mut usize) -> Option<Name> {
        if let Some(name) = self.numbers.get(text) {
            return Some(*name);
        }
        let left = room.checked_sub(text.len())?;
        let name = self.intern(text)?;
        *room = left;
        Some(name)
    }

    /// The text of a name.
    pub fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }

    /// Writes the name as an entry of an interning table. In all such tables, `iid` is field 1 and `name` is field 2.
    pub fn entry(&self, encoder: &mut Encoder, table: u32, name: Name) {
        let entry = encoder.open(table);
        encoder.uint(event_name::IID, name.iid());
        encoder.string(event_name::NAME, self.text(name));
        encoder.close(entry);
    }
}

/// Names that always have a number, since they are the first to get one.
#[derive(Debug)]
pub(super) struct Words {
    pub other: Name,
    pub error: Name,
    pub external: Name,
    pub marker: Name,
}

impl Words {
    pub fn new(names: &mut NumberedNames) -> Words {
        let mut name = |text| names.intern(text).expect("the first names fit");
        let other = name("other");
        name(category::RECORDING);
        name(category::OVERHEAD);
        let error = name("error");
        let external = name("external_id");
        let marker = name(category::MARKER);
        for text in [
            "domain",
            "payload",
            "color",
            "records lost",
            "not readable",
            "kind",
            "count",
            "from",
            "to",
            "detail",
            "recording",
            "version",
            "host",
            "command",
            "configuration",
            "clock",
        ] {
            name(text);
        }
        Words {
            other,
            error,
            external,
            marker,
        }
    }
}

/// The numbers that have been sent on a sequence.
#[derive(Debug, Default)]
pub(super) struct Sent {
    words: Vec<u64>,
}

impl Sent {
    /// Whether `number` has been marked.
    #[inline]
    pub fn has(&self, number: u32) -> bool {
        let word = self.words.get(number as usize / 64).copied().unwrap_or(0);
        word >> (number % 64) & 1 != 0
    }

    /// Marks `number`.
    pub fn mark(&mut self, number: u32) {
        let word = number as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (number % 64);
    }

    /// Forgets all marks.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// [`Sent::has`] for a name.
    #[inline]
    pub fn has_name(&self, name: Name) -> bool {
        self.has(name.0)
    }

    /// [`Sent::mark`] for a name.
    pub fn mark_name(&mut self, name: Name) {
        self.mark(name.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_and_the_table_has_an_end() {
        let mut names = NumberedNames::default();
        let first = names.intern("a").unwrap();
        assert_eq!(names.intern("a"), Some(first));
        assert_eq!(names.intern(CORRELATION), Some(Name::CORRELATION));
        for number in 2..MAX_NAMES {
            assert!(names.intern(&number.to_string()).is_some());
        }
        assert_eq!(names.intern("one too many"), None);
        assert_eq!(names.intern("a"), Some(first));
    }

    #[test]
    fn a_mark_stands_for_one_number_only() {
        let mut sent = Sent::default();
        sent.mark(64);
        assert!(sent.has(64) && !sent.has(0) && !sent.has(128));
        sent.clear();
        assert!(!sent.has(64));
    }
}
