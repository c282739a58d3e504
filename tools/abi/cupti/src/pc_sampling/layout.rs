//! The structures of `cupti_pcsampling.h`. Each begins with its size, which its writer sets to that of its version.

use core::ffi::{c_char, c_void};

/// Declares structures, with the offsets of their fields for the test of layouts.
macro_rules! structures {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* })*) => {
        $($(#[$meta])*
        #[derive(Copy, Clone)]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        })*

        /// Structure, field, offset and bytes of every field, for the test of layouts.
        #[cfg(test)]
        pub fn fields() -> Vec<(&'static str, &'static str, usize, usize)> {
            vec![$($((
                concat!("CUpti_", stringify!($name)),
                stringify!($field),
                core::mem::offset_of!($name, $field),
                size_of::<$type>(),
            ),)*)*]
        }
    };
}

structures! {
    /// Names a context: the parameters of `cuptiPCSamplingEnable` and its like.
    PCSamplingEnableParams {
        size: usize,
        private: *mut c_void,
        context: *mut c_void,
    }

    PCSamplingGetDataParams {
        size: usize,
        private: *mut c_void,
        context: *mut c_void,
        data: *mut PCSamplingData,
    }

    PCSamplingGetNumStallReasonsParams {
        size: usize,
        private: *mut c_void,
        context: *mut c_void,
        count: *mut usize,
    }

    PCSamplingGetStallReasonsParams {
        size: usize,
        private: *mut c_void,
        context: *mut c_void,
        count: usize,
        numbers: *mut u32,
        /// Places of [`NAME_BYTES`](super::reasons::NAME_BYTES) bytes.
        names: *mut *mut c_char,
    }

    PCSamplingConfigurationInfoParams {
        size: usize,
        private: *mut c_void,
        context: *mut c_void,
        count: usize,
        attributes: *mut PCSamplingConfigurationInfo,
    }

    PCSamplingConfigurationInfo {
        attribute: u32,
        status: u32,
        /// The value, in as much of it as its type has; a list is its length and its address.
        value: [u64; 3],
    }

    /// Samples, counted by address.
    PCSamplingData {
        size: usize,
        /// The places at `pcs`.
        capacity: usize,
        /// All samples, dropped ones among them.
        total: u64,
        dropped: u64,
        /// The addresses at `pcs`.
        count: usize,
        /// The addresses that further calls will give.
        remaining: usize,
        range: u64,
        pcs: *mut PCSamplingPCData,
        /// Samples of kernels that are not the program's.
        foreign: u64,
        /// Since CUDA 12.0.
        is_full: u8,
    }

    /// The samples of an address.
    PCSamplingPCData {
        size: usize,
        crc: u64,
        offset: u64,
        function_index: u32,
        pad: u32,
        /// The program's to free.
        function: *mut c_char,
        reason_count: usize,
        /// As many places as there are reasons in the configuration.
        reasons: *mut PCSamplingStallReason,
        /// The kernel's call, where kernels are serialized. Since CUDA 12.4.
        correlation: u32,
    }

    PCSamplingStallReason {
        number: u32,
        samples: u32,
    }

    GetSassToSourceCorrelationParams {
        size: usize,
        cubin: *const u8,
        function: *const c_char,
        cubin_size: usize,
        line: u32,
        offset: u64,
        /// The program's to free, as is `folder`.
        file: *mut c_char,
        folder: *mut c_char,
    }

    GetCubinCrcParams {
        size: usize,
        cubin_size: usize,
        cubin: *const u8,
        crc: u64,
    }
}
