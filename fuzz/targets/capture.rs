//! A capture of any bytes, or of any chunks.
#![no_main]

use gputrail_capture::Reader;
use gputrail_fuzz::{capture_of, file_of};
use gputrail_record::*;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let capture = capture_of(data);
    let (_file, path) = file_of(&capture);
    let reader = match Reader::open(&path) {
        Ok(reader) => reader,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let metadata = reader.metadata();
    for kernel in metadata.kernels.values() {
        let _ = metadata.string(kernel.name).len();
    }
    let mut bytes = 0;
    let mut chunks = reader.chunks();
    while let Some(chunk) = chunks.next() {
        for record in chunk.records() {
            bytes += record.bytes().len();
            if let Some(api) = record.read::<Api>() {
                let _ = metadata.operation(api.operation);
            }
        }
        assert!(chunk.file_offset < capture.len() as u64);
    }
    assert!(bytes <= capture.len());
    assert!(chunks.position() <= capture.len() as u64);
    for finding in reader.findings().iter().chain(chunks.findings()) {
        assert!(finding.offset <= capture.len() as u64);
    }
});
