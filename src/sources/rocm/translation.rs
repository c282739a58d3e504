//! The translation of the SDK's records into ours.
//!
//! Pages that the driver has moved are copies without a call, page faults are counters of managed memory. What is done to scratch memory,
//! and the time that the queues of an agent are off the hardware, are overhead, with the words for it as detail.

use super::dispatches;
use super::kinds::RecordKinds;
use super::notes;
use super::objects::{KnownAllocation, KnownKernel, KnownObjects, Place};
use super::recent::{RECENT, RecentCall};
use super::session::{Reading, Session};
use gputrail_capture::names::Names;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::outstanding::completion_header;
use gputrail_collect::switchboard::Buffers;
use gputrail_record::{
    AgentId, Allocation, AllocationOperation, Completion, CorrelationId, DeviceTime,
    KernelDispatch, Kind, MemoryCopy, MemoryKind, Overhead, OverheadKind, Ticks, TransferKind,
    Unfinished, UnifiedMemoryCounter, UnifiedMemoryCounterKind, WorkHeader, WorkId, flags,
};
use gputrail_rocprofiler::{
    self as rocprofiler, BufferTracingKind, Dim3, Growing, KernelDispatchRecord,
    KfdEventDroppedEventsRecord, KfdPageFaultRecord, KfdPageMigrateRecord, KfdQueueRecord,
    MemoryAllocationRecord, MemoryCopyRecord, RecordHeader, ScratchMemoryRecord, UserData,
    before_1_0, read,
};

/// The translation of some records of one buffer.
pub(super) struct Translation<'a> {
    pub session: &'static Session,
    pub names: &'a Names,
    pub objects: &'a mut KnownObjects,
    pub host: &'a mut HostThread,
    pub now: Ticks,
    /// The reading of the SDK's clock by which its times become the host's.
    pub reading: Option<Reading>,
    /// Ticks in a second.
    pub frequency: u64,
}

/// The fields that the records of all work have.
struct WorkFields {
    agent: AgentId,
    place: Place,
    call: RecentCall,
    start: u64,
    end: u64,
}

/// A piece of work whose records are written.
struct WrittenWork {
    header: WorkHeader,
    buffers: Buffers,
    start: u64,
    end: u64,
}

/// An allocation or release, of any version.
struct AllocationFields {
    operation: i32,
    external: UserData,
    start: u64,
    end: u64,
    agent: rocprofiler::AgentId,
    address: u64,
    bytes: u64,
}

/// A change of scratch memory, of any version.
struct ScratchFields {
    operation: i32,
    external: UserData,
    start: u64,
    end: u64,
    agent: rocprofiler::AgentId,
    bytes: u64,
}

/// Reads a record.
///
/// # Safety
///
/// `header` leads to the record of type `T`, in some version.
unsafe fn record_of<T: Growing>(header: &RecordHeader) -> T {
    // SAFETY: a record that begins with its size (`# Safety`).
    unsafe { read(header.payload.cast_const().cast()) }
}

impl Translation<'_> {
    /// Translates a record of tracing.
    ///
    /// # Safety
    ///
    /// The payload of `header` is null or the record of its kind.
    pub unsafe fn record(&mut self, header: &RecordHeader) {
        if header.payload.is_null() {
            return notes::MALFORMED.add(1);
        }
        let session = self.session;
        let kinds: &RecordKinds = &session.kinds;
        let kind = Some(BufferTracingKind(header.kind as i32));
        // SAFETY: the record of this kind (`# Safety`).
        unsafe {
            if kind == kinds.kernels {
                self.kernel(&record_of(header));
            } else if kind == kinds.copies {
                self.copy(&record_of(header));
            } else if kind == kinds.allocations {
                let fields = self.allocation_fields(header);
                self.allocation(&fields);
            } else if kind == kinds.scratch {
                let fields = self.scratch_fields(header);
                self.scratch(&fields);
            } else if kind == kinds.migrations {
                self.migration(&record_of(header));
            } else if kind == kinds.faults {
                self.fault(&record_of(header));
            } else if kind == kinds.queues {
                self.queue(&record_of(header));
            } else if kind == kinds.dropped {
                let dropped: KfdEventDroppedEventsRecord = record_of(header);
                notes::DROPPED_BY_DRIVER.add(dropped.count.into());
            } else {
                notes::FOREIGN.add(1);
            }
        }
    }

    /// Whether an activity that ended at `end` is from before the start.
    fn is_early(&self, end: u64) -> bool {
        let early = end != 0 && end < self.session.begin;
        if early {
            notes::BEFORE_START.add(1);
        }
        early
    }

    /// The host's ticks at a time of the SDK's clock.
    fn ticks(&self, time: u64) -> Option<Ticks> {
        let reading = self.reading.filter(|_| time != 0)?;
        Some(reading.to_ticks(time, self.frequency))
    }

    /// The call whose id the SDK has brought back, if it is known.
    fn call(&self, external: UserData) -> RecentCall {
        let id = CorrelationId(external.value());
        let call = RECENT.get(id);
        if call.is_none() {
            notes::WITHOUT_CALL.add(1);
        }
        // A call that has left the table keeps its id.
        call.unwrap_or_else(|| RecentCall {
            correlation: id,
            is_call: true,
            ..RecentCall::default()
        })
    }

    /// The buffers that wanted `kind` when the call was made: those that want it now if the call is not known.
    fn buffers(&self, call: &RecentCall, kind: Kind) -> Buffers {
        match call.thread.is_some() {
            true => call.wanted(kind),
            false => self.host.buffers_for(kind),
        }
    }

    /// The call and place of a piece of work, and the buffers that want it; `None` if it is from before the start. `work` is the
    /// id that it has already, if it has one.
    fn begin(
        &mut self,
        fields: &WorkFields,
        kind: Kind,
        work: Option<WorkId>,
    ) -> Option<WrittenWork> {
        // Translated times of the device may be the other way round.
        let (start, end) = (fields.start.min(fields.end), fields.start.max(fields.end));
        if self.is_early(end) {
            return None;
        }
        let interval = (start, end);
        let place = self
            .objects
            .place(self.names, fields.agent, fields.place, interval);
        let call = &fields.call;
        let announced = call.work;
        let id = work.unwrap_or_else(|| {
            if RECENT.take_work(call.correlation, announced) {
                announced
            } else {
                self.host.new_work()
            }
        });
        let header = WorkHeader {
            id,
            correlation: call.call(),
            external: call.external,
            enqueued: call.start,
            agent: fields.agent,
            context: place.context,
            queue: place.queue,
            stream: place.stream,
            thread: call.thread,
            command: 0,
            commands: 0,
        };
        Some(WrittenWork {
            header,
            buffers: self.buffers(call, kind),
            start,
            end,
        })
    }

    /// Writes the completion of work whose enqueue record was written.
    fn complete(&mut self, work: &WrittenWork) {
        let unfinished = match (work.start, work.end) {
            (0, 0) => {
                notes::UNTIMED.add(1);
                Unfinished::NO_TIMES
            }
            _ => Unfinished::NO,
        };
        let mut completion = Completion::blank();
        completion.header = completion_header(0, unfinished);
        completion.work = work.header.id;
        completion.correlation = work.header.correlation;
        completion.start = DeviceTime(work.start);
        completion.end = DeviceTime(work.end);
        (completion.completed, completion.agent) = (self.now, work.header.agent);
        completion.unfinished = unfinished;
        self.host.write_late(work.buffers, completion);
    }

    fn kernel(&mut self, record: &KernelDispatchRecord) {
        let info = &record.dispatch_info;
        let call = self.call(record.correlation_id.external);
        let fields = WorkFields {
            agent: self.objects.agent(info.agent_id),
            place: place_of(&call, Place::Queue(info.queue_id.handle)),
            call,
            start: record.start_timestamp,
            end: record.end_timestamp,
        };
        let work = dispatches::work_of(info.dispatch_id);
        let Some(mut origin) = self.begin(&fields, Kind::KERNEL_DISPATCH, work) else {
            return;
        };
        let kernel: KnownKernel = self.objects.kernel(info.kernel_id).unwrap_or_default();
        let left_out = self.host.board().left_out(kernel.id);
        origin.buffers = origin.buffers.without(left_out);
        let mut dispatch = KernelDispatch::blank();
        dispatch.header = dispatch.header.with(flags::LATE | flags::ASYNCHRONOUS);
        (dispatch.work, dispatch.kernel) = (origin.header, kernel.id);
        dispatch.workgroup = sizes(info.workgroup_size);
        // In work-items, as ours.
        dispatch.grid = sizes(info.grid_size).map(|size| u64::from(size.max(1)));
        dispatch.registers = kernel.vector_registers;
        dispatch.accumulation_registers = small(kernel.accumulation_registers);
        dispatch.scalar_registers = small(kernel.scalar_registers);
        dispatch.static_local_memory = kernel.local_memory.min(info.group_segment_size);
        dispatch.dynamic_local_memory = info.group_segment_size - dispatch.static_local_memory;
        dispatch.private_memory = info.private_segment_size;
        dispatch.grid_id = i64::try_from(info.dispatch_id).unwrap_or(0);
        dispatch.carveout = 255;
        dispatch.dimensions = 3;
        self.host.write_late(origin.buffers, dispatch);
        self.complete(&origin);
    }

    fn copy(&mut self, record: &MemoryCopyRecord) {
        let source = self.objects.agent(record.src_agent_id);
        let destination = self.objects.agent(record.dst_agent_id);
        let call = self.call(record.correlation_id.external);
        let fields = WorkFields {
            agent: executing(source, destination),
            place: place_of(&call, Place::Copies),
            call,
            start: record.start_timestamp,
            end: record.end_timestamp,
        };
        let Some(origin) = self.begin(&fields, Kind::MEMORY_COPY, None) else {
            return;
        };
        let mut copy = MemoryCopy::blank();
        (copy.source_agent, copy.destination_agent) = (source, destination);
        copy.source_memory = memory_of(source);
        copy.destination_memory = memory_of(destination);
        copy.transfer = direction(source, destination);
        (copy.source_address, copy.destination_address) = (record.src_address, record.dst_address);
        self.write_copy(&origin, copy, record.bytes);
    }

    fn write_copy(&mut self, origin: &WrittenWork, mut copy: MemoryCopy, bytes: u64) {
        copy.header = copy.header.with(flags::LATE | flags::ASYNCHRONOUS);
        (copy.work, copy.bytes) = (origin.header, bytes);
        self.host.write_late(origin.buffers, copy);
        self.complete(origin);
    }

    /// # Safety
    ///
    /// `header` leads to a record of an allocation.
    unsafe fn allocation_fields(&self, header: &RecordHeader) -> AllocationFields {
        macro_rules! fields {
            ($type:ty) => {{
                // SAFETY: the record of the library's version (`# Safety`).
                let record: $type = unsafe { record_of(header) };
                AllocationFields {
                    operation: record.operation,
                    external: record.correlation_id.external,
                    start: record.start_timestamp,
                    end: record.end_timestamp,
                    agent: record.agent_id,
                    address: record.address,
                    bytes: record.allocation_size,
                }
            }};
        }
        if self.session.sdk.is_before_1_0() {
            fields!(before_1_0::MemoryAllocationRecord)
        } else {
            fields!(MemoryAllocationRecord)
        }
    }

    fn allocation(&mut self, record: &AllocationFields) {
        let is_free = self.session.kinds.frees.contains(&record.operation);
        let agent = self.objects.agent(record.agent);
        let mut memory = KnownAllocation {
            bytes: record.bytes,
            agent,
            memory: match agent.is_some() {
                true => MemoryKind::DEVICE,
                false => MemoryKind::PINNED,
            },
        };
        if is_free {
            // The SDK does not say how large the memory was.
            let known = self.objects.freed(record.address);
            if known.bytes != 0 {
                memory = known;
            }
        } else {
            self.objects.allocated(record.address, memory);
        }
        if self.is_early(record.end) {
            return;
        }
        let call = self.call(record.external);
        let (Some(start), Some(end)) = (self.ticks(record.start), self.ticks(record.end)) else {
            return notes::UNTIMED.add(1);
        };
        let mut allocation = Allocation::blank();
        allocation.operation = match is_free {
            true => AllocationOperation::FREE,
            false => AllocationOperation::ALLOCATE,
        };
        (allocation.correlation, allocation.external) = (call.call(), call.external);
        allocation.thread = call.thread;
        (allocation.start, allocation.end) = (start.min(end), end);
        (allocation.address, allocation.bytes) = (record.address, memory.bytes);
        (allocation.agent, allocation.memory) = (memory.agent, memory.memory);
        let buffers = self.buffers(&call, Kind::MEMORY_ALLOCATION);
        self.host.write_late(buffers, allocation);
    }

    /// # Safety
    ///
    /// `header` leads to a record of scratch memory.
    unsafe fn scratch_fields(&self, header: &RecordHeader) -> ScratchFields {
        macro_rules! fields {
            ($type:ty) => {{
                // SAFETY: the record of the library's version (`# Safety`).
                let record: $type = unsafe { record_of(header) };
                ScratchFields {
                    operation: record.operation,
                    external: record.correlation_id.external,
                    start: record.start_timestamp,
                    end: record.end_timestamp,
                    agent: record.agent_id,
                    bytes: record.allocation_size,
                }
            }};
        }
        if self.session.sdk.is_before_1_0() {
            fields!(before_1_0::ScratchMemoryRecord)
        } else {
            fields!(ScratchMemoryRecord)
        }
    }

    fn scratch(&mut self, record: &ScratchFields) {
        let call = self.call(record.external);
        let session = self.session;
        let what = session.kinds.scratch_words(record.operation);
        let detail = match record.bytes {
            0 => format!("scratch memory {what}"),
            bytes => format!("scratch memory {what}: {bytes} bytes"),
        };
        let agent = self.objects.agent(record.agent);
        self.overhead(&call, agent, (record.start, record.end), &detail);
    }

    fn overhead(
        &mut self,
        call: &RecentCall,
        agent: AgentId,
        (start, end): (u64, u64),
        detail: &str,
    ) {
        if self.is_early(end) {
            return;
        }
        let (Some(start), Some(end)) = (self.ticks(start), self.ticks(end)) else {
            return notes::UNTIMED.add(1);
        };
        let buffers = self.buffers(call, Kind::OVERHEAD);
        if buffers.is_none() {
            return;
        }
        let mut overhead = Overhead::blank();
        (overhead.correlation, overhead.thread) = (call.call(), call.thread);
        (overhead.start, overhead.end, overhead.agent) = (start.min(end), end, agent);
        overhead.what = OverheadKind::UNKNOWN;
        overhead.detail = self.names.string(detail);
        self.host.write_late(buffers, overhead);
    }

    /// Pages that the driver has moved.
    fn migration(&mut self, record: &KfdPageMigrateRecord) {
        let source = self.objects.agent(record.src_agent);
        let destination = self.objects.agent(record.dst_agent);
        let fields = WorkFields {
            agent: executing(source, destination),
            place: Place::Pages,
            call: RecentCall::default(),
            start: record.start_timestamp,
            end: record.end_timestamp,
        };
        let Some(origin) = self.begin(&fields, Kind::MEMORY_COPY, None) else {
            return;
        };
        let mut copy = MemoryCopy::blank();
        (copy.source_agent, copy.destination_agent) = (source, destination);
        copy.source_memory = MemoryKind::MANAGED;
        copy.destination_memory = MemoryKind::MANAGED;
        copy.transfer = direction(source, destination);
        copy.source_address = record.start_address;
        copy.destination_address = record.start_address;
        let bytes = record.end_address.saturating_sub(record.start_address);
        self.write_copy(&origin, copy, bytes);
    }

    /// A page fault of an agent.
    fn fault(&mut self, record: &KfdPageFaultRecord) {
        if self.is_early(record.end_timestamp) {
            return;
        }
        let times = (
            self.ticks(record.start_timestamp),
            self.ticks(record.end_timestamp),
        );
        let (Some(start), Some(end)) = times else {
            return notes::UNTIMED.add(1);
        };
        let mut counter = UnifiedMemoryCounter::blank();
        (counter.start, counter.end) = (start.min(end), end);
        (counter.value, counter.address) = (1, record.address);
        counter.source_agent = self.objects.agent(record.agent_id);
        counter.what = match counter.source_agent.is_some() {
            true => UnifiedMemoryCounterKind::DEVICE_PAGE_FAULT,
            false => UnifiedMemoryCounterKind::HOST_PAGE_FAULT,
        };
        let buffers = self.host.buffers_for(Kind::UNIFIED_MEMORY_COUNTER);
        self.host.write_late(buffers, counter);
    }

    /// The queues of an agent were off the hardware.
    fn queue(&mut self, record: &KfdQueueRecord) {
        let agent = self.objects.agent(record.agent_id);
        let session = self.session;
        let why = session.kinds.queue_words(record.operation);
        let detail = format!("queues of the GPU off the hardware: {why}");
        let times = (record.start_timestamp, record.end_timestamp);
        self.overhead(&RecentCall::default(), agent, times, &detail);
    }
}

/// The stream of the call, or else `other`.
fn place_of(call: &RecentCall, other: Place) -> Place {
    call.stream.checked_sub(1).map_or(other, Place::Stream)
}

fn sizes(dim: Dim3) -> [u32; 3] {
    [dim.x, dim.y, dim.z]
}

fn small(registers: u32) -> u16 {
    u16::try_from(registers).unwrap_or(u16::MAX)
}

/// The agent that copies: that of the destination if it is a GPU.
fn executing(source: AgentId, destination: AgentId) -> AgentId {
    match destination.is_some() {
        true => destination,
        false => source,
    }
}

/// The memory of a GPU; that of the host may be pinned or not.
fn memory_of(agent: AgentId) -> MemoryKind {
    match agent.is_some() {
        true => MemoryKind::DEVICE,
        false => MemoryKind::UNKNOWN,
    }
}

/// The direction of a copy; agents of the host are none.
fn direction(source: AgentId, destination: AgentId) -> TransferKind {
    match (source.is_some(), destination.is_some()) {
        (false, false) => TransferKind::HOST_TO_HOST,
        (false, true) => TransferKind::HOST_TO_DEVICE,
        (true, false) => TransferKind::DEVICE_TO_HOST,
        (true, true) if source == destination => TransferKind::DEVICE_TO_DEVICE,
        (true, true) => TransferKind::PEER_TO_PEER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_direction_of_a_copy_follows_from_its_agents() {
        let (host, one, two) = (AgentId::NONE, AgentId(1), AgentId(2));
        assert_eq!(direction(host, one), TransferKind::HOST_TO_DEVICE);
        assert_eq!(direction(one, host), TransferKind::DEVICE_TO_HOST);
        assert_eq!(direction(one, one), TransferKind::DEVICE_TO_DEVICE);
        assert_eq!(direction(one, two), TransferKind::PEER_TO_PEER);
        assert_eq!(direction(host, host), TransferKind::HOST_TO_HOST);
        assert_eq!((executing(host, one), executing(one, host)), (one, one));
    }

    #[test]
    fn work_is_shown_by_its_stream_if_it_is_known() {
        let mut call = RecentCall::default();
        assert_eq!(place_of(&call, Place::Queue(5)), Place::Queue(5));
        call.stream = 1;
        assert_eq!(place_of(&call, Place::Queue(5)), Place::Stream(0));
    }
}
