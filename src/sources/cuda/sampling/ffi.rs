//! Our own declarations of CUPTI's interface for PC sampling (`cuptiPCSampling*`), and of that for source lines.
//!
//! Each structure begins with its size, by which the library knows the fields that the caller has. Two of them have
//! grown: [`StructureSizes`].

use core::ffi::{c_char, c_void};

/// Attributes of a configuration.
pub(in crate::cuda) const SAMPLING_PERIOD: u32 = 1;
pub(in crate::cuda) const STALL_REASONS: u32 = 2;
pub(in crate::cuda) const COLLECTION_MODE: u32 = 5;
pub(in crate::cuda) const OUTPUT_FORMAT: u32 = 7;
pub(in crate::cuda) const DATA_BUFFER: u32 = 8;

/// Values of [`COLLECTION_MODE`].
pub(in crate::cuda) const CONTINUOUS: u64 = 1;
pub(in crate::cuda) const KERNEL_SERIALIZED: u64 = 2;

/// The value of [`OUTPUT_FORMAT`]: samples counted by address.
pub(in crate::cuda) const PARSED: u64 = 1;

/// The size of the place for the name of a stall reason.
pub(in crate::cuda) const NAME_BYTES: usize = 128;

/// Declares structures, with the offsets of their fields for the tests.
macro_rules! structures {
    ($($(#[$meta:meta])* $name:ident { $($(#[$fmeta:meta])* $field:ident: $type:ty,)* })*) => {
        $($(#[$meta])*
        #[derive(Copy, Clone)]
        #[repr(C)]
        pub(in crate::cuda) struct $name {
            $($(#[$fmeta])* pub(in crate::cuda) $field: $type,)*
        })*

        /// The offset of each field, by structure and name.
        #[cfg(test)]
        pub(in crate::cuda) const FIELDS: &[(&str, &str, usize)] = &[$($((
            stringify!($name),
            stringify!($field),
            core::mem::offset_of!($name, $field),
        ),)*)*];
    };
}

structures! {
    /// What enables and disables sampling (CUPTI: `CUpti_PCSamplingEnableParams`, `CUpti_PCSamplingDisableParams`).
    ContextParams {
        size: usize,
        private: *mut c_void,
        context: *mut c_void,
    }

    /// CUPTI: `CUpti_PCSamplingGetDataParams`.
    DataParams {
        size: usize,
        private: *mut c_void,
        context: *mut c_void,
        data: *mut Data,
    }

    /// CUPTI: `CUpti_PCSamplingGetNumStallReasonsParams`.
    ReasonCountParams {
        size: usize,
        private: *mut c_void,
        context: *mut c_void,
        count: *mut usize,
    }

    /// CUPTI: `CUpti_PCSamplingGetStallReasonsParams`.
    ReasonParams {
        size: usize,
        private: *mut c_void,
        context: *mut c_void,
        count: usize,
        numbers: *mut u32,
        names: *mut *mut c_char,
    }

    /// CUPTI: `CUpti_PCSamplingConfigurationInfoParams`.
    ConfigurationParams {
        size: usize,
        private: *mut c_void,
        context: *mut c_void,
        count: usize,
        attributes: *mut Attribute,
    }

    /// An attribute of a configuration (CUPTI: `CUpti_PCSamplingConfigurationInfo`).
    Attribute {
        what: u32,
        status: i32,
        /// The value, in as much of it as its type has; a list is its length and its address.
        value: [u64; 3],
    }

    /// Samples, counted by address (CUPTI: `CUpti_PCSamplingData`).
    Data {
        size: usize,
        /// Places at `pcs`.
        capacity: usize,
        /// All samples, including dropped ones and those of kernels that are not the program's.
        total: u64,
        dropped: u64,
        /// Addresses at `pcs`.
        count: usize,
        /// Addresses that further calls will give.
        remaining: usize,
        range: u64,
        pcs: *mut c_void,
        /// Samples of kernels that are not the program's.
        foreign: u64,
        /// Whether the hardware's buffer is full. Since CUDA 12.0.
        is_full: u8,
    }

    /// The samples of an address (CUPTI: `CUpti_PCSamplingPCData`).
    Pc {
        size: usize,
        crc: u64,
        offset: u64,
        function_index: u32,
        padding: u32,
        /// To be freed, though several addresses may share it.
        function: *mut c_char,
        reason_count: usize,
        reasons: *mut Reason,
        /// The kernel's call in serialized mode. Since CUDA 12.4.
        correlation: u32,
    }

    /// The samples of an address with one stall reason (CUPTI: `CUpti_PCSamplingStallReason`).
    Reason {
        number: u32,
        samples: u32,
    }

    /// The source line of an instruction (CUPTI: `CUpti_GetSassToSourceCorrelationParams`).
    LineParams {
        size: usize,
        cubin: *const u8,
        function: *const c_char,
        cubin_size: usize,
        line: u32,
        offset: u64,
        /// To be freed, as is `folder`.
        file: *mut c_char,
        folder: *mut c_char,
    }

    /// CUPTI: `CUpti_GetCubinCrcParams`.
    CrcParams {
        size: usize,
        cubin_size: usize,
        cubin: *const u8,
        crc: u64,
    }

    /// The argument of a callback about a context or module (CUPTI: `CUpti_ResourceData`).
    Resource {
        context: *mut c_void,
        handle: *mut c_void,
        /// A [`Module`], in callbacks about modules.
        descriptor: *const c_void,
    }

    /// A module (CUPTI: `CUpti_ModuleResourceData`).
    Module {
        id: u32,
        cubin_size: usize,
        cubin: *const u8,
    }
}

/// The sizes that a version gives to the structures that have grown.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::cuda) struct StructureSizes {
    /// Of [`Data`].
    pub data: usize,
    /// Of [`Pc`]: the distance from one to the next.
    pub pc: usize,
}

impl StructureSizes {
    /// The sizes in the version that `cuptiGetVersion` gives. 18 is CUDA 11.8, and 12.0 and 12.1 too: what those have
    /// in addition is left out.
    pub fn of(version: u32) -> StructureSizes {
        StructureSizes {
            data: match version {
                ..=18 => core::mem::offset_of!(Data, is_full),
                _ => size_of::<Data>(),
            },
            pc: match version {
                ..=21 => core::mem::offset_of!(Pc, correlation),
                _ => size_of::<Pc>(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_their_versions() {
        let sizes = [18, 19, 21, 22, 28, 130_000].map(StructureSizes::of);
        let sizes = sizes.map(|sizes| (sizes.data, sizes.pc));
        assert_eq!(
            sizes,
            [(72, 56), (80, 56), (80, 56), (80, 64), (80, 64), (80, 64)]
        );
    }
}
