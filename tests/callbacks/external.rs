//! External ids: pushed for the process or for one context, and supplied on request.

use crate::api;
use crate::opencl::{OpenCl, Small, on_layer};
use gputrail_buffer::BlockView;
use gputrail_collect::context::{
    BufferOptions, Context, OperationSet, Payload, RecordBuffer, RecordSelection, Subscriber,
};
use gputrail_collect::external::{self, ExternalError};
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_interface::operations::{kernel_dispatch, memory_copy};
use gputrail_record::{
    Activity, Api, CorrelationId, ExternalCorrelation, ExternalId, ExternalKind, KernelDispatch,
    Kind, MemoryCopy, Operation, Synchronization,
};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Seen {
    calls: Vec<Api>,
    kernels: Vec<KernelDispatch>,
    copies: Vec<MemoryCopy>,
    waits: Vec<Synchronization>,
    pushed: Vec<ExternalCorrelation>,
}

/// A buffer of calls and work, and its records.
fn buffer() -> (RecordBuffer, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let into = seen.clone();
    let deliver = move |batch: &BlockView<'_>| {
        let mut seen = into.lock().unwrap();
        for record in batch.records() {
            match record.activity() {
                Activity::Api(call) => seen.calls.push(*call),
                Activity::KernelDispatch(kernel) => seen.kernels.push(*kernel),
                Activity::MemoryCopy(copy) => seen.copies.push(*copy),
                Activity::Synchronization(wait) => seen.waits.push(*wait),
                Activity::ExternalCorrelation(pushed) => seen.pushed.push(*pushed),
                _ => {}
            }
        }
    };
    let buffer = RecordBuffer::create(BufferOptions::default(), deliver).unwrap();
    (buffer, seen)
}

const PUSHED: ExternalId = ExternalId(5);

fn of_the_first(correlation: CorrelationId) -> ExternalId {
    ExternalId(1000 + correlation.0)
}

fn ids_are_supplied(opencl: &OpenCl) {
    let (buffer, seen) = buffer();
    let context = Context::new().unwrap();
    let kinds = [
        Kind::API,
        Kind::KERNEL_DISPATCH,
        Kind::MEMORY_COPY,
        Kind::SYNCHRONIZATION,
    ];
    context
        .trace_to(&buffer, RecordSelection::kinds(&kinds))
        .unwrap();
    let (launch, read) = (api("clEnqueueNDRangeKernel"), api("clEnqueueReadBuffer"));
    // The first subscriber to the requests takes precedence, if it supplies an id.
    let first = context
        .supply_external_ids(OperationSet::all(), move |asked| {
            assert_eq!(
                Some(asked.name),
                gputrail_sources::operations::name(asked.operation)
            );
            (asked.operation == launch).then(|| of_the_first(asked.correlation))
        })
        .unwrap();
    let mut both = OperationSet::default();
    both.set(launch, true);
    both.set(read, true);
    let second = context.supply_external_ids(both, |_| Some(ExternalId(9)));
    let second = second.unwrap();
    context.start().unwrap();

    let small = Small::new(opencl);
    external::push(ExternalKind::CUSTOM0, PUSHED).unwrap();
    small.launch();
    small.finish();
    small.read();
    context.enable_callback(&first, launch, false).unwrap();
    small.launch();
    drop((first, second));
    small.launch();
    small.finish();
    assert_eq!(external::current(), PUSHED);
    assert_eq!(external::pop(ExternalKind::CUSTOM0), Ok(PUSHED));
    small.release();
    context.stop().unwrap();
    buffer.flush().unwrap();

    let seen = seen.lock().unwrap();
    let of_kernels: Vec<_> = seen.kernels.iter().map(|one| one.work.external).collect();
    let first_kernel = of_the_first(seen.kernels[0].work.correlation);
    assert_eq!(of_kernels, [first_kernel, ExternalId(9), PUSHED]);
    let of_calls = |operation| {
        let calls = seen
            .calls
            .iter()
            .filter(move |call| call.operation == operation);
        calls.map(|call| call.external).collect::<Vec<_>>()
    };
    assert_eq!(
        of_calls(launch),
        of_kernels,
        "the call and its work have the same"
    );
    assert_eq!(of_calls(read), [ExternalId(9)]);
    assert_eq!(of_calls(api("clFinish")), [PUSHED; 2]);
    let copies: Vec<_> = seen.copies.iter().map(|copy| copy.work.external).collect();
    assert_eq!(copies, [ExternalId(9)]);
    // clFinish, the blocking read, clFinish.
    let waits: Vec<_> = seen.waits.iter().map(|wait| wait.work.external).collect();
    assert_eq!(waits, [PUSHED, ExternalId(9), PUSHED]);
}

#[test]
fn a_call_and_its_work_carry_the_id_that_a_tool_supplies() {
    needs!(a_call_and_its_work_carry_the_id_that_a_tool_supplies: Need::Pocl, Need::OpenClToolchain);
    let test = "external::a_call_and_its_work_carry_the_id_that_a_tool_supplies";
    on_layer(test, Driver::Threaded, ids_are_supplied);
}

/// A tool: a context with a buffer, and a subscriber to launches, kernels and copies.
struct Tool {
    context: Context,
    buffer: RecordBuffer,
    seen: Arc<Mutex<Seen>>,
    /// The external ids in callbacks and in their records.
    called_back: Arc<Mutex<Vec<(Operation, ExternalId, ExternalId)>>>,
    _subscriber: Subscriber,
}

impl Tool {
    fn new() -> Tool {
        let (buffer, seen) = buffer();
        let context = Context::new().unwrap();
        let kinds = [
            Kind::API,
            Kind::KERNEL_DISPATCH,
            Kind::MEMORY_COPY,
            Kind::SYNCHRONIZATION,
            Kind::EXTERNAL_CORRELATION,
        ];
        context
            .trace_to(&buffer, RecordSelection::kinds(&kinds))
            .unwrap();
        let called_back = Arc::new(Mutex::new(Vec::new()));
        let into = called_back.clone();
        let mut operations = OperationSet::default();
        for operation in [
            api("clEnqueueNDRangeKernel"),
            kernel_dispatch::ENQUEUE,
            kernel_dispatch::COMPLETE,
            memory_copy::COPY_ENQUEUE,
            memory_copy::COPY_COMPLETE,
        ] {
            operations.set(operation, true);
        }
        let call_back = context.call_back(operations, move |callback| {
            let in_record = match callback.payload {
                Payload::Record(record) => match record.activity() {
                    Activity::KernelDispatch(kernel) => kernel.work.external,
                    Activity::MemoryCopy(copy) => copy.work.external,
                    _ => callback.external,
                },
                _ => callback.external,
            };
            let ids = (callback.operation, callback.external, in_record);
            into.lock().unwrap().push(ids);
        });
        Tool {
            context,
            buffer,
            seen,
            called_back,
            _subscriber: call_back.unwrap(),
        }
    }

    /// The ids of the calls of `operation`.
    fn calls(&self, operation: Operation) -> Vec<u64> {
        let seen = self.seen.lock().unwrap();
        let calls = seen.calls.iter().filter(|call| call.operation == operation);
        calls.map(|call| call.external.0).collect()
    }

    fn kernels(&self) -> Vec<u64> {
        let seen = self.seen.lock().unwrap();
        seen.kernels.iter().map(|one| one.work.external.0).collect()
    }

    fn copies(&self) -> Vec<u64> {
        let seen = self.seen.lock().unwrap();
        seen.copies.iter().map(|one| one.work.external.0).collect()
    }

    /// The ids of callbacks of `operation`, of which an enqueue has two.
    fn called_back(&self, operation: Operation) -> Vec<u64> {
        let all = self.called_back.lock().unwrap();
        let of = all.iter().filter(|(of, ..)| *of == operation);
        of.map(|(_, id, in_record)| {
            assert_eq!(id, in_record, "{operation:?}");
            id.0
        })
        .collect()
    }
}

fn each_tool_has_its_ids(opencl: &OpenCl) {
    let [one, two, other] = [(); 3].map(|()| Tool::new());
    let all = [&one, &two, &other];
    let (launch, read) = (api("clEnqueueNDRangeKernel"), api("clEnqueueReadBuffer"));
    let small = Small::new(opencl);
    for tool in all {
        tool.context.start().unwrap();
    }
    external::push(ExternalKind::CUSTOM0, PUSHED).unwrap();
    let first = (ExternalKind::CUSTOM0, ExternalId(100));
    let second = (ExternalKind::CUSTOM1, ExternalId(200));
    one.context.push_external_id(first.0, first.1).unwrap();
    two.context.push_external_id(second.0, second.1).unwrap();
    assert_eq!(
        all.map(|tool| tool.context.external_id().0),
        [100, 200, 5],
        "also without a call"
    );
    small.launch();
    small.read();
    assert_eq!(one.context.pop_external_id(first.0), Ok(first.1));
    assert_eq!(
        two.context.pop_external_id(first.0),
        Err(ExternalError::Empty(first.0)),
        "the process has one of this kind, the context has none"
    );
    small.launch();
    assert_eq!(two.context.pop_external_id(second.0), Ok(second.1));
    external::pop(ExternalKind::CUSTOM0).unwrap();
    small.launch();
    small.finish();
    small.release();
    for tool in all {
        tool.context.stop().unwrap();
        tool.buffer.flush().unwrap();
    }

    let expected = [[100, 5, 0], [200, 200, 0], [5, 5, 0]];
    for (tool, ids) in all.into_iter().zip(expected) {
        assert_eq!(tool.kernels(), ids);
        assert_eq!(tool.calls(launch), ids);
        assert_eq!(
            (tool.calls(read), tool.copies()),
            (vec![ids[0]], vec![ids[0]])
        );
        let waits: Vec<u64> = {
            let seen = tool.seen.lock().unwrap();
            seen.waits.iter().map(|wait| wait.work.external.0).collect()
        };
        assert_eq!(waits, [ids[0], 0], "the blocking read, clFinish");
        let twice = ids.map(|id| [id; 2]).concat();
        assert_eq!(tool.called_back(launch), twice);
        assert_eq!(tool.called_back(kernel_dispatch::ENQUEUE), twice);
        let mut completed = tool.called_back(kernel_dispatch::COMPLETE);
        completed.sort_by_key(|id| ids.iter().position(|of| of == id));
        assert_eq!(completed, ids);
        assert_eq!(tool.called_back(memory_copy::COPY_COMPLETE), [ids[0]]);
    }
    // The records of kinds: a context's id replaces that of the process of the same kind.
    let of_kinds = all.map(|tool| {
        let seen = tool.seen.lock().unwrap();
        let first = seen.calls.iter().find(|call| call.operation == launch);
        let is_first = |one: &&ExternalCorrelation| one.correlation == first.unwrap().correlation;
        let of_first = seen.pushed.iter().filter(is_first);
        of_first
            .map(|one| (one.kind, one.external))
            .collect::<Vec<_>>()
    });
    let of_process = (ExternalKind::CUSTOM0, PUSHED);
    assert_eq!(
        of_kinds,
        [vec![first], vec![of_process, second], vec![of_process]]
    );
}

#[test]
fn each_context_sees_the_ids_that_its_tool_pushes_on_calls_work_waits_and_callbacks() {
    let name = "each_context_sees_the_ids_that_its_tool_pushes_on_calls_work_waits_and_callbacks";
    needs!(each_context_sees_the_ids_that_its_tool_pushes_on_calls_work_waits_and_callbacks: Need::Pocl, Need::OpenClToolchain);
    let test = format!("external::{name}");
    on_layer(&test, Driver::Threaded, each_tool_has_its_ids);
}

fn each_tool_is_asked(opencl: &OpenCl) {
    let [one, two, other] = [(); 3].map(|()| Tool::new());
    let all = [&one, &two, &other];
    let (launch, read) = (api("clEnqueueNDRangeKernel"), api("clEnqueueReadBuffer"));
    let set = |operations: &[Operation]| {
        let mut set = OperationSet::default();
        for operation in operations {
            set.set(*operation, true);
        }
        set
    };
    let of_both = set(&[launch, kernel_dispatch::ENQUEUE, kernel_dispatch::COMPLETE]);
    let for_one = one.context.supply_external_ids(of_both, move |asked| {
        let is_kernel = asked.operation == kernel_dispatch::ENQUEUE;
        assert!(asked.kernel.is_some());
        assert!(is_kernel || asked.operation == launch);
        Some(ExternalId(if is_kernel { 3000 } else { 1000 }))
    });
    let of_copies = set(&[memory_copy::COPY_ENQUEUE, kernel_dispatch::ENQUEUE]);
    let for_two = two.context.supply_external_ids(of_copies, |asked| {
        (asked.operation == memory_copy::COPY_ENQUEUE).then_some(ExternalId(4000))
    });
    let small = Small::new(opencl);
    external::push(ExternalKind::CUSTOM0, PUSHED).unwrap();
    two.context
        .push_external_id(ExternalKind::CUSTOM0, ExternalId(200))
        .unwrap();
    for tool in all {
        tool.context.start().unwrap();
    }
    small.launch();
    small.read();
    drop((for_one.unwrap(), for_two.unwrap()));
    small.launch();
    small.finish();
    small.release();
    for tool in all {
        tool.context.stop().unwrap();
        tool.buffer.flush().unwrap();
    }
    let ids = |tool: &Tool| {
        [
            tool.calls(launch),
            tool.kernels(),
            tool.calls(read),
            tool.copies(),
        ]
    };
    let ids = all.map(ids);
    assert_eq!(ids[0], [vec![1000, 5], vec![3000, 5], vec![5], vec![5]]);
    assert_eq!(
        ids[1],
        [vec![200, 200], vec![200, 200], vec![200], vec![4000]]
    );
    // A context without ids of its own gets what the others supply.
    assert_eq!(ids[2], [vec![1000, 5], vec![3000, 5], vec![5], vec![4000]]);
    // A subscriber that comes before the service of its context sees the pushed id at the enter.
    assert_eq!(one.called_back(launch), [5, 1000, 5, 5]);
    assert_eq!(
        one.called_back(kernel_dispatch::ENQUEUE),
        [1000, 3000, 5, 5]
    );
    assert_eq!(two.called_back(memory_copy::COPY_COMPLETE), [4000]);
}

#[test]
fn each_tool_supplies_the_ids_of_calls_kernels_and_copies_for_its_own_context() {
    let name = "each_tool_supplies_the_ids_of_calls_kernels_and_copies_for_its_own_context";
    needs!(each_tool_supplies_the_ids_of_calls_kernels_and_copies_for_its_own_context: Need::Pocl, Need::OpenClToolchain);
    on_layer(
        &format!("external::{name}"),
        Driver::Threaded,
        each_tool_is_asked,
    );
}
