//! Arguments that outlive the event they came with.

use std::ops::Range;

use crate::model::{EventArgument, Value};

/// A list of named values. All texts are in one string, so that a list takes two allocations.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredArguments {
    texts: String,
    list: Vec<(Range<usize>, Stored)>,
}

#[derive(Clone, Debug)]
enum Stored {
    /// A value without a text.
    Plain(Value<'static>),
    Text(Range<usize>),
    Json(Range<usize>),
}

impl StoredArguments {
    /// Adds an argument.
    pub fn push(&mut self, name: &str, value: Value<'_>) {
        let name = self.store(name);
        let value = match value {
            Value::Text(text) => Stored::Text(self.store(text)),
            Value::Json(text) => Stored::Json(self.store(text)),
            Value::Bool(value) => Stored::Plain(Value::Bool(value)),
            Value::Uint(value) => Stored::Plain(Value::Uint(value)),
            Value::Int(value) => Stored::Plain(Value::Int(value)),
            Value::Double(value) => Stored::Plain(Value::Double(value)),
            Value::Pointer(value) => Stored::Plain(Value::Pointer(value)),
        };
        self.list.push((name, value));
    }

    /// Adds an argument unless all of them would take more than `most` bytes. Returns whether it did.
    pub fn push_within(&mut self, most: usize, name: &str, value: Value<'_>) -> bool {
        let text = match value {
            Value::Text(text) | Value::Json(text) => text.len(),
            _ => 0,
        };
        let fits = self.bytes() + name.len() + text < most;
        if fits {
            self.push(name, value);
        }
        fits
    }

    fn store(&mut self, text: &str) -> Range<usize> {
        let begin = self.texts.len();
        self.texts.push_str(text);
        begin..self.texts.len()
    }

    /// Adds several arguments.
    pub fn extend(&mut self, arguments: &[EventArgument<'_>]) {
        for argument in arguments {
            self.push(argument.name, argument.value);
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Bytes of memory that the list takes, approximately.
    pub fn bytes(&self) -> usize {
        self.texts.len() + self.list.len() * size_of::<(Range<usize>, Stored)>()
    }

    /// The arguments.
    pub fn iter(&self) -> impl Iterator<Item = EventArgument<'_>> {
        self.list.iter().map(|(name, value)| EventArgument {
            name: &self.texts[name.clone()],
            value: match value {
                Stored::Plain(value) => *value,
                Stored::Text(text) => Value::Text(&self.texts[text.clone()]),
                Stored::Json(text) => Value::Json(&self.texts[text.clone()]),
            },
        })
    }
}
