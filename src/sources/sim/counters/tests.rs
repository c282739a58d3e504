//! Counters of the demo, as its capture has them.

use super::*;
use crate::sim::{SimulationError, TrainingRun};
use gputrail_buffer::clock::TickSource;
use gputrail_capture::{Reader, Writer};
use gputrail_collect::counting::CounterChoice;
use gputrail_collect::recorder::RecorderOptions;
use gputrail_collect::scope::Scope;
use gputrail_counters::{CounterIndex, Definition, Invalid, Measured, evaluate};
use gputrail_record::{Activity, Completion, CounterInvalid, CounterValue, KernelDispatch};

const DEMO: TrainingRun = TrainingRun { seed: 5, steps: 1 };
pub(super) const DISPATCH: CountingMode = CountingMode::Dispatch;

#[derive(Default)]
pub(super) struct Run {
    pub(super) kernels: Vec<KernelDispatch>,
    completions: HashMap<WorkId, Completion>,
    values: Vec<CounterValue>,
    names: HashMap<u32, String>,
}

pub(super) fn run(names: &[&str], mode: CountingMode) -> Result<Run, SimulationError> {
    run_ranges(names, mode, None)
}

/// [`run`], of ranges whose names match `range`.
fn run_ranges(
    names: &[&str],
    mode: CountingMode,
    range: Option<&str>,
) -> Result<Run, SimulationError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demo.gputrail");
    let choice = CounterChoice {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        mode,
        range: range.map(str::to_owned),
        ..CounterChoice::default()
    };
    let options = RecorderOptions {
        ticks: TickSource::Virtual,
        scope: Scope {
            counters: Some(choice),
            ..Scope::default()
        },
        ..RecorderOptions::default()
    };
    let header = Recorder::file_header(options.ticks, TrainingRun::PROCESS);
    let writer = Writer::create(&path, &header).unwrap();
    let recorder = Recorder::start(&options, None, writer).unwrap();
    DEMO.run(&recorder)?;
    recorder.finish().unwrap();
    let reader = Reader::open(&path).unwrap();
    let mut run = Run::default();
    let mut chunks = reader.chunks();
    while let Some(chunk) = chunks.next() {
        for record in chunk.records() {
            match record.activity() {
                // Kernels that kernels launch are counted with the device alone.
                Activity::KernelDispatch(one)
                    if !mode.is_of_dispatches() || one.work.stream.is_some() =>
                {
                    run.kernels.push(*one);
                }
                Activity::Completion(one) => drop(run.completions.insert(one.work, *one)),
                Activity::CounterValue(one) => run.values.push(*one),
                _ => {}
            }
        }
    }
    for value in &run.values {
        let name = reader.metadata().string(value.counter);
        run.names.insert(value.counter.0, name.to_owned());
        let range = reader.metadata().string(value.range);
        run.names.insert(value.range.0, range.to_owned());
    }
    Ok(run)
}

impl Run {
    /// The values of a counter by dispatch.
    pub(super) fn of(&self, name: &str) -> HashMap<WorkId, f64> {
        let named = self
            .values
            .iter()
            .filter(|value| self.names[&value.counter.0] == name);
        named
            .map(|value| (value.work, value.number().unwrap()))
            .collect()
    }
}

fn waves(kernel: &KernelDispatch) -> u64 {
    let groups: u64 = kernel
        .grid
        .iter()
        .zip(kernel.workgroup)
        .map(|(items, size)| items / u64::from(size))
        .product();
    let items: u32 = kernel.workgroup.iter().product();
    groups * u64::from(items.div_ceil(64))
}

#[test]
fn each_dispatch_has_its_own_waves_cycles_and_metrics() {
    let names = ["SQ_WAVES", "SQ_INSTS_VALU", "VALUInsts", "GRBM_COUNT"];
    let run = run(&names, DISPATCH).unwrap();
    assert!(run.kernels.len() > 100);
    let [count, valu, per_wave, cycles] = names.map(|name| run.of(name));
    for kernel in &run.kernels {
        let work = kernel.work.id;
        assert_eq!(count[&work], waves(kernel) as f64);
        assert_eq!(per_wave[&work], valu[&work] / count[&work]);
        let completion = &run.completions[&work];
        // The device's clock drifts by some parts per million.
        let expected = (completion.end.0 - completion.start.0) as f64 * 1.5;
        assert!((cycles[&work] - expected).abs() <= 2.0 + expected * 1e-4);
    }
    assert_eq!(run.values.len(), names.len() * run.kernels.len());
    assert!(run.values.iter().all(|value| value.remaining < 4));
}

/// The values of a counter by range and agent, with the ticks of the range.
fn of_ranges<'r>(run: &'r Run, name: &str) -> Vec<(&'r str, &'r CounterValue)> {
    let of_name = run
        .values
        .iter()
        .filter(|value| run.names[&value.counter.0] == name);
    of_name
        .map(|value| (&*run.names[&value.range.0], value))
        .collect()
}

#[test]
fn a_range_has_the_sums_of_its_kernels_and_percentages_of_the_sums() {
    let names = ["SQ_WAVES", "SQ_INSTS_VALU", "VALUInsts"];
    let of_kernels = run(&names, DISPATCH).unwrap();
    let valu = of_kernels.of("SQ_INSTS_VALU");
    let shape = |kernel: &KernelDispatch| (kernel.kernel, kernel.grid, kernel.workgroup);
    let mut instructions = HashMap::new();
    for kernel in &of_kernels.kernels {
        instructions.insert(shape(kernel), valu[&kernel.work.id]);
    }
    // The step is a range of several threads.
    let counted = run_ranges(&names, CountingMode::Range, Some("step ?")).unwrap();
    let all = of_ranges(&counted, "SQ_WAVES");
    let valid = |value: &&(&str, &CounterValue)| value.1.invalid == CounterInvalid::NO;
    assert!(all.iter().any(|value| valid(&value)) && !all.iter().all(|value| valid(&value)));
    for (name, waves_of_range) in &all {
        assert_eq!(*name, "step 1");
        assert!(waves_of_range.start.0 < waves_of_range.end.0);
        assert!(!waves_of_range.work.is_some());
        if waves_of_range.invalid != CounterInvalid::NO {
            assert_eq!(waves_of_range.invalid, CounterInvalid::OTHER_RANGE);
            continue;
        }
        let (start, end) = (waves_of_range.start.0, waves_of_range.end.0);
        let within = counted.kernels.iter().filter(|kernel| {
            kernel.work.agent == waves_of_range.agent
                && (start..end).contains(&kernel.work.enqueued.0)
        });
        let within: Vec<&KernelDispatch> = within.collect();
        assert!(!within.is_empty());
        let expected: u64 = within.iter().map(|kernel| waves(kernel)).sum();
        assert_eq!(waves_of_range.number(), Some(expected as f64));
        let same = |name: &str| {
            let values = of_ranges(&counted, name);
            let is_same = |value: &&(&str, &CounterValue)| {
                (value.1.agent, value.1.start) == (waves_of_range.agent, waves_of_range.start)
            };
            values.iter().find(is_same).unwrap().1.number().unwrap()
        };
        let sum: f64 = within
            .iter()
            .map(|kernel| instructions[&shape(kernel)])
            .sum();
        assert_eq!(same("SQ_INSTS_VALU"), sum);
        assert_eq!(same("VALUInsts"), sum / expected as f64);
    }
    let none = run_ranges(&names, CountingMode::Range, Some("another")).unwrap();
    assert!(none.values.is_empty());
}

#[test]
fn counted_kernels_of_a_device_run_one_after_the_other() {
    let run = run(&["SQ_WAVES"], DISPATCH).unwrap();
    for agent in [AgentId(1), AgentId(2)] {
        let of_agent = run
            .kernels
            .iter()
            .filter(|kernel| kernel.work.agent == agent);
        let mut ran: Vec<_> = of_agent
            .map(|kernel| &run.completions[&kernel.work.id])
            .map(|completion| (completion.start, completion.end))
            .collect();
        ran.sort();
        assert!(ran.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        assert!(ran.len() > 10);
    }
}

#[test]
fn more_passes_give_the_same_counts() {
    let one = run(&["SQ_WAVES", "TCC_MISS_sum"], DISPATCH).unwrap();
    // SQ counts 8 events at a time, TCC 4: these need two passes.
    let all = architecture(ARCHITECTURE);
    let basic = all
        .counters()
        .iter()
        .filter(|counter| matches!(counter.definition, Definition::Basic { .. }));
    let mut names: Vec<&str> = basic.map(|counter| &*counter.name).collect();
    names.push("TCC_MISS_sum");
    let several = run(&names, DISPATCH).unwrap();
    for name in ["SQ_WAVES", "TCC_MISS_sum"] {
        assert_eq!(one.of(name), several.of(name));
    }
    // A kernel takes as much longer as there are passes.
    let time = |run: &Run| {
        let of = |kernel: &KernelDispatch| {
            let completion = &run.completions[&kernel.work.id];
            completion.end.0 - completion.start.0
        };
        run.kernels.iter().map(of).sum::<u64>()
    };
    assert!(time(&several) > time(&one) * 3 / 2);
}

#[test]
fn the_spans_of_a_device_add_up_to_its_dispatches() {
    let period = Nanos(100_000);
    let by_time = run(&["SQ_WAVES", "GRBM_COUNT"], CountingMode::Device { period }).unwrap();
    let waves: u64 = by_time.kernels.iter().map(waves).sum();
    let of = |name: &str| -> Vec<&CounterValue> {
        let named = by_time.values.iter();
        named
            .filter(|value| by_time.names[&value.counter.0] == name)
            .collect()
    };
    let counted: f64 = of("SQ_WAVES")
        .iter()
        .map(|value| value.number().unwrap())
        .sum();
    assert_eq!(counted, waves as f64);
    // The last period of each device ends with its last work.
    let cycles = of("GRBM_COUNT");
    for value in &cycles {
        assert!(value.number().is_some_and(|cycles| cycles <= 150_000.0));
        assert!(value.work == WorkId::NONE && value.start < value.end);
    }
    let is_short = |value: &&&CounterValue| value.number() < Some(150_000.0);
    let short: Vec<AgentId> = cycles.iter().filter(is_short).map(|of| of.agent).collect();
    assert!(
        short.len() <= 2 && short.first() != short.get(1),
        "{short:?}"
    );
}

#[test]
fn unknown_counters_and_periods_are_refused_with_what_there_is() {
    let refused = |names: &[&str], mode| run(names, mode).err().unwrap().to_string();
    let unknown = refused(&["SQ_WAVE"], DISPATCH);
    assert!(unknown.contains("the nearest is SQ_WAVES"), "{unknown}");
    let period = Nanos(10);
    let short = refused(&["SQ_WAVES"], CountingMode::Device { period });
    assert!(short.contains("shortest period is 10us"), "{short}");
    assert!(run(&["sq_waves"], DISPATCH).is_ok());
}

#[test]
fn all_metrics_of_both_architectures_have_values() {
    let program = crate::sim::waves::WaveProgram::read(
        "1 s_load_dwordx4 s[0:3], s[4:5], 0x0
         s_waitcnt lgkmcnt(0)
         2 global_load_dwordx4 v[4:7], v[0:1], off
         3 v_add_f32 v8, v4, v8
         s_add_u32 s0, s0, s1
         4 ds_write_b32 v0, v1
         5 global_store_dword v[0:1], v8, off
         s_endpgm",
    );
    let mut counts = EventCounts::of_launch(&program.unwrap(), 8, 4);
    for event in [
        CountedEvent::Cycle,
        CountedEvent::ActiveCycle,
        CountedEvent::UnitCycle,
        CountedEvent::WaveCycle,
    ] {
        counts.add(event, 3_000);
    }
    assert_eq!(
        (
            counts.get(CountedEvent::Wave),
            counts.get(CountedEvent::Instruction)
        ),
        (32, 32 * 8)
    );
    // 64 lanes of 16 bytes are 16 requests.
    assert_eq!(
        (
            counts.get(CountedEvent::Read),
            counts.get(CountedEvent::Write)
        ),
        (32 * 16, 32 * 4)
    );
    for name in ["gfx9", "gfx11"] {
        let architecture = architecture(name);
        let metrics = architecture.metrics_in_order();
        assert!(metrics.len() > 20, "{name}");
        let all = (0..architecture.counters().len() as u32).map(CounterIndex);
        let value = |index: CounterIndex| {
            let values = events::values(&architecture.counter(index).name, &counts);
            values.into_iter().map(|value| vec![value as f64]).collect()
        };
        let measured = Measured {
            dispatches: 1,
            counters: all
                .filter(|index| {
                    let definition = &architecture.counter(*index).definition;
                    matches!(definition, Definition::Basic { .. })
                })
                .map(|index| ((index, gputrail_counters::Resolution::None), value(index)))
                .collect(),
            properties: properties(),
            kernel_times: vec![2_000.0],
        };
        let columns = evaluate(&architecture, metrics, &measured);
        for (index, column) in metrics.iter().zip(columns) {
            let metric = &architecture.counter(*index).name;
            assert_ne!(column.get(0), Err(Invalid::Missing), "{name} {metric}");
            assert_ne!(column.get(0), Err(Invalid::Overflow), "{name} {metric}");
        }
        let occupancy = architecture.find("VALUInsts").unwrap();
        let column = &evaluate(&architecture, &[occupancy], &measured)[0];
        assert_eq!(column.get(0), Ok(1.0), "{name}");
    }
    assert_eq!(CounterInvalid::default(), CounterInvalid::NO);
}

/// The names of the metrics of an architecture that a device counts, which are each evaluated on the demo.
#[test]
fn a_gfx11_device_beside_a_gfx9_one_has_all_of_its_own_metrics() {
    let gfx11 = architecture("gfx11");
    let metrics = gfx11.metrics_in_order().iter();
    let metrics: Vec<String> = metrics
        .map(|index| gfx11.counter(*index).name.clone())
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demo.gputrail");
    let options = RecorderOptions {
        ticks: TickSource::Virtual,
        scope: Scope {
            counters: Some(CounterChoice {
                names: metrics.clone(),
                ..CounterChoice::default()
            }),
            ..Scope::default()
        },
        ..RecorderOptions::default()
    };
    let header = Recorder::file_header(options.ticks, TrainingRun::PROCESS);
    let writer = Writer::create(&path, &header).unwrap();
    let recorder = Recorder::start(&options, None, writer).unwrap();
    let simulation = DEMO.prepare(&recorder);
    let agents = simulation.agents();
    assert!(simulation.counts_as(agents[1], "gfx11"));
    assert!(!simulation.counts_as(agents[1], "gfx1"));
    simulation.run().unwrap();
    recorder.finish().unwrap();
    let reader = Reader::open(&path).unwrap();
    let mut counted: HashMap<(AgentId, String), Vec<CounterValue>> = HashMap::new();
    let mut chunks = reader.chunks();
    while let Some(chunk) = chunks.next() {
        for record in chunk.records() {
            if let Some(value) = record.read::<CounterValue>() {
                let name = reader.metadata().string(value.counter).to_owned();
                counted.entry((value.agent, name)).or_default().push(value);
            }
        }
    }
    for name in &metrics {
        let values = &counted[&(agents[1], name.clone())];
        assert!(values.len() > 20, "{name}");
        // Kernels without vector instructions or memory accesses divide by 0.
        let is_told = |value: &CounterValue| {
            value.number().is_some() || value.invalid == CounterInvalid::DIVISION_BY_ZERO
        };
        assert!(values.iter().all(is_told), "{name}");
    }
    let valid = |name: &str| counted[&(agents[1], name.to_owned())][0].number();
    assert_eq!(valid("GPU_UTIL"), Some(100.0));
    // The other device has those of its own, and none of gfx11's.
    assert!(counted.contains_key(&(agents[0], "TA_BUSY_avr".to_owned())));
    assert!(!counted.contains_key(&(agents[0], "GPU_UTIL".to_owned())));
}
