//! The texts of a trace, each held once: equal names have the same number on all sequences.

use std::collections::HashMap;

use crate::perfetto::names::CORRELATION;

/// Maximum number and maximum total size of the texts that are held.
const MAX_TEXTS: usize = 1 << 20;
const MAX_BYTES: usize = 128 << 20;

/// A text of the trace, by number.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub u32);

impl TextId {
    /// No text.
    pub const EMPTY: TextId = TextId(0);
    /// The number of all texts for which there is no space.
    pub const OTHER: TextId = TextId(1);
    /// The name of the annotation that holds correlation ids.
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
    /// Adds a text, and returns its number.
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

    /// The text with this number.
    pub fn get(&self, number: TextId) -> &str {
        self.list.get(number.0 as usize).map_or("", |text| text)
    }
}
