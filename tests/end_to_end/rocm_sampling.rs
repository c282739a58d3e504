//! PC sampling of ROCm through the stand-in of rocprofiler-sdk, which gives the same samples for each dispatch and logs them: they
//! must be in the recording, with all that the SDK tells of each. That sampling works on a GPU is not shown here.

use std::collections::BTreeMap;

use gputrail_capture::{Metadata, Reader};
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::program::run;
use gputrail_record::{
    Activity, CodeObjectId, HostTrapSample, KernelDispatch, SamplingTotals, StochasticSample,
    WorkId,
};
use serde_json::Value;

use crate::command::{TestDir, kernels, well};
use crate::rocm_stand_ins::{NEWEST, StandIns};

const HOST_TRAP: [&str; 5] = [
    "--pc-sampling",
    "host-trap",
    "--interval",
    "1ms",
    "--capture",
];
const STOCHASTIC: [&str; 5] = [
    "--pc-sampling",
    "stochastic",
    "--interval",
    "65536cycles",
    "--capture",
];
/// The variable without which the SDK does not sample.
const ENABLED: (&str, &str) = ("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "1");
/// The launches of `program sampled 20`.
const LAUNCHES: [(&str, usize); 2] = [("_Z5scalePff", 40), ("saxpy", 2)];
/// Samples of each launch, and of all.
const OF_A_LAUNCH: usize = 6;
const ALL: usize = 42 * OF_A_LAUNCH;
/// The part of the hardware of all samples: chiplet 5, wave 3, SIMD 2, pipe 1, compute unit 9, array 1, engine 6, workgroup 4, memory 8,
/// queue 7, microengine 1.
const HARDWARE: u64 = 5
    | 3 << 6
    | 2 << 13
    | 1 << 15
    | 9 << 19
    | 1 << 23
    | 6 << 24
    | 4 << 29
    | 8 << 36
    | 7 << 42
    | 1 << 46;

/// The records of samples in the capture that a recording left.
#[derive(Default)]
struct Recorded {
    metadata: Metadata,
    dispatches: BTreeMap<WorkId, KernelDispatch>,
    times: BTreeMap<WorkId, (u64, u64)>,
    host_traps: Vec<HostTrapSample>,
    stochastic: Vec<StochasticSample>,
    invalid: usize,
    totals: Vec<SamplingTotals>,
}

impl Recorded {
    fn of(dir: &TestDir) -> Recorded {
        let capture = dir.join("run.gputrail");
        let reader = Reader::open(&capture).expect("a capture");
        // The next recording would not replace it.
        std::fs::remove_file(&capture).expect("a capture");
        let mut recorded = Recorded {
            metadata: reader.metadata().clone(),
            ..Recorded::default()
        };
        let mut chunks = reader.chunks();
        while let Some(chunk) = chunks.next() {
            for record in chunk.records() {
                match record.activity() {
                    Activity::KernelDispatch(one) => {
                        recorded.dispatches.insert(one.work.id, *one);
                    }
                    Activity::Completion(one) => {
                        let times = (one.start.0, one.end.0);
                        recorded.times.insert(one.work, times);
                    }
                    Activity::HostTrapSample(one) => recorded.host_traps.push(*one),
                    Activity::StochasticSample(one) => recorded.stochastic.push(*one),
                    Activity::InvalidSample(_) => recorded.invalid += 1,
                    Activity::SamplingTotals(one) => recorded.totals.push(*one),
                    _ => {}
                }
            }
        }
        recorded
    }

    /// The kernel of a sample, which is that of its dispatch, in whose time it was taken.
    fn kernel(&self, sample: &HostTrapSample) -> &str {
        let dispatch = &self.dispatches[&sample.work];
        assert_eq!(dispatch.kernel, sample.kernel);
        assert_eq!(dispatch.work.correlation, sample.correlation);
        let (start, end) = self.times[&sample.work];
        assert!(start < sample.time.0 && sample.time.0 < end);
        let name = self.metadata.kernels[&sample.kernel].name;
        self.metadata.string(name)
    }
}

/// The samples that the stand-in says it gave: by kernel, offset, whether issued, type and reason.
fn told(stand_ins: &StandIns) -> BTreeMap<Vec<String>, usize> {
    let mut counts = BTreeMap::new();
    for sample in stand_ins.log().of("sample") {
        *counts.entry(sample[1..].to_vec()).or_default() += 1;
    }
    counts
}

#[test]
fn host_trap_samples_are_those_that_the_stand_in_gave() {
    needs!(host_trap_samples_are_those_that_the_stand_in_gave:
        Need::Program("cc"), Need::TraceProcessor);
    for version in [500, 600, 10_000, NEWEST] {
        let stand_ins = StandIns::new(version);
        let mut command = stand_ins.record(&HOST_TRAP, "", &["sampled", "20"]);
        let ended = well(command.env(ENABLED.0, ENABLED.1));
        assert_eq!(ended.text(), "done\n", "{version}: {}", ended.stderr);
        let recorded = Recorded::of(stand_ins.dir());
        let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
        for sample in &recorded.host_traps {
            let key = (
                recorded.kernel(sample).to_owned(),
                sample.offset.to_string(),
            );
            *counts.entry(key).or_default() += 1;
            assert_eq!(sample.hardware.0, HARDWARE, "{version}");
            assert_eq!(sample.workgroup, [1, 2, 3], "{version}");
            assert_eq!(sample.wave_in_group, 2, "{version}");
            let mask = match sample.offset & 15 {
                0 => u64::MAX,
                4 => 0xffff,
                _ => 1,
            };
            assert_eq!(sample.exec_mask, mask, "{version}");
            assert_ne!(sample.code_object, CodeObjectId::NONE, "{version}");
        }
        let mut expected: BTreeMap<(String, String), usize> = BTreeMap::new();
        for (sample, count) in told(&stand_ins) {
            let key = (sample[0].clone(), sample[1].clone());
            *expected.entry(key).or_default() += count;
        }
        assert_eq!(counts, expected, "{version}");
        assert_eq!(recorded.host_traps.len(), ALL, "{version}");
        let of_dispatches = recorded.totals.iter().filter(|one| one.work.is_some());
        let totals: Vec<u64> = of_dispatches.map(|one| one.total).collect();
        assert_eq!(totals, [OF_A_LAUNCH as u64; 42], "{version}");

        let mut trace = stand_ins.dir().trace();
        trace.assert_sound();
        let drawn = LAUNCHES.map(|(name, _)| kernels(&mut trace, name));
        assert_eq!(drawn, [40, 2], "{version}");
        let shown: i64 = trace.value("select count(*) from cpu_profile_stack_sample");
        assert_eq!(shown, ALL as i64, "{version}");
    }
}

#[test]
fn stochastic_samples_have_the_state_of_the_wave_and_its_memory_counters() {
    needs!(stochastic_samples_have_the_state_of_the_wave_and_its_memory_counters: Need::Program("cc"));
    for version in [10_000, 10_200, NEWEST] {
        let stand_ins = StandIns::new(version);
        let mut command = stand_ins.record(&STOCHASTIC, "", &["sampled", "20"]);
        well(command.env(ENABLED.0, ENABLED.1));
        let recorded = Recorded::of(stand_ins.dir());
        let mut counts: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        for sample in &recorded.stochastic {
            let name = recorded.metadata.kernels[&sample.kernel].name;
            let name = recorded.metadata.string(name).to_owned();
            // The words of bits are the SDK's.
            let (issued, instruction) = (sample.issue.0 & 1, sample.issue.0 >> 1 & 31);
            let reason = sample.snapshot.0 & 15;
            let words = [u64::from(issued), u64::from(instruction), u64::from(reason)];
            let words = words.map(|word| word.to_string());
            let key = [vec![name, sample.offset.to_string()], words.to_vec()].concat();
            *counts.entry(key).or_default() += 1;
            assert_eq!(sample.hardware.0, HARDWARE, "{version}");
            assert_eq!(sample.snapshot.0 & !15, 1 << 5 | 1 << 22, "{version}");
            assert_eq!(sample.memory_counters.0, 5 | 4 << 6 | 3 << 21, "{version}");
            let waves = (
                sample.wave_count,
                sample.has_memory_counters,
                sample.wave_in_group,
            );
            assert_eq!(waves, (11, 1, 2), "{version}");
        }
        assert_eq!(counts, told(&stand_ins), "{version}");
        assert_eq!(recorded.stochastic.len(), ALL, "{version}");
    }
}

#[test]
fn hotspots_name_kernels_addresses_and_reasons() {
    needs!(hotspots_name_kernels_addresses_and_reasons: Need::Program("cc"));
    for fault in ["", "in_file", "no_code"] {
        let stand_ins = StandIns::new(NEWEST);
        let mut command = stand_ins.record(&STOCHASTIC, fault, &["sampled", "20"]);
        well(command.env(ENABLED.0, ENABLED.1));
        let hotspots = |options: &[&str]| {
            let mut command = stand_ins.dir().gputrail(["hotspots", "run.pftrace"]);
            well(command.args(options)).text()
        };
        let json: Value = serde_json::from_str(&hotspots(&["--format", "json"])).unwrap();
        let all = json["kernels"].as_array().unwrap();
        let found: Vec<_> = all
            .iter()
            .map(|kernel| {
                let samples = kernel["samples"].as_u64().unwrap() as usize;
                (kernel["name"].as_str().unwrap(), samples)
            })
            .collect();
        let expected = LAUNCHES.map(|(name, launches)| (name, launches * OF_A_LAUNCH));
        assert_eq!(found, expected, "{fault}");
        let text = hotspots(&[]);
        for words in ["stochastic, every 65 536 cycles", "waitcnt", "barrier wait"] {
            assert!(text.contains(words), "{words} {fault}: {text}");
        }
        let instructions = text.contains("s_waitcnt vmcnt(0)");
        let has_disassembler = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|folder| folder.join("llvm-objdump").exists());
        assert_eq!(
            instructions,
            has_disassembler && fault != "no_code",
            "{fault}: {text}"
        );
    }
}

#[test]
fn samples_that_say_nothing_or_lie_in_no_code_are_counted() {
    needs!(samples_that_say_nothing_or_lie_in_no_code_are_counted: Need::Program("cc"));
    let stand_ins = StandIns::new(NEWEST);
    let faults = "invalid_samples unknown_code";
    let mut command = stand_ins.record(&HOST_TRAP, faults, &["sampled", "20"]);
    let ended = well(command.env(ENABLED.0, ENABLED.1));
    assert_eq!(ended.text(), "done\n");
    let recorded = Recorded::of(stand_ins.dir());
    assert_eq!(recorded.invalid, 84);
    let unknown = recorded.host_traps.iter();
    let unknown = unknown.filter(|one| one.code_object == CodeObjectId::NONE);
    assert!(unknown.clone().all(|one| one.offset == 0xdead_0000));
    assert_eq!((unknown.count(), recorded.host_traps.len()), (42, ALL + 42));
}

#[test]
fn what_hinders_sampling_is_said_before_the_program_starts() {
    needs!(what_hinders_sampling_is_said_before_the_program_starts: Need::Program("cc"));
    let stand_ins = StandIns::new(NEWEST);
    let refused = |options: &[&str], fault: &str, is_enabled: bool| {
        let mut command = stand_ins.record(options, fault, &["sampled", "20"]);
        if is_enabled {
            command.env(ENABLED.0, ENABLED.1);
        }
        let ended = run(&mut command);
        assert_eq!(
            (ended.code(), ended.text()),
            (125, String::new()),
            "{fault}: {}",
            ended.stderr
        );
        ended.stderr
    };
    for (fault, words) in [
        (
            "old_driver",
            "the amdgpu driver of this system has no PC sampling",
        ),
        ("no_sampling", "ROCPROFILER_STATUS_ERROR_NOT_AVAILABLE, 37"),
        ("no_privileges", "groups render and video"),
        ("none", "has no PC sampling"),
        // Another process samples otherwise.
        ("taken", "host-trap"),
    ] {
        let said = refused(&STOCHASTIC, fault, true);
        assert!(said.contains(words), "{fault}: {said}");
    }
    let said = refused(&STOCHASTIC, "", false);
    assert!(
        said.contains("ROCPROFILER_PC_SAMPLING_BETA_ENABLED=1"),
        "{said}"
    );
    let odd = ["--pc-sampling", "stochastic", "--interval", "65537cycles"];
    let said = refused(&odd, "", true);
    assert!(said.contains("a power of two"), "{said}");

    // As the other process does, it samples.
    let mut command = stand_ins.record(&HOST_TRAP, "taken", &["sampled", "20"]);
    well(command.env(ENABLED.0, ENABLED.1));
    assert_eq!(Recorded::of(stand_ins.dir()).host_traps.len(), ALL);

    // Unless it is asked for, nothing of it is called.
    let ended = well(&mut stand_ins.record(&[], "old_driver", &["sampled", "20"]));
    assert!(!ended.stderr.contains("PC sampling"), "{}", ended.stderr);
    assert_eq!(stand_ins.log().of("sampling").count(), 0);
}
