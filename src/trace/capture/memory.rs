//! The memory that a process has in use, as counters: one for each agent, one for the host, and one for memory whose
//! location the runtime chooses.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use super::devices::Devices;
use crate::model::{
    CounterUnit, CounterValue, Parent, ProcessIndex, Stream, Track, TrackIndex, TrackKind,
};
use gputrail_record::number_map::NumberMap;
use gputrail_record::{AgentId, Allocation, AllocationOperation, MemoryKind, Nanos};

/// Maximum number of changes that are held back to be sorted by time: threads are read one after the other.
const MAX_HELD: usize = 1 << 14;
/// Maximum number of allocations whose sizes are kept until they are freed.
const MAX_LIVE: usize = 1 << 20;

/// The memory of one agent, or of the host.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct MemoryLocation {
    agent: AgentId,
    host: bool,
}

/// A change of the memory in use.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MemoryChange {
    time: Nanos,
    /// Its number, which keeps changes of one time in order.
    number: u64,
    location: MemoryLocation,
    address: u64,
    bytes: u64,
    freed: bool,
}

/// The memory that a process has in use.
#[derive(Debug, Default)]
pub(super) struct UsedMemory {
    held: BinaryHeap<Reverse<MemoryChange>>,
    number: u64,
    counters: NumberMap<MemoryLocation, (TrackIndex, u64)>,
    /// The location and size of each allocation, by address.
    live: NumberMap<u64, (MemoryLocation, u64)>,
}

impl UsedMemory {
    /// Adds the record of an allocation or a free at `time`.
    pub fn add(
        &mut self,
        stream: &mut Stream<'_>,
        process: ProcessIndex,
        devices: &Devices,
        record: &Allocation,
        time: Nanos,
    ) -> io::Result<()> {
        if !matches!(
            record.operation,
            AllocationOperation::ALLOCATE | AllocationOperation::FREE
        ) {
            // Pools hold the memory that others allocate.
            return Ok(());
        }
        self.number += 1;
        let change = MemoryChange {
            time,
            number: self.number,
            location: MemoryLocation {
                agent: record.agent,
                host: matches!(record.memory, MemoryKind::PAGEABLE | MemoryKind::PINNED),
            },
            address: record.address,
            bytes: record.bytes,
            freed: record.operation == AllocationOperation::FREE,
        };
        self.held.push(Reverse(change));
        if self.held.len() > MAX_HELD {
            self.pass_on_first(stream, process, devices)?;
        }
        Ok(())
    }

    /// Passes on the changes that are held back.
    pub fn finish(
        &mut self,
        stream: &mut Stream<'_>,
        process: ProcessIndex,
        devices: &Devices,
    ) -> io::Result<()> {
        while !self.held.is_empty() {
            self.pass_on_first(stream, process, devices)?;
        }
        Ok(())
    }

    fn pass_on_first(
        &mut self,
        stream: &mut Stream<'_>,
        process: ProcessIndex,
        devices: &Devices,
    ) -> io::Result<()> {
        let Some(Reverse(change)) = self.held.pop() else {
            return Ok(());
        };
        // A free returns the size that was allocated at its address; memory allocated before the recording is not
        // counted.
        let (location, bytes) = if change.freed {
            match self.live.remove(&change.address) {
                Some(known) => known,
                None => return Ok(()),
            }
        } else {
            if self.live.len() >= MAX_LIVE {
                return Ok(());
            }
            self.live
                .insert(change.address, (change.location, change.bytes));
            (change.location, change.bytes)
        };
        let (track, in_use) = match self.counters.get_mut(&location) {
            Some(counter) => counter,
            None => {
                let name = match (location.host, devices.title(location.agent)) {
                    (true, _) => "host memory in use".to_owned(),
                    (false, Some(title)) => format!("{title} memory in use"),
                    (false, None) => "memory in use".to_owned(),
                };
                let track = stream.new_track(&Track {
                    parent: Parent::Process(process),
                    name: &name,
                    kind: TrackKind::Counter(CounterUnit::Bytes),
                    order: None,
                })?;
                self.counters.entry(location).or_insert((track, 0))
            }
        };
        *in_use = if change.freed {
            in_use.saturating_sub(bytes)
        } else {
            in_use.saturating_add(bytes)
        };
        stream
            .consumer
            .derived_value(*track, change.time, CounterValue::Int(*in_use as i64))
    }
}
