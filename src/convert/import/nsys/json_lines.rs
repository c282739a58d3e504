//! Exports to JSON lines (`nsys export --type json` and `jsonlines`) as the tables of the other exports.
//!
//! Each line is an event, an object with its type and a field called by its kind: `{"Type":48,"TraceProcessEvent":{...}}`. Names
//! of functions and kernels are places in the list of all texts, which stands in a line of its own behind the events, or
//! before them, or as one line for each text. A table is read by going through the file: the begin of a line tells whether
//! it is one of the table, and only lines of the table are parsed.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, Read};

use serde_json::value::RawValue;

use crate::import::InputFile;
use crate::import::chrome::event::text;
use crate::import::row::{Damage, Row, RowField};
use crate::import::table_source::{Damages, EachRow, TableInfo, TableSource};

/// Bytes of the longest line: that with all texts.
const MAX_LINE: u64 = 1 << 28;
/// Bytes of the begin of a line that are looked at for its kind.
const BEGIN: usize = 256;

/// Classes of calls, by the number in their events.
const RUNTIME: i64 = 0;
const DRIVER: i64 = 1;

/// Tables that hold no kind of events.
const TEXTS: &str = "StringIds";
const THREADS: &str = "ThreadNames";
const PROCESSES: &str = "PROCESSES";
const CALLS: [(&str, Option<i64>); 3] = [
    ("CUPTI_ACTIVITY_KIND_RUNTIME", Some(RUNTIME)),
    ("CUPTI_ACTIVITY_KIND_DRIVER", Some(DRIVER)),
    ("TraceProcessEvent", None),
];
/// The tables of the parts of an event of a device.
const DEVICE: [(&str, &str); 5] = [
    ("kernel", "CUPTI_ACTIVITY_KIND_KERNEL"),
    ("memcpy", "CUPTI_ACTIVITY_KIND_MEMCPY"),
    ("memset", "CUPTI_ACTIVITY_KIND_MEMSET"),
    ("sync", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
    ("cudaEventRecord", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"),
];
const NVTX: &str = "NVTX_EVENTS";
/// The table with the names of kinds of waits, and its rows.
const WAITS: &str = "ENUM_CUPTI_SYNC_TYPE";
const WAIT_KINDS: [&str; 4] = [
    "EVENT_SYNCHRONIZE",
    "STREAM_WAIT_EVENT",
    "STREAM_SYNCHRONIZE",
    "CONTEXT_SYNCHRONIZE",
];

/// Columns of the tables, with the names of the fields that hold them, where they differ.
const FIELDS: [(&str, &str); 20] = [
    ("start", "startNs|Timestamp"),
    ("end", "endNs|EndTimestamp"),
    ("nameId", "name|nameIdx"),
    ("returnValue", "returnValue32|returnValue64"),
    ("bytes", "sizebytes"),
    ("globalTid", "GlobalTid"),
    ("globalPid", "GlobalPid"),
    ("endGlobalTid", "EndGlobalTid"),
    ("eventType", "Type"),
    ("text", "Text"),
    ("textId", "TextId"),
    ("domainId", "DomainId"),
    ("category", "Category"),
    ("color", "Color"),
    ("rangeId", "RangeId"),
    ("uint64Value", "Uint64Value"),
    ("int64Value", "Int64Value"),
    ("doubleValue", "DoubleValue"),
    ("name", "Commname"),
    ("demangledName", "demangledName|mangledName"),
];

/// Columns whose values are texts, also where they look like numbers.
const TEXTUAL: [&str; 4] = ["text", "value", "name", "label"];

/// The kind of the event of a line: `{"Type":48,"TraceProcessEvent":{`.
fn event_kind(line: &[u8]) -> Option<&str> {
    let mut at = 0;
    let skip = |at: &mut usize, wanted: u8| {
        while line.get(*at).is_some_and(u8::is_ascii_whitespace) {
            *at += 1;
        }
        let is_there = line.get(*at) == Some(&wanted);
        *at += usize::from(is_there);
        is_there
    };
    if !skip(&mut at, b'{') {
        return None;
    }
    // A number may stand before the event.
    for _ in 0..4 {
        if !skip(&mut at, b'"') {
            return None;
        }
        let begin = at;
        let length = line[begin..]
            .iter()
            .take(BEGIN)
            .position(|byte| *byte == b'"')?;
        let name = std::str::from_utf8(&line[begin..begin + length]).ok()?;
        at = begin + length + 1;
        if !skip(&mut at, b':') {
            return None;
        }
        if skip(&mut at, b'{') {
            return name.ends_with("Event").then_some(name);
        }
        let value = line[at..].iter().take(BEGIN);
        at += value
            .take_while(|byte| !matches!(byte, b',' | b'{' | b'[' | b'"'))
            .count();
        if !skip(&mut at, b',') {
            return None;
        }
    }
    None
}

/// Whether a line is a list of texts or of threads.
fn is_list(line: &[u8]) -> bool {
    let begin: Vec<u8> = line
        .iter()
        .copied()
        .take(64)
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    begin.starts_with(b"{\"data\":[") || begin.starts_with(b"{\"files\":[")
}

/// Whether a line is one text or one thread.
fn is_single(line: &[u8]) -> bool {
    let begin: Vec<u8> = line
        .iter()
        .copied()
        .take(64)
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    begin.starts_with(b"{\"type\":\"String\"") || begin.starts_with(b"{\"type\":\"ThreadName\"")
}

/// Whether a file that begins so is an export in JSON lines: a line of texts, or an event of a kind that Nsight has.
pub(in crate::import) fn is_export(head: &[u8]) -> bool {
    const KINDS: [&str; 10] = [
        "TraceProcessEvent",
        "CudaEvent",
        "NvtxEvent",
        "SchedEvent",
        "CommEvent",
        "DiagnosticEvent",
        "OsRuntimeEvent",
        "FrameEvent",
        "GpuMetricsEvent",
        "ProcessEvent",
    ];
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut lines = head.split(|byte| *byte == b'\n');
    let Some(first) = lines.find(|line| !line.trim_ascii().is_empty()) else {
        return false;
    };
    let is_event = |line: &[u8]| event_kind(line).is_some_and(|kind| KINDS.contains(&kind));
    // The first texts are always the same.
    let is_texts = |line: &[u8]| {
        is_list(line)
            && line
                .windows(11)
                .take(64)
                .any(|part| part == b"\"[Unknown]\"")
    };
    is_event(first) || is_texts(first) || is_single(first) || is_list(first) && lines.any(is_event)
}

/// An export.
pub(in crate::import) struct LineTables {
    source: InputFile,
    tables: Vec<TableInfo>,
    counts: HashMap<String, u64>,
}

/// A line that is being read.
struct Line<'l> {
    bytes: &'l [u8],
    number: u64,
    offset: u64,
}

impl Line<'_> {
    fn damage(&self, found: impl std::fmt::Display, expected: &'static str) -> Damage {
        Damage {
            offset: Some(self.offset),
            found: format!("{found} in line {}", self.number),
            expected: expected.into(),
        }
    }
}

/// Calls `each` with every line of a file.
fn lines(source: &InputFile, mut each: impl FnMut(&Line<'_>)) -> io::Result<()> {
    let mut file = source.reader()?;
    let (mut bytes, mut offset) = (Vec::new(), 0);
    for number in 1.. {
        bytes.clear();
        let count = (&mut file).take(MAX_LINE).read_until(b'\n', &mut bytes)?;
        if count == 0 {
            break;
        }
        let line = Line {
            bytes: bytes.trim_ascii(),
            number,
            offset,
        };
        if !line.bytes.is_empty() {
            each(&line);
        }
        offset += count as u64;
    }
    Ok(())
}

/// The members of an object, as they stand in the file.
type Members<'l> = BTreeMap<Cow<'l, str>, &'l RawValue>;

/// The members of the object of an event, and of the first object in it.
fn members<'l>(line: &Line<'l>) -> Result<(Members<'l>, Option<Members<'l>>), Damage> {
    let failed = |error: serde_json::Error| line.damage(error, "an event in JSON");
    let whole: BTreeMap<Cow<'l, str>, &'l RawValue> =
        serde_json::from_slice(line.bytes).map_err(failed)?;
    let is_object = |value: &&RawValue| value.get().starts_with('{');
    let event = whole.values().copied().find(is_object);
    let event = event.ok_or_else(|| line.damage("no object", "an event in JSON"))?;
    let event: Members<'l> = serde_json::from_str(event.get()).map_err(failed)?;
    let inner = event
        .iter()
        .find(|(name, value)| is_object(value) && DEVICE.iter().any(|(part, _)| part == name));
    let inner = match inner {
        Some((_, value)) => Some(serde_json::from_str(value.get()).map_err(failed)?),
        None => None,
    };
    Ok((event, inner))
}

/// The table of an event, by its members where its kind does not tell it.
fn table_of(kind: &str, event: &Members<'_>) -> Cow<'static, str> {
    match kind {
        "NvtxEvent" => NVTX.into(),
        "CommEvent" => PROCESSES.into(),
        "TraceProcessEvent" => {
            let class = event.get("eventClass");
            let class = class.and_then(|value| text(value.get()).parse().ok());
            let known = CALLS.iter().find(|(_, own)| *own == class);
            known.map_or(CALLS[2].0, |(table, _)| table).into()
        }
        "CudaEvent" => {
            let known = DEVICE.iter().find(|(part, _)| event.contains_key(*part));
            known.map_or("CudaEvent", |(_, table)| table).into()
        }
        kind => kind.to_owned().into(),
    }
}

/// Whether an event of a kind may be one of a table.
fn may_be_of(kind: &str, table: &str) -> bool {
    match kind {
        "NvtxEvent" => table == NVTX,
        "CommEvent" => table == PROCESSES,
        "TraceProcessEvent" => CALLS.iter().any(|(own, _)| *own == table),
        "CudaEvent" => table == "CudaEvent" || DEVICE.iter().any(|(_, own)| *own == table),
        kind => kind == table,
    }
}

impl LineTables {
    /// Opens an export, which is read once. Returns the damage of its lines as well.
    pub fn open(source: &InputFile) -> io::Result<(LineTables, Damages)> {
        let mut counts: HashMap<String, u64> = HashMap::new();
        let mut columns: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut damages = Damages::default();
        lines(source, |line| {
            if is_list(line.bytes) || is_single(line.bytes) {
                // The list itself tells of which table its rows are.
                for table in [TEXTS, THREADS] {
                    columns.entry(table.to_owned()).or_default();
                }
                return;
            }
            let Some(kind) = event_kind(line.bytes) else {
                return damages.add(line.damage("no event", "an event in JSON"));
            };
            let (event, inner) = match members(line) {
                Ok(members) => members,
                Err(damage) => return damages.add(damage),
            };
            let table = table_of(kind, &event);
            if let Some(count) = counts.get_mut(&*table) {
                *count += 1;
                return;
            }
            // Tables that are not known tell by their columns whether they can be shown.
            let inner = inner.iter().flat_map(|inner| inner.keys());
            let names = event.keys().chain(inner);
            let names = names.map(|name| column_of(name).to_owned());
            columns.insert(table.clone().into_owned(), names.collect());
            counts.insert(table.into_owned(), 1);
        })?;
        columns.insert(WAITS.to_owned(), Vec::new());
        let tables = columns.into_iter();
        let tables = tables.map(|(name, columns)| TableInfo { name, columns });
        let tables = LineTables {
            source: source.clone(),
            tables: tables.collect(),
            counts,
        };
        Ok((tables, damages))
    }
}

/// The column that holds a field.
fn column_of(field: &str) -> &str {
    let known = FIELDS
        .iter()
        .find(|(_, names)| names.split('|').any(|name| name == field));
    known.map_or(field, |(column, _)| column)
}

impl TableSource for LineTables {
    fn tables(&self) -> &[TableInfo] {
        &self.tables
    }

    fn each_row(&self, table: &TableInfo, columns: &[&str], each: &mut EachRow<'_>) -> Damages {
        let mut damages = Damages::default();
        let mut take = |row: &LineRow<'_>| {
            if let Err(damage) = each(row) {
                damages.add(damage);
            }
        };
        if table.name == WAITS {
            for (id, name) in (1..).zip(WAIT_KINDS) {
                let values = [("id", RowField::Int(id)), ("label", RowField::Text(name))];
                take(&LineRow::of_values(columns, &values, (0, 0)));
            }
            return damages;
        }
        let read = lines(&self.source, |line| {
            let place = (line.number, line.offset);
            if table.name == TEXTS || table.name == THREADS {
                if is_single(line.bytes) {
                    let whole: Result<Members<'_>, _> = serde_json::from_slice(line.bytes);
                    let Ok(whole) = whole else { return };
                    let is_text = whole
                        .get("type")
                        .is_some_and(|kind| kind.get() == "\"String\"");
                    if is_text == (table.name == TEXTS) {
                        take(&LineRow::of_members(columns, &whole, None, place));
                    }
                } else if is_list(line.bytes) {
                    list(line, table.name == TEXTS, columns, &mut take);
                }
                return;
            }
            let kind = event_kind(line.bytes);
            let Some(kind) = kind.filter(|kind| may_be_of(kind, &table.name)) else {
                return;
            };
            // Damage has been reported when the file was opened.
            if let Ok((event, inner)) = members(line)
                && table_of(kind, &event) == table.name
            {
                take(&LineRow::of_members(columns, &event, inner.as_ref(), place));
            }
        });
        if let Err(error) = read {
            damages.add(Damage::new(error.to_string(), "the rest of the file"));
        }
        damages
    }

    fn count(&self, table: &TableInfo) -> u64 {
        self.counts.get(&table.name).copied().unwrap_or(0)
    }
}

/// The rows of a line that holds all texts, or the names of all threads.
fn list(line: &Line<'_>, are_texts: bool, columns: &[&str], take: &mut dyn FnMut(&LineRow<'_>)) {
    #[derive(Default)]
    struct DataList<'l>(Vec<&'l RawValue>);
    let place = (line.number, line.offset);
    let whole: Result<Members<'_>, _> = serde_json::from_slice(line.bytes);
    let data = whole.ok().and_then(|whole| {
        let data = whole.get("data")?;
        serde_json::from_str(data.get()).ok().map(DataList)
    });
    for (id, value) in (0..).zip(data.unwrap_or_default().0) {
        if value.get().starts_with('{') != are_texts {
            if are_texts {
                let text = text(value.get());
                let values = [("id", RowField::Int(id)), ("value", RowField::Text(&text))];
                take(&LineRow::of_values(columns, &values, place));
            } else if let Ok(members) = serde_json::from_str(value.get()) {
                take(&LineRow::of_members(columns, &members, None, place));
            }
        }
    }
}

/// A row of some columns.
struct LineRow<'l> {
    columns: &'l [&'l str],
    values: Vec<LineValue<'l>>,
    line: u64,
    offset: u64,
}

/// A value of a row.
enum LineValue<'l> {
    Field(RowField<'l>),
    Text(Cow<'l, str>),
}

impl<'l> LineRow<'l> {
    fn of_values(
        columns: &'l [&'l str],
        values: &[(&str, RowField<'l>)],
        (line, offset): (u64, u64),
    ) -> LineRow<'l> {
        let value = |column: &&str| {
            let mut names = column.split('|');
            let known = names.find_map(|name| values.iter().find(|(own, _)| *own == name));
            LineValue::Field(known.map_or(RowField::Null, |(_, value)| *value))
        };
        LineRow {
            columns,
            values: columns.iter().map(value).collect(),
            line,
            offset,
        }
    }

    /// The row of an event. Fields of the object in it come first.
    fn of_members(
        columns: &'l [&'l str],
        event: &Members<'l>,
        inner: Option<&Members<'l>>,
        (line, offset): (u64, u64),
    ) -> LineRow<'l> {
        let member = |name: &str| {
            let own = inner.and_then(|inner| inner.get(name));
            own.or_else(|| event.get(name)).copied()
        };
        let value = |column: &&str| {
            let found = column.split('|').find_map(|column| {
                let fields = FIELDS.iter().find(|(own, _)| *own == column);
                let fields = fields.into_iter().flat_map(|(_, names)| names.split('|'));
                std::iter::once(column).chain(fields).find_map(member)
            });
            found.map_or(LineValue::Field(RowField::Null), |value| {
                value_of(column, value)
            })
        };
        LineRow {
            columns,
            values: columns.iter().map(value).collect(),
            line,
            offset,
        }
    }
}

fn value_of<'l>(column: &str, value: &'l RawValue) -> LineValue<'l> {
    let raw = value.get();
    if column == "syncType" {
        let name = text(raw);
        let name = name.strip_prefix("SYNCHRONIZATION_TYPE_").unwrap_or(&name);
        if let Some(place) = WAIT_KINDS.iter().position(|kind| *kind == name) {
            return LineValue::Field(RowField::Int(place as i64 + 1));
        }
    }
    match raw.as_bytes() {
        [b'"', ..] => {
            let text = text(raw);
            // Numbers of 64 bits stand in quotes.
            match text.parse() {
                Ok(value) if !TEXTUAL.contains(&column) => LineValue::Field(RowField::Int(value)),
                _ => LineValue::Text(text),
            }
        }
        b"null" => LineValue::Field(RowField::Null),
        b"true" => LineValue::Field(RowField::Int(1)),
        b"false" => LineValue::Field(RowField::Int(0)),
        _ => match (raw.parse(), raw.parse()) {
            (Ok(value), _) => LineValue::Field(RowField::Int(value)),
            (_, Ok(value)) => LineValue::Field(RowField::Real(value)),
            // An object or a list.
            _ => LineValue::Field(RowField::Text(raw)),
        },
    }
}

impl Row for LineRow<'_> {
    fn field(&self, place: usize) -> RowField<'_> {
        match &self.values[place] {
            LineValue::Field(field) => *field,
            LineValue::Text(text) => RowField::Text(text),
        }
    }

    fn column(&self, place: usize) -> &str {
        self.columns[place]
    }

    fn position(&self) -> (Option<u64>, String) {
        (Some(self.offset), format!("line {}", self.line))
    }
}
