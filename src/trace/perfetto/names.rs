//! Names of events, categories and annotations, each sent once to each sequence that uses it.

use std::collections::HashMap;

use super::schema::field::event_name;
use super::wire::Encoder;

/// Most names that are interned. What comes later is written out each time.
const MAX_NAMES: usize = 1 << 16;

/// The text of [`Name::CORRELATION`].
pub(super) const CORRELATION: &str = "correlation_id";

/// A name that can be sent as a number.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name(u32);

impl Name {
    /// What correlation ids are called: an annotation, for viewers give each value of TrackEvent's own `correlation_id`
    /// a colour of its own, where calls of one function are to look alike.
    pub(in crate::trace) const CORRELATION: Name = Name(0);

    /// The number that stands for the name, on every sequence.
    #[inline]
    pub(in crate::trace) fn iid(self) -> u64 {
        u64::from(self.0) + 1
    }
}

/// The names that have been given a number.
#[derive(Debug)]
pub(super) struct Names {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, Name>,
}

impl Default for Names {
    fn default() -> Names {
        Names {
            texts: vec![CORRELATION.into()],
            numbers: HashMap::from([(CORRELATION.into(), Name::CORRELATION)]),
        }
    }
}

impl Names {
    /// The number of `text`, or none when too many names have one.
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

    /// The text of a name.
    pub fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }

    /// Writes the name as an entry of an interning table: all of them have `iid` 1 and `name` 2.
    pub fn entry(&self, encoder: &mut Encoder, table: u32, name: Name) {
        let entry = encoder.open(table);
        encoder.uint(event_name::IID, name.iid());
        encoder.string(event_name::NAME, self.text(name));
        encoder.close(entry);
    }
}

/// Which numbers a sequence has been told about.
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

    /// As [`Sent::has`], of a name.
    #[inline]
    pub fn has_name(&self, name: Name) -> bool {
        self.has(name.0)
    }

    /// As [`Sent::mark`], of a name.
    pub fn mark_name(&mut self, name: Name) {
        self.mark(name.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_and_the_table_has_an_end() {
        let mut names = Names::default();
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
