//! Names that repeat, as numbers.

use std::collections::HashMap;

/// Most names, and most bytes of names, that get numbers. Further ones are written out each time.
const MAX_NAMES: usize = 1 << 20;
const MAX_BYTES: usize = 1 << 25;

/// Names with their numbers.
#[derive(Debug, Default)]
pub(super) struct Strings {
    numbers: HashMap<Box<str>, u32, foldhash::fast::RandomState>,
    list: Vec<Box<str>>,
    bytes: usize,
}

impl Strings {
    /// The number of `text`; none if there are too many.
    pub fn number(&mut self, text: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(text) {
            return Some(*number);
        }
        if self.list.len() >= MAX_NAMES || self.bytes + text.len() > MAX_BYTES {
            return None;
        }
        let number = self.list.len() as u32;
        self.bytes += text.len();
        self.list.push(text.into());
        self.numbers.insert(text.into(), number);
        Some(number)
    }

    /// The text with this number.
    pub fn text(&self, number: u32) -> &str {
        self.list.get(number as usize).map_or("", |text| text)
    }
}
