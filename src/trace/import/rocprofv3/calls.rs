//! Calls, markers, and other events of the host that last.

use super::reader::{File, Reader};
use crate::record::Domain;
use crate::trace::import::row::{Damage, Row, rows};
use crate::trace::import::tables::{HostKind, HostRow, Lane, ProcessHandle, Tables, TextId};

rows! {
    /// A call, a marker or a range.
    Call<'r> {
        start: u64 = "Start_Timestamp",
        end: u64 = "End_Timestamp",
        domain: &'r str = "Domain",
        function: &'r str = "Function",
        process: Option<u32> = "Process_Id",
        thread: u32 = "Thread_Id",
        correlation: u64 = "Correlation_Id",
    }

    /// A row of another table.
    Span<'r> {
        start: u64 = "Start_Timestamp",
        end: u64 = "End_Timestamp",
        name: &'r str = "Function|Operation|Name|Kind",
        process: Option<u32> = "Process_Id",
        thread: u32 = "Thread_Id",
        correlation: u64 = "Correlation_Id",
    }
}

pub(super) const COLUMNS: &[&str] = Call::COLUMNS;
pub(super) const SPAN_COLUMNS: &[&str] = Span::COLUMNS;

/// The track and the kind of an event of a domain. `parameters` are the names of its arguments.
pub(super) fn of_domain(
    tables: &mut Tables,
    (process, thread): (ProcessHandle, u32),
    domain: &str,
    (name, parameters): (TextId, TextId),
    is_instant: bool,
) -> (Lane, HostKind) {
    if domain.starts_with("MARKER") {
        let category = tables.text("marker");
        let kind = match is_instant {
            true => HostKind::Instant(name, category),
            false => HostKind::Slice(name, category),
        };
        return match thread {
            // Ranges that were started and stopped.
            0 => (Lane::Ranges(process), kind),
            thread => (Lane::ThreadRanges(process, thread), kind),
        };
    }
    let kind = match domain.get(..3) {
        Some("HIP") => HostKind::Call(tables.function_with(name, Domain::HIP, parameters), None),
        Some("HSA") => HostKind::Call(tables.function_with(name, Domain::HSA, parameters), None),
        _ => HostKind::Slice(name, tables.text(&domain.to_ascii_lowercase())),
    };
    (Lane::Thread(process, thread), kind)
}

pub(super) fn add<'r>(
    reader: &mut Reader<'_>,
    file: &File<'_>,
    row: &'r (dyn Row + 'r),
) -> Result<(), Damage> {
    let call = Call::read(row)?;
    let process = reader.process(file, call.process);
    let name = (reader.tables.text(call.function), TextId::default());
    let (lane, kind) = of_domain(
        &mut reader.tables,
        (process, call.thread),
        call.domain,
        name,
        call.start == call.end,
    );
    let arguments = reader.arguments(&[], row);
    reader.tables.add_host_in(
        lane,
        HostRow {
            kind,
            start: call.start,
            end: call.end,
            correlation: call.correlation,
            arguments,
            ..HostRow::default()
        },
    );
    Ok(())
}

pub(super) fn add_span<'r>(
    reader: &mut Reader<'_>,
    file: &File<'_>,
    row: &'r (dyn Row + 'r),
) -> Result<(), Damage> {
    let span = Span::read(row)?;
    let process = reader.process(file, span.process);
    let arguments = reader.arguments(&[], row);
    let tables = &mut reader.tables;
    let (name, category) = (tables.text(span.name), tables.text(file.table));
    let lane = match span.thread {
        0 => Lane::Process(process, category),
        thread => Lane::OfThread(process, thread, category),
    };
    tables.add_host_in(
        lane,
        HostRow {
            kind: HostKind::Slice(name, category),
            start: span.start,
            end: span.end,
            correlation: span.correlation,
            arguments,
            ..HostRow::default()
        },
    );
    Ok(())
}
