//! PC sampling of CUDA through the stand-in of libcupti, which gives the same samples for each launch: they must be in
//! the trace, by function, address and reason. That sampling works on a GPU is not shown here.

use std::collections::BTreeMap;
use std::process::Command;

use gputrail_capture::{Metadata, Reader};
use gputrail_harness::machine::Need;
use gputrail_harness::program::run;
use gputrail_harness::{needs, repository};
use gputrail_record::{
    Activity, KernelDispatch, SampleAggregate, SamplingTotals, SamplingUnit, StallReason,
};
use serde_json::Value;

use crate::command::{TestDir, kernels, well};
use crate::cuda::StandIns;

const OPTIONS: [&str; 5] = [
    "--pc-sampling",
    "stochastic",
    "--interval",
    "4096cycles",
    "--capture",
];
/// Samples of a launch of any kernel: address, reason, samples, and those of them at which no wave issued.
const OF_A_LAUNCH: [(u64, StallReason, u64, u64); 5] = [
    (0x10, StallReason::NONE, 2, 0),
    (0x10, StallReason::LONG_SCOREBOARD, 6, 4),
    (0x20, StallReason::BARRIER, 3, 0),
    (0x30, StallReason::NOT_SELECTED, 5, 0),
    (0x30, StallReason::MATH_PIPE_THROTTLE, 1, 0),
];
/// All of them.
const SAMPLES: u64 = 17;
/// What `program sampled 20` launches.
const LAUNCHES: [(&str, u64); 2] = [("_Z5scalePff", 40), ("bare", 2)];
const ALL: u64 = 42 * SAMPLES;

/// The records of samples in the capture that a recording left.
#[derive(Default)]
struct Recorded {
    metadata: Metadata,
    dispatches: Vec<KernelDispatch>,
    aggregates: Vec<SampleAggregate>,
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
                    Activity::KernelDispatch(one) => recorded.dispatches.push(*one),
                    Activity::SampleAggregate(one) => recorded.aggregates.push(*one),
                    Activity::SamplingTotals(one) => recorded.totals.push(*one),
                    _ => {}
                }
            }
        }
        recorded
    }

    /// Samples and latency samples by function, address and reason.
    fn counts(&self) -> BTreeMap<(String, u64, StallReason), (u64, u64)> {
        let mut counts = BTreeMap::new();
        for one in &self.aggregates {
            let name = self.metadata.kernels[&one.kernel].name;
            let key = (self.metadata.string(name).to_owned(), one.offset, one.stall);
            let (samples, latency) = counts.entry(key).or_default();
            (*samples, *latency) = (*samples + one.samples, *latency + one.latency_samples);
        }
        counts
    }
}

/// What [`Recorded::counts`] must be.
fn expected() -> BTreeMap<(String, u64, StallReason), (u64, u64)> {
    let of = |(name, launches): (&str, u64)| {
        let name = name.to_owned();
        OF_A_LAUNCH.map(|(offset, stall, samples, latency)| {
            let count = (launches * samples, launches * latency);
            ((name.clone(), offset, stall), count)
        })
    };
    LAUNCHES.into_iter().flat_map(of).collect()
}

#[test]
fn samples_are_counted_by_function_address_and_reason_as_cupti_gave_them() {
    needs!(samples_are_counted_by_function_address_and_reason_as_cupti_gave_them:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let dir = stand_ins.dir();
    for (version, fault) in [
        ("1108", ""),
        ("1201", "bit_by_bit"),
        ("1209", "at_end"),
        ("1305", ""),
    ] {
        let mut command = stand_ins.record_with(&OPTIONS, version, fault, &["sampled", "20"]);
        let ended = well(&mut command);
        assert_eq!(ended.text(), "done\n", "{version}: {}", ended.stderr);
        let recorded = Recorded::of(dir);
        assert_eq!(recorded.counts(), expected(), "{version} {fault}");
        let totals = recorded.totals.iter();
        let (total, dropped) = totals.fold((0, 0), |(total, dropped), one| {
            assert_eq!((one.interval, one.unit), (4096, SamplingUnit::CYCLES));
            (total + one.total, dropped + one.dropped)
        });
        assert_eq!((total, dropped), (ALL, 0), "{version} {fault}");

        let mut trace = dir.trace();
        trace.assert_sound();
        let drawn = LAUNCHES.map(|(name, _)| kernels(&mut trace, name));
        assert_eq!(drawn, [40, 2], "{version}");
        // The flame graph has each sample, while kernels ran.
        let shown: i64 = trace.value("select count(*) from cpu_profile_stack_sample");
        let outside: i64 = trace.value(
            "select count(*) from cpu_profile_stack_sample p,
                 (select min(ts) as start, max(ts + dur) as end from gpu_slice) s
             where p.ts < s.start or p.ts > s.end",
        );
        assert_eq!((shown as u64, outside), (ALL, 0), "{version} {fault}");
    }
}

#[test]
fn hotspots_name_functions_lines_and_cuptis_reasons() {
    needs!(hotspots_name_functions_lines_and_cuptis_reasons: Need::Program("cc"));
    let stand_ins = StandIns::new();
    well(&mut stand_ins.record_with(&OPTIONS, "1209", "", &["sampled", "20"]));
    let hotspots = |options: &[&str]| {
        let mut command = stand_ins.dir().gputrail(["hotspots", "run.pftrace"]);
        well(command.args(options)).text()
    };
    let json: Value = serde_json::from_str(&hotspots(&["--format", "json"])).unwrap();
    let all = json["kernels"].as_array().unwrap();
    let names: Vec<_> = all.iter().map(|kernel| &kernel["name"]).collect();
    assert_eq!(names, ["_Z5scalePff", "bare"]);
    let [scale, bare] = [&all[0], &all[1]];
    assert_eq!(scale["samples"], 40 * SAMPLES);
    assert_eq!(scale["latency_samples"], 160);
    let stalls = &scale["cupti_stalls"];
    let reasons = [
        ("long scoreboard", 240),
        ("barrier", 120),
        ("math pipe throttle", 40),
        ("not selected", 200),
    ];
    for (name, samples) in reasons {
        assert_eq!(stalls[name], samples, "{stalls}");
    }
    let lines = scale["lines"].as_array().unwrap().iter();
    let mut lines: Vec<_> = lines
        .map(|line| {
            (
                line["file"].as_str(),
                line["line"].as_u64(),
                line["samples"].as_u64(),
            )
        })
        .collect();
    lines.sort();
    let expected = [(101, 320), (102, 120), (103, 240)];
    let expected =
        expected.map(|(line, samples)| (Some("/src/scale.cu"), Some(line), Some(samples)));
    assert_eq!(lines, expected);
    assert_eq!(bare["lines"], Value::Array(Vec::new()));
    let why = bare["without_line"][0]["why"].as_str().unwrap();
    assert!(why.contains("-lineinfo"), "{why}");

    let table = hotspots(&[]);
    for text in [
        "stochastic, every 4 096 cycles",
        "long scoreboard 35 %, not selected 29 %, barrier 18 %",
        "scale.cu",
    ] {
        assert!(table.contains(text), "{text}: {table}");
    }
}

#[test]
fn serialized_kernels_have_their_samples_where_the_version_tells() {
    needs!(serialized_kernels_have_their_samples_where_the_version_tells: Need::Program("cc"));
    let stand_ins = StandIns::new();
    let mut options = OPTIONS.to_vec();
    options.push("--serialize-kernels");
    for (version, knows) in [("1209", true), ("1201", false)] {
        well(&mut stand_ins.record_with(&options, version, "", &["sampled", "20"]));
        let recorded = Recorded::of(stand_ins.dir());
        assert_eq!(recorded.counts(), expected(), "{version}");
        if !knows {
            assert!(recorded.aggregates.iter().all(|one| !one.work.is_some()));
            continue;
        }
        assert_eq!(recorded.dispatches.len(), 42);
        for dispatch in &recorded.dispatches {
            let work = dispatch.work.id;
            let of_work = recorded.aggregates.iter().filter(|one| one.work == work);
            let samples: u64 = of_work
                .map(|one| {
                    assert_eq!(one.kernel, dispatch.kernel);
                    assert_eq!(one.correlation, dispatch.work.correlation);
                    one.samples
                })
                .sum();
            let mut totals = recorded.totals.iter().filter(|one| one.work == work);
            let total = totals.next().map(|one| one.total);
            assert_eq!((samples, total), (SAMPLES, Some(SAMPLES)));
            assert!(totals.next().is_none());
        }
    }
}

#[test]
fn what_hinders_sampling_is_said_and_the_program_goes_on() {
    needs!(what_hinders_sampling_is_said_and_the_program_goes_on:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    // The fault, samples in the trace, dropped ones, and words of the messages.
    let faults = [
        (
            "old_device",
            0,
            0,
            "the device or its driver does not support it (CUPTI status 27)",
        ),
        (
            "no_privileges",
            0,
            0,
            "options nvidia NVreg_RestrictProfilingToAdminUsers=0",
        ),
        ("full_buffer", ALL, 0, "the buffer of the hardware is full"),
        ("lost_samples", ALL, 5, "5 samples dropped by the hardware"),
    ];
    for version in ["1108", "1209"] {
        for (fault, samples, dropped, words) in faults {
            let ended =
                well(&mut stand_ins.record_with(&OPTIONS, version, fault, &["sampled", "20"]));
            assert_eq!(ended.text(), "done\n", "{fault}");
            let missing = ended.stderr.lines();
            let missing: Vec<_> = missing.filter(|line| line.contains("MISSING: ")).collect();
            assert!(
                matches!(missing[..], [line] if line.contains(words)),
                "{fault}: {}",
                ended.stderr
            );
            assert!(!ended.stderr.contains("nothing was lost"), "{fault}");
            let recorded = Recorded::of(stand_ins.dir());
            let found: u64 = recorded.aggregates.iter().map(|one| one.samples).sum();
            let lost: u64 = recorded.totals.iter().map(|one| one.dropped).sum();
            assert_eq!((found, lost), (samples, dropped), "{fault} {version}");
            assert_eq!(
                kernels(&mut stand_ins.dir().trace(), "_Z5scalePff"),
                40,
                "{fault}"
            );
        }
    }

    // Where there are no samples, the command that shows them says why; where there are counts alone, what it cannot show.
    let hotspots = |options: &[&str]| {
        let mut command = stand_ins.dir().gputrail(["hotspots", "run.pftrace"]);
        run(command.args(options)).stderr
    };
    let options = ["--pc-sampling", "stochastic", "--interval", "4096cycles"];
    well(&mut stand_ins.record_with(&options, "1209", "no_privileges", &["sampled", "20"]));
    let said = hotspots(&[]);
    assert!(
        said.contains("NVreg_RestrictProfilingToAdminUsers=0"),
        "{said}"
    );
    let raw = [&options[..], &["--raw-samples"]].concat();
    let ended = well(&mut stand_ins.record_with(&raw, "1209", "", &["sampled", "20"]));
    let words = "--raw-samples: there is no sample by itself, only counts";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    let said = hotspots(&["--format", "csv"]);
    assert!(said.contains("CUDA gives no more"), "{said}");

    // Unless it is asked for, nothing of it is called.
    let mut unasked = stand_ins.record_with(&[], "1209", "no_privileges", &["sampled", "20"]);
    let ended = well(&mut unasked);
    assert!(!ended.stderr.contains("NVreg"), "{}", ended.stderr);

    // An interval that the hardware has not is refused before the program starts.
    let options = ["--pc-sampling", "stochastic", "--interval", "5000cycles"];
    let ended = run(&mut stand_ins.record_with(&options, "1209", "", &["sampled", "20"]));
    assert_eq!(ended.code(), 125, "{}", ended.stderr);
    let words = "(Stand-in 0): stochastic every 32 cycles to 2147483648 cycles, a power of two";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);

    // A library from before there was sampling.
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=gnu11",
        "-pthread",
        "-shared",
        "-fPIC",
        "-DWITHOUT_SAMPLING",
        "-o",
    ]);
    compiler.arg(stand_ins.dir().join("libcupti.so.12"));
    well(
        compiler
            .arg(repository("tests/programs/cuda/libcupti.c"))
            .arg("-ldl"),
    );
    let ended = well(&mut stand_ins.record_with(&OPTIONS, "1108", "", &["sampled", "20"]));
    let words = "lacks the functions for PC sampling";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert_eq!(kernels(&mut stand_ins.dir().trace(), "_Z5scalePff"), 40);
}
