//! `gputrail summary`: equal results for a trace and its capture, which agree with Perfetto's counts.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;
use serde_json::Value;

use crate::command::{TestDir, well};

fn summary(dir: &TestDir, file: &str, format: &str) -> String {
    well(&mut dir.gputrail(["summary", file, "--format", format])).text()
}

fn demo(dir: &TestDir) {
    well(&mut dir.gputrail(["demo", "-q", "--capture"]));
}

#[test]
fn a_trace_and_its_capture_amount_to_the_same() {
    let dir = TestDir::new();
    demo(&dir);
    for format in ["table", "json", "csv", "markdown"] {
        let trace = summary(&dir, "demo.pftrace", format);
        assert_eq!(trace, summary(&dir, "demo.gputrail", format));
        assert!(trace.contains("simLaunchKernel"), "{trace}");
    }
}

#[test]
fn the_tables_say_what_perfetto_says() {
    needs!(the_tables_say_what_perfetto_says: Need::TraceProcessor);
    let dir = TestDir::new();
    demo(&dir);
    let all: Value = serde_json::from_str(&summary(&dir, "demo.pftrace", "json")).unwrap();
    let mut perfetto = Trace::open(dir.join("demo.pftrace"));
    for (tables, sql) in [
        (
            &["kernels", "operations", "graph_launches"][..],
            "gpu_slice",
        ),
        (
            &["calls"][..],
            "slice join thread_track on slice.track_id = thread_track.id and slice.category = 'sim'",
        ),
    ] {
        let name = if sql == "gpu_slice" {
            "name"
        } else {
            "slice.name"
        };
        let mut expected: Vec<(String, u64, u64, u64, u64)> = perfetto.rows(&format!(
            "select {name}, count(*), sum(dur), min(dur), max(dur) from {sql} where dur > 0 group by 1"
        ));
        let mut told: Vec<_> = tables.iter().flat_map(|table| rows(&all, table)).collect();
        expected.sort();
        told.sort();
        assert_eq!(told, expected);
    }
}

/// Name, count, total, least and greatest value of each row.
fn rows(tables: &Value, table: &str) -> Vec<(String, u64, u64, u64, u64)> {
    let rows = tables[table].as_array().expect("a table");
    let number = |row: &Value, key: &str| {
        row[key]
            .as_u64()
            .unwrap_or_else(|| panic!("{key} in {row}"))
    };
    let row = |row: &Value| {
        (
            row["name"].as_str().expect("a name").to_owned(),
            number(row, "count"),
            number(row, "total_ns"),
            number(row, "min_ns"),
            number(row, "max_ns"),
        )
    };
    rows.iter().map(row).collect()
}

#[test]
fn traces_that_cannot_be_summed_up_together_are_refused() {
    let dir = TestDir::new();
    demo(&dir);
    std::fs::write(dir.join("text"), "not a trace").unwrap();
    for files in [
        &["demo.pftrace", "demo.pftrace"][..],
        &["demo.pftrace", "demo.gputrail"],
        &["text"],
        &["none"],
    ] {
        let ended = run(&mut dir.gputrail(["summary"].iter().chain(files)));
        assert_eq!(ended.code(), 125, "{files:?}: {}", ended.stderr);
        assert!(!ended.stderr.is_empty() && ended.text().is_empty());
    }
}
