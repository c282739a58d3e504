//! `gputrail convert` into tables: what other programs find in them is what Perfetto finds in the trace.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gputrail_harness::machine::Need;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;
use gputrail_harness::{needs, repository};

use crate::command::{TestDir, well};

/// A name, a count and a sum.
type Row = (String, i64, i64);

/// Device work in a trace.
fn work_in(trace: &mut Trace) -> Vec<Row> {
    trace
        .rows("select name, count(*), sum(dur) from gpu_slice where dur >= 0 group by 1 order by 1")
}

/// The answer of DuckDB, for tables in the folder `job`.
fn duckdb(dir: &TestDir, sql: &str) -> Vec<Row> {
    let script = repository("tests/export/duckdb_rows.py");
    let found = well(
        Command::new("python3")
            .arg(script)
            .arg(dir.join("job"))
            .arg(sql),
    );
    serde_json::from_str(&found.text()).expect("a line of JSON")
}

#[test]
fn a_capture_becomes_tables_of_rocprofv3_and_a_trace_again() {
    needs!(a_capture_becomes_tables_of_rocprofv3_and_a_trace_again: Need::TraceProcessor);
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "--capture"]));
    well(&mut dir.gputrail(["convert", "demo.gputrail", "-o", "demo.csv"]));
    well(&mut dir.gputrail(["convert", "demo.csv", "-o", "back.pftrace"]));
    let summary = fs::read_to_string(dir.join("demo.csv/summary.csv")).expect("a summary");
    assert!(summary.contains("\nkernels,"), "{summary}");
    let (mut back, mut before) = (
        Trace::open(dir.join("back.pftrace")),
        Trace::open(dir.join("demo.pftrace")),
    );
    let (found, expected) = (work_in(back.assert_sound()), work_in(&mut before));
    assert!(
        expected.len() > 5 && found == expected,
        "{found:?} {expected:?}"
    );
    let calls = "select name, count(*), sum(dur) from slice where category = 'sim' and dur >= 0 group by 1 order by 1";
    let (found, expected): (Vec<Row>, Vec<Row>) = (back.rows(calls), before.rows(calls));
    assert!(
        expected.len() > 5 && found == expected,
        "{found:?} {expected:?}"
    );
}

#[test]
fn duckdb_finds_in_parquet_what_perfetto_finds_in_the_trace() {
    needs!(duckdb_finds_in_parquet_what_perfetto_finds_in_the_trace: Need::TraceProcessor, Need::DuckDb);
    for name in ["mi250-minitoy", "v100-resnet-nccl"] {
        let dir = TestDir::new();
        let file = repository("tests/data/kineto").join(format!("{name}.json.gz"));
        let file = file.to_str().expect("UTF-8");
        well(&mut dir.gputrail(["convert", file, "-o", "out.pftrace"]));
        well(&mut dir.gputrail(["convert", file, "-o", "job/"]));
        let mut trace = Trace::open(dir.join("out.pftrace"));
        let sql = "select name, count(*), cast(sum(duration_ns) as bigint) from work group by 1 order by 1";
        assert_eq!(duckdb(&dir, sql), work_in(&mut trace), "{name}");
        // Calls and slices of the host together are the slices of the trace that are not on devices.
        let sql = "select category, count(*), cast(sum(duration_ns) as bigint) \
            from (select category, duration_ns from calls union all select category, duration_ns from slices) \
            where category != '' group by 1 order by 1";
        let host = "select category, count(*), sum(dur) from slice \
            where dur >= 0 and category is not null and category != '' \
            and track_id not in (select id from gpu_track) group by 1 order by 1";
        assert_eq!(duckdb(&dir, sql), trace.rows::<Row>(host), "{name}");
    }
}

#[test]
fn a_rank_that_is_converted_again_replaces_its_partition_only() {
    needs!(a_rank_that_is_converted_again_replaces_its_partition_only: Need::DuckDb);
    let dir = TestDir::new();
    let profile = |rank: u32, names: &[&str]| {
        let events: Vec<String> = names
            .iter()
            .map(|name| {
                format!(
                    r#"{{"ph":"X","name":"{name}","cat":"cpu_op","ts":1,"dur":2,"pid":1,"tid":1}}"#
                )
            })
            .collect();
        let text = format!(
            r#"{{"distributedInfo":{{"rank":{rank}}},"traceEvents":[{}]}}"#,
            events.join(",")
        );
        let name = format!("rank{rank}.json");
        fs::write(dir.join(&name), text).expect("room");
        well(&mut dir.gputrail(["convert", &name, "-o", "job/"]));
    };
    profile(0, &["a", "b"]);
    profile(1, &["a"]);
    profile(0, &["c"]);
    let sql = "select name, rank, count(*) from slices group by 1, 2 order by 2, 1";
    let expected = [("c".to_owned(), 0, 1), ("a".to_owned(), 1, 1)];
    assert_eq!(duckdb(&dir, sql), expected);
    let tables = fs::read_dir(dir.join("job")).expect("a folder");
    let names = tables.map(|table| table.expect("an entry").file_name());
    let hidden = names.filter(|name| name.as_encoded_bytes().starts_with(b"."));
    assert_eq!(hidden.count(), 0, "nothing is left behind");
}

#[test]
fn a_selection_that_keeps_nothing_warns_and_one_that_ends_before_it_begins_is_refused() {
    let dir = TestDir::new();
    let text = r#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1},{"ph":"X","name":"b","ts":9,"dur":2,"pid":1,"tid":1}]"#;
    fs::write(dir.join("two.json"), text).expect("room");
    let convert = |options: &[&str]| {
        let arguments = ["convert", "two.json", "-o", "out.pftrace"];
        run(&mut dir.gputrail(arguments.iter().chain(options)))
    };
    let ended = convert(&["--name", "c"]);
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    for words in [
        "2 slices",
        "selected: 0 of 2 events",
        "warning: the output is empty",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    let ended = convert(&["--name", "b"]);
    assert!(
        ended.stderr.contains("selected: 1 of 2 events"),
        "{}",
        ended.stderr
    );
    for bounds in [
        ["--from", "b", "--to", "a"],
        ["--from", "9us", "--to", "1us"],
    ] {
        let ended = convert(&bounds);
        assert_eq!(ended.code(), 125, "{}", ended.stderr);
        let words = "the selection begins after its end";
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn a_conversion_that_is_ended_by_a_signal_leaves_nothing() {
    for (signal, output) in [(libc::SIGTERM, "out.pftrace"), (libc::SIGINT, "out.csv")] {
        let dir = TestDir::new();
        fs::create_dir(dir.join("made")).expect("room");
        let big: String = (0..200_000)
            .map(|n| {
                format!(
                    "{{\"ph\":\"X\",\"name\":\"a\",\"ts\":{n},\"dur\":1,\"pid\":1,\"tid\":1}},\n"
                )
            })
            .collect();
        fs::write(dir.join("big.json"), format!("[{big}")).expect("room");
        let place = format!("made/{output}");
        let mut running = dir
            .gputrail(["convert", "big.json", "big.json", "big.json", "-o", &place])
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let began = Instant::now();
        let made = || fs::read_dir(dir.join("made")).expect("a folder").count();
        while made() == 0 && began.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(running.id() as i32, signal) };
        let status = running.wait().expect("it ends");
        assert_eq!((status.code(), status.signal()), (Some(128 + signal), None));
        assert_eq!(made(), 0);
    }
}
