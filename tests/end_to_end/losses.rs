//! Little memory for records: one policy waits and loses nothing, the other drops records and reports exactly how many.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::trace::Trace;

use crate::command::{TestDir, kernels, well};

/// More records than the smallest pools below hold at once.
const KERNELS: &str = "20000";

fn recorded(dir: &TestDir, policy: &str) -> Trace {
    let lives = dir.program("lives");
    let options = [
        "--policy",
        policy,
        "--buffers",
        "64K",
        "--buffer-size",
        "16K",
    ];
    well(&mut dir.record_with(&options, Driver::Basic, &lives, &[KERNELS]));
    dir.trace()
}

fn calls(trace: &mut Trace) -> i64 {
    let sql = "select count(*) from slice join thread_track on track_id = thread_track.id \
        where slice.name glob 'cl*'";
    trace.value(sql)
}

#[test]
fn the_lossless_policy_loses_nothing_with_more_threads_than_blocks() {
    needs!(the_lossless_policy_loses_nothing_with_more_threads_than_blocks:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let options = ["--buffers", "64K", "--buffer-size", "16K"];
    let arguments = ["100", "threads", "40"];
    let ended = well(&mut dir.record_with(&options, Driver::Threaded, &lives, &arguments));
    assert!(
        ended.stderr.contains("nothing was lost"),
        "{}",
        ended.stderr
    );
    assert_eq!(kernels(&mut dir.trace(), "work"), 40 * 100);
}

/// The number of lost records of a kind, by the events on the track of losses.
fn lost(trace: &mut Trace, kind: &str) -> i64 {
    trace.value(&format!(
        "select ifnull(sum(extract_arg(arg_set_id, 'debug.count')), 0) from slice \
         where name = 'records lost' and extract_arg(arg_set_id, 'debug.kind') glob '{kind}'"
    ))
}

#[test]
fn the_lossless_policy_loses_nothing_in_the_smallest_pool() {
    needs!(the_lossless_policy_loses_nothing_in_the_smallest_pool:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let mut trace = recorded(&dir, "lossless");
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work").to_string(), KERNELS);
}

#[test]
fn drops_of_the_discarding_policy_are_counted_exactly() {
    needs!(drops_of_the_discarding_policy_are_counted_exactly:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let all_calls = calls(&mut recorded(&dir, "lossless"));
    let mut trace = recorded(&dir, "discard");
    let (kept, dropped) = (calls(&mut trace), lost(&mut trace, "api"));
    assert!(dropped > 0, "the pool was meant to be too small");
    assert_eq!(
        kept + dropped,
        all_calls,
        "{kept} calls in the trace, {dropped} lost"
    );
    let (kept, dropped) = (
        kernels(&mut trace, "work"),
        lost(&mut trace, "kernel dispatch"),
    );
    assert_eq!(
        (kept + dropped).to_string(),
        KERNELS,
        "{kept} kernels, {dropped} lost"
    );
    let complaint = (
        "traced_buf_trace_writer_packet_loss".to_owned(),
        lost(&mut trace, "*"),
    );
    assert_eq!(
        trace.complaints(),
        [complaint],
        "and the viewer shows that there is a loss"
    );
}
