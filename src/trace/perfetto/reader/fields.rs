//! A reader of the protobuf wire format, field by field, from untrusted bytes.
//!
//! It is used instead of prost because it reads traces of any size in bounded memory, knows the offset of damage, and skips unused
//! messages without decoding them.

/// One field of a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MessageField<'a> {
    /// Its number.
    pub number: u32,
    /// Its value.
    pub value: FieldValue<'a>,
}

/// The value of a field, by its wire type.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// An integer, a bool or an enum.
    Number(u64),
    /// Eight bytes, usually a double.
    Fixed64(u64),
    /// Four bytes.
    Fixed32(u32),
    /// A string, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> MessageField<'a> {
    /// The number, if the field has one.
    #[inline]
    pub fn number(&self) -> Option<u64> {
        match self.value {
            FieldValue::Number(number) | FieldValue::Fixed64(number) => Some(number),
            FieldValue::Fixed32(number) => Some(number.into()),
            FieldValue::Bytes(_) => None,
        }
    }

    /// The bytes, if the field has bytes.
    #[inline]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.value {
            FieldValue::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The numbers of a repeated field, whether they are packed or not.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + use<'a> {
        let (one, mut packed) = match self.value {
            FieldValue::Bytes(bytes) => (None, bytes),
            _ => (self.number(), &[][..]),
        };
        one.into_iter()
            .chain(std::iter::from_fn(move || varint(&mut packed)))
    }
}

/// The fields of a message, until its end or until malformed bytes.
#[derive(Clone, Debug)]
pub struct MessageFields<'a> {
    /// The bytes that have not been read; empty once reading has ended.
    left: &'a [u8],
    length: usize,
    /// The reason why reading ended before the end of the message, and the number of bytes before it.
    malformed: Option<(&'static str, usize)>,
}

impl<'a> MessageFields<'a> {
    /// The fields of `message`.
    #[inline]
    pub fn new(message: &'a [u8]) -> MessageFields<'a> {
        MessageFields {
            left: message,
            length: message.len(),
            malformed: None,
        }
    }

    /// The bytes that have not been read.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.left
    }

    /// The position in the message at which reading continues.
    pub fn position(&self) -> usize {
        let unread = self.malformed.map_or(self.left.len(), |(_, unread)| unread);
        self.length - unread
    }

    /// The reason why reading ended before the end of the message.
    #[inline]
    pub fn malformed(&self) -> Option<&'static str> {
        self.malformed.map(|(why, _)| why)
    }

    #[cold]
    #[inline(never)]
    fn stop(&mut self, why: &'static str) -> Option<MessageField<'a>> {
        self.malformed = Some((why, self.left.len()));
        self.left = &[];
        None
    }
}

impl<'a> Iterator for MessageFields<'a> {
    type Item = MessageField<'a>;

    // Inlined, so that callers which expect certain fields leave out the rest.
    #[inline(always)]
    fn next(&mut self) -> Option<MessageField<'a>> {
        if self.left.is_empty() {
            return None;
        }
        let mut left = self.left;
        let Some(key) = varint(&mut left) else {
            return self.stop("a truncated field key");
        };
        if !KEYS.contains(&key) {
            return self.stop("an invalid field number");
        }
        let number = (key >> 3) as u32;
        let value = match key & 7 {
            0 => match varint(&mut left) {
                Some(number) => FieldValue::Number(number),
                None => return self.stop("a truncated integer"),
            },
            2 => match varint(&mut left) {
                Some(length) if length <= left.len() as u64 => {
                    let (bytes, rest) = left.split_at(length as usize);
                    left = rest;
                    FieldValue::Bytes(bytes)
                }
                Some(_) => return self.stop("a field that is longer than its message"),
                None => return self.stop("an invalid length"),
            },
            1 => match left.split_first_chunk() {
                Some((bytes, rest)) => {
                    left = rest;
                    FieldValue::Fixed64(u64::from_le_bytes(*bytes))
                }
                None => return self.stop("a field of 8 bytes that is cut"),
            },
            5 => match left.split_first_chunk() {
                Some((bytes, rest)) => {
                    left = rest;
                    FieldValue::Fixed32(u32::from_le_bytes(*bytes))
                }
                None => return self.stop("a field of 4 bytes that is cut"),
            },
            _ => return self.stop("a field of a type that is not in use"),
        };
        self.left = left;
        Some(MessageField { number, value })
    }
}

/// The number in a field of a message.
#[inline]
pub fn number_of(message: &[u8], number: u32) -> Option<u64> {
    MessageFields::new(message)
        .find(|field| field.number == number)
        .and_then(|field| field.number())
}

/// The numbers of a repeated field of a message.
#[inline]
pub fn numbers_of(message: &[u8], number: u32) -> impl Iterator<Item = u64> {
    let fields = MessageFields::new(message).filter(move |field| field.number == number);
    fields.flat_map(|field| field.numbers())
}

/// The single byte with which a field with a number below 16 begins. Readers of frequent fields compare it first, which
/// is much faster than reading any field and then comparing its number.
pub(super) mod key {
    /// The key of a field that is a number.
    pub const fn number(field: u32) -> u8 {
        assert!(field > 0 && field < 16);
        (field << 3) as u8
    }

    /// The key of a field that is bytes.
    pub const fn bytes(field: u32) -> u8 {
        number(field) | 2
    }

    /// The number of the field at the front, after its key of one byte, and the bytes after the field; `None` if it
    /// does not end.
    #[inline(always)]
    pub fn split_number(field: &[u8]) -> Option<(u64, &[u8])> {
        super::split_varint(field.get(1..)?)
    }

    /// The bytes of the field at the front, after its key of one byte, and the bytes after the field; `None` if they
    /// are not complete.
    #[inline(always)]
    pub fn split_bytes(field: &[u8]) -> Option<(&[u8], &[u8])> {
        let (length, rest) = super::split_varint(field.get(1..)?)?;
        rest.split_at_checked(usize::try_from(length).ok()?)
    }
}

/// The keys of the field numbers that protobuf allows: 1 to 2^29 - 1, and three bits of type.
const KEYS: std::ops::Range<u64> = 1 << 3..1 << 32;

/// Removes a varint from the front; `None` if it does not end, or is larger than 64 bits.
#[inline(always)]
pub fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = split_varint(bytes)?;
    *bytes = rest;
    Some(number)
}

/// The varint at the front, and the bytes after it. Most have one byte or two.
#[inline(always)]
fn split_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    match bytes {
        [first @ 0..0x80, rest @ ..] => Some((u64::from(*first), rest)),
        [first, second @ 0..0x80, rest @ ..] => {
            Some((u64::from(first & 0x7f) | u64::from(*second) << 7, rest))
        }
        _ => long_varint(bytes),
    }
}

#[inline(never)]
fn long_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    // Up to eight bytes at once: the end is found first, then groups of 7 bits are joined pair by pair.
    if let Some(eight) = bytes.first_chunk() {
        let eight = u64::from_le_bytes(*eight);
        let ends = !eight & 0x8080_8080_8080_8080;
        if ends != 0 {
            let length = ends.trailing_zeros() / 8 + 1;
            let own = u64::MAX >> (64 - 8 * length) & 0x7f7f_7f7f_7f7f_7f7f;
            let sevens = eight & own;
            let pairs = sevens & 0x007f_007f_007f_007f | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
            let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
            let number = fours & 0x0fff_ffff | fours >> 32 << 28;
            return Some((number, &bytes[length as usize..]));
        }
    }
    let mut value = 0;
    for (place, byte) in bytes.iter().take(10).enumerate() {
        let low = u64::from(byte & 0x7f);
        if place == 9 && low > 1 {
            return None;
        }
        value |= low << (7 * place);
        if *byte < 0x80 {
            return Some((value, &bytes[place + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::super::wire::Encoder;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_malformed_field_ends_the_reading_where_it_stands() {
        for (bytes, position) in [
            (&[8, 1, 0xff][..], 2),
            (&[8, 1, 0], 2),
            (&[8, 0x80], 0),
            (&[9, 1, 2, 3], 0),
            (&[10, 5, 1], 0),
            (
                &[10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
                0,
            ),
            (&[11], 0),
            (&[13, 1], 0),
            (
                &[8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
                0,
            ),
        ] {
            let mut fields = MessageFields::new(bytes);
            fields.by_ref().for_each(drop);
            assert!(fields.malformed().is_some(), "{bytes:?}");
            assert_eq!(fields.position(), position, "{bytes:?}");
        }
    }

    #[test]
    fn fields_of_4_bytes_are_read() {
        let mut fields = MessageFields::new(&[13, 1, 2, 3, 4, 8, 7]);
        let value = FieldValue::Fixed32(0x0403_0201);
        assert_eq!(fields.next(), Some(MessageField { number: 1, value }));
        let value = FieldValue::Number(7);
        assert_eq!(fields.next(), Some(MessageField { number: 1, value }));
        assert_eq!((fields.next(), fields.malformed()), (None, None));
    }

    #[test]
    fn numbers_are_read_packed_or_not() {
        let packed = MessageField {
            number: 1,
            value: FieldValue::Bytes(&[1, 0x80, 1, 3]),
        };
        assert_eq!(packed.numbers().collect::<Vec<_>>(), [1, 128, 3]);
        let one = MessageField {
            number: 1,
            value: FieldValue::Number(7),
        };
        assert_eq!(one.numbers().collect::<Vec<_>>(), [7]);
    }

    proptest! {
        #[test]
        fn records_are_read_as_they_were_written(values: Vec<(u8, u64, Vec<u8>)>) {
            let mut encoder = Encoder::default();
            for (number, value, bytes) in &values {
                encoder.uint(u32::from(*number) + 1, *value);
                encoder.raw(u32::from(*number) + 1, bytes);
                encoder.double(u32::from(*number) + 1, *value as f64);
            }
            let mut fields = MessageFields::new(encoder.bytes());
            for (number, value, bytes) in &values {
                for expected in [
                    FieldValue::Number(*value),
                    FieldValue::Bytes(bytes),
                    FieldValue::Fixed64((*value as f64).to_bits()),
                ] {
                    let number = u32::from(*number) + 1;
                    prop_assert_eq!(fields.next(), Some(MessageField { number, value: expected }));
                }
            }
            prop_assert_eq!(fields.next(), None);
            prop_assert_eq!(fields.malformed(), None);
        }

        #[test]
        fn any_bytes_are_read_to_their_end_or_to_what_is_no_field(bytes: Vec<u8>) {
            let mut fields = MessageFields::new(&bytes);
            fields.by_ref().for_each(drop);
            prop_assert!(fields.malformed().is_some() == (fields.position() < bytes.len()));
        }
    }
}
