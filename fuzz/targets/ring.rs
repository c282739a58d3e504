//! The ring of a perf event with any contents.
#![no_main]

use gputrail_sources::perf::{RingRecord, RingRecords};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut records = RingRecords::new(data);
    let mut paths = 0;
    for record in records.by_ref() {
        if let RingRecord::Mapped { path, .. } = record {
            paths += path.len();
        }
    }
    assert!(paths <= data.len());
    assert!(records.next().is_none());
});
