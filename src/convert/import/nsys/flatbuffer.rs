//! Tables of FlatBuffers, as Arrow's messages have them: every access is checked against the bytes that are there.

/// A table in a buffer. A field that is absent, or does not lie in the buffer, has its default.
#[derive(Copy, Clone)]
pub(super) struct FlatTable<'b> {
    bytes: &'b [u8],
    place: usize,
    /// The table of the offsets of its fields, and its length.
    fields: usize,
    length: usize,
}

/// Structures or offsets that follow each other.
#[derive(Copy, Clone)]
pub(super) struct FlatVector<'b> {
    bytes: &'b [u8],
    begin: usize,
    pub count: usize,
}

/// So many bytes of a number at a place, least significant first.
fn number(bytes: &[u8], place: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(place..place.checked_add(width)?)?;
    let bytes = bytes.iter().rev();
    Some(bytes.fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

impl<'b> FlatTable<'b> {
    /// The table that a buffer begins with.
    pub fn root(bytes: &'b [u8]) -> Option<FlatTable<'b>> {
        FlatTable::at(bytes, number(bytes, 0, 4)? as usize)
    }

    fn at(bytes: &'b [u8], place: usize) -> Option<FlatTable<'b>> {
        let back = number(bytes, place, 4)? as u32 as i32;
        let fields = i64::try_from(place).ok()?.checked_sub(back.into())?;
        let fields = usize::try_from(fields).ok()?;
        let length = number(bytes, fields, 2)? as usize;
        Some(FlatTable {
            bytes,
            place,
            fields,
            length,
        })
    }

    /// The place of a field.
    fn field(&self, slot: usize) -> Option<usize> {
        let entry = 4 + 2 * slot;
        if entry + 2 > self.length {
            return None;
        }
        match number(self.bytes, self.fields + entry, 2)? {
            0 => None,
            offset => self.place.checked_add(offset as usize),
        }
    }

    /// A number of so many bytes, without a sign; 0 if it is absent.
    pub fn number(&self, slot: usize, width: usize) -> u64 {
        let place = self.field(slot);
        let value = place.and_then(|place| number(self.bytes, place, width));
        value.unwrap_or(0)
    }

    /// The place that an offset leads to.
    fn target(&self, slot: usize) -> Option<usize> {
        let place = self.field(slot)?;
        place.checked_add(number(self.bytes, place, 4)? as usize)
    }

    pub fn table(&self, slot: usize) -> Option<FlatTable<'b>> {
        FlatTable::at(self.bytes, self.target(slot)?)
    }

    pub fn text(&self, slot: usize) -> Option<&'b str> {
        let place = self.target(slot)?;
        let length = number(self.bytes, place, 4)? as usize;
        let begin = place.checked_add(4)?;
        let bytes = self.bytes.get(begin..begin.checked_add(length)?)?;
        std::str::from_utf8(bytes).ok()
    }

    /// A list; an empty one if it is absent.
    pub fn vector(&self, slot: usize) -> FlatVector<'b> {
        let found = self.target(slot).and_then(|place| {
            let count = number(self.bytes, place, 4)? as usize;
            Some((place.checked_add(4)?, count))
        });
        let (begin, count) = found.unwrap_or((0, 0));
        FlatVector {
            bytes: self.bytes,
            begin,
            // No entry is smaller than a byte.
            count: count.min(self.bytes.len()),
        }
    }
}

impl<'b> FlatVector<'b> {
    /// The tables that the entries lead to.
    pub fn tables(self) -> impl Iterator<Item = Option<FlatTable<'b>>> {
        (0..self.count).map(move |index| {
            let place = self.begin.checked_add(index.checked_mul(4)?)?;
            let offset = number(self.bytes, place, 4)? as usize;
            FlatTable::at(self.bytes, place.checked_add(offset)?)
        })
    }

    /// Pairs of numbers of 64 bits.
    pub fn pairs(self) -> impl Iterator<Item = Option<(u64, u64)>> {
        (0..self.count).map(move |index| {
            let place = self.begin.checked_add(index.checked_mul(16)?)?;
            let [first, second] = [place, place.checked_add(8)?];
            Some((
                number(self.bytes, first, 8)?,
                number(self.bytes, second, 8)?,
            ))
        })
    }
}
