//! Markers of NVTX, by its own headers in C++ and its package in Python.

use std::collections::BTreeMap;
use std::process::Command;

use gputrail_harness::machine::{Need, tools};
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;
use gputrail_harness::{needs, repository};

use crate::command::{TestDir, kernels, well};
use crate::cuda::StandIns;
use crate::markers::slices;
use crate::transparency::ffmpeg;

/// Compiles a C++ program of `tests/programs` against NVTX's headers.
pub fn compile(dir: &TestDir, name: &str, options: &[&str]) -> String {
    let (source, output) = (repository("tests/programs").join(name), dir.join(name));
    let output = output.with_extension("out");
    run(Command::new("c++")
        .args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-pthread"])
        .arg("-I")
        .arg(tools().join("nvtx/nvidia/cu13/include"))
        .arg("-o")
        .args([&output, &source.with_extension("cpp")])
        .args(options)
        .arg("-ldl"))
    .well();
    output.to_string_lossy().into_owned()
}

/// `nvtx_names.cpp`, against types in the place of CUDA's.
pub fn compile_names(dir: &TestDir) -> String {
    // The types that NVTX's headers need of CUDA's.
    let types = "typedef int CUdevice;\ntypedef struct context* CUcontext;\ntypedef struct stream* CUstream;\n\
                 typedef struct event* CUevent;\n";
    std::fs::write(dir.join("cuda.h"), types).expect("written");
    let types = "typedef struct stream* cudaStream_t;\ntypedef struct event* cudaEvent_t;\n";
    std::fs::write(dir.join("driver_types.h"), types).expect("written");
    let include = format!("-I{}", dir.path().display());
    compile(
        dir,
        "nvtx_names",
        &[&include, "-DCL_TARGET_OPENCL_VERSION=120", "-lOpenCL"],
    )
}

/// `nvtx.cpp` and the library with the second binary.
fn programs(dir: &TestDir) -> [String; 2] {
    let other = compile(dir, "nvtx_other", &["-shared", "-fPIC"]);
    [compile(dir, "nvtx", &[]), other]
}

/// The arguments of the slices with this name, in order.
fn arguments(trace: &mut Trace, name: &str) -> Vec<(String, String)> {
    trace.rows(&format!(
        "select substr(a.flat_key, 7), a.display_value from slice s join args a using (arg_set_id)
         where s.name = '{name}' and a.flat_key like 'debug.%' order by s.ts, a.id"
    ))
}

const RETURNED: &str = "push 0\npush 1\npop 1\npop 0\npop without push -1\nsame domain 1\nsame string 1\n\
                        domain push 0\ndomain push 1\npop 0\ndomain pop 1\ndomain pop 0\nrange 1\n\
                        registered 1\npush payload 0\npop payload 0\nenabled 1\ncounters 1\nchild 0\n";

/// Checks the slices of `nvtx.cpp`.
#[track_caller]
fn assert_slices(trace: &mut Trace) {
    let counts = slices(trace);
    let of = |name: &str, track: &str| {
        let key = (name.to_owned(), track.to_owned());
        counts.get(&key).copied().unwrap_or(0)
    };
    for (name, track, count) in [
        ("outer", "markers: NVTX", 1),
        ("wide ü", "markers: NVTX", 1),
        ("moment", "markers: NVTX", 1),
        ("other binary", "markers: NVTX", 1),
        ("other moment", "markers: NVTX", 1),
        ("in the child", "markers: NVTX", 1),
        ("registered", "markers: library", 2),
        ("registered", "ranges: library", 1),
        ("never ended", "ranges: NVTX", 1),
        ("started", "ranges: NVTX", 1),
        ("the buffer", "markers: library", 1),
        ("wait for mutex", "markers: library", 2),
        ("hold mutex", "ranges: library", 1),
        ("with payloads", "markers: library", 1),
        ("with payloads", "ranges: library", 1),
        ("in thread", "markers: library", 400),
        ("worker 3", "markers: NVTX", 100),
    ] {
        assert_eq!(of(name, track), count, "{name} on {track}: {counts:?}");
    }
}

#[test]
fn a_program_with_two_binaries_gets_nvtxs_levels_and_all_its_markers_are_recorded() {
    needs!(a_program_with_two_binaries_gets_nvtxs_levels_and_all_its_markers_are_recorded: Need::Nvtx, Need::TraceProcessor);
    let dir = TestDir::new();
    let [program, other] = programs(&dir);
    let ended = well(&mut dir.gputrail(["record", "-o", "run.pftrace", "--", &program, &other]));
    assert_eq!(ended.text(), RETURNED);
    assert!(
        ended.stderr.contains("ranges with most time"),
        "{}",
        ended.stderr
    );

    let mut trace = dir.trace();
    trace.assert_sound();
    assert_slices(&mut trace);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let registered = arguments(&mut trace, "registered");
    assert_eq!(
        registered[..3],
        [
            pair("domain", "library"),
            pair("payload", "-5"),
            pair("color", "#ff00ff80")
        ]
    );
    let payloads = arguments(&mut trace, "with payloads");
    for expected in [
        pair("width", "-3"),
        pair("scale", "1.5"),
        pair("name", "box"),
        pair("address", "0xbeef"),
        pair("payload 2", "fast"),
        pair("payload 3", "1, 2, 3"),
    ] {
        assert!(payloads.contains(&expected), "{expected:?} in {payloads:?}");
    }
    let categories: Vec<(String, String)> = trace.rows(
        "select distinct name, category from slice where name in ('registered', 'int32', 'outer') order by 1",
    );
    assert_eq!(
        categories,
        [
            pair("int32", "output"),
            pair("outer", "marker"),
            pair("registered", "input")
        ]
    );
    let counters: Vec<(String, f64)> = trace.rows(
        "select t.name, c.value from counter c join track t on c.track_id = t.id order by t.name, c.ts",
    );
    let length = [0.0, 1.0, 4.0, 7.0, 8.0].map(|value| ("library: queue length".to_owned(), value));
    assert_eq!(counters[0], ("library: loss".to_owned(), 0.25));
    assert_eq!(counters[1..], length);
    let workers: i64 = trace.value("select count(*) from thread where name like 'worker %'");
    assert_eq!(workers, 4);

    let info = well(&mut dir.gputrail(["info", "run.pftrace"])).text();
    assert!(
        info.contains(
            "unbalanced markers: 1 started range did not end; 1 pop had no pushed range; \
             1 end had no started range; 1 started range ended on another thread"
        ),
        "{info}"
    );
    let summary = well(&mut dir.gputrail(["summary", "run.pftrace"])).text();
    assert!(
        summary.contains("in thread") && summary.contains("with payloads"),
        "{summary}"
    );
}

#[test]
fn a_program_without_a_recording_finds_nvtx_switched_off() {
    needs!(a_program_without_a_recording_finds_nvtx_switched_off: Need::Nvtx);
    let dir = TestDir::new();
    let [program, other] = programs(&dir);
    let library = dir.join("libgputrail.so");
    let arguments = [
        "library",
        library.to_str().unwrap(),
        "--capture",
        "%p.gputrail",
    ];
    let exports = well(&mut dir.gputrail(arguments)).text();
    let path = library.display();
    assert!(
        exports.contains(&format!("export NVTX_INJECTION64_PATH={path}")),
        "{exports}"
    );
    // The library is named, but nothing asks for a recording.
    let mut command = Command::new(&program);
    let ended = run(command.arg(&other).env("NVTX_INJECTION64_PATH", &library)).well();
    let untouched = run(Command::new(&program)
        .arg(&other)
        .env_remove("NVTX_INJECTION64_PATH"))
    .well();
    assert_eq!(ended.text().lines().next(), Some("push -2"));
    assert_eq!(ended.stderr, "");
    // Without a tool's function `nvtxDomainIsEnabled` says 0; all else is the same.
    let but_enabled = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with("enabled"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(but_enabled(&ended.text()), but_enabled(&untouched.text()));
}

#[test]
fn binaries_that_call_nvtx_while_the_recording_takes_long_to_begin_are_recorded() {
    needs!(binaries_that_call_nvtx_while_the_recording_takes_long_to_begin_are_recorded: Need::Nvtx, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = compile(&dir, "nvtx_slow", &[]);
    let other = compile(&dir, "nvtx_other", &["-shared", "-fPIC"]);
    let ended = well(&mut dir.gputrail(["record", "-o", "run.pftrace", "--", &program, &other]));
    assert_eq!(ended.text(), "0 0\n");
    let mut trace = dir.trace();
    trace.assert_sound();
    let counts = slices(&mut trace);
    for name in ["own moment", "other binary", "other moment"] {
        let key = (name.to_owned(), "markers: NVTX".to_owned());
        assert_eq!(counts.get(&key), Some(&1), "{name}: {counts:?}");
    }
}

#[test]
fn pythons_nvtx_is_recorded_in_threads_tasks_and_processes() {
    needs!(pythons_nvtx_is_recorded_in_threads_tasks_and_processes: Need::Nvtx, Need::TraceProcessor);
    let dir = TestDir::new();
    let script = repository("tests/programs/nvtx_threads.py");
    let mut command = dir.gputrail(["record", "-o", "run.pftrace", "--", "python3"]);
    let ended = well(command.arg(script).env("PYTHONPATH", tools().join("nvtx")));
    assert_eq!(ended.text(), "done\n");
    let mut trace = dir.trace();
    trace.assert_sound();
    let counts = slices(&mut trace);
    let expected = [
        (("child", "markers: NVTX"), 2),
        (("main", "markers: NVTX"), 1),
        (("task 0", "ranges: NVTX"), 1),
        (("task 1", "ranges: NVTX"), 1),
        (("task 2", "ranges: NVTX"), 1),
        (("thread 0", "markers: NVTX"), 1),
        (("thread 1", "markers: NVTX"), 1),
        (("tick", "markers: NVTX"), 8),
        (("work", "markers: library"), 8),
    ];
    let expected =
        expected.map(|((name, track), count)| ((name.to_owned(), track.to_owned()), count));
    assert_eq!(counts, BTreeMap::from(expected));
    let nested: i64 = trace.value(
        "select count(*) from slice s join slice p on s.parent_id = p.id
         where s.name = 'tick' and p.name in ('main', 'thread 0', 'thread 1', 'child')",
    );
    assert_eq!(nested, 8);
    assert_eq!(
        arguments(&mut trace, "work")[..3],
        [
            ("domain", "library"),
            ("payload", "7"),
            ("color", "#000000ff")
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

#[test]
fn a_recording_begins_and_ends_with_ranges_of_nvtx() {
    needs!(a_recording_begins_and_ends_with_ranges_of_nvtx: Need::Nvtx, Need::TraceProcessor);
    let dir = TestDir::new();
    let [program, other] = programs(&dir);
    let options = ["--start-on", "around", "--stop-on", "int32"];
    let mut command = dir.gputrail(["record", "-o", "run.pftrace"]);
    let ended = well(command.args(options).args(["--", &program, &other]));
    // Levels are counted before the recording begins, too.
    assert_eq!(ended.text(), RETURNED);
    let mut trace = dir.trace();
    let names: Vec<(String,)> = trace.rows(
        "select distinct s.name from slice s join track t on s.track_id = t.id
         where t.name like 'markers%' order by 1",
    );
    let names: Vec<String> = names.into_iter().map(|(name,)| name).collect();
    assert_eq!(
        names,
        [
            "around",
            "double",
            "int32",
            "registered",
            "uint32",
            "uint64"
        ]
    );
}

#[test]
fn ranges_and_device_work_of_one_program_are_in_one_trace() {
    needs!(ranges_and_device_work_of_one_program_are_in_one_trace:
        Need::Nvtx, Need::Pocl, Need::TraceProcessor, Need::Program("ffmpeg"));
    let dir = TestDir::new();
    // NVTX is initialised before main, and before OpenCL's loader finds the same library.
    let early = compile(&dir, "nvtx_early", &["-shared", "-fPIC"]);
    let preload = format!("LD_PRELOAD={early}");
    let arguments = ffmpeg(5, &["-f", "null", "-"]);
    let mut words = vec![preload.as_str(), "ffmpeg"];
    words.extend(arguments.iter().map(String::as_str));
    well(&mut dir.record(Driver::Threaded, "env", &words));
    let mut trace = dir.trace();
    trace.assert_sound();
    let counts = slices(&mut trace);
    let key = |name: &str| (name.to_owned(), "markers: NVTX".to_owned());
    assert_eq!(
        (counts[&key("the whole program")], counts[&key("begun")]),
        (1, 1)
    );
    assert!(kernels(&mut trace, "avgblur_horiz") > 0);
}

#[test]
fn another_tool_gets_the_calls_that_it_gets_without_gputrail() {
    needs!(another_tool_gets_the_calls_that_it_gets_without_gputrail: Need::Nvtx, Need::TraceProcessor);
    let dir = TestDir::new();
    let [program, other] = programs(&dir);
    let tool = dir.join("libtool.so");
    let source = repository("tests/programs/nvtx_tool.c");
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=gnu11",
        "-O1",
        "-Wall",
        "-Wextra",
        "-shared",
        "-fPIC",
        "-o",
    ]);
    run(compiler.args([&tool, &source])).well();
    let calls = |command: &mut Command, log: &str| {
        let log = dir.join(log);
        command
            .env("NVTX_INJECTION64_PATH", &tool)
            .env("NVTX_TOOL_LOG", &log);
        let ended = well(command);
        let log = std::fs::read_to_string(log).expect("the tool's calls");
        let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
        // Threads call in any order.
        lines.sort_unstable();
        (lines, ended)
    };
    let (alone, _) = calls(Command::new(&program).arg(&other), "alone");
    assert!(alone.len() > 1000, "{alone:?}");
    let mut record = dir.gputrail(["record", "-o", "run.pftrace", "--", &program, &other]);
    let (recorded, ended) = calls(&mut record, "recorded");
    assert_eq!(alone, recorded);
    // The program gets the tool's levels, and ours where the tool does not have the function.
    let text = ended.text();
    assert!(text.starts_with("push 70\npush 1\npop 70\n"), "{text}");
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_slices(&mut trace);
    // The tool has no function that starts this range, and one that ends it.
    let ended: i64 = trace.value("select count(*) from slice where name = 'started' and dur >= 0");
    assert_eq!(ended, 1);
    let payloads = arguments(&mut trace, "with payloads");
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    for expected in [
        pair("width", "-3"),
        pair("name", "box"),
        pair("payload 2", "fast"),
    ] {
        assert!(payloads.contains(&expected), "{expected:?} in {payloads:?}");
    }
    let samples: Vec<(f64,)> = trace.rows(
        "select c.value from counter c join track t on c.track_id = t.id
         where t.name = 'library: queue length' order by c.ts",
    );
    assert_eq!(samples, [0.0, 1.0, 4.0, 7.0, 8.0].map(|value| (value,)));
}

#[test]
fn a_library_of_another_tool_that_cannot_be_loaded_is_named() {
    needs!(a_library_of_another_tool_that_cannot_be_loaded_is_named: Need::Nvtx);
    let dir = TestDir::new();
    let [program, other] = programs(&dir);
    let mut record = dir.gputrail(["record", "-o", "run.pftrace", "--", &program, &other]);
    let ended = well(record.env("NVTX_INJECTION64_PATH", "/no/such/libtool.so"));
    assert_eq!(ended.text(), RETURNED);
    let lines = ended.stderr.lines();
    let said = lines.filter(|line| line.contains("/no/such/libtool.so gets no calls of NVTX: "));
    // Once in the program, and once in its child.
    assert!((1..=2).contains(&said.count()), "{}", ended.stderr);
}

const DATA: &str = "scopes 1\nunions 1\nown clock 1\nmonotonic 1\nrealtime 1\nstatic time domain 1\nregistered 1\n\
                    unknown clock 1\ntied clock 1\ndynamic 1\nsamples 1\nheap 1\nregions 1\npermissions 1\n";

#[test]
fn unions_deferred_events_scopes_locks_and_memory_of_nvtx_are_shown_by_what_they_mean() {
    needs!(unions_deferred_events_scopes_locks_and_memory_of_nvtx_are_shown_by_what_they_mean: Need::Nvtx, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = compile(&dir, "nvtx_data", &[]);
    let ended = well(&mut dir.gputrail(["record", "-o", "run.pftrace", "--", &program]));
    assert_eq!(ended.text(), DATA);
    let mut trace = dir.trace();
    trace.assert_sound();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let domain = || pair("domain", "data");
    // Only the member of a union that is there.
    let real = [domain(), pair("member", "1"), pair("value_real", "2.5")];
    assert_eq!(arguments(&mut trace, "real member"), real);
    let whole = [domain(), pair("member", "0"), pair("value_whole", "-7")];
    assert_eq!(arguments(&mut trace, "whole member"), whole);
    let inner = arguments(&mut trace, "inner choice");
    assert!(inner.contains(&pair("ratio", "0.5")), "{inner:?}");
    assert!(inner.iter().all(|(name, _)| name != "code"), "{inner:?}");

    // Deferred events are where they happened, whatever their clock.
    let (from, to): (i64, i64) =
        trace.rows("select ts, ts + dur from slice where name = 'all of it'")[0];
    for clock in [
        "own clock",
        "monotonic",
        "realtime",
        "registered",
        "tied clock",
    ] {
        let events: Vec<(i64, i64)> = trace.rows(&format!(
            "select ts, dur from slice where name = '{clock}' order by ts"
        ));
        assert_eq!(events.len(), 3, "{clock}");
        for (ts, dur) in &events {
            assert!(
                *ts >= from && ts + dur <= to,
                "{clock}: {events:?} in {from}..{to}"
            );
            assert!(*dur > 990_000, "{clock}: {dur} ns");
            assert!(
                clock == "own clock" || *dur < 1_010_000,
                "{clock}: {dur} ns"
            );
        }
        let scoped = arguments(&mut trace, clock);
        let expected = if matches!(clock, "registered" | "tied clock") {
            0
        } else {
            2
        };
        let scoped = scoped
            .iter()
            .filter(|one| **one == pair("scope", "node/card[0]"));
        assert_eq!(scoped.count(), expected, "{clock}");
    }
    let unknown = arguments(&mut trace, "unknown clock");
    assert!(
        unknown.contains(&pair("range begin", "1000")),
        "{unknown:?}"
    );
    for name in ["twelve bytes", "four"] {
        let count: i64 = trace.value(&format!("select count(*) from slice where name = '{name}'"));
        assert_eq!(count, 1, "{name}");
    }
    let counters: Vec<(String, f64)> = trace.rows(
        "select t.name, c.value from counter c join track t on c.track_id = t.id order by t.name, c.ts",
    );
    let sample = |part: &str, value| (format!("data: disk [node/card[0]].{part}"), value);
    let expected = [
        sample("reads", 5.0),
        sample("reads", 7.0),
        sample("writes", 6.0),
        sample("writes", 8.0),
    ];
    assert_eq!(counters, expected);

    let counts = slices(&mut trace);
    let of = |name: &str, track: &str| counts.get(&(name.to_owned(), track.to_owned())).copied();
    assert_eq!(of("hold readers", "ranges: data"), Some(3), "{counts:?}");
    assert_eq!(of("wait for readers", "markers: data"), Some(3));
    let pool = arguments(&mut trace, "the pool");
    assert_eq!(pool[..2], [domain(), pair("payload", "4096")]);
    let named: String = trace.value("select category from slice where name = 'second part'");
    assert_eq!(named, "memory region");
    let info = well(&mut dir.gputrail(["info", "run.pftrace"])).text();
    assert!(!info.contains("unbalanced"), "{info}");
}

/// The names of objects in a trace, with their types.
fn objects(trace: &mut Trace) -> Vec<(String, String)> {
    trace.rows(
        "select s.name, s.category from slice s join track t on s.track_id = t.id
         where t.name like 'markers%' order by s.ts",
    )
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, kind)| (name.to_string(), kind.to_string()))
        .collect()
}

/// The names of the contexts of the work of devices, with the number of operations in each.
fn contexts(trace: &mut Trace) -> Vec<(String, i64)> {
    trace.rows(
        "select extract_arg(arg_set_id, 'context') context, count(*) from gpu_slice where context is not null group by 1",
    )
}

#[test]
fn objects_of_cuda_and_opencl_have_the_names_that_nvtx_gives_them() {
    needs!(objects_of_cuda_and_opencl_have_the_names_that_nvtx_gives_them:
        Need::Nvtx, Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let dir = stand_ins.dir();
    let program = compile_names(dir);

    let mut record = dir.gputrail(["record", "-o", "run.pftrace", "--", &program, "cuda"]);
    stand_ins.prepare(&mut record, "1305", "");
    well(&mut record);
    let mut trace = dir.trace();
    trace.assert_sound();
    let expected = [
        ("training device", "CUDA device"),
        ("training context", "CUDA context"),
        ("copy stream", "CUDA stream"),
        ("copied", "CUDA event"),
        ("compute stream", "CUDA stream"),
        ("computed", "CUDA event"),
        ("no context", "CUDA context"),
        ("no stream", "CUDA stream"),
    ];
    assert_eq!(objects(&mut trace), owned(&expected));
    let threads: i64 = trace.value("select count(*) from thread where name = 'trainer'");
    assert_eq!(threads, 1);
    // Streams have their names wherever their work is, whether it ran before it was named or after.
    let tracks: Vec<(String, String)> = trace.rows(
        "select s.name, t.name from gpu_slice s join gpu_track t on s.track_id = t.id order by s.ts",
    );
    let last = |name: &str| {
        let words: Vec<&str> = name
            .rsplit(" · ")
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        words.join(" ")
    };
    let tracks: Vec<_> = tracks
        .into_iter()
        .map(|(name, track)| (name, last(&track)))
        .collect();
    let expected = [
        ("early", "copy stream"),
        ("late", "copy stream"),
        ("late", "compute stream"),
        ("late", "stream 15"),
    ];
    assert_eq!(tracks, owned(&expected));
    assert_eq!(contexts(&mut trace), [("training context".to_owned(), 4)]);
    let info = well(&mut dir.gputrail(["info", "run.pftrace"])).text();
    assert!(info.contains("training device"), "{info}");

    well(&mut dir.record(Driver::Basic, &program, &["opencl"]));
    let mut trace = dir.trace();
    trace.assert_sound();
    let expected = [
        ("training device", "OpenCL device"),
        ("training context", "OpenCL context"),
        ("copy queue", "OpenCL queue"),
        ("weights", "OpenCL memory object"),
        ("copied", "OpenCL event"),
    ];
    assert_eq!(objects(&mut trace), owned(&expected));
    let queue: i64 = trace.value("select count(*) from track where name like '%copy queue%'");
    assert!(queue > 0);
    assert_eq!(contexts(&mut trace), [("training context".to_owned(), 1)]);
    let info = well(&mut dir.gputrail(["info", "run.pftrace"])).text();
    assert!(info.contains("training device"), "{info}");
}

#[test]
fn markers_of_all_libraries_are_beside_the_work_of_ffmpeg_in_one_trace_and_in_the_summary() {
    needs!(markers_of_all_libraries_are_beside_the_work_of_ffmpeg_in_one_trace_and_in_the_summary:
        Need::Nvtx, Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor, Need::Program("ffmpeg"));
    let dir = TestDir::new();
    let include = format!("-I{}", repository("include").display());
    let options = [&include, "-DCL_TARGET_OPENCL_VERSION=120", "-lOpenCL"];
    let program = compile(&dir, "all_markers", &options);
    let mut words = vec![format!("{program} &"), "ffmpeg".to_owned()];
    let quoted = |word: String| format!("'{word}'");
    words.extend(ffmpeg(5, &["-f", "null", "-"]).into_iter().map(quoted));
    words.push("; wait".to_owned());
    well(&mut dir.record(Driver::Threaded, "sh", &["-c", &words.join(" ")]));
    let mut trace = dir.trace();
    trace.assert_sound();
    let counts = slices(&mut trace);
    for (name, track, count) in [
        ("epoch 1", "markers: NVTX", 1),
        ("step", "markers: training", 8),
        ("forward", "markers: training", 8),
        ("request", "ranges: training", 8),
        ("decode", "markers: ROCTx", 8),
        ("batch is ready", "markers: ROCTx", 8),
        ("compress", "markers: CLPerfMarker: storage", 3),
        ("validate", "markers: CLPerfMarker: quality", 3),
        ("step done", "markers", 8),
    ] {
        let key = (name.to_owned(), track.to_owned());
        assert_eq!(counts.get(&key), Some(&count), "{name}: {counts:?}");
    }
    assert_eq!(kernels(&mut trace, "backward"), 17);
    assert!(kernels(&mut trace, "avgblur_horiz") > 0);
    // The work of a range is that of the calls inside of it.
    let summary = well(&mut dir.gputrail(["summary", "--format", "json", "run.pftrace"])).text();
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    let ranges = summary["ranges"].as_array().expect("ranges");
    let of = |name: &str| {
        ranges
            .iter()
            .find(|range| range["name"] == name)
            .expect("a row")
    };
    assert_eq!(of("backward")["count"], 8, "{ranges:?}");
    assert_eq!(of("backward")["work"], 16, "{ranges:?}");
    assert_eq!(of("step")["work"], 32, "{ranges:?}");
}
