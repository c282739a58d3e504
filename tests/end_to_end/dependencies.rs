//! Dependencies: by event lists, by barriers, and by blocking calls.

use std::collections::{BTreeMap, BTreeSet};

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;

use crate::command::{TestDir, well};

#[test]
fn work_and_calls_are_tied_to_the_work_that_they_waited_for() {
    needs!(work_and_calls_are_tied_to_the_work_that_they_waited_for:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("waits");
    well(&mut dir.record(Driver::Threaded, &program, &[]));
    let mut trace = dir.trace();
    trace.assert_sound();
    // Work by its event id, which the call that enqueued it names.
    let names: BTreeMap<String, String> = trace
        .rows::<(String, String)>(
            "select distinct submitted.display_value, g.name from slice s join args submitted using (arg_set_id) \
             join args correlation using (arg_set_id) join gpu_slice g on correlation.int_value = g.submission_id \
             where submitted.key glob 'gpu_correlation.render_stage_submission_event_ids*' \
             and correlation.key = 'debug.correlation_id'",
        )
        .into_iter()
        .collect();
    let named = |ids: &str| -> BTreeSet<String> {
        let ids = ids.split(", ");
        ids.map(|id| names.get(id).cloned().unwrap_or(id.into()))
            .collect()
    };
    let waits: BTreeMap<String, BTreeSet<String>> = trace
        .rows::<(String, String)>(
            "select name, extract_arg(arg_set_id, 'waits_for') from gpu_slice \
             where extract_arg(arg_set_id, 'waits_for') is not null",
        )
        .into_iter()
        .map(|(name, ids)| (name, named(&ids)))
        .collect();
    let expected = [
        ("after", &["barrier"][..]),
        ("barrier", &["before"]),
        ("both", &["first", "second"]),
    ];
    let expected = expected.map(|(name, of)| {
        let of = of.iter().map(|name| (*name).to_owned());
        (name.to_owned(), of.collect::<BTreeSet<_>>())
    });
    assert_eq!(waits, BTreeMap::from(expected));
    let waited: Vec<(String,)> = trace.rows(
        "select display_value from slice join args using (arg_set_id) where name = 'clWaitForEvents' \
         and key glob 'gpu_correlation.render_stage_wait_event_ids*'",
    );
    let waited: BTreeSet<String> = waited.iter().flat_map(|(id,)| named(id)).collect();
    let expected = ["first", "second", "after"].map(str::to_owned);
    assert_eq!(waited, BTreeSet::from(expected));
}
