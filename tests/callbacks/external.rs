//! External ids that a tool supplies on request.

use crate::api;
use crate::opencl::{OpenCl, Small, on_layer};
use gputrail::buffer::BlockView;
use gputrail::collect::context::{BufferOptions, Context, OperationSet, RecordBuffer, Selection};
use gputrail::collect::external;
use gputrail::record::{
    Activity, Api, CorrelationId, ExternalId, ExternalKind, KernelDispatch, Kind, MemoryCopy,
    Synchronization,
};
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Seen {
    calls: Vec<Api>,
    kernels: Vec<KernelDispatch>,
    copies: Vec<MemoryCopy>,
    waits: Vec<Synchronization>,
}

const PUSHED: ExternalId = ExternalId(5);

fn of_the_first(correlation: CorrelationId) -> ExternalId {
    ExternalId(1000 + correlation.0)
}

fn ids_are_supplied(opencl: &OpenCl) {
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
                _ => {}
            }
        }
    };
    let buffer = RecordBuffer::create(BufferOptions::default(), deliver).unwrap();
    let context = Context::new().unwrap();
    let kinds = [
        Kind::API,
        Kind::KERNEL_DISPATCH,
        Kind::MEMORY_COPY,
        Kind::SYNCHRONIZATION,
    ];
    context.trace_to(&buffer, Selection::kinds(&kinds)).unwrap();
    let (launch, read) = (api("clEnqueueNDRangeKernel"), api("clEnqueueReadBuffer"));
    // The first subscriber to the requests takes precedence, if it supplies an id.
    let first = context
        .supply_external_ids(OperationSet::all(), move |asked| {
            assert_eq!(
                Some(asked.name),
                gputrail::source::operations::name(asked.operation)
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
