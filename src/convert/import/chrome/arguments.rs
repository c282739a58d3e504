//! Arguments of events: JSON objects, as values of the model.

use std::borrow::Cow;

use super::event::text;
use super::plain::{behind, skip_space, string_end, value_end};
use gputrail_trace::model::{EventArgument, Value};

/// Stands between objects of arguments. JSON has it nowhere.
pub(super) const SEPARATOR: char = '\x1e';

/// Calls `take` with each name and value of the JSON objects in `args`.
pub(super) fn each<'a>(args: &'a str, mut take: impl FnMut(&str, &'a str)) {
    for (name, value) in members(args) {
        take(&text(name), value);
    }
}

/// The names and values of the JSON objects in `args`, as JSON.
fn members(args: &str) -> impl Iterator<Item = (&str, &str)> {
    let objects = args.split(SEPARATOR);
    let objects = objects.filter(|object| object.trim_ascii_start().starts_with('{'));
    objects.flat_map(|rest| ObjectMembers { rest })
}

/// The members of an object.
struct ObjectMembers<'a> {
    /// The object behind the member that came last.
    rest: &'a str,
}

impl<'a> Iterator for ObjectMembers<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<(&'a str, &'a str)> {
        let bytes = self.rest.as_bytes();
        let quote = bytes.iter().position(|byte| *byte == b'"')?;
        let name_end = string_end(bytes, quote)?;
        let begin = skip_space(bytes, behind(bytes, skip_space(bytes, name_end), b':')?);
        let end = value_end(bytes, begin)?;
        let member = (self.rest.get(quote..name_end)?, self.rest.get(begin..end)?);
        self.rest = self.rest.get(end..)?;
        Some(member)
    }
}

/// A whole number, as such or as a text.
pub(super) fn number(value: &str) -> Option<u64> {
    let text = text(value);
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text
            .parse()
            .ok()
            .or_else(|| text.parse::<i64>().ok().map(|number| number as u64)),
    }
}

/// A value that may own its text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OwnedValue<'a> {
    /// A value without a text.
    Plain(Value<'a>),
    /// A text.
    Text(Cow<'a, str>),
    /// A list or an object, as JSON.
    Json(&'a str),
}

/// Named values.
pub(super) type NamedValues<'a> = Vec<(Cow<'a, str>, OwnedValue<'a>)>;

/// Puts the values of `args` into `list`.
pub(super) fn parse<'a>(args: &'a str, list: &mut NamedValues<'a>) {
    list.clear();
    list.extend(members(args).map(|(name, raw)| (text(name), value(raw))));
    if !args.starts_with('{')
        && let Some(first) = args.split(SEPARATOR).next()
        && !first.is_empty()
    {
        list.push(("args".into(), value(first)));
    }
}

fn value(raw: &str) -> OwnedValue<'_> {
    match raw.as_bytes().first() {
        Some(b'"') => OwnedValue::Text(text(raw)),
        Some(b'[' | b'{') => OwnedValue::Json(raw),
        Some(b't') => OwnedValue::Plain(Value::Bool(true)),
        Some(b'f') => OwnedValue::Plain(Value::Bool(false)),
        Some(b'-' | b'0'..=b'9') => {
            if let Ok(number) = raw.parse() {
                OwnedValue::Plain(Value::Uint(number))
            } else if let Ok(number) = raw.parse() {
                OwnedValue::Plain(Value::Int(number))
            } else {
                match raw.parse::<f64>() {
                    // A whole number beyond 64 bits keeps its digits.
                    Ok(number) if number.is_finite() && raw.contains(['.', 'e', 'E']) => {
                        OwnedValue::Plain(Value::Double(number))
                    }
                    _ => OwnedValue::Text(raw.into()),
                }
            }
        }
        _ => OwnedValue::Text(raw.into()),
    }
}

impl OwnedValue<'_> {
    /// The value as the model has it.
    pub fn borrowed(&self) -> Value<'_> {
        match self {
            OwnedValue::Plain(value) => *value,
            OwnedValue::Text(text) => Value::Text(text),
            OwnedValue::Json(text) => Value::Json(text),
        }
    }
}

/// The values as the model has them.
pub(super) fn borrowed<'v>(values: &'v NamedValues<'_>) -> Vec<EventArgument<'v>> {
    let argument = |(name, value): &'v (Cow<'_, str>, OwnedValue<'_>)| EventArgument {
        name,
        value: value.borrowed(),
    };
    values.iter().map(argument).collect()
}

/// A list without values, in the memory of another one: what is collected from a list takes its place.
pub(super) fn emptied<'b>(list: NamedValues<'_>) -> NamedValues<'b> {
    list.into_iter().filter_map(|_| None).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::chrome::plain::tests::json;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn members_are_those_of_the_objects(
            values in prop::collection::btree_map(".*", json(), 0..6),
            pretty: bool,
            objects in 1usize..3,
        ) {
            let object = match pretty {
                true => serde_json::to_string_pretty(&values),
                false => serde_json::to_string(&values),
            };
            let args = vec![object.unwrap(); objects].join("\x1e");
            let mut found = Vec::new();
            each(&args, |name, value| {
                found.push((name.to_owned(), serde_json::from_str(value).unwrap()));
            });
            let values: Vec<(String, serde_json::Value)> = values.into_iter().collect();
            prop_assert_eq!(found, vec![values; objects].concat());
        }
    }
}
