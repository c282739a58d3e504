//! Activity records: the fixed layouts that lanes write, captures keep and sinks read.
//!
//! A record is a `repr(C)` struct of little-endian integers, 8-byte aligned, that starts with a
//! [`Header`]. Its layout is a contract: offsets and sizes are pinned by tests and written down in
//! `schemas/records.md`; changing one raises [`FORMAT_VERSION`].
//!
//! Host times are [`Ticks`] of the capture's tick source, device times are [`DeviceTime`]s of the
//! agent's own clock. Both become nanoseconds behind the hot path, by the clock records of the
//! capture. A time of 0 is not known.
//!
//! The fields follow CUPTI's activity records and rocprofiler-sdk's buffer records, merged into one
//! vendor-neutral set. Asynchronous work takes two records: the one written when it was enqueued
//! holds all that is static about it, a [`Completion`] holds its times.

mod activity;
mod annotation;
mod api;
mod clock;
mod ids;
mod iter;
mod kind;
mod loss;
mod marker;
mod memory;
mod names;
pub(crate) mod number_map;
mod overhead;
mod reason;
mod sample;
mod synchronization;
mod work;

pub use activity::Activity;
pub(crate) use annotation::ArgumentsHead;
pub use annotation::{ArgumentType, Arguments, MAX_ARGUMENTS};
pub use api::{Api, Domain, Operation};
pub use clock::{ClockPair, ClockSnapshot};
pub use ids::*;
pub use iter::{Malformed, RecordRef, Records};
pub use kind::{KINDS, Kind};
pub use loss::Loss;
pub use marker::{
    ExternalCorrelation, ExternalKind, ExternalName, Marker, MarkerKind, PayloadKind,
};
pub use memory::{
    Allocation, AllocationOperation, MemoryCopy, MemoryKind, MemorySet, TransferKind,
};
pub use names::*;
pub use overhead::{Overhead, OverheadKind};
pub use reason::{InstructionType, NotIssued, StallReason};
pub use sample::{
    Absent, HardwareId, HostTrapSample, InstructionCorrelation, InvalidSample, Issue,
    MemoryCounters, SampleAggregate, SamplingMethod, SamplingTotals, SamplingUnit, Snapshot,
    SourceLocator, StochasticSample,
};
pub use synchronization::{Synchronization, SynchronizationType};
pub use work::{
    Completion, Dependency, KernelDispatch, LaunchType, Retirement, Unfinished, WorkHeader,
};

use bytemuck::{Pod, Zeroable};

/// Version of the record layouts and of the capture format, as written into captures.
pub const FORMAT_VERSION: u32 = 2;

/// The first 8 bytes of every record.
///
/// ```text
/// byte 0      1      2..4               4..8
///      kind   flags  size in 8-byte words  sequence
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct Header {
    /// What the record is.
    pub kind: Kind,
    /// Bits: [`flags`]; the same meaning in every kind.
    pub flags: u8,
    /// Size of the whole record, this header included, in words of 8 bytes; at least 1.
    pub words: u16,
    /// Number of the record in its lane, from 0, wrapping. A dropped record consumes a number, so
    /// that a gap shows what is missing.
    pub sequence: u32,
}

impl Header {
    /// A header for a record of type `R`, its sequence still to be given by a lane.
    pub const fn of<R: Record>() -> Header {
        Header {
            kind: R::KIND,
            flags: 0,
            words: (size_of::<R>() / 8) as u16,
            sequence: 0,
        }
    }

    /// The same header with `flags` added.
    pub const fn with(mut self, flags: u8) -> Header {
        self.flags |= flags;
        self
    }

    /// Size of the whole record in bytes.
    pub const fn bytes(&self) -> usize {
        self.words as usize * 8
    }

    /// Whether all of `flags` are set.
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

/// Bits of [`Header::flags`].
pub mod flags {
    /// The activity had begun and had not ended when the record was made.
    pub const UNFINISHED: u8 = 1 << 0;
    /// A time that this kind of record normally has could not be found out; it is 0.
    pub const TIME_UNKNOWN: u8 = 1 << 1;
    /// The activity ended with an error; the record's status or return code says which.
    pub const FAILED: u8 = 1 << 2;
    /// The work was enqueued by a call that does not wait for it (CUPTI: flag ASYNC).
    pub const ASYNCHRONOUS: u8 = 1 << 3;
    /// Written by recovery, from what a dead process left behind.
    pub const RECOVERED: u8 = 1 << 4;
    /// No completion will come for this work: its completion could not be tracked.
    pub const UNTRACKED: u8 = 1 << 5;
    /// The work is part of a command buffer or graph: other records may have its work id too, and one completion
    /// is that of all of them.
    pub const SHARED: u8 = 1 << 6;
}

/// A record with a fixed layout.
///
/// # Safety
///
/// The type is `repr(C)`, its first field is a [`Header`], its size is a multiple of 8 and at most
/// 8 * `u16::MAX`, its alignment is 8, and `KIND` is a kind that no other type has.
pub unsafe trait Record: Pod {
    /// The kind that stands in the header of every such record.
    const KIND: Kind;
    /// Whether every such record has the size of the type. Others use only a part of it, or more.
    const FIXED: bool = true;
}

/// Declares that `$type` is the record of `$kind`, and checks what [`Record`] asks for.
macro_rules! record {
    ($type:ty, $kind:expr, $bytes:expr) => {
        record!($type, $kind, $bytes, true);
    };
    ($type:ty, $kind:expr, $bytes:expr, $fixed:literal) => {
        const _: () = {
            assert!(size_of::<$type>() == $bytes);
            assert!($bytes % 8 == 0 && align_of::<$type>() == 8);
            assert!(core::mem::offset_of!($type, header) == 0);
        };
        // SAFETY: size, alignment and the place of the header are checked just above; the kind is
        // used by this declaration alone (`every_kind_has_one_type`).
        unsafe impl crate::record::Record for $type {
            const KIND: crate::record::Kind = $kind;
            const FIXED: bool = $fixed;
        }
        impl $type {
            /// A record of this type with everything 0 but the header.
            pub fn blank() -> Self {
                Self {
                    header: crate::record::Header::of::<Self>(),
                    ..bytemuck::Zeroable::zeroed()
                }
            }
        }
    };
}
use record;

/// A record of work put into a queue: after its header stands a [`WorkHeader`].
pub trait WorkRecord: Record {
    /// The record's header.
    fn header(&self) -> &Header;
    /// The fields that all work records share.
    fn work(&self) -> &WorkHeader;
}

/// Declares that `$type` is the record of `$kind`, and a [`WorkRecord`].
macro_rules! work_record {
    ($type:ty, $kind:expr, $bytes:expr) => {
        record!($type, $kind, $bytes);
        const _: () = assert!(core::mem::offset_of!($type, work) == size_of::<Header>());
        impl crate::record::WorkRecord for $type {
            #[inline(always)]
            fn header(&self) -> &Header {
                &self.header
            }
            #[inline(always)]
            fn work(&self) -> &WorkHeader {
                &self.work
            }
        }
    };
}
use work_record;

/// An integer that names one of a list of things, open for values that a newer version may write.
macro_rules! open_enum {
    ($(#[$meta:meta])* $name:ident($int:ty) {
        $($(#[$vmeta:meta])* $variant:ident = $value:literal, $text:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(transparent)]
        pub struct $name(pub $int);

        #[allow(non_upper_case_globals)]
        impl $name {
            $($(#[$vmeta])* pub const $variant: $name = $name($value);)*

            /// Every value that this version knows, with its name.
            pub const ALL: &'static [($name, &'static str)] = &[$(($name($value), $text)),*];

            /// Their constants, in the same order.
            #[doc(hidden)]
            pub const IDENTIFIERS: &'static [&'static str] = &[$(stringify!($variant)),*];

            /// The name, or `None` for a value that this version does not know.
            pub fn name(self) -> Option<&'static str> {
                Self::ALL.iter().find(|(value, _)| *value == self).map(|(_, name)| *name)
            }

            /// The value that has this name.
            pub fn from_name(name: &str) -> Option<$name> {
                Self::ALL.iter().find(|(_, text)| *text == name).map(|(value, _)| *value)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}({})", stringify!($name), self.0),
                }
            }
        }
    };
}
pub(crate) use open_enum;

#[cfg(test)]
mod tests;
