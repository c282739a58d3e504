//! The texts of a trace, each held once: names that are the same have the same number on all sequences.

use std::collections::HashMap;

use crate::trace::perfetto::names::CORRELATION;

/// Most texts, and most bytes of them, that are held.
const MAX_TEXTS: usize = 1 << 20;
const MAX_BYTES: usize = 128 << 20;

/// A text of the trace, by number.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub u32);

impl TextId {
    /// No text.
    pub const EMPTY: TextId = TextId(0);
    /// What all texts are that there is no room for.
    pub const OTHER: TextId = TextId(1);
    /// What correlation ids are called.
    pub const CORRELATION: TextId = TextId(2);
}

/// All texts.
#[derive(Debug)]
pub struct Texts {
    list: Vec<Box<str>>,
    numbers: HashMap<Box<str>, TextId>,
    bytes: usize,
}

impl Default for Texts {
    fn default() -> Texts {
        Texts {
            list: vec!["".into(), "(others)".into(), CORRELATION.into()],
            numbers: HashMap::from([
                ("".into(), TextId::EMPTY),
                (CORRELATION.into(), TextId::CORRELATION),
            ]),
            bytes: 0,
        }
    }
}

impl Texts {
    /// The number of a text.
    pub fn add(&mut self, text: &str) -> TextId {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        if self.list.len() >= MAX_TEXTS || self.bytes + text.len() > MAX_BYTES {
            return TextId::OTHER;
        }
        let number = TextId(self.list.len() as u32);
        self.bytes += text.len();
        self.list.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    /// The text of a number.
    pub fn get(&self, number: TextId) -> &str {
        self.list.get(number.0 as usize).map_or("", |text| text)
    }
}
