//! Calls, markers, and other events of the host that last.

use super::reader::{RecordingFile, RecordingReader};
use crate::import::row::{Damage, Row, rows};
use crate::import::tables::{
    ArgumentRange, HostKind, HostLane, HostRow, ProcessHandle, Tables, TextHandle,
};
use gputrail_record::Domain;

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
        external: u64 = "External_Id",
        result: Option<i64> = "retval_hipError_t_retval|retval_uint64_t_retval",
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

/// The API of calls that `gputrail convert` has written: `CUDA_RUNTIME_API`.
fn api(domain: &str) -> Option<Domain> {
    let name = domain.strip_suffix("_API")?;
    Domain::from_name(&name.to_ascii_lowercase().replace('_', " "))
}

/// The largest error of HIP. What a function returns may be something else.
const LAST_ERROR: i64 = 1999;

/// The track and the kind of an event of a domain.
pub(super) fn of_domain(
    tables: &mut Tables,
    (process, thread): (ProcessHandle, u32),
    domain: &str,
    (name, arguments): (TextHandle, ArgumentRange),
    (is_instant, result): (bool, Option<i64>),
) -> (HostLane, HostKind) {
    if domain.starts_with("MARKER") {
        let category = tables.text("marker");
        let kind = if is_instant {
            HostKind::Instant(name, category)
        } else {
            HostKind::Slice(name, category)
        };
        return match thread {
            // Ranges that were started and stopped.
            0 => (HostLane::Ranges(process), kind),
            thread => (HostLane::ThreadRanges(process, thread), kind),
        };
    }
    let api = match domain.get(..3) {
        Some("HIP") => Some(Domain::HIP),
        Some("HSA") => Some(Domain::HSA),
        _ => api(domain),
    };
    let kind = match api {
        Some(api) => {
            let parameters = tables.names_of(arguments);
            let error = result.filter(|result| (1..=LAST_ERROR).contains(result));
            let function = tables.function_with(name, api, parameters);
            HostKind::Call(function, error.map(|error| error as i32))
        }
        None => HostKind::Slice(name, tables.text(&domain.to_ascii_lowercase())),
    };
    (HostLane::Thread(process, thread), kind)
}

pub(super) fn add<'r>(
    reader: &mut RecordingReader<'_>,
    file: &RecordingFile<'_>,
    row: &'r (dyn Row + 'r),
) -> Result<(), Damage> {
    let call = Call::read(row)?;
    let process = reader.process(file, call.process);
    let arguments = reader.arguments(&[], row);
    let name = reader.tables.text(call.function);
    let (lane, kind) = of_domain(
        &mut reader.tables,
        (process, call.thread),
        call.domain,
        (name, arguments),
        (call.start == call.end, call.result),
    );
    reader.tables.add_host_in(
        lane,
        HostRow {
            kind,
            start: call.start,
            end: call.end,
            correlation: call.correlation,
            external: call.external,
            arguments,
            ..HostRow::default()
        },
    );
    Ok(())
}

pub(super) fn add_span<'r>(
    reader: &mut RecordingReader<'_>,
    file: &RecordingFile<'_>,
    row: &'r (dyn Row + 'r),
) -> Result<(), Damage> {
    let span = Span::read(row)?;
    let process = reader.process(file, span.process);
    let arguments = reader.arguments(&[], row);
    let tables = &mut reader.tables;
    let (name, category) = (tables.text(span.name), tables.text(file.table));
    let lane = HostLane::other(process, span.thread, category);
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
