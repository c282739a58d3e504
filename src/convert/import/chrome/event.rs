//! One trace event: the fields of its JSON object, borrowed from the text.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

/// The fields of an event, as they stand in the file.
#[derive(Debug, Default)]
pub(super) struct Event<'a> {
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
    /// Further fields: names and values.
    pub further: Vec<(Cow<'a, str>, &'a str)>,
}

/// The name of a field.
enum Field<'a> {
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
    Further(Cow<'a, str>),
}

impl<'de: 'a, 'a> serde_core::Deserialize<'de> for Field<'a> {
    fn deserialize<D: serde_core::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Field<'a>, D::Error> {
        struct Visitor;
        impl<'de> serde_core::de::Visitor<'de> for Visitor {
            type Value = Field<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Field<'de>, E> {
                Ok(known(name).unwrap_or(Field::Further(Cow::Borrowed(name))))
            }

            fn visit_str<E>(self, name: &str) -> Result<Field<'de>, E> {
                Ok(known(name).unwrap_or_else(|| Field::Further(Cow::Owned(name.to_owned()))))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// The field called `name`, if it is one of those that every event may have.
fn known<'a>(name: &str) -> Option<Field<'a>> {
    Some(match name {
        "ph" => Field::Ph,
        "name" => Field::Name,
        "cat" => Field::Cat,
        "pid" => Field::Pid,
        "tid" => Field::Tid,
        "ts" => Field::Ts,
        "dur" => Field::Dur,
        "args" => Field::Args,
        "id" => Field::Id,
        "id2" => Field::Id2,
        "scope" => Field::Scope,
        "bp" => Field::Bp,
        "s" => Field::S,
        _ => return None,
    })
}

impl<'de: 'a, 'a> serde_core::Deserialize<'de> for Event<'a> {
    fn deserialize<D: serde_core::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Event<'a>, D::Error> {
        struct Visitor;
        impl<'de> serde_core::de::Visitor<'de> for Visitor {
            type Value = Event<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an event, which is an object")
            }

            fn visit_map<A: serde_core::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Event<'de>, A::Error> {
                let mut event = Event::default();
                while let Some(field) = map.next_key::<Field<'de>>()? {
                    let value = map.next_value::<&'de RawValue>()?.get();
                    let place = match field {
                        Field::Ph => &mut event.ph,
                        Field::Name => &mut event.name,
                        Field::Cat => &mut event.cat,
                        Field::Pid => &mut event.pid,
                        Field::Tid => &mut event.tid,
                        Field::Ts => &mut event.ts,
                        Field::Dur => &mut event.dur,
                        Field::Args => &mut event.args,
                        Field::Id => &mut event.id,
                        Field::Id2 => &mut event.id2,
                        Field::Scope => &mut event.scope,
                        Field::Bp => &mut event.bp,
                        Field::S => &mut event.s,
                        Field::Further(name) => {
                            event.further.push((name, value));
                            continue;
                        }
                    };
                    *place = Some(value);
                }
                Ok(event)
            }
        }
        deserializer.deserialize_map(Visitor)
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
