//! Spans and events of `tracing`, in a Rust program that uses no GPU.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;

use crate::command::{TestDir, well};
use crate::tools::built;

#[test]
fn spans_and_events_of_a_program_without_a_gpu_are_in_its_trace() {
    needs!(spans_and_events_of_a_program_without_a_gpu_are_in_its_trace: Need::TraceProcessor);
    let dir = TestDir::new();
    let program = built(&["--example", "spans"], "/spans");
    // Nothing is there to record it.
    let mut alone = std::process::Command::new(&program);
    assert_eq!(well(alone.current_dir(dir.path())).text(), "");
    well(&mut dir.gputrail(["record", "-o", "run.pftrace", "--", &program]));
    let mut trace = dir.trace();
    trace.assert_sound();
    let marks: Vec<(String, i64, String, String)> = trace.rows(
        "select name, extract_arg(arg_set_id, 'debug.payload'), category, \
         extract_arg(arg_set_id, 'debug.domain') from slice where name glob 'parsed*' order by name",
    );
    let expected = [100, 200, 300].map(|bytes: i64| {
        let name = format!("parsed{{bytes={bytes}}}");
        (name, bytes, "INFO".to_owned(), "spans".to_owned())
    });
    assert_eq!(marks, expected);
    for number in 1..=3 {
        // Its lifetime, and two polls or more, all of which have ended.
        let slices: Vec<(i64, i64)> = trace.rows(&format!(
            "select ts, dur from slice where name = 'request{{number={number}}}' order by dur desc"
        ));
        assert!(slices.len() >= 3, "{slices:?}");
        let (start, span) = slices[0];
        assert!(span >= 2_000_000, "the task sleeps");
        let within = |(ts, dur): &(i64, i64)| *dur >= 0 && *ts >= start && ts + dur <= start + span;
        assert!(slices.iter().all(within), "{slices:?}");
    }
    let parse: i64 = trace.value("select count(*) from slice where name = 'parse' and dur >= 0");
    assert!(parse >= 3);
}
