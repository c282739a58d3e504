//! `gputrail convert` of other programs' files: what Perfetto finds in the trace is what a few lines of Python find in the file.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use gputrail_harness::machine::{self, Need};
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;
use gputrail_harness::{needs, repository};
use serde_json::Value;

use crate::command::{TestDir, well};

/// Categories of device work.
const WORK: [&str; 3] = ["kernel", "gpu_memcpy", "gpu_memset"];

/// A name and a number, and two names and a number.
type Row = (String, i64);
type LongRow = (String, String, i64);

/// The content of a file, as `tests/import/kineto.py` finds it.
fn expected(file: &str) -> Value {
    let script = repository("tests/import/kineto.py");
    let found = well(Command::new("python3").arg(script).arg(file));
    serde_json::from_str(&found.text()).expect("a line of JSON")
}

fn long_rows(expected: &Value, table: &str) -> Vec<LongRow> {
    serde_json::from_value(expected[table].clone()).expect("rows")
}

/// A file of the tests.
fn kineto(name: &str) -> String {
    let file = repository("tests/data/kineto").join(name);
    file.with_extension("json.gz")
        .into_os_string()
        .into_string()
        .expect("UTF-8")
}

/// Converts a file of PyTorch's profiler, and compares the trace with it.
fn compare(name: &str) {
    let dir = TestDir::new();
    let file = kineto(name);
    well(&mut dir.gputrail(["convert", &file, "-o", "out.pftrace"]));
    assert_holds(Trace::open(dir.join("out.pftrace")), &expected(&file));
}

/// Checks that a trace holds what is expected of it.
fn assert_holds(mut trace: Trace, expected: &Value) {
    trace.assert_sound();

    let counts: Vec<Row> = serde_json::from_value(expected["counts"].clone()).expect("rows");
    let (work, host): (Vec<_>, Vec<_>) = counts
        .into_iter()
        .partition(|(category, _)| WORK.contains(&category.as_str()));
    const ON_HOST: &str = "slice where dur >= 0 and category is not null and category != '' \
        and track_id not in (select id from gpu_track)";
    let sql = format!("select category, count(*) from {ON_HOST} group by 1 order by 1");
    assert_eq!(trace.rows::<Row>(&sql), host);
    let all_work: i64 = work.iter().map(|(_, count)| count).sum();
    assert_eq!(
        trace.value::<i64>("select count(*) from gpu_slice"),
        all_work
    );

    let mut on_host: Vec<LongRow> = Vec::new();
    let mut on_devices: BTreeMap<String, i64> = BTreeMap::new();
    for (category, name, total) in long_rows(expected, "durations") {
        if WORK.contains(&category.as_str()) {
            *on_devices.entry(name).or_default() += total
        } else {
            on_host.push((category, name, total))
        }
    }
    let sql = format!("select category, name, sum(dur) from {ON_HOST} group by 1, 2");
    let mut found: Vec<LongRow> = trace.rows(&sql);
    found.sort();
    on_host.sort();
    assert_eq!(found, on_host);
    let mut found: Vec<Row> = trace.rows("select name, sum(dur) from gpu_slice group by 1");
    found.sort();
    assert_eq!(found, on_devices.into_iter().collect::<Vec<_>>());

    let mut pairs = long_rows(expected, "pairs");
    let mut found: Vec<LongRow> = trace.rows(
        "with call as materialized (select name, int_value as id from slice join args using (arg_set_id) \
           where args.key = 'debug.correlation_id' and track_id not in (select id from gpu_track)), \
         work as materialized (select name, submission_id as id from gpu_slice) \
         select call.name, work.name, count(*) from call join work using (id) group by 1, 2",
    );
    found.sort();
    pairs.sort();
    assert_eq!(found, pairs);
    // Newer versions of Perfetto draw an arrow for each of these.
    let arrows: i64 = pairs.iter().map(|(.., count)| count).sum();
    let sql = "select count(*) from args \
        where flat_key = 'gpu_correlation.render_stage_submission_event_ids'";
    assert_eq!(trace.value::<i64>(sql), arrows);
    let flows = expected["flows"].as_i64().expect("a number");
    let sql =
        "select count(*) from flow join slice on slice_out = slice.id where category = 'cpu_op'";
    assert_eq!(trace.value::<i64>(sql), flows);
}

macro_rules! files {
    ($($test:ident: $file:literal;)*) => {$(
        #[test]
        fn $test() {
            needs!($test: Need::TraceProcessor, Need::Program("python3"));
            compare($file);
        }
    )*};
}

files! {
    a_rank_without_devices_is_whole: "cpu-only";
    events_between_streams_are_whole: "cuda-event-sync-multi-stream";
    ranges_with_counters_are_whole: "cupti-range-profiler";
    a_training_step_on_hip_is_whole: "mi250-minitoy";
    a_trace_of_another_accelerator_is_whole: "mtia-inference";
    a_kernel_of_triton_is_whole: "triton";
    a_training_step_with_collectives_is_whole: "v100-resnet-nccl";
    a_training_step_with_overlapping_kernels_is_whole: "v100-resnet-ns";
}

#[test]
fn values_of_profiler_ranges_are_counters() {
    needs!(values_of_profiler_ranges_are_counters: Need::TraceProcessor);
    let dir = TestDir::new();
    let file = kineto("cupti-range-profiler");
    well(&mut dir.gputrail(["convert", &file, "-o", "out.pftrace"]));
    let mut trace = Trace::open(dir.join("out.pftrace"));
    let arguments: Vec<(String, i64)> = trace.rows(
        "select substr(key, 7) as name, sum(int_value) from slice join args using (arg_set_id) \
         where category = 'cuda_profiler_range' and key glob 'debug.smsp*' group by 1 order by 1",
    );
    let counters: Vec<(String, i64)> = trace.rows(
        "select replace(name, '.', '_'), cast(sum(value) as int) from counter join counter_track on counter_track.id = track_id \
         where name glob 'smsp*' group by 1 order by 1",
    );
    assert_eq!(arguments.len(), 9);
    assert_eq!(arguments, counters);
}

#[test]
fn launches_stand_where_the_viewer_reads_them() {
    needs!(launches_stand_where_the_viewer_reads_them: Need::TraceProcessor);
    let dir = TestDir::new();
    let file = kineto("cuda-event-sync-multi-stream");
    well(&mut dir.gputrail(["convert", &file, "-o", "out.pftrace"]));
    let mut trace = Trace::open(dir.join("out.pftrace"));
    let details: Vec<(String, String)> = trace.rows(
        "select key, display_value from gpu_slice join args using (arg_set_id) \
         where name = 'ampere_sgemm_128x64_nn' and ts = (select min(ts) from gpu_slice where name = 'ampere_sgemm_128x64_nn') \
         and key in ('description', 'blocks per SM', 'est. achieved occupancy %', 'External id') order by 1",
    );
    let details: Vec<_> = details
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let expected = [
        ("External id", "2"),
        ("blocks per SM", "5.925926"),
        (
            "description",
            "1024 x 16 x 5 work-items in workgroups of 128 x 1 x 1",
        ),
        ("est. achieved occupancy %", "25"),
    ];
    assert_eq!(details, expected);
}

#[test]
fn standard_input_and_folders_are_read() {
    let dir = TestDir::new();
    let small = kineto("triton");
    let input = fs::File::open(&small).expect("a file of the tests");
    let ended = dir
        .gputrail(["convert", "-", "-o", "piped.pftrace"])
        .stdin(Stdio::from(input))
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.success() && said.contains("1 kernel"),
        "{said}"
    );
    fs::create_dir(dir.join("run")).expect("room");
    fs::copy(&small, dir.join("run/rank0.json.gz")).expect("room");
    fs::copy(&small, dir.join("run/rank1.json.gz")).expect("room");
    fs::write(dir.join("run/notes.txt"), "no trace").expect("room");
    let ended = well(&mut dir.gputrail(["convert", "run", "-o", "folder.pftrace"]));
    assert!(ended.stderr.contains("2 kernels"), "{}", ended.stderr);
}

#[test]
fn damage_is_named_with_its_offset_and_the_rest_is_converted() {
    let dir = TestDir::new();
    let text = r#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1},
{"ph":"X","name":"b" "ts":5,"dur":2,"pid":1,"tid":1},
{"ph":"X","name":"c","ts":9,"dur":2,"pid":1,"tid":1}]"#;
    fs::write(dir.join("bad.json"), text).expect("room");
    let ended = run(&mut dir.gputrail(["convert", "bad.json", "-o", "out.pftrace"]));
    assert_eq!(ended.code(), 1, "{}", ended.stderr);
    let offset = text.find("\"ts\":5").expect("it is there");
    let words = format!("bad.json: at byte {offset}: found expected `,` or `}}`");
    assert!(ended.stderr.contains(&words), "{}", ended.stderr);
    assert!(ended.stderr.contains("2 slices"), "{}", ended.stderr);
    assert!(dir.join("out.pftrace").exists());
}

#[test]
fn files_of_a_folder_that_are_not_understood_are_named() {
    let dir = TestDir::new();
    let profile = r#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]"#;
    fs::create_dir_all(dir.join("run/inner")).expect("room");
    fs::write(dir.join("run/profile.json"), profile).expect("room");
    fs::write(dir.join("run/notes.txt"), "hello").expect("room");
    let ended = well(&mut dir.gputrail(["convert", "run", "-o", "out.pftrace"]));
    for words in [
        "not read: run/notes.txt (a text that begins with \"hello\")",
        "not read: run/inner (a folder in a folder)",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}

#[test]
fn an_unknown_format_is_refused_with_what_it_looks_like() {
    let dir = TestDir::new();
    fs::write(dir.join("notes.txt"), "hello").expect("room");
    let ended = run(&mut dir.gputrail(["convert", "notes.txt", "-o", "out.pftrace"]));
    assert_eq!(ended.code(), 125, "{}", ended.stderr);
    for words in [
        "a text that begins with \"hello\"",
        "expected one of",
        "Chrome trace events",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    assert!(!dir.join("out.pftrace").exists());
}

#[test]
fn json_made_of_a_trace_converts_back_into_it() {
    needs!(json_made_of_a_trace_converts_back_into_it: Need::TraceProcessor, Need::Program("python3"));
    for (name, made) in [
        ("mi250-minitoy", "out.json.gz"),
        ("v100-resnet-nccl", "out.json"),
    ] {
        let dir = TestDir::new();
        let file = kineto(name);
        well(&mut dir.gputrail(["convert", &file, "-o", made]));
        well(&mut dir.gputrail(["convert", made, "-o", "back.pftrace"]));
        assert_holds(Trace::open(dir.join("back.pftrace")), &expected(&file));
    }
}

#[test]
fn a_capture_becomes_json_and_a_trace_again() {
    needs!(a_capture_becomes_json_and_a_trace_again: Need::TraceProcessor);
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "--capture"]));
    well(&mut dir.gputrail(["convert", "demo.gputrail", "-o", "demo.json"]));
    well(&mut dir.gputrail(["convert", "demo.json", "-o", "back.pftrace"]));
    let sql = "select name, count(*), sum(dur) from gpu_slice where dur >= 0 group by 1 order by 1";
    let found: Vec<LongRowOfWork> = Trace::open(dir.join("back.pftrace"))
        .assert_sound()
        .rows(sql);
    let expected: Vec<LongRowOfWork> = Trace::open(dir.join("demo.pftrace")).rows(sql);
    assert!(
        expected.len() > 5 && found == expected,
        "{found:?} {expected:?}"
    );
}

/// A name, a count and a sum.
type LongRowOfWork = (String, i64, i64);

#[test]
fn a_selection_keeps_what_it_names() {
    needs!(a_selection_keeps_what_it_names: Need::TraceProcessor);
    let dir = TestDir::new();
    let file = kineto("mi250-minitoy");
    well(&mut dir.gputrail(["convert", &file, "-o", "all.pftrace"]));
    let mut all = Trace::open(dir.join("all.pftrace"));
    let mut kept = |options: &[&str], condition: &str| {
        let arguments = ["convert", &file, "-o", "cut.pftrace"];
        let ended = well(&mut dir.gputrail(arguments.iter().chain(options)));
        assert!(ended.stderr.contains("selected: "), "{}", ended.stderr);
        let sql = |condition: &str| {
            format!("select name, ts, dur from slice where {condition} order by ts, dur, name")
        };
        let found: Vec<LongRowOfWork> = Trace::open(dir.join("cut.pftrace"))
            .assert_sound()
            .rows(&sql("true"));
        let expected: Vec<LongRowOfWork> = all.rows(&sql(condition));
        assert!(!expected.is_empty() && found == expected, "{options:?}");
    };
    kept(&["--name", "aten::*"], "name glob 'aten::*'");
    kept(
        &["--category", "user_annotation", "--device", "7"],
        "category = 'user_annotation'",
    );
    let step =
        "(select ts from slice where name = 'ProfilerStep#1' and category = 'user_annotation')";
    let end = "(select ts + dur from slice where name = 'ProfilerStep#1' and category = 'user_annotation')";
    kept(
        &["--from", "ProfilerStep#1", "--to", "ProfilerStep#1"],
        &format!("ts + dur >= {step} and ts <= {end}"),
    );
    let begin = "(select min(ts) from slice)";
    kept(&["--to", "4ms"], &format!("ts <= {begin} + 4000000"));
}

#[test]
fn a_dry_run_lists_contents_and_writes_nothing() {
    let dir = TestDir::new();
    let text = well(&mut dir.gputrail(["convert", &kineto("triton"), "--dry-run"])).text();
    assert!(text.contains("1 kernel"), "{text}");
    assert!(dir.files("").is_empty());
    let file = kineto("v100-resnet-nccl");
    let text = well(&mut dir.gputrail(["convert", &file, "--dry-run"])).text();
    for (name, words) in [
        ("time", "ms of recording"),
        ("processes", "(rank 0) "),
        ("devices", "GPU 0: NVIDIA A100"),
        ("queues", "GPU 0 · stream 7: "),
        ("categories", "cpu_op: "),
        ("holds", " kernels, "),
    ] {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        assert!(
            line.is_some_and(|line| line.contains(words)),
            "{name} {words}: {text}"
        );
    }
    assert!(dir.files("").is_empty());
}

#[test]
fn commands_that_take_traces_take_files_of_other_programs() {
    let dir = TestDir::new();
    let file = kineto("mi250-minitoy");
    let info = well(&mut dir.gputrail(["info", &file])).text();
    assert!(info.contains("14 kernels"), "{info}");
    let summary = well(&mut dir.gputrail(["summary", &file])).text();
    assert!(summary.contains("hipLaunchKernel"), "{summary}");
    well(&mut dir.gputrail(["convert", &file, "-o", "one.pftrace"]));
    well(&mut dir.gputrail(["merge", "one.pftrace", &file, "-o", "both.pftrace"]));
    assert!(dir.join("both.pftrace").exists());
}

#[test]
fn a_file_of_no_known_format_does_not_keep_the_others_from_being_converted() {
    let dir = TestDir::new();
    fs::write(dir.join("notes.txt"), "hello").expect("room");
    fs::create_dir(dir.join("empty")).expect("room");
    let profile = r#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]"#;
    fs::write(dir.join("run.json"), profile).expect("room");
    well(&mut dir.gputrail(["demo", "-q", "--capture", "-o", "demo.pftrace"]));
    for known in ["run.json", "demo.gputrail"] {
        let arguments = ["convert", "notes.txt", known, "empty", "-o", "out.json"];
        let ended = run(&mut dir.gputrail(arguments));
        assert_eq!(ended.code(), 1, "{}", ended.stderr);
        for words in [
            "notes.txt: found a text that begins with \"hello\", expected one of: capture, ",
            "empty: found a folder of 0 files, none of which has a known format",
        ] {
            assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
        }
        assert!(dir.join("out.json").exists());
    }
    let ended = run(&mut dir.gputrail(["convert", "run.json", "missing.json", "-o", "two.json"]));
    assert_eq!(ended.code(), 125, "{}", ended.stderr);
    assert!(!dir.join("two.json").exists());
}

#[test]
fn profiles_of_several_ranks_in_one_file_make_a_sound_trace() {
    let dir = TestDir::new();
    let forms = [
        ["4242", "0", "4243", "1"],
        [
            "\"[TP00] 4242\"",
            "\"[TP00] 0\"",
            "\"[TP01] 4242\"",
            "\"[TP01] 1\"",
        ],
    ];
    for [host, device, other_host, other_device] in forms {
        let rank = |host: &str, device: &str, time: u32| {
            format!(
                r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{host},"tid":1,"ts":{time},"dur":10,"args":{{"correlation":11}}}},
                {{"ph":"s","id":11,"cat":"ac2g","name":"ac2g","pid":{host},"tid":1,"ts":{time}}},
                {{"ph":"X","cat":"kernel","name":"gemm","pid":{device},"tid":7,"ts":{},"dur":100,"args":{{"stream":7,"correlation":11}}}},
                {{"ph":"f","id":11,"cat":"ac2g","name":"ac2g","bp":"e","pid":{device},"tid":7,"ts":{}}}"#,
                time + 20,
                time + 20
            )
        };
        let events = [
            rank(host, device, 1000),
            rank(other_host, other_device, 1500),
        ];
        fs::write(
            dir.join("merged.json"),
            format!("{{\"traceEvents\":[{}]}}", events.join(",")),
        )
        .expect("room");
        let ended = well(&mut dir.gputrail(["convert", "merged.json", "-o", "out.pftrace"]));
        let words = "2 calls, 2 kernels, 4 arrow ends\n";
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        well(&mut dir.gputrail(["check", "out.pftrace"]));
        let summary = well(&mut dir.gputrail(["summary", "--format", "csv", "out.pftrace"]));
        // The latency of the second launch, if its kernel were tied to the first.
        let summary = summary.text();
        assert!(!summary.contains("520000"), "{summary}");
    }
}

#[test]
fn json_without_events_makes_no_output() {
    let dir = TestDir::new();
    for text in [
        "{}",
        "{\"name\":\"a package\"}",
        "[]",
        "[{\"a\":1},{\"b\":2}]",
    ] {
        fs::write(dir.join("in.json"), text).expect("room");
        for command in [
            &["convert", "in.json", "-o", "out.pftrace"][..],
            &["info", "in.json"],
        ] {
            let ended = run(&mut dir.gputrail(command));
            assert_eq!(ended.code(), 125, "{text}: {}", ended.stderr);
            let words = "JSON without trace events";
            assert!(ended.stderr.contains(words), "{text}: {}", ended.stderr);
        }
        assert!(!dir.join("out.pftrace").exists(), "{text}");
    }
    fs::write(dir.join("in.json"), "{\"traceEvents\":[]}").expect("room");
    well(&mut dir.gputrail(["convert", "in.json", "-o", "out.pftrace"]));
}

#[test]
fn traces_that_were_put_one_behind_the_other_are_sound() {
    let dir = TestDir::new();
    for name in ["a.pftrace", "b.pftrace"] {
        well(&mut dir.gputrail(["demo", "-q", "-o", name]));
    }
    let files = ["a.pftrace", "b.pftrace"].map(|name| fs::read(dir.join(name)).expect("a trace"));
    fs::write(dir.join("both.pftrace"), files.concat()).expect("room");
    well(&mut dir.gputrail(["check", "both.pftrace"]));
    let ended = well(&mut dir.gputrail(["convert", "both.pftrace", "-o", "both.json"]));
    assert!(
        !ended.stderr.contains("not in the output"),
        "{}",
        ended.stderr
    );
}

/// The words of the summary of a conversion, and the sum of the times of kernels in the summary of the trace, ns.
fn converted(dir: &TestDir, input: &str) -> (String, String) {
    let ended = well(&mut dir.gputrail(["convert", input, "-o", "out.pftrace"]));
    well(&mut dir.gputrail(["check", "out.pftrace"]));
    let summary = well(&mut dir.gputrail(["summary", "--format", "csv", "out.pftrace"]));
    (ended.stderr.clone(), summary.text())
}

#[test]
fn files_of_other_profilers_become_sound_traces_with_their_kernels_tied() {
    let dir = TestDir::new();
    let data = |name: &str| repository("tests/data").join(name).display().to_string();
    for (input, words) in [
        ("nvprof/trace.csv", "1 kernel, 1 copy"),
        ("rocprof/results.csv", "2 kernels"),
        ("rocprof/results.json", "2 calls, 1 kernel, 1 copy"),
        ("rocprof/lists", "2 calls, 1 kernel, 1 copy"),
        ("nsys/report.json", "2 calls, 1 kernel, 1 copy"),
        ("nsys/report.arrow", "2 calls, 1 kernel, 1 copy"),
        ("nsys/report_pqtdir", "2 calls, 1 kernel, 1 copy"),
    ] {
        let (told, summary) = converted(&dir, &data(input));
        assert!(told.contains(words), "{input}: {told}");
        assert!(!told.contains("not in the output"), "{input}: {told}");
        assert!(summary.contains("scale"), "{input}: {summary}");
    }
}

#[test]
fn databases_of_nvprof_and_rocprof_become_sound_traces() {
    needs!(databases_of_nvprof_and_rocprof_become_sound_traces: Need::Program("python3"));
    let dir = TestDir::new();
    for (statements, words) in [
        ("nvprof/profile.sql", "2 calls, 1 kernel, 1 copy"),
        ("rocprof/results.sql", "2 calls, 1 kernel, 1 copy"),
    ] {
        let database = dir.join(&(statements.replace('/', "-") + ".db"));
        let mut python = Command::new("python3");
        python.arg(repository("tests/import/databases.py"));
        python.arg(&database);
        well(python.arg(repository("tests/data").join(statements)));
        let (told, summary) = converted(&dir, &database.display().to_string());
        assert!(told.contains(words), "{statements}: {told}");
        assert!(!told.contains("not in the output"), "{statements}: {told}");
        assert!(summary.contains("scale"), "{statements}: {summary}");
    }
}

#[test]
fn work_that_stands_in_slices_is_work() {
    needs!(work_that_stands_in_slices_is_work: Need::PythonBindings);
    let dir = TestDir::new();
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", machine::tools().join("python"));
    python.arg(repository("tests/import/rocprof_sys.py"));
    well(python.arg(dir.join("run.proto")));
    // From trace to trace it is copied, as Perfetto traces are.
    let ended = well(&mut dir.gputrail(["convert", "run.proto", "-o", "out.json"]));
    let words = "100 calls, 100 kernels";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    let made = fs::read(dir.join("out.json")).expect("JSON");
    let made: Value = serde_json::from_slice(&made).expect("JSON");
    let events = made["traceEvents"].as_array().expect("events");
    let kernels = events.iter().filter(|event| event["cat"] == "kernel");
    assert_eq!(kernels.count(), 100);
    let summary = well(&mut dir.gputrail(["summary", "--format", "csv", "run.proto"]));
    let summary = summary.text();
    assert!(summary.contains("scale"), "{summary}");
}

/// The bytes of all files in a folder, or of one file.
fn bytes(path: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    if path.is_file() {
        return vec![(String::new(), fs::read(path).expect("an output"))];
    }
    let entries = fs::read_dir(path).expect("an output");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("a file"))
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).expect("a file"))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn any_number_of_names_of_arguments_is_there() {
    needs!(any_number_of_names_of_arguments_is_there: Need::TraceProcessor);
    const EVENTS: usize = 70_000;
    let dir = TestDir::new();
    let event = |number: usize| {
        format!(
            r#"{{"ph":"X","name":"one","pid":1,"tid":1,"ts":{number}0,"dur":5,"args":{{"of{number}":"text"}}}}"#
        )
    };
    let events: Vec<String> = (1..=EVENTS).map(event).collect();
    let profile = dir.join("names.json");
    fs::write(&profile, format!("[{}]", events.join(","))).expect("a file");
    well(&mut dir.gputrail(["convert", "-q", "names.json", "-o", "names.pftrace"]));
    let names =
        "select count(distinct key) from args where key glob 'debug.of*' and string_value = 'text'";
    let named: usize = Trace::open(dir.join("names.pftrace")).value(names);
    assert_eq!(named, EVENTS);
}

#[test]
fn any_number_of_threads_makes_the_same_bytes() {
    needs!(any_number_of_threads_makes_the_same_bytes: Need::Program("python3"));
    let dir = TestDir::new();
    let data = |name: &str| repository("tests/data").join(name);
    let mut inputs: Vec<_> = [
        "ascend",
        "rocprofv3",
        "nsys/report.json",
        "nsys/report.arrow",
        "nsys/report_pqtdir",
        "nvprof/trace.csv",
        "rocprof/results.csv",
        "rocprof/lists",
        "damaged/late-times.json",
        "damaged/no-comma.json",
    ]
    .map(data)
    .into();
    for file in fs::read_dir(data("kineto")).expect("files") {
        let file = file.expect("a file").path();
        inputs.extend(
            file.extension()
                .is_some_and(|end| end == "gz")
                .then_some(file),
        );
    }
    for statements in ["nvprof/profile.sql", "rocprof/results.sql"] {
        let database = dir.join(&(statements.replace('/', "-") + ".db"));
        let mut python = Command::new("python3");
        python.arg(repository("tests/import/databases.py"));
        well(python.arg(&database).arg(data(statements)));
        inputs.push(database);
    }
    // Some MB, in several batches and for databases in runs of a temporary file.
    let mut python = Command::new("python3");
    python.arg(repository("benches/make_tables.py"));
    well(python.arg("4").arg(dir.join("made")));
    inputs.extend(["made/csv", "made/report.sqlite"].map(|name| dir.join(name)));
    let all = [
        &["-o", "out.pftrace"][..],
        &["--compress", "-o", "out.pftrace"],
        &["-o", "out.json"],
        &["--format", "csv", "-o", "out"],
    ];
    for input in inputs {
        let is_large = input.extension().is_some_and(|end| end == "gz");
        for options in if is_large { &all[..1] } else { &all } {
            let output = dir.join(options[options.len() - 1]);
            let convert = |jobs: &str| {
                let mut command = dir.gputrail(["convert", "--jobs", jobs]);
                let ended = run(command.args(*options).arg(&input));
                let made = bytes(&output);
                if output.is_dir() {
                    fs::remove_dir_all(&output).expect("a folder");
                } else {
                    fs::remove_file(&output).expect("a file");
                }
                (ended.code(), ended.stderr, made)
            };
            let (one, several) = (convert("1"), convert("3"));
            let input = input.display();
            assert_eq!(
                (one.0, &one.1),
                (several.0, &several.1),
                "{input} {options:?}"
            );
            assert!(one.2 == several.2, "{input} {options:?}");
        }
    }
}
