//! Samples of the program counter.

use crate::enumerations::{PcSamplingMethod, PcSamplingUnit};
use crate::layouts::layouts;
use crate::types::{AsyncCorrelationId, Dim3, DispatchId, Timestamp};

/// A place in code: an offset from the base of the loaded code object, or an address where that is 0.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pc {
    /// The code object; 0 if it is unknown.
    pub code_object_id: u64,
    /// The offset, or the address.
    pub code_object_offset: u64,
}

layouts! { SAMPLING_LAYOUTS:
    /// How an agent can sample. `flags` is a [`PcSamplingConfigurationFlags`](crate::PcSamplingConfigurationFlags).
    growing PcSamplingConfiguration = "rocprofiler_pc_sampling_configuration_t" {
        size: u64,
        method: PcSamplingMethod,
        unit: PcSamplingUnit,
        min_interval: usize,
        max_interval: usize,
        flags: u64,
    }

    /// A sample of a wave that a thread of the host has interrupted. The low 8 bits of `wave` are the wave's place in its workgroup.
    growing PcSamplingHostTrapRecord = "rocprofiler_pc_sampling_record_host_trap_v0_t" {
        size: u64,
        hw_id: HwId,
        pc: Pc,
        exec_mask: u64,
        timestamp: Timestamp,
        dispatch_id: DispatchId,
        correlation_id: AsyncCorrelationId,
        workgroup_id: Dim3,
        wave: u32,
    }

    /// A sample of a wave that the hardware has taken. `flags`: [`HAS_MEMORY_COUNTER`]. `issue`: bit 0 is whether the wave
    /// issued an instruction, bits 1 to 5 are its [type](crate::PcSamplingInstructionType). `hw_id`, `snapshot` and
    /// `memory_counters` have bits: [`HwId`], [`Snapshot`], [`MemoryCounters`].
    growing PcSamplingStochasticRecord = "rocprofiler_pc_sampling_record_stochastic_v0_t" {
        size: u64,
        flags: u8,
        wave_in_group: u8,
        issue: u8,
        hw_id: HwId,
        pc: Pc,
        exec_mask: u64,
        workgroup_id: Dim3,
        wave_count: u32,
        timestamp: Timestamp,
        dispatch_id: DispatchId,
        correlation_id: AsyncCorrelationId,
        snapshot: Snapshot,
        memory_counters: MemoryCounters,
    }

    /// A sample that says nothing.
    growing PcSamplingInvalidRecord = "rocprofiler_pc_sampling_record_invalid_t" {
        size: u64,
    }
}

impl PcSamplingStochasticRecord {
    /// Before version 1.3 `memory_counters` had 32 bits and lay 4 bytes earlier, which these bytes end behind.
    pub const SIZE_BEFORE_1_3: u64 = Self::OFFSET_BEFORE_1_3 as u64 + 4;
    /// Where `memory_counters` lay before version 1.3.
    pub const OFFSET_BEFORE_1_3: usize = core::mem::offset_of!(Self, snapshot) + 4;
}

/// A flag of stochastic samples: `memory_counters` has a meaning.
pub const HAS_MEMORY_COUNTER: u8 = 1;

/// Words of bits: each field with its lowest bit and its number of bits.
macro_rules! bits {
    ($($(#[$what:meta])* $type:ident($word:ty) { $($(#[$field_what:meta])* $field:ident: $from:literal, $bits:literal;)* })*) => {
        $($(#[$what])*
        #[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
        #[repr(transparent)]
        pub struct $type(pub $word);

        impl $type {
            $($(#[$field_what])*
            pub const fn $field(self) -> $word {
                (self.0 >> $from) & ((1 << $bits) - 1)
            })*

            /// The word with these values, by the names of their fields; more bits than a field has are left out.
            ///
            /// # Panics
            ///
            /// There is no field of a name.
            pub fn of(values: &[(&str, $word)]) -> $type {
                let word = values.iter().map(|&(name, value)| match name {
                    $(stringify!($field) => (value & ((1 << $bits) - 1)) << $from,)*
                    _ => panic!("no field {name}"),
                });
                $type(word.fold(0, |all, one| all | one))
            }
        })*
    };
}

bits! {
    /// The part of the hardware that a wave runs on.
    HwId(u64) {
        /// The chiplet.
        chiplet: 0, 6;
        /// The wave's slot.
        wave_id: 6, 7;
        /// The SIMD.
        simd_id: 13, 2;
        /// The pipe.
        pipe_id: 15, 4;
        /// The compute unit on gfx9, the workgroup processor on later ones.
        cu_or_wgp_id: 19, 4;
        /// The shader array.
        shader_array_id: 23, 1;
        /// The shader engine.
        shader_engine_id: 24, 5;
        /// The place of the workgroup.
        workgroup_id: 29, 7;
        /// The virtual memory.
        vm_id: 36, 6;
        /// The queue.
        queue_id: 42, 4;
        /// The microengine.
        microengine_id: 46, 2;
    }

    /// The arbiter's decision when a sample was taken.
    Snapshot(u32) {
        /// Why no instruction was issued: a [`PcSamplingInstructionNotIssuedReason`](crate::PcSamplingInstructionNotIssuedReason).
        reason_not_issued: 0, 4;
        /// The types of instructions that it issued, as bits: VALU, matrix, LDS, LDS direct, scalar, texture, flat, export,
        /// others, branches and messages.
        arb_state_issue: 5, 10;
        /// The types of instructions that stalled, as the same bits.
        arb_state_stall: 16, 10;
        /// Two vector instructions were issued at once.
        dual_issue_valu: 27, 1;
        /// The sample came late, because the one before was still being read.
        sampling_lock_error: 28, 1;
    }

    /// Instructions of a wave that are issued and not completed, by their kind.
    MemoryCounters(u64) {
        /// Loads from memory.
        load_cnt: 0, 6;
        /// Stores to memory.
        store_cnt: 6, 6;
        /// Steps through bounding volumes.
        bvh_cnt: 12, 3;
        /// Samples of images.
        sample_cnt: 15, 6;
        /// LDS.
        ds_cnt: 21, 6;
        /// Scalar loads and messages.
        km_cnt: 27, 5;
        /// Asynchronous ones; gfx1250 only.
        async_cnt: 32, 6;
        /// Of tensors; gfx1250 only.
        tensor_cnt: 38, 6;
        /// That wait for an acknowledgement of XNACK; gfx1250 only.
        xnack_cnt: 44, 6;
    }
}
