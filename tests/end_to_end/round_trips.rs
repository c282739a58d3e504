//! Perfetto traces as inputs of `gputrail convert`: Perfetto finds in the output what it finds in the input.

use std::path::Path;

use gputrail_buffer::clock;
use gputrail_harness::machine::Need;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;
use gputrail_harness::{needs, repository};
use serde_json::Value;

use crate::command::{TestDir, well};
use crate::merging::like_traced;

/// All that Perfetto shows of a trace's events: slices with their arguments, places and parents; counters; flows;
/// processes and threads; samples; clocks; losses.
const TABLES: [&str; 8] = [
    "select s.ts, s.dur, s.name, s.category, s.depth, track.name, thread.tid, thread.name, process.pid, process.name, \
        (select group_concat(key || '=' || coalesce(display_value, '') || ':' || value_type, '|') from \
            (select key, display_value, value_type from args where args.arg_set_id = s.arg_set_id and key != 'upid' order by 1, 2)) as arguments, \
        (select name from slice above where above.id = s.parent_id) as parent \
        from slice s join track on track.id = s.track_id \
        left join thread_track on thread_track.id = track.id left join thread using (utid) \
        left join process_track on process_track.id = track.id \
        left join process on process.upid = coalesce(process_track.upid, thread.upid) \
        order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 11",
    "select t.name, t.unit, c.ts, c.value, process.pid from counter c join counter_track t on t.id = c.track_id \
        left join process_counter_track p on p.id = t.id left join process using (upid) order by 1, 3, 4",
    "select a.name, a.ts, b.name, b.ts from flow join slice a on a.id = slice_out join slice b on b.id = slice_in \
        order by 2, 4, 1, 3",
    "select process.pid, process.name, cmdline, thread.tid, thread.name from thread left join process using (upid) \
        order by 1, 4",
    "select name, sum(value) from stats where severity in ('error', 'data_loss') and value > 0 group by 1 order by 1",
    "select clock_id, ts, clock_value from clock_snapshot where clock_id < 64 order by 2, 1",
    "select sample.ts, frame.name from cpu_profile_stack_sample sample \
        join stack_profile_callsite site on site.id = sample.callsite_id \
        join stack_profile_frame frame on frame.id = site.frame_id order by 1, 2",
    "select name, int_value, str_value from metadata where name glob 'system_*' or name glob 'trace_time*' order by 1",
];

/// Checks that both traces have the same contents, and that there are `least` slices in them.
#[track_caller]
fn assert_same(first: &Path, second: &Path, least: usize) {
    let (mut first, mut second) = (Trace::open(first), Trace::open(second));
    for (number, sql) in TABLES.iter().enumerate() {
        let (expected, found): (Vec<Value>, Vec<Value>) = (first.rows(sql), second.rows(sql));
        let differ = expected
            .iter()
            .zip(&found)
            .find(|(one, other)| one != other);
        assert_eq!(differ, None, "{sql}");
        assert_eq!(expected.len(), found.len(), "{sql}");
        assert!(number > 0 || found.len() >= least, "{} slices", found.len());
    }
}

/// Reads a trace, writes it again event by event, and compares both. A selection that keeps everything prevents that the
/// packets are copied.
#[track_caller]
fn assert_comes_back(dir: &TestDir, name: &str, least: usize) {
    let ended = well(&mut dir.gputrail(["convert", name, "--name", "*", "-o", "back.pftrace"]));
    let lost = ended
        .stderr
        .lines()
        .find(|line| line.contains("not in the trace"));
    assert_eq!(lost, None);
    assert_same(&dir.join(name), &dir.join("back.pftrace"), least);
    well(&mut dir.gputrail(["convert", name, "-o", "copy.pftrace"]));
    let [before, after] = [name, "copy.pftrace"].map(|name| std::fs::read(dir.join(name)).unwrap());
    assert!(before == after, "a trace is copied byte for byte");
}

#[test]
fn the_trace_of_a_demo_comes_back_whole() {
    needs!(the_trace_of_a_demo_comes_back_whole: Need::TraceProcessor);
    let dir = TestDir::new();
    well(&mut dir.gputrail([
        "demo",
        "-q",
        "--pc-sampling",
        "stochastic",
        "-o",
        "demo.pftrace",
    ]));
    assert_comes_back(&dir, "demo.pftrace", 6000);
}

#[test]
fn the_trace_of_an_opencl_program_comes_back_whole() {
    needs!(the_trace_of_an_opencl_program_comes_back_whole: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("waits");
    well(&mut dir.record(Driver::Basic, &program, &[]));
    assert_comes_back(&dir, "run.pftrace", 20);
}

#[test]
fn traces_of_pytorchs_profiles_come_back_whole() {
    needs!(traces_of_pytorchs_profiles_come_back_whole: Need::TraceProcessor);
    let files = [
        ("cpu-only", 10),
        ("cuda-event-sync-multi-stream", 10),
        ("cupti-range-profiler", 10),
        ("mi250-minitoy", 100),
        ("mtia-inference", 10),
        ("triton", 3),
        ("v100-resnet-nccl", 100),
        ("v100-resnet-ns", 40_000),
    ];
    for (name, least) in files {
        let dir = TestDir::new();
        let file = repository("tests/data/kineto").join(format!("{name}.json.gz"));
        let file = file.to_str().expect("UTF-8");
        well(&mut dir.gputrail(["convert", file, "-q", "-o", "run.pftrace"]));
        assert_comes_back(&dir, "run.pftrace", least);
    }
}

#[test]
fn the_trace_of_rocprofv3s_tables_comes_back_whole() {
    needs!(the_trace_of_rocprofv3s_tables_comes_back_whole: Need::TraceProcessor);
    let dir = TestDir::new();
    let tables = repository("tests/data/rocprofv3");
    let tables = tables.to_str().expect("UTF-8");
    well(&mut dir.gputrail(["convert", tables, "-q", "-o", "run.pftrace"]));
    assert_comes_back(&dir, "run.pftrace", 10);
}

#[test]
fn json_made_of_a_trace_says_what_json_made_of_its_capture_says() {
    needs!(json_made_of_a_trace_says_what_json_made_of_its_capture_says: Need::TraceProcessor);
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "--capture", "-o", "run.pftrace"]));
    for input in ["run.gputrail", "run.pftrace"] {
        let [json, back] = ["json", "pftrace"].map(|format| format!("{input}.{format}"));
        well(&mut dir.gputrail(["convert", "-q", input, "-o", &json]));
        well(&mut dir.gputrail(["convert", "-q", &json, "-o", &back]));
        well(&mut dir.gputrail(["convert", "-q", &back, "-o", &format!("{back}.json")]));
    }
    // Rows that are no threads, and work, have numbers by their order, which differs.
    let sql = "select s.ts, s.dur, s.name, s.category, s.depth, \
        (select group_concat(key || '=' || display_value, '|') from \
            (select key, display_value from args where args.arg_set_id = s.arg_set_id \
                and key not glob 'gpu_correlation.*' order by 1, 2)) as arguments \
        from slice s order by 1, 2, 3, 4, 5, 6";
    let ties = "select a.ts, a.name, b.ts, b.name from flow join slice a on a.id = slice_out join slice b on b.id = slice_in \
        order by 1, 2, 3, 4";
    let open = |file: &str| {
        ["run.gputrail.pftrace", "run.pftrace.pftrace"]
            .map(|name| Trace::open(dir.join(&format!("{name}{file}"))))
    };
    // Ties of calls and work are arrows in JSON.
    let rows = [("", sql), (".json", ties)].map(|(file, sql)| {
        let [mut capture, mut trace] = open(file);
        assert_same_rows("JSON", sql, &mut capture, &mut trace)
    });
    assert!(rows[0] > 6000 && rows[1] > 2000, "{rows:?}");
}

#[test]
fn packets_of_other_programs_are_carried_over_and_counted_where_they_have_no_place() {
    needs!(packets_of_other_programs_are_carried_over_and_counted_where_they_have_no_place: Need::PythonBindings);
    let dir = TestDir::new();
    let before = clock::snapshot();
    let mut after = before;
    after.boottime.0 += 1_000_000;
    after.monotonic.0 += 1_000_000;
    after.realtime.0 += 1_000_000;
    like_traced(&dir, "system.pftrace", 4242, &[before, after]);
    well(&mut dir.gputrail(["convert", "system.pftrace", "-q", "-o", "copy.pftrace"]));
    let [before, after] =
        ["system.pftrace", "copy.pftrace"].map(|name| std::fs::read(dir.join(name)).unwrap());
    assert!(before == after);
    let ended = well(&mut dir.gputrail(["convert", "system.pftrace", "-o", "out.json"]));
    let counted = |line: &str| line.contains("packet of kind 1 (ftrace_events), at byte ");
    assert!(ended.stderr.lines().any(counted), "{}", ended.stderr);
}

#[test]
fn a_summary_of_a_damaged_trace_says_so_and_ends_with_1() {
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "-o", "run.pftrace"]));
    let whole = std::fs::read(dir.join("run.pftrace")).unwrap();
    std::fs::write(dir.join("cut.pftrace"), &whole[..whole.len() - 3]).unwrap();
    for command in [
        &["summary", "cut.pftrace"][..],
        &["convert", "cut.pftrace", "-o", "out.pftrace"],
    ] {
        let ended = run(&mut dir.gputrail(command));
        assert_eq!(ended.code(), 1, "{command:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("the trace was cut"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn commands_say_what_a_file_that_is_no_trace_looks_like() {
    let dir = TestDir::new();
    std::fs::write(dir.join("paper.pdf"), "%PDF-1.4").unwrap();
    for command in ["summary", "info", "hotspots", "view"] {
        let ended = run(&mut dir.gputrail([command, "paper.pdf"]));
        assert_eq!(ended.code(), 125, "{command}: {}", ended.stderr);
        let words = "paper.pdf is a PDF document; expected one of: capture, Perfetto trace";
        assert!(ended.stderr.contains(words), "{command}: {}", ended.stderr);
    }
}

/// Slices of the host by thread or row, name and depth, with their number and the sum of their durations; then device work by
/// name. JSON has no tracks beside its threads, so a track is there a thread of its name; notes about the recording, which it has not,
/// are counted.
const BY_NAME: [&str; 2] = [
    "select coalesce(nullif(t.name, ''), th.name, th.tid), s.name, s.depth, count(*), sum(s.dur), sum(s.dur < 0) \
        from slice s join track t on t.id = s.track_id left join thread_track tt on tt.id = t.id left join thread th using (utid) \
        where coalesce(s.category, '') not in ('kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_sync', 'gpu_graph', 'gpu_work') \
        and not (s.category = 'gputrail' and s.name = 'recording') \
        and t.id not in (select track_id from gpu_slice) group by 1, 2, 3 order by 1, 2, 3",
    "select name, depth, count(*), sum(dur) from slice \
        where category in ('kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_sync', 'gpu_graph', 'gpu_work') \
        or track_id in (select track_id from gpu_slice) group by 1, 2 order by 1, 2",
];

/// Checks that two traces give the same answer. Returns its number of rows.
#[track_caller]
fn assert_same_rows(what: &str, sql: &str, first: &mut Trace, second: &mut Trace) -> usize {
    let (expected, found): (Vec<Value>, Vec<Value>) = (first.rows(sql), second.rows(sql));
    let pairs = expected.iter().zip(&found);
    let differ = pairs.into_iter().find(|(one, other)| one != other);
    assert_eq!(differ, None, "{what}");
    assert_eq!(expected.len(), found.len(), "{what}");
    found.len()
}

#[test]
fn json_shows_what_the_trace_shows_and_comes_back_whole() {
    needs!(json_shows_what_the_trace_shows_and_comes_back_whole: Need::TraceProcessor);
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "--capture", "-o", "demo.pftrace"]));
    let profiles = ["v100-resnet-ns", "mtia-inference"];
    let profiles =
        profiles.map(|name| repository("tests/data/kineto").join(format!("{name}.json.gz")));
    let [cuda, mtia] = profiles
        .each_ref()
        .map(|path| path.to_str().expect("UTF-8"));
    for input in ["demo.gputrail", cuda, mtia] {
        well(&mut dir.gputrail(["convert", "-q", input, "-o", "run.pftrace"]));
        well(&mut dir.gputrail(["convert", "-q", input, "-o", "run.json"]));
        let ended = well(&mut dir.gputrail(["convert", "run.json", "-o", "back.pftrace"]));
        assert!(
            !ended.stderr.contains("not in the output"),
            "{input}: {}",
            ended.stderr
        );
        let [mut trace, mut json, mut back] =
            ["run.pftrace", "run.json", "back.pftrace"].map(|name| Trace::open(dir.join(name)));
        for (reader, other) in [("trace processor", &mut json), ("gputrail", &mut back)] {
            assert_eq!(other.complaints(), [], "{input} by {reader}");
            let what = format!("{input} by {reader}");
            let [host, device] = BY_NAME.map(|sql| assert_same_rows(&what, sql, &mut trace, other));
            // MTIA's profile has no work of devices.
            assert!(
                host > 10 && (device > 3 || input == mtia),
                "{what}: {host}, {device}"
            );
        }
        // Calls and the work that they caused.
        well(&mut dir.gputrail(["convert", "-q", "back.pftrace", "-o", "again.json"]));
        let ties = "select a.name, b.name, count(*), sum(b.ts - a.ts) from flow join slice a on a.id = slice_out \
            join slice b on b.id = slice_in where b.category in ('kernel', 'gpu_memcpy', 'gpu_memset') group by 1, 2 order by 1, 2";
        let mut again = Trace::open(dir.join("again.json"));
        assert_same_rows(input, ties, &mut json, &mut again);
    }
}
