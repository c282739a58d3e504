//! Arguments of API calls.

use super::*;

/// Most argument values that one record holds.
pub const MAX_ARGUMENTS: usize = 20;

open_enum! {
    /// How an argument's 64-bit value is to be read.
    ArgumentType(u8) {
        /// A signed integer.
        SIGNED = 1, "int";
        /// An unsigned integer.
        UNSIGNED = 2, "uint";
        /// A pointer or handle.
        POINTER = 3, "pointer";
        /// A set of bits.
        FLAGS = 4, "flags";
        /// A [`StringId`].
        STRING = 5, "string";
        /// A float, as its 64-bit pattern.
        FLOAT = 6, "float";
        /// A boolean.
        BOOLEAN = 7, "bool";
    }
}

/// Values of a call's arguments, in the order of its [`OperationName`], which has their names and
/// types. 24 bytes and 8 for each value: the record's size says how many there are.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Arguments {
    /// Kind [`Kind::ARGUMENTS`].
    pub header: Header,
    /// The call.
    pub correlation: CorrelationId,
    /// The function.
    pub operation: Operation,
    /// Number of values.
    pub count: u32,
    /// The values; only the first `count` are written.
    pub values: [u64; MAX_ARGUMENTS],
}
record!(Arguments, Kind::ARGUMENTS, 24 + 8 * MAX_ARGUMENTS, false);

impl Arguments {
    /// Size in bytes of a record with `count` values.
    pub const fn bytes_for(count: usize) -> usize {
        24 + 8 * count
    }

    /// The values of an operation's call.
    ///
    /// Values beyond [`MAX_ARGUMENTS`] are left out.
    pub fn new(correlation: CorrelationId, operation: Operation, values: &[u64]) -> Arguments {
        let count = values.len().min(MAX_ARGUMENTS);
        let mut record = Arguments::blank();
        record.header.words = (Self::bytes_for(count) / 8) as u16;
        record.correlation = correlation;
        record.operation = operation;
        record.count = count as u32;
        record.values[..count].copy_from_slice(&values[..count]);
        record
    }
}

/// An [`Arguments`] record with room for just `N` values: what is written where their number is known.
#[cfg(not(loom))]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct ArgumentsOf<const N: usize> {
    pub header: Header,
    pub correlation: CorrelationId,
    pub operation: Operation,
    pub count: u32,
    pub values: [u64; N],
}

// SAFETY: zeros are valid for every field.
#[cfg(not(loom))]
unsafe impl<const N: usize> Zeroable for ArgumentsOf<N> {}
// SAFETY: `repr(C)`, of fields of 8, 8, 4, 4 and N times 8 bytes that are all plain data: no padding.
#[cfg(not(loom))]
unsafe impl<const N: usize> Pod for ArgumentsOf<N> {}

#[cfg(not(loom))]
impl<const N: usize> ArgumentsOf<N> {
    #[inline(always)]
    pub fn new(correlation: CorrelationId, operation: Operation, values: [u64; N]) -> Self {
        const { assert!(N <= MAX_ARGUMENTS) };
        let mut header = Header::of::<Arguments>();
        header.words = const { (Arguments::bytes_for(N) / 8) as u16 };
        ArgumentsOf {
            header,
            correlation,
            operation,
            count: N as u32,
            values,
        }
    }
}
