//! Samples of the program counter.

use super::reader::{RecordingFile, RecordingReader};
use crate::import::row::{Damage, Row, rows, whole_number};
use crate::import::tables::{PlaceRow, SampleRow};
use gputrail_code::aggregate::WaveOutcome;
use gputrail_record::{Absent, InstructionType, Issue, NotIssued, Snapshot, StochasticSample};

rows! {
    /// A sample. Those of the hardware have `issued` and the fields after it. CSV has neither the place in the code object nor
    /// that on the device.
    Sample<'r> {
        time: u64 = "Sample_Timestamp|timestamp",
        exec_mask: u64 = "Exec_Mask",
        dispatch: u64 = "Dispatch_Id",
        instruction: &'r str = "Instruction",
        comment: &'r str = "Instruction_Comment",
        correlation: u64 = "Correlation_Id",
        external: Option<u64> = "External_Id",
        process: Option<u32> = "Process_Id",
        code_object: u32 = "pc_code_object_id",
        offset: u64 = "pc_code_object_offset",
        hardware: Option<u64> = "Hardware_Id",
        workgroup_x: Option<u32> = "wrkgrp_id_x",
        workgroup_y: u32 = "wrkgrp_id_y",
        workgroup_z: u32 = "wrkgrp_id_z",
        wave_in_group: Option<u8> = "wave_in_grp",
        issued: Option<u32> = "Wave_Issued_Instruction|wave_issued",
        kind: &'r str = "Instruction_Type|inst_type",
        reason: &'r str = "Stall_Reason|snapshot_stall_reason",
        wave_count: u32 = "Wave_Count|wave_cnt",
        arbiter: Option<u32> = "Arbiter",
    }
}

pub(super) const COLUMNS: &[&str] = Sample::COLUMNS;

/// The beginning of the comment where rocprofv3 does not know the code object. The address follows.
const NO_CODE_OBJECT: &str = "Unrecognized code object id";

/// File and line of a comment such as `/src/main.cpp:44`.
fn file_and_line(comment: &str) -> Option<(&str, u32)> {
    let (file, line) = comment.rsplit_once(':')?;
    let line = line.parse().ok().filter(|line| *line > 0)?;
    (!file.is_empty()).then_some((file, line))
}

pub(super) fn add<'r>(
    reader: &mut RecordingReader<'_>,
    file: &RecordingFile<'_>,
    row: &'r (dyn Row + 'r),
) -> Result<(), Damage> {
    let sample = Sample::read(row)?;
    let mut stochastic = StochasticSample::blank();
    if let Some(issued) = sample.issued {
        let instruction = InstructionType::from_vendor_name(sample.kind);
        let reason = NotIssued::from_vendor_name(sample.reason);
        for (known, name) in [
            (instruction.is_some(), sample.kind),
            (reason.is_some(), sample.reason),
        ] {
            if !known {
                let remark = format!("samples with the unknown name {name:?}");
                reader.report.remark(file.path, remark, row.position().0);
            }
        }
        stochastic.issue = Issue(0)
            .with_issued(u8::from(issued != 0))
            .with_instruction(instruction.unwrap_or(InstructionType::NONE).0);
        let reason = reason.unwrap_or(NotIssued::NONE).0.into();
        stochastic.snapshot = Snapshot(sample.arbiter.unwrap_or(0)).with_reason_not_issued(reason);
    }
    let process = reader.process(file, sample.process);
    let tables = &mut reader.tables;
    let address = sample.comment.strip_prefix(NO_CODE_OBJECT);
    let address = address.and_then(|rest| whole_number(rest.rsplit(':').next()?.trim()));
    let (source, line) = match address {
        Some(_) => ("", 0),
        None => file_and_line(sample.comment).unwrap_or_default(),
    };
    let place = PlaceRow {
        code_object: sample.code_object,
        offset: address.map_or(sample.offset, |address| address as u64),
        instruction: tables.text(sample.instruction),
        file: tables.text(source),
        line,
    };
    let place = tables.place(place);
    let absent = [
        (sample.workgroup_x.is_none(), Absent::WORKGROUP),
        (sample.wave_in_group.is_none(), Absent::WAVE_IN_GROUP),
        (sample.hardware.is_none(), Absent::HARDWARE),
        (sample.external.is_none(), Absent::EXTERNAL),
        (sample.arbiter.is_none(), Absent::ARBITER),
    ];
    let absent = absent.into_iter().filter(|(is_absent, _)| *is_absent);
    let absent = absent.fold(Absent::NOTHING, |all, (_, field)| all.with(field));
    tables.add_sample(SampleRow {
        process,
        time: sample.time,
        dispatch: sample.dispatch,
        correlation: sample.correlation,
        external: sample.external.unwrap_or(0),
        exec_mask: sample.exec_mask,
        hardware: sample.hardware.unwrap_or(0),
        place,
        outcome: match sample.issued {
            Some(_) => WaveOutcome::of(&stochastic),
            None => WaveOutcome::HOST_TRAP,
        },
        latency: sample.issued.is_some() && stochastic.is_latency(),
        workgroup: [
            sample.workgroup_x.unwrap_or(0),
            sample.workgroup_y,
            sample.workgroup_z,
        ],
        wave_in_group: sample.wave_in_group.unwrap_or(0),
        wave_count: sample.wave_count,
        absent: absent.0,
    });
    Ok(())
}
