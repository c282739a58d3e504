//! An encoder of the protobuf wire format with a buffer that is reused.
//!
//! The frequent packets of a trace (slices and stages) are written with it instead of prost: no struct is built and
//! nothing is allocated. Messages nest by [`Encoder::open`] and [`Encoder::close`]. One byte is reserved for a length;
//! a message that turns out longer than 127 bytes is moved, which the frequent packets never need. A group of fields
//! that is always short is written through [`ShortFields`], which checks the buffer's space once. The bytes are the
//! same as prost's.

/// Number of a field in its message.
pub type FieldNumber = u32;

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

/// A message that has been opened but not closed.
#[must_use = "an open message has no length yet"]
#[derive(Debug)]
pub struct OpenMessage {
    /// Where the message's own bytes begin; its length is stored before them.
    start: usize,
}

/// Maximum size of a field whose value is a number: five bytes of key, ten of varint.
const ROOM: usize = 16;
/// Maximum size of [`ShortFields`].
pub const MAX_SMALL_BYTES: usize = 128;
/// [`MAX_SMALL_BYTES`] and space for one more field.
const SMALL_CAPACITY: usize = MAX_SMALL_BYTES + ROOM;
/// Maximum size of [`EncodedFields`].
const MAX_FIELDS: usize = 48;

/// A writer of a few short fields, at most 128 bytes in all, to an [`Encoder`].
#[derive(Debug)]
pub struct ShortFields<'a> {
    room: &'a mut [u8; SMALL_CAPACITY],
    /// The offset of `room` in the encoder's buffer.
    base: usize,
    at: usize,
}

impl ShortFields<'_> {
    /// Writes an unsigned integer or an enum.
    #[inline(always)]
    pub fn uint(&mut self, field: FieldNumber, value: u64) {
        self.varint(u64::from(field << 3 | VARINT));
        self.varint(value);
    }

    /// Writes fields that are already encoded, with their keys.
    #[inline(always)]
    pub fn constant<const BYTES: usize>(&mut self, fields: [u8; BYTES]) {
        const { assert!(BYTES <= ROOM) };
        *first(self.next()) = fields;
        self.at += BYTES;
    }

    /// Begins a message with the constant fields of `start`.
    #[inline(always)]
    pub fn start(&mut self, start: &MessageStart) -> OpenMessage {
        let begun = self.base + self.at;
        *self.next() = start.bytes;
        self.at += usize::from(start.length);
        OpenMessage {
            start: begun + usize::from(start.opened),
        }
    }

    /// Begins a message.
    #[inline(always)]
    pub fn open(&mut self, field: FieldNumber) -> OpenMessage {
        self.varint(u64::from(field << 3 | LENGTH_DELIMITED));
        self.at += 1;
        OpenMessage {
            start: self.base + self.at,
        }
    }

    /// Ends a message that was begun here.
    #[inline(always)]
    pub fn close(&mut self, message: OpenMessage) {
        let start = message.start - self.base;
        self.room[(start - 1) % MAX_SMALL_BYTES] = (self.at - start) as u8;
    }

    /// Writes a number whose key has been written.
    #[inline(always)]
    pub fn varint(&mut self, value: u64) {
        self.at += put(self.next(), 0, value);
    }

    /// Writes a number as a string of decimal digits.
    #[inline(always)]
    pub fn decimal(&mut self, field: FieldNumber, value: i64) {
        let text = self.open(field);
        self.signed(value);
        self.close(text);
    }

    /// Writes a time as a string: decimal digits and `ns`.
    #[inline(always)]
    pub fn nanoseconds(&mut self, field: FieldNumber, value: i64) {
        let text = self.open(field);
        self.signed(value);
        self.constant(*b"ns");
        self.close(text);
    }

    #[inline(always)]
    fn signed(&mut self, value: i64) {
        self.next()[0] = b'-';
        self.at += usize::from(value < 0);
        self.digits(value.unsigned_abs());
    }

    #[inline(always)]
    fn digits(&mut self, value: u64) {
        if value >= EIGHT_DIGITS {
            return self.many_digits(value);
        }
        let digits = eight_digits(value);
        let zeros = (digits.trailing_zeros() / 8).min(7);
        let text = (digits | ASCII_ZEROS) >> (8 * zeros);
        *first(self.next()) = text.to_le_bytes();
        self.at += 8 - zeros as usize;
    }

    #[cold]
    fn many_digits(&mut self, value: u64) {
        self.digits(value / EIGHT_DIGITS);
        let text = eight_digits(value % EIGHT_DIGITS) | ASCII_ZEROS;
        *first(self.next()) = text.to_le_bytes();
        self.at += 8;
    }

    /// Space for the next field.
    #[inline(always)]
    fn next(&mut self) -> &mut [u8; ROOM] {
        debug_assert!(
            self.at < MAX_SMALL_BYTES,
            "these fields take more than {MAX_SMALL_BYTES} bytes"
        );
        // The remainder shows the compiler that there is space.
        first(&mut self.room[self.at % MAX_SMALL_BYTES..])
    }
}

/// A few fields that are written often, encoded once.
#[derive(Copy, Clone, Debug)]
pub struct EncodedFields {
    /// The fields, and any bytes after them: copying a constant size takes no loop.
    bytes: [u8; MAX_FIELDS],
    length: usize,
}

impl EncodedFields {
    /// Encodes the fields that `fill` writes; `None` if they are too long.
    pub fn new(fill: impl FnOnce(&mut Encoder)) -> Option<EncodedFields> {
        let mut encoder = Encoder::default();
        fill(&mut encoder);
        let mut fields = EncodedFields {
            bytes: [0; MAX_FIELDS],
            length: encoder.len(),
        };
        let bytes = fields.bytes.get_mut(..encoder.len())?;
        bytes.copy_from_slice(encoder.bytes());
        Some(fields)
    }
}

/// The constant begin of a message, and the fields before it: encoded once, to be continued many times.
#[derive(Copy, Clone, Debug)]
pub struct MessageStart {
    /// The fields, and any bytes after them.
    bytes: [u8; ROOM],
    length: u8,
    /// Where the message's own bytes begin.
    opened: u8,
}

impl MessageStart {
    /// Encodes the fields that `fill` writes and the message that it opens last; `None` if they are too long.
    pub fn new(fill: impl FnOnce(&mut Encoder) -> OpenMessage) -> Option<MessageStart> {
        let mut encoder = Encoder::default();
        let message = fill(&mut encoder);
        let mut bytes = [0; ROOM];
        bytes
            .get_mut(..encoder.len())?
            .copy_from_slice(encoder.bytes());
        Some(MessageStart {
            bytes,
            length: encoder.len() as u8,
            opened: message.start as u8,
        })
    }
}

/// A buffer to which fields are appended.
#[derive(Debug, Default)]
pub struct Encoder {
    /// The written bytes, and space after them.
    buffer: Vec<u8>,
    /// The number of bytes written; at most the buffer's length.
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

    /// The bytes written.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.at]
    }

    /// The number of bytes written.
    pub fn len(&self) -> usize {
        self.at
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.at == 0
    }

    /// Removes all bytes and keeps the buffer.
    pub fn clear(&mut self) {
        self.at = 0;
    }

    /// Writes an unsigned integer or an enum.
    #[inline]
    pub fn uint(&mut self, field: FieldNumber, value: u64) {
        let room = self.room();
        let key = put(room, 0, u64::from(field << 3 | VARINT));
        let length = put(room, key, value);
        self.at += length;
    }

    /// Writes a signed integer of type `int32` or `int64`: negative values take ten bytes.
    #[inline]
    pub fn int(&mut self, field: FieldNumber, value: i64) {
        self.uint(field, value as u64);
    }

    /// Writes a bool.
    #[inline]
    pub fn bool(&mut self, field: FieldNumber, value: bool) {
        self.uint(field, u64::from(value));
    }

    /// Writes the key of a number that is written next.
    pub fn key(&mut self, field: FieldNumber) {
        self.varint(u64::from(field << 3 | VARINT));
    }

    /// Writes a double.
    pub fn double(&mut self, field: FieldNumber, value: f64) {
        let room = self.room();
        let key = put(room, 0, u64::from(field << 3 | FIXED64));
        *first(&mut room[key..]) = value.to_le_bytes();
        self.at += key + 8;
    }

    /// An unsigned integer of the type `fixed64`.
    pub fn fixed64(&mut self, field: FieldNumber, value: u64) {
        let room = self.room();
        let key = put(room, 0, u64::from(field << 3 | FIXED64));
        *first(&mut room[key..]) = value.to_le_bytes();
        self.at += key + 8;
    }

    /// Writes a string.
    #[inline]
    pub fn string(&mut self, field: FieldNumber, value: &str) {
        self.raw(field, value.as_bytes());
    }

    /// Writes bytes, or a message that is already encoded.
    #[inline]
    pub fn raw(&mut self, field: FieldNumber, value: &[u8]) {
        let room = self.room();
        let key = put(room, 0, u64::from(field << 3 | LENGTH_DELIMITED));
        let length = put(room, key, value.len() as u64);
        self.at += length;
        self.append(value);
    }

    /// Writes a number without a key, as in a packed field.
    #[inline]
    pub fn varint(&mut self, value: u64) {
        let room = self.room();
        self.at += put(room, 0, value);
    }

    /// Writes a few numeric fields. Messages that are begun within may be ended within.
    #[inline(always)]
    pub fn short_fields<T>(&mut self, fill: impl FnOnce(&mut ShortFields<'_>) -> T) -> T {
        let base = self.at;
        let mut fields = ShortFields {
            room: self.room(),
            base,
            at: 0,
        };
        let filled = fill(&mut fields);
        self.at = base + fields.at;
        filled
    }

    /// Writes fields that have been encoded before.
    #[inline]
    pub fn fields(&mut self, fields: &EncodedFields) {
        *self.room() = fields.bytes;
        self.at += fields.length;
    }

    /// Writes fields that are already encoded, with their keys.
    #[inline]
    pub fn append(&mut self, fields: &[u8]) {
        match fields.len() {
            length @ 4..=8 => {
                // A short name: its first and its last bytes, which may overlap.
                let room = self.room::<ROOM>();
                let (front, end) = (fields.first_chunk::<4>(), fields.last_chunk::<4>());
                *first(&mut room[..]) = *front.expect("it is long enough");
                *first(&mut room[length - 4..]) = *end.expect("it is long enough");
                self.at += length;
            }
            _ => self.append_any(fields),
        }
    }

    fn append_any(&mut self, fields: &[u8]) {
        if self.buffer.len() - self.at < fields.len() {
            self.grow(fields.len());
        }
        self.buffer[self.at..self.at + fields.len()].copy_from_slice(fields);
        self.at += fields.len();
    }

    /// Begins a message.
    #[inline]
    pub fn open(&mut self, field: FieldNumber) -> OpenMessage {
        let room = self.room();
        let key = put(room, 0, u64::from(field << 3 | LENGTH_DELIMITED));
        self.at += key + 1;
        OpenMessage { start: self.at }
    }

    /// Ends a message: its length is stored before it.
    #[inline]
    pub fn close(&mut self, message: OpenMessage) {
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
        self.room::<ROOM>();
        self.buffer.copy_within(start..self.at, start + count - 1);
        self.buffer[start - 1..start - 1 + count].copy_from_slice(&digits[..count]);
        self.at += count - 1;
    }

    /// The next bytes of the buffer: space for any number, or for another item of bounded size.
    #[inline(always)]
    fn room<const BYTES: usize>(&mut self) -> &mut [u8; BYTES] {
        if self.buffer.len() - self.at < BYTES {
            return self.grown();
        }
        first(&mut self.buffer[self.at..])
    }

    #[cold]
    fn grown<const BYTES: usize>(&mut self) -> &mut [u8; BYTES] {
        self.grow(BYTES);
        first(&mut self.buffer[self.at..])
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let length = (self.at + needed).max(self.buffer.len() * 2);
        self.buffer.resize(length, 0);
    }
}

#[inline(always)]
fn first<const BYTES: usize>(room: &mut [u8]) -> &mut [u8; BYTES] {
    room.first_chunk_mut().expect("there is room")
}

/// Writes `value` as a varint at `at`, and returns the index after it. There must be space for it.
#[inline(always)]
fn put(room: &mut [u8; ROOM], at: usize, value: u64) -> usize {
    if value < 0x80 {
        room[at] = value as u8;
        at + 1
    } else if value < 0x4000 {
        let bytes = (value & 0x7f | (value & 0x3f80) << 1 | 0x80) as u16;
        *first(&mut room[at..]) = bytes.to_le_bytes();
        at + 2
    } else if value < 1 << 28 {
        let low = value & 0x7f | (value & 0x3f80) << 1;
        let high = (value & 0x1f_c000) << 2 | (value & 0x0fe0_0000) << 3;
        let fourth = value >= 1 << 21;
        let more = if fourth { 0x80_8080 } else { 0x8080 };
        *first(&mut room[at..]) = ((low | high | more) as u32).to_le_bytes();
        at + 3 + usize::from(fourth)
    } else if value < 1 << 56 {
        let (bytes, length) = varint(value);
        *first(&mut room[at..]) = bytes.to_le_bytes();
        at + length
    } else {
        put_long(room, at, value)
    }
}

/// The smallest number with more than eight decimal digits.
const EIGHT_DIGITS: u64 = 100_000_000;
/// Eight digits 0 as text.
const ASCII_ZEROS: u64 = u64::from_le_bytes(*b"00000000");

/// The decimal digits of a number below [`EIGHT_DIGITS`]: one in each byte, the first in the lowest.
#[inline(always)]
fn eight_digits(value: u64) -> u64 {
    // Halves of four digits, quarters of two, single digits: each divided by a multiplication that is exact for such
    // small numbers.
    let (upper, lower) = (value / 10_000, value % 10_000);
    let halves = upper | lower << 32;
    let upper = (halves * 10_486) >> 20 & 0x7f_0000_007f;
    let quarters = upper | (halves - upper * 100) << 16;
    let upper = (quarters * 103) >> 10 & 0x000f_000f_000f_000f;
    upper | (quarters - upper * 10) << 8
}

/// A number below 2^56 as a varint, all bytes at once, and its length.
#[inline(always)]
fn varint(value: u64) -> (u64, usize) {
    // Seven bits in each byte: halves move apart, then quarters, then eighths.
    let halves = value & 0x0fff_ffff | (value & 0xff_ffff_f000_0000) << 4;
    let quarters = halves & 0x3fff_0000_3fff | (halves & 0x0fff_c000_0fff_c000) << 2;
    let bytes = quarters & 0x007f_007f_007f_007f | (quarters & 0x3f80_3f80_3f80_3f80) << 1;
    let length = (value | 1).ilog2() / 7 + 1;
    // All bytes but the last have the bit that says that another one follows.
    let more = (1 << (8 * (length - 1))) - 1;
    (bytes | 0x8080_8080_8080_8080 & more, length as usize)
}

#[cold]
fn put_long(room: &mut [u8; ROOM], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        room[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    room[at] = value as u8;
    at + 1
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
        fn a_varint_of_any_length_is_what_prost_writes(value: u64, bits in 0u32..64) {
            let mut ours = Encoder::default();
            ours.varint(value >> bits);
            let mut theirs = Vec::new();
            prost::encoding::encode_varint(value >> bits, &mut theirs);
            prop_assert_eq!(ours.bytes(), &theirs[..]);
        }

        #[test]
        fn fields_encoded_before_are_those_encoded_now(values in prop::collection::vec(any::<u64>(), 0..5)) {
            let fill = |encoder: &mut Encoder| values.iter().for_each(|value| encoder.uint(21, *value));
            let (mut now, mut before) = (Encoder::default(), Encoder::default());
            fill(&mut now);
            if let Some(fields) = EncodedFields::new(fill) {
                before.fields(&fields);
                prop_assert_eq!(before.bytes(), now.bytes());
            } else {
                prop_assert!(now.len() > MAX_FIELDS);
            }
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
        fn few_fields_are_those_written_one_by_one(first: u64, second: u64, third: u64) {
            let (mut nested, mut single) = (Encoder::default(), Encoder::default());
            nested.short_fields(|fields| {
                let outer = fields.open(1);
                fields.uint(2, first);
                let inner = fields.open(3000);
                fields.uint(4, second);
                fields.close(inner);
                fields.uint(5, third);
                fields.close(outer);
            });
            let outer = single.open(1);
            single.uint(2, first);
            let inner = single.open(3000);
            single.uint(4, second);
            single.close(inner);
            single.uint(5, third);
            single.close(outer);
            prop_assert_eq!(nested.bytes(), single.bytes());
        }

        #[test]
        fn a_message_begun_as_before_is_the_one_written_anew(first in 0u64..1 << 40, second: u64) {
            let begin = |encoder: &mut Encoder| {
                encoder.uint(2, first);
                let message = encoder.open(11);
                encoder.key(52);
                message
            };
            let start = MessageStart::new(begin).unwrap();
            let (mut again, mut anew) = (Encoder::default(), Encoder::default());
            again.short_fields(|fields| {
                fields.constant([0x38, 7]);
                let message = fields.start(&start);
                fields.varint(second);
                fields.close(message);
            });
            anew.uint(7, 7);
            let message = begin(&mut anew);
            anew.varint(second);
            anew.close(message);
            prop_assert_eq!(again.bytes(), anew.bytes());
        }

        #[test]
        fn a_decimal_is_what_the_formatter_writes(value: i64, bits in 0u32..64) {
            let value = value >> bits;
            let (mut ours, mut theirs) = (Encoder::default(), Encoder::default());
            ours.short_fields(|fields| fields.decimal(2, value));
            theirs.string(2, &value.to_string());
            prop_assert_eq!(ours.bytes(), theirs.bytes());
        }

        #[test]
        fn a_text_of_any_length_is_what_prost_writes(text in ".{0,20}") {
            let mut ours = Encoder::default();
            ours.string(3, &text);
            let mut theirs = Vec::new();
            prost::encoding::string::encode(3, &text, &mut theirs);
            prop_assert_eq!(ours.bytes(), &theirs[..]);
        }
    }

    #[test]
    fn the_smallest_number_has_a_decimal() {
        let (mut ours, mut theirs) = (Encoder::default(), Encoder::default());
        ours.short_fields(|fields| fields.decimal(1, i64::MIN));
        theirs.string(1, &i64::MIN.to_string());
        assert_eq!(ours.bytes(), theirs.bytes());
    }
}
