//! rocprofv3's JSON (`*_results.json`).
//!
//! Records name their functions, kernels, counters and instructions by numbers, which lists of the same file explain, before
//! or behind them. So a file is read twice: first these lists, then the records. A record gets the columns that a table in CSV
//! has, and goes the way of such a row. Times are nanoseconds of CLOCK_BOOTTIME.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use super::json::{self, Element, ElementPath, ROOT, Take};
use super::reader::{RecordingFile, RecordingReader};
use super::table::RocprofTable;
use crate::import::row::{Row, RowField};
use crate::import::tables::ProcessHandle;
use crate::import::{Allowance, InputFile, Report};
use gputrail_record::{HardwareId, Snapshot};
use gputrail_trace::model::Consumer;

/// The values of `type` of devices.
const AGENT_TYPES: [(&str, &str); 2] = [("1", "CPU"), ("2", "GPU")];

/// Lists of a device that are left out.
const OF_HARDWARE: [&str; 3] = ["mem_banks_", "caches_", "io_links_"];

/// Whether a file that begins so is one of these.
pub(in crate::import) fn is_json(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let Some(rest) = head.trim_ascii_start().strip_prefix(b"{") else {
        return false;
    };
    let rest = rest.trim_ascii_start().strip_prefix(b"\"");
    rest.is_some_and(|rest| rest.starts_with(ROOT.as_bytes()))
}

/// Passes the files of a run on.
pub(in crate::import) fn read(
    sources: &[InputFile],
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let path = sources.first().map_or(Path::new(""), InputFile::name);
    let mut reader = RecordingReader::new(path, allowance, report);
    for source in sources {
        let mut lists = Lists {
            path: source.name(),
            processes: Vec::new(),
            reader: &mut reader,
        };
        json::scan(source.reader()?, &mut lists);
        let mut processes = lists.processes;
        for (place, process) in processes.iter_mut().enumerate() {
            let code_objects = std::mem::take(&mut process.code_objects);
            if code_objects.is_empty() {
                continue;
            }
            let handle = match process.handle {
                Some(handle) => handle,
                None => reader.process(&file(source.name(), place, "code_objects"), None),
            };
            let own = code_objects.into_iter();
            let own = own.map(|(number, path)| ((handle, number), path));
            reader.tables.code_objects.extend(own);
        }
        let mut records = JsonRecords {
            path: source.name(),
            processes,
            reader: &mut reader,
            element: Columns::default(),
        };
        json::scan(source.reader()?, &mut records);
    }
    reader.finish("rocprofv3 JSON", consumer)
}

/// The lists of one process.
#[derive(Default)]
struct ProcessLists {
    pid: u32,
    handle: Option<ProcessHandle>,
    /// Names of kinds of records and of their operations.
    kinds: Vec<(String, Vec<String>)>,
    /// Messages of markers by correlation id.
    markers: HashMap<u64, String>,
    instructions: Vec<String>,
    comments: Vec<String>,
    /// Names of counters by their ids.
    counters: HashMap<u64, String>,
    kernels: HashMap<u64, Vec<(&'static str, String)>>,
    /// Numbers and paths of code objects.
    code_objects: Vec<(u32, String)>,
    /// Names of devices by their handles.
    agents: HashMap<String, String>,
}

/// The first pass.
struct Lists<'a, 'r> {
    path: &'a Path,
    processes: Vec<ProcessLists>,
    reader: &'a mut RecordingReader<'r>,
}

impl Take for Lists<'_, '_> {
    fn wants(&self, field: &str) -> bool {
        !matches!(
            field,
            "buffer_records" | "callback_records" | "summary" | "host_functions"
        )
    }

    fn element(&mut self, place: ElementPath<'_>, element: &Element) {
        if self.processes.len() <= place.process {
            self.processes
                .resize_with(place.process + 1, ProcessLists::default);
        }
        let process = &mut self.processes[place.process];
        match (place.field, place.list) {
            ("metadata", _) => self.metadata(place, element),
            ("agents", _) => {
                let mut columns = Columns::default();
                columns.fill(element);
                let kind = columns.get("type").to_owned();
                let kind = AGENT_TYPES.iter().find(|(number, _)| *number == kind);
                columns.add("Agent_Type", kind.map_or("Agent", |(_, name)| name));
                columns.remove(|name| OF_HARDWARE.iter().any(|list| name.starts_with(list)));
                let node = format!("Agent {}", columns.get("node_id"));
                process.agents.insert(columns.get("id").to_owned(), node);
                self.add(RocprofTable::Agents, place, &columns);
            }
            ("counters", _) => {
                if let Some(id) = element.number("id.handle") {
                    process.counters.insert(id, element.get("name").to_owned());
                }
            }
            ("code_objects", _) => {
                if let Some(id) = element.number("code_object_id") {
                    let uri = element.get("uri").to_owned();
                    process.code_objects.push((id as u32, uri));
                }
            }
            ("kernel_symbols", _) => {
                let Some(id) = element.number("kernel_id") else {
                    return;
                };
                let names = [
                    "formatted_kernel_name",
                    "demangled_kernel_name",
                    "kernel_name",
                ];
                let names = names.map(|name| element.get(name));
                let name = names.into_iter().find(|name| !name.is_empty());
                let columns = [
                    ("Kernel_Name", name.unwrap_or("")),
                    ("VGPR_Count", element.get("arch_vgpr_count")),
                    ("Accum_VGPR_Count", element.get("accum_vgpr_count")),
                    ("SGPR_Count", element.get("sgpr_count")),
                ];
                let columns = columns.map(|(name, value)| (name, value.to_owned()));
                process.kernels.insert(id, columns.into());
            }
            ("strings", "buffer_records") => {
                let operations = element.values().filter(|(path, _)| *path != "kind");
                let operations = operations.map(|(_, name)| name.to_owned()).collect();
                process
                    .kinds
                    .push((element.get("kind").to_owned(), operations));
            }
            ("strings", "marker_api") => {
                if let Some(key) = element.number("key") {
                    process.markers.insert(key, element.get("value").to_owned());
                }
            }
            ("strings", "pc_sample_instructions") => {
                process.instructions.push(element.get("").to_owned());
            }
            ("strings", "pc_sample_comments") => process.comments.push(element.get("").to_owned()),
            _ => {}
        }
    }

    fn damage(&mut self, offset: u64, found: String, expected: &'static str) {
        self.reader
            .report
            .finding(self.path, Some(offset), found, expected);
    }
}

impl Lists<'_, '_> {
    fn metadata(&mut self, place: ElementPath<'_>, element: &Element) {
        let process = &mut self.processes[place.process];
        process.pid = element.get("pid").parse().unwrap_or(0);
        let machine = &mut self.reader.tables.header.machine;
        for (field, name) in [
            (&mut machine.host, "node.hostname"),
            (&mut machine.system, "node.system_name"),
            (&mut machine.release, "node.release"),
            (&mut machine.version, "node.version"),
            (&mut machine.architecture, "node.hardware_name"),
        ] {
            *field = element.get(name).to_owned();
        }
        let words = element.values();
        let words = words.filter(|(path, _)| path.starts_with("command."));
        let words: Vec<String> = words.map(|(_, word)| word.to_owned()).collect();
        let file = file(self.path, place.process, place.list);
        let handle = self.reader.process(&file, Some(process.pid));
        process.handle = Some(handle);
        let row = &mut self.reader.tables.processes[handle.0 as usize];
        let name = words.first().and_then(|word| word.rsplit('/').next());
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            row.name = name.to_owned();
        }
        row.command = words;
    }

    fn add(&mut self, table: RocprofTable, place: ElementPath<'_>, columns: &Columns) {
        add(self.reader, self.path, table, place, columns);
    }
}

/// The file as the readers of tables see it: each process of it is a group of tables.
fn file<'s>(path: &'s Path, process: usize, table: &'s str) -> RecordingFile<'s> {
    RecordingFile {
        path,
        // Not a number alone, which would pass for the id of the process.
        group: (path.to_owned(), format!("process {process}")),
        table,
    }
}

fn add(
    reader: &mut RecordingReader<'_>,
    path: &Path,
    table: RocprofTable,
    place: ElementPath<'_>,
    columns: &Columns,
) {
    let row = JsonRow {
        columns: table.columns(),
        fields: columns,
        place,
    };
    if let Err(damage) = table.add(reader, &file(path, place.process, place.list), &row) {
        reader.report.damage(path, damage);
    }
}

/// The second pass.
struct JsonRecords<'a, 'r> {
    path: &'a Path,
    processes: Vec<ProcessLists>,
    reader: &'a mut RecordingReader<'r>,
    element: Columns,
}

impl Take for JsonRecords<'_, '_> {
    fn wants(&self, field: &str) -> bool {
        matches!(field, "buffer_records" | "callback_records")
    }

    fn element(&mut self, place: ElementPath<'_>, element: &Element) {
        let mut columns = std::mem::take(&mut self.element);
        columns.fill(element);
        self.record(place, &mut columns);
        self.element = columns;
    }

    fn damage(&mut self, offset: u64, found: String, expected: &'static str) {
        // The first pass has reported the damage outside records.
        let known = self.reader.report.findings.iter();
        let known = known.filter(|one| one.file == self.path);
        if !known.into_iter().any(|one| one.offset == Some(offset)) {
            self.reader
                .report
                .finding(self.path, Some(offset), found, expected);
        }
    }
}

impl JsonRecords<'_, '_> {
    fn record(&mut self, place: ElementPath<'_>, columns: &mut Columns) {
        let unknown = ProcessLists::default();
        let process = self.processes.get(place.process).unwrap_or(&unknown);
        if process.pid != 0 {
            columns.add("Process_Id", process.pid);
        }
        let table = match place.list {
            "kernel_dispatch" => RocprofTable::Kernels,
            "memory_copy" => RocprofTable::Copies,
            "memory_allocation" | "memory_allocations" => RocprofTable::Allocations,
            "scratch_memory" => RocprofTable::Scratch,
            "pc_sample_host_trap" | "pc_sample_stochastic" => RocprofTable::Samples,
            "counter_collection" => RocprofTable::Counters,
            list if list.ends_with("_api") => RocprofTable::Calls,
            list if columns.get("start_timestamp").is_empty() => {
                let reason = format!("records of {list}, which have no start and end");
                let offset = Some(place.offset);
                self.reader.report.unrepresented(self.path, reason, offset);
                return;
            }
            _ => RocprofTable::Spans,
        };
        let kind = columns
            .number("kind")
            .and_then(|kind| process.kinds.get(kind as usize));
        if let Some((kind, operations)) = kind {
            let operation = columns.number("operation");
            let operation = operation.and_then(|number| operations.get(number as usize));
            let operation = operation.map_or("", |name| name);
            let marker = columns.number("correlation_id");
            let marker = marker.and_then(|id| process.markers.get(&id));
            let marker = marker.filter(|_| kind.starts_with("MARKER"));
            columns.add("Domain", kind);
            columns.add("Function", marker.map_or(operation, |message| message));
            columns.add("Direction", operation);
            columns.rename("operation", operation);
        }
        for name in ["agent_id", "src_agent_id", "dst_agent_id"] {
            let label = process.agents.get(columns.get(name));
            if let Some(label) = label {
                columns.rename(name, label);
            }
        }
        let kernel = columns.number("kernel_id");
        for (name, value) in kernel
            .and_then(|id| process.kernels.get(&id))
            .into_iter()
            .flatten()
        {
            columns.add(name, value);
        }
        if let RocprofTable::Samples = table {
            let place = columns.get("inst_index").parse::<usize>().ok();
            let text = |list: &[String]| place.and_then(|place| list.get(place)).cloned();
            columns.add(
                "Instruction",
                text(&process.instructions).unwrap_or_default(),
            );
            columns.add(
                "Instruction_Comment",
                text(&process.comments).unwrap_or_default(),
            );
            columns.add_bits("Hardware_Id", "hw_id_", HardwareId::FIELDS);
            columns.add_bits("Arbiter", "snapshot_arb_state_", Snapshot::FIELDS);
        }
        if table != RocprofTable::Counters {
            return add(self.reader, self.path, table, place, columns);
        }
        // A counter has a value for each instance of its block.
        let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
        // The fields of one instance stand together, in any order: its number is before their names.
        let (mut instance, mut id, mut value) = ("", None, None);
        for (name, text) in &columns.list {
            let Some((number, field)) = name
                .strip_prefix("records_")
                .and_then(|rest| rest.split_once('_'))
            else {
                continue;
            };
            if number != instance {
                (instance, id, value) = (number, None, None);
            }
            match field {
                "counter_id" => id = text.parse::<u64>().ok(),
                "value" => value = text.parse::<f64>().ok(),
                _ => continue,
            }
            if let (Some(id), Some(value)) = (id, value) {
                *sums.entry(id).or_default() += value;
            }
        }
        columns.remove(|name| name.starts_with("records_"));
        let count = columns.list.len();
        for (id, value) in sums {
            let name = process.counters.get(&id).cloned();
            columns.add(
                "Counter_Name",
                name.unwrap_or_else(|| format!("counter {id}")),
            );
            columns.add("Counter_Value", value);
            add(self.reader, self.path, table, place, columns);
            columns.list.truncate(count);
        }
    }
}

/// A record as the columns that a table in CSV has.
#[derive(Default)]
struct Columns {
    list: Vec<(String, String)>,
}

impl Columns {
    /// Takes the values of an element, under names like those of CSV: without what they are nested in where CSV has it not.
    fn fill(&mut self, element: &Element) {
        self.list.clear();
        let mut argument = "";
        for (path, value) in element.values() {
            let mut path = path;
            for outer in ["record.", "dispatch_data.", "dispatch_info."] {
                path = path.strip_prefix(outer).unwrap_or(path);
            }
            if let Some(part) = path.strip_prefix("args.") {
                // Arguments of calls, each with its type, name and value.
                match part.rsplit('.').next() {
                    Some("name") => argument = value,
                    Some("value") => self.add(argument, value),
                    _ => {}
                }
                continue;
            }
            let name = path.strip_suffix(".handle").unwrap_or(path);
            let name = match name {
                "size" | "ancestor" | "correlation_id.ancestor" => continue,
                "correlation_id.internal" | "corr_id.internal" => "correlation_id",
                "correlation_id.external" | "corr_id.external" => "external_id",
                name => name,
            };
            self.list.push((name.replace('.', "_"), value.to_owned()));
        }
    }

    fn add(&mut self, name: &str, value: impl ToString) {
        self.list.push((name.to_owned(), value.to_string()));
    }

    fn get(&self, name: &str) -> &str {
        let mut list = self.list.iter();
        let found = list.find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.get(name).parse().ok()
    }

    /// Gives a column another value.
    fn rename(&mut self, name: &str, value: &str) {
        if let Some((_, own)) = self.list.iter_mut().find(|(own, _)| own == name) {
            own.clear();
            let _ = own.write_str(value);
        }
    }

    fn remove(&mut self, is_removed: impl Fn(&str) -> bool) {
        self.list.retain(|(name, _)| !is_removed(name));
    }

    /// Adds a column made of the bits in the columns that begin with `prefix`, if there are any.
    fn add_bits(&mut self, name: &str, prefix: &str, fields: &[(&str, u32, u32)]) {
        let mut number: Option<u64> = None;
        for (field, shift, width) in fields {
            let field = match *field {
                "wave" => "wave_id",
                "simd" => "simd_id",
                "pipe" => "pipe_id",
                "compute_unit" => "cu_or_wgp_id",
                "shader_array" => "shader_array_id",
                "shader_engine" => "shader_engine_id",
                "workgroup_slot" => "workgroup_id",
                "virtual_memory" => "vm_id",
                "queue" => "queue_id",
                "microengine" => "microengine_id",
                other => other,
            };
            let mut list = self.list.iter();
            let found = list.find(|(own, _)| {
                // One of the names ends in a space.
                own.strip_prefix(prefix)
                    .is_some_and(|own| own.trim_end() == field)
            });
            if let Some(value) = found.and_then(|(_, value)| value.parse::<u64>().ok()) {
                *number.get_or_insert(0) |= (value & ((1 << width) - 1)) << shift;
            }
        }
        self.remove(|own| own.starts_with(prefix));
        if let Some(number) = number {
            self.add(name, number);
        }
    }
}

/// A record as a row of a type.
struct JsonRow<'c> {
    columns: &'static [&'static str],
    fields: &'c Columns,
    place: ElementPath<'c>,
}

impl Row for JsonRow<'_> {
    fn field(&self, place: usize) -> RowField<'_> {
        let mut names = self.columns[place].split('|');
        let found = names.find_map(|name| {
            let mut list = self.fields.list.iter();
            list.find(|(own, _)| own.eq_ignore_ascii_case(name))
        });
        found.map_or(RowField::Null, |(_, value)| RowField::Text(value))
    }

    fn column(&self, place: usize) -> &str {
        self.columns[place]
    }

    fn position(&self) -> (Option<u64>, String) {
        let ElementPath {
            field,
            list,
            offset,
            ..
        } = self.place;
        (Some(offset), format!("an element of {field} {list}"))
    }

    fn rest(&self) -> Vec<(&str, &str)> {
        // Names and numbers that say nothing beside the columns made of them.
        let own = [
            "kind",
            "Domain",
            "Function",
            "Direction",
            "operation",
            "inst_index",
        ];
        let is_taken = |name: &str| {
            let mut columns = self.columns.iter().flat_map(|names| names.split('|'));
            own.contains(&name) || columns.any(|column| column.eq_ignore_ascii_case(name))
        };
        let list = self.fields.list.iter();
        let list = list.map(|(name, value)| (&name[..], &value[..]));
        list.filter(|(name, _)| !is_taken(name)).collect()
    }
}
