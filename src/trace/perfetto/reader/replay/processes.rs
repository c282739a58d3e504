//! The processes of a trace, as far as packets describe them, and those that have been declared.

use std::io;

use super::limits::{MAX_NAME_BYTES, MAX_PROCESSES};
use crate::model::{Consumer, Process, ProcessIndex};
use crate::perfetto::reader::tracks::TrackId;
use gputrail_record::ProcessId;
use gputrail_record::number_map::NumberMap;

/// Ids for processes of other machines that have the id of another process count from here.
const FIRST_PID: u32 = 0x7000_0000;

/// The description of a process.
#[derive(Debug, Default)]
pub(super) struct ProcessDescription {
    pub name: String,
    pub command: Vec<String>,
    pub order: Option<i32>,
}

impl ProcessDescription {
    /// Bytes of its texts.
    fn bytes(&self) -> usize {
        let command = self
            .command
            .iter()
            .map(|word| word.len() + size_of::<String>());
        self.name.len() + command.sum::<usize>()
    }
}

/// The processes of a trace.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// By machine and id.
    descriptions: NumberMap<(u32, u32), ProcessDescription>,
    /// Bytes of all descriptions.
    bytes: usize,
    declared: NumberMap<(u32, u32), ProcessIndex>,
    /// The ids that have been declared.
    pids: NumberMap<u32, ()>,
    /// The machines of tracks that are not those of the first machine.
    pub machines: NumberMap<TrackId, u32>,
    /// The process that was used last.
    latest: Option<((u32, u32), ProcessIndex)>,
}

impl Processes {
    /// Changes the description of a process. Returns whether there was room for it.
    pub fn describe(
        &mut self,
        key: (u32, u32),
        change: impl FnOnce(&mut ProcessDescription),
    ) -> bool {
        if self.descriptions.len() >= MAX_PROCESSES && !self.descriptions.contains_key(&key) {
            return false;
        }
        let known = self.descriptions.entry(key).or_default();
        self.bytes -= known.bytes();
        change(known);
        if self.bytes + known.bytes() > MAX_NAME_BYTES {
            *known = ProcessDescription::default();
            return false;
        }
        self.bytes += known.bytes();
        true
    }

    /// The process of a machine with an id, declared if it has not been used before.
    #[inline]
    pub fn get(
        &mut self,
        key: (u32, u32),
        consumer: &mut dyn Consumer,
    ) -> io::Result<ProcessIndex> {
        match self.latest {
            Some((latest, process)) if latest == key => Ok(process),
            _ => self.find(key, consumer),
        }
    }

    fn find(&mut self, key: (u32, u32), consumer: &mut dyn Consumer) -> io::Result<ProcessIndex> {
        if let Some(process) = self.declared.get(&key) {
            self.latest = Some((key, *process));
            return Ok(*process);
        }
        let count = self.declared.len();
        if count >= MAX_PROCESSES {
            return Ok(ProcessIndex(0));
        }
        let process = ProcessIndex(count as u32);
        self.declared.insert(key, process);
        self.latest = Some((key, process));
        let mut pid = key.1;
        if self.pids.contains_key(&pid) {
            let free = |pid: &u32| !self.pids.contains_key(pid);
            pid = (FIRST_PID..).find(free).unwrap_or(pid);
        }
        self.pids.insert(pid, ());
        let none = ProcessDescription::default();
        let description = self.descriptions.get(&key).unwrap_or(&none);
        let command: Vec<&str> = description.command.iter().map(String::as_str).collect();
        let (mut name, rank) = split_rank(&description.name);
        if name.is_empty() {
            name = command.first().map_or("", |name| name);
        }
        consumer.process(
            process,
            &Process {
                pid: ProcessId(pid),
                name,
                rank,
                command: &command,
                order: description.order,
            },
        )?;
        Ok(process)
    }
}

/// The name of a process, and its rank, which gputrail writes behind it in parentheses.
fn split_rank(name: &str) -> (&str, &str) {
    let split = name
        .strip_suffix(')')
        .and_then(|name| name.rsplit_once(" ("));
    match split {
        Some((name, rank)) if rank.starts_with("rank ") => (name, rank),
        _ => (name, ""),
    }
}
