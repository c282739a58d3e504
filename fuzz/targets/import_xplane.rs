//! An XPlane file: any bytes behind the name of a plane, or messages of any fields in each other.
#![no_main]

use gputrail_analysis::summary::Summary;
use gputrail_convert::import::{InputFormat, Inputs};
use gputrail_fuzz::file_of;
use gputrail_trace::model::Producer;
use gputrail_trace::perfetto::Exporter;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

/// Names of planes, lines, events and statistics that have a meaning.
const NAMES: [&str; 16] = [
    "/device:GPU:0",
    "/device:TPU:1",
    "/host:CPU",
    "/host:metadata",
    "Task Environment",
    "Stream #7(Compute)",
    "XLA Ops",
    "profile_start_time",
    "correlation_id",
    "kernel_details",
    "memcpy_details",
    "program_id",
    "hlo_op",
    "hipLaunchKernel",
    "grid:1,2,3 block:4,5,6 regs:7",
    "kind_src:pinned size:9 word",
];

/// Deepest message: of the source line of an operation in HLO.
const DEPTH: u32 = 10;

fn varint(mut value: u64, message: &mut Vec<u8>) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

fn message(input: &mut Unstructured<'_>, depth: u32) -> Result<Vec<u8>> {
    let mut made = Vec::new();
    for _ in 0..input.int_in_range(0..=6)? {
        let field = input.int_in_range(1_u64..=11)?;
        match input.int_in_range(0..=7)? {
            0 => {
                varint(field << 3, &mut made);
                varint(input.arbitrary()?, &mut made);
            }
            1 | 2 => {
                varint(field << 3, &mut made);
                varint(input.int_in_range(0..=4)?, &mut made);
            }
            3 => {
                varint(field << 3 | 1, &mut made);
                made.extend_from_slice(input.bytes(8)?);
            }
            4 | 5 => bytes(field, input.choose(&NAMES)?.as_bytes(), &mut made),
            6 if depth < DEPTH => bytes(field, &message(input, depth + 1)?, &mut made),
            _ if depth < DEPTH => {
                let inner = message(input, depth + 1)?;
                bytes(input.int_in_range(1..=7)?, &inner, &mut made);
            }
            _ => made.extend_from_slice(input.bytes(2)?),
        }
    }
    Ok(made)
}

fn bytes(field: u64, content: &[u8], message: &mut Vec<u8>) {
    varint(field << 3 | 2, message);
    varint(content.len() as u64, message);
    message.extend_from_slice(content);
}

fn file(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut made = Vec::new();
    let mut first = Vec::new();
    bytes(2, b"/device:GPU:0", &mut first);
    if input.ratio(1, 4)? {
        bytes(1, &first, &mut made);
        made.extend_from_slice(input.bytes(input.len())?);
        return Ok(made);
    }
    first.extend_from_slice(&message(input, 1)?);
    bytes(1, &first, &mut made);
    while !input.is_empty() {
        let mut plane = Vec::new();
        bytes(2, input.choose(&NAMES)?.as_bytes(), &mut plane);
        plane.extend_from_slice(&message(input, 1)?);
        bytes(1, &plane, &mut made);
    }
    Ok(made)
}

fuzz_target!(|data: &[u8]| {
    let Ok(bytes) = file(&mut Unstructured::new(data)) else {
        return;
    };
    let (_file, path) = file_of(&bytes);
    let inputs = Inputs::open(&[path]).expect("its first plane is known");
    assert_eq!(inputs.recordings()[0].format(), InputFormat::XPlane);
    let mut consumers = (Exporter::new(std::io::sink()), Summary::default());
    let report = inputs
        .produce(&mut consumers)
        .expect("all that is read can be written");
    for finding in &report.findings {
        assert!(
            finding
                .offset
                .is_none_or(|offset| offset <= bytes.len() as u64)
        );
    }
});
