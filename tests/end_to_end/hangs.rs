//! Programs that hang and are killed: the trace shows the work that hung, and until when.

use std::thread::sleep;
use std::time::Duration;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::Running;
use gputrail_harness::trace::Trace;

use serde_json::Value;

use crate::command::{TestDir, kernels, well};
use crate::witness::Witness;

const NEEDS: [Need; 3] = [Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor];

/// The trace of `hangs HOW`, killed when the last of `calls` witnessed calls has reached the driver.
fn hung(dir: &TestDir, how: &str, calls: u64) -> Trace {
    let hangs = dir.program("hangs");
    let witness = Witness::new(dir);
    let mut command = dir.record_with(&["-q"], Driver::Threaded, &hangs, &[how]);
    let mut running = Running::start(witness.watch(dir, &mut command));
    while witness.calls() < calls && !running.has_ended() {
        sleep(Duration::from_millis(1));
    }
    let process = witness.process().expect("it has counted");
    // SAFETY: kill() takes numbers; the process hangs until then.
    unsafe { libc::kill(process, libc::SIGKILL) };
    let ended = running.end();
    assert_eq!(ended.code(), 128 + libc::SIGKILL, "{}", ended.stderr);
    let mut trace = dir.trace();
    trace.assert_sound(); // and have it read before it is gone
    trace
}

/// The time of the process's death in the trace.
fn death(trace: &mut Trace) -> i64 {
    trace.value("select ts from slice where name = 'process died'")
}

/// The calls that had not returned, in the order of their begins.
fn open_calls(trace: &mut Trace) -> Vec<String> {
    let sql = "select slice.name from slice join thread_track on track_id = thread_track.id \
        where dur = -1 order by ts";
    let names = trace.rows::<(String,)>(sql).into_iter();
    names.map(|(name,)| name).collect()
}

/// The begin and the duration that the trace shows for each piece of unfinished work, by name.
fn unfinished(trace: &mut Trace) -> Vec<(String, i64, i64)> {
    trace.rows(
        "select name, ts, dur from gpu_slice where extract_arg(arg_set_id, 'unfinished') is not null order by ts",
    )
}

#[test]
fn work_that_waits_for_an_event_that_never_comes_is_shown_until_the_death() {
    needs!(work_that_waits_for_an_event_that_never_comes_is_shown_until_the_death:
        NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    // Four arguments, a kernel and its end, two kernels and their end, and the other thread's wait.
    let mut trace = hung(&dir, "user-event", 10);
    assert_eq!(kernels(&mut trace, "done"), 1);
    let mut calls = open_calls(&mut trace);
    calls.sort();
    assert_eq!(calls, ["clFinish", "clWaitForEvents"]);
    let death = death(&mut trace);
    let work = unfinished(&mut trace);
    let [(first, start, duration), (second, enqueued, none)] = &work[..] else {
        panic!("{work:?}");
    };
    assert_eq!((first.as_str(), second.as_str()), ("stuck", "behind"));
    assert_eq!(start + duration, death, "{work:?}");
    assert!(*start <= *enqueued && *none == 0, "{work:?}");
    // None of the two is known to have started: sums leave them out.
    let summary = well(&mut dir.gputrail(["summary", "run.pftrace", "--format", "json"])).text();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let kernels = summary["kernels"].as_array().unwrap();
    for name in ["stuck", "behind"] {
        let kernel = kernels.iter().find(|kernel| kernel["name"] == name);
        let kernel = kernel.expect("its row");
        let figures = ["count", "unfinished", "total_ns"].map(|of| kernel[of].as_u64());
        assert_eq!(figures, [Some(1), Some(1), Some(0)], "{kernel}");
    }
    let busy = summary["devices"][0]["busy_ns"].as_i64().expect("a device");
    assert!(busy < *duration, "{summary}");
}

#[test]
fn a_kernel_that_never_ends_is_shown_until_the_death() {
    needs!(a_kernel_that_never_ends_is_shown_until_the_death: NEEDS[0], NEEDS[1], NEEDS[2]);
    let mut trace = hung(&TestDir::new(), "kernel", 8);
    assert_eq!(open_calls(&mut trace), ["clFinish"]);
    let death = death(&mut trace);
    let work = unfinished(&mut trace);
    assert_eq!(work.len(), 1, "{work:?}");
    assert_eq!(work[0].0, "spins");
    assert_eq!(work[0].1 + work[0].2, death);
}
