//! How much memory a process has in use, as counters: one of each device, one of the host, and one of what
//! the runtime places as it likes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use super::devices::Devices;
use super::writer::{ProcessTrack, TraceWriter, Track};
use crate::record::number_map::NumberMap;
use crate::record::{AgentId, Allocation, AllocationOperation, MemoryKind, Nanos};

/// Changes that are held back, to be told in the order of their times: threads are read one after the other.
const HELD: usize = 1 << 14;
/// Most allocations whose sizes are remembered for when they are freed.
const MAX_ALLOCATIONS: usize = 1 << 20;

/// Where memory lies.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Where {
    agent: AgentId,
    host: bool,
}

/// A change of what is in use.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    time: Nanos,
    /// Changes of one time stay in order.
    number: u64,
    place: Where,
    address: u64,
    bytes: u64,
    freed: bool,
}

/// The memory that a process has in use.
#[derive(Debug, Default)]
pub(super) struct Memory {
    held: BinaryHeap<Reverse<Change>>,
    number: u64,
    counters: NumberMap<Where, (Track, u64)>,
    /// Where allocations lie and how large they are, by address.
    live: NumberMap<u64, (Where, u64)>,
}

impl Memory {
    /// Takes in a record, done at `time`.
    pub fn add<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        process: ProcessTrack,
        devices: &Devices,
        record: &Allocation,
        time: Nanos,
    ) -> io::Result<()> {
        self.number += 1;
        let change = Change {
            time,
            number: self.number,
            place: Where {
                agent: record.agent,
                host: matches!(record.memory, MemoryKind::PAGEABLE | MemoryKind::PINNED),
            },
            address: record.address,
            bytes: record.bytes,
            freed: record.operation == AllocationOperation::FREE,
        };
        self.held.push(Reverse(change));
        if self.held.len() > HELD {
            self.tell_first(writer, process, devices)?;
        }
        Ok(())
    }

    /// Tells what is held back.
    pub fn finish<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        process: ProcessTrack,
        devices: &Devices,
    ) -> io::Result<()> {
        while !self.held.is_empty() {
            self.tell_first(writer, process, devices)?;
        }
        Ok(())
    }

    fn tell_first<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        process: ProcessTrack,
        devices: &Devices,
    ) -> io::Result<()> {
        let Some(Reverse(change)) = self.held.pop() else {
            return Ok(());
        };
        // What is freed is what was allocated there; what was allocated before the recording is not counted.
        let (place, bytes) = if change.freed {
            match self.live.remove(&change.address) {
                Some(known) => known,
                None => return Ok(()),
            }
        } else {
            if self.live.len() >= MAX_ALLOCATIONS {
                return Ok(());
            }
            self.live
                .insert(change.address, (change.place, change.bytes));
            (change.place, change.bytes)
        };
        let (track, in_use) = match self.counters.get_mut(&place) {
            Some(counter) => counter,
            None => {
                let name = match (place.host, devices.title(place.agent)) {
                    (true, _) => "host memory in use".to_owned(),
                    (false, Some(title)) => format!("{title} memory in use"),
                    (false, None) => "memory in use".to_owned(),
                };
                let track = writer.bytes_counter(process, &name)?;
                self.counters.entry(place).or_insert((track, 0))
            }
        };
        *in_use = if change.freed {
            in_use.saturating_sub(bytes)
        } else {
            in_use.saturating_add(bytes)
        };
        writer.value(*track, change.time.0, *in_use as i64)
    }
}
