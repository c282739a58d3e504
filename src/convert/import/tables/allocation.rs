//! Allocations of memory: each is an event of its process, and changes the memory that a device has in use.

use super::{
    AgentHandle, ArgumentValue, HostKind, HostLane, HostRow, MemoryRow, ProcessHandle, Tables,
    TextHandle,
};

/// An operation on memory.
pub(crate) struct AllocationRow<'r> {
    pub process: ProcessHandle,
    /// The device whose memory it is.
    pub agent: AgentHandle,
    pub name: &'r str,
    pub start: u64,
    /// When it ended; `None` if it is a point in time.
    pub end: Option<u64>,
    pub correlation: u64,
    pub address: u64,
    pub bytes: u64,
    /// Whether memory was freed; `None` if the amount of memory in use did not change.
    pub freed: Option<bool>,
    /// Arguments besides address and size.
    pub arguments: Vec<(TextHandle, ArgumentValue)>,
}

impl Tables {
    /// Adds an operation on memory.
    pub fn add_allocation(&mut self, row: AllocationRow<'_>) {
        let AllocationRow {
            process,
            agent,
            address,
            bytes,
            ..
        } = row;
        let mut arguments = vec![(self.text("address"), ArgumentValue::Pointer(address))];
        if bytes != 0 {
            arguments.push((self.text("bytes"), ArgumentValue::Uint(bytes)));
        }
        arguments.extend(row.arguments);
        let arguments = self.arguments(arguments);
        let (name, category) = (self.text(row.name), self.text("memory allocation"));
        let end = row.end.unwrap_or(row.start);
        self.add_host_in(
            HostLane::Process(process, category),
            HostRow {
                kind: match row.end {
                    Some(_) => HostKind::Slice(name, category),
                    None => HostKind::Instant(name, category),
                },
                start: row.start,
                end,
                correlation: row.correlation,
                arguments,
                ..HostRow::default()
            },
        );
        if let Some(freed) = row.freed {
            self.add_memory(MemoryRow {
                process,
                agent,
                time: end,
                address,
                bytes,
                freed,
            });
        }
    }

    /// Numbers as arguments. 0 and numbers that are not known are left out.
    pub fn numbers(&mut self, values: &[(&str, Option<i64>)]) -> Vec<(TextHandle, ArgumentValue)> {
        let known = values
            .iter()
            .filter_map(|(name, value)| Some((*name, (*value)?)));
        let known = known.filter(|(_, value)| *value != 0);
        known
            .map(|(name, value)| (self.text(name), ArgumentValue::Int(value)))
            .collect()
    }
}
