//! The protobuf wire format, written by hand into a buffer that is reused.
//!
//! The hot packets of a trace (slices and stages) go through here instead of through prost: no
//! struct is built and nothing is allocated. Messages nest by [`Encoder::open`] and
//! [`Encoder::close`]; one byte is set aside for the length, and a message that turns out longer
//! than 127 bytes is moved up, which the hot packets never need. The bytes are the same as prost's.

/// Number of a field in its message.
pub type Field = u32;

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

/// A message that has been opened and not yet closed.
#[must_use = "an open message has no length yet"]
#[derive(Debug)]
pub struct Open {
    /// Where the message's own bytes begin; its length stands before.
    start: usize,
}

/// Most bytes of a field whose value is a number: five of key, ten of varint.
const ROOM: usize = 16;

/// Writes fields one after the other.
#[derive(Debug, Default)]
pub struct Encoder {
    /// What has been written, and room behind it.
    buffer: Vec<u8>,
    /// Bytes written; at most the buffer's length.
    at: usize,
}

impl Encoder {
    /// An encoder whose buffer holds `capacity` bytes before it grows.
    pub fn with_capacity(capacity: usize) -> Encoder {
        Encoder {
            buffer: vec![0; capacity],
            at: 0,
        }
    }

    /// What has been written.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.at]
    }

    /// Number of bytes written.
    pub fn len(&self) -> usize {
        self.at
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.at == 0
    }

    /// Forgets what has been written and keeps the buffer.
    pub fn clear(&mut self) {
        self.at = 0;
    }

    /// An unsigned integer or an enum.
    #[inline]
    pub fn uint(&mut self, field: Field, value: u64) {
        let room = self.room();
        let key = put(room, 0, u64::from(field << 3 | VARINT));
        let length = put(room, key, value);
        self.at += length;
    }

    /// A signed integer of the types `int32` or `int64`: negative values take ten bytes.
    #[inline]
    pub fn int(&mut self, field: Field, value: i64) {
        self.uint(field, value as u64);
    }

    /// A bool.
    #[inline]
    pub fn bool(&mut self, field: Field, value: bool) {
        self.uint(field, u64::from(value));
    }

    /// A double.
    pub fn double(&mut self, field: Field, value: f64) {
        let room = self.room();
        let key = put(room, 0, u64::from(field << 3 | FIXED64));
        room[key..key + 8].copy_from_slice(&value.to_le_bytes());
        self.at += key + 8;
    }

    /// A string.
    #[inline]
    pub fn string(&mut self, field: Field, value: &str) {
        self.raw(field, value.as_bytes());
    }

    /// Bytes, or a message that is already encoded.
    #[inline]
    pub fn raw(&mut self, field: Field, value: &[u8]) {
        let room = self.room();
        let key = put(room, 0, u64::from(field << 3 | LENGTH_DELIMITED));
        let length = put(room, key, value.len() as u64);
        self.at += length;
        self.append(value);
    }

    /// A number without a field, as they stand in a packed one.
    pub fn varint(&mut self, value: u64) {
        let room = self.room();
        self.at += put(room, 0, value);
    }

    /// Fields that are already encoded, with their numbers.
    pub fn append(&mut self, fields: &[u8]) {
        if self.buffer.len() - self.at < fields.len() {
            self.grow(fields.len());
        }
        self.buffer[self.at..self.at + fields.len()].copy_from_slice(fields);
        self.at += fields.len();
    }

    /// Begins a message.
    #[inline]
    pub fn open(&mut self, field: Field) -> Open {
        let room = self.room();
        let key = put(room, 0, u64::from(field << 3 | LENGTH_DELIMITED));
        self.at += key + 1;
        Open { start: self.at }
    }

    /// Ends a message: its length goes before it.
    #[inline]
    pub fn close(&mut self, message: Open) {
        let length = self.at - message.start;
        if length < 0x80 {
            self.buffer[message.start - 1] = length as u8;
        } else {
            self.close_long(message.start, length);
        }
    }

    #[cold]
    fn close_long(&mut self, start: usize, length: usize) {
        let mut digits = [0; ROOM];
        let count = put(&mut digits, 0, length as u64);
        self.room();
        self.buffer.copy_within(start..self.at, start + count - 1);
        self.buffer[start - 1..start - 1 + count].copy_from_slice(&digits[..count]);
        self.at += count - 1;
    }

    /// The next bytes of the buffer: room for any number.
    #[inline]
    fn room(&mut self) -> &mut [u8; ROOM] {
        if self.buffer.len() - self.at < ROOM {
            self.grow(ROOM);
        }
        self.buffer[self.at..]
            .first_chunk_mut()
            .expect("there is room")
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let length = (self.at + needed).max(self.buffer.len() * 2);
        self.buffer.resize(length, 0);
    }
}

/// Writes `value` as a varint at `at`, and tells where it ends. Room is left for it.
#[inline]
fn put(room: &mut [u8; ROOM], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        room[at % ROOM] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    room[at % ROOM] = value as u8;
    at + 1
}

/// A number as decimal text, without allocating.
#[derive(Debug)]
pub struct Decimal {
    /// The text stands at the end.
    digits: [u8; 20],
    start: usize,
}

impl Decimal {
    /// The text of `value`.
    pub fn new(mut value: i64) -> Decimal {
        let mut decimal = Decimal {
            digits: [0; 20],
            start: 20,
        };
        let negative = value < 0;
        loop {
            decimal.start -= 1;
            decimal.digits[decimal.start] = b'0' + (value % 10).unsigned_abs() as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        if negative {
            decimal.start -= 1;
            decimal.digits[decimal.start] = b'-';
        }
        decimal
    }

    /// The text as bytes of ASCII.
    pub fn bytes(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_varint_is_what_prost_writes(value: u64) {
            let mut ours = Encoder::default();
            ours.uint(1, value);
            let mut theirs = vec![1 << 3];
            prost::encoding::encode_varint(value, &mut theirs);
            prop_assert_eq!(ours.bytes(), &theirs[..]);
        }

        #[test]
        fn a_message_of_any_length_decodes(length in prop_oneof![0usize..300, 16_350usize..16_400]) {
            let mut encoder = Encoder::default();
            let outer = encoder.open(1);
            let inner = encoder.open(24);
            encoder.raw(2, &vec![b'x'; length]);
            encoder.close(inner);
            encoder.uint(7, 5);
            encoder.close(outer);

            let mut expected_inner = Encoder::default();
            expected_inner.raw(2, &vec![b'x'; length]);
            let mut expected_outer = Encoder::default();
            expected_outer.raw(24, expected_inner.bytes());
            expected_outer.uint(7, 5);
            let mut expected = Encoder::default();
            expected.raw(1, expected_outer.bytes());
            prop_assert_eq!(encoder.bytes(), expected.bytes());
        }

        #[test]
        fn a_decimal_is_what_the_formatter_writes(value: i64) {
            let (decimal, expected) = (Decimal::new(value), value.to_string());
            prop_assert_eq!(decimal.bytes(), expected.as_bytes());
        }
    }

    #[test]
    fn the_smallest_number_has_a_decimal() {
        assert_eq!(
            Decimal::new(i64::MIN).bytes(),
            i64::MIN.to_string().as_bytes()
        );
    }
}
