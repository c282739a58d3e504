//! Markers and external ids of a program, from its calls to the trace and to a tool.

use gputrail_analysis::summary::Summary;
use gputrail_buffer::clock;
use gputrail_capture::{Reader, Writer};
use gputrail_collect::context::{
    BufferOptions, Context, OperationSet, Payload, RecordBuffer, RecordSelection,
};
use gputrail_collect::correlation::Extra;
use gputrail_collect::external::{self, ExternalError};
use gputrail_collect::marker::{self, Unbalanced};
use gputrail_collect::operations::OperationInfo;
use gputrail_collect::process;
use gputrail_collect::recorder::{Recorder, RecorderOptions};
use gputrail_collect::source::Source;
use gputrail_collect::switchboard::Observed;
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::trace::Trace;
use gputrail_interface::marker::{Mark, RangeId};
use gputrail_record::*;
use gputrail_trace::capture::Options;
use gputrail_trace::make_trace;
use gputrail_trace::model::Producer;
use gputrail_trace::perfetto::Exporter;
use gputrail_trace::perfetto::reader::TraceReplay;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();

const OPERATION: Operation = Operation {
    domain: Domain::SIM,
    number: 1,
};

fn capture() -> PathBuf {
    FOLDER.get().unwrap().path().join("run.gputrail")
}

/// A source with one operation.
struct OneCall;

impl Source for OneCall {
    fn domain(&self) -> Domain {
        Domain::SIM
    }

    fn operations(&self) -> Vec<OperationInfo> {
        vec![OperationInfo {
            operation: OPERATION,
            name: "simCall",
            group: OperationGroup::OTHER,
            arguments: &[],
            keeps_arguments: false,
            observed: Observed::No,
        }]
    }
}

fn record() {
    let attached = process::attach_with(&OneCall, |board| {
        let options = RecorderOptions::default();
        let header = Recorder::file_header(options.ticks, ProcessId(std::process::id()));
        let writer = Writer::create(&capture(), &header).ok()?;
        let recorder = Recorder::start_on(board, &options, None, writer).ok()?;
        recorder.describe_process("test");
        Some(recorder)
    });
    assert_eq!(attached, process::AttachOutcome::Now);
}

fn call() {
    let frame = 0u8;
    let thread = process::current().unwrap();
    let entered =
        thread.with(|host| host.enter(OPERATION, &raw const frame as usize, clock::now()));
    thread.with(|host| host.exit(&entered.unwrap(), clock::now(), 0, Extra::NONE));
}

/// A single test, since a process is recorded once.
#[test]
fn markers_and_external_ids_reach_the_trace_and_tools() {
    FOLDER.set(tempfile::tempdir().unwrap()).unwrap();
    // There is no consumer: nothing is recorded, and unbalanced ends are reported all the same.
    assert_eq!(marker::pop(), Err(Unbalanced::Pop));
    assert_eq!(marker::push("unheard"), 1);
    assert_eq!(marker::pop(), Ok(0));
    let unheard = marker::start("unheard");
    marker::end(unheard).unwrap();
    let unknown = RangeId::from_number(unheard.number() + 1);
    assert_eq!(marker::end(unknown), Err(Unbalanced::End(unknown.number())));

    record();
    let told = Arc::new(Mutex::new(Vec::new()));
    let kinds = Arc::new(Mutex::new(Vec::new()));
    let (context, buffer, _subscriber) = tool(&told, &kinds);
    context.start().unwrap();

    marker::name_thread("the main one");
    let step = external::register_kind("step").unwrap();
    assert_eq!(external::register_kind("step"), Ok(step));
    assert_eq!(external::kind_name(step).as_deref(), Some("step"));
    assert_eq!(external::pop(step), Err(ExternalError::Empty(step)));
    let nobody = ExternalKind(9999);
    assert_eq!(
        external::push(nobody, ExternalId(1)),
        Err(ExternalError::UnknownKind(nobody))
    );

    external::name(step, ExternalId(7), "step seven").unwrap();
    external::push(step, ExternalId(7)).unwrap();
    external::push(ExternalKind::CUSTOM1, ExternalId(8)).unwrap();
    assert_eq!(external::current(), ExternalId(8));
    {
        gputrail_collect::range!("outer", domain: "lib", category: "io", color: 0xff00_ff00, payload: -5_i64);
        gputrail_collect::range!("inner");
        call();
        marker::mark(Mark::named("now").payload(2.5));
    }
    // Overlapping ranges, one of which ends on another thread.
    let one = marker::start("one");
    let two = marker::start(Mark::named("two").payload(3_u64));
    marker::end(one).unwrap();
    std::thread::spawn(move || {
        assert_eq!(
            external::current(),
            ExternalId::NONE,
            "only the main thread's are inherited"
        );
        marker::end(two).unwrap();
    })
    .join()
    .unwrap();
    marker::start("never ended");
    assert_eq!(external::pop(ExternalKind::CUSTOM1), Ok(ExternalId(8)));
    assert_eq!(external::pop(step), Ok(ExternalId(7)));
    marker::push("open to the end");

    context.stop().unwrap();
    buffer.flush().unwrap();
    assert_eq!(
        *kinds.lock().unwrap(),
        [
            Kind::EXTERNAL_CORRELATION,
            Kind::EXTERNAL_CORRELATION,
            Kind::API
        ],
        "the ids stand ahead of the call"
    );
    assert_eq!(
        told.lock().unwrap().join(" "),
        "push:outer push:inner instant:now pop: pop: start:one start:two end: end: start:never ended \
         push:open to the end"
    );

    process::end().unwrap().finish().unwrap();
    let trace = FOLDER.get().unwrap().path().join("run.pftrace");
    let out = std::fs::File::create(&trace).unwrap();
    let captures = [Reader::open(&capture()).unwrap()];
    let mut heard = Summary::default();
    make_trace(
        &captures,
        Exporter::new(out),
        &Options::default(),
        &mut heard,
    )
    .unwrap();
    let mut read = Summary::default();
    let file = std::fs::File::open(&trace).unwrap();
    TraceReplay::new(file).produce(&mut read).unwrap();
    for summary in [&heard, &read] {
        let ranges = summary.ranges();
        let told = |name: &str| {
            let range = ranges.iter().find(|range| range.name == name);
            range.map_or((0, 0), |range| (range.times.count, range.unfinished))
        };
        let names = ["outer", "inner", "one", "two", "open to the end", "now"];
        assert_eq!(
            names.map(told),
            [(1, 0), (1, 0), (1, 0), (1, 0), (0, 1), (0, 0)]
        );
    }
    needs!(markers_and_external_ids_reach_the_trace_and_tools: Need::TraceProcessor);
    look_at(Trace::open(trace));
}

/// A tool that writes down the callbacks of markers, and the kinds of records of calls that it gets.
fn tool(
    told: &Arc<Mutex<Vec<String>>>,
    kinds: &Arc<Mutex<Vec<Kind>>>,
) -> (Context, RecordBuffer, gputrail_collect::context::Subscriber) {
    let context = Context::new().unwrap();
    let into = kinds.clone();
    let buffer = RecordBuffer::create(BufferOptions::default(), move |batch| {
        let kinds = batch.records().map(|record| record.kind());
        into.lock().unwrap().extend(kinds);
    })
    .unwrap();
    let selection = RecordSelection::kinds(&[Kind::API, Kind::EXTERNAL_CORRELATION]);
    context.trace_to(&buffer, selection).unwrap();
    let mut operations = OperationSet::default();
    operations.set_domain(Domain::MARKER, true);
    let into = told.clone();
    let subscriber = context
        .call_back(operations, move |callback| {
            let Payload::Record(record) = callback.payload else {
                panic!("a marker has a record");
            };
            let marker: Marker = record.read().unwrap();
            let names = process::board().unwrap().names();
            let name = names.text(marker.name).unwrap_or_default();
            into.lock()
                .unwrap()
                .push(format!("{}:{name}", callback.name));
        })
        .unwrap();
    (context, buffer, subscriber)
}

fn look_at(mut trace: Trace) {
    trace.assert_sound();
    let slices: Vec<(String, String, i64, i64)> = trace.rows(
        "select slice.name, thread_or_process.name as track, depth, dur < 0 as open
         from slice join track thread_or_process on slice.track_id = thread_or_process.id
         where category != 'gputrail' and slice.name != 'simCall' order by ts, slice.id",
    );
    let shown = |name: &str| -> Vec<(&str, i64, i64)> {
        slices
            .iter()
            .filter(|(slice, ..)| slice == name)
            .map(|(_, track, depth, open)| (track.as_str(), *depth, *open))
            .collect()
    };
    assert_eq!(shown("outer"), [("markers", 0, 0)], "{slices:?}");
    assert_eq!(shown("inner"), [("markers", 1, 0)]);
    assert_eq!(shown("now"), [("markers", 2, 0)]);
    assert_eq!(shown("open to the end"), [("markers", 0, 1)]);
    assert_eq!(shown("one"), [("ranges", 0, 0)]);
    assert_eq!(shown("two"), [("ranges", 0, 0)]);
    assert_eq!(shown("never ended"), [("ranges", 0, 1)]);
    assert_eq!(shown("step seven"), [("step", 0, 0)]);
    let said: Vec<(String, String)> = trace.rows(
        "select args.key, args.display_value from slice join args using (arg_set_id)
         where slice.name = 'outer' and args.key glob 'debug.*' order by 1",
    );
    let said: Vec<(&str, &str)> = said.iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(
        said,
        [
            ("debug.color", "#ff00ff00"),
            ("debug.domain", "lib"),
            ("debug.payload", "-5")
        ]
    );
    let category: String = trace.value("select category from slice where name = 'outer'");
    assert_eq!(category, "io");
    let id: i64 = trace.value(
        "select cast(args.display_value as int) from slice join args using (arg_set_id)
         where slice.name = 'simCall' and args.key = 'debug.external_id'",
    );
    assert_eq!(id, 8, "the latest id of any kind");
    let name: String = trace.value("select name from thread where is_main_thread = 0 and utid in
        (select utid from thread_track where id in (select track_id from slice where name = 'simCall'))");
    assert_eq!(name, "the main one");
}
