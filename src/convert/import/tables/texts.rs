//! Texts that repeat, each kept once.

use std::collections::HashMap;
use std::sync::Arc;

/// A text of a tables.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TextHandle(pub u32);

/// The texts of a tables. Id 0 is the empty text.
#[derive(Debug)]
pub(crate) struct TableTexts {
    all: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, TextHandle>,
}

impl Default for TableTexts {
    fn default() -> TableTexts {
        let empty: Arc<str> = "".into();
        TableTexts {
            all: vec![empty.clone()],
            ids: HashMap::from([(empty, TextHandle::default())]),
        }
    }
}

impl TableTexts {
    /// The id of a text.
    pub fn id(&mut self, text: &str) -> TextHandle {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = TextHandle(self.all.len() as u32);
        let text: Arc<str> = text.into();
        self.all.push(text.clone());
        self.ids.insert(text, id);
        id
    }

    /// The text of an id.
    pub fn get(&self, id: TextHandle) -> &str {
        self.all.get(id.0 as usize).map_or("", |text| text)
    }
}
