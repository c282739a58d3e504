//! Arguments of events: JSON objects, as values of the model.
//!
//! An object is parsed once, and stored beside its event as a block of bytes until the event is passed on: the number of values and
//! the length of their texts (`u32` each), for each value the length of its name with a [`tag`] and 64 bits, and all names and texts.
//! Blocks may follow each other.

use std::fmt;

use serde_json::value::RawValue;

use super::event::text;
use gputrail_trace::model::{EventArgument, Value};

/// Calls `take` with each name and value of the JSON object `args`, if it is one.
pub(in crate::import) fn each<'a>(args: &'a str, mut take: impl FnMut(&str, &'a RawValue)) {
    struct MemberVisitor<F>(F);
    impl<'de, F: FnMut(&str, &'de RawValue)> serde_core::de::Visitor<'de> for MemberVisitor<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde_core::de::MapAccess<'de>>(
            mut self,
            mut map: A,
        ) -> Result<(), A::Error> {
            while let Some(name) = map.next_key::<&'de RawValue>()? {
                (self.0)(&text(name.get()), map.next_value()?);
            }
            Ok(())
        }
    }
    struct Seed<'s, F>(&'s mut F);
    impl<'de, F: FnMut(&str, &'de RawValue)> serde_core::de::DeserializeSeed<'de> for Seed<'_, F> {
        type Value = ();

        fn deserialize<D: serde_core::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
            from.deserialize_map(MemberVisitor(self.0))
        }
    }
    if is_object(args) {
        let mut from = serde_json::Deserializer::from_str(args);
        // It is JSON: the event around it has been read.
        let _ = serde_core::de::DeserializeSeed::deserialize(Seed(&mut take), &mut from);
    }
}

fn is_object(json: &str) -> bool {
    json.trim_ascii_start().starts_with('{')
}

/// A whole number, as such or as a text.
pub(super) fn number(value: &RawValue) -> Option<u64> {
    number_of(&text(value.get()))
}

/// As [`number`].
pub(super) fn number_of_value(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Uint(number) => Some(number),
        Value::Int(number) => Some(number as u64),
        Value::Text(text) => number_of(text),
        _ => None,
    }
}

fn number_of(text: &str) -> Option<u64> {
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

/// The kinds of stored values.
mod tag {
    pub const BITS: u32 = 3;
    pub const BOOL: u32 = 0;
    pub const UINT: u32 = 1;
    pub const INT: u32 = 2;
    pub const DOUBLE: u32 = 3;
    /// The 64 bits are the length of the text.
    pub const TEXT: u32 = 4;
    /// As `TEXT`, of a list or an object.
    pub const JSON: u32 = 5;
}

/// A stored value: the length of its name with its tag, and its two halves.
type StoredValue = [u32; 3];

/// Values in the form in which they are stored.
#[derive(Debug, Default)]
pub(super) struct StoredArguments {
    values: Vec<StoredValue>,
    texts: String,
    counts: [u32; 2],
}

impl StoredArguments {
    /// Removes all values.
    pub fn clear(&mut self) {
        self.values.clear();
        self.texts.clear();
    }

    /// Adds the members of the JSON object `args`, or another value as `args`. Calls `look` with the name and the value of each.
    pub fn add(&mut self, args: &str, mut look: impl FnMut(&str, Value<'_>)) {
        if is_object(args) {
            each(args, |name, raw| self.add_value(name, raw.get(), &mut look));
        } else if !args.is_empty() {
            self.add_value("args", args, &mut look);
        }
    }

    fn add_value(&mut self, name: &str, raw: &str, look: &mut impl FnMut(&str, Value<'_>)) {
        let own;
        let value = match raw.as_bytes().first() {
            Some(b'"') => {
                own = text(raw);
                Value::Text(&own)
            }
            _ => plain(raw),
        };
        look(name, value);
        self.texts.push_str(name);
        let (tag, bits) = match value {
            Value::Bool(value) => (tag::BOOL, value.into()),
            Value::Uint(number) => (tag::UINT, number),
            Value::Int(number) => (tag::INT, number as u64),
            Value::Double(number) => (tag::DOUBLE, number.to_bits()),
            Value::Pointer(address) => (tag::UINT, address),
            Value::Text(text) => {
                self.texts.push_str(text);
                (tag::TEXT, text.len() as u64)
            }
            Value::Json(json) => {
                self.texts.push_str(json);
                (tag::JSON, json.len() as u64)
            }
        };
        // An event, and all that is in it, is shorter than 64 MiB.
        let name = (name.len() as u32) << tag::BITS | tag;
        self.values.push([name, bits as u32, (bits >> 32) as u32]);
    }

    /// The parts of the block.
    pub fn parts(&mut self) -> [&[u8]; 3] {
        self.counts = [self.values.len() as u32, self.texts.len() as u32];
        [
            bytemuck::bytes_of(&self.counts),
            bytemuck::cast_slice(&self.values),
            self.texts.as_bytes(),
        ]
    }
}

/// A value that is no string.
fn plain(raw: &str) -> Value<'_> {
    match raw.as_bytes().first() {
        Some(b'[' | b'{') => Value::Json(raw),
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'-' | b'0'..=b'9') => {
            if let Ok(number) = raw.parse() {
                Value::Uint(number)
            } else if let Ok(number) = raw.parse() {
                Value::Int(number)
            } else {
                match raw.parse::<f64>() {
                    // A whole number beyond 64 bits keeps its digits.
                    Ok(number) if number.is_finite() && raw.contains(['.', 'e', 'E']) => {
                        Value::Double(number)
                    }
                    _ => Value::Text(raw),
                }
            }
        }
        _ => Value::Text(raw),
    }
}

/// Puts the values of the blocks in `stored` into `list`.
pub(super) fn read<'a>(stored: &'a [u8], list: &mut Vec<EventArgument<'a>>) {
    list.clear();
    let mut rest = stored;
    while let Some(behind) = read_block(rest, list) {
        rest = behind;
    }
}

/// Reads a block, and returns what is behind it; none at the end.
fn read_block<'a>(stored: &'a [u8], list: &mut Vec<EventArgument<'a>>) -> Option<&'a [u8]> {
    let (counts, rest) = stored.split_first_chunk::<8>()?;
    let [count, length]: [u32; 2] = bytemuck::cast(*counts);
    let (values, rest) = rest.split_at_checked(count as usize * size_of::<StoredValue>())?;
    let (texts, rest) = rest.split_at_checked(length as usize)?;
    let mut texts = std::str::from_utf8(texts).ok()?;
    let mut next = |length: usize| {
        let (text, behind) = texts.split_at_checked(length)?;
        texts = behind;
        Some(text)
    };
    list.reserve(count as usize);
    for value in values.chunks_exact(size_of::<StoredValue>()) {
        let [name, low, high]: StoredValue = bytemuck::pod_read_unaligned(value);
        let bits = u64::from(high) << 32 | u64::from(low);
        let tag = name & ((1 << tag::BITS) - 1);
        let name = next((name >> tag::BITS) as usize)?;
        let value = match tag {
            tag::BOOL => Value::Bool(bits != 0),
            tag::UINT => Value::Uint(bits),
            tag::INT => Value::Int(bits as i64),
            tag::DOUBLE => Value::Double(f64::from_bits(bits)),
            tag::JSON => Value::Json(next(bits as usize)?),
            _ => Value::Text(next(bits as usize)?),
        };
        list.push(EventArgument { name, value });
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_stored() {
        let mut stored = StoredArguments::default();
        let mut bytes = Vec::new();
        let objects = [
            r#"{"a": 1, "b\n": -2, "c": 0.5, "text": "x\ty", "list": [1, 2], "yes": true, "no": false, "nothing": null}"#,
            "{}",
            r#"{"large": 18446744073709551616, "whole": 18446744073709551615, "": ""}"#,
            "7",
            "",
        ];
        let mut looked = Vec::new();
        for object in objects {
            stored.clear();
            stored.add(object, |name, value| {
                looked.push((name.to_owned(), format!("{value:?}")))
            });
            bytes.extend(stored.parts().concat());
        }
        let mut list = Vec::new();
        read(&bytes, &mut list);
        let all: Vec<_> = list.iter().map(|one| (one.name, one.value)).collect();
        let expected = [
            ("a", Value::Uint(1)),
            ("b\n", Value::Int(-2)),
            ("c", Value::Double(0.5)),
            ("text", Value::Text("x\ty")),
            ("list", Value::Json("[1, 2]")),
            ("yes", Value::Bool(true)),
            ("no", Value::Bool(false)),
            ("nothing", Value::Text("null")),
            ("large", Value::Text("18446744073709551616")),
            ("whole", Value::Uint(u64::MAX)),
            ("", Value::Text("")),
            ("args", Value::Uint(7)),
        ];
        assert_eq!(all, expected);
        assert!(
            looked
                .iter()
                .map(|(name, value)| (&**name, value.clone()))
                .eq(expected
                    .iter()
                    .map(|(name, value)| (*name, format!("{value:?}"))))
        );
    }

    #[test]
    fn a_block_that_is_cut_gives_what_is_before() {
        let mut stored = StoredArguments::default();
        stored.add(r#"{"a": "text", "b": 2}"#, |_, _| {});
        let bytes = stored.parts().concat();
        for end in 0..bytes.len() {
            let mut list = Vec::new();
            read(&bytes[..end], &mut list);
            assert!(list.is_empty());
        }
    }
}
