//! Markers and ranges made by the program (CUPTI: `CUpti_ActivityMarker2`, `MarkerData`; NVTX, ROCTx), and external ids
//! (CUPTI: `CUpti_ActivityExternalCorrelation`).

use super::*;

open_enum! {
    /// The event that a marker records.
    MarkerKind(u8) {
        /// A moment.
        INSTANT = 1, "instant";
        /// Begins a range of the thread, nested in its open ranges.
        PUSH = 2, "push";
        /// Ends the innermost range of the thread.
        POP = 3, "pop";
        /// Begins a range that may overlap others and end on another thread.
        START = 4, "start";
        /// Ends such a range.
        END = 5, "end";
        /// Pushes an external id on the thread. In records only.
        EXTERNAL_PUSH = 6, "external push";
        /// Pops an external id. In records only.
        EXTERNAL_POP = 7, "external pop";
        /// A sample of a counter.
        COUNTER = 8, "counter";
        /// A named value of the next marker of the thread.
        FIELD = 9, "field";
        /// Names an object of a runtime or of the system.
        RESOURCE = 10, "resource";
    }
}

open_enum! {
    /// The type of a marker's payload.
    PayloadKind(u8) {
        /// No payload.
        NONE = 0, "none";
        /// An unsigned number.
        UNSIGNED = 1, "unsigned";
        /// A signed number, as its bits.
        SIGNED = 2, "signed";
        /// A floating-point number, as its bits.
        FLOAT = 3, "float";
        /// A [`StringId`].
        TEXT = 4, "text";
        /// An address or handle.
        POINTER = 5, "pointer";
    }
}

open_enum! {
    /// The kind of an external id (CUPTI: `CUpti_ExternalCorrelationKind`, same values). Tools register kinds from 16
    /// on.
    ExternalKind(u32) {
        /// Unknown.
        UNKNOWN = 1, "unknown";
        /// OpenACC.
        OPENACC = 2, "openacc";
        /// Defined by the client.
        CUSTOM0 = 3, "custom0";
        /// Defined by the client.
        CUSTOM1 = 4, "custom1";
        /// Defined by the client.
        CUSTOM2 = 5, "custom2";
    }
}

impl ExternalKind {
    /// The name of the registered kind of the ids that pushed ranges have.
    pub const RANGES: &str = "range";
}

/// A step of a thread with a lock of the program, in [`Marker::external_kind`] of a range.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(u16)]
pub enum LockStep {
    /// None: the range is of no lock.
    #[default]
    None = 0,
    /// It waits for the lock: `PUSH`.
    Acquire = 1,
    /// It has the lock: `POP`.
    Success = 2,
    /// It gives up: `POP`.
    Failed = 3,
    /// It releases the lock: `END` of the range of the hold.
    Release = 4,
}

/// A marker, or one end of a range. 56 bytes.
///
/// It includes payload, category and colour, for which CUPTI has a second record.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Marker {
    /// Kind [`Kind::MARKER`].
    pub header: Header,
    /// The time.
    pub time: Ticks,
    /// `START` and `END`: the range, unique in the process. External ids: the id. `RESOURCE`: the handle. `PUSH`, `POP`
    /// and `INSTANT`, in the low 31 bits: the level of the range, from 1, or 0 if it is not known. Bit 31 is set, or the
    /// level 0, where ranges of all domains nest in each other; otherwise those of each domain do. `PUSH` and `POP`, in the
    /// high 32 bits: the number of such ranges on the thread that ended without a record, since it was off, after the marker
    /// before.
    pub id: u64,
    /// The payload, of type `payload_kind`.
    pub payload: u64,
    /// The name; none for `POP` and `END`. `FIELD`: the name of the value.
    pub name: StringId,
    /// The domain, or none.
    pub domain: StringId,
    /// The category, or none. `COUNTER`: the unit. `RESOURCE`: the type of the object.
    pub category: StringId,
    /// The colour: alpha, red, green, blue from the most significant byte; 0: none.
    pub color: u32,
    /// The thread.
    pub thread: ThreadId,
    /// The event.
    pub what: MarkerKind,
    /// The type of `payload`.
    pub payload_kind: PayloadKind,
    /// External ids: the kind. Ranges of a lock of the program's: the step (1 acquire, 2 success, 3 failed,
    /// 4 release).
    pub external_kind: u16,
}
record!(Marker, Kind::MARKER, 56);

/// In [`Marker::id`]: ranges of all domains nest in each other.
const OF_ALL_DOMAINS: u32 = 1 << 31;

impl Marker {
    /// `id`, of a range that is pushed or popped where the ranges of all domains nest in each other.
    pub const fn id_in_all_domains(id: u64) -> u64 {
        id | OF_ALL_DOMAINS as u64
    }

    /// The level of a range that is pushed or popped, from 1; 0 if it is not known.
    pub fn level(&self) -> u32 {
        self.id as u32 & !OF_ALL_DOMAINS
    }

    /// Whether the ranges of the marker's domain nest by themselves, and not in those of other domains.
    pub fn nests_in_its_domain(&self) -> bool {
        self.level() != 0 && self.id as u32 & OF_ALL_DOMAINS == 0
    }

    /// The number of ranges that ended without a record after the marker before.
    pub fn ended_unrecorded(&self) -> u32 {
        (self.id >> 32) as u32
    }
}

/// The latest external id of one kind, ahead of the record of a call on the same thread. With
/// [`flags::LATE`](super::flags::LATE): an id that the program itself had pushed to CUPTI, which comes after the call's
/// record, on another thread's lane. 32 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ExternalCorrelation {
    /// Kind [`Kind::EXTERNAL_CORRELATION`].
    pub header: Header,
    /// The call.
    pub correlation: CorrelationId,
    /// The id.
    pub external: ExternalId,
    /// The kind of the id.
    pub kind: ExternalKind,
    /// Reserved, 0.
    pub reserved: u32,
}
record!(ExternalCorrelation, Kind::EXTERNAL_CORRELATION, 32);

/// The name of an external id. 24 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ExternalName {
    /// Kind [`Kind::EXTERNAL_NAME`].
    pub header: Header,
    /// The id.
    pub id: ExternalId,
    /// The kind of the id.
    pub kind: ExternalKind,
    /// The name.
    pub name: StringId,
}
record!(ExternalName, Kind::EXTERNAL_NAME, 24);
