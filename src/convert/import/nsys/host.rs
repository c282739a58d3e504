//! Calls, ranges, and the tables that are not known.

use super::super::row::{Damage, ParsedField, Row, RowField, rows};
use super::super::table_source::TableInfo;
use super::super::tables::{ArgumentValue, HostKind, HostLane, HostRow, NO_END, TextHandle};
use super::{Export, thread_of};
use gputrail_record::Domain;

rows! {
    /// A call of the CUDA runtime or driver, or of a library of the operating system.
    Call {
        start: i64 = "start",
        end: i64 = "end",
        thread: Option<i64> = "globalTid",
        correlation: u64 = "correlationId",
        name: Option<i64> = "nameId",
        result: Option<i64> = "returnValue",
    }

    Nvtx<'r> {
        start: Option<i64> = "start",
        end: Option<i64> = "end",
        kind: Option<i64> = "eventType",
        thread: Option<i64> = "globalTid",
        end_thread: Option<i64> = "endGlobalTid",
        text: Option<&'r str> = "text",
        text_id: Option<i64> = "textId",
        domain: Option<i64> = "domainId",
        category: Option<i64> = "category",
        color: Option<i64> = "color",
        range: Option<i64> = "rangeId",
        unsigned: Option<i64> = "uint64Value",
        signed: Option<i64> = "int64Value",
        double: Option<f64> = "doubleValue",
        small_unsigned: Option<i64> = "uint32Value",
        small_signed: Option<i64> = "int32Value",
        float: Option<f64> = "floatValue",
        json: Option<&'r str> = "jsonText",
        json_id: Option<i64> = "jsonTextId",
    }
}

/// Types of NVTX events: numbers of [`ENUM_NSYS_EVENT_TYPE`], the same in all versions.
mod event {
    pub const CATEGORY: i64 = 33;
    pub const MARK: i64 = 34;
    pub const PUSH_POP: [i64; 2] = [59, 70];
    pub const START_END: [i64; 2] = [60, 71];
    pub const DOMAIN: i64 = 75;
}

/// A function's name without the version of its interface: `cudaLaunchKernel` of `cudaLaunchKernel_v7000`.
fn function_name(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((function, version))
            if version.len() >= 4 && version.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            function
        }
        _ => name,
    }
}

impl Export<'_> {
    /// Calls of the CUDA runtime and driver.
    pub(super) fn calls(&mut self, table: &str) {
        self.each(table, Call::COLUMNS, |export, row| {
            let call = Call::read(row)?;
            let (start, end) = (
                export.time(row, 0, call.start)?,
                export.time(row, 1, call.end)?,
            );
            let (process, thread) = thread_of(call.thread.unwrap_or(0));
            let process = export.process(process);
            let name = export.string(call.name);
            let name = function_name(export.tables.texts.get(name)).to_owned();
            let domain = if name.starts_with("cu") && !name.starts_with("cuda") {
                Domain::CUDA_DRIVER
            } else {
                Domain::CUDA_RUNTIME
            };
            let result = i32::try_from(call.result.unwrap_or(0)).ok();
            let error = result.filter(|result| *result != 0);
            let name = export.tables.text(&name);
            let function = export.tables.function(name, domain);
            export.tables.add_host_in(
                HostLane::Thread(process, thread),
                HostRow {
                    kind: HostKind::Call(function, error),
                    start,
                    end,
                    correlation: call.correlation,
                    ..HostRow::default()
                },
            );
            Ok(())
        });
    }

    /// Calls of the operating system's libraries.
    pub(super) fn os_calls(&mut self) {
        self.each("OSRT_API", Call::COLUMNS, |export, row| {
            let call = Call::read(row)?;
            let (start, end) = (
                export.time(row, 0, call.start)?,
                export.time(row, 1, call.end)?,
            );
            let (process, thread) = thread_of(call.thread.unwrap_or(0));
            let process = export.process(process);
            let name = export.string(call.name);
            let result = call.result.filter(|result| *result != 0);
            let tables = &mut export.tables;
            let result = result.map(|result| (tables.text("result"), ArgumentValue::Int(result)));
            let arguments = tables.arguments(result);
            let category = tables.text("osrt");
            tables.add_host_in(
                HostLane::Thread(process, thread),
                HostRow {
                    kind: HostKind::Slice(name, category),
                    start,
                    end,
                    arguments,
                    ..HostRow::default()
                },
            );
            Ok(())
        });
    }

    /// Ranges and marks of NVTX.
    pub(super) fn nvtx(&mut self) {
        // Names of domains and of categories come as events, in any order.
        let mut domains = std::collections::HashMap::new();
        let mut categories = std::collections::HashMap::new();
        self.each("NVTX_EVENTS", Nvtx::COLUMNS, |export, row| {
            let nvtx = Nvtx::read(row)?;
            let domain = (
                thread_of(nvtx.thread.unwrap_or(0)).0,
                nvtx.domain.unwrap_or(0),
            );
            match nvtx.kind {
                Some(event::DOMAIN) => {
                    domains.insert(domain, export.text(nvtx.text, nvtx.text_id));
                }
                Some(event::CATEGORY) => {
                    let category = (domain, nvtx.category.unwrap_or(0));
                    categories.insert(category, export.text(nvtx.text, nvtx.text_id));
                }
                _ => {}
            }
            Ok(())
        });
        self.each("NVTX_EVENTS", Nvtx::COLUMNS, |export, row| {
            let nvtx = Nvtx::read(row)?;
            let kind = nvtx.kind.unwrap_or(event::PUSH_POP[0]);
            let (is_range, pushed) = match kind {
                event::MARK => (false, true),
                kind if event::PUSH_POP.contains(&kind) => (true, true),
                kind if event::START_END.contains(&kind) => (true, false),
                event::DOMAIN | event::CATEGORY => return Ok(()),
                kind => {
                    let label = export.label("ENUM_NSYS_EVENT_TYPE", kind);
                    let reason = format!("NVTX events of type {label}, which name resources");
                    export.report.unrepresented(export.file, reason, None);
                    return Ok(());
                }
            };
            let start = nvtx.start.ok_or_else(|| row.damage(0, "a whole number"))?;
            let start = export.time(row, 0, start)?;
            let end = match nvtx.end {
                _ if !is_range => start,
                None => NO_END,
                Some(end) => export.time(row, 1, end)?,
            };
            let (global, thread) = thread_of(nvtx.thread.unwrap_or(0));
            let process = export.process(global);
            let name = export.text(nvtx.text, nvtx.text_id);
            let domain = nvtx.domain.unwrap_or(0);
            let domain_name = domains.get(&(global, domain)).copied().unwrap_or_default();
            let json = export.text(nvtx.json, nvtx.json_id);
            let mut arguments = Vec::new();
            let tables = &mut export.tables;
            let mut add = |name: &str, value| arguments.push((tables.text(name), value));
            match (domain, domain_name) {
                (0, _) if domain_name == TextHandle::default() => {}
                (domain, name) if name == TextHandle::default() => {
                    add("domain", ArgumentValue::Int(domain));
                }
                (_, name) => add("domain", ArgumentValue::Text(name)),
            }
            if let Some(category) = nvtx.category.filter(|one| *one != 0) {
                let named = categories.get(&((global, domain), category));
                let value = named.map_or(ArgumentValue::Int(category), |name| {
                    ArgumentValue::Text(*name)
                });
                add("category", value);
            }
            for (name, value) in [("color", nvtx.color), ("range_id", nvtx.range)] {
                if let Some(value) = value.filter(|value| *value != 0) {
                    add(name, ArgumentValue::Pointer(value as u64));
                }
            }
            let integers = [
                nvtx.unsigned,
                nvtx.signed,
                nvtx.small_unsigned,
                nvtx.small_signed,
            ];
            for value in integers.into_iter().flatten() {
                add("payload", ArgumentValue::Int(value));
            }
            for value in [nvtx.double, nvtx.float].into_iter().flatten() {
                add("payload", ArgumentValue::Double(value));
            }
            if json != TextHandle::default() {
                add("payload", ArgumentValue::Text(json));
            }
            let end_thread = nvtx.end_thread.map(|global| thread_of(global).1);
            if let Some(other) = end_thread.filter(|other| !pushed && *other != thread) {
                add("end_thread", ArgumentValue::Uint(other.into()));
            }
            let arguments = tables.arguments(arguments);
            let category = tables.text("marker");
            let lane = if pushed {
                HostLane::ThreadRanges(process, thread)
            } else {
                HostLane::Ranges(process)
            };
            tables.add_host_in(
                lane,
                HostRow {
                    kind: if is_range {
                        HostKind::Slice(name, category)
                    } else {
                        HostKind::Instant(name, category)
                    },
                    start,
                    end,
                    arguments,
                    ..HostRow::default()
                },
            );
            Ok(())
        });
    }

    /// A text that stands in its row, or is registered.
    fn text(&mut self, text: Option<&str>, id: Option<i64>) -> TextHandle {
        match text {
            Some(text) => self.tables.text(text),
            None => self.string(id),
        }
    }

    /// Tables that nothing above reads: slices, if they have a start, an end and a name; otherwise their rows are counted.
    pub(super) fn others(&mut self) {
        let database = self.database;
        for table in database.tables() {
            if self.done.contains(&table.name) || Export::is_description(table) {
                continue;
            }
            let names = ["nameId", "textId", "name", "text"];
            let name = names.into_iter().find(|name| table.has(name));
            match name {
                Some(name) if table.has("start") && table.has("end") => self.spans(table, name),
                _ => {
                    let rows = database.count(table);
                    let reason =
                        format!("rows of {}, which has no start, end and name", table.name);
                    self.report.unrepresented_many(self.file, reason, rows);
                }
            }
        }
    }

    /// The rows of a table as slices, with all their values.
    fn spans(&mut self, table: &TableInfo, name: &str) {
        let used = ["start", "end", "globalTid", "globalPid", name];
        let rest = table.columns.iter().map(|column| &column[..]);
        let rest: Vec<&str> = rest.filter(|column| !used.contains(column)).collect();
        let columns: Vec<&str> = used.into_iter().chain(rest.iter().copied()).collect();
        let database = self.database;
        let damages = database.each_row(table, &columns, &mut |row| self.span(table, &rest, row));
        damages.report(self.file, self.report);
    }

    fn span(&mut self, table: &TableInfo, rest: &[&str], row: &dyn Row) -> Result<(), Damage> {
        let time = |place| self.time(row, place, ParsedField::parse(row, place)?);
        let (start, end) = (time(0)?, time(1)?);
        let [thread, process] = [Option::<i64>::parse(row, 2)?, ParsedField::parse(row, 3)?];
        let (process, thread) = thread_of(thread.or(process).unwrap_or(0));
        let process = self.process(process);
        let name = match row.field(4) {
            RowField::Int(id) => self.string(Some(id)),
            _ => self.tables.text(ParsedField::parse(row, 4)?),
        };
        let mut arguments = Vec::new();
        for (place, column) in (5..).zip(rest) {
            // Columns that name a text are called so.
            let is_name = column.ends_with("nameId") || column.ends_with("NameId");
            let value = match row.field(place) {
                RowField::Int(0) | RowField::Null | RowField::Bytes(_) => continue,
                RowField::Int(id) if is_name => ArgumentValue::Text(self.string(Some(id))),
                RowField::Int(value) => ArgumentValue::Int(value),
                RowField::Real(value) => ArgumentValue::Double(value),
                RowField::Text(text) => ArgumentValue::Text(self.tables.text(text)),
            };
            arguments.push((self.tables.text(column), value));
        }
        let arguments = self.tables.arguments(arguments);
        let category = self.tables.text(&table.name);
        let lane = HostLane::other(process, thread, category);
        self.tables.add_host_in(
            lane,
            HostRow {
                kind: HostKind::Slice(name, category),
                start,
                end,
                arguments,
                ..HostRow::default()
            },
        );
        Ok(())
    }
}
