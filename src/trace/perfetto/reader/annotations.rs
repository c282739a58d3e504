//! Debug annotations: the named values of an event of the host.

use super::fields::{FieldValue, MessageFields};
use super::resolving::{NumberedText, Resolving};
use crate::json::{quote, write_value};
use crate::model::Value;
use crate::perfetto::schema::field::{debug_annotation, interned_data as table};

/// Maximum nesting of annotations that is followed.
const DEEPEST: u32 = 32;
/// Maximum number of bytes of the tables and lists of a packet as JSON: a few bytes of it may refer to a long text.
const MAX_JSON_BYTES: usize = if cfg!(test) { 1 << 20 } else { 16 << 20 };

/// The value of an annotation.
#[derive(Clone, Debug, PartialEq)]
pub enum AnnotationValue<'a> {
    /// A bool.
    Bool(bool),
    /// An unsigned number.
    Number(u64),
    /// A signed number.
    Signed(i64),
    /// A number with a fraction.
    Double(f64),
    /// A text.
    Text(&'a str),
    /// An address or a handle.
    Pointer(u64),
    /// JSON, as it is in the trace.
    Json(&'a str),
    /// A list or a table of values, as JSON.
    Nested(String),
    /// A message of a type of its own, a list or a table that is too long, or no value.
    Unread,
}

impl<'a> Resolving<'a, '_> {
    /// The name and the value of an annotation.
    pub(super) fn annotation(
        &mut self,
        bytes: &'a [u8],
    ) -> (NumberedText<'a>, AnnotationValue<'a>) {
        self.annotation_at(bytes, 0)
    }

    fn annotation_at(
        &mut self,
        bytes: &'a [u8],
        depth: u32,
    ) -> (NumberedText<'a>, AnnotationValue<'a>) {
        let (mut name, mut value) = (NumberedText::default(), AnnotationValue::Unread);
        if depth > DEEPEST {
            self.findings.add(self.position, || {
                format!("annotations nested deeper than {DEEPEST}")
            });
            return (name, value);
        }
        // The entries of a table or a list, and the bracket with which they end.
        let mut nested: Option<(String, char)> = None;
        let mut fields = MessageFields::new(bytes);
        for field in fields.by_ref() {
            value = match (field.number, field.value) {
                (debug_annotation::NAME_IID, FieldValue::Number(number)) => {
                    name = self.name(table::DEBUG_ANNOTATION_NAMES, number);
                    continue;
                }
                (debug_annotation::NAME, FieldValue::Bytes(text)) => {
                    name = self.own_text(text);
                    continue;
                }
                (debug_annotation::BOOL_VALUE, FieldValue::Number(number)) => {
                    AnnotationValue::Bool(number != 0)
                }
                (debug_annotation::UINT_VALUE, FieldValue::Number(number)) => {
                    AnnotationValue::Number(number)
                }
                (debug_annotation::POINTER_VALUE, FieldValue::Number(number)) => {
                    AnnotationValue::Pointer(number)
                }
                (debug_annotation::INT_VALUE, FieldValue::Number(number)) => {
                    AnnotationValue::Signed(number as i64)
                }
                (debug_annotation::DOUBLE_VALUE, FieldValue::Fixed64(bits)) => {
                    AnnotationValue::Double(f64::from_bits(bits))
                }
                (debug_annotation::STRING_VALUE, FieldValue::Bytes(text)) => {
                    AnnotationValue::Text(self.text(text))
                }
                (debug_annotation::LEGACY_JSON_VALUE, FieldValue::Bytes(text)) => {
                    AnnotationValue::Json(self.text(text))
                }
                (debug_annotation::STRING_VALUE_IID, FieldValue::Number(number)) => {
                    let text = self.name(table::DEBUG_ANNOTATION_STRING_VALUES, number);
                    AnnotationValue::Text(text.text)
                }
                (
                    number @ (debug_annotation::DICT_ENTRIES | debug_annotation::ARRAY_VALUES),
                    FieldValue::Bytes(entry),
                ) => {
                    let is_table = number == debug_annotation::DICT_ENTRIES;
                    let [open, close] = if is_table { ['{', '}'] } else { ['[', ']'] };
                    let (text, _) = nested.get_or_insert_with(|| (open.into(), close));
                    if self.json_bytes + text.len() > MAX_JSON_BYTES {
                        continue;
                    }
                    if text.len() > 1 {
                        text.push(',');
                    }
                    let (entry_name, entry) = self.annotation_at(entry, depth + 1);
                    if text.starts_with('{') {
                        quote(text, entry_name.text);
                        text.push(':');
                    }
                    entry.write_json(text);
                    continue;
                }
                _ => continue,
            }
        }
        if let Some((mut text, close)) = nested {
            text.push(close);
            self.json_bytes += text.len();
            value = if self.json_bytes > MAX_JSON_BYTES {
                AnnotationValue::Unread
            } else {
                AnnotationValue::Nested(text)
            };
        }
        self.end_of("annotation", &fields);
        (name, value)
    }
}

impl AnnotationValue<'_> {
    /// The value in the model; `None` for a value that cannot be read.
    pub fn value(&self) -> Option<Value<'_>> {
        Some(match self {
            AnnotationValue::Bool(value) => Value::Bool(*value),
            AnnotationValue::Number(value) => Value::Uint(*value),
            AnnotationValue::Signed(value) => Value::Int(*value),
            AnnotationValue::Double(value) => Value::Double(*value),
            AnnotationValue::Text(text) => Value::Text(text),
            AnnotationValue::Pointer(value) => Value::Pointer(*value),
            AnnotationValue::Json(text) => Value::Json(text),
            AnnotationValue::Nested(text) => Value::Json(text),
            AnnotationValue::Unread => return None,
        })
    }

    fn write_json(&self, text: &mut String) {
        match self.value() {
            Some(value) => write_value(text, value),
            None => text.push_str("null"),
        }
    }
}
