//! Tests of selections.

use super::*;
use crate::model::{OutcomeCount, RawSample, SampleCount, SampleTotals};
use crate::selection::TimeBound;
use gputrail_code::aggregate::WaveOutcome;
use gputrail_record::{ProcessId, SamplingMethod};

/// The agents, kernels and numbers of the counts that pass, and the times of single samples.
#[derive(Default)]
struct Passed {
    counts: Vec<(u32, u32, u64)>,
    totals: u64,
    raw: Vec<u64>,
    stacks: Vec<u64>,
}

impl Consumer for Passed {
    crate::leave_out!(
        clocks attributes agents process track queue counters call slice end instant work value counter_values stack
        loss note
    );

    fn samples(&mut self, samples: &Samples) -> io::Result<()> {
        for count in &samples.counts {
            let sum = count.outcomes.iter().map(|outcome| outcome.samples).sum();
            self.counts.push((count.agent.0, count.kernel.0, sum));
        }
        self.totals += samples
            .totals
            .iter()
            .map(|totals| totals.samples)
            .sum::<u64>();
        self.raw
            .extend(samples.raw.iter().map(|sample| sample.time.0));
        Ok(())
    }

    fn stack_samples(&mut self, samples: &StackSamples<'_>) -> io::Result<()> {
        let times = samples.samples.iter().map(|(time, _)| time.0);
        self.stacks.extend(times);
        Ok(())
    }
}

fn outcome() -> WaveOutcome {
    WaveOutcome::from_code(0)
}

/// Passes samples of two devices and two kernels, of a process with the id 7, through a filter.
fn passed(selection: Selection) -> (Passed, u64, u64) {
    let mut passed = Passed::default();
    let mut filter = Filter::new(selection, &mut passed);
    filter.begin(&TraceHeader::default()).unwrap();
    let title = |number: u32| Agent {
        title: format!("GPU {number}"),
        ..Agent::default()
    };
    filter.agents(AgentIndex(0), &[title(0), title(1)]).unwrap();
    let process = Process {
        pid: ProcessId(7),
        name: "app",
        rank: "",
        command: &[],
        order: None,
    };
    filter.process(ProcessIndex(0), &process).unwrap();
    let track = Track {
        parent: Parent::Process(ProcessIndex(0)),
        name: "samples",
        kind: TrackKind::Samples,
        order: None,
    };
    filter.track(TrackIndex(0), &track).unwrap();
    let places = [(1, 1), (1, 2), (2, 1)];
    let places = places.map(|(agent, kernel)| (AgentId(agent), KernelId(kernel)));
    let samples = Samples {
        process: Some(ProcessIndex(0)),
        agents: vec![
            (AgentId(1), "GPU 0 (a model)".to_owned()),
            (AgentId(2), "GPU 1".to_owned()),
        ],
        kernels: vec![
            (KernelId(1), "saxpy".to_owned()),
            (KernelId(2), "gemm".to_owned()),
        ],
        counts: places
            .iter()
            .map(|(agent, kernel)| SampleCount {
                agent: *agent,
                kernel: *kernel,
                address: 0,
                outcomes: vec![OutcomeCount {
                    outcome: outcome(),
                    samples: 10,
                    latency: 0,
                }],
            })
            .collect(),
        totals: places
            .iter()
            .map(|(agent, kernel)| SampleTotals {
                agent: *agent,
                kernel: *kernel,
                method: SamplingMethod::HOST_TRAP,
                dispatches: 1,
                samples: 10,
                dropped: 0,
            })
            .collect(),
        raw: (100..)
            .zip(places)
            .map(|(time, (agent, kernel))| RawSample {
                time: Nanos(time),
                address: 0,
                outcome: outcome(),
                agent,
                kernel,
                work: Default::default(),
                correlation: Default::default(),
                external: gputrail_record::ExternalId::NONE,
                exec_mask: 0,
                hardware: Default::default(),
                workgroup: [0; 3],
                wave_in_group: 0,
                wave_count: 0,
                absent: Default::default(),
            })
            .collect(),
        ..Samples::default()
    };
    filter.samples(&samples).unwrap();
    let mut stacks = Vec::new();
    for (number, (queue, kernel)) in (0..).zip([
        ("GPU 0 · queue", "saxpy"),
        ("GPU 0 · queue", "gemm"),
        ("GPU 1 · queue", "saxpy"),
    ]) {
        let frame = |name: &str| StackFrame {
            name: name.to_owned(),
            mapping: String::new(),
        };
        let frames = [frame(queue), frame(kernel)];
        filter
            .stack(TrackIndex(0), StackIndex(number), &frames)
            .unwrap();
        stacks.push((Nanos(100 + u64::from(number)), StackIndex(number)));
    }
    let stacks = StackSamples {
        track: TrackIndex(0),
        samples: &stacks,
    };
    filter.stack_samples(&stacks).unwrap();
    let counts = (filter.kept(), filter.left_out());
    (passed, counts.0, counts.1)
}

#[test]
fn samples_are_selected_by_process_device_and_kernel() {
    let all = passed(Selection::default());
    assert_eq!((all.0.counts.len(), all.1, all.2), (3, 30, 0));
    let (none, kept, left_out) = passed(Selection {
        processes: vec!["8".to_owned()],
        ..Selection::default()
    });
    assert_eq!((none.counts.len(), none.stacks.len()), (0, 0));
    assert_eq!((kept, left_out), (0, 30));
    let (second, kept, left_out) = passed(Selection {
        devices: vec![1],
        ..Selection::default()
    });
    assert_eq!(second.counts, [(2, 1, 10)]);
    assert_eq!(
        (second.totals, second.raw, second.stacks),
        (10, vec![102], vec![102])
    );
    assert_eq!((kept, left_out), (10, 20));
    let (named, ..) = passed(Selection {
        names: vec!["g*m".to_owned()],
        ..Selection::default()
    });
    assert_eq!(named.counts, [(1, 2, 10)]);
    assert_eq!((named.raw, named.stacks), (vec![101], vec![101]));
}

#[test]
fn samples_are_selected_by_time_and_counts_belong_to_the_first_part() {
    let at = |time| Some(TimeBound::Absolute(Nanos(time)));
    let (first, kept, _) = passed(Selection {
        to: at(100),
        ..Selection::default()
    });
    assert_eq!((first.raw, first.stacks, kept), (vec![100], vec![100], 30));
    let (second, kept, _) = passed(Selection {
        from: at(101),
        ..Selection::default()
    });
    assert_eq!(
        (second.raw, second.stacks),
        (vec![101, 102], vec![101, 102])
    );
    assert_eq!((second.counts.len(), second.totals, kept), (0, 0, 0));
}

#[test]
fn values_of_a_selection_that_match_nothing_are_told() {
    let mut nobody = ();
    let selection = Selection {
        streams: vec![7, 99],
        names: vec!["*".to_owned(), "missing".to_owned()],
        ..Selection::default()
    };
    let mut filter = Filter::new(selection, &mut nobody);
    let instant = Instant {
        track: TrackIndex(0),
        name: "a",
        category: "",
        time: Nanos(1),
        arguments: &[],
        flows: &[],
    };
    filter.instant(&instant).unwrap();
    let words = ["stream 7", "stream 99", "name missing"];
    assert_eq!(filter.unmatched(), words);
}

/// The begins and ends of slices that pass, and the calls.
#[derive(Default)]
struct Slices(Vec<String>);

impl Consumer for Slices {
    crate::leave_out!(
        clocks attributes agents process track queue counters instant work value counter_values samples stack
        stack_samples loss note
    );

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        self.0.push(format!("call {}", call.start.0));
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let number = slice
            .arguments
            .iter()
            .map(|one| format!(" {:?}", one.value));
        let number: String = number.collect();
        self.0
            .push(format!("+{} {}{number}", slice.name, slice.start.0));
        Ok(())
    }

    fn end(&mut self, _: TrackIndex, end: Nanos) -> io::Result<()> {
        self.0.push(format!("-{}", end.0));
        Ok(())
    }
}

/// Passes pushed ranges of a thread, and calls of it, through a filter that keeps what touches 100 and later: `+name` at a
/// time is a begin, `-` an end, and `call` a call of 1 ns.
fn ranges(steps: &[(&str, u64)]) -> (Vec<String>, u64, u64) {
    let mut slices = Slices::default();
    let selection = Selection {
        from: Some(TimeBound::Absolute(Nanos(100))),
        ..Selection::default()
    };
    let mut filter = Filter::new(selection, &mut slices);
    filter.begin(&TraceHeader::default()).unwrap();
    let (process, thread) = (ProcessIndex(0), ThreadId(8));
    for (index, kind) in [
        TrackKind::Thread(process, thread),
        TrackKind::ThreadRanges(process, thread),
    ]
    .into_iter()
    .enumerate()
    {
        let track = Track {
            parent: Parent::Trace,
            name: "",
            kind,
            order: None,
        };
        filter.track(TrackIndex(index as u32), &track).unwrap();
    }
    let function = crate::model::Function {
        index: crate::model::FunctionIndex(0),
        name: "f".into(),
        domain: gputrail_record::Domain::OPENCL,
        category: None,
        group: gputrail_record::OperationGroup::OTHER,
        parameters: Vec::new(),
    };
    for (what, time) in steps {
        let (track, time) = (TrackIndex(1), Nanos(*time));
        match what.strip_prefix('+') {
            Some(name) => {
                let argument = EventArgument {
                    name: "value",
                    value: crate::model::Value::Text(name),
                };
                let slice = Slice {
                    track,
                    name,
                    category: "",
                    start: time,
                    end: None,
                    open: true,
                    correlation: CorrelationId::NONE,
                    arguments: &[argument],
                    flows: &[],
                };
                filter.slice(&slice).unwrap();
            }
            None if *what == "call" => {
                let call = Call {
                    process,
                    thread,
                    track: TrackIndex(0),
                    function: &function,
                    start: time,
                    end: Some(Nanos(time.0 + 1)),
                    open: false,
                    nested: false,
                    correlation: CorrelationId::NONE,
                    external: Default::default(),
                    error: None,
                    submitted: &[],
                    waited: &[],
                    arguments: &[],
                    flows: &[],
                };
                filter.call(&call).unwrap();
            }
            None => filter.end(track, time).unwrap(),
        }
    }
    filter.finish().unwrap();
    let counts = (filter.kept(), filter.left_out());
    (slices.0, counts.0, counts.1)
}

#[test]
fn pushed_ranges_that_ended_before_the_interval_are_left_out() {
    let (passed, kept, left_out) = ranges(&[
        ("+a", 10),
        ("+b", 20),
        ("-", 30),
        ("-", 99),
        ("+c", 100),
        ("-", 110),
    ]);
    assert_eq!(passed, ["+c 100 Text(\"c\")", "-110"]);
    assert_eq!((kept, left_out), (1, 2));
}

#[test]
fn pushed_ranges_around_the_begin_of_the_interval_are_kept_in_their_order() {
    let (passed, kept, left_out) = ranges(&[
        ("+a", 10),
        ("+b", 20),
        ("-", 30),
        ("+c", 40),
        ("call", 50),
        ("call", 120),
        ("-", 130),
        ("-", 140),
        ("+d", 150),
    ]);
    let expected = [
        "+a 10 Text(\"a\")",
        "+c 40 Text(\"c\")",
        "call 120",
        "-130",
        "-140",
        "+d 150 Text(\"d\")",
    ];
    assert_eq!(passed, expected);
    assert_eq!((kept, left_out), (4, 2));
}

#[test]
fn pushed_ranges_without_an_end_last_until_the_end_of_the_recording() {
    let (passed, kept, _) = ranges(&[("+a", 10), ("+b", 20), ("-", 100)]);
    assert_eq!((passed.len(), kept), (3, 2));
    let (passed, ..) = ranges(&[("+a", 10)]);
    assert_eq!(passed, ["+a 10 Text(\"a\")"]);
}

/// The times of notes that pass.
#[derive(Default)]
struct Notes(Vec<u64>);

impl Consumer for Notes {
    crate::leave_out!(
        clocks attributes agents process track queue counters call slice end instant work value counter_values samples stack
        stack_samples loss
    );

    fn note(&mut self, note: &Note<'_>) -> io::Result<()> {
        self.0.push(note.time.0);
        Ok(())
    }
}

#[test]
fn notes_from_outside_stand_at_the_border() {
    let mut notes = Notes::default();
    let mut filter = Filter::new(
        Selection {
            from: Some(TimeBound::Absolute(Nanos(100))),
            to: Some(TimeBound::Absolute(Nanos(200))),
            ..Selection::default()
        },
        &mut notes,
    );
    filter.begin(&TraceHeader::default()).unwrap();
    for time in [1, 150, 300] {
        let note = Note {
            process: ProcessIndex(0),
            time: Nanos(time),
            name: "recording",
            arguments: &[],
        };
        filter.note(&note).unwrap();
    }
    assert_eq!(notes.0, [100, 150, 200]);
}
