//! Rows as bytes, in which form they are sorted. They are read back by the process that wrote them.

use super::join::{HostEntry, SorterEntry, WorkEntry};
use super::{
    AgentHandle, ArgumentRange, ArgumentRow, ArgumentValue, CounterHandle, CounterNumber,
    FunctionHandle, HostKind, HostRow, LaneHandle, MemoryRow, PlaceHandle, ProcessHandle,
    QueueHandle, SampleRow, StageHandle, TextHandle, ValueRow, WorkRow,
};
use gputrail_code::aggregate::WaveOutcome;
use gputrail_trace::model::{Launch, Resources};

/// A value as bytes.
pub(super) trait Pack: Sized {
    fn pack(&self, to: &mut Vec<u8>);
    /// Takes the value from the beginning of `from`.
    fn unpack(from: &mut &[u8]) -> Self;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Pack for $type {
            fn pack(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn unpack(from: &mut &[u8]) -> $type {
                let (bytes, rest) = from.split_first_chunk().expect("the value was packed");
                *from = rest;
                <$type>::from_le_bytes(*bytes)
            }
        }
    )*};
}

/// Structs, by their fields.
macro_rules! structs {
    ($($type:ident { $($field:tt),* })*) => {$(
        impl Pack for $type {
            fn pack(&self, to: &mut Vec<u8>) {
                $(self.$field.pack(to);)*
            }

            fn unpack(from: &mut &[u8]) -> $type {
                // Fields are evaluated in this order.
                $type { $($field: Pack::unpack(from)),* }
            }
        }
    )*};
}

/// Enums, by a number and the fields of each variant.
macro_rules! enums {
    ($($type:ident { $($number:literal $variant:ident($($field:ident),*);)* })*) => {$(
        impl Pack for $type {
            fn pack(&self, to: &mut Vec<u8>) {
                match self {
                    $($type::$variant($($field),*) => {
                        to.push($number);
                        $($field.pack(to);)*
                    })*
                }
            }

            fn unpack(from: &mut &[u8]) -> $type {
                match u8::unpack(from) {
                    $($number => {
                        $(let $field = Pack::unpack(from);)*
                        $type::$variant($($field),*)
                    })*
                    other => unreachable!("{other} was not packed"),
                }
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i32, i64, f64);

structs! {
    AgentHandle { 0 }
    CounterHandle { 0 }
    FunctionHandle { 0 }
    LaneHandle { 0 }
    PlaceHandle { 0 }
    ProcessHandle { 0 }
    QueueHandle { 0 }
    StageHandle { 0 }
    TextHandle { 0 }
    ArgumentRange { first, count }
    ArgumentRow { name, value }
    HostRow { lane, kind, start, end, correlation, external, arguments }
    WorkRow { process, queue, stage, thread, correlation, dispatch, start, end, bytes, launch, resources, arguments }
    ValueRow { counter, time, value }
    MemoryRow { process, agent, time, address, bytes, freed }
    SampleRow {
        process, time, dispatch, correlation, external, exec_mask, hardware, place, outcome, latency, workgroup, wave_in_group,
        wave_count, absent
    }
    Launch { grid, workgroup }
    Resources { registers, accumulation_registers, scalar_registers, static_local, dynamic_local, private }
    HostEntry { row, arguments, submitted }
    WorkEntry { row, arguments, event, submitter, counters, outcomes }
}

enums! {
    HostKind {
        0 Call(function, error);
        1 Slice(name, category);
        2 Instant(name, category);
    }
    ArgumentValue {
        0 Uint(value);
        1 Int(value);
        2 Double(value);
        3 Text(value);
        4 Pointer(value);
    }
    CounterNumber {
        0 Int(value);
        1 Double(value);
    }
    SorterEntry {
        0 Host(entry);
        1 Work(entry);
        2 Value(row);
        3 Memory(row);
        4 Counter(name, value);
        5 Sample(row, ran);
    }
}

impl Pack for bool {
    fn pack(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn unpack(from: &mut &[u8]) -> bool {
        u8::unpack(from) != 0
    }
}

impl Pack for WaveOutcome {
    fn pack(&self, to: &mut Vec<u8>) {
        self.code().pack(to);
    }

    fn unpack(from: &mut &[u8]) -> WaveOutcome {
        WaveOutcome::from_code(u32::unpack(from))
    }
}

impl<T: Pack> Pack for Option<T> {
    fn pack(&self, to: &mut Vec<u8>) {
        self.is_some().pack(to);
        if let Some(value) = self {
            value.pack(to);
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<T> {
        bool::unpack(from).then(|| T::unpack(from))
    }
}

impl<T: Pack> Pack for Vec<T> {
    fn pack(&self, to: &mut Vec<u8>) {
        (self.len() as u32).pack(to);
        for value in self {
            value.pack(to);
        }
    }

    fn unpack(from: &mut &[u8]) -> Vec<T> {
        (0..u32::unpack(from)).map(|_| T::unpack(from)).collect()
    }
}

impl<T: Pack, const N: usize> Pack for [T; N] {
    fn pack(&self, to: &mut Vec<u8>) {
        for value in self {
            value.pack(to);
        }
    }

    fn unpack(from: &mut &[u8]) -> [T; N] {
        std::array::from_fn(|_| T::unpack(from))
    }
}

impl<A: Pack, B: Pack> Pack for (A, B) {
    fn pack(&self, to: &mut Vec<u8>) {
        self.0.pack(to);
        self.1.pack(to);
    }

    fn unpack(from: &mut &[u8]) -> (A, B) {
        (A::unpack(from), B::unpack(from))
    }
}
