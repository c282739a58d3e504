//! Accesses of the host to managed memory, and the records of page faults and of the migrations that follow.

use super::host::completion_buffers;
use super::managed::{FAULT, Fault, PagePlace, Response};
use super::memory::Pointer;
use super::runtime::{Runtime, count};
use super::thread::SimThread;
use super::time::Moment;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::unified_memory;
use gputrail_record::*;

/// Bytes of a page.
const PAGE: u64 = 64 << 10;

/// The flags of CUPTI for a counter.
fn flags_of(what: UnifiedMemoryCounterKind, fault: &Fault) -> u32 {
    match what {
        // CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_WRITE: kernels add to the counts that the program reads.
        UnifiedMemoryCounterKind::DEVICE_PAGE_FAULT => 2,
        // CUPTI_ACTIVITY_FLAG_THRASHING_IN_CPU, _THROTTLING_IN_CPU
        UnifiedMemoryCounterKind::THRASHING => u32::from(fault.by.is_none() || fault.at.is_none()),
        UnifiedMemoryCounterKind::THROTTLING => u32::from(fault.by.is_none()),
        // CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_THRASHING
        UnifiedMemoryCounterKind::REMOTE_MAP => 2,
        _ => 0,
    }
}

impl SimThread {
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
        let agent =
            |place: PagePlace| place.map_or(AgentId::NONE, |device| self.devices[device].agent);
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
            counter.value = match what {
                UnifiedMemoryCounterKind::THRASHING | UnifiedMemoryCounterKind::REMOTE_MAP => {
                    fault.bytes
                }
                _ => pages,
            };
            counter.address = fault.address.0;
            (counter.source_agent, counter.what) = (agent(fault.by), what);
            counter.flags = flags_of(what, fault);
            // Pages are mapped where they are; they thrash between both places.
            if matches!(
                what,
                UnifiedMemoryCounterKind::REMOTE_MAP | UnifiedMemoryCounterKind::THRASHING
            ) {
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
        let agent =
            |place: PagePlace| place.map_or(AgentId::NONE, |device| self.devices[device].agent);
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
