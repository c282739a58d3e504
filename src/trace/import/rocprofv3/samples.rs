//! Samples of the program counter.

use super::reader::{File, Reader};
use crate::code::aggregate::Outcome;
use crate::record::{Absent, InstructionType, Issue, NotIssued, Snapshot, StochasticSample};
use crate::trace::import::row::{Damage, Row, rows, whole_number};
use crate::trace::import::tables::{PlaceRow, SampleRow};

rows! {
    /// A sample; only those of the hardware have `issued` and what follows.
    Sample<'r> {
        time: u64 = "Sample_Timestamp",
        exec_mask: u64 = "Exec_Mask",
        dispatch: u64 = "Dispatch_Id",
        instruction: &'r str = "Instruction",
        comment: &'r str = "Instruction_Comment",
        correlation: u64 = "Correlation_Id",
        process: Option<u32> = "Process_Id",
        issued: Option<u32> = "Wave_Issued_Instruction",
        kind: &'r str = "Instruction_Type",
        reason: &'r str = "Stall_Reason",
        wave_count: u32 = "Wave_Count",
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
    reader: &mut Reader<'_>,
    file: &File<'_>,
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
        stochastic.snapshot = Snapshot(0).with_reason_not_issued(reason);
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
        code_object: 0,
        offset: address.map_or(0, |address| address as u64),
        instruction: tables.text(sample.instruction),
        file: tables.text(source),
        line,
    };
    let place = tables.place(place);
    let absent = Absent::WORKGROUP
        .with(Absent::WAVE_IN_GROUP)
        .with(Absent::HARDWARE)
        .with(Absent::EXTERNAL)
        .with(Absent::ARBITER);
    tables.add_sample(SampleRow {
        process,
        time: sample.time,
        dispatch: sample.dispatch,
        correlation: sample.correlation,
        external: 0,
        exec_mask: sample.exec_mask,
        hardware: 0,
        place,
        outcome: match sample.issued {
            Some(_) => Outcome::of(&stochastic),
            None => Outcome::HOST_TRAP,
        },
        latency: sample.issued.is_some() && stochastic.is_latency(),
        workgroup: [0; 3],
        wave_in_group: 0,
        wave_count: sample.wave_count,
        absent: absent.0,
    });
    Ok(())
}
