//! One trace event: the fields of its JSON object, borrowed from the text.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

/// The fields of an event, as they stand in the file.
#[derive(Debug, Default)]
pub(in crate::import) struct ChromeEvent<'a> {
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
                    let place = match field {
                        FieldName::Ph => &mut event.ph,
                        FieldName::Name => &mut event.name,
                        FieldName::Cat => &mut event.cat,
                        FieldName::Pid => &mut event.pid,
                        FieldName::Tid => &mut event.tid,
                        FieldName::Ts => &mut event.ts,
                        FieldName::Dur => &mut event.dur,
                        FieldName::Args => &mut event.args,
                        FieldName::Id => &mut event.id,
                        FieldName::Id2 => &mut event.id2,
                        FieldName::Scope => &mut event.scope,
                        FieldName::Bp => &mut event.bp,
                        FieldName::S => &mut event.s,
                        FieldName::BindId => &mut event.bind_id,
                        FieldName::FlowIn => &mut event.flow_in,
                        FieldName::FlowOut => &mut event.flow_out,
                        FieldName::Further(name) => {
                            event.further.push((name, value));
                            continue;
                        }
                    };
                    *place = Some(value);
                }
                Ok(event)
            }
        }
        deserializer.deserialize_map(EventVisitor)
    }
}

/// The text of a JSON string, or the JSON of another value.
pub(in crate::import) fn text(raw: &str) -> Cow<'_, str> {
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
