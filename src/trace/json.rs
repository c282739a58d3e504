//! Texts and values as JSON.

use std::fmt::Write as _;

use crate::model::{EventArgument, Value};

/// Adds `value` as a JSON string.
pub fn quote(text: &mut String, value: &str) {
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\0'..='\x1f' => {
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text.push('"');
}

/// Adds `value` as JSON. Numbers that JSON does not have become texts.
pub fn write_value(text: &mut String, value: Value<'_>) {
    let _ = match value {
        Value::Bool(value) => write!(text, "{value}"),
        Value::Uint(value) => write!(text, "{value}"),
        Value::Int(value) => write!(text, "{value}"),
        Value::Double(value) if value.is_finite() => write!(text, "{value:?}"),
        Value::Double(value) => write!(text, "\"{value}\""),
        Value::Pointer(value) => write!(text, "\"{value:#x}\""),
        Value::Json(value) => {
            text.push_str(value);
            Ok(())
        }
        Value::Text(value) => {
            quote(text, value);
            Ok(())
        }
    };
}

/// Arguments as one JSON object; empty if there are none.
pub fn object<'v>(arguments: impl IntoIterator<Item = EventArgument<'v>>) -> String {
    let mut text = String::new();
    for argument in arguments {
        text.push(if text.is_empty() { '{' } else { ',' });
        quote(&mut text, argument.name);
        text.push(':');
        write_value(&mut text, argument.value);
    }
    if !text.is_empty() {
        text.push('}');
    }
    text
}
