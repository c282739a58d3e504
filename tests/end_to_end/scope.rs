//! The scope of a recording, as selected by the options of `record`.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;

use crate::command::{TestDir, kernels, well};

/// Number of kernels that the program runs.
const WORK: i64 = 10;

/// Records a program of [`WORK`] kernels with `options`; returns the names of its calls in order, the number of its
/// kernels in the trace, and the output.
#[track_caller]
fn recorded(options: &[&str]) -> (Vec<String>, i64, String) {
    let dir = TestDir::new();
    let program = dir.program("lives");
    well(&mut dir.untraced(Driver::Basic, &program, &["1"])); // fills the kernel cache
    let said = well(&mut dir.record_with(options, Driver::Basic, &program, &[&WORK.to_string()]));
    let mut trace = dir.trace();
    trace.assert_sound();
    let calls =
        trace.rows::<(String,)>("select name from slice where category = 'opencl' order by ts");
    let calls = calls.into_iter().map(|(name,)| name).collect();
    (calls, kernels(&mut trace, "work"), said.stderr)
}

#[test]
fn a_recording_begins_and_ends_with_the_calls_that_are_named() {
    needs!(a_recording_begins_and_ends_with_the_calls_that_are_named:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let (calls, kernels, _) =
        recorded(&["--start-on", "clEnqueueNDRange*", "--stop-on", "clFinish"]);
    assert_eq!((calls.len() as i64, kernels), (WORK + 1, WORK), "{calls:?}");
    assert_eq!(calls.last().map(String::as_str), Some("clFinish"));

    let (calls, kernels, _) = recorded(&["--start-on", "clFinish"]);
    assert_eq!(
        (calls.first().map(String::as_str), kernels),
        (Some("clFinish"), 0)
    );

    let (calls, ..) = recorded(&["--start-on", "clCreateBuffer", "--duration", "1ns"]);
    assert_eq!(calls, ["clCreateBuffer"]);
}

#[test]
fn a_recording_begins_again_with_the_next_call_that_starts_it() {
    needs!(a_recording_begins_again_with_the_next_call_that_starts_it:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("flight");
    let work = WORK.to_string();
    let options = ["--start-on", "clCreateKernel", "--stop-on", "clFinish"];
    well(&mut dir.record_with(&options, Driver::Basic, &program, &["3", &work]));
    let mut trace = dir.trace();
    trace.assert_sound();
    // Its kernels are created before the first round, and the one of each round at its end.
    assert_eq!(kernels(&mut trace, "work"), WORK);
    let rounds = [1, 2, 3].map(|round| kernels(&mut trace, &format!("round_{round}")));
    assert_eq!(rounds, [1, 1, 1]);
    let off =
        "select extract_arg(arg_set_id, 'debug.reason') from slice where name = 'recording off'";
    let off: Vec<(String,)> = trace.rows(off);
    // Before the first kernel, between the rounds, and after the last one.
    assert_eq!(off, vec![("before --start-on".to_owned(),); 4]);
}

#[test]
fn calls_kernels_and_kinds_are_left_out_as_asked() {
    needs!(calls_kernels_and_kinds_are_left_out_as_asked:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let (all, kernels, _) = recorded(&["--kernel", "w*"]);
    assert_eq!(kernels, WORK);
    let (calls, kernels, _) = recorded(&["--kernel", "!work"]);
    assert_eq!(
        (calls, kernels),
        (all, 0),
        "the calls are there all the same"
    );

    let (calls, kernels, _) = recorded(&["--call", "clEnqueue*", "--call", "clFinish"]);
    assert_eq!((calls.len() as i64, kernels), (WORK + 1, WORK), "{calls:?}");
    let (calls, ..) = recorded(&["--call", "!clEnqueue*"]);
    assert!(!calls.is_empty() && calls.iter().all(|call| !call.starts_with("clEnqueue")));

    let (calls, kernels, _) = recorded(&["--kind", "kernel-dispatch"]);
    assert_eq!((calls.len(), kernels), (0, WORK));
    let (calls, kernels, _) = recorded(&["--kind", "api"]);
    assert!(!calls.is_empty());
    assert_eq!(kernels, 0);
}

#[test]
fn a_recording_that_never_begins_says_so() {
    needs!(a_recording_that_never_begins_says_so:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    for options in [["--delay", "60m"], ["--start-on", "clNeverCalled"]] {
        let (calls, kernels, said) = recorded(&options);
        assert_eq!((calls.len(), kernels), (0, 0));
        assert!(said.contains("did not come"), "{said}");
    }
}

#[test]
fn arguments_of_calls_that_enqueue_work_are_there_when_asked_for() {
    needs!(arguments_of_calls_that_enqueue_work_are_there_when_asked_for:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("lives");
    let work = WORK.to_string();
    let record = |options: &[&str]| {
        well(&mut dir.record_with(options, Driver::Basic, &program, &[&work]));
    };
    // The number of calls of `function` that show `argument`.
    let shown = |function: &str, argument: &str| -> i64 {
        let mut trace = dir.trace();
        trace.assert_sound();
        trace.value(&format!(
            "select count() from slice join args using(arg_set_id) \
             where slice.name = '{function}' and key = 'debug.{argument}'"
        ))
    };
    record(&[]);
    assert_eq!(shown("clEnqueueNDRangeKernel", "work_dim"), 0);
    assert_eq!(
        shown("clCreateKernel", "kernel_name"),
        1,
        "those of others are always there"
    );
    record(&["--arguments"]);
    assert_eq!(shown("clEnqueueNDRangeKernel", "work_dim"), WORK);
    // A capture keeps the arguments for later conversions.
    record(&["--capture"]);
    assert_eq!(shown("clEnqueueNDRangeKernel", "work_dim"), 0);
    let captures = dir.files(".gputrail");
    assert_eq!(captures.len(), 1, "{captures:?}");
    let convert = ["convert", &captures[0], "--arguments", "-o", "run.pftrace"];
    well(&mut dir.gputrail(convert));
    assert_eq!(shown("clEnqueueNDRangeKernel", "work_dim"), WORK);
}
