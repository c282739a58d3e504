//! The map of functions that Python and JITs write for perf.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    assert!(gputrail_code::call_stacks::read_perf_map(bytes) <= lines + bytes.len() / 8192);
});
