//! `gputrail info` and `gputrail check`, on our traces and on modified ones.

use std::fs;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;

use crate::command::{TestDir, well};
use crate::transparency::ffmpeg;

fn demo(dir: &TestDir) {
    well(&mut dir.gputrail(["demo", "-q", "--capture", "-o", "run.pftrace"]));
}

#[test]
fn the_demo_has_nothing_wrong() {
    let dir = TestDir::new();
    demo(&dir);
    let ended = well(&mut dir.gputrail(["check", "run.pftrace"]));
    assert!(ended.text().contains("nothing wrong"), "{}", ended.text());
}

#[test]
fn a_recorded_program_has_nothing_wrong() {
    needs!(a_recorded_program_has_nothing_wrong: Need::Pocl, Need::Program("ffmpeg"));
    let dir = TestDir::new();
    let arguments = ffmpeg(5, &["-f", "null", "-"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    well(&mut dir.record(Driver::Threaded, "ffmpeg", &arguments));
    well(&mut dir.gputrail(["check", "run.pftrace"]));
}

#[test]
fn damage_is_found_and_ends_in_exit_code_1() {
    let dir = TestDir::new();
    demo(&dir);
    let mut trace = fs::read(dir.join("run.pftrace")).unwrap();
    let middle = trace.len() / 2;
    trace[middle..middle + 40].fill(0);
    fs::write(dir.join("damaged.pftrace"), &trace).unwrap();
    let ended = run(&mut dir.gputrail(["check", "damaged.pftrace"]));
    assert_eq!(ended.code(), 1, "{}{}", ended.text(), ended.stderr);
    assert!(
        ended.text().contains("damaged.pftrace: at byte "),
        "{}",
        ended.text()
    );

    fs::write(dir.join("cut.pftrace"), &trace[..middle]).unwrap();
    let ended = run(&mut dir.gputrail(["check", "cut.pftrace"]));
    assert_eq!(ended.code(), 1, "{}{}", ended.text(), ended.stderr);
    let ended = run(&mut dir.gputrail(["info", "cut.pftrace"]));
    assert_eq!(ended.code(), 1, "{}", ended.stderr);
    let info = ended.text();
    assert!(
        info.contains("Simulated GPU"),
        "what is there is told: {info}"
    );
}

#[test]
fn info_of_a_damaged_capture_ends_in_exit_code_1() {
    let dir = TestDir::new();
    demo(&dir);
    assert_eq!(run(&mut dir.gputrail(["info", "run.gputrail"])).code(), 0);
    let mut capture = fs::read(dir.join("run.gputrail")).unwrap();
    let middle = capture.len() / 2;
    capture[middle..middle + 40].fill(0);
    fs::write(dir.join("damaged.gputrail"), capture).unwrap();
    let ended = run(&mut dir.gputrail(["info", "damaged.gputrail"]));
    assert_eq!(ended.code(), 1, "{}{}", ended.text(), ended.stderr);
    assert!(ended.text().contains("not readable"), "{}", ended.text());
}

#[test]
fn files_that_are_not_traces_are_refused_or_reported() {
    let dir = TestDir::new();
    demo(&dir);
    fs::write(dir.join("empty.pftrace"), "").unwrap();
    for (file, code) in [
        ("empty.pftrace", 1),
        ("none.pftrace", 125),
        (".", 125),
        ("run.gputrail", 125),
    ] {
        let ended = run(&mut dir.gputrail(["check", file]));
        assert_eq!(
            ended.code(),
            code,
            "{file}: {}{}",
            ended.text(),
            ended.stderr
        );
    }
}

#[test]
fn info_of_noise_is_an_error() {
    let dir = TestDir::new();
    let noise: Vec<u8> = (0..100_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    fs::write(dir.join("noise"), noise).unwrap();
    fs::write(dir.join("empty"), "").unwrap();
    for file in ["noise", "empty"] {
        let ended = run(&mut dir.gputrail(["info", file]));
        assert_eq!(ended.code(), 125, "{}", ended.text());
        assert_eq!(ended.text(), "");
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(file), "{}", ended.stderr);
    }
}

#[test]
fn info_of_a_trace_agrees_with_its_capture_and_with_perfetto() {
    needs!(info_of_a_trace_agrees_with_its_capture_and_with_perfetto: Need::TraceProcessor);
    let dir = TestDir::new();
    demo(&dir);
    let trace = well(&mut dir.gputrail(["info", "run.pftrace"])).text();
    let capture = well(&mut dir.gputrail(["info", "run.gputrail"])).text();
    let line = |text: &str, name: &str| {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name} in {text}"))
            .to_owned()
    };
    for name in ["time", "host", "lost", "unfinished", "complete"] {
        assert_eq!(line(&trace, name), line(&capture, name));
    }
    let mut perfetto = Trace::open(dir.join("run.pftrace"));
    // Perfetto has instants among its slices.
    let slices = perfetto.value::<i64>(
        "select count(*) from slice where dur >= 0 and name != 'recording' and ifnull(category, '') != 'preemption'",
    ) - perfetto.value::<i64>("select count(*) from gpu_slice");
    let holds = line(&trace, "holds").replace(' ', "");
    assert!(
        holds.contains(&format!("{slices}slices")),
        "{slices} slices: {holds}"
    );
}
