//! Records of gputrail as all libraries look at them that translate them: read once, with what belongs together, and with
//! their meaning computed.
//!
//! A [`Reader`] reads the batches of a buffer of joined records, and gives each record to a [`Consumer`], which fills the structures of
//! its API.

mod ranges;
mod work;

pub use ranges::{RangeEvent, Ranges};
pub use work::{End, Joined, Transfer, is_migration, local_memory, workgroup, workgroups};

use crate::functions::{Arguments, translation};
use gputrail_record::{
    self as record, AgentId, Allocation, Api, ChildKernel, Context, ContextId, CorrelationId,
    Domain, Environment, ExternalCorrelation, KernelDispatch, Kind, Marker, MemoryCopy, MemorySet,
    Operation, Overhead, Preemption, Queue, Record, RecordRef, Retirement, Stream, Synchronization,
    Unfinished, UnifiedMemoryCounter, WorkId,
};
use gputrail_tool::{Batch, Callback, WorkTimes, arguments_of_record, describe};
use std::collections::HashMap;

/// The most kernels launched by kernels that are followed until they have completed.
const MOST_CHILDREN: usize = 1 << 16;

/// The translation of an API: it is given the records, and fills the structures of those that the API has.
#[allow(
    unused_variables,
    reason = "an API leaves out what it has no records of"
)]
pub trait Consumer {
    /// A call, with its arguments if they were recorded.
    fn call(&mut self, call: &Api, arguments: Option<&Arguments>) {}
    /// A kernel; one that a kernel has launched comes with that.
    fn kernel(&mut self, kernel: Joined<'_, KernelDispatch>, parent: Option<ChildKernel>) {}
    /// A copy, map or migration.
    fn copy(&mut self, copy: Joined<'_, MemoryCopy>) {}
    /// A fill.
    fn fill(&mut self, fill: Joined<'_, MemorySet>) {}
    /// A wait of the host, or a marker or barrier in a queue.
    fn wait(&mut self, wait: &Synchronization) {}
    /// An allocation or release of memory.
    fn allocation(&mut self, allocation: &Allocation) {}
    /// A counter of managed memory.
    fn managed_memory(&mut self, counter: &UnifiedMemoryCounter) {}
    /// An external id of a call. It comes before the record of the call.
    fn external(&mut self, external: &ExternalCorrelation) {}
    /// Time that tools and compilers take.
    fn overhead(&mut self, overhead: &Overhead) {}
    /// A marker, or an end of a range.
    fn marker(&mut self, marker: &Marker) {}
    /// A reading of an agent's clocks and temperatures.
    fn environment(&mut self, reading: &Environment) {}
    /// A workgroup was preempted, or resumed.
    fn preemption(&mut self, preemption: &Preemption) {}
    /// All work of a call has completed.
    fn retirement(&mut self, retirement: &Retirement) {}
}

/// Reads the batches of a buffer, one after the other.
#[derive(Default)]
pub struct Reader<C> {
    /// The consumer.
    pub to: C,
    arguments: NextArguments,
    /// Kernels that kernels have launched, until they have completed.
    children: HashMap<WorkId, ChildKernel>,
}

impl<C: Consumer> Reader<C> {
    /// A reader for a consumer.
    pub fn new(to: C) -> Reader<C> {
        Reader {
            to,
            arguments: NextArguments::default(),
            children: HashMap::new(),
        }
    }

    /// Reads the records of a batch.
    pub fn read(&mut self, batch: Batch<'_>) {
        batch.records().for_each(|record| self.record(record));
    }

    fn record(&mut self, of: RecordRef<'_>) {
        let times = WorkTimes::of(of).unwrap_or_default();
        if times.unfinished == Unfinished::AT_FLUSH {
            // It comes again when the work has completed.
            return;
        }
        let to = &mut self.to;
        match of.kind() {
            Kind::ARGUMENTS => self.arguments.keep(of),
            Kind::API => each(of, |call: &Api| {
                to.call(call, self.arguments.take(call).as_ref());
            }),
            Kind::CHILD_KERNEL => each(of, |child: &ChildKernel| {
                if self.children.len() < MOST_CHILDREN {
                    self.children.insert(child.work, *child);
                }
            }),
            Kind::KERNEL_DISPATCH => each(of, |record: &KernelDispatch| {
                let parent = self.children.remove(&record.work.id);
                to.kernel(Joined { record, times }, parent);
            }),
            Kind::MEMORY_COPY => each(of, |record| to.copy(Joined { record, times })),
            Kind::MEMORY_SET => each(of, |record| to.fill(Joined { record, times })),
            Kind::SYNCHRONIZATION => each(of, |wait| to.wait(wait)),
            Kind::MEMORY_ALLOCATION => each(of, |one| to.allocation(one)),
            Kind::UNIFIED_MEMORY_COUNTER => each(of, |counter| to.managed_memory(counter)),
            Kind::EXTERNAL_CORRELATION => each(of, |external| to.external(external)),
            Kind::OVERHEAD => each(of, |overhead| to.overhead(overhead)),
            Kind::MARKER => each(of, |marker| to.marker(marker)),
            Kind::ENVIRONMENT => each(of, |reading| to.environment(reading)),
            Kind::PREEMPTION => each(of, |one| to.preemption(one)),
            Kind::RETIREMENT => each(of, |one| to.retirement(one)),
            _ => {}
        }
    }
}

/// Calls `put` with the record, if it is an `R`.
fn each<R: Record>(record: RecordRef<'_>, put: impl FnOnce(&R)) {
    if let Some(record) = record.view::<R>() {
        put(&record);
    }
}

/// The agent of an allocation; where the runtime decides, the first one of the context.
pub fn agent_of(one: &Allocation) -> AgentId {
    if one.agent.is_some() {
        return one.agent;
    }
    describe::<Context>(one.context).map_or(AgentId::NONE, |context| context.agent)
}

/// The stream that a callback is about, or else the queue if it is one: its id, its handle and its context.
pub fn stream_of(callback: &Callback<'_>) -> Option<(u32, u64, ContextId)> {
    if let Some(stream) = callback.record::<Stream>() {
        return Some((stream.id.0, stream.handle, stream.context));
    }
    let queue = callback
        .record::<Queue>()
        .filter(|queue| is_stream(queue))?;
    Some((queue.id.0, queue.handle, queue.context))
}

/// Whether a queue is a stream of the program's. Where the runtime has streams, its queues are its own.
pub fn is_stream(queue: &Queue) -> bool {
    let context = describe::<Context>(queue.context);
    context.map_or(true, |context| context.domain == Domain::OPENCL)
}

/// The arguments of a call whose record comes next.
#[derive(Default)]
struct NextArguments(Option<(CorrelationId, Operation, Arguments)>);

impl NextArguments {
    /// Keeps the arguments that `record` has of a function which appears in other APIs.
    fn keep(&mut self, record: RecordRef<'_>) {
        self.0 = None;
        let Some(head) = record.read::<record::Arguments>() else {
            return;
        };
        if let (Some(translation), Ok(kept)) =
            (translation(head.operation), arguments_of_record(record))
        {
            let values = translation.recorded(kept.map(|one| (one.name(), one.value())));
            self.0 = Some((head.correlation, head.operation, values));
        }
    }

    /// The arguments of a call, if they have come.
    fn take(&mut self, call: &Api) -> Option<Arguments> {
        let kept = self.0.take();
        let of_call = |kept: &(CorrelationId, Operation, Arguments)| {
            (kept.0, kept.1) == (call.correlation, call.operation)
        };
        kept.filter(of_call).map(|(_, _, arguments)| arguments)
    }
}
