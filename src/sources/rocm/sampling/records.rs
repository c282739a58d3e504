//! Samples of the SDK, and the records that they become. Functions of their arguments alone.
//!
//! The SDK's words of bits are those of our records, which were made after them. Its numbers of instruction types and of reasons are
//! asked for by name ([`SampleWords`]), since they may change from version to version, as those of its records did with 1.0.

use gputrail_record::{
    Absent, AgentId, CodeObjectId, CorrelationId, DeviceTime, ExternalId, HardwareId,
    HostTrapSample, InstructionType, InvalidSample, Issue, KernelId, MemoryCounters, NotIssued,
    SamplingMethod, Snapshot, StochasticSample, WorkId,
};
use gputrail_rocprofiler::{
    HAS_MEMORY_COUNTER, Pc, PcSamplingHostTrapRecord, PcSamplingRecordKind,
    PcSamplingStochasticRecord, RecordHeader, read,
};

/// A sample as the SDK delivers it.
#[derive(Copy, Clone, Debug)]
pub(super) enum SdkSample {
    /// A thread of the host has interrupted the wave.
    HostTrap(PcSamplingHostTrapRecord),
    /// The hardware has looked at the wave.
    Stochastic(PcSamplingStochasticRecord),
    /// The hardware could not complete it.
    Invalid,
}

impl SdkSample {
    /// The dispatch that was sampled; 0 if it is unknown.
    pub fn dispatch(&self) -> u64 {
        match self {
            SdkSample::HostTrap(sample) => sample.dispatch_id,
            SdkSample::Stochastic(sample) => sample.dispatch_id,
            SdkSample::Invalid => 0,
        }
    }

    /// The address.
    pub fn pc(&self) -> Pc {
        match self {
            SdkSample::HostTrap(sample) => sample.pc,
            SdkSample::Stochastic(sample) => sample.pc,
            SdkSample::Invalid => Pc::default(),
        }
    }

    /// The word that our answer to the SDK's request has tied to the dispatch; 0 is none.
    pub fn answer(&self) -> u64 {
        match self {
            SdkSample::HostTrap(sample) => sample.correlation_id.external.value(),
            SdkSample::Stochastic(sample) => sample.correlation_id.external.value(),
            SdkSample::Invalid => 0,
        }
    }
}

/// The kind of a record in a buffer of samples: before version 1.0 there were no invalid ones, and the numbers began with
/// host-trap samples.
fn kind(number: u32, is_before_1_0: bool) -> PcSamplingRecordKind {
    PcSamplingRecordKind(number as i32 + i32::from(is_before_1_0 && number != 0))
}

/// Reads a sample. `None`: the record is of another kind.
///
/// # Safety
///
/// `header` is that of a record of samples, in the callback that the library of this version delivers it with.
pub(super) unsafe fn read_sample(header: &RecordHeader, is_before_1_0: bool) -> Option<SdkSample> {
    if header.payload.is_null() {
        return None;
    }
    match kind(header.kind, is_before_1_0) {
        PcSamplingRecordKind::INVALID_SAMPLE => Some(SdkSample::Invalid),
        PcSamplingRecordKind::HOST_TRAP_V0_SAMPLE => {
            let from = header.payload.cast::<PcSamplingHostTrapRecord>();
            // SAFETY: a record of this kind, which begins with its size (the caller's promise).
            Some(SdkSample::HostTrap(unsafe { read(from) }))
        }
        PcSamplingRecordKind::STOCHASTIC_V0_SAMPLE => {
            let from = header.payload.cast::<PcSamplingStochasticRecord>();
            // SAFETY: as above.
            let mut sample = unsafe { read(from) };
            if sample.size == PcSamplingStochasticRecord::SIZE_BEFORE_1_3 {
                let offset = PcSamplingStochasticRecord::OFFSET_BEFORE_1_3;
                // SAFETY: the record has as many bytes as it says, and the counters are the last four of them.
                let counters = unsafe { from.cast::<u8>().add(offset).cast::<u32>().read() };
                sample.memory_counters.0 = counters.into();
            }
            Some(SdkSample::Stochastic(sample))
        }
        _ => None,
    }
}

/// The begin of the names of instruction types and of reasons.
const INSTRUCTION: &str = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_";
const REASON: &str = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_";

/// The whole name, of one that may lack its begin.
fn whole(begin: &str, name: &str) -> String {
    format!("{begin}{}", name.strip_prefix(begin).unwrap_or(name))
}

/// The library's numbers of instruction types and of reasons, translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SampleWords {
    /// By the library's number, which has five bits.
    instructions: [u8; 32],
    /// By the library's number, which has four bits.
    reasons: [u8; 16],
}

impl SampleWords {
    /// The numbers of a library, which has these names for them. A number without a name is that of our records; a name that is not
    /// known here is "other".
    pub fn of(
        instruction_name: impl Fn(i32) -> Option<String>,
        reason_name: impl Fn(i32) -> Option<String>,
    ) -> SampleWords {
        SampleWords {
            instructions: core::array::from_fn(|number| match instruction_name(number as i32) {
                None => number as u8,
                Some(name) => {
                    let known = InstructionType::from_vendor_name(&whole(INSTRUCTION, &name));
                    known.unwrap_or(InstructionType::OTHER).0
                }
            }),
            reasons: core::array::from_fn(|number| match reason_name(number as i32) {
                None => number as u8,
                Some(name) => {
                    let known = NotIssued::from_vendor_name(&whole(REASON, &name));
                    known.unwrap_or(NotIssued::OTHER_WAIT).0
                }
            }),
        }
    }

    fn issue(&self, issue: u8) -> Issue {
        let theirs = Issue(issue & 0x3f);
        let number = self.instructions[usize::from(theirs.instruction())];
        theirs.with_instruction(number)
    }

    fn snapshot(&self, snapshot: u32) -> Snapshot {
        let theirs = Snapshot(snapshot);
        let number = self.reasons[theirs.reason_not_issued() as usize];
        theirs.with_reason_not_issued(number.into())
    }
}

/// Facts about a sample beside the SDK's record.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct SampleOrigin {
    /// The agent.
    pub agent: AgentId,
    /// The kernel of the dispatch, or none.
    pub kernel: KernelId,
    /// The call that enqueued it, or none.
    pub correlation: CorrelationId,
    /// The external id of that call, or none.
    pub external: ExternalId,
    /// The id of the dispatch's work, or none.
    pub work: WorkId,
    /// The code object, or none, and the address in its file.
    pub code: (CodeObjectId, u64),
}

/// The fields that samples of both methods have.
struct CommonFields {
    hardware: u64,
    exec_mask: u64,
    time: u64,
    workgroup: [u32; 3],
    wave_in_group: u8,
}

fn common(fields: &CommonFields, origin: &SampleOrigin) -> HostTrapSample {
    let missing = [
        (!origin.work.is_some(), Absent::DISPATCH),
        (!origin.correlation.is_some(), Absent::CORRELATION),
        (!origin.work.is_some(), Absent::EXTERNAL),
        (!origin.kernel.is_some(), Absent::KERNEL),
        (fields.time == 0, Absent::TIME),
    ];
    let missing = missing.into_iter().filter(|(is_missing, _)| *is_missing);
    HostTrapSample {
        correlation: origin.correlation,
        external: origin.external,
        work: origin.work,
        time: DeviceTime(fields.time),
        offset: origin.code.1,
        exec_mask: fields.exec_mask,
        // The bits above are reserved.
        hardware: HardwareId(fields.hardware & ((1 << 48) - 1)),
        agent: origin.agent,
        kernel: origin.kernel,
        code_object: origin.code.0,
        workgroup: fields.workgroup,
        absent: missing.fold(Absent::NOTHING, |all, (_, field)| all.with(field)),
        wave_in_group: fields.wave_in_group,
        ..HostTrapSample::blank()
    }
}

/// The record of a host-trap sample.
pub(super) fn host_trap(
    sample: &PcSamplingHostTrapRecord,
    origin: &SampleOrigin,
) -> HostTrapSample {
    let workgroup = sample.workgroup_id;
    let fields = CommonFields {
        hardware: sample.hw_id.0,
        exec_mask: sample.exec_mask,
        time: sample.timestamp,
        workgroup: [workgroup.x, workgroup.y, workgroup.z],
        wave_in_group: sample.wave as u8,
    };
    common(&fields, origin)
}

/// The record of a stochastic sample.
pub(super) fn stochastic(
    sample: &PcSamplingStochasticRecord,
    origin: &SampleOrigin,
    words: &SampleWords,
) -> StochasticSample {
    let workgroup = sample.workgroup_id;
    let fields = CommonFields {
        hardware: sample.hw_id.0,
        exec_mask: sample.exec_mask,
        time: sample.timestamp,
        workgroup: [workgroup.x, workgroup.y, workgroup.z],
        wave_in_group: sample.wave_in_group,
    };
    let has_counters = sample.flags & HAS_MEMORY_COUNTER;
    StochasticSample {
        issue: words.issue(sample.issue),
        snapshot: words.snapshot(sample.snapshot.0),
        // Types of gfx1250 alone, in the upper half, have no place.
        memory_counters: MemoryCounters(match has_counters {
            0 => 0,
            _ => sample.memory_counters.0 as u32,
        }),
        wave_count: sample.wave_count,
        has_memory_counters: has_counters,
        ..common(&fields, origin).into()
    }
}

/// The record of a sample that the hardware could not complete. The SDK tells nothing of it.
pub(super) fn invalid(agent: AgentId, method: SamplingMethod) -> InvalidSample {
    let mut sample = InvalidSample::blank();
    (sample.agent, sample.method) = (agent, method);
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_rocprofiler::{
        AsyncCorrelationId, BufferCategory, Dim3, HwId, MemoryCounters as SdkCounters,
        PcSamplingInstructionNotIssuedReason, PcSamplingInstructionType, Snapshot as SdkSnapshot,
        UserData,
    };

    fn numbers_of_1_3() -> SampleWords {
        let text = |prefix: &str, name: Option<&core::ffi::CStr>| {
            name.map(|name| format!("{prefix}{}", name.to_str().unwrap()))
        };
        SampleWords::of(
            |number| {
                let name = PcSamplingInstructionType(number).name();
                text(INSTRUCTION, name)
            },
            |number| {
                let name = PcSamplingInstructionNotIssuedReason(number).name();
                text(REASON, name)
            },
        )
    }

    fn origin() -> SampleOrigin {
        SampleOrigin {
            agent: AgentId(2),
            kernel: KernelId(3),
            correlation: CorrelationId(77),
            external: ExternalId(4),
            work: WorkId(6),
            code: (CodeObjectId(5), 0x1a40),
        }
    }

    fn call(answer: u64) -> AsyncCorrelationId {
        AsyncCorrelationId {
            internal: 99,
            external: UserData::from(answer),
        }
    }

    fn sampled() -> PcSamplingStochasticRecord {
        PcSamplingStochasticRecord {
            size: size_of::<PcSamplingStochasticRecord>() as u64,
            flags: HAS_MEMORY_COUNTER,
            wave_in_group: 7,
            issue: 1 | (PcSamplingInstructionType::FLAT.0 as u8) << 1,
            hw_id: HwId::of(&[("chiplet", 5), ("wave_id", 9), ("cu_or_wgp_id", 11)]),
            pc: Pc {
                code_object_id: 1,
                code_object_offset: 0x1a40,
            },
            exec_mask: 0xff,
            workgroup_id: Dim3 { x: 1, y: 2, z: 3 },
            wave_count: 12,
            timestamp: 1_000,
            dispatch_id: 6,
            correlation_id: call(77),
            snapshot: SdkSnapshot::of(&[("arb_state_issue", 1 << 6), ("dual_issue_valu", 1)]),
            memory_counters: SdkCounters::of(&[("load_cnt", 3), ("km_cnt", 9), ("async_cnt", 1)]),
        }
    }

    #[test]
    fn a_stochastic_sample_keeps_all_that_the_hardware_tells() {
        let sample = sampled();
        let record = stochastic(&sample, &origin(), &numbers_of_1_3());
        assert_eq!(record.issued(), Some(InstructionType::FLAT));
        assert_eq!(record.snapshot.issue_flat(), 1);
        assert_eq!(record.snapshot.dual_issue_valu(), 1);
        let counters = record.memory_counters().unwrap();
        assert_eq!((counters.load(), counters.scalar()), (3, 9));
        assert_eq!((record.wave_count, record.wave_in_group), (12, 7));
        let hardware = record.hardware;
        assert_eq!(
            (hardware.chiplet(), hardware.wave(), hardware.compute_unit()),
            (5, 9, 11)
        );
        assert_eq!(record.workgroup, [1, 2, 3]);
        assert_eq!((record.exec_mask, record.offset), (0xff, 0x1a40));
        assert_eq!(
            (record.work, record.correlation, record.external),
            (WorkId(6), CorrelationId(77), ExternalId(4))
        );
        assert_eq!(record.absent, Absent::NOTHING);
    }

    #[test]
    fn a_wave_that_did_not_issue_has_its_reason() {
        let mut sample = sampled();
        (sample.issue, sample.flags) = (15 << 1, 0);
        let waits = PcSamplingInstructionNotIssuedReason::WAITCNT.0 as u32;
        sample.snapshot = SdkSnapshot::of(&[("reason_not_issued", waits)]);
        let record = stochastic(&sample, &origin(), &numbers_of_1_3());
        assert_eq!(record.not_issued(), Some(NotIssued::WAITCNT));
        assert_eq!(record.memory_counters(), None);
        assert_eq!(record.memory_counters, MemoryCounters(0));
    }

    #[test]
    fn numbers_of_another_version_are_found_by_name() {
        // Two types exchanged, one that is new, and a reason at another place.
        let words = SampleWords::of(
            |number| {
                let name = match number {
                    1 => "MATRIX",
                    2 => "VALU",
                    3 => "INVENTED",
                    _ => return None,
                };
                Some(format!("{INSTRUCTION}{name}"))
            },
            // Without the begin.
            |number| (number == 1).then(|| "SLEEP_WAIT".to_owned()),
        );
        let types = [1, 2, 3, 7].map(|number| words.issue(1 | number << 1).instruction());
        let expected = [
            InstructionType::MATRIX,
            InstructionType::VALU,
            InstructionType::OTHER,
            InstructionType::FLAT,
        ];
        assert_eq!(types, expected.map(|one| one.0));
        assert_eq!(
            words.snapshot(1 | 1 << 16).reason_not_issued(),
            u32::from(NotIssued::SLEEP_WAIT.0)
        );
        assert_eq!(words.snapshot(1 | 1 << 16).stall_valu(), 1);
    }

    #[test]
    fn a_host_trap_sample_without_a_call_says_what_it_lacks() {
        let sample = PcSamplingHostTrapRecord {
            size: size_of::<PcSamplingHostTrapRecord>() as u64,
            hw_id: HwId::of(&[("simd_id", 3)]),
            pc: Pc::default(),
            exec_mask: 1,
            timestamp: 5,
            dispatch_id: 0,
            correlation_id: call(0),
            workgroup_id: Dim3::default(),
            wave: 0x1_05,
        };
        let origin = SampleOrigin {
            agent: AgentId(2),
            ..SampleOrigin::default()
        };
        let record = host_trap(&sample, &origin);
        let expected = Absent::DISPATCH
            .with(Absent::CORRELATION)
            .with(Absent::EXTERNAL)
            .with(Absent::KERNEL);
        assert_eq!(record.absent, expected);
        assert_eq!((record.wave_in_group, record.hardware.simd()), (5, 3));
        assert_eq!(record.agent, AgentId(2));
    }

    /// A record of a buffer with this payload.
    fn header<T>(kind: u32, payload: &mut T) -> RecordHeader {
        RecordHeader {
            category: BufferCategory::PC_SAMPLING.0 as u32,
            kind,
            payload: (&raw mut *payload).cast(),
        }
    }

    #[test]
    fn records_of_all_versions_are_read() {
        let mut sample = sampled();
        // SAFETY: a record of its kind.
        let read =
            |header: &RecordHeader, is_before_1_0| unsafe { read_sample(header, is_before_1_0) };
        let now = read(&header(3, &mut sample), false).unwrap();
        assert!(matches!(now, SdkSample::Stochastic(one) if one.memory_counters.async_cnt() == 1));
        assert_eq!((now.dispatch(), now.answer()), (6, 77));

        // Before 1.3 the counters follow the snapshot at once.
        let mut bytes = [0_u64; size_of::<PcSamplingStochasticRecord>() / 8];
        let older = bytes.as_mut_ptr().cast::<u8>();
        let offset = PcSamplingStochasticRecord::OFFSET_BEFORE_1_3;
        // SAFETY: there is room for the record, of which the first bytes are copied, and for the four at the offset.
        unsafe {
            core::ptr::copy_nonoverlapping((&raw const sample).cast(), older, offset);
            older.add(offset).cast::<u32>().write(3 | 4 << 6);
        }
        bytes[0] = PcSamplingStochasticRecord::SIZE_BEFORE_1_3;
        let older = read(&header(3, &mut bytes), false).unwrap();
        let SdkSample::Stochastic(older) = older else {
            panic!("{older:?}");
        };
        let counters = older.memory_counters;
        assert_eq!((counters.load_cnt(), counters.store_cnt()), (3, 4));

        // SAFETY: any bytes are a value.
        let mut trap: PcSamplingHostTrapRecord = unsafe { core::mem::zeroed() };
        (trap.size, trap.dispatch_id) = (size_of::<PcSamplingHostTrapRecord>() as u64, 8);
        let dispatch = |kind, is_before_1_0| {
            let mut trap = trap;
            let header = header(kind, &mut trap);
            read(&header, is_before_1_0).map(|sample| sample.dispatch())
        };
        assert_eq!((dispatch(2, false), dispatch(1, true)), (Some(8), Some(8)));
        assert_eq!((dispatch(0, true), dispatch(9, false)), (None, None));
        let mut none = 8_u64;
        assert!(matches!(
            read(&header(1, &mut none), false),
            Some(SdkSample::Invalid)
        ));
    }
}
