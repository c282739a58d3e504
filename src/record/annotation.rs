//! Arguments of API calls.

use super::*;

/// The most argument values in one record.
pub const MAX_ARGUMENTS: usize = 20;

open_enum! {
    /// The interpretation of a 64-bit argument value.
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

/// The argument values of a call, in the order of its [`OperationName`], which has their names and types. 24 bytes plus
/// 8 for each value; the size in the header determines the number of values.
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
    /// The size in bytes of a record with `count` values.
    pub const fn bytes_for(count: usize) -> usize {
        24 + 8 * count
    }

    /// Creates the record of a call. Values beyond [`MAX_ARGUMENTS`] are left out.
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

/// The fixed part of an [`Arguments`] record, before the values.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ArgumentsHead {
    header: Header,
    correlation: CorrelationId,
    operation: Operation,
    count: u32,
}

impl ArgumentsHead {
    /// The fixed part of a record with `count` values, at most [`MAX_ARGUMENTS`].
    #[inline(always)]
    pub fn new(correlation: CorrelationId, operation: Operation, count: usize) -> ArgumentsHead {
        let mut header = const { Header::of::<Arguments>() };
        header.words = (Arguments::bytes_for(count) / 8) as u16;
        ArgumentsHead {
            header,
            correlation,
            operation,
            count: count as u32,
        }
    }
}
