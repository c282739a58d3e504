//! Every command that PoCL's own log contains is in the trace once, at the time that the log gives.

use std::collections::BTreeMap;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::{self, Completed, Driver};

use crate::command::{TestDir, well};
use crate::transparency::ffmpeg;

/// Times in the trace and in PoCL's log are of different clocks. The difference of these clocks is constant within this
/// many nanoseconds over a run: the system's clock may be slewed by 500 ppm.
const STEADY: i64 = 2_000_000;
/// The maximum difference of a command's durations in both, which comes from slewing and rounding.
const SAME_DURATION: i64 = 1_000;

/// The start and the duration of a command.
type Interval = (i64, i64);

/// The name in the trace of a command in PoCL's log.
fn name_in_trace(command: &Completed) -> String {
    let name = match command.kind.as_str() {
        "ndrange_kernel" => return command.kernel.clone().expect("PoCL logs the name"),
        "read_buffer" | "read_buffer_rect" => "copy device to host",
        "write_buffer" | "write_buffer_rect" => "copy host to device",
        "copy_buffer" => "copy device to device",
        "read_image" => "copy image to host",
        "write_image" => "copy host to image",
        "fill_buffer" | "fill_image" | "svm_memfill" => "fill",
        "map_buffer" | "map_image" | "svm_map" => "map",
        "unmap_mem_object" | "svm_unmap" => "unmap",
        "svm_free" => "free",
        "migrate_mem_objects" => "migrate",
        "marker" => "marker",
        "barrier" => "barrier",
        "native_kernel" => "native kernel",
        other => panic!("PoCL completed a command of a kind that is not known here: {other}"),
    };
    name.to_owned()
}

/// Records a program with PoCL's log enabled, and checks the trace against the log.
#[track_caller]
fn complete(driver: Driver, program: &str, arguments: &[&str]) -> BTreeMap<String, usize> {
    let dir = TestDir::new();
    let log = dir.join("pocl.log");
    let program = if program.contains('/') {
        dir.program(&program[2..])
    } else {
        program.into()
    };
    well(&mut dir.untraced(driver, &program, arguments)); // fills the kernel cache
    well(pocl::logged(
        &mut dir.record(driver, &program, arguments),
        &log,
    ));

    let mut logged: BTreeMap<String, Vec<Interval>> = BTreeMap::new();
    for command in pocl::completed(&log) {
        let name = name_in_trace(&command);
        let interval = (
            command.started as i64,
            (command.ended - command.started) as i64,
        );
        logged.entry(name).or_default().push(interval);
    }
    let mut traced: BTreeMap<String, Vec<Interval>> = BTreeMap::new();
    let mut trace = dir.trace();
    trace.assert_sound();
    for (name, start, duration) in
        trace.rows::<(String, i64, i64)>("select name, ts, dur from gpu_slice order by ts")
    {
        // A native kernel has no name except its address.
        let name = match name.split_once(" 0x") {
            Some((name, _)) => name.to_owned(),
            None => name,
        };
        traced.entry(name).or_default().push((start, duration));
    }

    let counts = |intervals: &BTreeMap<String, Vec<Interval>>| -> BTreeMap<String, usize> {
        intervals
            .iter()
            .map(|(name, all)| (name.clone(), all.len()))
            .collect()
    };
    assert_eq!(
        counts(&traced),
        counts(&logged),
        "the trace against PoCL's log"
    );
    let mut distances = Vec::new();
    for (name, logged) in &mut logged {
        logged.sort_unstable();
        let traced = traced.get_mut(name).expect("counted");
        traced.sort_unstable();
        for (traced, logged) in traced.iter().zip(logged.iter()) {
            if name == "barrier" && traced.1 == 0 {
                continue; // clEnqueueBarrier gives nobody an event: the trace has the call's time
            }
            let (longer, distance) = (traced.1 - logged.1, traced.0 - logged.0);
            assert!(
                longer.abs() <= SAME_DURATION,
                "{name} took {} ns, by PoCL's log {}",
                traced.1,
                logged.1
            );
            distances.push(distance);
        }
    }
    let (least, most) = (distances.iter().min(), distances.iter().max());
    let spread = most.zip(least).map_or(0, |(most, least)| most - least);
    assert!(
        spread <= STEADY,
        "the times move against those of PoCL's log by {spread} ns"
    );
    counts(&traced)
}

#[test]
fn clpeak_is_whole() {
    needs!(clpeak_is_whole: Need::Pocl, Need::TraceProcessor, Need::Program("clpeak"));
    complete(Driver::Threaded, "clpeak", &["--kernel-latency"]);
}

#[test]
fn clpeak_is_whole_where_kernels_run_in_the_calling_thread() {
    needs!(clpeak_is_whole_where_kernels_run_in_the_calling_thread:
        Need::Pocl, Need::TraceProcessor, Need::Program("clpeak"));
    complete(Driver::Basic, "clpeak", &["--kernel-latency"]);
}

#[test]
fn ffmpeg_is_whole() {
    needs!(ffmpeg_is_whole: Need::Pocl, Need::TraceProcessor, Need::Program("ffmpeg"));
    let arguments = ffmpeg(25, &["-f", "null", "-"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let counts = complete(Driver::Threaded, "ffmpeg", &arguments);
    assert_eq!(counts["avgblur_horiz"], 75, "three planes of 25 frames");
}

#[test]
fn clblast_is_whole() {
    needs!(clblast_is_whole: Need::Pocl, Need::TraceProcessor, Need::Program("clblast_test_xaxpy"));
    complete(
        Driver::Threaded,
        "clblast_test_xaxpy",
        &["-precision", "32"],
    );
}

#[test]
fn a_program_with_every_kind_of_command_is_whole() {
    needs!(a_program_with_every_kind_of_command_is_whole:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    complete(Driver::Threaded, "./events", &[]);
    complete(Driver::Basic, "./events", &["--references"]);
}
