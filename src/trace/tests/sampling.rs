//! Samples in traces.

use bytemuck::bytes_of;

use super::Reader as TraceReader;
use super::making::{HELPER, MAIN, Making, call, converted};
use gputrail_capture::code::{CodeOffset, pieces};
use gputrail_code::symbols::{ListingLine, listing};
use gputrail_record::*;
use gputrail_trace::capture::Options;
use gputrail_trace::make_trace;
use gputrail_trace::perfetto::schema::trace_packet::Data;
use gputrail_trace::perfetto::schema::{InternedData, PcSamples, TracePacket};
use gputrail_trace::perfetto::{Exporter, reader};

const SOURCE: &str = "kernel void saxpy(...) {\n  float sum = 0;\n  for (...)\n    sum += a * x[i];\n  y[i] = sum;\n}\n";
const HOT: u64 = 0x10;
const BARRIER: u64 = 0x20;

/// A process with a kernel whose code is known.
fn sampled(pid: u32) -> (Making, CodeObjectId) {
    let making = Making::new(pid);
    let names = &making.names;
    let module = names.module(Module {
        source: names.string(SOURCE),
        ..Module::blank()
    });
    let object = names.code_object(CodeObject {
        module,
        agent: making.agent,
        path: names.string("/tmp/saxpy.so"),
        ..CodeObject::blank()
    });
    let line = |offset, function, line, instruction| ListingLine {
        offset: CodeOffset(offset),
        function,
        file: "/tmp/saxpy.cl",
        line,
        instruction,
    };
    let code = listing(&[
        line(0, "saxpy", 2, "v_mov_b32 v0, 0"),
        line(HOT, "saxpy", 4, "v_fma_f32 v0, v1, v2, v0"),
        line(BARRIER, "saxpy", 5, "s_barrier"),
    ]);
    for piece in pieces(object, &code, 0) {
        making.writer.metadata(&piece).unwrap();
    }
    (making, object)
}

fn stochastic(
    making: &Making,
    object: CodeObjectId,
    work: u64,
    time: u64,
    (offset, reason): (u64, Option<NotIssued>),
) -> StochasticSample {
    let blank = StochasticSample::blank();
    StochasticSample {
        work: WorkId(work),
        correlation: CorrelationId(work),
        agent: making.agent,
        kernel: making.kernel,
        code_object: object,
        offset,
        time: DeviceTime(time),
        exec_mask: 0xff,
        wave_count: 4,
        issue: match reason {
            Some(_) => Issue(0),
            None => Issue(1).with_instruction(InstructionType::VALU.0),
        },
        snapshot: blank
            .snapshot
            .with_reason_not_issued(reason.unwrap_or_default().0.into()),
        ..blank
    }
}

fn totals(making: &Making, work: u64, total: u64, dropped: u64) -> SamplingTotals {
    SamplingTotals {
        work: WorkId(work),
        agent: making.agent,
        method: SamplingMethod::STOCHASTIC,
        unit: SamplingUnit::CYCLES,
        interval: 1024,
        total,
        dropped,
        ..SamplingTotals::blank()
    }
}

/// Two dispatches of 100 samples each; the samples are in another lane than the calls.
fn two_dispatches(making: &Making, object: CodeObjectId) {
    let mut host: Vec<Vec<u8>> = Vec::new();
    let mut device: Vec<Vec<u8>> = Vec::new();
    for work in 1..=2 {
        let start = work * 1_000_000;
        host.push(bytes_of(&making.dispatch(work, work, start - 400)).to_vec());
        host.push(bytes_of(&call(work, 0, start - 500, start - 100)).to_vec());
        host.push(bytes_of(&making.completion(work, start, start + 100_000)).to_vec());
        for number in 0..100 {
            let what = match number % 10 {
                0..6 => (HOT, Some(NotIssued::WAITCNT)),
                6..8 => (BARRIER, Some(NotIssued::BARRIER_WAIT)),
                _ => (HOT, None),
            };
            let sample = stochastic(making, object, work, start + number * 1000, what);
            device.push(bytes_of(&sample).to_vec());
        }
        device.push(bytes_of(&totals(making, work, 101, 1)).to_vec());
    }
    let parts = |records: &[Vec<u8>]| records.concat();
    making.run(MAIN, &[&parts(&host)]);
    making.run(HELPER, &[&parts(&device)]);
}

fn details(trace: &TraceReader) -> Vec<Vec<(String, String)>> {
    let works = trace
        .packets
        .iter()
        .filter_map(|packet| match &packet.data {
            Some(Data::GpuRenderStageEvent(work)) => Some(work),
            _ => None,
        });
    works
        .map(|work| {
            let details = work.extra_data.iter();
            details
                .map(|detail| (detail.name().to_owned(), detail.value().to_owned()))
                .collect()
        })
        .collect()
}

fn counts(trace: &TraceReader) -> Vec<PcSamples> {
    let samples = trace
        .packets
        .iter()
        .filter_map(|packet| match &packet.data {
            Some(Data::PcSamples(samples)) => Some((**samples).clone()),
            _ => None,
        });
    samples.collect()
}

/// The stacks of the flame graph, outermost frame first, with their numbers of samples, and the times of the samples,
/// MONOTONIC us.
fn flame(packets: &[TracePacket]) -> (Vec<(Vec<String>, usize)>, Vec<i64>) {
    let mut known = InternedData::default();
    let mut stacks: Vec<(Vec<String>, usize)> = Vec::new();
    let (mut times, mut now) = (Vec::new(), 0);
    for packet in packets {
        match &packet.data {
            Some(Data::ThreadDescriptor(thread)) => now = thread.reference_timestamp_us(),
            Some(Data::StreamingProfilePacket(samples)) => {
                if let Some(interned) = &packet.interned_data {
                    known.function_names.extend(interned.function_names.clone());
                    known.frames.extend(interned.frames.clone());
                    known.callstacks.extend(interned.callstacks.clone());
                }
                let text = |iid: u64| {
                    let name = known
                        .function_names
                        .iter()
                        .find(|name| name.iid == Some(iid));
                    String::from_utf8(name.unwrap().str.clone().unwrap()).unwrap()
                };
                for (callstack, delta) in samples
                    .callstack_iid
                    .iter()
                    .zip(&samples.timestamp_delta_us)
                {
                    let of = |stack: &&gputrail_trace::perfetto::schema::Callstack| {
                        stack.iid == Some(*callstack)
                    };
                    let callstack = known.callstacks.iter().find(of).unwrap();
                    let frames = callstack.frame_ids.iter().map(|id| {
                        let frame = known.frames.iter().find(|frame| frame.iid == Some(*id));
                        text(frame.unwrap().function_name_id())
                    });
                    let frames: Vec<String> = frames.collect();
                    match stacks.iter_mut().find(|(known, _)| *known == frames) {
                        Some((_, count)) => *count += 1,
                        None => stacks.push((frames, 1)),
                    }
                    now += delta;
                    times.push(now);
                }
            }
            _ => {}
        }
    }
    stacks.sort();
    (stacks, times)
}

#[test]
fn a_kernel_carries_how_many_samples_it_had_and_why_its_waves_waited() {
    let (making, object) = sampled(1);
    two_dispatches(&making, object);
    let (report, trace) = converted(&[making.capture()], &Options::default());
    assert_eq!((report.samples, report.dropped_samples), (200, 2));
    let details = details(&trace);
    assert_eq!(details.len(), 2);
    for details in details {
        for (name, value) in [
            ("samples", "101"),
            ("samples dropped", "1"),
            ("waves", "waitcnt 60 %, barrier wait 20 %, issued 20 %"),
        ] {
            let expected = (name.to_owned(), value.to_owned());
            assert!(details.contains(&expected), "{details:?}");
        }
    }
}

#[test]
fn samples_become_a_flame_graph_down_to_the_instruction() {
    let (making, object) = sampled(1);
    two_dispatches(&making, object);
    let (_, trace) = converted(&[making.capture()], &Options::default());
    let (stacks, times) = flame(&trace.packets);
    let frames = |last: [&str; 2]| {
        let first = ["GPU 0 · queue 0", "saxpy"];
        first
            .iter()
            .chain(&last)
            .map(|frame| frame.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        stacks,
        [
            (
                frames(["saxpy.cl:4", "v_fma_f32 v0, v1, v2, v0  @0x10"]),
                160
            ),
            (frames(["saxpy.cl:5", "s_barrier  @0x20"]), 40),
        ]
    );
    let expected = (1..=2).flat_map(|work| (0..100).map(move |number| 1000 * work + number));
    assert_eq!(times, expected.collect::<Vec<i64>>());
}

#[test]
fn the_parts_of_a_command_buffer_stay_together_while_kernels_wait_for_samples() {
    let (making, _) = sampled(1);
    let part = |work, command| {
        let mut kernel = making.dispatch(work, work, 100);
        (kernel.work.command, kernel.work.commands) = (command, 2);
        kernel
    };
    let header = Header::of::<KernelDispatch>().with(flags::SHARED);
    let shared = Header::of::<MemorySet>().with(flags::SHARED);
    let mut host = Vec::new();
    for work in 1..=2 {
        let mut kernel = part(work, 0);
        (kernel.header, kernel.launch) = (header, LaunchType::COMMAND_BUFFER);
        let mut fill = MemorySet::blank();
        (fill.header, fill.work) = (shared, part(work, 1).work);
        host.extend_from_slice(bytes_of(&kernel));
        host.extend_from_slice(bytes_of(&fill));
    }
    // The runtime measured only the ends; the completion of the second came first.
    for (work, end) in [(2, 400), (1, 300)] {
        let mut completion = making.completion(work, end - 10, end);
        completion.queued = DeviceTime(100);
        host.extend_from_slice(bytes_of(&completion));
    }
    making.run(MAIN, &[&host]);
    let (_, trace) = converted(&[making.capture()], &Options::default());
    let mut times: Vec<(u64, u64)> = trace
        .stages()
        .iter()
        .filter(|(_, stage, _)| !gputrail_trace::model::EventId(stage.event_id()).is_without_call())
        .map(|(time, stage, _)| (*time, stage.duration()))
        .collect();
    times.sort_unstable();
    assert_eq!(times, [(100, 100), (200, 100), (300, 50), (350, 50)]);
}

#[test]
fn samples_that_come_as_counts_make_a_flame_graph_too() {
    let (making, object) = sampled(1);
    let (mut host, mut device) = (Vec::new(), Vec::new());
    for work in 1..=2 {
        let start = work * 1_000_000;
        host.extend_from_slice(bytes_of(&making.dispatch(work, work, start - 400)));
        host.extend_from_slice(bytes_of(&call(work, 0, start - 500, start - 100)));
        host.extend_from_slice(bytes_of(&making.completion(work, start, start + 100_000)));
        for (offset, samples) in [(HOT, 80), (BARRIER, 20)] {
            let counted = SampleAggregate {
                work: WorkId(work),
                correlation: CorrelationId(work),
                agent: making.agent,
                kernel: making.kernel,
                code_object: object,
                offset,
                samples,
                method: SamplingMethod::HOST_TRAP,
                ..SampleAggregate::blank()
            };
            device.extend_from_slice(bytes_of(&counted));
        }
        device.extend_from_slice(bytes_of(&totals(&making, work, 100, 0)));
    }
    // Samples of a dispatch that was not recorded.
    let stray = SampleAggregate {
        work: WorkId(9),
        agent: making.agent,
        kernel: making.kernel,
        samples: 3,
        method: SamplingMethod::HOST_TRAP,
        ..SampleAggregate::blank()
    };
    device.extend_from_slice(bytes_of(&stray));
    making.run(MAIN, &[&host]);
    making.run(HELPER, &[&device]);
    let (report, trace) = converted(&[making.capture()], &Options::default());
    assert_eq!(report.samples, 203);
    let (stacks, times) = flame(&trace.packets);
    let shown: Vec<_> = stacks
        .iter()
        .map(|(frames, count)| (frames.last().unwrap().as_str(), *count))
        .collect();
    assert!(shown.contains(&("v_fma_f32 v0, v1, v2, v0  @0x10", 160)));
    assert!(shown.contains(&("s_barrier  @0x20", 40)));
    assert_eq!(times.len(), 203);
    // Within the times of their dispatches, in us.
    assert!(
        times
            .iter()
            .all(|time| (1000..=1100).contains(time) || (2000..=2100).contains(time))
    );
}

#[test]
fn exact_counts_are_kept_with_what_they_are_of() {
    let (making, object) = sampled(1);
    two_dispatches(&making, object);
    let (_, trace) = converted(&[making.capture()], &Options::default());
    let counts = counts(&trace);
    let counted = counts.iter().flat_map(|counts| &counts.counts);
    let counted = counted.map(|count| {
        let outcomes = count.outcomes.chunks(3).map(|outcome| outcome[1]);
        (count.address(), outcomes.collect::<Vec<_>>())
    });
    assert_eq!(
        counted.collect::<Vec<_>>(),
        [(1, vec![120, 40]), (2, vec![40])]
    );
    let all = &counts[0];
    assert_eq!((all.pid(), all.process()), (1, "app"));
    assert_eq!(all.kernels[0].name(), "saxpy");
    assert_eq!(all.agents[0].name(), "GPU 0 (Device)");
    let text = |id: u32| {
        all.texts
            .iter()
            .find(|text| text.id() == id)
            .unwrap()
            .text()
    };
    assert_eq!(
        text(all.addresses[0].instruction()),
        "v_fma_f32 v0, v1, v2, v0"
    );
    assert_eq!(text(all.addresses[0].frames[0].file()), "/tmp/saxpy.cl");
    let lines = all.lines.iter().map(|line| (line.line(), line.text()));
    assert!(
        lines
            .clone()
            .any(|line| line == (4, "    sum += a * x[i];"))
    );
    assert_eq!(lines.count(), 5, "those around them too");
    let totals = (
        all.totals[0].dispatches(),
        all.totals[0].samples(),
        all.totals[0].dropped(),
    );
    assert_eq!(totals, (2, 202, 2));
    assert_eq!(all.configurations[0].interval(), 1024);
    assert_eq!(counts.last().unwrap().shown_one_of(), 1);
}

#[test]
fn kernels_without_samples_do_not_wait_for_them_and_samples_that_come_later_still_count() {
    let (making, object) = sampled(4242);
    let many = (1 << 14) + 10;
    for work in 10..10 + many {
        let start = work * 1_000;
        let mut records = bytes_of(&making.dispatch(work, work, start - 400)).to_vec();
        records.extend_from_slice(bytes_of(&making.completion(work, start, start + 100)));
        making.run(MAIN, &[&records]);
    }
    two_dispatches(&making, object);
    let (_, trace) = converted(&[making.capture()], &Options::default());
    assert_eq!(details(&trace).len() as u64, many + 2);
    let counts = counts(&trace);
    let counted = counts.iter().flat_map(|counts| &counts.counts);
    let outcomes = counted.flat_map(|count| count.outcomes.chunks(3));
    let samples: u64 = outcomes.map(|outcome| outcome[1]).sum();
    assert_eq!(samples, 200);
}

#[test]
fn raw_samples_are_kept_on_request_only() {
    let (making, object) = sampled(1);
    two_dispatches(&making, object);
    let (_, without) = converted(&[making.capture()], &Options::default());
    assert!(counts(&without).iter().all(|counts| counts.raw.is_none()));
    let options = Options {
        raw_samples: true,
        ..Options::default()
    };
    let (_, trace) = converted(&[making.capture()], &options);
    let raw = counts(&trace)
        .into_iter()
        .find_map(|counts| counts.raw)
        .unwrap();
    assert_eq!(raw.times.len(), 200);
    let mut time = 0;
    for (number, delta) in (0_i64..).zip(&raw.times) {
        time += delta;
        assert_eq!(time, (1 + number / 100) * 1_000_000 + number % 100 * 1000);
    }
    assert_eq!(raw.workgroups.len(), 600);
    for column in [&raw.exec_masks, &raw.dispatches, &raw.correlations] {
        assert_eq!(column.len(), 200);
    }
    assert_eq!(
        (raw.exec_masks[7], raw.wave_counts[7], raw.dispatches[150]),
        (0xff, 4, 2)
    );
}

#[test]
fn reasons_become_counters_of_the_agent() {
    let (making, object) = sampled(1);
    two_dispatches(&making, object);
    let (_, trace) = converted(&[making.capture()], &Options::default());
    let named: Vec<_> = trace
        .packets
        .iter()
        .filter_map(|packet| match &packet.data {
            Some(Data::TrackDescriptor(track)) => track.counter.as_ref().and(track.name.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        named,
        [
            "GPU 0 issued",
            "GPU 0 stalled: waitcnt",
            "GPU 0 stalled: barrier wait"
        ]
    );
}

#[test]
fn samples_of_what_is_not_known_are_shown_all_the_same() {
    let making = Making::new(1);
    let sample = HostTrapSample {
        agent: making.agent,
        offset: 0xdead_beef,
        time: DeviceTime(5000),
        absent: Absent::DISPATCH,
        ..HostTrapSample::blank()
    };
    making.run(
        HELPER,
        &[bytes_of(&sample), bytes_of(&InvalidSample::blank())],
    );
    let (report, trace) = converted(&[making.capture()], &Options::default());
    assert_eq!((report.samples, report.invalid_samples), (1, 1));
    let (stacks, _) = flame(&trace.packets);
    let [(frames, 1)] = &stacks[..] else {
        panic!("{stacks:?}");
    };
    assert_eq!(
        frames[..],
        [
            "unknown device · unknown queue",
            "code outside of kernels",
            "0xdeadbeef"
        ]
    );
    let counts = counts(&trace);
    let missing = counts[0].addresses[0].missing.unwrap();
    assert_ne!(missing, 0, "it is told why there is no line");
}

#[test]
fn a_trace_that_is_cut_has_what_was_counted_before() {
    let (making, object) = sampled(1);
    let samples: Vec<_> = (0..40_000_u64)
        .map(|number| stochastic(&making, object, 1, 1000 + number, (HOT + number % 2, None)))
        .collect();
    for samples in samples.chunks(1000) {
        let bytes: Vec<&[u8]> = samples.iter().map(bytes_of).collect();
        making.run(HELPER, &bytes);
    }
    let (_, trace) = converted(&[making.capture()], &Options::default());
    let counts = counts(&trace);
    assert!(counts.len() >= 3, "they are told along the way");
    let all = counts.iter().flat_map(|counts| &counts.counts);
    let sum: u64 = all.map(|count| count.outcomes[1]).sum();
    assert_eq!(sum, 40_000);
}

#[test]
fn a_trace_of_samples_is_without_findings() {
    let (making, object) = sampled(1);
    two_dispatches(&making, object);
    let mut out = Vec::new();
    make_trace(
        &[making.capture()],
        Exporter::new(&mut out),
        &Options::default(),
        &mut (),
    )
    .unwrap();
    let checked = reader::check(&out[..]);
    assert_eq!(checked.findings.list(), []);
}
