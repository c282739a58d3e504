//! Files of a record in each line: roctracer's lists, nvprof's list of activities, and exports of Nsight Systems to JSON lines,
//! with lines of any words.
#![no_main]

use gputrail_analysis::summary::Summary;
use gputrail_convert::import::Inputs;
use gputrail_fuzz::file_of;
use gputrail_trace::model::Producer;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

/// The first lines of files, which tell the format, and the words of their lines.
const FILES: [(&str, &[&str]); 3] = [
    (
        "1:2 3:4 hipMalloc(ptr) :1\n",
        &[
            "\n",
            "10:20 ",
            "3:4 ",
            "0:0 ",
            "hipLaunchKernel(",
            ") ",
            "kernel=",
            "name ",
            ":7",
            ":7:3",
            "async-copy:1:3",
            "5 3:4 ",
            "1:0:\"x\"",
            "2:0:\"\"",
            "3:9:\"y\"",
            "4:9:\"\"",
            "99999999999999999999:1 ",
        ],
    ),
    (
        "\"Start\",\"Duration\",\"Size\",\"Device\",\"Stream\",\"Name\",\"Correlation_ID\"\ns,ms,KB,,,,\n",
        &[
            "\n",
            ",",
            "1.5",
            "\"GPU (0)\"",
            "7",
            "\"[CUDA memcpy HtoD]\"",
            "\"[CUDA memset]\"",
            "\"cudaMalloc\"",
            "\"kernel [3]\"",
            "==1== ",
            "Start,Duration,",
            "-1",
            "1e400",
            "\"",
        ],
    ),
    (
        "{\"Type\":48,\"TraceProcessEvent\":{\"startNs\":\"1\",\"endNs\":\"2\",\"name\":\"1\"}}\n",
        &[
            "\n",
            "{\"Type\":79,\"CudaEvent\":{",
            "{\"Type\":59,\"NvtxEvent\":{",
            "{\"data\":[",
            "\"a\",",
            "]}",
            "}}",
            ",",
            "\"startNs\":\"3\"",
            "\"endNs\":\"9\"",
            "\"deviceId\":0",
            "\"kernel\":{",
            "\"memcpy\":{",
            "\"sync\":{",
            "}",
            "\"shortName\":\"1\"",
            "\"correlationId\":7",
            "\"globalPid\":\"281475681353728\"",
            "\"Timestamp\":\"5\"",
            "{\"type\":\"String\",\"id\":\"1\",\"value\":\"b\"}",
        ],
    ),
];

fn lines(input: &mut Unstructured<'_>, words: &[&str], text: &mut Vec<u8>) -> Result<()> {
    while !input.is_empty() {
        if input.ratio(1, 16)? {
            text.extend_from_slice(input.bytes(3)?)
        } else {
            text.extend_from_slice(input.choose(words)?.as_bytes())
        }
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let Ok((first, words)) = input.choose(&FILES) else {
        return;
    };
    let mut text = first.as_bytes().to_vec();
    // The input's end ends the file.
    let _ = lines(&mut input, words, &mut text);
    let (_file, path) = file_of(&text);
    let inputs = Inputs::open(&[path]).expect("the first line is known");
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
