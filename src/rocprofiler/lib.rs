//! The binary interface of AMD's rocprofiler-sdk: its structures, numbers and functions, as versions 0.5 to 1.3 have them.
//!
//! The source `rocm` calls a library with this interface; `librocprofiler-sdk.so` of `tools/abi` is one. The names are those of
//! AMD's headers without the prefix `rocprofiler_` and the suffix `_t`. A semantic is described where it is used.
//!
//! Structures grow at their end from version to version. Those that a library gives begin with their `size` in that library:
//! [`read`] takes what is there, and what is missing is 0. Before version 1.0 a [`CorrelationId`] had no `ancestor`, so that
//! what follows it lies 8 bytes earlier: [`before_1_0`] has the structures that contain one.
//!
//! The numbers of kinds and operations have changed from version to version as well. A client asks the library for their names,
//! which [`enumerations`] lists with the numbers of version 1.3.
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

mod agents;
pub mod before_1_0;
mod callback_tracing;
mod counters;
pub mod enumerations;
mod functions;
mod layouts;
mod pc_sampling;
mod records;
mod types;

pub use agents::*;
pub use callback_tracing::*;
pub use counters::*;
pub use enumerations::*;
pub use functions::*;
pub use layouts::Layout;
pub use pc_sampling::*;
pub use records::*;
pub use types::*;

/// The version that the numbers and structures here are those of, as `rocprofiler_configure` is told it.
pub const VERSION: u32 = 10_300;

/// All structures of version 1.3, for comparisons with AMD's headers.
pub fn layouts() -> impl Iterator<Item = &'static Layout> {
    let modules = [
        RECORD_LAYOUTS,
        CALLBACK_LAYOUTS,
        AGENT_LAYOUTS,
        COUNTER_LAYOUTS,
        SAMPLING_LAYOUTS,
    ];
    modules.into_iter().flatten()
}

/// A structure that begins with its `size` in bytes, and for which all bytes 0 are a value.
///
/// # Safety
///
/// The first field is a `u64`, the structure is `repr(C)`, and any bytes are a value of it: it has numbers, pointers that are
/// not followed, and unions of those.
pub unsafe trait Growing: Copy {}

/// Reads a structure that a library of any version gave: as many bytes as its `size` and this version have.
///
/// # Safety
///
/// `from` is aligned for a `u64` and leads to as many bytes as the `u64` there says, which is the structure `T` of some version.
pub unsafe fn read<T: Growing>(from: *const T) -> T {
    let mut read = core::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: a structure begins with its size, says `Growing`.
    let size = unsafe { from.cast::<u64>().read() };
    let there = usize::try_from(size)
        .unwrap_or(usize::MAX)
        .min(size_of::<T>());
    // SAFETY: `from` leads to `size` bytes, and there is room for those of `T`.
    unsafe {
        core::ptr::copy_nonoverlapping(from.cast::<u8>(), read.as_mut_ptr().cast(), there);
        read.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_that_amd_promises_to_keep() {
        assert_eq!(size_of::<KernelDispatchInfo>(), 128);
        assert_eq!(size_of::<CallbackTracingRecord>(), 64);
        assert_eq!(size_of::<AgentV0>(), 312);
        assert!(layouts().all(|layout| layout.size % 8 == 0));
    }

    #[test]
    fn words_of_bits_have_their_fields_where_they_were_put() {
        let id = HwId::of(&[("chiplet", 5), ("simd_id", 7), ("vm_id", 9)]);
        assert_eq!(
            (id.chiplet(), id.simd_id(), id.vm_id(), id.wave_id()),
            (5, 3, 9, 0)
        );
        assert_eq!(Snapshot(1 << 27).dual_issue_valu(), 1);
        assert_eq!(MemoryCounters(0b11 << 12).bvh_cnt(), 3);
    }

    #[test]
    fn a_structure_of_an_older_library_reads_as_far_as_it_goes() {
        let new = KernelDispatchRecord {
            size: 16,
            kind: BufferTracingKind::KERNEL_DISPATCH,
            operation: 2,
            start_timestamp: 77,
            // SAFETY: any bytes are a value.
            ..unsafe { core::mem::zeroed() }
        };
        // SAFETY: there are more than the 16 bytes that it says it has.
        let read = unsafe { read(&raw const new) };
        assert_eq!((read.operation, read.start_timestamp), (2, 0));
    }
}
