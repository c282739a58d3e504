//! Two traces of any bytes or packets, merged: the result can be read to its end.
#![no_main]

use gputrail_fuzz::traces::trace_of;
use gputrail_trace::perfetto::merge::{merge, place, survey};
use gputrail_trace::perfetto::reader::check;
use libfuzzer_sys::fuzz_target;
use std::collections::HashMap;

fuzz_target!(|data: &[u8]| {
    let (first, second) = data.split_at(data.len() / 2);
    let traces = [first, second].map(trace_of);
    let surveys: Vec<_> = traces.iter().map(|trace| survey(&trace[..])).collect();
    // Without a common clock, the user gives an offset.
    let given = HashMap::from([(
        1,
        i64::from_le_bytes(*second.first_chunk().unwrap_or(&[0; 8])),
    )]);
    let placements = place(&surveys, &HashMap::new())
        .or_else(|_| place(&surveys, &given))
        .expect("the offset is given");
    let parts = traces.iter().zip(&surveys).zip(placements);
    let parts = parts
        .map(|((trace, survey), placement)| (&trace[..], survey, placement))
        .collect();
    let mut merged = Vec::new();
    merge(parts, &mut merged).expect("memory takes any trace");
    let outcome = check(&merged[..]);
    assert_eq!(outcome.bytes, merged.len() as u64);
    for finding in outcome.findings.list() {
        assert!(!finding.what.contains("not a packet:") && !finding.what.contains("trace was cut"));
    }
});
