//! Activity records: the buffers that CUPTI asks for and returns, and the translation of its records into ours.
//!
//! A buffer comes back when it is full, at a flush, and now and then, on a thread of CUPTI's or on the one that flushes.
//! Its records are translated there and then. Nothing waits: a record for which a lane has no room is dropped and
//! counted.

use super::callbacks::Inside;
use super::ffi::{self, call};
use super::objects::{OBJECTS, Objects, StreamIds};
use super::pool::{self, Pool};
use super::recent::RecentCalls;
use super::records::{self, Copy, Kernel, Memory, Overhead, PeerCopy, Set};
use super::session::{Reading, Session, current_session};
use crate::capture::names::Names;
use crate::clock;
use crate::collect::correlation::HostThread;
use crate::collect::outstanding::completion_header;
use crate::collect::process;
use crate::collect::switchboard::Buffers;
use crate::platform::inside::contain;
use crate::record::{
    Allocation, AllocationOperation, Completion, DeviceTime, KernelDispatch, Kind, LaunchType,
    MemoryCopy, MemoryKind, MemorySet, OverheadKind, Ticks, TransferKind, Unfinished, WorkHeader,
    flags,
};
use core::ffi::c_void;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// The calls that CUPTI's records may belong to.
pub(super) static RECENT: RecentCalls = RecentCalls::new();
static POOL: Pool = Pool::new();
/// The records that are missing from the recording.
pub(super) static COUNTS: Counts = Counts::new();

/// Counts of records that were left out, or that lack something.
pub(super) struct Counts {
    dropped: AtomicU64,
    before: AtomicU64,
    untimed: AtomicU64,
    without_call: AtomicU64,
    malformed: AtomicU64,
    unwritten: AtomicU64,
}

impl Counts {
    const fn new() -> Counts {
        Counts {
            dropped: AtomicU64::new(0),
            before: AtomicU64::new(0),
            untimed: AtomicU64::new(0),
            without_call: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            unwritten: AtomicU64::new(0),
        }
    }

    /// A sentence for each count that is not 0, and whether it is a loss.
    pub fn describe(&self) -> Vec<(String, bool)> {
        let all = [
            (
                &self.dropped,
                true,
                "activity records were dropped by CUPTI",
            ),
            (
                &self.unwritten,
                true,
                "buffers of activity records came after the end",
            ),
            (
                &self.malformed,
                true,
                "buffers of activity records could not be read to their end",
            ),
            (
                &self.before,
                false,
                "activity records from before the start were left out",
            ),
            (
                &self.untimed,
                false,
                "activity records have no times, and are not drawn",
            ),
            (
                &self.without_call,
                false,
                "activity records belong to no recorded call",
            ),
        ];
        let refused = POOL.refused();
        let full = format!(
            "CUDA: {refused} requests of CUPTI found no free buffer; the records that it put there are lost"
        );
        let mut texts: Vec<_> = (refused > 0).then_some((full, true)).into_iter().collect();
        for (count, is_loss, text) in all {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                texts.push((format!("CUDA: {count} {text}"), is_loss));
            }
        }
        texts
    }
}

fn count(one: &AtomicU64) {
    one.fetch_add(1, Ordering::Relaxed);
}

/// Maps the memory of buffers and calls.
pub(super) fn open() -> io::Result<()> {
    POOL.open()?;
    RECENT.open()
}

/// CUPTI asks for a buffer, perhaps inside of a call of the program.
pub(super) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    records: *mut usize,
) {
    // SAFETY: CUPTI's places for the answer. As many records as fit: 0.
    unsafe {
        buffer.write(POOL.take());
        size.write(pool::BYTES);
        records.write(0);
    }
}

/// CUPTI returns a buffer, of which the first `valid` bytes are records.
pub(super) unsafe extern "C" fn completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    _: usize,
    valid: usize,
) {
    contain(|| {
        let _inside = Inside::begin();
        if let Some(session) = current_session() {
            if valid > 0 && POOL.is_readable(buffer) {
                translate(session, buffer, valid.min(pool::BYTES));
            }
            let mut dropped = 0;
            let status = call!(
                session.cupti,
                cuptiActivityGetNumDroppedRecords(context, stream, &raw mut dropped)
            );
            if status == Some(ffi::SUCCESS) {
                COUNTS.dropped.fetch_add(dropped as u64, Ordering::Relaxed);
                count_dropped(dropped);
            }
        }
    });
    POOL.put(buffer);
}

/// Counts records that CUPTI dropped. It does not say of which kind they were: they count as completions.
fn count_dropped(dropped: usize) {
    const MAX_COUNTED: usize = 1 << 16;
    if let Some(board) = process::board() {
        (0..dropped.min(MAX_COUNTED)).for_each(|_| board.count_lost(Kind::COMPLETION));
    }
}

/// Reads the clock for all agents.
pub(super) fn read_clocks() {
    if let (Some(reading), Some(names)) = (
        current_session().and_then(Session::reading),
        process::names(),
    ) {
        note_reading(names, &OBJECTS.lock(), reading);
    }
}

fn note_reading(names: &Names, objects: &Objects, reading: Reading) {
    for agent in objects.agents() {
        names.clock_pair(reading.of_agent(agent));
    }
}

/// Translates the records of a buffer.
fn translate(session: &Session, buffer: *mut u8, valid: usize) {
    let (Some(thread), Some(names)) = (process::current(), process::names()) else {
        return count(&COUNTS.unwritten);
    };
    let mut objects = OBJECTS.lock();
    if let Some(reading) = session.reading_if_due() {
        note_reading(names, &objects, reading);
        objects.latest_reading = Some(reading);
    }
    let reading = objects.latest_reading.or(session.first_reading);
    let translated = thread.with(|host| {
        let mut translation = Translation {
            session,
            names,
            objects: &mut objects,
            host,
            now: clock::now(),
            reading,
            frequency: clock::frequency(),
        };
        translation.buffer(buffer, valid);
    });
    if translated.is_none() {
        count(&COUNTS.unwritten);
    }
}

/// The translation of one buffer.
struct Translation<'a> {
    session: &'a Session,
    names: &'a Names,
    objects: &'a mut Objects,
    host: &'a mut HostThread,
    now: Ticks,
    reading: Option<Reading>,
    /// Ticks in a second.
    frequency: u64,
}

/// Where a piece of work belongs.
struct Origin {
    header: WorkHeader,
    buffers: Buffers,
}

/// The times of a piece of work.
#[derive(Default)]
struct Times {
    queued: u64,
    submitted: u64,
    start: u64,
    end: u64,
}

impl Translation<'_> {
    fn buffer(&mut self, buffer: *mut u8, valid: usize) {
        let mut record = core::ptr::null_mut();
        loop {
            // The library walks its own records: it knows the size of each kind.
            let next = call!(
                self.session.cupti,
                cuptiActivityGetNextRecord(buffer, valid, &raw mut record)
            );
            match next {
                Some(ffi::SUCCESS) => {}
                Some(ffi::MAX_LIMIT_REACHED) => return,
                _ => return count(&COUNTS.malformed),
            }
            let offset = (record as usize).wrapping_sub(buffer as usize);
            let Some(room) = valid.checked_sub(offset).filter(|room| *room >= 4) else {
                return count(&COUNTS.malformed);
            };
            // SAFETY: inside of the buffer, which is ours until it is put back.
            let rest = unsafe { core::slice::from_raw_parts(record, room) };
            let kind = records::kind(rest);
            if let Some(bytes) = self
                .session
                .strides
                .of(kind)
                .and_then(|size| rest.get(..size))
            {
                self.record(kind, bytes);
            }
        }
    }

    fn record(&mut self, kind: u32, bytes: &[u8]) {
        match kind {
            ffi::KERNEL | ffi::CONCURRENT_KERNEL => self.kernel(&records::read(bytes)),
            ffi::MEMCPY => self.copy(&records::read(bytes)),
            ffi::MEMCPY_PEER => self.peer_copy(&records::read(bytes)),
            ffi::MEMSET => self.set(&records::read(bytes)),
            ffi::MEMORY => self.memory(&records::read(bytes)),
            ffi::OVERHEAD => self.overhead(&records::read(bytes)),
            _ => {}
        }
    }

    /// Whether an activity that ended at `end` is from before the start.
    fn is_early(&self, end: u64) -> bool {
        let early = end != 0 && end < self.session.begin;
        if early {
            count(&COUNTS.before);
        }
        early
    }

    /// The call of a piece of work, its place, and the buffers that wanted it. `which` is the place of its kind in
    /// [`super::recent::RecentCall::wanted`].
    fn origin(
        &mut self,
        (device, context, stream, graph): (u32, u32, u32, u32),
        (start, end): (u64, u64),
        correlation: u32,
        (kind, which): (Kind, usize),
    ) -> Origin {
        let agent = self.objects.agent(self.names, device);
        let StreamIds {
            context,
            queue,
            stream,
        } = self.objects.place(
            self.names,
            agent,
            (context, stream),
            graph != 0,
            (start, end),
        );
        let call = RECENT.get(correlation);
        let (call, buffers) = match call {
            Some(call) => (call, call.wanted[which]),
            None => {
                count(&COUNTS.without_call);
                (Default::default(), self.host.buffers_for(kind))
            }
        };
        let id = match RECENT.take_work(correlation, call.work) {
            true => call.work,
            false => self.host.new_work(),
        };
        let header = WorkHeader {
            id,
            correlation: call.correlation,
            external: call.external,
            enqueued: call.start,
            agent,
            context,
            queue,
            stream,
            thread: call.thread,
            command: 0,
            commands: 0,
        };
        Origin { header, buffers }
    }

    /// Writes the completion of work whose enqueue record was written.
    fn complete(&mut self, origin: &Origin, times: Times) {
        let unfinished = match (times.start, times.end) {
            (0, 0) => {
                count(&COUNTS.untimed);
                Unfinished::NO_TIMES
            }
            _ => Unfinished::NO,
        };
        let mut completion = Completion::blank();
        completion.header = completion_header(0, unfinished);
        completion.work = origin.header.id;
        completion.correlation = origin.header.correlation;
        completion.queued = DeviceTime(times.queued);
        completion.submitted = DeviceTime(times.submitted);
        completion.start = DeviceTime(times.start);
        completion.end = DeviceTime(times.end);
        (completion.completed, completion.agent) = (self.now, origin.header.agent);
        completion.unfinished = unfinished;
        self.host.write_late(origin.buffers, completion);
    }

    fn kernel(&mut self, record: &Kernel) {
        let record = *record;
        if self.is_early(record.end) {
            return;
        }
        let place = (record.device, record.context, record.stream, record.graph);
        let interval = (record.start, record.end);
        let of = (Kind::KERNEL_DISPATCH, 0);
        let mut origin = self.origin(place, interval, record.correlation, of);
        // SAFETY: CUPTI's name of the kernel, which lasts as long as the record.
        let kernel = unsafe { self.objects.kernel(self.names, record.name) };
        let left_out = self.host.board().left_out(kernel);
        origin.buffers = origin.buffers.without(left_out);
        let (grid, block) = (record.grid, record.block);
        let mut dispatch = KernelDispatch::blank();
        dispatch.header = dispatch.header.with(flags::LATE | flags::ASYNCHRONOUS);
        (dispatch.work, dispatch.kernel) = (origin.header, kernel);
        dispatch.workgroup = block;
        // CUPTI counts workgroups.
        dispatch.grid = core::array::from_fn(|at| u64::from(grid[at]) * u64::from(block[at]));
        dispatch.registers = record.registers.into();
        dispatch.static_local_memory = record.static_shared;
        dispatch.dynamic_local_memory = record.dynamic_shared;
        dispatch.private_memory = record.local_per_thread;
        dispatch.private_memory_total = match record.local_total_64 {
            0 => record.local_total.into(),
            total => total,
        };
        dispatch.grid_id = record.grid_id;
        dispatch.executed_local_memory = record.shared_executed;
        dispatch.cache_requested = record.cache_config & 15;
        dispatch.cache_executed = record.cache_config >> 4;
        dispatch.local_memory_config = record.shared_memory_config;
        dispatch.carveout = match record.carveout_is_requested {
            0 => 255,
            _ => record.carveout_requested,
        };
        dispatch.launch = match record.launch_type {
            1 => LaunchType::COOPERATIVE_SINGLE_DEVICE,
            2 => LaunchType::COOPERATIVE_MULTI_DEVICE,
            _ => LaunchType::REGULAR,
        };
        dispatch.dimensions = 3;
        self.host.write_late(origin.buffers, dispatch);
        self.complete(
            &origin,
            Times {
                queued: record.queued,
                submitted: record.submitted,
                start: record.start,
                end: record.end,
            },
        );
    }

    fn copy(&mut self, record: &Copy) {
        let record = *record;
        if self.is_early(record.end) {
            return;
        }
        let place = (record.device, record.context, record.stream, record.graph);
        let interval = (record.start, record.end);
        let origin = self.origin(place, interval, record.correlation, (Kind::MEMORY_COPY, 1));
        let agent = origin.header.agent;
        let of_device = |kind: u8| match memory_kind(kind.into()) {
            MemoryKind::PAGEABLE | MemoryKind::PINNED | MemoryKind::UNKNOWN => Default::default(),
            _ => agent,
        };
        let mut copy = MemoryCopy::blank();
        copy.header = copy.header.with(asynchronous(record.flags));
        (copy.work, copy.bytes) = (origin.header, record.bytes);
        copy.transfer = TransferKind(record.copy_kind);
        copy.source_memory = memory_kind(record.source_kind.into());
        copy.destination_memory = memory_kind(record.destination_kind.into());
        copy.source_agent = of_device(record.source_kind);
        copy.destination_agent = of_device(record.destination_kind);
        self.host.write_late(origin.buffers, copy);
        self.complete(&origin, of(record.start, record.end));
    }

    fn peer_copy(&mut self, record: &PeerCopy) {
        let record = *record;
        if self.is_early(record.end) {
            return;
        }
        let place = (record.device, record.context, record.stream, record.graph);
        let interval = (record.start, record.end);
        let origin = self.origin(place, interval, record.correlation, (Kind::MEMORY_COPY, 1));
        let mut copy = MemoryCopy::blank();
        copy.header = copy.header.with(asynchronous(record.flags));
        (copy.work, copy.bytes) = (origin.header, record.bytes);
        copy.transfer = TransferKind(record.copy_kind);
        copy.source_memory = memory_kind(record.source_kind.into());
        copy.destination_memory = memory_kind(record.destination_kind.into());
        copy.source_agent = self.objects.agent(self.names, record.source_device);
        copy.destination_agent = self.objects.agent(self.names, record.destination_device);
        self.host.write_late(origin.buffers, copy);
        self.complete(&origin, of(record.start, record.end));
    }

    fn set(&mut self, record: &Set) {
        let record = *record;
        if self.is_early(record.end) {
            return;
        }
        let place = (record.device, record.context, record.stream, record.graph);
        let interval = (record.start, record.end);
        let origin = self.origin(place, interval, record.correlation, (Kind::MEMORY_SET, 2));
        let mut set = MemorySet::blank();
        set.header = set.header.with(asynchronous(record.flags as u8));
        (set.work, set.bytes, set.value) = (origin.header, record.bytes, record.value);
        set.memory = memory_kind(record.memory_kind.into());
        self.host.write_late(origin.buffers, set);
        self.complete(&origin, of(record.start, record.end));
    }

    fn memory(&mut self, record: &Memory) {
        let record = *record;
        if self.is_early(record.timestamp) {
            return;
        }
        let call = RECENT.get(record.correlation).unwrap_or_default();
        let mut allocation = Allocation::blank();
        allocation.correlation = call.correlation;
        allocation.external = call.external;
        let time = self
            .reading
            .map(|reading| reading.to_ticks(record.timestamp, self.frequency));
        allocation.end = time.unwrap_or(self.now);
        allocation.start = match call.start.is_some() {
            true => call.start.min(allocation.end),
            false => allocation.end,
        };
        (allocation.address, allocation.bytes) = (record.address, record.bytes);
        allocation.memory = memory_kind(record.memory_kind);
        if !matches!(allocation.memory, MemoryKind::PAGEABLE | MemoryKind::PINNED) {
            allocation.agent = self.objects.agent(self.names, record.device);
        }
        allocation.thread = call.thread;
        allocation.operation = match record.operation {
            1 => AllocationOperation::ALLOCATE,
            2 => AllocationOperation::FREE,
            _ => return,
        };
        let buffers = self.host.buffers_for(Kind::MEMORY_ALLOCATION);
        self.host.write_late(buffers, allocation);
    }

    fn overhead(&mut self, record: &Overhead) {
        let record = *record;
        let Some(reading) = self.reading.filter(|_| !self.is_early(record.end)) else {
            return;
        };
        let call = RECENT.get(record.correlation).unwrap_or_default();
        let mut overhead = crate::record::Overhead::blank();
        overhead.correlation = call.correlation;
        overhead.thread = call.thread;
        overhead.start = reading.to_ticks(record.start, self.frequency);
        overhead.end = reading.to_ticks(record.end, self.frequency);
        overhead.what = match record.overhead_kind {
            1 => OverheadKind::COMPILATION,
            0x1_0000 => OverheadKind::FLUSH,
            0x2_0000 => OverheadKind::INSTRUMENTATION,
            0x3_0000 => OverheadKind::RESOURCE,
            _ => OverheadKind::UNKNOWN,
        };
        let buffers = self.host.buffers_for(Kind::OVERHEAD);
        self.host.write_late(buffers, overhead);
    }
}

fn of(start: u64, end: u64) -> Times {
    Times {
        start,
        end,
        ..Times::default()
    }
}

/// The flags of a copy or fill.
fn asynchronous(flags_of_cupti: u8) -> u8 {
    match flags_of_cupti & 1 {
        0 => flags::LATE,
        _ => flags::LATE | flags::ASYNCHRONOUS,
    }
}

/// CUPTI's kinds of memory have the numbers of ours.
fn memory_kind(kind: u32) -> MemoryKind {
    MemoryKind(u8::try_from(kind).unwrap_or(0))
}
