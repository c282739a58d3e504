//! Records of gputrail into records of the API, on the threads that deliver gputrail's buffers. Those of markers are made where callbacks
//! are called (`callbacks`).
//!
//! Work comes when it has completed, in one record. Work whose times its runtime does not tell has times of 0; work that had not
//! completed when the program ended has no record.

use crate::agents;
use crate::context::{BufferService, Services};
use crate::hip::{self, HipRecord, KeptArguments};
use crate::kinds;
use crate::payload;
use gputrail_abi::activity::{Consumer, Joined, Reader, Transfer};
use gputrail_abi::functions::{Arguments, error_of};
use gputrail_record::{
    self as record, Allocation, Api, ChildKernel, KernelDispatch, MemoryCopy, MemorySet,
    Retirement, WorkHeader, WorkRecord,
};
use gputrail_rocprofiler::{
    self as sdk, ApiRecord, AsyncCorrelationId, BufferCategory, BufferTracingKind as Kind,
    ContextId, CorrelationIdRetirementRecord, HIP_RESULT_BYTES, KernelDispatchInfo,
    KernelDispatchOperation, KernelDispatchRecord, MemoryAllocationOperation,
    MemoryAllocationRecord, MemoryCopyRecord, TracingOperation, UserData,
};
use gputrail_tool::{Batch, Drops, WorkTimes};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a record, as it says itself.
fn size_of_record<T>() -> u64 {
    size_of::<T>() as u64
}

/// Within this time, records that were written before have come.
const SETTLEMENT: Duration = Duration::from_millis(300);

/// Puts the records of a context's buffer, one after the other.
pub struct Translator {
    /// By kind: those that go to a buffer of the context.
    services: HashMap<Kind, BufferService>,
    of_calls: Arc<KeptArguments>,
    retirements: Retirements,
}

/// The ids that have retired, until all other records with them have come: those of other threads come in other batches.
#[derive(Default)]
struct Retirements {
    /// When calls ended whose ids have not retired.
    ends: HashMap<u64, u64>,
    /// Ids, and when their work had ended: those of the latest batches, and those from before the latest settlement.
    latest: Vec<(u64, u64)>,
    earlier: Vec<(u64, u64)>,
    settled: Option<Instant>,
}

impl Retirements {
    /// The ids that retire now, with the times: those of calls that have ended. `are_all_here` says that all records have come which
    /// were written before.
    fn settle(&mut self, are_all_here: bool) -> Vec<(u64, u64)> {
        self.settled = Some(Instant::now());
        if are_all_here {
            self.earlier.append(&mut self.latest);
        }
        let mut retired = Vec::new();
        for (id, time) in std::mem::take(&mut self.earlier) {
            match self.ends.remove(&id) {
                Some(end) => retired.push((id, time.max(end))),
                None => self.latest.push((id, time)),
            }
        }
        std::mem::swap(&mut self.earlier, &mut self.latest);
        retired
    }

    fn is_due(&self) -> bool {
        self.settled
            .is_none_or(|settled| settled.elapsed() > SETTLEMENT)
    }
}

/// Puts the records of a batch.
pub fn add(reader: &mut Reader<Translator>, batch: Batch<'_>) {
    if reader.to.retirements.is_due() {
        reader.to.settle(false);
    }
    reader.read(batch);
}

impl Translator {
    /// Of a context with these services. Records for buffers of other contexts are dropped, as by AMD's library.
    /// `of_calls` has the arguments for records that have any.
    pub fn new(
        context: ContextId,
        services: &Services,
        of_calls: Arc<KeptArguments>,
    ) -> Translator {
        let services = services.buffers.iter();
        let own = services.filter(|(_, service)| service.buffer.context == context);
        Translator {
            services: own
                .map(|(kind, service)| (*kind, service.clone()))
                .collect(),
            of_calls,
            retirements: Retirements::default(),
        }
    }

    /// Puts the retirements of ids whose other records have come. `are_all_here` says that all have which were written before.
    pub fn settle(&mut self, are_all_here: bool) {
        let kind = Kind::CORRELATION_ID_RETIREMENT;
        let Some(service) = self.services.get(&kind) else {
            return;
        };
        for (id, timestamp) in self.retirements.settle(are_all_here) {
            let record = CorrelationIdRetirementRecord {
                size: size_of_record::<CorrelationIdRetirementRecord>(),
                kind,
                timestamp,
                internal_correlation_id: id,
            };
            service.buffer.put(BufferCategory::TRACING, kind.0, &record);
        }
    }

    /// Counts what gputrail has dropped as drops of the buffers that it was for.
    pub fn count_dropped(&self, drops: &Drops) {
        let of = [
            (record::Kind::KERNEL_DISPATCH, Kind::KERNEL_DISPATCH),
            (record::Kind::MEMORY_SET, Kind::KERNEL_DISPATCH),
            (record::Kind::MEMORY_COPY, Kind::MEMORY_COPY),
            (record::Kind::MEMORY_ALLOCATION, Kind::MEMORY_ALLOCATION),
            (record::Kind::RETIREMENT, Kind::CORRELATION_ID_RETIREMENT),
            (record::Kind::API, Kind::HIP_RUNTIME_API),
            (record::Kind::API, Kind::HIP_RUNTIME_API_EXT),
            (record::Kind::API, Kind(kinds::OPENCL_API)),
            (record::Kind::API, Kind(kinds::SIMULATED_API)),
        ];
        for (kind, of) in of {
            let dropped = drops.of(kind);
            if dropped != 0
                && let Some(service) = self.services.get(&of)
            {
                service.buffer.count_dropped(dropped);
            }
        }
    }

    /// Puts a record, if a buffer is for its operation.
    fn put<R: Copy>(
        &self,
        kind: Kind,
        operation: TracingOperation,
        record: impl FnOnce(Kind, TracingOperation) -> R,
    ) {
        let service = self.services.get(&kind);
        if let Some(service) = service.filter(|service| service.operations.has(operation)) {
            let record = record(kind, operation);
            service.buffer.put(BufferCategory::TRACING, kind.0, &record);
        }
    }

    fn dispatch(
        &self,
        work: &WorkHeader,
        times: WorkTimes,
        info: impl FnOnce() -> KernelDispatchInfo,
    ) {
        let operation = KernelDispatchOperation::COMPLETE.0;
        self.put(Kind::KERNEL_DISPATCH, operation, |kind, operation| {
            KernelDispatchRecord {
                size: size_of_record::<KernelDispatchRecord>(),
                kind,
                operation,
                correlation_id: of_work(work),
                thread_id: work.thread.0.into(),
                start_timestamp: times.start.0,
                end_timestamp: times.end.0,
                dispatch_info: info(),
            }
        });
    }
}

/// Whether work is told of.
fn is_told<R: WorkRecord>(joined: &Joined<'_, R>) -> bool {
    joined.has_ended() && agents::is_told(joined.work().agent)
}

impl Consumer for Translator {
    fn call(&mut self, call: &Api, arguments: Option<&Arguments>) {
        if self.services.contains_key(&Kind::CORRELATION_ID_RETIREMENT) {
            let ends = &mut self.retirements.ends;
            ends.insert(call.correlation.0, call.end.0);
        }
        let correlation_id = sdk::CorrelationId {
            internal: call.correlation.0,
            external: UserData::from(call.external.0),
            ancestor: call.ancestor.0,
        };
        let record = |kind, operation| ApiRecord {
            size: size_of_record::<ApiRecord>(),
            kind,
            operation,
            correlation_id,
            start_timestamp: call.start.0,
            end_timestamp: call.end.0,
            thread_id: call.thread.0.into(),
        };
        if let Some(kind) = kinds::of_calls(call.operation.domain) {
            self.put(Kind(kind), call.operation.number.into(), record);
        }
        let Some(shown) = hip::shown(call.operation) else {
            return;
        };
        let operation = shown.number(arguments) as TracingOperation;
        self.put(Kind::HIP_RUNTIME_API, operation, record);
        if !self.services.contains_key(&Kind::HIP_RUNTIME_API_EXT) {
            return;
        }
        // A call that had begun before the context has none.
        let kept = self.of_calls.take(call.correlation.0);
        let (operation, arguments) = kept.unwrap_or((operation, [0; hip::ARGUMENT_BYTES / 8]));
        self.put(Kind::HIP_RUNTIME_API_EXT, operation, |kind, operation| {
            let mut record = HipRecord {
                size: size_of_record::<HipRecord>(),
                kind,
                operation,
                correlation_id,
                start_timestamp: call.start.0,
                end_timestamp: call.end.0,
                thread_id: call.thread.0.into(),
                arguments,
                result: [0; HIP_RESULT_BYTES / 8],
            };
            record.result[0] = error_of(call.return_code).into();
            record
        });
    }

    fn kernel(&mut self, kernel: Joined<'_, KernelDispatch>, _: Option<ChildKernel>) {
        if is_told(&kernel) {
            self.dispatch(&kernel.work, kernel.times, || {
                payload::dispatch_info(&kernel)
            });
        }
    }

    fn fill(&mut self, fill: Joined<'_, MemorySet>) {
        if is_told(&fill) {
            self.dispatch(&fill.work, fill.times, || payload::fill_info(&fill));
        }
    }

    fn copy(&mut self, copy: Joined<'_, MemoryCopy>) {
        let Some(shown) = Transfer::of(&copy).filter(|_| is_told(&copy)) else {
            return;
        };
        let operation = payload::direction(&shown).0;
        self.put(Kind::MEMORY_COPY, operation, |kind, operation| {
            let (from, to) = (payload::end(shown.from), payload::end(shown.to));
            MemoryCopyRecord {
                size: size_of_record::<MemoryCopyRecord>(),
                kind,
                operation,
                correlation_id: of_work(&copy.work),
                thread_id: copy.work.thread.0.into(),
                start_timestamp: copy.times.start.0,
                end_timestamp: copy.times.end.0,
                dst_agent_id: to.0,
                src_agent_id: from.0,
                bytes: copy.bytes,
                dst_address: to.1,
                src_address: from.1,
            }
        });
    }

    fn allocation(&mut self, one: &Allocation) {
        let operation = payload::allocation(one).filter(|_| agents::is_told(one.agent));
        let Some(MemoryAllocationOperation(operation)) = operation else {
            return;
        };
        self.put(Kind::MEMORY_ALLOCATION, operation, |kind, operation| {
            MemoryAllocationRecord {
                size: size_of_record::<MemoryAllocationRecord>(),
                kind,
                operation,
                correlation_id: sdk::CorrelationId {
                    internal: one.correlation.0,
                    external: UserData::from(one.external.0),
                    ancestor: 0,
                },
                thread_id: one.thread.0.into(),
                start_timestamp: one.start.0,
                end_timestamp: one.end.0,
                agent_id: payload::agent_of_memory(one),
                address: one.address,
                allocation_size: one.bytes,
            }
        });
    }

    fn retirement(&mut self, retirement: &Retirement) {
        let retired = (retirement.correlation.0, retirement.time.0);
        self.retirements.latest.push(retired);
    }
}

/// The ids of work.
fn of_work(work: &WorkHeader) -> AsyncCorrelationId {
    AsyncCorrelationId {
        internal: work.correlation.0,
        external: UserData::from(work.external.0),
    }
}
