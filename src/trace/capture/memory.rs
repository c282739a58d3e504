//! The memory that a process has in use, as counters: one for each agent, one for the host, and one for memory that the runtime
//! places as it likes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use super::devices::Devices;
use crate::record::number_map::NumberMap;
use crate::record::{AgentId, Allocation, AllocationOperation, MemoryKind, Nanos};
use crate::trace::model::{
    CounterUnit, CounterValue, Parent, ProcessIndex, Stream, Track, TrackIndex, TrackKind,
};

/// Changes that are held back, to be passed on in the order of their times: threads are read one after the other.
const MAX_HELD: usize = 1 << 14;
/// Most allocations whose sizes are remembered for when they are freed.
const MAX_LIVE: usize = 1 << 20;

/// A place of memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Place {
    agent: AgentId,
    host: bool,
}

/// A change of the memory in use.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    time: Nanos,
    /// Changes of one time stay in order.
    number: u64,
    place: Place,
    address: u64,
    bytes: u64,
    freed: bool,
}

/// The memory that a process has in use.
#[derive(Debug, Default)]
pub(super) struct Memory {
    held: BinaryHeap<Reverse<Change>>,
    number: u64,
    counters: NumberMap<Place, (TrackIndex, u64)>,
    /// Where allocations lie and how large they are, by address.
    live: NumberMap<u64, (Place, u64)>,
}

impl Memory {
    /// Takes in a record, done at `time`.
    pub fn add(
        &mut self,
        stream: &mut Stream<'_>,
        process: ProcessIndex,
        devices: &Devices,
        record: &Allocation,
        time: Nanos,
    ) -> io::Result<()> {
        self.number += 1;
        let change = Change {
            time,
            number: self.number,
            place: Place {
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

    /// Passes on what is held back.
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
        // A free gives back what was allocated at its address; what was allocated before the recording is not counted.
        let (place, bytes) = if change.freed {
            match self.live.remove(&change.address) {
                Some(known) => known,
                None => return Ok(()),
            }
        } else {
            if self.live.len() >= MAX_LIVE {
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
                let track = stream.new_track(&Track {
                    parent: Parent::Process(process),
                    name: &name,
                    kind: TrackKind::Counter(CounterUnit::Bytes),
                    order: None,
                })?;
                self.counters.entry(place).or_insert((track, 0))
            }
        };
        *in_use = if change.freed {
            in_use.saturating_sub(bytes)
        } else {
            in_use.saturating_add(bytes)
        };
        stream
            .consumer
            .value(*track, change.time, CounterValue::Int(*in_use as i64))
    }
}
