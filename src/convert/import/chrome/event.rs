//! One trace event: the fields of its JSON object, borrowed from the text.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

use super::plain::{behind, skip_space, string_end, value_end};

/// The fields of an event, as they stand in the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChromeEvent<'a> {
    /// Phase.
    pub ph: Option<&'a str>,
    pub name: Option<&'a str>,
    pub cat: Option<&'a str>,
    pub pid: Option<&'a str>,
    pub tid: Option<&'a str>,
    pub ts: Option<&'a str>,
    pub dur: Option<&'a str>,
    pub args: Option<&'a str>,
    pub id: Option<&'a str>,
    /// An id of its process only, or of all processes, instead of `id`.
    pub id2: Option<&'a str>,
    pub scope: Option<&'a str>,
    /// Binding point of a flow's end: "e" is the enclosing slice.
    pub bp: Option<&'a str>,
    /// Scope of an instant: its thread, its process, or all.
    pub s: Option<&'a str>,
    /// The id of a flow through the event, and whether the flow comes into it and goes out of it.
    pub bind_id: Option<&'a str>,
    pub flow_in: Option<&'a str>,
    pub flow_out: Option<&'a str>,
    /// Further fields: names and values.
    pub further: Vec<(Cow<'a, str>, &'a str)>,
}

/// The name of a field.
enum FieldName<'a> {
    Ph,
    Name,
    Cat,
    Pid,
    Tid,
    Ts,
    Dur,
    Args,
    Id,
    Id2,
    Scope,
    Bp,
    S,
    BindId,
    FlowIn,
    FlowOut,
    Further(Cow<'a, str>),
}

impl<'de: 'a, 'a> serde_core::Deserialize<'de> for FieldName<'a> {
    fn deserialize<D: serde_core::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<FieldName<'a>, D::Error> {
        struct NameVisitor;
        impl<'de> serde_core::de::Visitor<'de> for NameVisitor {
            type Value = FieldName<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<FieldName<'de>, E> {
                Ok(known(name).unwrap_or(FieldName::Further(Cow::Borrowed(name))))
            }

            fn visit_str<E>(self, name: &str) -> Result<FieldName<'de>, E> {
                Ok(known(name).unwrap_or_else(|| FieldName::Further(Cow::Owned(name.to_owned()))))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

/// The field called `name`, if it is one of those that every event may have.
fn known<'a>(name: &str) -> Option<FieldName<'a>> {
    Some(match name {
        "ph" => FieldName::Ph,
        "name" => FieldName::Name,
        "cat" => FieldName::Cat,
        "pid" => FieldName::Pid,
        "tid" => FieldName::Tid,
        "ts" => FieldName::Ts,
        "dur" => FieldName::Dur,
        "args" => FieldName::Args,
        "id" => FieldName::Id,
        "id2" => FieldName::Id2,
        "scope" => FieldName::Scope,
        "bp" => FieldName::Bp,
        "s" => FieldName::S,
        "bind_id" => FieldName::BindId,
        "flow_in" => FieldName::FlowIn,
        "flow_out" => FieldName::FlowOut,
        _ => return None,
    })
}

impl<'a> ChromeEvent<'a> {
    /// The event at the beginning of `text`, and its length.
    pub fn parse(text: &'a str) -> Option<(ChromeEvent<'a>, usize)> {
        ChromeEvent::parse_plain(text).or_else(|| {
            let mut stream = serde_json::Deserializer::from_str(text).into_iter();
            let event = stream.next()?.ok()?;
            Some((event, stream.byte_offset()))
        })
    }

    /// As [`parse`](Self::parse), of an event whose names have no escapes.
    fn parse_plain(text: &'a str) -> Option<(ChromeEvent<'a>, usize)> {
        let bytes = text.as_bytes();
        let mut event = ChromeEvent::default();
        let mut at = skip_space(bytes, behind(bytes, 0, b'{')?);
        if let Some(end) = behind(bytes, at, b'}') {
            return Some((event, end));
        }
        loop {
            let name_end = string_end(bytes, at)?;
            let name = text.get(at + 1..name_end - 1)?;
            let field = match known(name) {
                Some(field) => field,
                None if name.contains('\\') => return None,
                None => FieldName::Further(Cow::Borrowed(name)),
            };
            let colon = behind(bytes, skip_space(bytes, name_end), b':')?;
            let begin = skip_space(bytes, colon);
            let end = value_end(bytes, begin)?;
            event.put(field, text.get(begin..end)?);
            at = skip_space(bytes, end);
            match bytes.get(at)? {
                b',' => at = skip_space(bytes, at + 1),
                b'}' => return Some((event, at + 1)),
                _ => return None,
            }
        }
    }

    fn put(&mut self, field: FieldName<'a>, value: &'a str) {
        let place = match field {
            FieldName::Ph => &mut self.ph,
            FieldName::Name => &mut self.name,
            FieldName::Cat => &mut self.cat,
            FieldName::Pid => &mut self.pid,
            FieldName::Tid => &mut self.tid,
            FieldName::Ts => &mut self.ts,
            FieldName::Dur => &mut self.dur,
            FieldName::Args => &mut self.args,
            FieldName::Id => &mut self.id,
            FieldName::Id2 => &mut self.id2,
            FieldName::Scope => &mut self.scope,
            FieldName::Bp => &mut self.bp,
            FieldName::S => &mut self.s,
            FieldName::BindId => &mut self.bind_id,
            FieldName::FlowIn => &mut self.flow_in,
            FieldName::FlowOut => &mut self.flow_out,
            FieldName::Further(name) => {
                self.further.push((name, value));
                return;
            }
        };
        *place = Some(value);
    }
}

impl<'de: 'a, 'a> serde_core::Deserialize<'de> for ChromeEvent<'a> {
    fn deserialize<D: serde_core::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ChromeEvent<'a>, D::Error> {
        struct EventVisitor;
        impl<'de> serde_core::de::Visitor<'de> for EventVisitor {
            type Value = ChromeEvent<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an event, which is an object")
            }

            fn visit_map<A: serde_core::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<ChromeEvent<'de>, A::Error> {
                let mut event = ChromeEvent::default();
                while let Some(field) = map.next_key::<FieldName<'de>>()? {
                    let value = map.next_value::<&'de RawValue>()?.get();
                    event.put(field, value);
                }
                Ok(event)
            }
        }
        deserializer.deserialize_map(EventVisitor)
    }
}

/// The text of a JSON string, or the JSON of another value.
pub(super) fn text(raw: &str) -> Cow<'_, str> {
    let Some(inner) = raw
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    else {
        return Cow::Borrowed(raw);
    };
    match inner.contains('\\') {
        false => Cow::Borrowed(inner),
        // Halves of surrogate pairs by themselves are no text: the escapes stay as they are.
        true => match serde_json::from_str::<String>(raw) {
            Ok(text) => Cow::Owned(text),
            Err(_) => Cow::Borrowed(inner),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pieces of an event, and of what is nearly one.
    fn piece() -> impl Strategy<Value = &'static str> {
        prop::sample::select(
            &[
                r#""ph":"X","#,
                r#""name" : "a\u00e9\n\"","#,
                r#""na\u006de":"escaped","#,
                r#""ts":1712195495505582.988,"#,
                r#""dur":-0.5e3, "#,
                r#""args":{"a":[1,{}],"b\u0020":"\ud800"},"#,
                r#""further":null,"#,
                r#""\ud800":true,"#,
                r#""id":{"local":"0x1"},"#,
                r#""ph":1"#,
                r#""ph":"#,
                r#"{"ph":"X"}"#,
                ",",
                "}",
                "\n",
            ][..],
        )
    }

    proptest! {
        #[test]
        fn plain_events_are_those_that_serde_json_reads(pieces in prop::collection::vec(piece(), 0..8)) {
            let text = format!("{{{}\"cat\":\"kernel\"}}, rest", pieces.concat());
            let mut stream = serde_json::Deserializer::from_str(&text).into_iter::<ChromeEvent<'_>>();
            let expected = stream.next().and_then(Result::ok);
            let expected = expected.map(|event| (event, stream.byte_offset()));
            let plain = ChromeEvent::parse_plain(&text);
            prop_assert!(plain.is_none() || plain == expected, "{}", text);
            // Escapes in names are all that is left to serde_json.
            prop_assert!(plain.is_some() || expected.is_none() || text.contains("na\\u"), "{}", text);
            prop_assert_eq!(ChromeEvent::parse(&text), expected);
        }
    }
}
