//! A trace of any bytes, or of packets of any fields.
#![no_main]

use gputrail::perfetto::reader::{Place, check, info, replay};
use gputrail::summary::Summary;
use gputrail_fuzz::traces::trace_of;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let trace = trace_of(data);
    let outcome = check(&trace[..]);
    for finding in outcome.findings.list() {
        assert!(!finding.what.is_empty());
        let end = Place {
            offset: outcome.bytes,
            inner: u32::MAX,
        };
        assert!(finding.place <= end);
    }
    let info = info(&trace[..]);
    assert_eq!(info.outcome.packets, outcome.packets);
    let mut summary = Summary::default();
    let replayed = replay(&trace[..], &mut summary);
    assert_eq!(replayed.outcome.packets, outcome.packets);
    let _ = (summary.functions(), summary.kernels(), summary.gpus());
});
