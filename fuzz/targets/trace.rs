//! A trace of any bytes, or of packets of any fields.
#![no_main]

use gputrail_analysis::hotspots::{HotspotAnalysis, Sample};
use gputrail_analysis::summary::Summary;
use gputrail_fuzz::traces::trace_of;
use gputrail_trace::model::Producer;
use gputrail_trace::perfetto::reader::{PacketPosition, TraceReplay, check, info};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let trace = trace_of(data);
    let outcome = check(&trace[..]);
    for finding in outcome.findings.list() {
        assert!(!finding.what.is_empty());
        let end = PacketPosition {
            offset: outcome.bytes,
            inner: u32::MAX,
        };
        assert!(finding.position <= end);
    }
    let info = info(&trace[..]);
    assert_eq!(info.outcome.packets, outcome.packets);
    let mut summary = Summary::default();
    let replayed = TraceReplay::new(&trace[..])
        .produce(&mut summary)
        .expect("a summary takes all");
    assert_eq!(replayed.outcome.packets, outcome.packets);
    let each = |sample: &Sample<'_>| assert!(sample.instruction.len() <= trace.len());
    let mut hotspots = HotspotAnalysis::with_each(each);
    TraceReplay::new(&trace[..])
        .produce(&mut hotspots)
        .expect("hotspots take all");
    for kernel in hotspots.report().kernels {
        let of_lines = kernel.lines.iter().map(|line| line.tally.samples);
        let of_lines = of_lines.fold(0, u64::saturating_add);
        assert!(of_lines <= kernel.tally.samples);
    }
    let _ = (summary.functions(), summary.kernels(), summary.gpus());
});
