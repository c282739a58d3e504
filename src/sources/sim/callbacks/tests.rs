//! The demo, as it calls tools back.

use crate::operations::find;
use crate::sim::TrainingRun;
use crate::sim::tests::{CHILDREN, MIGRATIONS, options};
use gputrail_buffer::clock::TickSource;
use gputrail_capture::{Reader, Writer};
use gputrail_collect::context::{Context, OperationSet, Payload};
use gputrail_collect::recorder::Recorder;
use gputrail_interface::operations::{Phase, kernel_dispatch, memory_copy, resource};
use gputrail_record::{Api, CorrelationId, Domain, ExternalId, KernelDispatch, Operation};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

#[test]
fn a_tool_is_called_back_for_every_call_and_all_work() {
    let directory = tempfile::tempdir().unwrap();
    let header = Recorder::file_header(TickSource::Virtual, TrainingRun::PROCESS);
    let writer = Writer::create(&directory.path().join("demo.gputrail"), &header).unwrap();
    let recorder = Recorder::start(&options(), None, writer).unwrap();
    let told = Arc::new(Mutex::new(HashMap::<(Operation, Phase), u64>::new()));
    let into = told.clone();
    let context = Context::on(recorder.board()).unwrap();
    let subscriber = context.call_back(OperationSet::all(), move |callback| {
        let key = (callback.operation, callback.phase);
        *into.lock().unwrap().entry(key).or_default() += 1;
        let launch = find(Domain::SIM, "simLaunchKernel");
        match callback.phase {
            Phase::Enter => {
                assert_eq!(callback.user_data, 0);
                callback.user_data = callback.correlation.0;
                if let (true, Payload::Call(arguments)) =
                    (Some(callback.operation) == launch, callback.payload)
                {
                    assert!(arguments.get("grid_x").is_some_and(|groups| groups > 0));
                }
            }
            Phase::Exit | Phase::Complete => {
                assert_eq!(callback.user_data, callback.correlation.0);
            }
            _ => {}
        }
        if callback.operation == kernel_dispatch::COMPLETE {
            assert!(callback.kernel_name().is_some());
        }
    });
    let subscriber = subscriber.unwrap();
    context.start().unwrap();
    let report = TrainingRun::default().run(&recorder).unwrap();
    assert!(subscriber.is_subscribed(), "its callback did not panic");
    recorder.finish().unwrap();
    let told = told.lock().unwrap();
    let count = |operation, phase| told.get(&(operation, phase)).copied().unwrap_or(0);
    let calls = |phase| {
        let of_calls = |((operation, of), _): &(&(Operation, Phase), &u64)| {
            (operation.domain, *of) == (Domain::SIM, phase)
        };
        told.iter()
            .filter(of_calls)
            .map(|(_, count)| count)
            .sum::<u64>()
    };
    assert_eq!(
        (calls(Phase::Enter), calls(Phase::Exit)),
        (report.calls, report.calls)
    );
    let all = |operation, count| (operation, count);
    let host_kernels = report.kernels - CHILDREN;
    for (operation, expected) in [
        all((kernel_dispatch::ENQUEUE, Phase::Enter), host_kernels),
        all((kernel_dispatch::ENQUEUE, Phase::Exit), host_kernels),
        all((kernel_dispatch::COMPLETE, Phase::Complete), host_kernels),
        all(
            (memory_copy::COPY_COMPLETE, Phase::Complete),
            report.copies - MIGRATIONS,
        ),
        all((memory_copy::FILL_COMPLETE, Phase::Complete), report.fills),
    ] {
        assert_eq!(count(operation.0, operation.1), expected, "{operation:?}");
    }
    // Two devices; six launches of each graph, which has eight nodes that wait for each other.
    for (operation, expected) in [
        (resource::GRAPH_CREATED, 2),
        (resource::GRAPH_DESTROYED, 2),
        (resource::GRAPH_NODE_CREATED, 16),
        (resource::GRAPH_NODE_CLONED, 16),
        (resource::GRAPH_DEPENDENCY_CREATED, 14),
        (resource::GRAPH_INSTANTIATED, 2),
        (resource::GRAPH_EXECUTABLE_DESTROYED, 2),
        (resource::GRAPH_LAUNCHED, 12),
    ] {
        assert_eq!(count(operation, Phase::Instant), expected, "{operation:?}");
    }
    let (loaded, unloaded) = (resource::MODULE_LOADED, resource::MODULE_UNLOADED);
    assert!(count(loaded, Phase::Instant) > 0);
    assert_eq!(
        count(loaded, Phase::Instant),
        count(unloaded, Phase::Instant)
    );
}

#[test]
fn a_tool_supplies_the_external_ids_of_the_calls_it_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demo.gputrail");
    let header = Recorder::file_header(TickSource::Virtual, TrainingRun::PROCESS);
    let writer = Writer::create(&path, &header).unwrap();
    let recorder = Recorder::start(&options(), None, writer).unwrap();
    let context = Context::on(recorder.board()).unwrap();
    let launches = ["simLaunchKernel", "simGraphLaunch"];
    let launches = launches.map(|name| find(Domain::SIM, name));
    let is_launch = move |operation| launches.contains(&Some(operation));
    let supplied = |correlation: CorrelationId| ExternalId(1 << 40 | correlation.0);
    let supplier = context.supply_external_ids(OperationSet::all(), move |asked| {
        let inside = [
            Domain::KERNEL_DISPATCH,
            Domain::MEMORY_COPY,
            Domain::MEMORY_ALLOCATION,
        ];
        let domain = asked.operation.domain;
        assert!(domain == Domain::SIM || inside.contains(&domain));
        is_launch(asked.operation).then(|| supplied(asked.correlation))
    });
    let supplier = supplier.unwrap();
    context.start().unwrap();
    TrainingRun::default().run(&recorder).unwrap();
    assert!(supplier.is_subscribed(), "it did not panic");
    recorder.finish().unwrap();

    let reader = Reader::open(&path).unwrap();
    let (mut chunks, mut launches, mut others) = (reader.chunks(), 0, 0);
    while let Some(chunk) = chunks.next() {
        for record in chunk.records() {
            if let Some(call) = record.read::<Api>() {
                let is_launch = is_launch(call.operation);
                let is_supplied = call.external == supplied(call.correlation);
                assert_eq!(is_supplied, is_launch, "{call:?}");
                launches += u32::from(is_launch);
                others += u32::from(!is_launch && call.external.is_some());
            }
            if let Some(kernel) = record.read::<KernelDispatch>() {
                assert_eq!(kernel.work.external, supplied(kernel.work.correlation));
            }
        }
    }
    assert!(launches > 0 && others > 0, "others have what was pushed");
}
