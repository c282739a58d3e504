//! Samples of the program counter (rocprofiler-sdk: PC sampling records; CUPTI: `CUpti_ActivityPCSampling3`,
//! `CUpti_ActivityPCSamplingRecordInfo`, `CUpti_ActivitySourceLocator`, `CUpti_ActivityInstructionCorrelation`).
//!
//! Fields have the widths of rocprofiler-sdk's records, and bit fields their layout. Fields that an agent cannot
//! provide are 0 and listed in [`Absent`]. CUPTI's function records correspond to [`KernelSymbol`]s, its module records
//! to [`Module`]s and their [`CodeObject`]s.

use super::*;

open_enum! {
    /// The method of sampling (rocprofiler-sdk: `rocprofiler_pc_sampling_method_t`).
    SamplingMethod(u8) {
        /// The hardware samples a wave and reports what it issues or why it waits.
        STOCHASTIC = 1, "stochastic";
        /// The host traps the waves; what they issue is unknown.
        HOST_TRAP = 2, "host-trap";
    }
}

open_enum! {
    /// The unit of the sampling interval (rocprofiler-sdk: `rocprofiler_pc_sampling_unit_t`).
    SamplingUnit(u8) {
        /// Instructions.
        INSTRUCTIONS = 1, "instructions";
        /// Cycles of the agent's clock.
        CYCLES = 2, "cycles";
        /// Nanoseconds.
        TIME = 3, "ns";
    }
}

/// An integer made of bit fields, from the lowest bit, with a getter and a builder for each.
macro_rules! bit_fields {
    ($(#[$meta:meta])* $name:ident($int:ty) {
        $($(#[$fmeta:meta])* $field:ident, $with:ident: $shift:literal, $width:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Pod, Zeroable)]
        #[repr(transparent)]
        pub struct $name(pub $int);

        impl $name {
            /// The fields: name, first bit, number of bits.
            pub const FIELDS: &'static [(&'static str, u32, u32)] =
                &[$((stringify!($field), $shift, $width)),*];

            $(
                $(#[$fmeta])*
                pub const fn $field(self) -> $int {
                    (self.0 >> $shift) & ((1 << $width) - 1)
                }

                #[doc = concat!("The same with `", stringify!($field), "`, of which bits that do not fit are lost.")]
                pub const fn $with(self, value: $int) -> $name {
                    let mask: $int = (1 << $width) - 1;
                    $name(self.0 & !(mask << $shift) | (value & mask) << $shift)
                }
            )*
        }

        impl layout::FieldType for $name {
            const VALUES: FieldValues = FieldValues::Bits(stringify!($name), $name::FIELDS);
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($name))$(.field(stringify!($field), &self.$field()))*.finish()
            }
        }
    };
}

bit_fields! {
    /// The position of a wave on the agent (rocprofiler-sdk: `rocprofiler_pc_sampling_hw_id_v0_t`).
    HardwareId(u64) {
        /// Chiplet.
        chiplet, with_chiplet: 0, 6;
        /// Wave slot.
        wave, with_wave: 6, 7;
        /// SIMD.
        simd, with_simd: 13, 2;
        /// Pipe.
        pipe, with_pipe: 15, 4;
        /// Compute unit, or workgroup processor where compute units are paired.
        compute_unit, with_compute_unit: 19, 4;
        /// Shader array.
        shader_array, with_shader_array: 23, 1;
        /// Shader engine.
        shader_engine, with_shader_engine: 24, 5;
        /// Slot of the workgroup.
        workgroup_slot, with_workgroup_slot: 29, 7;
        /// Virtual memory id.
        virtual_memory, with_virtual_memory: 36, 6;
        /// Hardware queue.
        queue, with_queue: 42, 4;
        /// Microengine.
        microengine, with_microengine: 46, 2;
    }
}

impl HardwareId {
    /// The id of a CPU, for agents on the host's processors. The number is split over the fields from the lowest bits:
    /// compute unit (4 bits), shader engine (5), shader array (1), chiplet (6).
    pub const fn of_cpu(cpu: u16) -> HardwareId {
        let cpu = cpu as u64;
        HardwareId(0)
            .with_compute_unit(cpu)
            .with_shader_engine(cpu >> 4)
            .with_shader_array(cpu >> 9)
            .with_chiplet(cpu >> 10)
    }

    /// The number of the CPU given to [`HardwareId::of_cpu`]. On other agents, a number that is unique for each compute
    /// unit.
    pub const fn unit(self) -> u16 {
        (self.compute_unit()
            | self.shader_engine() << 4
            | self.shader_array() << 9
            | self.chiplet() << 10) as u16
    }
}

bit_fields! {
    /// The issue state of a wave: 8 bits of rocprofiler-sdk's stochastic record.
    Issue(u8) {
        /// 1 if the wave issued the instruction at the program counter.
        issued, with_issued: 0, 1;
        /// An [`InstructionType`]; only if it issued.
        instruction, with_instruction: 1, 5;
    }
}

bit_fields! {
    /// The state of the arbiter (rocprofiler-sdk: `rocprofiler_pc_sampling_snapshot_v0_t`): for each type of
    /// instruction whether one was issued and whether one was stalled.
    Snapshot(u32) {
        /// A [`NotIssued`]; only if the wave did not issue.
        reason_not_issued, with_reason_not_issued: 0, 4;
        /// A vector ALU instruction was issued.
        issue_valu, with_issue_valu: 5, 1;
        /// A matrix instruction was issued.
        issue_matrix, with_issue_matrix: 6, 1;
        /// A local memory instruction was issued.
        issue_lds, with_issue_lds: 7, 1;
        /// A direct local memory instruction was issued.
        issue_lds_direct, with_issue_lds_direct: 8, 1;
        /// A scalar instruction was issued.
        issue_scalar, with_issue_scalar: 9, 1;
        /// A texture instruction was issued.
        issue_vmem_tex, with_issue_vmem_tex: 10, 1;
        /// A flat instruction was issued.
        issue_flat, with_issue_flat: 11, 1;
        /// An export was issued.
        issue_exp, with_issue_exp: 12, 1;
        /// A miscellaneous instruction was issued.
        issue_misc, with_issue_misc: 13, 1;
        /// A branch or message was issued.
        issue_brmsg, with_issue_brmsg: 14, 1;
        /// A vector ALU instruction was stalled.
        stall_valu, with_stall_valu: 16, 1;
        /// A matrix instruction was stalled.
        stall_matrix, with_stall_matrix: 17, 1;
        /// A local memory instruction was stalled.
        stall_lds, with_stall_lds: 18, 1;
        /// A direct local memory instruction was stalled.
        stall_lds_direct, with_stall_lds_direct: 19, 1;
        /// A scalar instruction was stalled.
        stall_scalar, with_stall_scalar: 20, 1;
        /// A texture instruction was stalled.
        stall_vmem_tex, with_stall_vmem_tex: 21, 1;
        /// A flat instruction was stalled.
        stall_flat, with_stall_flat: 22, 1;
        /// An export was stalled.
        stall_exp, with_stall_exp: 23, 1;
        /// A miscellaneous instruction was stalled.
        stall_misc, with_stall_misc: 24, 1;
        /// A branch or message was stalled.
        stall_brmsg, with_stall_brmsg: 25, 1;
        /// Two vector ALU instructions were issued together.
        dual_issue_valu, with_dual_issue_valu: 27, 1;
    }
}

bit_fields! {
    /// Outstanding memory instructions of a wave (rocprofiler-sdk: `rocprofiler_pc_sampling_memory_counters_t`).
    MemoryCounters(u32) {
        /// Loads.
        load, with_load: 0, 6;
        /// Stores.
        store, with_store: 6, 6;
        /// Walks of bounding-volume hierarchies.
        bvh, with_bvh: 12, 3;
        /// Texture samples.
        sample, with_sample: 15, 6;
        /// Local memory instructions.
        lds, with_lds: 21, 6;
        /// Scalar memory reads and messages.
        scalar, with_scalar: 27, 5;
    }
}

macro_rules! absent {
    ($(#[$tmeta:meta])* Absent(u16) {
        $($(#[$meta:meta])* $field:ident = $bits:expr, $text:literal;)*
    }) => {
        $(#[$tmeta])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default, Pod, Zeroable)]
        #[repr(transparent)]
        pub struct Absent(pub u16);

        impl Absent {
            /// All fields are present.
            pub const NOTHING: Absent = Absent(0);
            $($(#[$meta])* pub const $field: Absent = Absent($bits);)*

            /// All fields that may be absent, with their names.
            pub const ALL: &'static [(Absent, &'static str)] = &[$((Absent::$field, $text)),*];

            /// The names of the constants, in the same order.
            #[doc(hidden)]
            pub const IDENTIFIERS: &'static [&'static str] = &[$(stringify!($field)),*];
        }

        impl layout::FieldType for Absent {
            const VALUES: FieldValues = FieldValues::Bits(
                "Absent",
                &[$(($text, Absent::$field.0.trailing_zeros(), 1)),*],
            );
        }
    };
}

absent! {
    /// The fields of a sample that the agent could not provide: they are 0.
    Absent(u16) {
        /// The execution mask.
        EXEC_MASK = 1 << 0, "exec mask";
        /// The workgroup.
        WORKGROUP = 1 << 1, "workgroup";
        /// The wave in its workgroup.
        WAVE_IN_GROUP = 1 << 2, "wave in group";
        /// The hardware slot.
        HARDWARE = 1 << 3, "hardware";
        /// The dispatch.
        DISPATCH = 1 << 4, "dispatch";
        /// The call that enqueued the dispatch.
        CORRELATION = 1 << 5, "correlation";
        /// Its external id.
        EXTERNAL = 1 << 6, "external";
        /// The kernel.
        KERNEL = 1 << 7, "kernel";
        /// The time.
        TIME = 1 << 8, "time";
        /// Stochastic samples: the number of waves.
        WAVE_COUNT = 1 << 9, "wave count";
        /// Stochastic samples: the arbiter's bits.
        ARBITER = 1 << 10, "arbiter";
    }
}

impl Absent {
    /// Whether all of `fields` are absent.
    pub const fn has(self, fields: Absent) -> bool {
        self.0 & fields.0 == fields.0
    }

    /// Returns the set with additional `fields`.
    pub const fn with(self, fields: Absent) -> Absent {
        Absent(self.0 | fields.0)
    }
}

/// A host-trap sample (rocprofiler-sdk: `rocprofiler_pc_sampling_record_host_trap_v0_t`). 96 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct HostTrapSample {
    /// Kind [`Kind::PC_SAMPLE_HOST_TRAP`].
    pub header: Header,
    /// The call that enqueued the dispatch.
    pub correlation: CorrelationId,
    /// External id of that call.
    pub external: ExternalId,
    /// The dispatch.
    pub work: WorkId,
    /// When the sample was taken.
    pub time: DeviceTime,
    /// The program counter as the offset from the code object's load base, or the address if there is no code
    /// object.
    pub offset: u64,
    /// The execution mask: the active lanes.
    pub exec_mask: u64,
    /// The position on the agent.
    pub hardware: HardwareId,
    /// The agent.
    pub agent: AgentId,
    /// The kernel.
    pub kernel: KernelId,
    /// The code object, or none if unknown.
    pub code_object: CodeObjectId,
    /// The thread that executed the wave, on an agent on the host's processors.
    pub thread: ThreadId,
    /// The workgroup in x, y, z.
    pub workgroup: [u32; 3],
    /// The absent fields.
    pub absent: Absent,
    /// The number of the wave in its workgroup.
    pub wave_in_group: u8,
    /// Reserved, 0.
    pub reserved: u8,
}
record!(HostTrapSample, Kind::PC_SAMPLE_HOST_TRAP, 96);

/// A stochastic sample (rocprofiler-sdk: `rocprofiler_pc_sampling_record_stochastic_v0_t`). It starts with the fields
/// of a [`HostTrapSample`]. 112 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct StochasticSample {
    /// Kind [`Kind::PC_SAMPLE_STOCHASTIC`].
    pub header: Header,
    /// The call that enqueued the dispatch.
    pub correlation: CorrelationId,
    /// External id of that call.
    pub external: ExternalId,
    /// The dispatch.
    pub work: WorkId,
    /// When the sample was taken.
    pub time: DeviceTime,
    /// The program counter as the offset from the code object's load base, or the address if there is no code
    /// object.
    pub offset: u64,
    /// The execution mask: the active lanes.
    pub exec_mask: u64,
    /// The position on the agent.
    pub hardware: HardwareId,
    /// The agent.
    pub agent: AgentId,
    /// The kernel.
    pub kernel: KernelId,
    /// The code object, or none if unknown.
    pub code_object: CodeObjectId,
    /// The thread that executed the wave, on an agent on the host's processors.
    pub thread: ThreadId,
    /// The workgroup in x, y, z.
    pub workgroup: [u32; 3],
    /// The absent fields.
    pub absent: Absent,
    /// The number of the wave in its workgroup.
    pub wave_in_group: u8,
    /// Whether the wave issued an instruction, and its type.
    pub issue: Issue,
    /// The reason for not issuing, and the state of the arbiter.
    pub snapshot: Snapshot,
    /// Outstanding memory instructions; see `has_memory_counters`.
    pub memory_counters: MemoryCounters,
    /// The number of active waves on the compute unit.
    pub wave_count: u32,
    /// 1 if `memory_counters` is valid.
    pub has_memory_counters: u8,
    /// Reserved, 0.
    pub reserved: [u8; 3],
}
record!(StochasticSample, Kind::PC_SAMPLE_STOCHASTIC, 112);

impl From<HostTrapSample> for StochasticSample {
    /// Copies the common fields. The issue state is unknown.
    fn from(sample: HostTrapSample) -> StochasticSample {
        let mut stochastic = StochasticSample::blank();
        let header = stochastic.header;
        bytemuck::bytes_of_mut(&mut stochastic)[..size_of::<HostTrapSample>()]
            .copy_from_slice(bytemuck::bytes_of(&sample));
        stochastic.header = header;
        stochastic
    }
}

impl StochasticSample {
    /// The fields shared with host-trap samples. The header is still that of this record.
    pub fn place(&self) -> &HostTrapSample {
        bytemuck::from_bytes(&bytemuck::bytes_of(self)[..size_of::<HostTrapSample>()])
    }

    /// The type of the issued instruction, if one was issued.
    pub fn issued(&self) -> Option<InstructionType> {
        (self.issue.issued() == 1).then(|| InstructionType(self.issue.instruction()))
    }

    /// The reason for not issuing, if none was issued.
    pub fn not_issued(&self) -> Option<NotIssued> {
        (self.issue.issued() == 0).then(|| NotIssued(self.snapshot.reason_not_issued() as u8))
    }

    /// The outstanding memory instructions, if the agent counts them.
    pub fn memory_counters(&self) -> Option<MemoryCounters> {
        (self.has_memory_counters & 1 == 1).then_some(self.memory_counters)
    }

    /// Whether the arbiter issued nothing at all (CUPTI: latency sample).
    pub fn is_latency(&self) -> bool {
        const ISSUES: u32 = 0x3ff << 5;
        self.issue.issued() == 0
            && !self.absent.has(Absent::ARBITER)
            && self.snapshot.0 & ISSUES == 0
    }
}

impl StallReason {
    /// CUPTI's reason for a sample. The complete sample distinguishes more reasons than [`NotIssued`] alone: a wait for
    /// only scalar reads is one for constant memory, and a stalled pipe is throttled memory (flat) or the texture
    /// sub-system (texture).
    pub fn of(sample: &StochasticSample) -> StallReason {
        let Some(reason) = sample.not_issued() else {
            return StallReason::NONE;
        };
        let stalled = sample.snapshot;
        match (reason, sample.memory_counters()) {
            (NotIssued::WAITCNT, Some(pending))
                if pending.scalar() > 0 && pending.with_scalar(0) == MemoryCounters(0) =>
            {
                StallReason::CONSTANT_MEMORY_DEPENDENCY
            }
            (NotIssued::ARBITER_WIN_EX_STALL, _) if stalled.stall_flat() == 1 => {
                StallReason::MEMORY_THROTTLE
            }
            (NotIssued::ARBITER_WIN_EX_STALL, _) if stalled.stall_vmem_tex() == 1 => {
                StallReason::TEXTURE
            }
            _ => StallReason::from(reason),
        }
    }
}

/// An invalid sample, which the agent could not complete (rocprofiler-sdk:
/// `rocprofiler_pc_sampling_record_invalid_t`). 32 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct InvalidSample {
    /// Kind [`Kind::PC_SAMPLE_INVALID`].
    pub header: Header,
    /// The time, or 0.
    pub time: DeviceTime,
    /// The dispatch, or none.
    pub work: WorkId,
    /// The agent.
    pub agent: AgentId,
    /// The method.
    pub method: SamplingMethod,
    /// Reserved, 0.
    pub reserved: [u8; 3],
}
record!(InvalidSample, Kind::PC_SAMPLE_INVALID, 32);

/// The number of samples of a dispatch (CUPTI: `CUpti_ActivityPCSamplingRecordInfo`). 56 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SamplingTotals {
    /// Kind [`Kind::PC_SAMPLING_TOTALS`].
    pub header: Header,
    /// The call that enqueued the dispatch.
    pub correlation: CorrelationId,
    /// The dispatch.
    pub work: WorkId,
    /// All samples, including invalid and dropped ones.
    pub total: u64,
    /// Samples dropped by the agent or the buffer.
    pub dropped: u64,
    /// The sampling interval in `unit`.
    pub interval: u64,
    /// The agent.
    pub agent: AgentId,
    /// The method.
    pub method: SamplingMethod,
    /// The unit of the interval.
    pub unit: SamplingUnit,
    /// Reserved, 0.
    pub reserved: [u8; 2],
}
record!(SamplingTotals, Kind::PC_SAMPLING_TOTALS, 56);

/// Samples of one dispatch at one address with one reason (CUPTI: `CUpti_ActivityPCSampling3`). 72 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SampleAggregate {
    /// Kind [`Kind::PC_SAMPLE_AGGREGATE`].
    pub header: Header,
    /// The call that enqueued the dispatch.
    pub correlation: CorrelationId,
    /// The dispatch.
    pub work: WorkId,
    /// The program counter as the offset from the code object's load base, or the address if there is no code
    /// object.
    pub offset: u64,
    /// The number of samples, including latency samples.
    pub samples: u64,
    /// Latency samples, in which the arbiter issued nothing at all.
    pub latency_samples: u64,
    /// The code object, or none.
    pub code_object: CodeObjectId,
    /// The kernel (CUPTI: functionId).
    pub kernel: KernelId,
    /// The agent.
    pub agent: AgentId,
    /// The source line, or none.
    pub source_locator: SourceLocatorId,
    /// The stall reason of CUPTI; unknown for host-trap samples.
    pub stall: StallReason,
    /// The reason for not issuing, of rocprofiler-sdk.
    pub reason: NotIssued,
    /// The type of the issued instruction.
    pub instruction: InstructionType,
    /// The method.
    pub method: SamplingMethod,
    /// Reserved, 0.
    pub reserved: u32,
}
record!(SampleAggregate, Kind::PC_SAMPLE_AGGREGATE, 72);

/// A line of source code (CUPTI: `CUpti_ActivitySourceLocator`). 24 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SourceLocator {
    /// Kind [`Kind::SOURCE_LOCATOR`].
    pub header: Header,
    /// Its id.
    pub id: SourceLocatorId,
    /// The file.
    pub file: StringId,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0: unknown.
    pub column: u32,
}
record!(SourceLocator, Kind::SOURCE_LOCATOR, 24);

/// An instruction and its line of source code (CUPTI: `CUpti_ActivityInstructionCorrelation`). 40 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct InstructionCorrelation {
    /// Kind [`Kind::INSTRUCTION_CORRELATION`].
    pub header: Header,
    /// The offset of the instruction from the code object's load base.
    pub offset: u64,
    /// The code object.
    pub code_object: CodeObjectId,
    /// The kernel (CUPTI: functionId).
    pub kernel: KernelId,
    /// Its line.
    pub source_locator: SourceLocatorId,
    /// The disassembly, or none.
    pub text: StringId,
    /// The type of the instruction, if known (CUPTI: class bits of flags).
    pub instruction: InstructionType,
    /// Reserved, 0.
    pub reserved: [u8; 7],
}
record!(InstructionCorrelation, Kind::INSTRUCTION_CORRELATION, 40);

#[cfg(test)]
mod tests;
