//! Activity records: the fixed layouts that lanes write, captures store and sinks read.
//!
//! A record is a `repr(C)` struct of little-endian integers, aligned to 8 bytes, that starts with a [`Header`]. The
//! layout is a contract: tests pin offsets and sizes, `schemas/records.md` documents them, and a change requires a new
//! [`FORMAT_VERSION`].
//!
//! Host times are [`Ticks`] of the capture's tick source, device times are [`DeviceTime`]s of the agent's own clock.
//! Both are converted to nanoseconds off the hot path with the clock records of the capture. A time of 0 is unknown.
//!
//! The fields follow CUPTI's activity records and rocprofiler-sdk's buffer records, merged into one vendor-neutral set.
//! Asynchronous work has two records: the enqueue record with everything static, and a [`Completion`] with the times.

mod activity;
mod agent_attribute;
mod annotation;
mod api;
mod call_stack;
mod child;
mod clock;
mod count;
mod counter;
mod device_state;
mod graph;
mod ids;
mod instruction;
mod iter;
mod kind;
pub mod layout;
mod link;
mod loss;
mod marker;
mod memory;
mod names;
pub mod number_map;
mod overhead;
mod printable;
mod reason;
mod sample;
mod synchronization;
mod work;

pub use activity::Activity;
pub use agent_attribute::{AgentAttribute, AgentAttributeKind};
pub use annotation::ArgumentsHead;
pub use annotation::{ArgumentType, Arguments, MAX_ARGUMENTS};
pub use api::{Api, Domain, Operation};
pub use call_stack::{CallStack, FrameAddress, HostModule, MAX_FRAMES};
pub use child::{ChildKernel, Preemption, PreemptionKind};
pub use clock::{ClockPair, ClockSnapshot};
pub use count::{count, grouped};
pub use counter::{
    ALL_INSTANCES, ALWAYS_SCHEDULED, CounterInvalid, CounterUsage, CounterValue, CounterValueType,
};
pub use device_state::{
    Environment, EnvironmentKind, UnifiedMemoryCounter, UnifiedMemoryCounterKind,
};
pub use graph::{GraphChange, GraphNode, GraphNodeType, GraphOperation};
pub use ids::*;
pub use instruction::{AccessDirection, InstructionClass, InstructionCount};
pub use iter::RecordCopy;
pub use iter::{Malformed, RecordRef, Records};
pub use kind::{KINDS, Kind};
pub use layout::{Field, FieldValues, LAYOUTS, RecordLayout};
pub use link::{Link, LinkKind, link_flags};
pub use loss::Loss;
pub use marker::{
    ExternalCorrelation, ExternalKind, ExternalName, LockStep, Marker, MarkerKind, PayloadKind,
};
pub use memory::{
    Allocation, AllocationOperation, MemoryCopy, MemoryKind, MemorySet, TransferKind,
};
pub use names::*;
pub use overhead::{Overhead, OverheadKind};
pub use printable::{printable, printable_json, printable_lines, spreadsheet_text};
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

/// The version of the record layouts and of the capture format, stored in captures.
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
    /// The kind.
    pub kind: Kind,
    /// Bits of [`flags`], with the same meaning for every kind.
    pub flags: u8,
    /// The size of the record including this header, in words of 8 bytes; at least 1.
    pub words: u16,
    /// The number of the record in its lane, from 0, wrapping. Dropped records consume numbers, so that gaps show
    /// losses.
    pub sequence: u32,
}

impl Header {
    /// Creates the header of an `R`. The lane sets the sequence number.
    pub const fn of<R: Record>() -> Header {
        Header {
            kind: R::KIND,
            flags: 0,
            words: (size_of::<R>() / 8) as u16,
            sequence: 0,
        }
    }

    /// Returns the header with additional `flags`.
    pub const fn with(mut self, flags: u8) -> Header {
        self.flags |= flags;
        self
    }

    /// The size of the record in bytes.
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
    /// The activity was in progress when the record was written.
    pub const UNFINISHED: u8 = 1 << 0;
    /// A time that this kind of record normally has is unknown and 0.
    pub const TIME_UNKNOWN: u8 = 1 << 1;
    /// The activity failed; see the status or return code of the record.
    pub const FAILED: u8 = 1 << 2;
    /// The enqueuing call does not wait for the work (CUPTI: flag ASYNC).
    pub const ASYNCHRONOUS: u8 = 1 << 3;
    /// Written by the recovery after the process died.
    pub const RECOVERED: u8 = 1 << 4;
    /// The completion of this work could not be tracked, and will not be recorded.
    pub const UNTRACKED: u8 = 1 << 5;
    /// The work is part of a command buffer or graph. Other records may have the same work id, and share one
    /// completion.
    pub const SHARED: u8 = 1 << 6;
    /// The record of work was written after its call had returned, and a [`Dependency`](crate::Dependency) with this
    /// flag announced the work in the call: its `waited_for` is the work that the call enqueued.
    pub const LATE: u8 = 1 << 7;
}

/// A record type with a fixed layout.
///
/// # Safety
///
/// The type must be `repr(C)`, start with a [`Header`], have a size that is a multiple of 8 and at most 8 *
/// `u16::MAX`, an alignment of 8, and a `KIND` that no other type has.
pub unsafe trait Record: Pod {
    /// The kind in the header of every such record.
    const KIND: Kind;
    /// Whether every such record has the size of the type. Other records use a part of it, or more.
    const FIXED: bool = true;
}

impl Kind {
    /// The offset of the external id in records that the thread of a call writes, if they have one.
    pub const fn external_offset(self) -> Option<usize> {
        match self {
            Kind::API => Some(core::mem::offset_of!(Api, external)),
            Kind::KERNEL_DISPATCH
            | Kind::MEMORY_COPY
            | Kind::MEMORY_SET
            | Kind::SYNCHRONIZATION => {
                Some(size_of::<Header>() + core::mem::offset_of!(WorkHeader, external))
            }
            Kind::MEMORY_ALLOCATION => Some(core::mem::offset_of!(Allocation, external)),
            _ => None,
        }
    }
}

/// Declares `$type` as the record of `$kind`, and checks the requirements of [`Record`].
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
        // SAFETY: size, alignment and the position of the header are checked above; no other declaration uses
        // the kind (`every_kind_has_one_type`).
        unsafe impl crate::Record for $type {
            const KIND: crate::Kind = $kind;
            const FIXED: bool = $fixed;
        }
        impl $type {
            /// A record of this type with a valid header and zeros.
            pub fn blank() -> Self {
                Self {
                    header: crate::Header::of::<Self>(),
                    ..bytemuck::Zeroable::zeroed()
                }
            }
        }
    };
}

use record;

/// A record of enqueued work, with a [`WorkHeader`] after its header.
pub trait WorkRecord: Record {
    /// The header of the record.
    fn header(&self) -> &Header;
    /// The fields that all work records share.
    fn work(&self) -> &WorkHeader;
}

/// Declares `$type` as the record of `$kind` and as a [`WorkRecord`].
macro_rules! work_record {
    ($type:ty, $kind:expr, $bytes:expr) => {
        record!($type, $kind, $bytes);
        const _: () = assert!(core::mem::offset_of!($type, work) == size_of::<Header>());
        impl crate::WorkRecord for $type {
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

/// An integer with named values, which may also hold values of newer versions.
#[doc(hidden)]
#[macro_export]
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

            /// All values known to this version, with their names.
            pub const ALL: &'static [($name, &'static str)] = &[$(($name($value), $text)),*];

            /// The names of the constants, in the same order.
            #[doc(hidden)]
            pub const IDENTIFIERS: &'static [&'static str] = &[$(stringify!($variant)),*];

            /// The name, or `None` for an unknown value.
            pub fn name(self) -> Option<&'static str> {
                Self::ALL.iter().find(|(value, _)| *value == self).map(|(_, name)| *name)
            }

            /// The value with this name.
            pub fn from_name(name: &str) -> Option<$name> {
                Self::ALL.iter().find(|(_, text)| *text == name).map(|(value, _)| *value)
            }
        }

        impl $crate::layout::FieldType for $name {
            const VALUES: $crate::FieldValues =
                $crate::FieldValues::Named(stringify!($name), &[$(($value, $text)),*]);
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}({})", stringify!($name), self.0),
                }
            }
        }

        /// For messages: the name, or the number of an unknown value.
        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => core::fmt::Display::fmt(&self.0, f),
                }
            }
        }
    };
}
#[cfg(test)]
mod tests;
