//! `gputrail convert` into tables: what other programs find in them is what Perfetto finds in the trace.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use gputrail_harness::machine::Need;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;
use gputrail_harness::{needs, repository};
use serde_json::Value;

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
        // An event, and terabytes that take no room: no conversion reads to their end before the signal comes.
        let event = r#"[{"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":1},"#;
        fs::write(dir.join("endless.json"), event).expect("room");
        let endless = fs::File::options()
            .write(true)
            .open(dir.join("endless.json"));
        let endless = endless.expect("the file is there");
        endless.set_len(1 << 42).expect("a file with a hole");
        let place = format!("made/{output}");
        let mut running = dir
            .gputrail(["convert", "endless.json", "-o", &place])
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let made = || fs::read_dir(dir.join("made")).expect("a folder").count();
        while made() == 0 {
            let ended = running.try_wait().expect("a child");
            assert_eq!(ended, None, "it ended before it made anything");
            std::thread::yield_now();
        }
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(running.id() as i32, signal) };
        let status = running.wait().expect("it ends");
        assert_eq!((status.code(), status.signal()), (Some(128 + signal), None));
        assert_eq!(made(), 0);
    }
}

/// Makes the profiles of 64 ranks, converts them in two runs, as two nodes would, and checks that an engine finds the slow ranks.
fn find_slow_ranks(engine: &str) {
    let dir = TestDir::new();
    let told = well(&mut dir.gputrail(["demo", "--ranks", "64", "--steps", "4", "-o", "profiles"]));
    for words in [
        "rank 19 is slow: its matrix",
        "rank 41 is slow: it loads",
        "rank 63 is slow: its step 2",
    ] {
        assert!(told.stderr.contains(words), "{words}: {}", told.stderr);
    }
    let mut files: Vec<_> = fs::read_dir(dir.join("profiles"))
        .expect("a folder")
        .map(|file| file.expect("an entry").path())
        .collect();
    files.sort();
    assert_eq!(files.len(), 64);
    for half in files.chunks(32) {
        let files = half.iter().map(|file| file.to_str().expect("UTF-8"));
        let arguments = ["convert", "-o", "job/"].into_iter().chain(files);
        well(&mut dir.gputrail(arguments));
    }
    let script = repository("tests/export/scale.py");
    let found = well(
        Command::new("python3")
            .arg(script)
            .arg(dir.join("job"))
            .arg(engine),
    );
    let answers: Value = serde_json::from_str(&found.text()).expect("a line of JSON");
    let rows = |heading: &str| answers[heading].as_array().expect("rows").clone();

    let slowest: Vec<Value> = rows("The slowest rank of each step")
        .iter()
        .map(|row| row[1].clone())
        .collect();
    assert_eq!(
        slowest,
        [41, 41, 63, 41],
        "data is late in each step, one step later still"
    );
    let waits = rows("Who waits for whom in collectives");
    assert!(
        !waits.is_empty() && waits.iter().all(|row| row[0] == 41 || row[0] == 63),
        "{waits:?}"
    );
    let kernels = rows("Kernels whose time differs between ranks");
    let kernels: Vec<_> = kernels
        .iter()
        .map(|row| (row[0].as_str().unwrap_or(""), row[1].clone()))
        .collect();
    assert_eq!(
        kernels,
        [("gemm_backward", 19.into()), ("gemm_forward", 19.into())]
    );
    let idle = rows("Idle time and exposed communication of each rank");
    assert_eq!(idle.len(), 64);
    assert_eq!(idle[0][0], 41, "{:?}", idle[0]);
    // The slow device computes while the others wait for it.
    let exposed = |rank: i64| {
        idle.iter().find(|row| row[0] == rank).expect("a row")[3]
            .as_f64()
            .expect("a share")
    };
    assert!(
        exposed(19) < exposed(20) && exposed(41) < exposed(20),
        "{idle:?}"
    );
}

#[test]
fn duckdb_finds_the_slow_ranks_of_64() {
    needs!(duckdb_finds_the_slow_ranks_of_64: Need::DuckDb);
    find_slow_ranks("duckdb");
}

/// Run by `tools/test ranks`.
#[test]
#[ignore = "needs Spark, which `tools/test ranks` installs"]
fn spark_finds_the_slow_ranks_of_64() {
    find_slow_ranks("spark");
}

#[test]
fn ranks_that_are_read_at_the_same_time_make_the_trace_that_they_make_one_by_one() {
    needs!(ranks_that_are_read_at_the_same_time_make_the_trace_that_they_make_one_by_one: Need::TraceProcessor);
    let dir = TestDir::new();
    well(&mut dir.gputrail([
        "demo", "-q", "--ranks", "9", "--steps", "2", "-o", "profiles",
    ]));
    for (jobs, output) in [("1", "one.pftrace"), ("4", "four.pftrace")] {
        well(&mut dir.gputrail(["convert", "profiles", "--jobs", jobs, "-o", output]));
    }
    let [one, four] =
        ["one.pftrace", "four.pftrace"].map(|name| fs::read(dir.join(name)).expect("a trace"));
    assert!(one == four, "the traces differ");
    let mut trace = Trace::open(dir.join("four.pftrace"));
    let names: Vec<String> = trace
        .assert_sound()
        .rows::<(String, i64)>(
            "select name, pid from process where name like 'train%' order by pid",
        )
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let expected: Vec<String> = (0..9)
        .map(|rank| format!("train (rank {rank} of 9)"))
        .collect();
    assert_eq!(names, expected);
}

#[test]
fn an_output_of_limited_size_keeps_the_beginning_and_parts_hold_everything() {
    needs!(an_output_of_limited_size_keeps_the_beginning_and_parts_hold_everything: Need::TraceProcessor);
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "--capture", "--steps", "60"]));
    const LIMIT: u64 = 600_000;
    let size = |name: &str| fs::metadata(dir.join(name)).expect("a trace").len();
    assert!(
        size("demo.pftrace") > 3 * LIMIT / 2,
        "{}",
        size("demo.pftrace")
    );
    let work = |name: &str| -> Vec<(i64, i64, String)> {
        let sql = "select ts, dur, name from gpu_slice order by 1, 2, 3";
        Trace::open(dir.join(name)).assert_sound().rows(sql)
    };
    let mut all = work("demo.pftrace");
    all.dedup();

    let ended = well(&mut dir.gputrail([
        "convert",
        "demo.gputrail",
        "--max-size",
        "600KB",
        "-o",
        "cut.pftrace",
    ]));
    assert!(
        ended.stderr.contains("cut to 600 kB:") && ended.stderr.contains("selected: "),
        "{}",
        ended.stderr
    );
    assert!(size("cut.pftrace") <= LIMIT);
    let mut kept = work("cut.pftrace");
    kept.dedup();
    assert!(kept.len() * 15 > all.len() && kept.len() < all.len());
    assert_eq!(kept, all[..kept.len()]);

    let ended = well(&mut dir.gputrail([
        "convert",
        "demo.gputrail",
        "--split",
        "600K",
        "-o",
        "part.pftrace",
    ]));
    let parts: Vec<String> = dir
        .files(".pftrace")
        .into_iter()
        .filter(|name| name.starts_with("part-"))
        .collect();
    assert!(
        parts.len() > 1 && ended.stderr.contains(&parts[0]),
        "{}",
        ended.stderr
    );
    let mut found = Vec::new();
    for part in &parts {
        assert!(size(part) <= LIMIT, "{part}");
        found.extend(work(part));
    }
    found.sort();
    found.dedup();
    assert!(found == all, "{} of {}", found.len(), all.len());
}

#[test]
fn an_input_is_not_replaced_by_the_output() {
    let dir = TestDir::new();
    let profile = r#"[{"ph":"X","name":"step","ts":1,"dur":2,"pid":1,"tid":1}]"#;
    fs::write(dir.join("run.json"), profile).expect("room");
    for command in [
        ["convert", "run.json", "-o", "./run.json"],
        ["merge", "run.json", "-o", "./run.json"],
    ] {
        let ended = run(&mut dir.gputrail(command));
        assert_eq!(ended.code(), 125, "{}", ended.stderr);
        assert!(
            ended
                .stderr
                .contains("run.json is an input: choose another name"),
            "{}",
            ended.stderr
        );
    }
    let kept = fs::read_to_string(dir.join("run.json")).expect("the input");
    assert_eq!(kept, profile);
}

#[test]
fn a_packed_profile_gives_its_name_to_the_trace_and_ranks_are_selected_by_number() {
    let dir = TestDir::new();
    well(&mut dir.gputrail([
        "demo", "-q", "--ranks", "2", "--steps", "1", "-o", "profiles",
    ]));
    let profile = "profiles/rank0.json.gz";
    let ended = well(&mut dir.gputrail(["convert", profile, "--process", "0"]));
    assert!(
        ended.stderr.contains("rank0.pftrace") && !ended.stderr.contains("warning"),
        "{}",
        ended.stderr
    );
}

/// A profile with one slice for each name.
fn profile(names: &[&str]) -> String {
    let events = names.iter().zip(1..).map(|(name, time)| {
        format!(
            r#"{{"ph":"X","name":"{name}","cat":"cpu_op","ts":{time},"dur":1,"pid":1,"tid":1}}"#
        )
    });
    format!("[{}]", events.collect::<Vec<_>>().join(",\n"))
}

#[test]
fn a_size_below_that_of_the_names_is_refused_and_writes_nothing() {
    let dir = TestDir::new();
    fs::write(dir.join("run.json"), profile(&["a", "b"])).expect("room");
    for option in ["--split", "--max-size"] {
        let arguments = ["convert", "run.json", option, "10", "-o", "out.pftrace"];
        let ended = run(&mut dir.gputrail(arguments));
        assert_eq!(ended.code(), 125, "{}", ended.stderr);
        let words = "the names and tracks alone take ";
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert_eq!(dir.files(""), ["run.json"]);
    }
}

#[test]
fn what_an_earlier_run_left_does_not_pass_for_a_part_of_this_one() {
    let dir = TestDir::new();
    let names: Vec<String> = (0..2000).map(|number| format!("event{number}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    fs::write(dir.join("run.json"), profile(&names)).expect("room");
    let split = |size: &str| {
        let arguments = ["convert", "run.json", "--split", size, "-o", "part.pftrace"];
        run(&mut dir.gputrail(arguments))
    };
    assert_eq!(split("20K").code(), 0);
    let parts = dir.files(".pftrace");
    assert!(parts.len() > 2, "{parts:?}");
    assert_eq!(split("20K").code(), 0, "equal parts replace each other");
    let ended = split("1M");
    assert_eq!(ended.code(), 125, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("which this output does not replace"),
        "{}",
        ended.stderr
    );
    assert_eq!(dir.files(".pftrace"), parts);

    let csv = || run(&mut dir.gputrail(["convert", "run.json", "-o", "out.csv"]));
    assert_eq!((csv().code(), csv().code()), (0, 0));
    fs::write(dir.join("out.csv/9_kernel_trace.csv"), "old").expect("room");
    let ended = csv();
    assert_eq!(ended.code(), 125, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("out.csv holds 9_kernel_trace.csv"),
        "{}",
        ended.stderr
    );

    let demo = |ranks: &str| {
        let arguments = ["demo", "--ranks", ranks, "--steps", "1", "-o", "profiles"];
        run(&mut dir.gputrail(arguments))
    };
    assert_eq!((demo("3").code(), demo("3").code()), (0, 0));
    let ended = demo("2");
    assert_eq!(ended.code(), 125, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("profiles holds rank2.json.gz"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_selection_that_names_what_is_not_there_is_told() {
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "--capture"]));
    let arguments = [
        "convert",
        "demo.gputrail",
        "--stream",
        "99",
        "--name",
        "cl*",
        "-o",
        "out.pftrace",
    ];
    let ended = well(&mut dir.gputrail(arguments));
    for words in ["nothing matches --stream 99", "nothing matches --name cl*"] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}

#[test]
fn standard_input_and_output_are_pipes() {
    needs!(standard_input_and_output_are_pipes: Need::TraceProcessor);
    let dir = TestDir::new();
    fs::write(dir.join("run.json"), profile(&["a", "b"])).expect("room");
    let piped = |arguments: &[&str]| {
        let input = fs::File::open(dir.join("run.json")).expect("a file");
        let mut command = dir.gputrail(arguments);
        command.stdin(input).output().expect("it runs")
    };
    let made = piped(&["convert", "-", "-o", "-"]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    fs::write(dir.join("piped.pftrace"), &made.stdout).expect("room");
    let slices: i64 = Trace::open(dir.join("piped.pftrace"))
        .assert_sound()
        .value("select count(*) from slice");
    assert_eq!(slices, 2);
    assert!(piped(&["convert", "-"]).status.success());
    assert_eq!(
        dir.files(""),
        ["piped.pftrace", "run.json", "stdin.pftrace"]
    );
    for arguments in [
        &["convert", "-", "-o", "-", "--format", "csv"][..],
        &["convert", "-", "-o", "-", "--split", "1M"],
        &["demo", "-o", "-"],
    ] {
        let refused = piped(arguments);
        assert_eq!(refused.status.code(), Some(125), "{arguments:?}");
        assert!(refused.stdout.is_empty());
    }
}

#[test]
fn files_whose_clocks_have_nothing_in_common_are_named() {
    let dir = TestDir::new();
    let now = r#"{"baseTimeNanoseconds":1760000000000000000,"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":1}]}"#;
    fs::write(dir.join("now.json"), now).expect("room");
    fs::write(dir.join("then.json"), profile(&["a"])).expect("room");
    let ended = well(&mut dir.gputrail(["convert", "now.json", "then.json", "-o", "out.pftrace"]));
    let words = "then.json: 1 x file that has no clock in common with the first one";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    let ended = well(&mut dir.gputrail(["convert", "now.json", "now.json", "-o", "out.pftrace"]));
    assert!(
        !ended.stderr.contains("no clock in common"),
        "{}",
        ended.stderr
    );
}

/// The rows of a table in a folder of CSV: their values by column.
fn csv_rows(path: &std::path::Path) -> Vec<std::collections::BTreeMap<String, String>> {
    let text = fs::read_to_string(path).expect("a table");
    let mut lines = text.lines().map(|line| {
        let mut fields = vec![String::new()];
        let mut quoted = false;
        for letter in line.chars() {
            match letter {
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                letter => fields.last_mut().expect("one").push(letter),
            }
        }
        fields
    });
    let columns = lines.next().expect("a head");
    let row = |fields: Vec<String>| columns.iter().cloned().zip(fields).collect();
    let mut rows: Vec<std::collections::BTreeMap<String, String>> = lines.map(row).collect();
    rows.sort_by_key(|row| row.get("Start_Timestamp").cloned());
    rows
}

#[test]
fn tables_of_rocprofv3_keep_their_numbers() {
    for (name, made) in [
        ("kernel_trace.csv", "1_kernel_trace.csv"),
        ("counter_collection.csv", "15606_counter_collection.csv"),
    ] {
        let dir = TestDir::new();
        let given = repository("tests/data/rocprofv3").join(name);
        let file = given.to_str().expect("UTF-8");
        // Also by way of a trace.
        well(&mut dir.gputrail(["convert", file, "-q", "-o", "one.csv"]));
        well(&mut dir.gputrail(["convert", file, "-q", "-o", "run.pftrace"]));
        well(&mut dir.gputrail(["convert", "run.pftrace", "-q", "-o", "two.csv"]));
        let expected = csv_rows(&given);
        assert!(expected.len() > 1);
        for folder in ["one.csv", "two.csv"] {
            let found = csv_rows(&dir.join(folder).join(made));
            assert_eq!(found.len(), expected.len(), "{name} {folder}");
            for (row, other) in expected.iter().zip(&found) {
                // A trace has the thread of work only if it has the call.
                let lost = (folder == "two.csv").then_some("Thread_Id");
                for (column, value) in row.iter().filter(|one| Some(&**one.0) != lost) {
                    assert_eq!(other.get(column), Some(value), "{name} {folder} {column}");
                }
            }
        }
    }
}

#[test]
fn a_name_selects_kernels_by_their_full_name() {
    let dir = TestDir::new();
    let file = repository("tests/data/rocprofv3/kernel_trace.csv");
    let file = file.to_str().expect("UTF-8");
    for name in ["void addition_kernel<float>(*", "addition_kernel*"] {
        let ended = well(&mut dir.gputrail(["convert", file, "--name", name, "-o", "out.pftrace"]));
        assert!(
            ended.stderr.contains("selected: ") && !ended.stderr.contains("warning"),
            "{name}: {}",
            ended.stderr
        );
    }
}

#[test]
fn only_perfetto_traces_are_compressed() {
    let dir = TestDir::new();
    fs::write(dir.join("run.json"), profile(&["a"])).expect("room");
    for (output, words) in [
        ("out.json", "an output called .json.gz is packed"),
        ("out.csv", "--compress packs Perfetto traces"),
        ("out/", "Parquet files are packed in any case"),
    ] {
        let ended = run(&mut dir.gputrail(["convert", "run.json", "--compress", "-o", output]));
        assert_eq!(ended.code(), 125, "{output}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{output}: {}", ended.stderr);
    }
    assert_eq!(dir.files(""), ["run.json"]);
    for output in ["out.json.gz", "out.pftrace"] {
        well(&mut dir.gputrail(["convert", "run.json", "--compress", "-o", output]));
    }
}

#[test]
fn a_device_is_that_of_its_number_in_each_input() {
    let dir = TestDir::new();
    for rank in 0..2 {
        let kernel = |device: u32| {
            let ts = 10 * rank + device;
            format!(
                r#"{{"ph":"X","cat":"kernel","name":"on {rank} {device}","ts":{ts},"dur":1,"pid":{device},"tid":7,"args":{{"device":{device},"stream":7}}}}"#
            )
        };
        let kernels = [kernel(0), kernel(1)].join(",");
        fs::write(
            dir.join(&format!("rank{rank}.json")),
            format!("[{kernels}]"),
        )
        .expect("room");
    }
    let arguments = [
        "convert",
        "rank0.json",
        "rank1.json",
        "--device",
        "1",
        "-o",
        "out.csv",
    ];
    let ended = well(&mut dir.gputrail(arguments));
    assert!(
        ended.stderr.contains("selected: 2 of 4"),
        "{}",
        ended.stderr
    );
    let tables = fs::read_dir(dir.join("out.csv")).expect("a folder");
    let tables = tables.map(|table| table.expect("an entry").path());
    let kernels = tables.filter(|path| path.to_string_lossy().ends_with("kernel_trace.csv"));
    let mut kept: Vec<String> = kernels
        .flat_map(|table| csv_rows(&table))
        .map(|row| row["Kernel_Name"].clone())
        .collect();
    kept.sort();
    assert_eq!(kept, ["on 0 1", "on 1 1"]);
}

#[test]
fn counters_that_are_made_of_other_events_are_no_events_of_the_input() {
    let dir = TestDir::new();
    let event = r#"[{"ph":"i","name":"[memory]","ts":1,"s":"t","pid":1,"tid":1,"args":{"Total Allocated":5,"Device Type":1,"Device Id":0}},
        {"ph":"C","name":"own","ts":2,"pid":1,"args":{"value":3}}]"#;
    fs::write(dir.join("run.json"), event).expect("room");
    let ended = well(&mut dir.gputrail(["convert", "run.json", "-o", "out.csv"]));
    for words in ["1 instant, 1 counter value\n", "place for them: 1 event\n"] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    // They are there all the same.
    well(&mut dir.gputrail(["convert", "run.json", "-o", "back.json"]));
    let text = fs::read_to_string(dir.join("back.json")).expect("JSON");
    assert!(text.contains("GPU 0 memory allocated"), "{text}");
}
