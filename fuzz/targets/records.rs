//! A run of any bytes as records.
#![no_main]

use gputrail_record::*;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut records = Records::new(data);
    let mut seen = 0;
    for record in records.by_ref() {
        seen += record.bytes().len();
        assert_eq!(record.bytes().len(), record.header().bytes());
        let _ = (
            record.string(),
            record.get::<Api>(),
            record.read::<Arguments>(),
        );
        let _ = (record.read::<StringName>(), record.get::<KernelDispatch>());
        let _ = format!("{:?} {:?}", record.kind(), record.read::<MemoryCopy>());
        let _ = record.kind().index();
    }
    match records.malformed() {
        Some(malformed) => assert_eq!(malformed.offset, seen),
        None => assert_eq!(seen, data.len()),
    }
});
