//! Traces of captures, as read by Perfetto's own trace processor.

use bytemuck::bytes_of;
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::trace::Trace;

use super::making::{HELPER, MAIN, Making, call};
use gputrail_capture::Reader;
use gputrail_record::*;
use gputrail_trace::capture::Options;
use gputrail_trace::make_trace;
use gputrail_trace::perfetto::Exporter;

/// Opens the trace of some captures. It exists as long as the first of them.
fn opened(captures: &[&Making]) -> Trace {
    let readers: Vec<Reader> = captures.iter().map(|making| making.capture()).collect();
    let path = captures[0].directory.path().join("run.pftrace");
    let out = std::fs::File::create(&path).unwrap();
    make_trace(&readers, Exporter::new(out), &Options::default(), &mut ()).unwrap();
    Trace::open(path)
}

/// The calls in order: the time of the begin, the depth, and the duration.
fn calls(trace: &mut Trace) -> Vec<(i64, i64, i64)> {
    trace.rows(
        "select slice.ts, depth, slice.dur from slice join thread_track on slice.track_id = thread_track.id \
         where category = 'opencl' order by slice.id",
    )
}

#[test]
fn calls_that_begin_or_end_together_nest_as_they_were_made() {
    needs!(calls_that_begin_or_end_together_nest_as_they_were_made: Need::TraceProcessor);
    let making = Making::new(1);
    let records = [
        call(3, 2, 1000, 1000),
        call(2, 1, 1000, 1100),
        call(4, 1, 1100, 1100),
        call(5, 1, 1100, 1200),
        call(1, 0, 1000, 1200),
        call(6, 0, 1200, 1200),
        call(7, 0, 1200, 1300),
    ];
    making.run(MAIN, &records.each_ref().map(bytes_of));
    let mut trace = opened(&[&making]);
    trace.assert_sound();
    assert_eq!(
        calls(&mut trace),
        [
            (1000, 0, 200),
            (1000, 1, 100),
            (1000, 2, 0),
            (1100, 1, 0),
            (1100, 1, 100),
            (1200, 0, 0),
            (1200, 0, 100),
        ]
    );
}

#[test]
fn an_outer_call_of_very_many_inner_ones_still_holds_them_all() {
    needs!(an_outer_call_of_very_many_inner_ones_still_holds_them_all: Need::TraceProcessor);
    let making = Making::new(1);
    let inner =
        (0..10_000).map(|number| call(number + 2, 1, 2000 + 10 * number, 2005 + 10 * number));
    let mut records: Vec<Api> = inner.collect();
    records.push(call(1, 0, 1000, 200_000));
    let bytes: Vec<&[u8]> = records.iter().map(bytes_of).collect();
    making.run(MAIN, &bytes);
    let mut trace = opened(&[&making]);
    trace.assert_sound();
    let depths = trace.rows::<(i64, i64)>(
        "select depth, count(*) from slice where category = 'opencl' group by depth",
    );
    assert_eq!(depths, [(0, 1), (1, 10_000)]);
    assert_eq!(
        trace.value::<i64>("select dur from slice where depth = 0 and category = 'opencl'"),
        199_000
    );
}

#[test]
fn work_that_overlaps_coincides_or_takes_no_time_is_all_there() {
    needs!(work_that_overlaps_coincides_or_takes_no_time_is_all_there: Need::TraceProcessor);
    let making = Making::new(1);
    let intervals = [
        (1000, 2000),
        (1500, 2500),
        (1500, 2500),
        (1500, 1500),
        (1500, 1500),
        (2500, 2500),
    ];
    let mut records = Vec::new();
    for (work, (start, end)) in (1..).zip(intervals) {
        records.extend_from_slice(bytes_of(&making.dispatch(work, work, 500)));
        records.extend_from_slice(bytes_of(&making.completion(work, start, end)));
    }
    making.run(MAIN, &[&records]);
    let mut trace = opened(&[&making]);
    trace.assert_sound();
    let mut expected = intervals.map(|(start, end)| (start as i64, (end - start) as i64));
    expected.sort_unstable();
    let seen = trace.rows::<(i64, i64)>("select ts, dur from gpu_slice order by ts, dur");
    assert_eq!(seen, expected);
}

#[test]
fn queues_of_two_processes_stand_on_rows_of_their_own() {
    needs!(queues_of_two_processes_stand_on_rows_of_their_own: Need::TraceProcessor);
    let captures = [Making::new(1), Making::new(2)];
    for making in &captures {
        making.run(
            MAIN,
            &[
                bytes_of(&making.dispatch(1, 1, 100)),
                bytes_of(&making.completion(1, 200, 300)),
            ],
        );
    }
    let mut trace = opened(&captures.each_ref());
    trace.assert_sound();
    let rows = trace.rows::<(String, i64)>(
        "select gpu_track.name, process.pid from gpu_slice join gpu_track on gpu_slice.track_id = gpu_track.id \
         join process using (upid) order by 1",
    );
    let names = [("GPU 0 ·  queue    0", 1), ("GPU 0 · 2 ·  queue    0", 2)];
    assert_eq!(rows, names.map(|(name, pid)| (name.to_owned(), pid)));
}

#[test]
fn work_without_end_or_enqueue_and_calls_without_end_are_no_errors() {
    needs!(work_without_end_or_enqueue_and_calls_without_end_are_no_errors: Need::TraceProcessor);
    let making = Making::new(1);
    let open = Api {
        end: Ticks(0),
        ..call(9, 0, 5000, 0)
    };
    making.run(
        MAIN,
        &[bytes_of(&making.dispatch(1, 1, 100)), bytes_of(&open)],
    );
    making.run(HELPER, &[bytes_of(&making.completion(2, 200, 300))]);
    let mut trace = opened(&[&making]);
    trace.assert_sound();
    assert_eq!(trace.value::<i64>("select count(*) from gpu_slice"), 2);
    assert_eq!(calls(&mut trace), [(5000, 0, -1)]);
}

#[test]
fn launch_geometry_and_times_stand_beside_a_kernel() {
    needs!(launch_geometry_and_times_stand_beside_a_kernel: Need::TraceProcessor);
    let making = Making::new(1);
    making.run(
        MAIN,
        &[
            bytes_of(&making.dispatch(1, 77, 100)),
            bytes_of(&making.completion(1, 200, 300)),
        ],
    );
    let mut trace = opened(&[&making]);
    let said = trace.rows::<(String, String)>(
        "select key, display_value from gpu_slice join args using (arg_set_id) \
         where key in ('description', 'queued', 'submit', 'submission_id') order by key",
    );
    let expected = [
        (
            "description",
            "128 x 1 x 1 work-items in workgroups of 64 x 1 x 1",
        ),
        ("queued", "-20ns"),
        ("submission_id", "77"),
        ("submit", "-10ns"),
    ];
    assert_eq!(
        said,
        expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
    );
}

#[test]
fn a_process_that_became_another_program_is_still_one() {
    needs!(a_process_that_became_another_program_is_still_one: Need::TraceProcessor);
    let captures = [Making::new(1), Making::new(1)];
    for (making, start) in captures.iter().zip([1000, 2000]) {
        making.run(MAIN, &[bytes_of(&call(1, 0, start, start + 100))]);
    }
    let mut trace = opened(&captures.each_ref());
    trace.assert_sound();
    assert_eq!(calls(&mut trace), [(1000, 0, 100), (2000, 0, 100)]);
    assert_eq!(
        trace.value::<i64>("select count(*) from process where pid = 1"),
        1
    );
}
