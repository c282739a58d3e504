//! Managed memory: pages that move to whoever accesses them, by page faults.
//!
//! The pages of an allocation move together. A kernel that finds them elsewhere stalls at its start until they have
//! come. When they have moved to and fro [`THRASHES`] times, the driver reports that, then delays the next access of a
//! device, and from then on maps the pages into devices instead of moving them there.

use super::memory::Pointer;
use super::runtime::{Runtime, completion_buffers, count};
use super::thread::Thread;
use super::time::Moment;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::unified_memory;
use gputrail_record::*;
use std::collections::BTreeMap;

/// Bytes of a page.
const PAGE: u64 = 64 << 10;
/// The time to handle a batch of faults.
const FAULT: Nanos = Nanos(22_000);
/// The delay of a throttled access.
const THROTTLED: Nanos = Nanos(60_000);
/// Bandwidth of migrations, in bytes per nanosecond.
const BANDWIDTH: u64 = 18;
/// Moves of pages until they thrash.
const THRASHES: u32 = 4;

/// Where pages are, or who accesses them: the host, or a device by number.
pub(super) type Place = Option<usize>;

/// All managed allocations.
#[derive(Debug, Default)]
pub(super) struct Managed(BTreeMap<Pointer, Pages>);

/// The pages of an allocation.
#[derive(Debug)]
struct Pages {
    bytes: u64,
    place: Place,
    /// Devices that access them where they are.
    mapped: Vec<usize>,
    moves: u32,
}

/// An access that found pages elsewhere.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    address: Pointer,
    bytes: u64,
    by: Place,
    /// Where the pages were.
    at: Place,
    response: Response,
}

/// The driver's response to a fault.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Response {
    Move,
    /// Moves the pages, which did so before.
    Thrash,
    /// Delays the access, then moves the pages.
    Throttle,
    Map,
}

impl Managed {
    /// Adds an allocation, whose pages are the host's.
    pub(super) fn add(&mut self, address: Pointer, bytes: u64) {
        let pages = Pages {
            bytes,
            place: None,
            mapped: Vec::new(),
            moves: 0,
        };
        self.0.insert(address, pages);
    }

    pub(super) fn remove(&mut self, address: Pointer) {
        self.0.remove(&address);
    }

    /// An access to the pages of the allocation at `address`. `None` if they are there, or mapped.
    pub(super) fn access(&mut self, address: Pointer, by: Place) -> Option<Fault> {
        let pages = self.0.get_mut(&address)?;
        let is_mapped = by.is_some_and(|device| pages.mapped.contains(&device));
        if pages.place == by || is_mapped {
            return None;
        }
        pages.moves += 1;
        let response = match by {
            Some(_) if pages.moves == THRASHES => Response::Thrash,
            Some(_) if pages.moves == THRASHES + 1 => Response::Throttle,
            Some(_) if pages.moves > THRASHES + 1 => Response::Map,
            _ => Response::Move,
        };
        let fault = Fault {
            address,
            bytes: pages.bytes,
            by,
            at: pages.place,
            response,
        };
        match (response, by) {
            (Response::Map, Some(device)) => pages.mapped.push(device),
            _ => {
                pages.place = by;
                pages.mapped.clear();
            }
        }
        Some(fault)
    }
}

impl Fault {
    /// The time that pages take to move.
    fn move_time(&self) -> Nanos {
        match self.response {
            Response::Map => Nanos(0),
            _ => Nanos(self.bytes / BANDWIDTH),
        }
    }

    /// The delay before the fault is handled.
    fn delay(&self) -> Nanos {
        match self.response {
            Response::Throttle => THROTTLED,
            _ => Nanos(0),
        }
    }

    /// The time that the access waits.
    pub(super) fn stall(&self) -> Nanos {
        Nanos(self.delay().0 + FAULT.0 + self.move_time().0)
    }
}

impl Thread {
    /// Reads managed memory on the host.
    pub(super) async fn read_managed(&mut self, address: Pointer) {
        let fault = self.runtime.managed.borrow_mut().access(address, None);
        if let Some(fault) = fault {
            let (runtime, start) = (self.runtime.clone(), self.runtime.now());
            runtime.executor.sleep(fault.stall()).await;
            runtime.keep_room();
            runtime.record_fault(&mut self.host(), &fault, start);
        }
    }
}

impl Runtime {
    /// Writes the records of a fault that occurred at `start`: its counters, and the migration as a copy.
    pub(super) fn record_fault(&self, host: &mut HostThread, fault: &Fault, start: Moment) {
        let agent = |place: Place| place.map_or(AgentId::NONE, |device| self.devices[device].agent);
        let (handled, end) = (start + fault.delay(), start + fault.stall());
        let pages = fault.bytes.div_ceil(PAGE);
        let faults = match fault.by {
            None => UnifiedMemoryCounterKind::HOST_PAGE_FAULT,
            Some(_) => UnifiedMemoryCounterKind::DEVICE_PAGE_FAULT,
        };
        let response = match fault.response {
            Response::Move => None,
            Response::Thrash => Some(UnifiedMemoryCounterKind::THRASHING),
            Response::Throttle => Some(UnifiedMemoryCounterKind::THROTTLING),
            Response::Map => Some(UnifiedMemoryCounterKind::REMOTE_MAP),
        };
        let place = (agent(fault.by), agent(fault.at));
        let enabled = |what: &UnifiedMemoryCounterKind| unified_memory::is_enabled(place, *what);
        let counters = [Some(faults), response].into_iter().flatten();
        for what in counters.filter(enabled) {
            let mut counter = UnifiedMemoryCounter::blank();
            let until = match what {
                UnifiedMemoryCounterKind::THROTTLING => handled,
                _ => end,
            };
            (counter.start, counter.end) = (self.ticks_at(start), self.ticks_at(until));
            (counter.value, counter.address) = (pages, fault.address.0);
            (counter.source_agent, counter.what) = (agent(fault.by), what);
            // The pages are mapped where they are.
            if what == UnifiedMemoryCounterKind::REMOTE_MAP {
                counter.destination_agent = agent(fault.at);
            }
            host.write(counter);
        }
        if fault.response != Response::Map {
            self.record_migration(host, fault, (handled + FAULT, end));
        }
    }

    fn record_migration(
        &self,
        host: &mut HostThread,
        fault: &Fault,
        (start, end): (Moment, Moment),
    ) {
        let Some(number) = fault.by.or(fault.at) else {
            return;
        };
        let device = &self.devices[number];
        let agent = |place: Place| place.map_or(AgentId::NONE, |device| self.devices[device].agent);
        let mut copy = MemoryCopy::blank();
        copy.header = copy.header.with(flags::ASYNCHRONOUS);
        copy.work = WorkHeader {
            id: host.new_work(),
            enqueued: self.ticks_at(start),
            agent: device.agent,
            context: device.context,
            queue: device.migrations,
            thread: host.thread(),
            ..WorkHeader::default()
        };
        copy.bytes = fault.bytes;
        (copy.source_address, copy.destination_address) = (fault.address.0, fault.address.0);
        (copy.source_agent, copy.destination_agent) = (agent(fault.at), agent(fault.by));
        (copy.source_memory, copy.destination_memory) = (MemoryKind::MANAGED, MemoryKind::MANAGED);
        copy.transfer = match (fault.at, fault.by) {
            (None, _) => TransferKind::HOST_TO_DEVICE,
            (_, None) => TransferKind::DEVICE_TO_HOST,
            _ => TransferKind::PEER_TO_PEER,
        };
        let buffers = completion_buffers(host, Kind::MEMORY_COPY);
        host.write(copy);
        count(&self.counts.copies);
        let mut clock = device.clock.borrow_mut();
        let mut completion = Completion::blank();
        (completion.work, completion.agent) = (copy.work.id, device.agent);
        completion.start = clock.read(start);
        (completion.queued, completion.submitted) = (completion.start, completion.start);
        completion.end = clock.read(end);
        completion.completed = self.ticks_at(end);
        host.write_to(buffers, completion);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Pointer = Pointer(0x1000);

    fn managed() -> Managed {
        let mut managed = Managed::default();
        managed.add(ADDRESS, 1 << 20);
        managed
    }

    #[test]
    fn pages_move_to_who_accesses_them() {
        let mut managed = managed();
        assert_eq!(managed.access(ADDRESS, None), None);
        let moved = managed.access(ADDRESS, Some(1)).unwrap();
        assert_eq!(
            (moved.at, moved.by, moved.response),
            (None, Some(1), Response::Move)
        );
        assert_eq!(managed.access(ADDRESS, Some(1)), None);
        assert_eq!(managed.access(ADDRESS, None).unwrap().at, Some(1));
        managed.remove(ADDRESS);
        assert_eq!(managed.access(ADDRESS, Some(0)), None);
    }

    #[test]
    fn pages_that_thrash_are_throttled_and_then_mapped() {
        let mut managed = managed();
        let mut responses = Vec::new();
        for turn in 0..8 {
            let fault = managed.access(ADDRESS, Some(turn % 2));
            responses.push(fault.map(|fault| fault.response));
        }
        use Response::*;
        let expected = [Move, Move, Move, Thrash, Throttle, Map].map(Some);
        assert_eq!(responses[..6], expected);
        assert_eq!(responses[6..], [None, None]);
        // The host never maps, and takes the pages from those that do.
        assert_eq!(managed.access(ADDRESS, None).unwrap().response, Move);
        assert_eq!(managed.access(ADDRESS, Some(1)).unwrap().response, Map);
    }
}
