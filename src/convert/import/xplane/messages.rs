//! Messages in a file, by the places at which they stand: a plane may be larger than memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bytes that are read at a time.
const WINDOW: usize = 1 << 18;
/// Bytes of the longest key and number of a field.
const HEAD: u64 = 20;

/// A part of a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub from: u64,
    pub to: u64,
}

impl Span {
    pub fn length(self) -> u64 {
        self.to - self.from
    }
}

/// A file that is read at any place, mostly forward.
pub(super) struct MessageFile {
    file: Arc<File>,
    pub length: u64,
    /// The bytes in memory, and where they stand.
    buffer: Vec<u8>,
    start: u64,
}

impl MessageFile {
    pub fn new(file: Arc<File>) -> io::Result<MessageFile> {
        Ok(MessageFile {
            length: file.metadata()?.len(),
            file,
            buffer: Vec::new(),
            start: 0,
        })
    }

    /// The bytes of a part of the file. A file that was made shorter meanwhile is an error.
    pub fn bytes(&mut self, span: Span) -> io::Result<&[u8]> {
        let end = self.start + self.buffer.len() as u64;
        if span.from < self.start || span.to > end {
            let most = self.length.saturating_sub(span.from);
            let wanted = span.length().max(WINDOW as u64).min(most);
            self.buffer.resize(wanted as usize, 0);
            self.start = span.from;
            if let Err(error) = self.file.read_exact_at(&mut self.buffer, span.from) {
                self.buffer.clear();
                return Err(error);
            }
        }
        let from = (span.from - self.start) as usize;
        let bytes = self.buffer.get(from..from + span.length() as usize);
        bytes.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// The value of a field.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum SpanValue {
    Number(u64),
    /// A text, bytes, or a message.
    Bytes(Span),
    /// Four or eight bytes, which no message here has beside values of statistics.
    Fixed,
}

/// A field of a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct SpanField {
    pub number: u32,
    pub value: SpanValue,
}

/// The damage in place of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldDamage {
    pub at: u64,
    pub found: String,
}

/// The fields of a message, until its end or until damage.
pub(super) struct SpanFields {
    rest: Span,
}

impl SpanFields {
    pub fn new(message: Span) -> SpanFields {
        SpanFields { rest: message }
    }

    /// Where the message ends.
    pub fn end(&self) -> u64 {
        self.rest.to
    }

    /// The next field, and the damage in it: of a field that is cut, the part that is there.
    pub fn next(
        &mut self,
        file: &mut MessageFile,
    ) -> io::Result<(Option<SpanField>, Option<FieldDamage>)> {
        let Span { from, to } = self.rest;
        if from >= to {
            return Ok((None, None));
        }
        let head = file.bytes(Span {
            from,
            to: to.min(from + HEAD),
        })?;
        // Whatever comes, reading ends behind this field or at the end of the message.
        self.rest.from = to;
        let damage = |found: &str| {
            let found = found.to_owned();
            Ok((None, Some(FieldDamage { at: from, found })))
        };
        let Some((key, length)) = varint(head) else {
            return damage("a key of a field that is cut");
        };
        let number = match u32::try_from(key >> 3) {
            Ok(number) if (1..1 << 29).contains(&number) => number,
            _ => return damage("an invalid field number"),
        };
        let (value, size) = match (key & 7, varint(&head[length..])) {
            (0, Some((value, size))) => (SpanValue::Number(value), size as u64),
            (0, None) => return damage("a number that is cut"),
            (1, _) => (SpanValue::Fixed, 8),
            (5, _) => (SpanValue::Fixed, 4),
            (2, Some((wanted, size))) => {
                let from = from + (length + size) as u64;
                let there = to - from;
                let span = Span {
                    from,
                    to: from + wanted.min(there),
                };
                self.rest.from = span.to;
                let field = SpanField {
                    number,
                    value: SpanValue::Bytes(span),
                };
                let cut = (wanted > there).then(|| FieldDamage {
                    at: from,
                    found: format!("a field of {wanted} bytes, of which {there} are there"),
                });
                return Ok((Some(field), cut));
            }
            (2, None) => return damage("a length that is cut"),
            _ => return damage("a field of a type that is not in use"),
        };
        let end = from + length as u64 + size;
        if end > to {
            return damage("a field that is cut");
        }
        self.rest.from = end;
        Ok((Some(SpanField { number, value }), None))
    }
}

/// The number at the front, and how many bytes it takes; none if it does not end within 64 bits.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (place, byte) in bytes.iter().take(10).enumerate() {
        let low = u64::from(byte & 0x7f);
        if place == 9 && low > 1 {
            return None;
        }
        value |= low << (7 * place);
        if byte & 0x80 == 0 {
            return Some((value, place + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_trace::perfetto::reader::{FieldValue, MessageFields};
    use proptest::prelude::*;
    use std::io::Write;

    fn fields(bytes: &[u8]) -> (Vec<SpanField>, Option<FieldDamage>) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let mut file = MessageFile::new(Arc::new(file)).unwrap();
        let mut fields = SpanFields::new(Span {
            from: 0,
            to: file.length,
        });
        let (mut all, mut damages) = (Vec::new(), None);
        loop {
            let (field, damage) = fields.next(&mut file).unwrap();
            damages = damages.or(damage);
            match field {
                Some(field) => all.push(field),
                None => return (all, damages),
            }
        }
    }

    #[test]
    fn of_a_field_that_is_cut_the_rest_is_there() {
        let (fields, damage) = fields(&[8, 1, 18, 5, b'a', b'b']);
        let value = SpanValue::Bytes(Span { from: 4, to: 6 });
        assert_eq!(fields[1], SpanField { number: 2, value });
        assert_eq!(
            damage,
            Some(FieldDamage {
                at: 4,
                found: "a field of 5 bytes, of which 2 are there".to_owned()
            })
        );
    }

    proptest! {
        /// Any bytes are read as the other reader of messages reads them.
        #[test]
        fn fields_are_those_of_a_message_in_memory(bytes: Vec<u8>) {
            let (found, damage) = fields(&bytes);
            let mut expected = MessageFields::new(&bytes);
            let read: Vec<_> = expected.by_ref().collect();
            // The part of a field that is cut is one more.
            prop_assert!((read.len()..=read.len() + 1).contains(&found.len()));
            for (field, found) in read.into_iter().zip(&found) {
                prop_assert_eq!(field.number, found.number);
                match (field.value, found.value) {
                    (FieldValue::Number(one), SpanValue::Number(other)) => prop_assert_eq!(one, other),
                    (FieldValue::Bytes(one), SpanValue::Bytes(span)) => {
                        prop_assert_eq!(one, &bytes[span.from as usize..span.to as usize]);
                    }
                    (FieldValue::Fixed64(_) | FieldValue::Fixed32(_), SpanValue::Fixed) => {}
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            prop_assert_eq!(damage.is_some(), expected.malformed().is_some());
        }
    }
}
