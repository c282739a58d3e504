//! What is missing.

use super::*;

/// Records of one kind that a lane dropped, the newest report replacing none: counts add up. 40 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Loss {
    /// Kind [`Kind::LOSS`].
    pub header: Header,
    /// How many.
    pub count: u64,
    /// The first was dropped no earlier than this.
    pub first: Ticks,
    /// The last was dropped no later than this.
    pub last: Ticks,
    /// The thread whose lane lost them; none if they never had a lane.
    pub thread: ThreadId,
    /// Kind of the records lost; 0 if mixed.
    pub lost: Kind,
    /// 0.
    pub reserved: [u8; 3],
}
record!(Loss, Kind::LOSS, 40);
