//! A recorded program gives the same results as one that is not recorded: its output, its computations, its exit code.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::{Ended, run};

use crate::command::TestDir;

/// The ffmpeg run of these tests: two OpenCL filters, `frames` frames, to `output`.
pub fn ffmpeg(frames: u32, output: &[&str]) -> Vec<String> {
    let fixed = "-nostdin -loglevel error -init_hw_device opencl=gpu:0.0 -filter_hw_device gpu -f lavfi \
        -i testsrc=size=640x360:rate=25 \
        -vf format=yuv420p,hwupload,unsharp_opencl,avgblur_opencl=3,hwdownload,format=yuv420p";
    let words = fixed.split_whitespace().map(str::to_owned);
    let frames = ["-frames:v".to_owned(), frames.to_string()];
    words
        .chain(frames)
        .chain(output.iter().map(|&word| word.to_owned()))
        .collect()
}

/// Runs a program alone and recorded, and checks that both print and return the same.
#[track_caller]
fn same_with_and_without(driver: Driver, program: &str, arguments: &[&str]) -> Ended {
    let dir = TestDir::new();
    let program = if program.contains('/') {
        dir.program(&program[2..])
    } else {
        program.into()
    };
    run(&mut dir.untraced(driver, &program, arguments)); // fills the kernel cache
    let alone = run(&mut dir.untraced(driver, &program, arguments));
    let recorded = run(&mut dir.record_with(&["-q"], driver, &program, arguments));
    assert_eq!(alone.code(), recorded.code(), "{}", recorded.stderr);
    for (number, (alone, recorded)) in alone
        .text()
        .lines()
        .zip(recorded.text().lines())
        .enumerate()
    {
        assert_eq!(alone, recorded, "line {}", number + 1);
    }
    assert_eq!(
        alone.stdout.len(),
        recorded.stdout.len(),
        "{}",
        recorded.stderr
    );
    dir.trace().assert_sound();
    alone
}

#[test]
fn objects_answer_every_query_as_if_nobody_watched() {
    needs!(objects_answer_every_query_as_if_nobody_watched: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    for driver in [Driver::Basic, Driver::Threaded] {
        let alone = same_with_and_without(driver, "./objects", &[]);
        assert_eq!(alone.code(), 17);
    }
}

#[test]
fn events_and_their_reference_counts_are_as_if_nobody_watched() {
    needs!(events_and_their_reference_counts_are_as_if_nobody_watched: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    same_with_and_without(Driver::Basic, "./events", &["--references"]);
    same_with_and_without(Driver::Threaded, "./events", &[]);
}

#[test]
fn rarely_used_functions_behave_as_without_recording() {
    needs!(rarely_used_functions_behave_as_without_recording: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    for driver in [Driver::Basic, Driver::Threaded] {
        same_with_and_without(driver, "./rare", &[]);
    }
}

#[test]
fn clinfo_prints_the_same() {
    needs!(clinfo_prints_the_same: Need::Pocl, Need::TraceProcessor, Need::Program("clinfo"));
    same_with_and_without(Driver::Threaded, "clinfo", &[]);
}

#[test]
fn ffmpeg_makes_the_same_frames() {
    needs!(ffmpeg_makes_the_same_frames: Need::Pocl, Need::TraceProcessor, Need::Program("ffmpeg"));
    let arguments = ffmpeg(20, &["-f", "framemd5", "-"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let alone = same_with_and_without(Driver::Threaded, "ffmpeg", &arguments);
    assert_eq!(
        alone
            .text()
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count(),
        20
    );
}

#[test]
fn a_failing_ffmpeg_fails_the_same() {
    needs!(a_failing_ffmpeg_fails_the_same: Need::Pocl, Need::TraceProcessor, Need::Program("ffmpeg"));
    let alone = same_with_and_without(
        Driver::Threaded,
        "ffmpeg",
        &[
            "-nostdin",
            "-loglevel",
            "error",
            "-init_hw_device",
            "opencl=gpu:9.9",
            "-f",
            "lavfi",
            "-i",
            "testsrc",
            "-f",
            "null",
            "-",
        ],
    );
    assert_ne!(alone.code(), 0);
}
