//! Copies, allocations, and the memory for private variables of kernels.

use super::reader::{RecordingFile, RecordingReader};
use crate::import::row::{Damage, Row, rows};
use crate::import::tables::{
    AllocationRow, ArgumentValue, HostKind, HostLane, HostRow, StageHandle, Tables, WorkRow,
};
use gputrail_record::TransferKind;
use gputrail_trace::model::WorkKind;

rows! {
    /// A copy.
    Copy<'r> {
        start: u64 = "Start_Timestamp",
        end: u64 = "End_Timestamp",
        kind: &'r str = "Kind",
        direction: &'r str = "Direction",
        stream: Option<u32> = "Stream_Id",
        source: &'r str = "Source_Agent_Id|src_agent_id",
        destination: &'r str = "Destination_Agent_Id|dst_agent_id",
        process: Option<u32> = "Process_Id",
        thread: u32 = "Thread_Id",
        correlation: u64 = "Correlation_Id",
        bytes: u64 = "Copy_Bytes|bytes",
    }

    /// Memory that is allocated or freed. The device, the size and the address are arguments, too.
    Allocation<'r> {
        start: u64 = "Start_Timestamp",
        end: u64 = "End_Timestamp",
        operation: &'r str = "Operation",
        agent: &'r str = "Agent_Id",
        bytes: u64 = "Allocation_Size",
        address: u64 = "Address",
        process: Option<u32> = "Process_Id",
        correlation: u64 = "Correlation_Id",
    }

    /// Memory for private variables of kernels.
    Scratch<'r> {
        start: u64 = "Start_Timestamp",
        end: u64 = "End_Timestamp",
        operation: &'r str = "Operation",
        agent: &'r str = "Agent_Id",
        process: Option<u32> = "Process_Id",
        correlation: u64 = "Correlation_Id",
    }
}

pub(super) const COPY_COLUMNS: &[&str] = Copy::COLUMNS;
pub(super) const ALLOCATION_COLUMNS: &[&str] = Allocation::COLUMNS;
pub(super) const SCRATCH_COLUMNS: &[&str] = Scratch::COLUMNS;

/// The stage of copies in a direction, and whether its device is the source.
pub(super) fn copy_stage(tables: &mut Tables, direction: &str) -> (StageHandle, bool) {
    let kind = match direction.strip_prefix("MEMORY_COPY_").unwrap_or(direction) {
        "HOST_TO_DEVICE" => TransferKind::HOST_TO_DEVICE,
        "DEVICE_TO_HOST" => TransferKind::DEVICE_TO_HOST,
        "DEVICE_TO_DEVICE" => TransferKind::DEVICE_TO_DEVICE,
        "HOST_TO_HOST" => TransferKind::HOST_TO_HOST,
        _ => TransferKind::UNKNOWN,
    };
    let stage = match kind.name().filter(|_| kind != TransferKind::UNKNOWN) {
        Some(name) => tables.stage(WorkKind::Copy, name, ""),
        None => tables.stage(WorkKind::Copy, &direction.to_ascii_lowercase(), ""),
    };
    (stage, kind == TransferKind::DEVICE_TO_HOST)
}

pub(super) fn add_copy<'r>(
    reader: &mut RecordingReader<'_>,
    file: &RecordingFile<'_>,
    row: &'r (dyn Row + 'r),
) -> Result<(), Damage> {
    let copy = Copy::read(row)?;
    let process = reader.process(file, copy.process);
    let (stage, from_source) = match copy.kind {
        // As `gputrail convert` writes other work.
        "MEMORY_SET" => (
            reader.tables.stage(WorkKind::Set, copy.direction, ""),
            false,
        ),
        "SYNCHRONIZATION" => {
            let kind = WorkKind::Synchronization;
            (reader.tables.stage(kind, copy.direction, ""), false)
        }
        _ => copy_stage(&mut reader.tables, copy.direction),
    };
    let device = if from_source {
        copy.source
    } else {
        copy.destination
    };
    let agent = reader.agent(file, device);
    let queue = reader.queue(process, agent, copy.stream, "copies");
    let rest = reader.rest(row);
    let tables = &mut reader.tables;
    let ends = [("source", copy.source), ("destination", copy.destination)];
    let ends = ends.map(|(name, agent)| {
        let agent = ArgumentValue::Text(tables.text(agent));
        (tables.text(name), agent)
    });
    let arguments = tables.arguments(ends.into_iter().chain(rest));
    tables.add_work(WorkRow {
        process,
        queue,
        stage,
        thread: copy.thread,
        correlation: copy.correlation,
        start: copy.start,
        end: copy.end,
        bytes: copy.bytes,
        arguments,
        ..WorkRow::default()
    });
    Ok(())
}

pub(super) fn add_allocation<'r>(
    reader: &mut RecordingReader<'_>,
    file: &RecordingFile<'_>,
    row: &'r (dyn Row + 'r),
) -> Result<(), Damage> {
    let allocation = Allocation::read(row)?;
    let process = reader.process(file, allocation.process);
    let agent = reader.agent(file, allocation.agent);
    let mut arguments = reader.rest(row);
    let tables = &mut reader.tables;
    if !allocation.agent.is_empty() {
        let device = ArgumentValue::Text(tables.text(allocation.agent));
        arguments.push((tables.text("agent_id"), device));
    }
    let freed = allocation.operation.contains("FREE");
    let changes = freed || allocation.operation.contains("ALLOCATE");
    tables.add_allocation(AllocationRow {
        process,
        agent,
        name: allocation.operation,
        start: allocation.start,
        end: Some(allocation.end),
        correlation: allocation.correlation,
        address: allocation.address,
        bytes: allocation.bytes,
        freed: Some(freed).filter(|_| changes),
        arguments,
    });
    Ok(())
}

pub(super) fn add_scratch<'r>(
    reader: &mut RecordingReader<'_>,
    file: &RecordingFile<'_>,
    row: &'r (dyn Row + 'r),
) -> Result<(), Damage> {
    let scratch = Scratch::read(row)?;
    let process = reader.process(file, scratch.process);
    let arguments = reader.arguments(&[], row);
    let tables = &mut reader.tables;
    let lane = tables.text(&format!("{} scratch memory", scratch.agent));
    let (name, category) = (
        tables.text(scratch.operation),
        tables.text("scratch memory"),
    );
    tables.add_host_in(
        HostLane::Process(process, lane),
        HostRow {
            kind: HostKind::Slice(name, category),
            start: scratch.start,
            end: scratch.end,
            correlation: scratch.correlation,
            arguments,
            ..HostRow::default()
        },
    );
    Ok(())
}
