//! Texts that repeat, each kept once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{ArgumentRow, ArgumentValue, RowCounts};
use gputrail_trace::model::{EventArgument, Value};

/// Bytes of a text among the arguments of an event if the text has been shown before: a row of a few bytes may name a long one.
const LONGEST_AGAIN: usize = 4096;

/// A text of a tables.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TextHandle(pub u32);

/// The texts of a tables. Id 0 is the empty text.
#[derive(Debug)]
pub(crate) struct TableTexts {
    all: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, TextHandle, foldhash::fast::RandomState>,
}

impl Default for TableTexts {
    fn default() -> TableTexts {
        let empty: Arc<str> = "".into();
        TableTexts {
            all: vec![empty.clone()],
            ids: HashMap::from_iter([(empty, TextHandle::default())]),
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

/// The arguments of an event. A long text that has been `shown` before is cut.
pub(super) fn arguments<'r>(
    texts: &'r TableTexts,
    rows: &[ArgumentRow],
    shown: &mut HashSet<TextHandle>,
    counts: &mut RowCounts,
) -> Vec<EventArgument<'r>> {
    let mut text = |of: TextHandle| {
        let text = texts.get(of);
        if text.len() <= LONGEST_AGAIN || shown.insert(of) {
            return text;
        }
        counts.cut_texts += 1;
        &text[..text.floor_char_boundary(LONGEST_AGAIN)]
    };
    let argument = |row: &ArgumentRow| EventArgument {
        name: texts.get(row.name),
        value: match row.value {
            ArgumentValue::Uint(value) => Value::Uint(value),
            ArgumentValue::Int(value) => Value::Int(value),
            ArgumentValue::Double(value) => Value::Double(value),
            ArgumentValue::Text(value) => Value::Text(text(value)),
            ArgumentValue::Pointer(value) => Value::Pointer(value),
        },
    };
    rows.iter().map(argument).collect()
}
