//! Traces in Perfetto's real UI, in a real browser: they load, and the UI has nothing to complain
//! about.

use std::path::Path;
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::pocl::Driver;
use gputrail_harness::trace::packet_kinds;
use gputrail_harness::{needs, repository};

use crate::command::{Place, well};
use crate::transparency::ffmpeg;

#[track_caller]
fn opens_clean(place: &Place, trace: &Path) {
    let picture = place.join("picture.png");
    let mut command = Command::new("node");
    command
        .arg(repository("tests/perfetto/screenshot.mjs"))
        .arg(trace)
        .arg(&picture);
    well(&mut command);
    assert!(picture.exists());
}

#[test]
fn the_demo_opens_without_a_complaint() {
    needs!(the_demo_opens_without_a_complaint: Need::Browser);
    let place = Place::new();
    well(&mut place.gputrail(["demo", "-q"]));
    opens_clean(&place, &place.join("demo.pftrace"));
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
