//! The queries of `docs/queries.md`: trace processor on a trace and DuckDB on Parquet tables answer alike, and as `gputrail
//! summary` does.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::trace::Trace;
use gputrail_harness::{needs, repository};
use serde_json::{Value, json};

use crate::command::{TestDir, well};

/// A question of the page: its heading, and its queries for trace processor and DuckDB.
fn questions() -> Vec<(String, String, String)> {
    let page = fs::read_to_string(repository("docs/queries.md")).expect("the page");
    let sections = page.split("\n## ").skip(1);
    let question = |section: &str| {
        let heading = section.lines().next().unwrap_or_default().to_owned();
        let query = |engine: &str| {
            let behind = section.split(&format!("\n{engine}:\n\n```sql\n")).nth(1);
            let behind = behind.unwrap_or_else(|| panic!("{heading}: no query for {engine}"));
            behind.split("```").next().unwrap_or_default().to_owned()
        };
        (query("Trace processor"), query("DuckDB"))
    };
    let all = sections.map(|section| {
        let (perfetto, duckdb) = question(section);
        let heading = section.lines().next().unwrap_or_default().to_owned();
        (heading, perfetto, duckdb)
    });
    all.collect()
}

/// The answers of both engines by heading; they are equal.
fn answers(dir: &TestDir, input: &str) -> BTreeMap<String, Vec<Vec<Value>>> {
    well(&mut dir.gputrail(["convert", "-q", input, "-o", "of_queries.pftrace"]));
    well(&mut dir.gputrail(["convert", "-q", input, "-o", "job/"]));
    let mut trace = Trace::open(dir.join("of_queries.pftrace"));
    let answer = |(heading, perfetto, duckdb): (String, String, String)| {
        let found: Vec<Vec<Value>> = trace.rows(&perfetto);
        let script = repository("tests/export/duckdb_rows.py");
        let mut python = Command::new("python3");
        let told = well(python.arg(script).arg(dir.join("job")).arg(duckdb)).text();
        let told: Vec<Vec<Value>> = serde_json::from_str(&told).expect("a line of JSON");
        assert_eq!(found, told, "{heading}");
        (heading, found)
    };
    questions().into_iter().map(answer).collect()
}

/// The summary of an input.
fn summary(dir: &TestDir, input: &str) -> Value {
    let by_device = ["summary", input, "--format", "json", "--by", "device"];
    serde_json::from_str(&well(&mut dir.gputrail(by_device)).text()).expect("JSON")
}

/// The columns of the rows of tables, sorted.
fn columns(all: &Value, tables: &[&str], keys: &[&str]) -> Vec<Vec<Value>> {
    let rows = tables.iter().flat_map(|table| {
        let rows = all[*table].as_array();
        rows.unwrap_or_else(|| panic!("no table {table}"))
    });
    let mut rows: Vec<Vec<Value>> = rows
        .map(|row| keys.iter().map(|key| row[*key].clone()).collect())
        .collect();
    rows.sort_by_key(|row| json!(row).to_string());
    rows
}

/// Columns of an answer, sorted.
fn parts(answer: &[Vec<Value>], places: &[usize]) -> Vec<Vec<Value>> {
    let mut rows: Vec<Vec<Value>> = answer
        .iter()
        .map(|row| places.iter().map(|place| row[*place].clone()).collect())
        .collect();
    rows.sort_by_key(|row| json!(row).to_string());
    rows
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// The summary's answers to these questions; the headings are those of the page.
fn compare_with_summary(answers: &BTreeMap<String, Vec<Vec<Value>>>, all: &Value) {
    let times = ["name", "count", "total_ns", "max_ns"];
    assert_eq!(
        parts(&answers["Kernels and copies by time"], &[0, 1, 2, 3]),
        columns(all, &["kernels", "operations"], &times)
    );
    assert_eq!(
        parts(&answers["API calls by time"], &[0, 1, 2, 3]),
        columns(all, &["calls"], &times)
    );
    assert_eq!(
        parts(&answers["Calls that failed"], &[0, 2]),
        columns(all, &["failures"], &["name", "count"])
    );
    let mut devices: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in all["by_device"].as_array().expect("a table") {
        let (length, idle) = (number(&row["length_ns"]), number(&row["idle_ns"]));
        let device = row["device"].as_str().expect("a name").to_owned();
        devices.insert(device, (length, length - idle));
    }
    let devices: Vec<_> = devices
        .into_iter()
        .map(|(device, (length, busy))| vec![json!(device), json!(length), json!(busy)])
        .collect();
    assert_eq!(answers["Busy time of devices"], devices);
    let gaps = all["gaps"].as_array().expect("a table");
    let longest = gaps.iter().max_by_key(|row| number(&row["max_ns"]));
    let longest = longest.expect("a gap");
    let first = &answers["The longest gaps, and the work that ended them"][0];
    assert_eq!(
        [&first[0], &first[1], &first[2]],
        [&longest["device"], &longest["name"], &longest["max_ns"]]
    );
    assert_eq!(
        parts(
            &answers["From the call to the start of its work"],
            &[0, 1, 3]
        ),
        columns(all, &["latency"], &["name", "count", "max_ns"])
    );
    assert_eq!(
        parts(
            &answers["Steps, and the kernels that began in them"],
            &[0, 1, 2]
        ),
        columns(all, &["steps"], &["step", "duration_ns", "kernels"])
    );
    assert_eq!(
        parts(&answers["Bytes of copies and fills"], &[0, 1, 2]),
        columns(all, &["sizes"], &["name", "count", "total_bytes"])
    );
    let mut ranges: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for row in all["range_kernels"].as_array().expect("a table") {
        let sum = ranges
            .entry(row["range"].as_str().expect("a name"))
            .or_default();
        sum.0 += number(&row["count"]);
        sum.1 += number(&row["total_ns"]);
    }
    for row in &answers["Kernels that were launched in operators and annotations"] {
        let told = ranges[row[0].as_str().expect("a name")];
        assert_eq!((number(&row[1]), number(&row[2])), told, "{row:?}");
    }
    let communication = ["communication_ns", "hidden_ns"];
    assert_eq!(
        parts(
            &answers["Communication, and how much of it computation hides"],
            &[0, 1]
        ),
        columns(all, &["communication"], &communication)
    );
}

#[test]
fn the_queries_of_the_page_have_one_answer() {
    needs!(the_queries_of_the_page_have_one_answer: Need::TraceProcessor, Need::DuckDb);
    assert_eq!(questions().len(), 10);
    let dir = TestDir::new();
    let profile = repository("tests/data/kineto/v100-resnet-nccl.json.gz");
    let profile = profile.to_str().expect("UTF-8");
    let of_profile = answers(&dir, profile);
    compare_with_summary(&of_profile, &summary(&dir, profile));
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "--capture"]));
    let of_demo = answers(&dir, "demo.gputrail");
    // Each question is one about something.
    for (heading, answer) in &of_profile {
        assert!(
            !answer.is_empty() || !of_demo[heading].is_empty(),
            "{heading}: no answer"
        );
    }
    let failed = &of_demo["Calls that failed"];
    assert_eq!(
        parts(failed, &[0, 2]),
        columns(
            &summary(&dir, "demo.gputrail"),
            &["failures"],
            &["name", "count"]
        )
    );
}
