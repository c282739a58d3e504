//! Calls, ranges, and the tables that are not known.

use rusqlite::types::ValueRef;

use super::super::sqlite::{Damage, Row, TableInfo, columns};
use super::super::tables::{ArgumentValue, HostKind, HostRow, Lane, NO_END, TextId};
use super::{Export, thread_of};
use crate::record::Domain;

columns!(Call {
    start = "start", end = "end", thread = "globalTid", correlation = "correlationId",
    name = "nameId", result = "returnValue",
});
columns!(OsCall {
    start = "start", end = "end", thread = "globalTid", name = "nameId", result = "returnValue",
});
columns!(Nvtx {
    start = "start", end = "end", kind = "eventType", thread = "globalTid", end_thread = "endGlobalTid",
    text = "text", text_id = "textId", domain = "domainId", category = "category", color = "color",
    range = "rangeId", unsigned = "uint64Value", signed = "int64Value", double = "doubleValue",
    small_unsigned = "uint32Value", small_signed = "int32Value", float = "floatValue",
    json = "jsonText", json_id = "jsonTextId",
});

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
        self.each(table, Call::ALL, |export, row| {
            let start = export.time(row, Call::start as usize)?;
            let end = export.time(row, Call::end as usize)?;
            let (process, thread) = thread_of(row.int(Call::thread as usize)?.unwrap_or(0));
            let process = export.process(process);
            let name = export.string(row.int(Call::name as usize)?);
            let name = function_name(export.tables.texts.get(name)).to_owned();
            let domain = match name.starts_with("cu") && !name.starts_with("cuda") {
                true => Domain::CUDA_DRIVER,
                false => Domain::CUDA_RUNTIME,
            };
            let result = row.int(Call::result as usize)?.unwrap_or(0);
            let error = i32::try_from(result).ok().filter(|result| *result != 0);
            let correlation = row.size(Call::correlation as usize)?;
            let name = export.tables.text(&name);
            let function = export.tables.function(name, domain);
            export.tables.add_host_in(
                Lane::Thread(process, thread),
                HostRow {
                    kind: HostKind::Call(function, error),
                    start,
                    end,
                    correlation,
                    ..HostRow::default()
                },
            );
            Ok(())
        });
    }

    /// Calls of the operating system's libraries.
    pub(super) fn os_calls(&mut self) {
        self.each("OSRT_API", OsCall::ALL, |export, row| {
            let start = export.time(row, OsCall::start as usize)?;
            let end = export.time(row, OsCall::end as usize)?;
            let (process, thread) = thread_of(row.int(OsCall::thread as usize)?.unwrap_or(0));
            let process = export.process(process);
            let name = export.string(row.int(OsCall::name as usize)?);
            let result = row
                .int(OsCall::result as usize)?
                .filter(|result| *result != 0);
            let tables = &mut export.tables;
            let result = result.map(|result| (tables.text("result"), ArgumentValue::Int(result)));
            let arguments = tables.arguments(result);
            let category = tables.text("osrt");
            tables.add_host_in(
                Lane::Thread(process, thread),
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
        self.each("NVTX_EVENTS", Nvtx::ALL, |export, row| {
            let process = thread_of(row.int(Nvtx::thread as usize)?.unwrap_or(0)).0;
            let domain = row.int(Nvtx::domain as usize)?.unwrap_or(0);
            match row.int(Nvtx::kind as usize)? {
                Some(event::DOMAIN) => {
                    domains.insert((process, domain), export.nvtx_text(row)?);
                }
                Some(event::CATEGORY) => {
                    let category = row.int(Nvtx::category as usize)?.unwrap_or(0);
                    categories.insert((process, domain, category), export.nvtx_text(row)?);
                }
                _ => {}
            }
            Ok(())
        });
        self.each("NVTX_EVENTS", Nvtx::ALL, |export, row| {
            let kind = row.int(Nvtx::kind as usize)?.unwrap_or(event::PUSH_POP[0]);
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
            let start = export.time(row, Nvtx::start as usize)?;
            let end = match row.int(Nvtx::end as usize)? {
                _ if !is_range => start,
                None => NO_END,
                Some(_) => export.time(row, Nvtx::end as usize)?,
            };
            let (global, thread) = thread_of(row.int(Nvtx::thread as usize)?.unwrap_or(0));
            let process = export.process(global);
            let name = export.nvtx_text(row)?;
            let domain = row.int(Nvtx::domain as usize)?.unwrap_or(0);
            let domain_name = domains.get(&(global, domain)).copied().unwrap_or_default();
            let mut arguments = Vec::new();
            let mut add = |export: &mut Export<'_>, name: &str, value| {
                arguments.push((export.tables.text(name), value));
            };
            match (domain, export.tables.texts.get(domain_name)) {
                (0, "") => {}
                (domain, "") => add(export, "domain", ArgumentValue::Int(domain)),
                _ => add(export, "domain", ArgumentValue::Text(domain_name)),
            }
            if let Some(category) = row.int(Nvtx::category as usize)?.filter(|one| *one != 0) {
                let value = match categories.get(&(global, domain, category)) {
                    Some(name) => ArgumentValue::Text(*name),
                    None => ArgumentValue::Int(category),
                };
                add(export, "category", value);
            }
            for (name, column) in [("color", Nvtx::color), ("range_id", Nvtx::range)] {
                if let Some(value) = row.int(column as usize)?.filter(|value| *value != 0) {
                    add(export, name, ArgumentValue::Pointer(value as u64));
                }
            }
            for column in [
                Nvtx::unsigned,
                Nvtx::signed,
                Nvtx::small_unsigned,
                Nvtx::small_signed,
            ] {
                if let Some(value) = row.int(column as usize)? {
                    add(export, "payload", ArgumentValue::Int(value));
                }
            }
            for column in [Nvtx::double, Nvtx::float] {
                if let Some(value) = row.number(column as usize)? {
                    add(export, "payload", ArgumentValue::Double(value));
                }
            }
            let json = match row.text(Nvtx::json as usize)? {
                Some(text) => export.tables.text(text),
                None => export.string(row.int(Nvtx::json_id as usize)?),
            };
            if json != TextId::default() {
                add(export, "payload", ArgumentValue::Text(json));
            }
            let end_thread = row.int(Nvtx::end_thread as usize)?.map(thread_of);
            if let Some((_, other)) = end_thread.filter(|(_, other)| !pushed && *other != thread) {
                add(export, "end_thread", ArgumentValue::Uint(other.into()));
            }
            let arguments = export.tables.arguments(arguments);
            let category = export.tables.text("marker");
            let lane = match pushed {
                true => Lane::ThreadRanges(process, thread),
                false => Lane::Ranges(process),
            };
            export.tables.add_host_in(
                lane,
                HostRow {
                    kind: match is_range {
                        true => HostKind::Slice(name, category),
                        false => HostKind::Instant(name, category),
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

    /// The text of an NVTX event, by itself or registered.
    fn nvtx_text(&mut self, row: &Row<'_>) -> Result<TextId, Damage> {
        match row.text(Nvtx::text as usize)? {
            Some(text) => Ok(self.tables.text(text)),
            None => Ok(self.string(row.int(Nvtx::text_id as usize)?)),
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
        let (database, file) = (self.database, self.file);
        let mut damages = Vec::new();
        let each = |row: &Row<'_>| self.span(table, &rest, row);
        database.rows(table, &columns, each, |damage| damages.push(damage));
        for damage in damages {
            self.report
                .finding(file, None, damage.found, damage.expected);
        }
    }

    fn span(&mut self, table: &TableInfo, rest: &[&str], row: &Row<'_>) -> Result<(), Damage> {
        let (start, end) = (self.time(row, 0)?, self.time(row, 1)?);
        let global = match row.int(2)? {
            Some(thread) => thread,
            None => row.int(3)?.unwrap_or(0),
        };
        let (process, thread) = thread_of(global);
        let process = self.process(process);
        let name = match row.any(4) {
            ValueRef::Integer(id) => self.string(Some(id)),
            _ => self.tables.text(row.text(4)?.unwrap_or("")),
        };
        let mut arguments = Vec::new();
        for (place, column) in (5..).zip(rest) {
            let value = match row.any(place) {
                ValueRef::Integer(0) | ValueRef::Null | ValueRef::Blob(_) => continue,
                // Columns that name a text are called so.
                ValueRef::Integer(id)
                    if column.ends_with("nameId") || column.ends_with("NameId") =>
                {
                    ArgumentValue::Text(self.string(Some(id)))
                }
                ValueRef::Integer(value) => ArgumentValue::Int(value),
                ValueRef::Real(value) => ArgumentValue::Double(value),
                ValueRef::Text(_) => {
                    ArgumentValue::Text(self.tables.text(row.text(place)?.unwrap_or("")))
                }
            };
            arguments.push((self.tables.text(column), value));
        }
        let arguments = self.tables.arguments(arguments);
        let category = self.tables.text(&table.name);
        let lane = match thread {
            0 => Lane::Process(process, category),
            thread => Lane::OfThread(process, thread, category),
        };
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
