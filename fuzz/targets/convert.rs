//! A capture of any chunks, made into a trace.
#![no_main]

use gputrail::capture::Reader;
use gputrail::perfetto::schema::Trace;
use gputrail::perfetto::{Observer, Options, convert};
use gputrail_fuzz::{capture_of, file_of};
use libfuzzer_sys::fuzz_target;
use prost::Message;

struct Nobody;

impl Observer for Nobody {}

fuzz_target!(|data: &[u8]| {
    // Two captures of one machine, where the input is cut in two.
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
        ..Options::default()
    };
    let report =
        convert(&readers, &mut trace, &options, &mut Nobody).expect("memory takes any trace");
    assert_eq!(report.bytes, trace.len() as u64);
    Trace::decode(&trace[..]).expect("a well-formed trace");
});
