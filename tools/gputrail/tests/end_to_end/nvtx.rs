//! Markers of NVTX, by its own headers in C++ and its package in Python.

use std::collections::BTreeMap;
use std::process::Command;

use gputrail_harness::machine::{Need, tools};
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;
use gputrail_harness::{needs, repository};

use crate::command::{TestDir, kernels, well};
use crate::markers::slices;
use crate::transparency::ffmpeg;

/// Compiles a C++ program of `tests/programs` against NVTX's headers.
fn compile(dir: &TestDir, name: &str, options: &[&str]) -> String {
    let (source, output) = (repository("tests/programs").join(name), dir.join(name));
    let output = output.with_extension("out");
    run(Command::new("c++")
        .args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-pthread"])
        .args(options)
        .arg("-I")
        .arg(tools().join("nvtx/nvidia/cu13/include"))
        .arg("-o")
        .args([&output, &source.with_extension("cpp")])
        .arg("-ldl"))
    .well();
    output.to_string_lossy().into_owned()
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
    let counts = slices(&mut trace);
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
            "unbalanced markers: 1 started ranges did not end; 1 pops had no pushed range; \
             1 ends had no started range; 1 started ranges ended on another thread"
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
