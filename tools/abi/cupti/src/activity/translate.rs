//! Records of gputrail into records of CUPTI.

use super::announce;
use super::environment::Environments;
use super::kind::ActivityKind;
use super::markers::Markers;
use super::memory::Allocations;
use super::order::Order;
use super::record::{self, ActivityRecord, CdpKernel, Kernel, object};
use super::selected;
use super::sink;
use super::unified;
use super::wanted::{self, is_anywhere, is_in};
use crate::domain::{self, CallbackDomain};
use crate::objects::{self, stream_id};
use crate::{cuda, text};
use core::ffi::c_char;
use gputrail_abi::records::{NextArguments, agent_of, each};
use gputrail_record::{
    AgentId, Allocation, AllocationOperation, Api, ChildKernel, CorrelationId, Domain, Environment,
    ExternalCorrelation, Header, KernelDispatch, Kind, LaunchType, Marker, MemoryCopy, MemoryKind,
    MemorySet, Nanos, Overhead, OverheadKind, Preemption, RecordRef, Synchronization,
    SynchronizationType, TransferKind, Unfinished, UnifiedMemoryCounter, UnifiedMemoryCounterKind,
    WorkHeader, WorkId,
};
use gputrail_tool::{Batch, WorkTimes};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// `CUPTI_SYNCHRONIZATION_INVALID_VALUE`
const INVALID: u32 = u32::MAX;

/// Whether kernels say when they were queued and submitted.
pub static LATENCY: AtomicBool = AtomicBool::new(false);

/// Translates the batches of a buffer, one after the other.
#[derive(Default)]
pub struct Translator {
    devices: HashMap<AgentId, u32>,
    /// Kernels that kernels have launched, until they have completed.
    children: HashMap<WorkId, ChildKernel>,
    allocations: Allocations,
    markers: Markers,
    environments: Environments,
    order: Order,
    arguments: NextArguments,
}

/// The low half of a correlation id, as callbacks have it too.
pub fn correlation(id: CorrelationId) -> u32 {
    id.0 as u32
}

impl Translator {
    /// Puts the records of a batch.
    pub fn add(&mut self, batch: Batch<'_>) {
        announce::new_objects(wanted::anywhere(), false);
        announce::thread(batch.thread());
        for record in batch.records() {
            self.put(record);
        }
    }

    fn put(&mut self, record: RecordRef<'_>) {
        if times(record).unfinished == Unfinished::AT_FLUSH {
            // It comes again when the work has completed.
            return;
        }
        match record.kind() {
            Kind::ARGUMENTS => self.arguments.keep(record),
            Kind::API => each(record, |call: &Api| {
                self.call(call);
                self.order.called(call.correlation);
            }),
            Kind::KERNEL_DISPATCH => each(record, |kernel: &KernelDispatch| {
                self.kernel(kernel, times(record))
            }),
            Kind::MEMORY_COPY => {
                each(record, |copy: &MemoryCopy| self.copy(copy, times(record)));
            }
            Kind::MEMORY_SET => each(record, |set: &MemorySet| self.set(set, times(record))),
            Kind::MEMORY_ALLOCATION => each(record, |one: &Allocation| {
                self.memory(one);
                if is_in(ActivityKind::MEMORY, one.context) {
                    self.allocations.add(one);
                }
            }),
            Kind::SYNCHRONIZATION => each(record, |one: &Synchronization| self.wait(one)),
            Kind::CHILD_KERNEL => each(record, |child: &ChildKernel| {
                self.children.insert(child.work, *child);
            }),
            Kind::EXTERNAL_CORRELATION => each(record, put_external),
            Kind::OVERHEAD => each(record, |overhead: &Overhead| {
                put_overhead(overhead);
                self.compilation(overhead);
            }),
            Kind::MARKER => each(record, |marker: &Marker| self.markers.put(marker)),
            Kind::ENVIRONMENT => each(record, |reading: &Environment| {
                if is_anywhere(ActivityKind::ENVIRONMENT) {
                    self.environments.add(reading);
                }
            }),
            Kind::UNIFIED_MEMORY_COUNTER => each(record, |counter: &UnifiedMemoryCounter| {
                self.counter(counter);
            }),
            Kind::PREEMPTION => each(record, |one: &Preemption| put_preemption(one)),
            _ => {}
        }
    }

    /// Calls of OpenCL are the driver's, under gputrail's ids, and the runtime's, where it has a function that does the same. Those of
    /// the simulated GPU's runtime are the runtime's, under gputrail's ids.
    fn call(&mut self, call: &Api) {
        announce::thread(call.thread);
        let own = match call.operation.domain {
            Domain::OPENCL => ActivityKind::DRIVER,
            Domain::SIM => ActivityKind::RUNTIME,
            _ => return,
        };
        let kept = self.arguments.take(call);
        // The id of the call in an API of CUDA, if it has one.
        let id_in = |domain| {
            let shown = cuda::shown(domain, call.operation)?;
            Some(shown.number(kept.as_ref()))
        };
        let id = domain::FIRST + u32::from(call.operation.number);
        if own == ActivityKind::RUNTIME {
            if selected::is_wanted(own, id) {
                put_api(call, own, id, call.return_code as u32);
            }
            return;
        }
        let (status, driver) = (
            cuda::status(call.return_code),
            id_in(CallbackDomain::DRIVER_API),
        );
        let choice = driver.and_then(|id| selected::choice(own, id));
        match driver.filter(|_| choice == Some(true)) {
            // A program that has asked for a function of the driver gets it under that id.
            Some(id) => put_api(call, own, id, status),
            None if choice.is_none() && selected::is_wanted(own, id) => {
                put_api(call, own, id, call.return_code as u32);
            }
            None => {}
        }
        if let Some(id) = id_in(CallbackDomain::RUNTIME_API)
            && selected::is_wanted(ActivityKind::RUNTIME, id)
        {
            put_api(call, ActivityKind::RUNTIME, id, status);
        }
    }

    /// The number of an agent's device; of no agent the number that stands for none.
    fn device(&mut self, agent: AgentId) -> u32 {
        if let Some(known) = self.devices.get(&agent) {
            return *known;
        }
        let Ok(device) = objects::device_of(agent) else {
            return INVALID;
        };
        self.devices.insert(agent, device);
        device
    }

    fn kernel(&mut self, kernel: &KernelDispatch, times: WorkTimes) {
        let child = self.children.remove(&kernel.work.id);
        let kind = [ActivityKind::CONCURRENT_KERNEL, ActivityKind::KERNEL];
        let context = kernel.work.context;
        let Some(kind) = kind.into_iter().find(|kind| is_in(*kind, context)) else {
            return;
        };
        match child {
            Some(child) if kind == ActivityKind::CONCURRENT_KERNEL => {
                self.child(kernel, times, &child)
            }
            Some(_) => {}
            None => self.dispatch(kind, kernel, times),
        }
    }

    fn dispatch(&mut self, kind: ActivityKind, kernel: &KernelDispatch, times: WorkTimes) {
        let mut record = Kernel::blank();
        let work = &kernel.work;
        record.kind = kind.0;
        record.cache_config = kernel.cache_requested & 0xf | kernel.cache_executed << 4;
        record.shared_memory_config = kernel.local_memory_config;
        record.registers_per_thread = kernel.registers.try_into().unwrap_or(u16::MAX);
        (record.start, record.end) = (times.start.0, times.end.0);
        record.completed = times.end.0;
        record.device_id = self.device(work.agent);
        record.context_id = work.context.0;
        record.stream_id = stream_id(work.stream, work.queue);
        let (grid, block) = (blocks(kernel), block(kernel));
        [record.grid_x, record.grid_y, record.grid_z] = grid;
        [record.block_x, record.block_y, record.block_z] = block;
        record.static_shared_memory = signed(kernel.static_local_memory);
        record.dynamic_shared_memory = signed(kernel.dynamic_local_memory);
        record.local_memory_per_thread = kernel.private_memory;
        record.local_memory_total = kernel.private_memory_total.try_into().unwrap_or(u32::MAX);
        record.local_memory_total_v2 = kernel.private_memory_total;
        record.correlation_id = correlation(work.correlation);
        record.grid_id = kernel.grid_id;
        record.priority = objects::priority(work.stream);
        record.name = name(kernel);
        (record.queued, record.submitted) = latency(times);
        record.launch_type = launch(kernel.launch);
        record.is_shared_memory_carveout_requested = u8::from(kernel.carveout <= 100);
        record.shared_memory_carveout_requested = match kernel.carveout {
            percent @ 0..=100 => percent,
            _ => 0,
        };
        record.shared_memory_executed = kernel.executed_local_memory;
        self.order.put(work.correlation, record);
    }

    fn child(&mut self, kernel: &KernelDispatch, times: WorkTimes, child: &ChildKernel) {
        let mut record = CdpKernel::blank();
        let work = &kernel.work;
        record.cache_config = kernel.cache_requested & 0xf | kernel.cache_executed << 4;
        record.shared_memory_config = kernel.local_memory_config;
        record.registers_per_thread = kernel.registers.try_into().unwrap_or(u16::MAX);
        (record.start, record.end) = (times.start.0, times.end.0);
        record.completed = times.end.0;
        record.device_id = self.device(work.agent);
        record.context_id = work.context.0;
        record.stream_id = stream_id(work.stream, work.queue);
        let (grid, block) = (blocks(kernel), block(kernel));
        [record.grid_x, record.grid_y, record.grid_z] = grid;
        [record.block_x, record.block_y, record.block_z] = block;
        record.static_shared_memory = signed(kernel.static_local_memory);
        record.dynamic_shared_memory = signed(kernel.dynamic_local_memory);
        record.local_memory_per_thread = kernel.private_memory;
        record.local_memory_total = kernel.private_memory_total.try_into().unwrap_or(u32::MAX);
        record.correlation_id = correlation(work.correlation);
        (record.grid_id, record.parent_grid_id) = (kernel.grid_id, child.parent_grid);
        (record.queued, record.submitted) = (times.queued.0, times.submitted.0);
        [
            record.parent_block_x,
            record.parent_block_y,
            record.parent_block_z,
        ] = child.parent_workgroup;
        record.name = name(kernel);
        self.order.put(work.correlation, record);
    }

    fn copy(&mut self, copy: &MemoryCopy, times: WorkTimes) {
        let is_managed = |memory| memory == MemoryKind::MANAGED;
        if !copy.work.correlation.is_some()
            && is_managed(copy.source_memory)
            && is_managed(copy.destination_memory)
        {
            self.migration(copy, times);
            return;
        }
        let Some(kind) = copy_kind(copy.transfer) else {
            return;
        };
        let work = &copy.work;
        // CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC
        let flags = u8::from(is_asynchronous(copy.header));
        if copy.transfer == TransferKind::PEER_TO_PEER {
            if !is_in(ActivityKind::MEMCPY2, work.context) {
                return;
            }
            let mut record = record::Memcpy2::blank();
            (record.copy_kind, record.flags) = (kind, flags);
            record.src_kind = copy.source_memory.0;
            record.dst_kind = copy.destination_memory.0;
            record.bytes = copy.bytes;
            (record.start, record.end) = (times.start.0, times.end.0);
            record.device_id = self.device(work.agent);
            record.context_id = work.context.0;
            record.stream_id = stream_id(work.stream, work.queue);
            record.src_device_id = self.device(copy.source_agent);
            record.dst_device_id = self.device(copy.destination_agent);
            record.src_context_id = copy.source_context.0;
            record.dst_context_id = copy.destination_context.0;
            record.correlation_id = correlation(work.correlation);
            self.order.put(work.correlation, record);
        } else if is_in(ActivityKind::MEMCPY, work.context) {
            let mut record = record::Memcpy::blank();
            (record.copy_kind, record.flags) = (kind, flags);
            record.src_kind = copy.source_memory.0;
            record.dst_kind = copy.destination_memory.0;
            record.bytes = copy.bytes;
            (record.start, record.end) = (times.start.0, times.end.0);
            record.device_id = self.device(work.agent);
            record.context_id = work.context.0;
            record.stream_id = stream_id(work.stream, work.queue);
            record.correlation_id = correlation(work.correlation);
            record.runtime_correlation_id = record.correlation_id;
            record.copy_count = 1;
            self.order.put(work.correlation, record);
        }
    }

    /// Pages of managed memory have moved.
    fn migration(&mut self, copy: &MemoryCopy, times: WorkTimes) {
        if !is_anywhere(ActivityKind::UNIFIED_MEMORY_COUNTER) {
            return;
        }
        // CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD, _DTOH, _DTOD
        let kind = match copy.transfer {
            TransferKind::HOST_TO_DEVICE => 1,
            TransferKind::DEVICE_TO_HOST => 2,
            _ => 8,
        };
        let (source, destination) = (copy.source_agent, copy.destination_agent);
        if !unified::is_enabled(kind, [source, destination]) {
            return;
        }
        let mut record = record::UnifiedMemoryCounter::blank();
        record.counter_kind = kind;
        record.value = copy.bytes;
        (record.start, record.end) = (times.start.0, times.end.0);
        record.address = copy.source_address;
        (record.src_id, record.dst_id) = (self.device(source), self.device(destination));
        record.stream_id = stream_id(copy.work.stream, copy.work.queue);
        record.process_id = std::process::id();
        // Pages move since somebody accesses them: CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE
        record.flags = 2;
        sink::put(&record);
    }

    fn set(&mut self, set: &MemorySet, times: WorkTimes) {
        if !is_in(ActivityKind::MEMSET, set.work.context) {
            return;
        }
        let work = &set.work;
        let mut record = record::Memset::blank();
        (record.value, record.bytes) = (set.value, set.bytes);
        (record.start, record.end) = (times.start.0, times.end.0);
        record.device_id = self.device(work.agent);
        record.context_id = work.context.0;
        record.stream_id = stream_id(work.stream, work.queue);
        record.correlation_id = correlation(work.correlation);
        // CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC
        record.flags = u16::from(is_asynchronous(set.header));
        record.memory_kind = set.memory.0.into();
        self.order.put(work.correlation, record);
    }

    fn counter(&mut self, counter: &UnifiedMemoryCounter) {
        if !is_anywhere(ActivityKind::UNIFIED_MEMORY_COUNTER) {
            return;
        }
        let mut record = record::UnifiedMemoryCounter::blank();
        record.counter_kind = counter.what.0.into();
        record.value = match counter.what {
            UnifiedMemoryCounterKind::HOST_PAGE_FAULT => unified::program_counter(),
            _ => counter.value,
        };
        (record.start, record.end) = (counter.start.0, counter.end.0);
        record.address = counter.address;
        record.src_id = self.device(counter.source_agent);
        record.dst_id = self.device(counter.destination_agent);
        if counter.what == UnifiedMemoryCounterKind::THRASHING {
            // The devices that access the memory by turns; the host has no number.
            let devices = [record.src_id, record.dst_id];
            let devices = devices.into_iter().filter(|device| *device != INVALID);
            (record.src_id, record.dst_id) = (0, INVALID);
            for device in devices {
                record.src_id |= device;
                if let Some(bits) = record.processors.get_mut(device as usize / 64) {
                    *bits |= 1 << (device % 64);
                }
            }
        }
        record.process_id = std::process::id();
        record.flags = counter.flags;
        sink::put(&record);
    }

    /// A wait of the host, or a marker in a queue, which is an event.
    fn wait(&mut self, one: &Synchronization) {
        let work: &WorkHeader = &one.work;
        let stream = stream_id(work.stream, work.queue);
        match one.what {
            SynchronizationType(what @ 1..=4)
                if is_in(ActivityKind::SYNCHRONIZATION, work.context) =>
            {
                let mut record = record::Synchronization::blank();
                record.r#type = what.into();
                (record.start, record.end) = (work.enqueued.0, one.end.0);
                record.correlation_id = correlation(work.correlation);
                record.context_id = work.context.0;
                record.stream_id = if stream == 0 { INVALID } else { stream };
                record.cuda_event_id = if one.event.is_some() {
                    one.event.0
                } else {
                    INVALID
                };
                self.order.put(work.correlation, record);
            }
            SynchronizationType::MARKER if is_in(ActivityKind::CUDA_EVENT, work.context) => {
                let mut record = record::CudaEvent::blank();
                record.correlation_id = correlation(work.correlation);
                (record.context_id, record.stream_id) = (work.context.0, stream);
                record.event_id = one.event.0;
                record.device_id = self.device(work.agent);
                self.order.put(work.correlation, record);
            }
            _ => {}
        }
    }

    /// An allocation or a release, each a record of its own.
    fn memory(&mut self, one: &Allocation) {
        // CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, _RELEASE
        let operation = match one.operation {
            AllocationOperation::ALLOCATE => 1,
            AllocationOperation::FREE => 2,
            _ => return,
        };
        if !is_in(ActivityKind::MEMORY2, one.context) {
            return;
        }
        let mut record = record::Memory2::blank();
        record.memory_operation_type = operation;
        record.memory_kind = one.memory.0.into();
        record.correlation_id = correlation(one.correlation);
        (record.address, record.bytes) = (one.address, one.bytes);
        record.timestamp = one.start.0;
        record.process_id = std::process::id();
        record.device_id = self.device(agent_of(one));
        record.context_id = one.context.0;
        record.stream_id = INVALID;
        self.order.put(one.correlation, record);
    }

    /// A program is compiled.
    fn compilation(&mut self, overhead: &Overhead) {
        let is_compilation = matches!(overhead.what, OverheadKind::COMPILATION | OverheadKind::JIT);
        if !is_compilation || !is_anywhere(ActivityKind::JIT) {
            return;
        }
        let mut record = record::Jit::blank();
        // CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN, CUPTI_ACTIVITY_JIT_OPERATION_COMPILE
        (record.jit_entry_type, record.jit_operation_type) = (1, 3);
        record.device_id = self.device(overhead.agent);
        (record.start, record.end) = (overhead.start.0, overhead.end.0);
        record.correlation_id = correlation(overhead.correlation);
        record.jit_operation_correlation_id = overhead.correlation.0;
        record.process_id = std::process::id();
        record.thread_id = overhead.thread.0;
        self.order.put(overhead.correlation, record);
    }

    /// Puts what waits for records that belong to it; `all`, also allocations that have not ended.
    pub fn flush(&mut self, all: bool) {
        self.order.finish();
        self.environments.finish();
        if all {
            self.allocations.finish();
        }
    }
}

/// The times of work; none where the record has none.
fn times(record: RecordRef<'_>) -> WorkTimes {
    WorkTimes::of(record).unwrap_or_default()
}

/// When a kernel was queued and submitted, if that is wanted.
fn latency(times: WorkTimes) -> (u64, u64) {
    if LATENCY.load(Ordering::Relaxed) {
        (times.queued.0, times.submitted.0)
    } else {
        (Nanos(0).0, 0)
    }
}

fn is_asynchronous(header: Header) -> bool {
    header.flags & gputrail_record::flags::ASYNCHRONOUS != 0
}

fn signed(number: u32) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

fn name(kernel: &KernelDispatch) -> *const c_char {
    text::of_kernel(kernel.kernel)
}

/// The size of a workgroup; 1 where the runtime chose it and does not tell.
fn block(kernel: &KernelDispatch) -> [i32; 3] {
    kernel.workgroup.map(|size| signed(size.max(1)))
}

/// The number of workgroups.
fn blocks(kernel: &KernelDispatch) -> [i32; 3] {
    core::array::from_fn(|axis| {
        let size = u64::from(kernel.workgroup[axis].max(1));
        let count = kernel.grid[axis].div_ceil(size);
        count.try_into().unwrap_or(i32::MAX)
    })
}

/// `CUpti_ActivityLaunchType`: other ways are regular.
fn launch(launch: LaunchType) -> u8 {
    match launch {
        LaunchType::COOPERATIVE_SINGLE_DEVICE | LaunchType::COOPERATIVE_MULTI_DEVICE => launch.0,
        _ => 0,
    }
}

/// `CUpti_ActivityMemcpyKind`. Memory that is mapped is a copy to the host, and one from it when the map ends.
fn copy_kind(transfer: TransferKind) -> Option<u8> {
    Some(match transfer {
        TransferKind::MAP => TransferKind::DEVICE_TO_HOST.0,
        TransferKind::UNMAP => TransferKind::HOST_TO_DEVICE.0,
        TransferKind::FREE => return None,
        TransferKind(known @ 0..=10) => known,
        _ => 0,
    })
}

/// The record of a call under one id.
fn put_api(call: &Api, kind: ActivityKind, cbid: u32, status: u32) {
    let mut record = record::Api::blank();
    (record.kind, record.cbid) = (kind.0, cbid);
    (record.start, record.end) = (call.start.0, call.end.0);
    record.process_id = std::process::id();
    record.thread_id = call.thread.0;
    record.correlation_id = correlation(call.correlation);
    record.return_value = status;
    sink::put(&record);
}

fn put_external(external: &ExternalCorrelation) {
    let is_known = (1..=5).contains(&external.kind.0);
    if !is_anywhere(ActivityKind::EXTERNAL_CORRELATION) || !is_known {
        return;
    }
    let mut record = record::ExternalCorrelation::blank();
    record.external_kind = external.kind.0;
    record.external_id = external.external.0;
    record.correlation_id = correlation(external.correlation);
    sink::put(&record);
}

fn put_overhead(overhead: &Overhead) {
    if !is_anywhere(ActivityKind::OVERHEAD) {
        return;
    }
    let mut record = record::Overhead::blank();
    record.overhead_kind = match overhead.what {
        OverheadKind::COMPILATION | OverheadKind::JIT => 1,
        OverheadKind::FLUSH | OverheadKind::WAIT => 1 << 16,
        OverheadKind::INSTRUMENTATION => 2 << 16,
        OverheadKind::RESOURCE => 3 << 16,
        _ => 0,
    };
    record.object_kind = object::THREAD;
    record.object_id = [std::process::id(), overhead.thread.0, 0];
    (record.start, record.end) = (overhead.start.0, overhead.end.0);
    sink::put(&record);
}

fn put_preemption(one: &Preemption) {
    if !is_anywhere(ActivityKind::PREEMPTION) {
        return;
    }
    let mut record = record::Preemption::blank();
    record.preemption_kind = one.what.0.into();
    record.timestamp = one.time.0;
    record.grid_id = one.grid;
    [record.block_x, record.block_y, record.block_z] = one.workgroup;
    sink::put(&record);
}
