//! Samples in a trace, queried with SQL: Perfetto must report no error, and its flame graph must show the samples.

use std::path::PathBuf;

use bytemuck::bytes_of;
use gputrail_analysis::hotspots::HotspotAnalysis;
use gputrail_buffer::BlockView;
use gputrail_buffer::clock::{TickSource, virtual_snapshot};
use gputrail_capture::code::{CodeOffset, pieces};
use gputrail_capture::names::Names;
use gputrail_capture::{FileHeader, Reader, Writer};
use gputrail_code::symbols::{ListingLine, listing};
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::trace::{Trace, packet_kinds};
use gputrail_record::*;
use gputrail_trace::capture::{MAX_SAMPLES_SHOWN, Options, Report};
use gputrail_trace::perfetto::Exporter;
use gputrail_trace::{MadeTrace, make_trace};

const THREAD: ThreadId = ThreadId(100);
const HOT: u64 = 0x10;
const OTHER: u64 = 0x18;

/// The kernel's code, with its lines.
fn code() -> Vec<u8> {
    let line = |offset, line, instruction| ListingLine {
        offset: CodeOffset(offset),
        function: "saxpy",
        file: "saxpy.cl",
        line,
        instruction,
    };
    listing(&[line(HOT, 4, "v_fma_f32"), line(OTHER, 5, "s_barrier")])
}

/// The ids in a capture.
struct Ids {
    agent: AgentId,
    kernel: KernelId,
    object: CodeObjectId,
}

/// A capture of one long dispatch with `samples` samples, of which each tenth is outside of the hot line, and with
/// these `pieces` of the kernel's code.
fn capture(name: &str, samples: u64, pieces: impl Fn(CodeObjectId) -> Vec<Vec<u8>>) -> PathBuf {
    capture_with(name, samples, pieces, |ids, run| {
        singly(samples, ids, run);
    })
}

/// A capture of one dispatch of `samples` µs, with the records of samples that `sampled` passes on.
fn capture_with(
    name: &str,
    samples: u64,
    pieces: impl Fn(CodeObjectId) -> Vec<Vec<u8>>,
    sampled: impl FnOnce(&Ids, &mut dyn FnMut(&[u8])),
) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let ticks = TickSource::Virtual.code();
    let header = FileHeader::new(ticks, ProcessId(42), 1_000_000_000, 0, [1; 16]);
    let writer = Writer::create(&path, &header).unwrap();
    let names = Names::writing_to(writer.clone());
    let end = 2_000_000 + samples * 1000;
    for time in [1, end] {
        names.clock_snapshot(virtual_snapshot(Ticks(time)));
    }
    let agent = names.agent(Agent {
        name: names.string("Device"),
        kind: AgentKind::GPU,
        ..Agent::blank()
    });
    for time in [1, end] {
        names.clock_pair(ClockPair {
            before: Ticks(time),
            after: Ticks(time),
            device: DeviceTime(time),
            agent,
            ..ClockPair::blank()
        });
    }
    let queue = names.queue(Queue {
        agent,
        ..Queue::blank()
    });
    let kernel = names.kernel(KernelSymbol {
        name: names.string("saxpy"),
        ..KernelSymbol::blank()
    });
    let object = names.code_object(CodeObject {
        agent,
        path: names.string("saxpy.so"),
        ..CodeObject::blank()
    });
    for piece in pieces(object) {
        writer.metadata(&piece).unwrap();
    }

    let mut sequence = 0;
    let mut run = |lane: u32, bytes: &[u8]| {
        sequence += 1;
        let view = BlockView {
            lane,
            thread: THREAD,
            sequence,
            offset: 0,
            first_record: 0,
            bytes,
        };
        writer.records(&view).unwrap();
    };
    let dispatch = KernelDispatch {
        work: WorkHeader {
            id: WorkId(1),
            correlation: CorrelationId(1),
            enqueued: Ticks(900_000),
            agent,
            queue,
            ..WorkHeader::default()
        },
        kernel,
        ..KernelDispatch::blank()
    };
    let call = Api {
        start: Ticks(900_000),
        end: Ticks(950_000),
        correlation: CorrelationId(1),
        thread: THREAD,
        ..Api::blank()
    };
    let completion = Completion {
        work: WorkId(1),
        start: DeviceTime(1_000_000),
        end: DeviceTime(1_000_000 + samples * 1000),
        agent,
        ..Completion::blank()
    };
    run(
        1,
        &[bytes_of(&dispatch), bytes_of(&call), bytes_of(&completion)].concat(),
    );
    let ids = Ids {
        agent,
        kernel,
        object,
    };
    sampled(&ids, &mut |bytes| run(2, bytes));
    writer.end().unwrap();
    path
}

/// Passes on each sample by itself, and the totals of the dispatch.
fn singly(samples: u64, ids: &Ids, run: &mut dyn FnMut(&[u8])) {
    let Ids {
        agent,
        kernel,
        object,
    } = *ids;
    let sample = |number: u64| {
        let (offset, reason) = match number % 10 {
            0 => (OTHER, NotIssued::BARRIER_WAIT),
            _ => (HOT, NotIssued::WAITCNT),
        };
        StochasticSample {
            work: WorkId(1),
            correlation: CorrelationId(1),
            agent,
            kernel,
            code_object: object,
            offset,
            time: DeviceTime(1_000_000 + number * 1000),
            snapshot: Snapshot(0).with_reason_not_issued(reason.0.into()),
            ..StochasticSample::blank()
        }
    };
    let mut bytes = Vec::new();
    for number in 0..samples {
        bytes.extend_from_slice(bytes_of(&sample(number)));
        if bytes.len() > 60_000 {
            run(&bytes);
            bytes.clear();
        }
    }
    let totals = SamplingTotals {
        work: WorkId(1),
        total: samples + 3,
        dropped: 3,
        interval: 1000,
        agent,
        method: SamplingMethod::STOCHASTIC,
        unit: SamplingUnit::TIME,
        ..SamplingTotals::blank()
    };
    bytes.extend_from_slice(bytes_of(&totals));
    run(&bytes);
}

/// The trace of such a capture in a file, and its counts.
fn trace(name: &str, samples: u64) -> (PathBuf, Report, HotspotAnalysis<'static>) {
    trace_of(name, samples, |object| pieces(object, &code(), 0).collect())
}

fn trace_of(
    name: &str,
    samples: u64,
    pieces: impl Fn(CodeObjectId) -> Vec<Vec<u8>>,
) -> (PathBuf, Report, HotspotAnalysis<'static>) {
    converted(capture(&format!("{name}.gputrail"), samples, pieces))
}

fn converted(capture: PathBuf) -> (PathBuf, Report, HotspotAnalysis<'static>) {
    let mut hotspots = HotspotAnalysis::default();
    let options = Options {
        raw_samples: true,
        ..Options::default()
    };
    let mut bytes = Vec::new();
    let captures = [Reader::open(&capture).unwrap()];
    let trace = Exporter::new(&mut bytes);
    let MadeTrace { report, .. } = make_trace(&captures, trace, &options, &mut hotspots).unwrap();
    let path = capture.with_extension("pftrace");
    std::fs::write(&path, bytes).unwrap();
    std::fs::remove_file(capture).unwrap();
    (path, report, hotspots)
}

#[test]
fn perfetto_draws_a_flame_graph_of_samples() {
    needs!(perfetto_draws_a_flame_graph_of_samples: Need::TraceProcessor);
    let (path, report, _) = trace("flame", 1000);
    assert_eq!((report.samples, report.samples_shown_one_of), (1000, 1));
    let mut trace = Trace::open(path);
    trace.assert_sound();
    let threads: Vec<(String, i64, i64, i64)> = trace.rows(
        "select name, count(*), min(ts), max(ts) from cpu_profile_stack_sample join thread using (utid) group by 1",
    );
    assert_eq!(
        threads,
        [("kernel samples".to_owned(), 1000, 1_000_000, 1_999_000)]
    );
    // Each frame of the hot stack, outermost first.
    let frames: Vec<(String, i64)> = trace.rows(
        "with recursive stack(id, depth) as (
             select callsite_id, 0 from cpu_profile_stack_sample where ts = 1001000
             union all select parent_id, stack.depth + 1 from stack join stack_profile_callsite using (id)
             where parent_id is not null)
         select f.name, stack.depth from stack join stack_profile_callsite c using (id)
             join stack_profile_frame f on f.id = c.frame_id order by stack.depth desc",
    );
    let frames: Vec<String> = frames.into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        frames,
        ["GPU 0 · queue 0", "saxpy", "saxpy.cl:4", "v_fma_f32  @0x10"]
    );
    let hot: i64 = trace.value(
        "select count(*) from cpu_profile_stack_sample s join stack_profile_callsite c on c.id = s.callsite_id
             join stack_profile_frame f on f.id = c.frame_id where f.name = 'v_fma_f32  @0x10'",
    );
    assert_eq!(hot, 900);
}

#[test]
fn counts_without_a_dispatch_are_spread_over_the_time_in_which_their_kernel_ran() {
    needs!(counts_without_a_dispatch_are_spread_over_the_time_in_which_their_kernel_ran:
        Need::TraceProcessor);
    let all = |object| pieces(object, &code(), 0).collect();
    let path = capture_with("undispatched.gputrail", 1_000, all, |ids, run| {
        let counted = |offset, stall, samples| SampleAggregate {
            offset,
            samples,
            stall,
            latency_samples: samples / 2,
            kernel: ids.kernel,
            agent: ids.agent,
            code_object: ids.object,
            method: SamplingMethod::STOCHASTIC,
            ..SampleAggregate::blank()
        };
        let totals = SamplingTotals {
            total: 1007,
            dropped: 7,
            interval: 4096,
            agent: ids.agent,
            method: SamplingMethod::STOCHASTIC,
            unit: SamplingUnit::CYCLES,
            ..SamplingTotals::blank()
        };
        let counted = [
            counted(HOT, StallReason::LONG_SCOREBOARD, 600),
            counted(HOT, StallReason::NONE, 300),
            counted(OTHER, StallReason::BARRIER, 100),
        ];
        run(&[bytemuck::cast_slice(&counted), bytes_of(&totals)].concat());
    });
    let (path, report, hotspots) = converted(path);
    assert_eq!((report.samples, report.dropped_samples), (1000, 7));
    let report = hotspots.report();
    assert_eq!((report.samples, report.dropped), (1000, 7));
    let [kernel] = &report.kernels[..] else {
        panic!("{report:?}");
    };
    assert_eq!(kernel.tally.issue_rate(), Some(0.3));
    let leading = [("long scoreboard", 600), ("barrier", 100)];
    assert_eq!(kernel.tally.leading(), leading);
    assert_eq!(kernel.tally.latency, 500);

    let mut trace = Trace::open(&path);
    trace.assert_sound();
    // The dispatch lasts 1 ms, and is drawn although no totals of its own have come.
    let outside: i64 = trace.value(
        "select count(*) from cpu_profile_stack_sample p, gpu_slice s
         where s.name = 'saxpy' and (p.ts < s.ts or p.ts > s.ts + s.dur)",
    );
    let shown: i64 = trace.value("select count(*) from cpu_profile_stack_sample");
    assert_eq!((shown, outside), (1000, 0));
    let halves: i64 = trace.value(
        "select count(*) from cpu_profile_stack_sample p, gpu_slice s
         where s.name = 'saxpy' and p.ts < s.ts + s.dur / 2",
    );
    assert!((495..=505).contains(&halves), "{halves}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn perfetto_shows_why_waves_waited_over_time_and_beside_the_kernel() {
    needs!(perfetto_shows_why_waves_waited_over_time_and_beside_the_kernel: Need::TraceProcessor);
    let (path, ..) = trace("stalls", 1000);
    let mut trace = Trace::open(path);
    let counters: Vec<(String, f64)> = trace.rows(
        "select t.name, max(value) from counter c join counter_track t on t.id = c.track_id
             where t.name glob '* stalled*' group by 1 order by 1",
    );
    assert_eq!(
        counters,
        [
            ("GPU 0 stalled: barrier wait".to_owned(), 10.0),
            ("GPU 0 stalled: waitcnt".to_owned(), 90.0)
        ]
    );
    let details: Vec<(String, String)> = trace.rows(
        "select key, display_value from gpu_slice join args using (arg_set_id)
             where key in ('samples', 'samples dropped', 'waves') order by key",
    );
    let expected = [
        ("samples", "1003"),
        ("samples dropped", "3"),
        ("waves", "waitcnt 90 %, barrier wait 10 %"),
    ];
    assert_eq!(
        details,
        expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
    );
}

#[test]
fn many_samples_are_thinned_where_they_are_shown_and_counted_exactly() {
    needs!(many_samples_are_thinned_where_they_are_shown_and_counted_exactly: Need::TraceProcessor);
    let samples = MAX_SAMPLES_SHOWN as u64 + 100_000;
    let (path, report, hotspots) = trace("thinned", samples);
    assert_eq!((report.samples, report.samples_shown_one_of), (samples, 2));
    let counted = hotspots.report();
    let lines = counted.kernels[0].lines.iter();
    let lines: Vec<_> = lines.map(|line| (line.line, line.tally.samples)).collect();
    assert_eq!(
        lines,
        [
            (4, samples - samples.div_ceil(10)),
            (5, samples.div_ceil(10))
        ]
    );
    let mut trace = Trace::open(path);
    trace.assert_sound();
    let shown: Vec<(String, i64)> = trace.rows(
        "select name, count(*) from cpu_profile_stack_sample join thread using (utid) group by 1",
    );
    let [(name, shown)] = &shown[..] else {
        panic!("{shown:?}");
    };
    assert_eq!(name, "kernel samples (1 of 2)");
    let off = *shown as f64 / (samples as f64 / 2.0) - 1.0;
    assert!(off.abs() < 0.01, "{shown} of {samples} are shown");
}

/// The text of hotspots about the kernel's samples if its code consists of these `pieces`, which cannot be read; the
/// first belongs to its code object.
#[track_caller]
fn without_code(name: &str, pieces: impl Fn(CodeObjectId) -> Vec<Vec<u8>>) -> String {
    gputrail_code::reader::link(&gputrail_symbols::GPUTRAIL_SYMBOLS);
    let (_, report, hotspots) = trace_of(name, 1000, pieces);
    assert_eq!(report.samples, 1000);
    let counted = hotspots.report();
    let [kernel] = &counted.kernels[..] else {
        panic!("{counted:?}");
    };
    assert_eq!((&*kernel.name, kernel.tally.samples), ("saxpy", 1000));
    let addresses: Vec<_> = kernel
        .instructions
        .iter()
        .map(|one| (one.offset, one.tally.samples))
        .collect();
    assert_eq!(addresses, [(HOT, 900), (OTHER, 100)], "what is known");
    let [(why, 1000)] = &kernel.missing[..] else {
        panic!("{:?}", kernel.missing);
    };
    why.clone()
}

#[test]
fn a_code_object_that_is_gone_leaves_addresses_and_says_so() {
    let why = without_code("gone", |_| Vec::new());
    assert_eq!(
        why,
        "code object 1: its bytes were not recorded: the file was deleted before it was noticed, or could not be read"
    );
}

#[test]
fn a_truncated_code_object_leaves_addresses_and_says_how_much_is_there() {
    let large = [code(), vec![b' '; 600_000]].concat();
    let first = |object| pieces(object, &large, 0).take(1).collect();
    let why = without_code("truncated", first);
    assert!(why.starts_with("code object 1: only "), "{why}");
    let total = format!("of its {} bytes are present", large.len());
    assert!(why.contains(&total), "{why}");
}

#[test]
fn a_malformed_code_object_leaves_addresses_and_says_what_is_wrong() {
    let damaged = |object| pieces(object, b"\x7fELF and nothing more", 0).collect();
    let why = without_code("malformed", damaged);
    assert!(why.starts_with("code object 1: damaged: "), "{why}");
    let listing = |object| pieces(object, b"gputrail listing\nnonsense\n", 0).collect();
    let why = without_code("nonsense", listing);
    assert!(why.contains("damaged: line 2: "), "{why}");
}

#[test]
fn every_field_of_samples_is_one_that_is_known() {
    needs!(every_field_of_samples_is_one_that_is_known: Need::PythonBindings);
    let (path, ..) = trace("known", 1000);
    let kinds = packet_kinds(&path);
    for kind in ["streaming_profile_packet", "thread_descriptor"] {
        assert!(kinds.contains_key(kind), "{kind} is not among {kinds:?}");
    }
}
