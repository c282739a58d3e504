//! Traces in Perfetto's real UI, in a real browser: they load, and the UI has nothing to complain
//! about.

use std::path::Path;
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::trace::packet_kinds;
use gputrail_harness::{needs, repository};

use serde_json::Value;

use crate::command::{Place, well};
use crate::transparency::ffmpeg;

/// Opens a trace; what the UI shows of it then.
#[track_caller]
fn opens_clean(place: &Place, trace: &Path) -> Value {
    let picture = place.join("picture.png");
    let mut command = Command::new("node");
    command
        .arg(repository("tests/perfetto/screenshot.mjs"))
        .arg(trace)
        .arg(&picture);
    let report = run(&mut command).well().text();
    assert!(picture.exists());
    serde_json::from_str(&report).expect("a line of JSON")
}

#[test]
fn the_demo_opens_without_a_complaint() {
    needs!(the_demo_opens_without_a_complaint: Need::Browser);
    let place = Place::new();
    well(&mut place.gputrail(["demo", "-q"]));
    let shown = opens_clean(&place, &place.join("demo.pftrace"));
    assert!(shown["flamegraph"].is_null(), "nothing was sampled");
}

#[test]
fn a_recorded_program_opens_without_a_complaint() {
    needs!(a_recorded_program_opens_without_a_complaint: Need::Browser, Need::PythonBindings, Need::Pocl, Need::Program("ffmpeg"));
    let place = Place::new();
    let arguments = ffmpeg(10, &["-f", "null", "-"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    well(&mut place.record(Driver::Threaded, "ffmpeg", &arguments));
    opens_clean(&place, &place.join("run.pftrace"));
    let kinds = packet_kinds(&place.join("run.pftrace"));
    assert!(kinds.contains_key("gpu_render_stage_event"), "{kinds:?}");
}

#[test]
fn a_flame_graph_of_samples_opens_by_itself() {
    needs!(a_flame_graph_of_samples_opens_by_itself: Need::Browser, Need::Pocl, Need::Program("ffmpeg"));
    let place = Place::new();
    let arguments = ffmpeg(20, &["-f", "null", "-"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let sampling = ["--pc-sampling", "host-trap", "--interval", "1ms"];
    well(&mut place.record_with(&sampling, Driver::Threaded, "ffmpeg", &arguments));
    let shown = opens_clean(&place, &place.join("run.pftrace"));
    // One colour is the background's, and there are at least a queue, a kernel and its instructions.
    assert!(shown["flamegraph"].as_u64() >= Some(5), "{shown}");
}
