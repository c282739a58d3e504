//! `gputrail summary`, `advise` and `diff` by rank, step and range, on the simulated job of several ranks and on small profiles.

use std::fs;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;
use serde_json::{Value, json};

use crate::command::{TestDir, well};

fn json_of(dir: &TestDir, arguments: &[&str]) -> Value {
    let (verb, others) = arguments.split_first().expect("a verb");
    let arguments = [*verb, "--format", "json"].into_iter();
    let arguments = arguments.chain(others.iter().copied());
    let text = well(&mut dir.gputrail(arguments)).text();
    serde_json::from_str(&text).expect("JSON")
}

/// A profile of PyTorch's kind: two steps, each with an operator that launches two kernels. Kernels called `gemm` take `gemm` us.
fn profile(dir: &TestDir, name: &str, gemm: u64) {
    let mut events = Vec::new();
    let host = |category: &str, name: &str, start: u64, took: u64, id: Option<u64>| {
        let arguments = id.map_or(json!({}), |id| json!({ "correlation": id }));
        json!({"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 7, "ts": start, "dur": took, "args": arguments})
    };
    for step in 0..2 {
        let begin = 1000 + 10_000 * step;
        let number = format!("ProfilerStep#{}", step + 3);
        events.push(host("user_annotation", &number, begin, 9_000, None));
        events.push(host("cpu_op", "aten::linear", begin + 100, 600, None));
        for (place, (kernel, took)) in [("gemm", gemm), ("relu", 500)].into_iter().enumerate() {
            let id = 10 * step + place as u64 + 1;
            let call = begin + 200 + 100 * place as u64;
            events.push(host("cuda_runtime", "cudaLaunchKernel", call, 20, Some(id)));
            events.push(
                json!({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7,
                "ts": begin + 1000 + 3000 * place as u64, "dur": took,
                "args": {"device": 0, "stream": 7, "correlation": id}}),
            );
        }
    }
    let properties = json!([{"id": 0, "name": "A GPU"}]);
    let file = json!({"schemaVersion": 1, "deviceProperties": properties, "traceEvents": events});
    fs::write(dir.join(name), file.to_string()).expect("room");
}

#[test]
fn the_slow_rank_stands_in_the_first_table_and_in_the_advice() {
    let dir = TestDir::new();
    let said = well(&mut dir.gputrail(["demo", "--ranks", "4", "-o", "job"])).stderr;
    let slow = said.split("rank ").nth(1).expect("a slow rank");
    let slow = format!("rank {}", slow.split(' ').next().expect("a number"));
    let text = well(&mut dir.gputrail(["summary", "job"])).text();
    let rows: Vec<&str> = text.lines().take(3).collect();
    assert!(rows[0].starts_with("Ranks, the slowest first"), "{text}");
    assert!(rows[2].trim_start().starts_with(&slow), "{slow}: {text}");
    assert!(rows[2].contains("computing +"), "{text}");
    let tables = json_of(&dir, &["summary", "job"]);
    let ranks = tables["by_rank"].as_array().expect("a table");
    assert_eq!((ranks.len(), &ranks[0]["rank"]), (4, &json!(slow)));
    // Devices, gaps and steps say whose they are.
    for table in ["devices", "gaps", "steps", "step_series"] {
        let rows = tables[table].as_array().expect("a table");
        let mut whose: Vec<&str> = rows
            .iter()
            .filter_map(|row| row["process"].as_str())
            .collect();
        whose.sort_unstable();
        whose.dedup();
        assert_eq!(whose, ["rank 0", "rank 1", "rank 2", "rank 3"], "{table}");
    }
    let advice = json_of(&dir, &["advise", "job"]);
    let advice = advice["advice"].as_array().expect("a table");
    let rule = |name| advice.iter().find(|one| one["rule"] == name);
    let seen = rule("slow-rank").expect("the rule")["seen"]
        .as_str()
        .expect("a text");
    assert!(
        seen.starts_with(&slow) && seen.contains("it computes"),
        "{seen}"
    );
    for by in ["process", "device", "queue", "range"] {
        well(&mut dir.gputrail(["summary", "job", "--by", by]));
    }
}

#[test]
fn steps_ranges_and_latencies_of_a_profile_are_told() {
    let dir = TestDir::new();
    profile(&dir, "a.json", 2000);
    let tables = json_of(&dir, &["summary", "a.json"]);
    let steps = tables["steps"].as_array().expect("a table");
    let told: Vec<_> = steps
        .iter()
        .map(|step| {
            [
                &step["step"],
                &step["duration_ns"],
                &step["busy_ns"],
                &step["idle_ns"],
                &step["kernels"],
            ]
        })
        .collect();
    let expected = |name| {
        [
            json!(name),
            json!(9_000_000),
            json!(2_500_000),
            json!(6_500_000),
            json!(2),
        ]
    };
    let expected = [expected("ProfilerStep#3"), expected("ProfilerStep#4")];
    assert_eq!(told, expected.each_ref().map(|step| step.each_ref()));
    let series = &tables["step_series"][0];
    assert_eq!(
        (&series["steps"], &series["count"]),
        (&json!("ProfilerStep#*"), &json!(2))
    );
    let kernels = tables["range_kernels"].as_array().expect("a table");
    let linear = |kernel| {
        let of = kernels.iter();
        let mut of = of.filter(|row| row["range"] == "aten::linear" && row["kernel"] == kernel);
        let row = of.next().expect("a row");
        (row["total_ns"].as_u64(), row["count"].as_u64())
    };
    assert_eq!(linear("gemm"), (Some(4_000_000), Some(2)));
    assert_eq!(linear("relu"), (Some(1_000_000), Some(2)));
    let latency = tables["latency"].as_array().expect("a table");
    let relu = latency
        .iter()
        .find(|row| row["name"] == "relu")
        .expect("a row");
    // The call takes 20 us; the gemm before it ends at 3000 us, and it begins at 4000 us.
    let parts =
        ["in_call_ns", "behind_ns", "depending_ns", "rest_ns"].map(|key| relu[key].as_u64());
    assert_eq!(parts, [20_000, 2_680_000, 0, 1_000_000].map(Some));
    let linear = [
        "summary",
        "a.json",
        "--step",
        "aten::*",
        "--table",
        "step_series",
    ];
    let linear = &json_of(&dir, &linear)["step_series"][0];
    assert_eq!(
        (&linear["steps"], &linear["count"]),
        (&json!("aten::linear"), &json!(2))
    );
    let steps = json_of(
        &dir,
        &["summary", "a.json", "--step", "*#4", "--table", "steps"],
    );
    assert_eq!(steps["steps"].as_array().map(Vec::len), Some(1));
}

#[test]
fn busy_time_of_steps_is_what_sql_says() {
    needs!(busy_time_of_steps_is_what_sql_says: Need::TraceProcessor);
    let dir = TestDir::new();
    profile(&dir, "a.json", 2000);
    well(&mut dir.gputrail(["convert", "-q", "a.json", "-o", "a.pftrace"]));
    let tables = json_of(&dir, &["summary", "a.pftrace", "--table", "steps"]);
    let steps = tables["steps"].as_array().expect("a table");
    let mut told: Vec<(String, u64)> = steps
        .iter()
        .map(|step| {
            let name = step["step"].as_str().expect("a name");
            (name.to_owned(), step["busy_ns"].as_u64().expect("a time"))
        })
        .collect();
    told.sort();
    let mut perfetto = Trace::open(dir.join("a.pftrace"));
    // Kernels do not overlap here.
    let expected: Vec<(String, u64)> = perfetto.rows(
        "select step.name, sum(min(work.ts + work.dur, step.ts + step.dur) - max(work.ts, step.ts)) \
         from slice step join gpu_slice work on work.ts < step.ts + step.dur and work.ts + work.dur > step.ts \
         where step.name glob 'ProfilerStep*' group by 1 order by 1",
    );
    assert_eq!(told, expected);
}

#[test]
fn a_file_does_not_differ_from_itself() {
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q"]));
    let same = ["diff", "demo.pftrace", "demo.pftrace"];
    assert_eq!(well(&mut dir.gputrail(same)).text(), "no difference\n");
    let tables = json_of(&dir, &same);
    let tables = tables.as_object().expect("tables");
    assert!(
        tables
            .values()
            .all(|rows| rows.as_array().is_some_and(Vec::is_empty)),
        "{tables:?}"
    );
    let kept = ["--fail-if", "total > +0 %"];
    well(&mut dir.gputrail(same.iter().chain(&kept)));
}

#[test]
fn a_kernel_that_became_longer_is_the_one_row_that_changed() {
    let dir = TestDir::new();
    profile(&dir, "a.json", 2000);
    profile(&dir, "b.json", 2200);
    let tables = json_of(&dir, &["diff", "a.json", "b.json"]);
    let kernels = tables["kernels"].as_array().expect("a table");
    assert_eq!(kernels.len(), 1, "{tables}");
    let row = &kernels[0];
    assert_eq!(row["name"], "gemm");
    assert_eq!(
        (&row["change_ns"], &row["change_share"]),
        (&json!(400_000), &json!(0.1))
    );
    assert_eq!(
        (&row["before_count"], &row["after_count"]),
        (&json!(2), &json!(2))
    );
    for empty in ["calls", "operations", "ranges"] {
        assert_eq!(tables[empty], json!([]), "{empty}");
    }
    let markdown = [
        "diff", "a.json", "b.json", "--format", "markdown", "--table", "kernels",
    ];
    let markdown = well(&mut dir.gputrail(markdown)).text();
    assert!(
        markdown.contains("| gemm | +400 us | +10.0 % |"),
        "{markdown}"
    );
    for (condition, code) in [
        ("kernel:gemm > +5 %", 3),
        ("kernel:gemm > +10 %", 0),
        ("kernel:g* > 4 ms", 3),
        ("kernel:relu > +0 %", 0),
        ("kernel:none > +0 %", 125),
        ("kernel:gemm > 5 %", 125),
    ] {
        let ended = run(&mut dir.gputrail(["diff", "a.json", "b.json", "--fail-if", condition]));
        assert_eq!(ended.code(), code, "{condition}: {}", ended.stderr);
        assert_eq!(
            code == 3,
            ended.stderr.contains("holds: 4.00 ms before"),
            "{}",
            ended.stderr
        );
    }
    // Two runs of each side have a spread.
    let runs = json_of(
        &dir,
        &["diff", "a.json", "b.json", "--", "b.json", "b.json"],
    );
    let row = &runs["kernels"][0];
    assert_eq!(
        (&row["before_ns"], &row["before_spread_ns"]),
        (&json!(4_200_000), &json!(400_000))
    );
    assert_eq!(row["after_spread_ns"], 0);
    assert_eq!(run(&mut dir.gputrail(["diff", "a.json"])).code(), 125);
}

#[test]
fn tables_are_chosen_cut_off_and_written_into_files_of_their_own() {
    let dir = TestDir::new();
    profile(&dir, "a.json", 2000);
    let one = [
        "summary", "a.json", "--table", "kernels", "--top", "1", "--format", "csv",
    ];
    let text = well(&mut dir.gputrail(one)).text();
    assert_eq!(text.lines().count(), 2, "{text}");
    well(&mut dir.gputrail(["summary", "a.json", "--format", "csv", "-o", "tables"]));
    let kernels = fs::read_to_string(dir.join("tables/kernels.csv")).expect("a file");
    assert!(
        kernels.starts_with("name,share,total_ns,count"),
        "{kernels}"
    );
    assert!(dir.join("tables/gaps.csv").exists() && dir.join("tables/advice.csv").exists());
    let unknown = run(&mut dir.gputrail(["summary", "a.json", "--table", "none"]));
    assert_eq!(unknown.code(), 125);
    assert!(
        unknown.stderr.contains("range_kernels"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn device_time_by_ranges_and_kernels_is_written_as_stacks() {
    let dir = TestDir::new();
    profile(&dir, "a.json", 2000);
    let text = well(&mut dir.gputrail(["summary", "a.json", "--flame", "folded"])).text();
    let mut lines: Vec<_> = text
        .lines()
        .map(|line| line.split_once(';').expect("a process").1)
        .collect();
    lines.sort_unstable();
    let expected = [
        "ProfilerStep#3;aten::linear;gemm 2000000",
        "ProfilerStep#3;aten::linear;relu 500000",
        "ProfilerStep#4;aten::linear;gemm 2000000",
        "ProfilerStep#4;aten::linear;relu 500000",
    ];
    assert_eq!(lines, expected);
    let text = well(&mut dir.gputrail(["summary", "a.json", "--flame", "speedscope"])).text();
    let file: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(file["profiles"][0]["endValue"], 5_000_000);
    well(&mut dir.gputrail(["summary", "a.json", "--flame", "pprof", "-o", "a.pb.gz"]));
    let packed = fs::read(dir.join("a.pb.gz")).expect("a file");
    assert_eq!(packed[..2], [0x1f, 0x8b]);
}

#[test]
fn ranges_are_projected_on_devices() {
    needs!(ranges_are_projected_on_devices: Need::TraceProcessor);
    let dir = TestDir::new();
    profile(&dir, "a.json", 2000);
    let convert = [
        "convert",
        "-q",
        "a.json",
        "--project-ranges",
        "-o",
        "a.pftrace",
    ];
    well(&mut dir.gputrail(convert));
    well(&mut dir.gputrail(["check", "a.pftrace"]));
    let mut perfetto = Trace::open(dir.join("a.pftrace"));
    let rows: Vec<(String, u64)> = perfetto.rows(
        "select slice.name, slice.dur from slice join track on slice.track_id = track.id \
         where track.name = 'GPU 0: projected ranges' order by slice.ts, slice.depth",
    );
    // From the begin of the first kernel to the end of the last.
    let expected = [
        "ProfilerStep#3",
        "aten::linear",
        "ProfilerStep#4",
        "aten::linear",
    ];
    assert_eq!(rows, expected.map(|name| (name.to_owned(), 3_500_000)));
    // The rows are no ranges of their own.
    let tables = json_of(&dir, &["summary", "a.pftrace", "--table", "step_series"]);
    assert_eq!(tables["step_series"][0]["count"], 2);
}
