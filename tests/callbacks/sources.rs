//! Two sources in one process: OpenCL on PoCL, and the simulated runtime, both called by one thread.

use crate::opencl::{COUNT, OpenCl, Small, on_layer};
use gputrail_capture::Reader;
use gputrail_collect::{external, process};
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::trace::Trace;
use gputrail_record::{
    Api, Completion, Domain, ExternalId, ExternalKind, KernelDispatch, ThreadId,
};
use gputrail_sources::sim::TrainingRun;
use gputrail_trace::capture::Options;
use gputrail_trace::make_trace;
use gputrail_trace::perfetto::Exporter;
use std::collections::HashSet;

/// The id that is pushed once around the calls of both sources.
const PUSHED: ExternalId = ExternalId(77);

#[test]
fn two_sources_of_a_process_share_its_recording_its_correlation_ids_and_its_external_ids() {
    needs!(two_sources_of_a_process_share_its_recording_its_correlation_ids_and_its_external_ids:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let test = "sources::two_sources_of_a_process_share_its_recording_its_correlation_ids_and_its_external_ids";
    on_layer(test, Driver::Threaded, of_two_sources);
}

fn of_two_sources(opencl: &OpenCl) {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("run.gputrail");
    // SAFETY: no other thread of this process uses the environment.
    unsafe { std::env::set_var("GPUTRAIL_CAPTURE", &capture) };
    let small = Small::new(opencl);
    external::push(ExternalKind::CUSTOM1, PUSHED).unwrap();
    small.fill(3);
    small.launch();
    let report = TrainingRun { seed: 1, steps: 1 }.run_here().unwrap();
    small.launch();
    assert_eq!(small.read(), [81; COUNT]);
    assert_eq!(external::pop(ExternalKind::CUSTOM1), Ok(PUSHED));
    small.release();
    process::end().unwrap().finish().unwrap();

    let reader = Reader::open(&capture).unwrap();
    assert!(reader.ended());
    let (mut calls, mut works) = (Vec::new(), Vec::new());
    let mut completed = HashSet::new();
    let mut chunks = reader.chunks();
    while let Some(chunk) = chunks.next() {
        for record in chunk.records() {
            calls.extend(record.read::<Api>());
            works.extend(record.read::<KernelDispatch>());
            completed.extend(record.read::<Completion>().map(|record| record.work));
        }
    }
    let ids: HashSet<_> = calls.iter().map(|call| call.correlation).collect();
    assert_eq!(ids.len(), calls.len(), "correlation ids are unique");
    let works: Vec<_> = works.iter().map(|record| record.work.id).collect();
    assert!(works.iter().all(|work| completed.contains(work)));
    // SAFETY: it has no conditions.
    let main = ThreadId(unsafe { libc::gettid() } as u32);
    for domain in [Domain::OPENCL, Domain::SIM] {
        let of_main = calls
            .iter()
            .filter(|call| call.operation.domain == domain && call.thread == main);
        let with_id = of_main.filter(|call| call.external == PUSHED).count();
        assert!(with_id > 2, "{domain:?}: {with_id} calls have the id");
    }
    // Calls of the one thread do not overlap, whichever runtime they belong to, unless one makes the other.
    let mut of_main: Vec<_> = calls.iter().filter(|call| call.thread == main).collect();
    of_main.sort_by_key(|call| (call.start, std::cmp::Reverse(call.end)));
    let mut open: Vec<&Api> = Vec::new();
    for call in of_main {
        open.retain(|outer| outer.end > call.start);
        assert!(open.iter().all(|outer| call.end <= outer.end));
        open.push(call);
    }

    let trace = folder.path().join("run.pftrace");
    let out = std::fs::File::create(&trace).unwrap();
    let mut summary = gputrail_analysis::summary::Summary::default();
    let (exporter, options) = (Exporter::new(out), Options::default());
    make_trace(&[reader], exporter, &options, &mut summary).unwrap();
    let mut trace = Trace::open(trace);
    let mut count = |name: &str| {
        trace.value::<i64>(&format!(
            "select count(*) from slice where name glob '{name}'"
        ))
    };
    let of = |domain| {
        calls
            .iter()
            .filter(move |call| call.operation.domain == domain)
    };
    let (in_opencl, in_sim) = (of(Domain::OPENCL).count(), of(Domain::SIM).count());
    assert_eq!(in_sim as u64, report.calls);
    assert_eq!(
        (count("cl[A-Z]*"), count("sim[A-Z]*")),
        (in_opencl as i64, in_sim as i64)
    );
}
