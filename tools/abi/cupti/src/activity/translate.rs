//! Records of gputrail into records of CUPTI.

use super::announce;
use super::environment::Environments;
use super::fields::{of_copy, of_kernel, of_work};
use super::kind::ActivityKind;
use super::markers::Markers;
use super::memory::Allocations;
use super::order::Order;
use super::record::{self, ActivityRecord, CdpKernel, Kernel, Memcpy, Memcpy2, Memset, object};
use super::selected;
use super::sink;
use super::unified;
use super::wanted::{self, is_anywhere, is_in};
use crate::cuda;
use crate::domain::{self, CallbackDomain};
use crate::objects::{self, stream_id};
use gputrail_abi::activity::{
    Consumer, Joined, Reader, Transfer, agent_of, is_migration, workgroup, workgroups,
};
use gputrail_abi::functions::{Arguments, error_of};
use gputrail_abi::names;
use gputrail_record::{
    AgentId, Allocation, AllocationOperation, Api, ChildKernel, CorrelationId, Domain, Environment,
    ExternalCorrelation, KernelDispatch, LaunchType, Marker, MemoryCopy, MemorySet, Overhead,
    OverheadKind, Preemption, Synchronization, SynchronizationType, TransferKind,
    UnifiedMemoryCounter, UnifiedMemoryCounterKind, WorkHeader,
};
use gputrail_tool::{Batch, WorkTimes};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// `CUPTI_SYNCHRONIZATION_INVALID_VALUE`
const INVALID: u32 = u32::MAX;

/// Whether kernels say when they were queued and submitted.
pub static LATENCY: AtomicBool = AtomicBool::new(false);

/// Puts the records of a buffer, one after the other.
#[derive(Default)]
pub struct Translator {
    devices: HashMap<AgentId, u32>,
    allocations: Allocations,
    markers: Markers,
    environments: Environments,
    order: Order,
}

/// The low half of a correlation id, as callbacks have it too.
pub fn correlation(id: CorrelationId) -> u32 {
    id.0 as u32
}

/// Puts the records of a batch.
pub fn add(reader: &mut Reader<Translator>, batch: Batch<'_>) {
    announce::new_objects(wanted::anywhere(), false);
    announce::thread(batch.thread());
    reader.read(batch);
}

impl Consumer for Translator {
    fn call(&mut self, call: &Api, arguments: Option<&Arguments>) {
        announce::thread(call.thread);
        put_calls(call, arguments);
        self.order.called(call.correlation);
    }

    fn kernel(&mut self, kernel: Joined<'_, KernelDispatch>, parent: Option<ChildKernel>) {
        let kinds = [ActivityKind::CONCURRENT_KERNEL, ActivityKind::KERNEL];
        let context = kernel.work.context;
        let Some(kind) = kinds.into_iter().find(|kind| is_in(*kind, context)) else {
            return;
        };
        match parent {
            Some(parent) if kind == ActivityKind::CONCURRENT_KERNEL => self.child(kernel, &parent),
            Some(_) => {}
            None => self.dispatch(kind, kernel),
        }
    }

    fn copy(&mut self, copy: Joined<'_, MemoryCopy>) {
        if is_migration(&copy) {
            self.migration(copy);
            return;
        }
        let Some(transfer) = Transfer::of(&copy) else {
            return;
        };
        // CUpti_ActivityMemcpyKind
        let kind = match transfer.kind {
            TransferKind(known @ 0..=10) => known,
            _ => 0,
        };
        let (call, context) = (copy.work.correlation, copy.work.context);
        if transfer.kind == TransferKind::PEER_TO_PEER {
            if is_in(ActivityKind::MEMCPY2, context) {
                let record = of_copy!(Memcpy2, self.device(copy.work.agent), copy, kind, {
                    src_device_id: self.device(copy.source_agent),
                    dst_device_id: self.device(copy.destination_agent),
                    src_context_id: copy.source_context.0,
                    dst_context_id: copy.destination_context.0,
                });
                self.order.put(call, record);
            }
        } else if is_in(ActivityKind::MEMCPY, context) {
            let record = of_copy!(Memcpy, self.device(copy.work.agent), copy, kind, {
                runtime_correlation_id: correlation(call),
                copy_count: 1,
            });
            self.order.put(call, record);
        }
    }

    fn fill(&mut self, fill: Joined<'_, MemorySet>) {
        if is_in(ActivityKind::MEMSET, fill.work.context) {
            let record = of_work!(Memset, self.device(fill.work.agent), fill, {
                value: fill.value,
                bytes: fill.bytes,
                // CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC
                flags: fill.is_asynchronous().into(),
                memory_kind: fill.memory.0.into(),
            });
            self.order.put(fill.work.correlation, record);
        }
    }

    fn managed_memory(&mut self, counter: &UnifiedMemoryCounter) {
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

    /// A marker in a queue is an event.
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

    fn allocation(&mut self, one: &Allocation) {
        self.memory(one);
        if is_in(ActivityKind::MEMORY, one.context) {
            self.allocations.add(one);
        }
    }

    fn external(&mut self, external: &ExternalCorrelation) {
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

    fn overhead(&mut self, overhead: &Overhead) {
        put_overhead(overhead);
        self.compilation(overhead);
    }

    fn marker(&mut self, marker: &Marker) {
        self.markers.put(marker);
    }

    fn environment(&mut self, reading: &Environment) {
        if is_anywhere(ActivityKind::ENVIRONMENT) {
            self.environments.add(reading);
        }
    }

    fn preemption(&mut self, one: &Preemption) {
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
}

impl Translator {
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

    fn dispatch(&mut self, kind: ActivityKind, kernel: Joined<'_, KernelDispatch>) {
        let (queued, submitted) = latency(kernel.times);
        let record = of_kernel!(Kernel, self.device(kernel.work.agent), kernel, {
            kind: kind.0,
            priority: objects::priority(kernel.work.stream),
            local_memory_total_v2: kernel.private_memory_total,
            queued: queued,
            submitted: submitted,
            launch_type: launch(kernel.launch),
            is_shared_memory_carveout_requested: (kernel.carveout <= 100).into(),
            shared_memory_carveout_requested: match kernel.carveout {
                percent @ 0..=100 => percent,
                _ => 0,
            },
            shared_memory_executed: kernel.executed_local_memory,
        });
        self.order.put(kernel.work.correlation, record);
    }

    fn child(&mut self, kernel: Joined<'_, KernelDispatch>, parent: &ChildKernel) {
        let [parent_block_x, parent_block_y, parent_block_z] = parent.parent_workgroup;
        let record = of_kernel!(CdpKernel, self.device(kernel.work.agent), kernel, {
            parent_grid_id: parent.parent_grid,
            queued: kernel.times.queued.0,
            submitted: kernel.times.submitted.0,
            parent_block_x: parent_block_x,
            parent_block_y: parent_block_y,
            parent_block_z: parent_block_z,
        });
        self.order.put(kernel.work.correlation, record);
    }

    /// Pages of managed memory have moved.
    fn migration(&mut self, copy: Joined<'_, MemoryCopy>) {
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
        (record.start, record.end) = (copy.times.start.0, copy.times.end.0);
        record.address = copy.source_address;
        (record.src_id, record.dst_id) = (self.device(source), self.device(destination));
        record.stream_id = stream_id(copy.work.stream, copy.work.queue);
        record.process_id = std::process::id();
        // Pages of managed memory move because the host or a device accesses them: CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE
        record.flags = 2;
        sink::put(&record);
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

/// When a kernel was queued and submitted, if that is wanted.
fn latency(times: WorkTimes) -> (u64, u64) {
    if LATENCY.load(Ordering::Relaxed) {
        (times.queued.0, times.submitted.0)
    } else {
        (0, 0)
    }
}

/// A number that CUPTI has as an `int`.
fn signed(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

/// `CUpti_ActivityLaunchType`: other ways are regular.
fn launch(launch: LaunchType) -> u8 {
    match launch {
        LaunchType::COOPERATIVE_SINGLE_DEVICE | LaunchType::COOPERATIVE_MULTI_DEVICE => launch.0,
        _ => 0,
    }
}

/// Calls of OpenCL are the driver's, under gputrail's ids, and the runtime's, where it has a function that does the same. Those of
/// the simulated GPU's runtime are the runtime's, under gputrail's ids.
fn put_calls(call: &Api, arguments: Option<&Arguments>) {
    let own = match call.operation.domain {
        Domain::OPENCL => ActivityKind::DRIVER,
        Domain::SIM => ActivityKind::RUNTIME,
        _ => return,
    };
    // The id of the call in an API of CUDA, if it has one.
    let id_in = |domain| {
        let shown = cuda::shown(domain, call.operation)?;
        Some(shown.number(arguments))
    };
    let id = domain::FIRST + u32::from(call.operation.number);
    if own == ActivityKind::RUNTIME {
        if selected::is_wanted(own, id) {
            put_api(call, own, id, call.return_code as u32);
        }
        return;
    }
    let (status, driver) = (
        error_of(call.return_code),
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
