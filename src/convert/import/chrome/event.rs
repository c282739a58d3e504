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

/// The name of a field, borrowed if it has no escapes.
struct FieldName<'a>(Cow<'a, str>);

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
                Ok(FieldName(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<FieldName<'de>, E> {
                Ok(FieldName(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

/// The number of the fields that every event may have.
pub(super) const FIELDS: usize = 16;

impl<'a> ChromeEvent<'a> {
    /// The fields that every event may have, in the order of [`ChromeEvent::of_fields`].
    pub(super) fn fields(&self) -> [Option<&'a str>; FIELDS] {
        [
            self.ph,
            self.name,
            self.cat,
            self.pid,
            self.tid,
            self.ts,
            self.dur,
            self.args,
            self.id,
            self.id2,
            self.scope,
            self.bp,
            self.s,
            self.bind_id,
            self.flow_in,
            self.flow_out,
        ]
    }

    /// An event of the fields that [`ChromeEvent::fields`] gives, and further ones.
    pub(super) fn of_fields(
        fields: [Option<&'a str>; FIELDS],
        further: Vec<(Cow<'a, str>, &'a str)>,
    ) -> ChromeEvent<'a> {
        let [
            ph,
            name,
            cat,
            pid,
            tid,
            ts,
            dur,
            args,
            id,
            id2,
            scope,
            bp,
            s,
            bind_id,
            flow_in,
            flow_out,
        ] = fields;
        ChromeEvent {
            ph,
            name,
            cat,
            pid,
            tid,
            ts,
            dur,
            args,
            id,
            id2,
            scope,
            bp,
            s,
            bind_id,
            flow_in,
            flow_out,
            further,
        }
    }

    /// Where the value of the field `name` belongs, if it is one of those that every event may have.
    fn place(&mut self, name: &str) -> Option<&mut Option<&'a str>> {
        Some(match name {
            "ph" => &mut self.ph,
            "name" => &mut self.name,
            "cat" => &mut self.cat,
            "pid" => &mut self.pid,
            "tid" => &mut self.tid,
            "ts" => &mut self.ts,
            "dur" => &mut self.dur,
            "args" => &mut self.args,
            "id" => &mut self.id,
            "id2" => &mut self.id2,
            "scope" => &mut self.scope,
            "bp" => &mut self.bp,
            "s" => &mut self.s,
            "bind_id" => &mut self.bind_id,
            "flow_in" => &mut self.flow_in,
            "flow_out" => &mut self.flow_out,
            _ => return None,
        })
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
                while let Some(FieldName(name)) = map.next_key()? {
                    let value = map.next_value::<&'de RawValue>()?.get();
                    match event.place(&name) {
                        Some(place) => *place = Some(value),
                        None => event.further.push((name, value)),
                    }
                }
                Ok(event)
            }
        }
        deserializer.deserialize_map(EventVisitor)
    }
}

/// The text of a JSON string, or the JSON of another value.
pub(in crate::import) fn text(raw: &str) -> Cow<'_, str> {
    let [b'"', inner @ .., b'"'] = raw.as_bytes() else {
        return Cow::Borrowed(raw);
    };
    let has_escapes = inner.contains(&b'\\');
    let inner = Cow::Borrowed(&raw[1..raw.len() - 1]);
    match has_escapes {
        false => inner,
        // Halves of surrogate pairs by themselves are no text: the escapes stay as they are.
        true => serde_json::from_str::<String>(raw).map_or(inner, Cow::Owned),
    }
}
