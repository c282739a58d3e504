//! Events as they are sorted: fixed fields, a name that has no number, and [stored arguments](super::arguments).

use bytemuck::{Pod, Zeroable};

/// The kind of a record.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum StoredKind {
    /// A slice of a lane.
    Slice,
    /// Work of a device.
    Work,
    /// Something that happens at a point in time.
    Instant,
    /// Values of counters.
    Counter,
    /// A point of a flow.
    Flow,
    /// The begin of a slice whose end is an event of its own.
    Begin,
    /// The end of such a slice.
    End,
    /// A row of a table about the work or slice that begins at the same time.
    Detail,
}

impl StoredKind {
    fn of(number: u16) -> StoredKind {
        const ALL: [StoredKind; 8] = [
            StoredKind::Slice,
            StoredKind::Work,
            StoredKind::Instant,
            StoredKind::Counter,
            StoredKind::Flow,
            StoredKind::Begin,
            StoredKind::End,
            StoredKind::Detail,
        ];
        ALL[usize::from(number)]
    }
}

/// Flags of records.
pub(super) mod flag {
    /// The name stands in the record.
    pub const OWN_NAME: u16 = 1;
    /// The duration cannot be: it is negative, or longer than anybody waits.
    pub const IMPOSSIBLE: u16 = 1 << 1;
    /// The flow ends here.
    pub const LAST: u16 = 1 << 2;
    /// The end of a flow belongs to the slice around it, not to the one behind it.
    pub const ENCLOSING: u16 = 1 << 3;
    /// The id of the flow is a correlation id.
    pub const BY_CORRELATION: u16 = 1 << 5;
    /// An API call, whose id is its correlation id.
    pub const CALL: u16 = 1 << 6;
    /// A value that was made of another event.
    pub const DERIVED: u16 = 1 << 7;
    /// A slice inside another one with the same id.
    pub const INNER: u16 = 1 << 4;
    /// The flow begins here.
    pub const FIRST: u16 = 1 << 8;
    /// The flow passes through the event at the same offset.
    pub const BOUND: u16 = 1 << 9;
    /// The flow ties work to the slice in which it begins.
    pub const TIE: u16 = 1 << 10;
    /// The flow ties work to an operator, unless another one ties it to a call.
    pub const TIE_OF_OPERATOR: u16 = 1 << 11;
    /// The flow leads from work to the slice that waits for it.
    pub const WAIT: u16 = 1 << 12;
}

/// No number.
pub(super) const NONE: u64 = u64::MAX;

/// The fixed fields of a record.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RecordHead {
    /// Where the event stands in the file.
    pub offset: u64,
    /// Duration in ns, or `NONE` if it did not end. Of a flow, its id if that is a number.
    pub duration: u64,
    /// Id of work, of a flow, or of a slice whose begin and end are found by it.
    pub id: u64,
    /// The lane.
    pub lane: u32,
    /// The name.
    pub name: u32,
    /// The category.
    pub category: u32,
    /// A [`StoredKind`].
    pub kind: u16,
    /// As in [`flag`].
    pub flags: u16,
}

impl RecordHead {
    /// A record of an event at `offset`.
    pub fn new(kind: StoredKind, lane: u32, offset: u64) -> RecordHead {
        RecordHead {
            offset,
            duration: NONE,
            id: 0,
            lane,
            name: 0,
            category: 0,
            kind: kind as u16,
            flags: 0,
        }
    }

    /// The fixed fields of a record.
    pub fn read(bytes: &[u8]) -> RecordHead {
        bytemuck::pod_read_unaligned(&bytes[..size_of::<RecordHead>()])
    }

    /// Its kind.
    pub fn kind(&self) -> StoredKind {
        StoredKind::of(self.kind)
    }

    /// The record with another kind.
    pub fn with_kind(self, kind: StoredKind) -> RecordHead {
        RecordHead {
            kind: kind as u16,
            ..self
        }
    }

    /// Whether it has a flag.
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// A record as it is read back.
#[derive(Copy, Clone, Debug)]
pub(super) struct EventRecord<'a> {
    /// The fixed fields.
    pub head: RecordHead,
    /// The name, if it has no number.
    pub own_name: &'a str,
    /// Blocks of arguments.
    pub args: &'a [u8],
}

/// The bytes in front of a name that stands in the record.
pub(super) fn name_length(name: &str) -> [u8; 4] {
    (name.len() as u32).to_le_bytes()
}

impl<'a> EventRecord<'a> {
    /// Reads a [`RecordHead`], the length and the bytes of a name if it has one of its own, and arguments.
    pub fn read(bytes: &'a [u8]) -> EventRecord<'a> {
        let (head, mut rest) = bytes.split_at(size_of::<RecordHead>());
        let head: RecordHead = bytemuck::pod_read_unaligned(head);
        let mut own_name: &[u8] = &[];
        if head.has(flag::OWN_NAME) {
            let (length, behind) = rest.split_at(4);
            let length = u32::from_le_bytes(length.try_into().expect("4 bytes"));
            (own_name, rest) = behind.split_at(length as usize);
        }
        EventRecord {
            head,
            own_name: std::str::from_utf8(own_name).expect("it was written from a text"),
            args: rest,
        }
    }
}
