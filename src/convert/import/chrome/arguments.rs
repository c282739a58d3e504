//! Arguments of events: JSON objects, as values of the model.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

use super::event::text;
use gputrail_trace::model::{EventArgument, Value};

/// Arguments that there is room for in a list before it grows.
const USUAL: usize = 16;

/// Stands between objects of arguments. JSON has it nowhere.
pub(super) const SEPARATOR: char = '\x1e';

/// Calls `take` with each name and value of the JSON objects in `args`.
pub(in crate::import) fn each<'a>(args: &'a str, take: impl FnMut(&str, &'a RawValue)) {
    each_cow(args, {
        let mut take = take;
        move |name, value| take(&name, value)
    });
}

fn each_cow<'a>(args: &'a str, take: impl FnMut(Cow<'a, str>, &'a RawValue)) {
    struct MemberVisitor<F>(F);
    impl<'de, F: FnMut(Cow<'de, str>, &'de RawValue)> serde_core::de::Visitor<'de>
        for MemberVisitor<F>
    {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde_core::de::MapAccess<'de>>(
            mut self,
            mut map: A,
        ) -> Result<(), A::Error> {
            while let Some(name) = map.next_key::<&'de RawValue>()? {
                (self.0)(text(name.get()), map.next_value()?);
            }
            Ok(())
        }
    }
    struct Seed<'s, F>(&'s mut F);
    impl<'de, F: FnMut(Cow<'de, str>, &'de RawValue)> serde_core::de::DeserializeSeed<'de>
        for Seed<'_, F>
    {
        type Value = ();

        fn deserialize<D: serde_core::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
            from.deserialize_map(MemberVisitor(self.0))
        }
    }
    let mut take = take;
    for object in args.split(SEPARATOR) {
        if is_object(object.trim_ascii_start()) {
            let mut from = serde_json::Deserializer::from_str(object);
            // It is JSON: the first pass has read it.
            let _ = serde_core::de::DeserializeSeed::deserialize(Seed(&mut take), &mut from);
        }
    }
}

fn is_object(json: &str) -> bool {
    json.as_bytes().first() == Some(&b'{')
}

/// A whole number, as such or as a text.
pub(super) fn number(value: &RawValue) -> Option<u64> {
    let text = text(value.get());
    text.parse().ok().or_else(|| {
        let text = text.trim();
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text
                .parse()
                .ok()
                .or_else(|| text.parse::<i64>().ok().map(|number| number as u64)),
        }
    })
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
    list.reserve(USUAL);
    each_cow(args, |name, raw| list.push((name, value(raw.get()))));
    if !is_object(args)
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
