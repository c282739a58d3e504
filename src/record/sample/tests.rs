//! Bits and names of samples, held against the document that they come from.

use super::*;

/// rocprofiler-sdk's bit fields in the order of their declaration, with their widths; reserved ones have no name.
const HARDWARE: [(&str, u32); 12] = [
    ("chiplet", 6),
    ("wave", 7),
    ("simd", 2),
    ("pipe", 4),
    ("compute_unit", 4),
    ("shader_array", 1),
    ("shader_engine", 5),
    ("workgroup_slot", 7),
    ("virtual_memory", 6),
    ("queue", 4),
    ("microengine", 2),
    ("", 16),
];
const SNAPSHOT: [(&str, u32); 27] = [
    ("reason_not_issued", 4),
    ("", 1),
    ("issue_valu", 1),
    ("issue_matrix", 1),
    ("issue_lds", 1),
    ("issue_lds_direct", 1),
    ("issue_scalar", 1),
    ("issue_vmem_tex", 1),
    ("issue_flat", 1),
    ("issue_exp", 1),
    ("issue_misc", 1),
    ("issue_brmsg", 1),
    ("", 1),
    ("stall_valu", 1),
    ("stall_matrix", 1),
    ("stall_lds", 1),
    ("stall_lds_direct", 1),
    ("stall_scalar", 1),
    ("stall_vmem_tex", 1),
    ("stall_flat", 1),
    ("stall_exp", 1),
    ("stall_misc", 1),
    ("stall_brmsg", 1),
    ("", 1),
    ("dual_issue_valu", 1),
    ("", 1),
    ("", 3),
];
const MEMORY_COUNTERS: [(&str, u32); 6] = [
    ("load", 6),
    ("store", 6),
    ("bvh", 3),
    ("sample", 6),
    ("lds", 6),
    ("scalar", 5),
];
const ISSUE: [(&str, u32); 3] = [("issued", 1), ("instruction", 5), ("", 2)];

/// Each field with its first bit and its width, as far as it has a name; and the width of all.
fn laid_out(fields: &[(&'static str, u32)]) -> (Vec<(&'static str, u32, u32)>, u32) {
    let mut at = 0;
    let mut named = Vec::new();
    for (name, width) in fields {
        if !name.is_empty() {
            named.push((*name, at, *width));
        }
        at += width;
    }
    (named, at)
}

#[test]
fn bit_fields_lie_where_the_vendor_has_them() {
    assert_eq!(laid_out(&HARDWARE), (HardwareId::FIELDS.to_vec(), 64));
    assert_eq!(laid_out(&SNAPSHOT), (Snapshot::FIELDS.to_vec(), 32));
    assert_eq!(
        laid_out(&MEMORY_COUNTERS),
        (MemoryCounters::FIELDS.to_vec(), 32)
    );
    assert_eq!(laid_out(&ISSUE), (Issue::FIELDS.to_vec(), 8));
}

#[test]
fn a_builder_sets_its_field_and_no_other() {
    let id = HardwareId(u64::MAX).with_compute_unit(5).with_wave(0);
    assert_eq!((id.compute_unit(), id.wave(), id.chiplet()), (5, 0, 63));
    assert_eq!(id.with_compute_unit(15).with_wave(127).0, u64::MAX);
    // Bits that do not fit are lost, and the other fields do not change.
    assert_eq!(HardwareId(0).with_simd(0b101), HardwareId(1 << 13));
    let shot = Snapshot(0).with_stall_flat(1).with_reason_not_issued(3);
    assert_eq!(shot.0, 1 << 22 | 3);
}

#[test]
fn the_number_of_a_cpu_survives_being_a_hardware_slot() {
    for cpu in [0, 1, 15, 16, 511, 512, 1023, 1024, u16::MAX] {
        assert_eq!(HardwareId::of_cpu(cpu).unit(), cpu);
    }
    assert_eq!(HardwareId::of_cpu(17).shader_engine(), 1);
}

#[test]
fn a_stochastic_sample_begins_as_a_host_trap_sample() {
    use core::mem::offset_of;
    macro_rules! same {
        ($($field:ident),*) => {
            $(assert_eq!(offset_of!(StochasticSample, $field), offset_of!(HostTrapSample, $field));)*
        };
    }
    same!(
        header,
        correlation,
        external,
        work,
        time,
        offset,
        exec_mask,
        hardware,
        agent,
        kernel,
        code_object,
        thread,
        workgroup,
        absent,
        wave_in_group
    );
}

#[test]
fn type_and_reason_hold_only_when_they_may() {
    let mut sample = StochasticSample::blank();
    sample.issue = Issue(0).with_instruction(InstructionType::LDS.0);
    sample.snapshot = Snapshot(0).with_reason_not_issued(NotIssued::BARRIER_WAIT.0.into());
    assert_eq!(sample.issued(), None);
    assert_eq!(sample.not_issued(), Some(NotIssued::BARRIER_WAIT));
    assert_eq!(StallReason::of(&sample), StallReason::SYNC);
    assert!(sample.is_latency());
    sample.snapshot = sample.snapshot.with_issue_brmsg(1);
    assert!(!sample.is_latency());
    sample.issue = sample.issue.with_issued(1);
    assert_eq!(sample.issued(), Some(InstructionType::LDS));
    assert_eq!(sample.not_issued(), None);
    assert_eq!(StallReason::of(&sample), StallReason::NONE);
    assert_eq!(sample.memory_counters(), None);
}

#[test]
fn the_rest_of_a_sample_refines_the_reasons_of_the_other_vocabulary() {
    let mut sample = StochasticSample::blank();
    sample.snapshot = Snapshot(0).with_reason_not_issued(NotIssued::WAITCNT.0.into());
    sample.memory_counters = MemoryCounters(0).with_scalar(2);
    assert_eq!(StallReason::of(&sample), StallReason::MEMORY_DEPENDENCY);
    sample.has_memory_counters = 1;
    assert_eq!(
        StallReason::of(&sample),
        StallReason::CONSTANT_MEMORY_DEPENDENCY
    );
    sample.memory_counters = sample.memory_counters.with_load(1);
    assert_eq!(StallReason::of(&sample), StallReason::MEMORY_DEPENDENCY);

    let stalled = u32::from(NotIssued::ARBITER_WIN_EX_STALL.0);
    sample.snapshot = Snapshot(0).with_reason_not_issued(stalled);
    assert_eq!(StallReason::of(&sample), StallReason::PIPE_BUSY);
    sample.snapshot = sample.snapshot.with_stall_vmem_tex(1);
    assert_eq!(StallReason::of(&sample), StallReason::TEXTURE);
    sample.snapshot = sample.snapshot.with_stall_flat(1);
    assert_eq!(StallReason::of(&sample), StallReason::MEMORY_THROTTLE);
}
