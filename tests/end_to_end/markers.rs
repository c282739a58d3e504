//! The libraries of ROCTx and CLPerfMarker, called from C.

use std::collections::BTreeMap;
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::{Ended, compile_with, run};
use gputrail_harness::repository;
use gputrail_harness::trace::Trace;
use serde_json::Value;

use crate::c_api::{C, compiled};
use crate::command::{TestDir, well};
use crate::tools::tool;

/// The number of slices by name and track.
pub fn slices(trace: &mut Trace) -> BTreeMap<(String, String), i64> {
    let sql = "select s.name, t.name, count(*) from slice s join track t on s.track_id = t.id
               where t.name like 'markers%' or t.name like 'ranges%' group by 1, 2";
    let rows: Vec<(String, String, i64)> = trace.rows(sql);
    let keyed = rows.into_iter();
    keyed
        .map(|(name, track, count)| ((name, track), count))
        .collect()
}

fn counts(expected: &[(&str, &str, i64)]) -> BTreeMap<(String, String), i64> {
    let keyed = expected.iter();
    let keyed = keyed.map(|(name, track, count)| ((name.to_string(), track.to_string()), *count));
    keyed.collect()
}

const ROCTX: &str = "push 0\npush 1\npop 1\npop 0\npop without push -1\nranges 1\nthread id 1\n\
                     names 0 0 0\npause 0 0\npush while paused 0\npop while paused 0\nresume 0 0\n\
                     version 1\nerror ''\n";

/// The slices of `roctx.c`.
fn roctx_slices() -> BTreeMap<(String, String), i64> {
    counts(&[
        ("after the pause", "markers: ROCTx", 1),
        ("in thread", "markers: ROCTx", 100),
        ("inner", "markers: ROCTx", 1),
        ("moment", "markers: ROCTx", 1),
        ("moment in thread", "markers: ROCTx", 100),
        ("moves", "ranges: ROCTx", 1),
        ("outer", "markers: ROCTx", 1),
        ("overlaps", "ranges: ROCTx", 1),
        ("the agent", "markers: ROCTx", 1),
        ("the device", "markers: ROCTx", 1),
        ("the stream", "markers: ROCTx", 1),
    ])
}

#[test]
fn every_function_of_roctx_is_there_under_both_names_of_the_library() {
    needs!(every_function_of_roctx_is_there_under_both_names_of_the_library: Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("roctx");
    let program = program.to_str().expect("UTF-8");
    for library in ["libroctx64.so.4", "librocprofiler-sdk-roctx.so.1"] {
        let arguments = ["record", "-o", "run.pftrace", "--", program, library];
        let ended = well(&mut dir.gputrail(arguments));
        assert_eq!(ended.text(), ROCTX, "{library}");
        let mut trace = dir.trace();
        trace.assert_sound();
        assert_eq!(slices(&mut trace), roctx_slices());
        let named: i64 = trace.value("select count(*) from thread where name = 'roctx worker'");
        assert_eq!(named, 2);
        let info = well(&mut dir.gputrail(["info", "run.pftrace"])).text();
        assert!(
            info.contains("1 pop had no pushed range; 2 started ranges ended on another thread"),
            "{info}"
        );
    }
}

#[test]
fn a_range_that_is_popped_while_the_recording_is_off_ends_with_the_last_marker_inside() {
    needs!(a_range_that_is_popped_while_the_recording_is_off_ends_with_the_last_marker_inside: Need::OpenClToolchain, Need::TraceProcessor);
    for interface in ["ROCTx", "CLPerfMarker", "gputrail"] {
        let dir = TestDir::new();
        let program = dir.program("popped_while_off");
        let program = program.to_str().expect("UTF-8");
        let command = [program, interface, "libroctx64.so"];
        let record = ["record", "-o", "run.pftrace", "--"];
        well(&mut dir.gputrail([record.as_slice(), &command].concat()));
        let mut trace = dir.trace();
        trace.assert_sound();
        let sql = "select s.name from slice s join track t on s.track_id = t.id
                   where t.name like 'markers%' order by s.ts, s.dur desc";
        let names: Vec<(String,)> = trace.rows(sql);
        let names: Vec<&str> = names.iter().map(|(name,)| &name[..]).collect();
        let expected = ["around all", "popped while off", "last inside", "recorded"];
        assert_eq!(names, expected, "{interface}");
        let ends: i64 = trace.value(
            "select count(*) from slice r join slice m on r.ts + r.dur = m.ts + m.dur
             where r.name = 'popped while off' and m.name = 'last inside'",
        );
        assert_eq!(ends, 1, "{interface}");
        let whole: i64 = trace.value(
            "select count(*) from slice a join slice r on a.ts + a.dur >= r.ts + r.dur
             where a.name = 'around all' and r.name = 'recorded'",
        );
        assert_eq!(whole, 1, "{interface}");
        let info = well(&mut dir.gputrail(["info", "run.pftrace"])).text();
        assert!(
            info.contains("1 pushed range did not end; 1 pop had no pushed range"),
            "{info}"
        );
    }
}

/// The folder that `gputrail library` fills.
fn libraries(dir: &TestDir) -> std::path::PathBuf {
    let library = dir.join("libgputrail.so");
    let arguments = [
        "library",
        library.to_str().expect("UTF-8"),
        "--capture",
        "%p.gputrail",
    ];
    well(&mut dir.gputrail(arguments));
    dir.join("gputrail-markers")
}

#[test]
fn roctx_counts_levels_in_programs_that_are_not_recorded() {
    needs!(roctx_counts_levels_in_programs_that_are_not_recorded: Need::OpenClToolchain);
    let dir = TestDir::new();
    let (program, folder) = (dir.program("roctx"), libraries(&dir));
    let mut command = Command::new(program);
    let ended = run(command.arg("libroctx64.so").env("LD_LIBRARY_PATH", folder)).well();
    assert_eq!((ended.text().as_str(), ended.stderr.as_str()), (ROCTX, ""));
}

/// Builds a program that is linked with the libraries of markers that `gputrail library` writes.
fn linked_with_markers(dir: &TestDir) -> std::path::PathBuf {
    well(&mut dir.gputrail(["library", "sdk"]));
    let program = dir.join("linked_markers");
    let mut compiler = Command::new("cc");
    compiler
        .current_dir(dir.path())
        .args(["-std=c99", "-Wall", "-Werror", "-Isdk/include", "-o"])
        .arg(&program)
        .arg(repository("tests/programs/linked_markers.c"))
        .args(["-Lsdk/lib/gputrail-markers", "-lroctx64", "-lCLPerfMarker"]);
    run(&mut compiler).well();
    program
}

#[test]
fn programs_that_are_linked_with_a_library_of_markers_start_alone_and_are_recorded() {
    needs!(programs_that_are_linked_with_a_library_of_markers_start_alone_and_are_recorded:
        Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = linked_with_markers(&dir);
    let needed = run(Command::new("readelf").arg("-d").arg(&program))
        .well()
        .text();
    for (name, is_needed) in [
        ("[libroctx64.so.4]", true),
        ("[libCLPerfMarker.so]", true),
        ("[libgputrail.so.0]", false),
    ] {
        assert_eq!(needed.contains(name), is_needed, "{needed}");
    }
    let folder = dir.join("sdk/lib/gputrail-markers");
    let ended = run(Command::new(&program).env("LD_LIBRARY_PATH", &folder)).well();
    let alone = "push 0 pop 0\ninitialize -4 begin -1 end -1\n";
    assert_eq!((ended.text().as_str(), ended.stderr.as_str()), (alone, ""));
    // Without gputrail's library, its functions do nothing.
    let nowhere = dir.join("copied");
    std::fs::create_dir(&nowhere).expect("a folder");
    for name in ["libroctx64.so.4", "libCLPerfMarker.so"] {
        std::fs::copy(folder.join(name), nowhere.join(name)).expect("copied");
    }
    let ended = run(Command::new(&program).env("LD_LIBRARY_PATH", &nowhere)).well();
    assert_eq!(ended.text(), "push 0 pop 0\ninitialize 0 begin 0 end 0\n");
    for folders in ["", folder.to_str().expect("UTF-8")] {
        let mut command = dir.gputrail(["record", "-q", "-o", "run.pftrace", "--"]);
        let ended = well(command.arg(&program).env("LD_LIBRARY_PATH", folders));
        assert_eq!(ended.text(), "push 0 pop 0\ninitialize 0 begin 0 end 0\n");
        assert_eq!(ended.stderr, "");
        let mut trace = dir.trace();
        trace.assert_sound();
        let expected = counts(&[
            ("linked marker", "markers: CLPerfMarker: group", 1),
            ("linked moment", "markers: ROCTx", 1),
            ("linked range", "markers: ROCTx", 1),
            ("linked start", "ranges: ROCTx", 1),
        ]);
        assert_eq!(slices(&mut trace), expected, "{folders}");
    }
}

#[test]
fn the_file_of_clperfmarker_is_written_when_a_program_ends_without_asking_for_it() {
    needs!(the_file_of_clperfmarker_is_written_when_a_program_ends_without_asking_for_it: Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = linked_with_markers(&dir);
    for arguments in [&["finalize"][..], &[]] {
        let record = [
            "record",
            "-q",
            "-o",
            "run.pftrace",
            "--clperfmarker",
            "run",
            "--",
        ];
        let mut command = dir.gputrail(record);
        well(
            command
                .arg(&program)
                .args(arguments)
                .env("LD_LIBRARY_PATH", ""),
        );
        let text = std::fs::read_to_string(dir.join("run.clperfmarker")).expect("a file");
        assert!(
            text.contains("clBeginPerfMarker   linked&nbsp;marker "),
            "{text}"
        );
        assert_eq!(dir.files(".clperfmarker").len(), 1);
    }
    // It cannot be written, and there is nobody else to tell.
    let record = [
        "record",
        "-q",
        "-o",
        "run.pftrace",
        "--clperfmarker",
        "no/such/run",
        "--",
    ];
    let ended = well(
        dir.gputrail(record)
            .arg(&program)
            .env("LD_LIBRARY_PATH", ""),
    );
    let told = "cannot write the markers of CLPerfMarker to ";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
}

const STATUSES: &str = "too early -1 -1 -1\ninitialize 0 0\nno name -5\nunbalanced -3\nbegin 0 0 end 0 0\n\
                        begin 0 0 end 0 0\nthread 1\nthread 1\nthread 1\nbegin 0\nfinalize 0 0\n\
                        too late -2 -2 -2\n";

#[test]
fn clperfmarkers_statuses_are_those_of_its_documentation_and_its_markers_a_tree() {
    needs!(clperfmarkers_statuses_are_those_of_its_documentation_and_its_markers_a_tree: Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("clperfmarker");
    let ended = well(
        dir.gputrail(["record", "-o", "run.pftrace", "--"])
            .arg(program),
    );
    assert_eq!(ended.text(), STATUSES);
    let mut trace = dir.trace();
    trace.assert_sound();
    let expected = [
        ("", "markers: CLPerfMarker", 1),
        ("inside", "markers: CLPerfMarker", 100),
        ("inside", "markers: CLPerfMarker: compute", 100),
        ("inside", "markers: CLPerfMarker: input output", 100),
        ("load the model", "markers: CLPerfMarker: input output", 1),
        ("never ended", "markers: CLPerfMarker", 1),
        ("no group", "markers: CLPerfMarker", 1),
        ("read", "markers: CLPerfMarker: input output", 1),
        ("thread work", "markers: CLPerfMarker", 100),
        ("thread work", "markers: CLPerfMarker: compute", 100),
        ("thread work", "markers: CLPerfMarker: input output", 100),
    ];
    assert_eq!(slices(&mut trace), counts(&expected));
    let inside: i64 = trace.value(
        "select count(*) from slice s join slice p on s.parent_id = p.id
         where s.name = 'inside' and p.name = 'thread work' or s.name = 'read' and p.name = 'load the model'",
    );
    assert_eq!(inside, 301);
}

#[test]
fn a_program_with_clperfmarker_goes_on_without_gputrail() {
    needs!(a_program_with_clperfmarker_goes_on_without_gputrail: Need::OpenClToolchain);
    let dir = TestDir::new();
    let (program, folder) = (dir.program("clperfmarker"), libraries(&dir));
    let ended = run(Command::new(program).env("LD_LIBRARY_PATH", folder)).well();
    let text = ended.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..3],
        ["too early -1 -1 -1", "initialize -4 -4", "no name -1"]
    );
    assert_eq!(lines.last(), Some(&"too late -1 -1 -4"));
    assert_eq!(ended.stderr, "");
}

#[test]
fn the_file_of_clperfmarker_has_the_markers_of_the_trace() {
    needs!(the_file_of_clperfmarker_has_the_markers_of_the_trace: Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("clperfmarker");
    // A file of an earlier run is replaced.
    std::fs::write(dir.join("run.clperfmarker"), "old").expect("written");
    let arguments = ["record", "-o", "run.pftrace", "--clperfmarker", "run", "--"];
    let ended = well(dir.gputrail(arguments).arg(program));
    assert_eq!(ended.text(), STATUSES);
    let text = std::fs::read_to_string(dir.join("run.clperfmarker")).expect("a file");
    assert!(text.starts_with("=====Perfmarker Output=====\n"), "{text}");
    assert!(
        text.contains("clBeginPerfMarker   load&nbsp;the&nbsp;model "),
        "{text}"
    );
    well(&mut dir.gputrail(["convert", "run.clperfmarker", "-o", "converted.pftrace"]));
    let mut converted = Trace::open(dir.join("converted.pftrace"));
    converted.assert_sound();
    assert_eq!(slices(&mut converted), slices(&mut dir.trace()));
}

#[test]
fn a_file_that_cannot_be_written_is_a_status_of_clperfmarker() {
    needs!(a_file_that_cannot_be_written_is_a_status_of_clperfmarker: Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("clperfmarker");
    let arguments = [
        "record",
        "-o",
        "run.pftrace",
        "--clperfmarker",
        "no/such/folder",
        "--",
    ];
    let ended = well(dir.gputrail(arguments).arg(program));
    // It stays initialised, and may be finalised again.
    assert!(
        ended.text().contains("finalize -8 -8\n"),
        "{}",
        ended.text()
    );
}

#[test]
fn calls_and_kernels_name_the_range_that_encloses_them_on_request() {
    needs!(calls_and_kernels_name_the_range_that_encloses_them_on_request:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let include = format!("-I{}", repository("include").display());
    let source = repository("tests/programs/kernels_in_ranges.c");
    let program = compile_with(&[&include], &source, dir.path());
    well(&mut dir.record_with(&["--range-ids"], Driver::Basic, &program, &[]));
    let mut trace = dir.trace();
    trace.assert_sound();
    // PoCL runs a kernel in the call that waits for it.
    let mut ranges = |sql: &str| -> Vec<(String, Option<String>)> { trace.rows(sql) };
    let pair = |name: &str, range: Option<&str>| (name.to_owned(), range.map(str::to_owned));
    let kernels =
        ranges("select name, extract_arg(arg_set_id, 'range') from gpu_slice order by ts");
    let inside = Some("training: step");
    assert_eq!(
        kernels,
        [
            pair("before", None),
            pair("inside", inside),
            pair("elsewhere", inside),
            pair("between", Some("epoch"))
        ]
    );
    let calls = ranges(
        "select name, extract_arg(arg_set_id, 'debug.range') from slice
         where name in ('clCreateKernel', 'clFinish') order by ts",
    );
    let both = |range| ["clCreateKernel", "clFinish"].map(|name| pair(name, range));
    assert_eq!(
        calls,
        [both(None), both(inside), both(inside), both(Some("epoch"))].concat()
    );
    let bare: i64 =
        trace.value("select count(*) from args where key in ('debug.external_id', 'external_id')");
    let tracks: i64 = trace.value("select count(*) from track where name like 'external ids%'");
    assert_eq!((bare, tracks), (0, 0));
}

#[test]
fn a_library_of_markers_that_programs_find_first_is_named() {
    let dir = TestDir::new();
    std::fs::write(dir.join("libroctx64.so.4"), "").expect("written");
    let mut command = dir.gputrail(["record", "-o", "run.pftrace", "--", "true"]);
    let ended = well(command.env("LD_LIBRARY_PATH", dir.path()));
    let path = dir.join("libroctx64.so.4");
    let expected = format!(
        "{} in LD_LIBRARY_PATH goes before gputrail's library of that name: its markers are not recorded",
        path.display()
    );
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    // rocprofiler-sdk tells of the markers of its own library.
    let other = TestDir::new();
    std::fs::write(other.join("librocprofiler-sdk-roctx.so.1"), "").expect("written");
    let ended = well(command.env("LD_LIBRARY_PATH", other.path()));
    assert!(!ended.stderr.contains("goes before"), "{}", ended.stderr);
}

#[test]
fn a_program_with_a_copy_of_the_library_has_the_markers_of_roctx_in_one_recording() {
    needs!(a_program_with_a_copy_of_the_library_has_the_markers_of_roctx_in_one_recording:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let source = repository("tests/programs/roctx.c");
    let options = ["-Wno-pedantic", "-Wl,--no-as-needed"];
    let program = compiled(&dir, C, &options, &source, "roctx");
    let program = program.to_str().expect("UTF-8");
    let arguments = [
        "record",
        "-o",
        "run.pftrace",
        "--",
        program,
        "libroctx64.so.4",
    ];
    let ended = well(&mut dir.gputrail(arguments));
    assert_eq!(ended.text(), ROCTX);
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(slices(&mut trace), roctx_slices());
}

#[test]
fn ends_that_end_nothing_are_counted_whatever_their_library() {
    needs!(ends_that_end_nothing_are_counted_whatever_their_library:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let source = repository("tests/programs/unbalanced.c");
    let program = compiled(&dir, C, &["-Wno-pedantic"], &source, "unbalanced");
    for library in ["roctx", "clperfmarker", "gputrail"] {
        let mut command = dir.gputrail(["record", "-o", "run.pftrace", "--"]);
        let ended = well(command.arg(&program).arg(library));
        assert_eq!(ended.text(), "done\n");
        let info = well(&mut dir.gputrail(["info", "run.pftrace"])).text();
        // One range ends twice, two ids were never given out; nothing is started by CLPerfMarker.
        let expected = match library {
            "clperfmarker" => "unbalanced markers: 2 pops had no pushed range\n",
            _ => "unbalanced markers: 2 pops had no pushed range; 3 ends had no started range\n",
        };
        assert!(info.contains(expected), "{library}: {info}");
    }
}

/// `gputrail record` of `open_ranges.c`, which does what `what` says.
fn record_open_ranges(dir: &TestDir, options: &[&str], what: &str) -> Ended {
    let program = dir.program("open_ranges");
    let mut command = dir.gputrail(["record", "-o", "run.pftrace"]);
    command.args(options).arg("--").arg(program);
    run(command.args(["libroctx64.so.4", what]))
}

#[test]
fn ranges_that_do_not_end_are_in_the_summary_whatever_their_kind() {
    needs!(ranges_that_do_not_end_are_in_the_summary_whatever_their_kind: Need::OpenClToolchain);
    let dir = TestDir::new();
    let ended = record_open_ranges(&dir, &["--capture"], "open").well();
    // Three ranges and a moment.
    assert!(
        ended.stderr.contains("0 copies, 4 markers in "),
        "{}",
        ended.stderr
    );
    let remark = "2 ranges had not ended at the end\n";
    assert!(ended.stderr.contains(remark), "{}", ended.stderr);
    for file in ["run.pftrace", "run.gputrail"] {
        let mut command = dir.gputrail(["summary", file, "--format", "json"]);
        let summary: Value = serde_json::from_str(&well(&mut command).text()).expect("JSON");
        let rows = summary["ranges"].as_array().expect("a table").iter();
        let row = |row: &Value| {
            let number = |key: &str| row[key].as_u64().expect("a number");
            let name = row["name"].as_str().expect("a name").to_owned();
            (name, number("count"), number("unfinished"))
        };
        let rows: Vec<_> = rows.map(row).collect();
        let expected = [("inside", 1, 0), ("not ended", 1, 1), ("not popped", 1, 1)];
        let expected = expected.map(|(name, all, open)| (name.to_owned(), all, open));
        assert_eq!(rows, expected, "{file}");
        let length = &summary["recording"][0];
        assert!(length["value"].as_u64() > Some(0), "{file}: {length}");
        let share = &summary["ranges"][0]["share"];
        assert!(
            share
                .as_f64()
                .is_some_and(|share| (0.0..=1.0).contains(&share)),
            "{share}"
        );
        let info = well(&mut dir.gputrail(["info", file])).text();
        assert!(info.contains("unfinished     2 ranges\n"), "{file}: {info}");
    }
}

#[test]
fn a_program_that_is_killed_in_ranges_leaves_a_trace_that_says_so() {
    needs!(a_program_that_is_killed_in_ranges_leaves_a_trace_that_says_so: Need::OpenClToolchain);
    let dir = TestDir::new();
    let ended = record_open_ranges(&dir, &["--capture"], "kill");
    assert_eq!(ended.code(), 137, "{}", ended.stderr);
    for file in ["run.pftrace", "run.gputrail"] {
        let info = well(&mut dir.gputrail(["info", file])).text();
        let verdict = "complete       up to the end of the process, killed by signal 9 (SIGKILL); 2 ranges were in progress";
        assert!(info.contains(verdict), "{file}: {info}");
    }
}

#[test]
fn a_name_that_starts_and_stops_switches_on_and_off_in_turn() {
    needs!(a_name_that_starts_and_stops_switches_on_and_off_in_turn: Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let options = ["--start-on", "step", "--stop-on", "step"];
    record_open_ranges(&dir, &options, "steps").well();
    let mut trace = dir.trace();
    trace.assert_sound();
    let names: Vec<(String,)> = trace.rows(
        "select s.name from slice s join track t on s.track_id = t.id
         where t.name like 'markers%' order by s.ts, s.dur desc",
    );
    let names: Vec<&str> = names.iter().map(|(name,)| &name[..]).collect();
    assert_eq!(
        names,
        ["step", "in step 1", "step", "step", "in step 3", "step"]
    );
}

#[test]
fn ids_begin_the_recording_of_a_program_without_a_gpu_as_markers_do() {
    needs!(ids_begin_the_recording_of_a_program_without_a_gpu_as_markers_do: Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let source = repository("tests/programs/ids_alone.c");
    let program = compiled(&dir, C, &["-Wl,--as-needed"], &source, "ids_alone");
    let alone = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
    let refused = "GPUTRAIL_NOT_INITIALISED";
    assert_eq!(
        alone.text(),
        format!("name {refused}, push {refused}, pop {refused}: 0\n")
    );
    let program = program.to_str().expect("UTF-8");
    let tool = tool(&dir, &[], "examples/c/kernel_times.c", "libtool.so");
    for options in [&[][..], &["--tool", &tool]] {
        let all = [&["record", "-o", "run.pftrace"], options, &["--", program]].concat();
        let ended = well(&mut dir.gputrail(all));
        let ok = "GPUTRAIL_OK";
        assert_eq!(ended.text(), format!("name {ok}, push {ok}, pop {ok}: 7\n"));
        let mut trace = dir.trace();
        trace.assert_sound();
        let shown: Vec<(String, i64)> = trace.rows(
            "select name, count(*) from slice where name in ('request 7', 'inside') and dur >= 0 group by 1 order by 1",
        );
        let expected = [("inside", 1), ("request 7", 1)];
        assert_eq!(
            shown,
            expected.map(|(name, count)| (name.to_owned(), count))
        );
    }
}

#[test]
fn markers_of_our_own_api_begin_the_recording_of_a_program_without_a_gpu() {
    needs!(markers_of_our_own_api_begin_the_recording_of_a_program_without_a_gpu: Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let source = repository("tests/programs/markers_alone.c");
    let program = compiled(&dir, C, &["-Wl,--as-needed"], &source, "markers_alone");
    let alone = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
    assert_eq!(alone.text(), "named: GPUTRAIL_NOT_INITIALISED\nchild: 0\n");
    let program = program.to_str().expect("UTF-8");
    let arguments = ["record", "-o", "run.pftrace", "--", program];
    let ended = well(&mut dir.gputrail(arguments));
    assert_eq!(ended.text(), "named: GPUTRAIL_OK\nchild: 0\n");
    assert!(!ended.stderr.contains("was seen"), "{}", ended.stderr);
    let mut trace = dir.trace();
    trace.assert_sound();
    let sql = "select name, count(*) from slice where name in ('step', 'moment', 'upload') and dur >= 0 group by 1 order by 1";
    let marked: Vec<(String, i64)> = trace.rows(sql);
    let expected = [("moment", 1), ("step", 200), ("upload", 1)];
    assert_eq!(
        marked,
        expected.map(|(name, count)| (name.to_owned(), count))
    );
    let named: i64 = trace.value("select count(*) from thread where name = 'main of markers'");
    assert_eq!(named, 1);
}
