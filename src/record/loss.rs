//! Dropped records.

use super::*;

/// A number of records of one kind that a lane dropped. Reports add up. 40 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Loss {
    /// Kind [`Kind::LOSS`].
    pub header: Header,
    /// The number of dropped records.
    pub count: u64,
    /// The earliest possible time of the first drop.
    pub first: Ticks,
    /// The latest possible time of the last drop.
    pub last: Ticks,
    /// The thread of the lane, or none if the records had no lane.
    pub thread: ThreadId,
    /// The kind of the dropped records; 0 if mixed.
    pub lost: Kind,
    /// Reserved, 0.
    pub reserved: [u8; 3],
}
record!(Loss, Kind::LOSS, 40);
