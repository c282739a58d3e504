//! Calls, markers, and what tables say about them.

use super::work::counts_items;
use super::{CALL, Rpd};
use crate::import::row::{ParsedField, RowField, rows};
use crate::import::tables::{
    ArgumentValue, HostKind, HostLane, HostRow, NO_END, TextHandle, api_of_function,
};
use gputrail_record::Domain;

rows! {
    /// A call, or a marker of the program.
    Call {
        id: i64 = "id",
        process: Option<u32> = "pid",
        thread: u32 = "tid",
        start: Option<u64> = "start",
        end: u64 = "end",
        name: Option<i64> = "apiName_id",
        arguments: Option<i64> = "args_id",
        domain: Option<i64> = "domain_id",
        category: Option<i64> = "category_id",
        result: Option<i64> = "return",
    }

    /// A function on the stack of a call.
    Frame {
        call: i64 = "api_ptr_id",
        depth: i64 = "depth",
        name: Option<i64> = "name_id",
    }
}

/// The name of the function in rows of markers.
const MARKER: &str = "UserMarker";
/// Tables about calls that have a meaning of their own.
const OWN: [&str; 3] = ["rocpd_kernelapi", "rocpd_copyapi", "rocpd_stackframe"];

/// The API of a function, by its name or by its domain in the file; none if it is of no device API.
fn api_of(name: &str, domain: &str) -> Option<Domain> {
    let by_domain = || match domain {
        "hip" => Some(Domain::HIP),
        "hsa" => Some(Domain::HSA),
        "cuda" => Some(Domain::CUDA_RUNTIME),
        _ => None,
    };
    api_of_function(name).or_else(by_domain)
}

impl Rpd<'_> {
    /// The functions on the stacks of calls, as one argument of each call.
    pub(super) fn stacks(&mut self) {
        let mut stacks: Vec<(i64, i64, TextHandle)> = Vec::new();
        self.each("rocpd_stackframe", Frame::COLUMNS, |rpd, row| {
            let frame = Frame::read(row)?;
            stacks.push((frame.call, frame.depth, rpd.string(frame.name)));
            Ok(())
        });
        stacks.sort_unstable();
        for frames in stacks.chunk_by(|one, next| one.0 == next.0) {
            let names = frames.iter().map(|frame| self.tables.texts.get(frame.2));
            let names = names.collect::<Vec<_>>().join(" < ");
            let argument = (
                self.tables.text("stack"),
                ArgumentValue::Text(self.tables.text(&names)),
            );
            self.about.entry(frames[0].0).or_default().push(argument);
        }
    }

    /// Tables that tools have added about calls: their columns are arguments of the calls.
    pub(super) fn about(&mut self) {
        let database = self.database;
        for table in database.tables() {
            if !table.has(CALL) || OWN.contains(&&table.name[..]) {
                continue;
            }
            let rest = table.columns.iter().map(|column| &column[..]);
            let rest: Vec<&str> = rest.filter(|column| *column != CALL).collect();
            let columns: Vec<&str> = [CALL].into_iter().chain(rest.iter().copied()).collect();
            self.rows(table, &columns, |rpd, row| {
                let call = i64::parse(row, 0)?;
                for (place, column) in (1..).zip(&rest) {
                    let value = match row.field(place) {
                        // Columns that name a text are called so.
                        RowField::Int(id) if column.ends_with("Name_id") => {
                            Some(ArgumentValue::Text(rpd.string(Some(id))))
                        }
                        field => rpd.value(field),
                    };
                    if let Some(value) = value {
                        let argument = (rpd.tables.text(column), value);
                        rpd.about.entry(call).or_default().push(argument);
                    }
                }
                Ok(())
            });
        }
    }

    /// A table of calls and markers.
    pub(super) fn calls(&mut self, table: &'static str) {
        // Ids of other tables of calls are numbers of their own.
        let is_main = table == "rocpd_api";
        self.each(table, Call::COLUMNS, |rpd, row| {
            let call = Call::read(row)?;
            // Rows of a file that was cut have no values.
            let process = call.process.ok_or_else(|| row.damage(1, "a process"))?;
            let start = call.start.ok_or_else(|| row.damage(3, "a time"))?;
            let process = rpd.process(process);
            let thread = super::split(call.thread, rpd.machine_of.process).1;
            let text = |id: Option<i64>| {
                let texts = id.and_then(|id| rpd.unique_texts.get(&id));
                texts.copied().unwrap_or_else(|| rpd.string(id))
            };
            let (name, own) = (rpd.string(call.name), text(call.arguments));
            let (domain, category) = (rpd.string(call.domain), rpd.string(call.category));
            let mut correlation = 0;
            let mut arguments = Vec::new();
            if is_main {
                if let Some(caller) = rpd.calls.get_mut(&call.id) {
                    *caller = Some((process, thread));
                    correlation = u64::try_from(call.id).unwrap_or(0);
                    if counts_items(rpd.tables.texts.get(name)) {
                        rpd.item_calls.insert(call.id);
                    }
                }
                arguments = rpd.about.remove(&call.id).unwrap_or_default();
            }
            let is_marker = rpd.tables.texts.get(name) == MARKER;
            let none = TextHandle::default();
            if own != none && !is_marker {
                arguments.insert(0, (rpd.tables.text("args"), ArgumentValue::Text(own)));
            }
            if category != none {
                arguments.push((rpd.tables.text("category"), ArgumentValue::Text(category)));
            }
            let arguments = rpd.tables.arguments(arguments);
            let texts = &rpd.tables.texts;
            let api = api_of(texts.get(name), texts.get(domain)).filter(|_| is_main);
            let api = api.or((!is_main).then_some(Domain::HSA));
            let (lane, kind) = match api {
                _ if is_marker => {
                    let name = if own == none { name } else { own };
                    let category = rpd.tables.text("marker");
                    let kind = if start == call.end {
                        HostKind::Instant(name, category)
                    } else {
                        HostKind::Slice(name, category)
                    };
                    (HostLane::ThreadRanges(process, thread), kind)
                }
                Some(api) => {
                    let parameters = rpd.tables.names_of(arguments);
                    let function = rpd.tables.function_with(name, api, parameters);
                    let result = i32::try_from(call.result.unwrap_or(0)).ok();
                    let error = result.filter(|result| *result != 0);
                    let kind = HostKind::Call(function, error);
                    (HostLane::Thread(process, thread), kind)
                }
                None => {
                    let category = if domain == none {
                        rpd.tables.text("other")
                    } else {
                        domain
                    };
                    let kind = HostKind::Slice(name, category);
                    (HostLane::Thread(process, thread), kind)
                }
            };
            let row = HostRow {
                kind,
                start,
                end: if call.end == 0 { NO_END } else { call.end },
                correlation,
                arguments,
                ..HostRow::default()
            };
            rpd.tables.add_host_in(lane, row);
            Ok(())
        });
    }
}
