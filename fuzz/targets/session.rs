//! Messages on the session's socket, and its environment variables.
#![no_main]

use gputrail_buffer::Policy;
use gputrail_collect::session::{
    BLOCK_VARIABLE, BUFFERS_VARIABLE, CAPTURE_VARIABLE, POLICY_VARIABLE, OutputPattern, SESSION_VARIABLE,
    Size, RequestedStart, PatternValues, decode_messages,
};
use libfuzzer_sys::fuzz_target;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

const VARIABLES: [&str; 5] = [
    SESSION_VARIABLE,
    CAPTURE_VARIABLE,
    BUFFERS_VARIABLE,
    BLOCK_VARIABLE,
    POLICY_VARIABLE,
];

fuzz_target!(|data: &[u8]| {
    decode_messages(data);
    let text = OsStr::from_bytes(data);
    let _ = Size::parse(text);
    let _ = std::str::from_utf8(data).map(str::parse::<Policy>);
    // Each variable is a line of the input.
    let variable = |name: &str| -> Option<OsString> {
        let line = VARIABLES.iter().position(|one| *one == name)?;
        let value = data.split(|byte| *byte == b'\n').nth(line)?;
        Some(OsStr::from_bytes(value).to_owned())
    };
    if let Err(error) = RequestedStart::from_variables(&variable) {
        assert!(!error.to_string().is_empty());
    }
    if let Ok(pattern) = OutputPattern::parse(text) {
        let values = PatternValues {
            pid: 7,
            host: OsStr::new("host"),
            variable: &variable,
        };
        let _ = pattern.directory_needs_pid();
        let _ = pattern.with_pid().with_suffix(".gputrail").expand(&values);
    }
});
