//! Counters of CUDA's kernels through the stand-in of libcupti, whose values follow from the threads of each launch. That
//! counting works on a GPU is not shown here.

use std::collections::{BTreeMap, HashSet};
use std::process::Command;

use gputrail_capture::Reader;
use gputrail_harness::machine::Need;
use gputrail_harness::program::run;
use gputrail_harness::{needs, repository};
use gputrail_record::{CounterValue, KernelDispatch};
use serde_json::Value;

use crate::command::{TestDir, kernels, well};
use crate::cuda::StandIns;
use crate::tools::tool;

const METRICS: &str = "dram__bytes_read,smsp__inst_executed.sum.per_second,l1tex__hit_rate.pct";
/// The value of a metric for a launch of so many threads.
type OfThreads = fn(f64) -> f64;
/// The metrics with their forms.
const FORMS: [(&str, OfThreads); 3] = [
    ("dram__bytes_read.sum", |threads| 4.0 * threads),
    ("smsp__inst_executed.sum.per_second", |threads| {
        1000.0 * threads
    }),
    ("l1tex__hit_rate.pct", |_| 62.5),
];
/// The threads of a launch of each kernel of the program.
const THREADS: [(&str, f64); 2] = [("saxpy", 1024.0), ("_Z5scalePff", 512.0)];

/// By kernel and counter: the number of dispatches, and the least and the greatest value.
fn table(dir: &TestDir) -> BTreeMap<(String, String), (u64, f64, f64)> {
    let text = well(&mut dir.gputrail(["summary", "run.pftrace", "--format", "json"])).text();
    let tables: Value = serde_json::from_str(&text).expect("JSON");
    let row = |row: &Value| {
        let text = |key: &str| row[key].as_str().expect("a text").to_owned();
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
        let dispatches = row["dispatches"].as_u64().expect("a number");
        (
            (text("kernel"), text("counter")),
            (dispatches, number("min"), number("max")),
        )
    };
    tables["counters"]
        .as_array()
        .expect("a table")
        .iter()
        .map(row)
        .collect()
}

/// The values of all launches of the program, `launches` of each kernel.
fn expected(launches: u64) -> BTreeMap<(String, String), (u64, f64, f64)> {
    let rows = THREADS.iter().flat_map(|(kernel, threads)| {
        FORMS.iter().map(move |(name, value)| {
            let value = value(*threads);
            (
                ((*kernel).to_owned(), (*name).to_owned()),
                (launches, value, value),
            )
        })
    });
    rows.collect()
}

#[test]
fn each_kernel_has_the_values_of_its_launch_in_the_trace_the_summary_and_csv() {
    needs!(each_kernel_has_the_values_of_its_launch_in_the_trace_the_summary_and_csv:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let dir = stand_ins.dir();
    for version in ["1209", "1305"] {
        // More launches than are read at a time, of several threads.
        let ended =
            well(&mut stand_ins.record_with(&["--counters", METRICS], version, "", &["100", "3"]));
        assert_eq!(ended.text(), "done\n");
        let words = "3 launches of CUDA graphs not counted";
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        let mut trace = dir.trace();
        trace.assert_sound();
        assert_eq!(kernels(&mut trace, "saxpy"), 300, "{version}");
        let found = table(dir);
        for (key, value) in expected(300) {
            assert_eq!(
                found.get(&key),
                Some(&value),
                "{version}: {key:?} of {found:?}"
            );
        }
        assert_eq!(found.len(), 6, "{version}: {found:?}");
    }
    well(&mut dir.gputrail(["convert", "run.pftrace", "--format", "csv", "-o", "csv/"]));
    let files = std::fs::read_dir(dir.join("csv")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let file = files.find(|file| file.to_string_lossy().ends_with("_counter_collection.csv"));
    let csv = std::fs::read_to_string(file.expect("a table of counters")).unwrap();
    assert_eq!(csv.matches("dram__bytes_read.sum").count(), 600, "{csv}");
}

#[test]
fn the_program_runs_once_for_each_set_with_application_replay() {
    needs!(the_program_runs_once_for_each_set_with_application_replay:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let metrics = "dram__bytes_read,smsp__inst_executed,l1tex__hit_rate.pct";
    let options = [
        "--counters",
        metrics,
        "--counters-per-pass",
        "1",
        "--replay",
        "application",
    ];
    let ended = well(&mut stand_ins.record_with(&options, "1209", "", &["20"]));
    assert_eq!(ended.text(), "done\n");
    let found = table(stand_ins.dir());
    for (kernel, threads) in THREADS {
        let of = |name: &str| found[&(kernel.to_owned(), name.to_owned())];
        assert_eq!(
            of("dram__bytes_read.sum"),
            (20, 4.0 * threads, 4.0 * threads)
        );
        assert_eq!(of("smsp__inst_executed.sum"), (20, threads, threads));
        assert_eq!(of("l1tex__hit_rate.pct"), (20, 62.5, 62.5));
    }
}

#[test]
fn only_kernels_of_the_scope_are_counted_and_captured_launches_are_none() {
    needs!(only_kernels_of_the_scope_are_counted_and_captured_launches_are_none:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    // Of one configuration of the hardware, which the name may lack.
    let options = ["--counters", "dramc__cycles"];
    well(&mut stand_ins.record_with(&options, "1209", "", &["1"]));
    let name = "FBSP.TriageCompute.dramc__cycles.sum".to_owned();
    assert_eq!(
        table(stand_ins.dir())[&("saxpy".to_owned(), name)],
        (1, 62.5, 62.5)
    );
    let options = ["--counters", "sm__threads_launched"];
    let scope = ["--start-on", "cudaLaunchKernel"];
    let options_of_scope = [&options[..], &scope[..]].concat();
    // A kernel by the driver's API comes before.
    well(&mut stand_ins.record_with(&options_of_scope, "1209", "", &["5"]));
    let found = table(stand_ins.dir());
    let of = |kernel: &str| found[&(kernel.to_owned(), "sm__threads_launched.sum".to_owned())];
    assert_eq!(of("saxpy"), (4, 1024.0, 1024.0));
    assert_eq!(of("_Z5scalePff"), (5, 512.0, 512.0));

    let ended = well(&mut stand_ins.record_with(&options, "1209", "", &["graphs"]));
    let words = "2 launches of CUDA graphs not counted";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert!(!ended.stderr.contains("without values"), "{}", ended.stderr);
    assert_eq!(table(stand_ins.dir()).len(), 0);
}

#[test]
fn a_group_of_a_tool_counts_from_its_start_to_its_stop() {
    needs!(a_group_of_a_tool_counts_from_its_start_to_its_stop: Need::OpenClToolchain);
    let stand_ins = StandIns::new();
    let tool = tool(
        stand_ins.dir(),
        &[],
        "tests/programs/cuda/counters.c",
        "libcounters.so",
    );
    let options = ["--tool", &tool, "-q"];
    let ended = well(&mut stand_ins.record_with(&options, "1209", "", &["5"]));
    // From the fourth launch on: three of saxpy, and four of the other kernel.
    for words in [
        "a percentage does not add up",
        "sum 5120 of 7",
        "sum 20480 of 7",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}

#[test]
fn what_cannot_be_counted_is_said_and_disturbs_nothing() {
    needs!(what_cannot_be_counted_is_said_and_disturbs_nothing:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let cases: [(&[&str], &str, &str); 8] = [
        (
            &["--counters", METRICS],
            "no_privileges",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        (
            &["--counters", METRICS],
            "old_device",
            "its architecture is older than compute capability 7.0 (7.5 with CUDA 13), which the range profiler takes. A \
             libcupti before CUDA 13.0 counts on devices below compute capability 7.5 by its Event and Metric APIs",
        ),
        (
            &["--counters", METRICS],
            "many_passes",
            "301 passes of a kernel, and agent",
        ),
        (
            &["--counters", METRICS],
            "bad_decode",
            "cuptiRangeProfilerDecodeData",
        ),
        (
            &["--counters", METRICS],
            "lost_ranges",
            "10 kernels without values",
        ),
        (
            &["--counters", "dram__bytes_raed"],
            "",
            "the nearest is dram__bytes_read",
        ),
        (
            &["--counters", "dram__bytes_read.sun"],
            "",
            "the nearest is dram__bytes_read.sum",
        ),
        (
            &["--counters", METRICS, "--counters-period", "1ms"],
            "",
            "cannot count of the agent every 1ms",
        ),
    ];
    for (options, fault, words) in cases {
        let ended = well(&mut stand_ins.record_with(options, "1209", fault, &["5"]));
        assert_eq!(ended.text(), "done\n", "{fault}");
        assert!(
            ended.stderr.contains(words),
            "{options:?} {fault}: {}",
            ended.stderr
        );
        let mut trace = stand_ins.dir().trace();
        assert_eq!(kernels(&mut trace, "saxpy"), 5, "{fault}");
    }
    // A library from before there was the range profiler.
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=gnu11",
        "-pthread",
        "-shared",
        "-fPIC",
        "-DWITHOUT_PROFILER",
        "-o",
    ]);
    compiler.arg(stand_ins.dir().join("libcupti.so.12"));
    well(
        compiler
            .arg(repository("tests/programs/cuda/libcupti.c"))
            .arg("-ldl"),
    );
    let ended = well(&mut stand_ins.record_with(&["--counters", METRICS], "1201", "", &["5"]));
    let words = "lacks the range profiler (cuptiRangeProfiler...), which CUDA 12.6 and later have";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("its Event and Metric APIs"),
        "{}",
        ended.stderr
    );
    assert_eq!(kernels(&mut stand_ins.dir().trace(), "saxpy"), 5);
}

#[test]
fn a_device_that_is_too_old_for_ranges_lists_its_events_and_metrics() {
    needs!(a_device_that_is_too_old_for_ranges_lists_its_events_and_metrics: Need::Program("cc"));
    let stand_ins = StandIns::new();
    let ask = |arguments: &[&str], capability: &str| {
        let mut command = stand_ins.dir().gputrail(arguments);
        stand_ins.prepare(&mut command, "1209", "");
        run(command.env("STANDIN_CAPABILITY", capability))
    };
    let list = ["counters", "list", "--agent", "cuda:0"];
    let text = ask(&list, "6").well().text();
    for words in [
        "warps_launched",
        "domain_l2",
        "Bytes that were read in a second",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let how = "its events and metrics (gputrail counters list --agent cuda:N)";
    assert!(ask(&["agents"], "6").text().contains(how));
    let info = ["counters", "info", "--agent", "cuda:0", "SM_Percent"];
    let text = ask(&info, "6").well().text();
    assert!(text.contains("Share of instructions"), "{text}");
    let check = [
        "counters",
        "check",
        "--agent",
        "cuda:0",
        "warps_launched,l2_reads",
    ];
    ask(&check, "6").well();
    let unknown = ["counters", "check", "--agent", "cuda:0", "warps_lunched"];
    let ended = ask(&unknown, "6");
    assert!(ended.stderr.contains("warps_launched"), "{}", ended.stderr);
    let ended = ask(&list, "9");
    assert!(
        ended.stderr.contains("gputrail counters list --chip NAME"),
        "{}",
        ended.stderr
    );
    let none = ask(&["counters", "list", "--agent", "cuda:7"], "9");
    assert!(
        none.stderr.contains("there is no device cuda:7"),
        "{}",
        none.stderr
    );
}

#[test]
fn values_of_kernels_that_nobody_records_have_ids_of_their_own() {
    needs!(values_of_kernels_that_nobody_records_have_ids_of_their_own: Need::Program("cc"));
    let stand_ins = StandIns::new();
    let options = [
        "--counters",
        "sm__threads_launched",
        "--kind",
        "environment",
        "--capture",
    ];
    well(&mut stand_ins.record_with(&options, "1209", "", &["5"]));
    let reader = Reader::open(&stand_ins.dir().join("run.gputrail")).expect("a capture");
    let mut ids = HashSet::new();
    let mut chunks = reader.chunks();
    while let Some(chunk) = chunks.next() {
        for record in chunk.records() {
            assert!(record.read::<KernelDispatch>().is_none());
            if let Some(value) = record.read::<CounterValue>() {
                assert!(
                    value.work.is_some() && value.correlation.is_some(),
                    "{value:?}"
                );
                assert!(ids.insert((value.work, value.correlation)), "{value:?}");
            }
        }
    }
    assert_eq!(ids.len(), 10);
}

/// By range and counter: the number of ranges, and the least and the greatest value.
fn range_table(dir: &TestDir) -> BTreeMap<(String, String), (u64, f64, f64)> {
    let text = well(&mut dir.gputrail(["summary", "run.pftrace", "--format", "json"])).text();
    let tables: Value = serde_json::from_str(&text).expect("JSON");
    let rows = tables["range_counters"].as_array().expect("a table").iter();
    let row = |row: &Value| {
        let text = |key: &str| row[key].as_str().expect("a text").to_owned();
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
        let ranges = row["ranges"].as_u64().expect("a number");
        (
            (text("range"), text("counter")),
            (ranges, number("min"), number("max")),
        )
    };
    rows.map(row).collect()
}

#[test]
fn a_range_of_markers_is_a_range_of_cupti_and_one_is_counted_at_a_time() {
    needs!(a_range_of_markers_is_a_range_of_cupti_and_one_is_counted_at_a_time:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let dir = stand_ins.dir();
    let record = |more: &[&str], fault: &str| {
        let metrics = "sm__threads_launched,l1tex__hit_rate.pct";
        let options = ["--counters", metrics, "--counters-mode", "range"];
        let options = [&options[..], more].concat();
        let ended = well(&mut stand_ins.record_with(&options, "1209", fault, &["ranges"]));
        assert_eq!(ended.text(), "done\n", "{}", ended.stderr);
        ended.stderr
    };
    let said = record(&[], "");
    let threads = "sm__threads_launched.sum";
    let of = |range: &str, counter: &str| {
        let found = range_table(dir);
        found.get(&(range.to_owned(), counter.to_owned())).copied()
    };
    // A launch has 8 blocks. The inner range is a part of the outer one; the range of the thread is not counted, and its kernel
    // belongs to the one that is.
    assert_eq!(of("outer", threads), Some((1, 2560.0, 2560.0)), "{said}");
    assert_eq!(of("main", threads), Some((1, 1536.0, 1536.0)));
    assert_eq!(of("main", "l1tex__hit_rate.pct"), Some((1, 62.5, 62.5)));
    assert_eq!(of("many", threads), Some((200, 1024.0, 1024.0)));
    assert_eq!(range_table(dir).len(), 6, "{:?}", range_table(dir));
    for words in [
        "1 range not counted, as another one was counted at that time",
        "1 range without values, as their ends were not recorded",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let text = well(&mut dir.gputrail(["summary", "run.pftrace"])).text();
    let words = "another range was counted at that time";
    assert!(text.contains(words), "{text}");
    let mut trace = dir.trace();
    trace.assert_sound();
    let beside = "select count(*) from slice where category = 'counted range' and name = 'many' and \
                  extract_arg(arg_set_id, 'debug.sm__threads_launched_sum') is not null";
    let slices: i64 = trace.value(beside);
    assert_eq!(slices, 200);

    record(&["--counters-range", "inn*"], "");
    assert_eq!(of("inner", threads), Some((1, 1536.0, 1536.0)));
    assert_eq!(range_table(dir).len(), 2);

    // A range is counted in one pass.
    let said = record(&["--counters", "smsp__inst_executed.sum.per_second"], "");
    let words = "the counters need 2 passes, and agent 1";
    assert!(said.contains(words), "{said}");
    assert_eq!(of("many", threads), Some((200, 1024.0, 1024.0)));
    for (fault, words) in [
        ("no_push", "cuptiRangeProfilerPushRange"),
        ("bad_decode", "cuptiRangeProfilerDecodeData"),
        ("no_privileges", "NVreg_RestrictProfilingToAdminUsers=0"),
    ] {
        let said = record(&[], fault);
        assert!(said.contains(words), "{fault}: {said}");
        assert!(range_table(dir).is_empty(), "{fault}");
    }
    record(&[], "lost_ranges");
    assert!(range_table(dir).is_empty());
    let refused = [
        (
            &["--counters-range", "a", "--counters-mode", "dispatch"][..],
            "--counters-range is for --counters-mode range",
        ),
        (
            &["--counters-range", "a", "--replay", "application"],
            "the values of ranges of several runs are not joined",
        ),
    ];
    for (options, words) in refused {
        let options = [&["--counters", "dram__bytes_read"], options].concat();
        let ended = run(&mut stand_ins.record_with(&options, "1209", "", &["ranges"]));
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn kernels_of_an_older_device_are_counted_by_events_and_metrics() {
    needs!(kernels_of_an_older_device_are_counted_by_events_and_metrics:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let dir = stand_ins.dir();
    let record = |counters: &str, fault: &str, version: &str| {
        let options = ["--counters", counters];
        let fault = format!("old_device {fault}");
        let mut command = stand_ins.record_with(&options, version, &fault, &["20", "3"]);
        let ended = well(command.env("STANDIN_CAPABILITY", "6"));
        assert_eq!(ended.text(), "done\n", "{fault}: {}", ended.stderr);
        let mut trace = dir.trace();
        trace.assert_sound();
        assert_eq!(kernels(&mut trace, "saxpy"), 60, "{fault}");
        ended.stderr
    };
    let of = |kernel: &str, name: &str| {
        let found = table(dir);
        found.get(&(kernel.to_owned(), name.to_owned())).copied()
    };
    // One set of groups: 2 of 4 instances are read, and stand for the others.
    for version in ["1201", "1209"] {
        let said = record("WARPS_LAUNCHED,inst_per_warp,sm_level", "", version);
        for (kernel, threads) in THREADS {
            let warps = threads / 32.0;
            assert_eq!(
                of(kernel, "warps_launched"),
                Some((60, warps, warps)),
                "{said}"
            );
            assert_eq!(of(kernel, "inst_per_warp"), Some((60, 3.0, 3.0)));
            assert_eq!(of(kernel, "sm_level"), Some((60, 5.0, 5.0)));
        }
    }
    // Two sets: CUPTI runs each kernel twice. A rate takes the time of the kernel, which comes later.
    let said = record("inst_executed,l2_reads,l2_read_throughput", "", "1209");
    for (kernel, threads) in THREADS {
        let (instructions, reads) = (3.0 * threads / 32.0, 6.0 * threads);
        assert_eq!(
            of(kernel, "inst_executed"),
            Some((60, instructions, instructions)),
            "{said}"
        );
        assert_eq!(of(kernel, "l2_reads"), Some((60, reads, reads)));
        let (count, least, _) = of(kernel, "l2_read_throughput").unwrap_or_default();
        assert!(count == 60 && least > 0.0, "{kernel}: {count} {least}");
    }
    let said = record("l2_read_throughput", "untimed", "1209");
    assert_eq!(of("saxpy", "l2_read_throughput"), None, "{said}");

    record(
        "warps_launched,inst_executed,inst_per_warp",
        "overflow",
        "1209",
    );
    assert_eq!(of("saxpy", "inst_executed"), None);
    assert_eq!(of("saxpy", "inst_per_warp"), None);
    assert!(of("saxpy", "warps_launched").is_some());
    let text = well(&mut dir.gputrail(["summary", "run.pftrace"])).text();
    assert!(text.contains("overflow"), "{text}");
    record("l2_reads,warps_launched", "invalid_event", "1209");
    assert_eq!(of("saxpy", "l2_reads"), None);
    assert!(of("saxpy", "warps_launched").is_some());

    let cases = [
        ("warps_launched", "no_group", "cuptiEventGroupEnable"),
        ("warps_launched", "no_sets", "cuptiEventGroupSetsCreate"),
        (
            "warps_launched",
            "no_events",
            "the Event and Metric APIs tell no event of it",
        ),
        (
            "warps_launched",
            "no_privileges",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        ("warps_lunched", "", "the nearest is warps_launched"),
    ];
    for (counters, fault, words) in cases {
        let said = record(counters, fault, "1209");
        assert!(said.contains(words), "{fault}: {said}");
        assert!(table(dir).is_empty(), "{fault}");
    }
    // CUDA 13 has them no longer.
    let said = record("warps_launched", "", "1305");
    assert!(said.contains("and not by events"), "{said}");
}
