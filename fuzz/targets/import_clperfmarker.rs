//! A file of CLPerfMarker: any bytes, or lines of any words.
#![no_main]

use gputrail_analysis::summary::Summary;
use gputrail_convert::import::{InputFormat, Inputs};
use gputrail_fuzz::file_of;
use gputrail_trace::model::Producer;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

const WORDS: [&str; 10] = [
    "\n",
    "\n7\n9\n",
    "clBeginPerfMarker ",
    "clEndPerfMarker ",
    "clEndPerfMarkerEx ",
    "5 ",
    "99999999999999999999 ",
    "a&nbsp;b ",
    "Default ",
    "0 ",
];

fn lines(input: &mut Unstructured<'_>, text: &mut Vec<u8>) -> Result<()> {
    while !input.is_empty() {
        if input.ratio(1, 16)? {
            text.extend_from_slice(input.bytes(3)?)
        } else {
            text.extend_from_slice(input.choose(&WORDS)?.as_bytes())
        }
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let mut text = b"=====Perfmarker Output=====\n".to_vec();
    match input.arbitrary::<bool>() {
        Ok(true) => drop(lines(&mut input, &mut text)),
        _ => text.extend_from_slice(input.take_rest()),
    }
    let (_file, path) = file_of(&text);
    let inputs = Inputs::open(&[path]).expect("its first line is known");
    assert_eq!(inputs.recordings()[0].format(), InputFormat::ClPerfMarker);
    let report = inputs
        .produce(&mut Summary::default())
        .expect("a summary takes all");
    for finding in &report.findings {
        assert!(
            finding
                .offset
                .is_none_or(|offset| offset <= text.len() as u64)
        );
    }
});
