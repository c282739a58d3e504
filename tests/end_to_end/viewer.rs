//! Traces in Perfetto's real UI in a real browser: they load, and the UI reports no errors.

use std::path::Path;
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::trace::{Trace, packet_kinds};
use gputrail_harness::{needs, repository};

use serde_json::Value;

use crate::command::{TestDir, well};
use crate::transparency::ffmpeg;

/// Opens a trace, does `more`, and returns what the UI shows of it then.
#[track_caller]
fn opens_clean(dir: &TestDir, trace: &Path, more: &[&str]) -> Value {
    let picture = dir.join("picture.png");
    let mut command = Command::new("node");
    command
        .arg(repository("tests/perfetto/screenshot.mjs"))
        .arg(trace)
        .arg(&picture)
        .args(more);
    let report = run(&mut command).well().text();
    assert!(picture.exists());
    serde_json::from_str(&report).expect("a line of JSON")
}

/// Opens a trace, clicks on a kernel whose name begins with `kernel`, and checks that the details pane shows its
/// fields: name, launch geometry, and the correlation id of the call that enqueued it.
#[track_caller]
fn a_click_shows_a_kernel(dir: &TestDir, trace: &Path, kernel: &str) -> Value {
    let which = format!(
        "from gpu_slice g join gpu_track t on g.track_id = t.id where g.name glob '{kernel}*' and g.dur > 0 \
         order by g.ts desc limit 1"
    );
    let (name, submission, geometry): (String, i64, String) = Trace::open(trace)
        .rows(&format!(
            "select g.name, submission_id, extract_arg(g.arg_set_id, 'description') {which}"
        ))
        .remove(0);
    assert!(geometry.contains("work-items"), "{geometry}");
    let place_of = format!("select g.ts, g.dur, t.name {which}");
    let said = opens_clean(dir, trace, &["--click", &place_of]);
    let details = said["details"].as_str().unwrap_or_default();
    // A line with the name of an argument is followed by a line with its value.
    let lines: Vec<&str> = details.lines().collect();
    assert!(lines.contains(&name.as_str()), "{name}: {details}");
    assert!(lines.contains(&geometry.as_str()), "{geometry}: {details}");
    let correlation = lines
        .windows(2)
        .any(|pair| pair[0].starts_with("submission_id") && pair[1] == submission.to_string());
    assert!(correlation, "{submission}: {details}");
    said
}

#[test]
fn a_kernel_of_the_demo_is_a_click_away() {
    needs!(a_kernel_of_the_demo_is_a_click_away: Need::Browser, Need::TraceProcessor);
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q"]));
    let shown = a_click_shows_a_kernel(&dir, &dir.join("demo.pftrace"), "gemm");
    assert!(shown["flamegraph"].is_null(), "nothing was sampled");
}

#[test]
fn a_kernel_of_a_merged_trace_is_a_click_away() {
    needs!(a_kernel_of_a_merged_trace_is_a_click_away:
        Need::Browser, Need::TraceProcessor, Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("waits");
    for rank in ["0", "1"] {
        let job = [("RANK", rank), ("WORLD_SIZE", "2")];
        well(dir.record(Driver::Threaded, &program, &[]).envs(job));
        std::fs::rename(dir.join("run.pftrace"), dir.join(rank)).unwrap();
    }
    well(&mut dir.gputrail(["merge", "-q", "0", "1", "-o", "job.pftrace"]));
    a_click_shows_a_kernel(&dir, &dir.join("job.pftrace"), "both");
}

#[test]
fn a_kernel_of_a_recorded_program_is_a_click_away() {
    needs!(a_kernel_of_a_recorded_program_is_a_click_away:
        Need::Browser, Need::TraceProcessor, Need::PythonBindings, Need::Pocl, Need::Program("ffmpeg"));
    let dir = TestDir::new();
    let arguments = ffmpeg(10, &["-f", "null", "-"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    well(&mut dir.record(Driver::Threaded, "ffmpeg", &arguments));
    a_click_shows_a_kernel(&dir, &dir.join("run.pftrace"), "unsharp");
    let kinds = packet_kinds(&dir.join("run.pftrace"));
    assert!(kinds.contains_key("gpu_render_stage_event"), "{kinds:?}");
}

#[test]
fn a_flame_graph_of_samples_opens_by_itself() {
    needs!(a_flame_graph_of_samples_opens_by_itself: Need::Browser, Need::Pocl, Need::Program("ffmpeg"));
    let dir = TestDir::new();
    let arguments = ffmpeg(20, &["-f", "null", "-"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let sampling = ["--pc-sampling", "host-trap", "--interval", "1ms"];
    well(&mut dir.record_with(&sampling, Driver::Threaded, "ffmpeg", &arguments));
    let shown = opens_clean(&dir, &dir.join("run.pftrace"), &[]);
    // One colour is the background's; there are at least a queue, a kernel and its instructions.
    assert!(shown["flamegraph"].as_u64() >= Some(5), "{shown}");
}
