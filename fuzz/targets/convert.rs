//! A capture of any chunks, converted to a trace.
#![no_main]

use gputrail_analysis::hotspots::HotspotAnalysis;
use gputrail_capture::Reader;
use gputrail_fuzz::{capture_of, file_of};
use gputrail_trace::capture::Options;
use gputrail_trace::make_trace;
use gputrail_trace::perfetto::Exporter;
use gputrail_trace::perfetto::reader::check;
use gputrail_trace::perfetto::schema::Trace;
use libfuzzer_sys::fuzz_target;
use prost::Message;

fuzz_target!(|data: &[u8]| {
    // Two captures of one machine, if the input is cut in two.
    let (first, second) = match data.iter().position(|byte| *byte == 0xfe) {
        Some(at) => data.split_at(at),
        None => (data, &[][..]),
    };
    let captures: Vec<_> = [first, second]
        .map(capture_of)
        .iter()
        .map(|one| file_of(one))
        .collect();
    let readers = captures
        .iter()
        .filter_map(|(_, path)| Reader::open(path).ok());
    let readers: Vec<Reader> = readers.collect();
    let mut trace = Vec::new();
    let options = Options {
        arguments: true,
        raw_samples: true,
        ..Options::default()
    };
    let mut hotspots = HotspotAnalysis::default();
    let converted = make_trace(&readers, Exporter::new(&mut trace), &options, &mut hotspots);
    let bytes = converted.expect("memory takes any trace").bytes;
    assert_eq!(bytes, trace.len() as u64);
    Trace::decode(&trace[..]).expect("a well-formed trace");
    let _ = hotspots.report();
    // Whatever was recorded, the samples that we write can be read.
    for finding in check(&trace[..]).findings.list() {
        assert!(!finding.what.contains("samples refer"), "{finding}");
        assert!(!finding.what.contains("cannot be read"), "{finding}");
    }
});
