//! The rows of a recording of rocprofv3, whatever files they stand in: their processes and devices.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::import::Allowance;
use crate::import::Report;
use crate::import::row::{Row, whole_number};
use crate::import::tables::{
    AgentHandle, AgentRow, ArgumentRange, ArgumentValue, ProcessHandle, ProcessRow, QueueHandle,
    QueueRow, Tables, TextHandle,
};
use gputrail_record::Domain;
use gputrail_trace::model::{Agent, AgentIndex, Consumer, agent_title};

/// Values of the column `Kind` of tables that hold one kind.
const KINDS: [&str; 4] = [
    "KERNEL_DISPATCH",
    "MEMORY_COPY",
    "MEMORY_ALLOCATION",
    "SCRATCH_MEMORY",
];

/// Files of one process: their folder, and what stands before the name of the table.
pub(super) type ProcessFiles = (PathBuf, String);

/// A file that is being read.
pub(super) struct RecordingFile<'s> {
    pub path: &'s Path,
    pub group: ProcessFiles,
    /// The name of its table.
    pub table: &'s str,
}

/// A recording that is being read.
pub(super) struct RecordingReader<'r> {
    pub tables: Tables,
    pub report: &'r mut Report,
    /// Its file or folder.
    path: &'r Path,
    /// Processes by group and id.
    processes: HashMap<(ProcessFiles, u32), ProcessHandle>,
    /// Ids of the processes that the files of a group name.
    named: HashMap<ProcessFiles, HashSet<u32>>,
    /// Devices of a group, as its files call them.
    pub agents: HashMap<(ProcessFiles, String), AgentHandle>,
    /// The number of devices of each kind.
    pub kinds: HashMap<String, u32>,
    /// The latest dispatch that was made of a row of a counter: its rows follow each other.
    pub counted: Option<(ProcessHandle, u64)>,
}

impl<'r> RecordingReader<'r> {
    /// A reader whose rows are sorted in the memory of `allowance`.
    pub fn new(
        path: &'r Path,
        allowance: Allowance,
        report: &'r mut Report,
    ) -> RecordingReader<'r> {
        RecordingReader {
            tables: Tables::new(allowance),
            report,
            path,
            processes: HashMap::new(),
            named: HashMap::new(),
            agents: HashMap::new(),
            kinds: HashMap::new(),
            counted: None,
        }
    }

    /// The process of a row, which names it by `pid` or is of the process of its file.
    pub fn process(&mut self, file: &RecordingFile<'_>, pid: Option<u32>) -> ProcessHandle {
        if let Some(pid) = pid {
            let named = self.named.entry(file.group.clone()).or_default();
            named.insert(pid);
            return self.process_of(file, pid, "process");
        }
        let named = self.named.get(&file.group);
        let only = named.filter(|named| named.len() == 1);
        let only = only.and_then(|named| named.iter().next().copied());
        let of_prefix = || file.group.1.parse().ok().filter(|_| named.is_none());
        if let Some(pid) = only.or_else(of_prefix) {
            return self.process_of(file, pid, "process");
        }
        let reason =
            "rows without a process (no column Process_Id), shown under \"unknown process\"";
        self.report.remark(self.path, reason, None);
        self.process_of(file, 0, "unknown process")
    }

    pub fn process_of(&mut self, file: &RecordingFile<'_>, pid: u32, name: &str) -> ProcessHandle {
        let key = (file.group.clone(), pid);
        if let Some(process) = self.processes.get(&key) {
            return *process;
        }
        let taken = |pid: &u32| self.tables.processes.iter().any(|row| row.pid == *pid);
        let process = self.tables.process(ProcessRow {
            pid: match pid {
                // The lowest id that no process has.
                0 => (1..).find(|pid| !taken(pid)).unwrap_or(u32::MAX),
                pid => pid,
            },
            name: name.to_owned(),
            ..ProcessRow::default()
        });
        self.processes.insert(key, process);
        process
    }

    /// The device that a field names: `Agent 4`, `GPU 0`, or a number alone.
    pub fn agent(&mut self, file: &RecordingFile<'_>, field: &str) -> AgentHandle {
        if field.is_empty() {
            return AgentHandle::UNKNOWN;
        }
        let label = if field.bytes().all(|byte| byte.is_ascii_digit()) {
            format!("Agent {field}")
        } else {
            field.to_owned()
        };
        let key = (file.group.clone(), label);
        if let Some(agent) = self.agents.get(&key) {
            return *agent;
        }
        // No table describes it: it gets the title by which traces call it.
        let index = AgentIndex(self.tables.agents.len() as u32);
        let agent = self.tables.agent(AgentRow {
            agent: Agent {
                title: agent_title("", index),
                name: key.1.clone(),
                ..Agent::default()
            },
            compute_units: 0,
        });
        self.agents.insert(key, agent);
        agent
    }

    /// A queue by its stream, or by its name where the row has no stream.
    pub fn queue(
        &mut self,
        process: ProcessHandle,
        agent: AgentHandle,
        stream: Option<u32>,
        name: &str,
    ) -> QueueHandle {
        let name = match stream {
            Some(stream) => self.tables.text(&format!("stream {stream}")),
            None => self.tables.text(name),
        };
        self.tables.queue(QueueRow {
            process,
            agent,
            context: 0,
            domain: Domain::HIP,
            stream: stream.unwrap_or(0),
            name,
        })
    }

    /// Arguments: `first`, and the fields of a row that its type does not have.
    pub fn arguments(&mut self, first: &[(&str, u64)], row: &dyn Row) -> ArgumentRange {
        let known = first.iter().filter(|(_, value)| *value != 0);
        let mut arguments: Vec<_> = known
            .map(|(name, value)| (self.tables.text(name), ArgumentValue::Uint(*value)))
            .collect();
        arguments.extend(self.rest(row));
        self.tables.arguments(arguments)
    }

    /// The fields of a row that its type does not have, without those that are empty or 0.
    pub fn rest(&mut self, row: &dyn Row) -> Vec<(TextHandle, ArgumentValue)> {
        let tables = &mut self.tables;
        let mut arguments = Vec::new();
        for (name, field) in row.rest() {
            if matches!(field, "" | "0") || KINDS.contains(&field) {
                continue;
            }
            let number = whole_number(field).and_then(|number| u64::try_from(number).ok());
            let value = match (number, field.parse::<f64>()) {
                (Some(value), _) if field.starts_with("0x") => ArgumentValue::Pointer(value),
                (Some(value), _) => ArgumentValue::Uint(value),
                (None, Ok(value)) if value.is_finite() => ArgumentValue::Double(value),
                _ => ArgumentValue::Text(tables.text(field)),
            };
            arguments.push((tables.text(&name.to_ascii_lowercase()), value));
        }
        arguments
    }

    /// Passes everything on.
    pub fn finish(mut self, format: &str, consumer: &mut dyn Consumer) -> io::Result<()> {
        let clock = "CLOCK_BOOTTIME of the recorded machine";
        let attributes = [("format", format), ("clock", clock)];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
        self.tables.attributes.extend(attributes);
        self.tables.pass_on(self.path, consumer, self.report)
    }
}
