//! Layouts of structured payloads, and the enumerations and types in them.

use super::semantics::Facts;
use gputrail_collect::marker::Registry;

/// Flags of an entry.
pub(super) mod flag {
    pub const POINTER: u64 = 1 << 1;
    /// The value is an offset, from the base of the payload or from the entry.
    pub const OFFSET: u64 = 3 << 2;
    pub const ARRAY: u64 = 7 << 4;
    pub const DEEP_COPY: u64 = 1 << 8;
    pub const HIDE: u64 = 1 << 9;
    pub const ROLE: u64 = 3 << 10;
    pub const MESSAGE: u64 = 1 << 10;
    pub const TIMESTAMP: u64 = 2 << 10;
    pub const EVENT: u64 = 7 << 12;
    pub const RANGE_BEGIN: u64 = 1 << 12;
    pub const RANGE_END: u64 = 2 << 12;
    pub const MARK: u64 = 3 << 12;
}

/// Forms of arrays, as bits 4 to 6 of an entry's flags.
pub(super) mod array {
    pub const NONE: u64 = 0;
    pub const FIXED: u64 = 1;
    pub const ZERO_TERMINATED: u64 = 2;
    pub const LENGTH_INDEX: u64 = 3;
}

/// Predefined types of entries.
pub(super) mod kind {
    pub const SIZE: u64 = 22;
    pub const ADDRESS: u64 = 23;
    pub const BYTE: u64 = 32;
    pub const CATEGORY: u64 = 68;
    pub const COLOR: u64 = 69;
    pub const SCOPE: u64 = 70;
    pub const STRING: u64 = 75;
    pub const STRING_UTF32: u64 = 78;
    pub const REGISTERED: u64 = 80;
    pub const UNION_SELECTOR: u64 = 100;
    /// Data that other payloads point to.
    pub const REFERENCED: u64 = 1022;
    /// Data without a layout.
    pub const RAW: u64 = 1023;
}

/// Forms of a layout.
pub(super) mod form {
    pub const DYNAMIC: u64 = 2;
    pub const UNION: u64 = 3;
    pub const UNION_WITH_SELECTOR: u64 = 4;
}

/// The highest alignment of a type.
pub(super) const MAX_ALIGNMENT: usize = 64;

/// A registered layout or enumeration, by the number of its domain and its id.
pub(super) static LAYOUTS: Registry<(u32, u64), PayloadLayout> = Registry::new();

/// A layout or enumeration.
pub(super) enum PayloadLayout {
    Schema(Schema),
    Enumeration(Enumeration),
}

/// A structure or union.
pub(super) struct Schema {
    /// Its name, which events without a message have.
    pub name: Box<str>,
    pub form: u64,
    pub entries: Vec<SchemaEntry>,
    /// The size in bytes, 0 if not given.
    pub size: usize,
    /// The highest alignment of a part, 0 for none.
    pub pack: usize,
    /// The alignment.
    pub align: usize,
}

impl Schema {
    /// The layout with these parts. Layouts of parts are registered before. `size` is 0 if it is not given.
    pub fn new(
        domain: u32,
        name: Box<str>,
        form: u64,
        entries: Vec<SchemaEntry>,
        size: usize,
        pack: usize,
    ) -> Schema {
        let limit = if pack == 0 { MAX_ALIGNMENT } else { pack };
        let parts = entries.iter().map(|entry| entry.size_and_alignment(domain));
        let align = parts.map(|(_, align)| align.min(limit)).max().unwrap_or(1);
        let mut schema = Schema {
            name,
            form,
            entries,
            size,
            pack,
            align: align.clamp(1, MAX_ALIGNMENT),
        };
        if size == 0 && form != form::DYNAMIC {
            schema.size = schema.fixed_size(domain);
        }
        schema
    }

    /// Whether a part is the time of the whole.
    pub fn has_timestamp(&self) -> bool {
        let mut flags = self.entries.iter().map(|entry| entry.flags);
        flags.any(|flags| flags & (flag::ROLE | flag::EVENT) == flag::TIMESTAMP)
    }

    /// The size of a structure whose parts have fixed sizes.
    fn fixed_size(&self, domain: u32) -> usize {
        let is_union = matches!(self.form, form::UNION | form::UNION_WITH_SELECTOR);
        let (mut cursor, mut end) = (0_usize, 0_usize);
        for entry in &self.entries {
            let (size, align) = entry.size_and_alignment(domain);
            let count = match (entry.flags & flag::ARRAY) >> 4 {
                array::FIXED => usize::try_from(entry.detail).unwrap_or(0),
                _ => 1,
            };
            let size = match size {
                0 if is_string(entry.kind) => {
                    let length = usize::try_from(entry.detail).unwrap_or(0);
                    length.saturating_mul(unit(entry.kind))
                }
                size => size.saturating_mul(count),
            };
            let align = align.min(self.align).max(1);
            let at = match entry.offset {
                0 if is_union => 0,
                0 => cursor.checked_next_multiple_of(align).unwrap_or(cursor),
                offset => usize::try_from(offset).unwrap_or(usize::MAX),
            };
            cursor = at.saturating_add(size);
            end = end.max(cursor);
        }
        end.checked_next_multiple_of(self.align).unwrap_or(end)
    }
}

/// A part of a structure.
pub(super) struct SchemaEntry {
    pub flags: u64,
    pub kind: u64,
    pub name: Box<str>,
    /// The length of an array or text, the entry that has it, or the selector of a union.
    pub detail: u64,
    pub offset: u64,
    pub facts: Facts,
}

/// A registered enumeration: the names of its values.
pub(super) struct Enumeration {
    pub size: usize,
    pub values: Vec<(u64, bool, Box<str>)>,
}

/// The size of a predefined type; 0 for types without one.
pub(super) fn size_of_kind(kind: u64) -> usize {
    match kind {
        1 | 2 | 11 | 12 | 25 | kind::BYTE => 1,
        3 | 4 | 13 | 14 | 26 | 42 | 50 => 2,
        5 | 6 | 15 | 16 | 19 | 24 | 27 | 43 | 52 | 68 | 69 | 71 | 73 => 4,
        7..=10 | 17 | 18 | 20 | kind::SIZE | kind::ADDRESS | 44 | 67 | 70 | 72 | 74 => 8,
        kind::STRING..=kind::STRING_UTF32 | kind::REGISTERED => 8,
        21 | 33 | 34 | 45 => 16,
        kind::UNION_SELECTOR => 8,
        _ => 0,
    }
}

/// Bytes of a code unit of a string type.
pub(super) fn unit(kind: u64) -> usize {
    match kind {
        77 => 2,
        kind::STRING_UTF32 => 4,
        _ => 1,
    }
}

pub(super) fn is_string(kind: u64) -> bool {
    (kind::STRING..=kind::STRING_UTF32).contains(&kind)
}

impl SchemaEntry {
    /// The size and alignment of one element; 0 where the size is not fixed.
    pub fn size_and_alignment(&self, domain: u32) -> (usize, usize) {
        if self.flags & flag::POINTER != 0 {
            return (8, 8);
        }
        if is_string(self.kind) {
            let is_inline = self.detail > 0 || self.flags & flag::ARRAY != 0;
            return if is_inline {
                (0, unit(self.kind))
            } else {
                (8, 8)
            };
        }
        match LAYOUTS.get(&(domain, self.kind)) {
            Some(PayloadLayout::Schema(schema)) => (schema.size, schema.align),
            Some(PayloadLayout::Enumeration(names)) => (names.size, names.size),
            _ => {
                let size = size_of_kind(self.kind);
                (size, size.max(1))
            }
        }
    }
}
