//! Markers and ranges of the program's own (CUPTI: `CUpti_ActivityMarker2`, `MarkerData`; NVTX, ROCTx), and
//! external ids (CUPTI: `CUpti_ActivityExternalCorrelation`).

use super::*;

open_enum! {
    /// What a marker does.
    MarkerKind(u8) {
        /// A moment.
        INSTANT = 1, "instant";
        /// A range of its thread begins; it ends before those that were open.
        PUSH = 2, "push";
        /// The thread's innermost range ends.
        POP = 3, "pop";
        /// A range begins that may end on another thread, whatever else is open.
        START = 4, "start";
        /// Such a range ends.
        END = 5, "end";
        /// An external id is pushed on the thread.
        EXTERNAL_PUSH = 6, "external push";
        /// An external id is popped.
        EXTERNAL_POP = 7, "external pop";
    }
}

open_enum! {
    /// What a marker's payload is.
    PayloadKind(u8) {
        /// There is none.
        NONE = 0, "none";
        /// An unsigned number.
        UNSIGNED = 1, "unsigned";
        /// A signed number, as its bits.
        SIGNED = 2, "signed";
        /// A floating-point number, as its bits.
        FLOAT = 3, "float";
    }
}

open_enum! {
    /// Whose external id (CUPTI: `CUpti_ExternalCorrelationKind`, same values). Kinds from 16 on are those that
    /// tools register.
    ExternalKind(u32) {
        /// Not known to us.
        UNKNOWN = 1, "unknown";
        /// OpenACC.
        OPENACC = 2, "openacc";
        /// The client's own.
        CUSTOM0 = 3, "custom0";
        /// The client's own.
        CUSTOM1 = 4, "custom1";
        /// The client's own.
        CUSTOM2 = 5, "custom2";
    }
}

/// A marker, or one end of a range. 56 bytes.
///
/// Payload, category and colour stand in it, where CUPTI has a second record for them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Marker {
    /// Kind [`Kind::MARKER`].
    pub header: Header,
    /// When.
    pub time: Ticks,
    /// Of `START` and `END`: the range, unique in the process. Of external ids: the id.
    pub id: u64,
    /// A value of the program's own; `payload_kind` says of what type.
    pub payload: u64,
    /// Its name; none for `POP` and `END`.
    pub name: StringId,
    /// Whose marker it is, as its maker says, or none.
    pub domain: StringId,
    /// Its category, or none.
    pub category: StringId,
    /// Alpha, red, green, blue from the highest byte down; 0 is none.
    pub color: u32,
    /// The thread.
    pub thread: ThreadId,
    /// What it does.
    pub what: MarkerKind,
    /// What `payload` is.
    pub payload_kind: PayloadKind,
    /// Of external ids: the kind.
    pub external_kind: u16,
}
record!(Marker, Kind::MARKER, 56);

/// The latest external id of one kind, ahead of the record of a call on the same thread. 32 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ExternalCorrelation {
    /// Kind [`Kind::EXTERNAL_CORRELATION`].
    pub header: Header,
    /// The call.
    pub correlation: CorrelationId,
    /// The id.
    pub external: ExternalId,
    /// Whose.
    pub kind: ExternalKind,
    /// 0.
    pub reserved: u32,
}
record!(ExternalCorrelation, Kind::EXTERNAL_CORRELATION, 32);

/// What an external id stands for. 24 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ExternalName {
    /// Kind [`Kind::EXTERNAL_NAME`].
    pub header: Header,
    /// The id.
    pub id: ExternalId,
    /// Whose.
    pub kind: ExternalKind,
    /// Its name.
    pub name: StringId,
}
record!(ExternalName, Kind::EXTERNAL_NAME, 24);
