//! Traces of any packets, so that the code after the wire format is reached.

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use gputrail_trace::perfetto::wire::Encoder;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use std::io::Write;

/// Any bytes, or a trace of any packets, by the first byte of the input.
pub fn trace_of(data: &[u8]) -> Vec<u8> {
    let mut input = Unstructured::new(data);
    match input.arbitrary::<u8>() {
        Ok(0) | Err(_) => data.get(1..).unwrap_or_default().to_vec(),
        Ok(kind) => {
            let mut trace = Encoder::default();
            // Traces of gputrail are checked more closely.
            let packet = trace.open(1);
            let system = trace.open(45);
            trace.string(4, "gputrail 1");
            trace.close(system);
            trace.close(packet);
            // The input's end ends the trace.
            let _ = packets(&mut input, &mut trace);
            let mut trace = trace.bytes().to_vec();
            if kind & 2 != 0 {
                let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
                let _ = gzip.write_all(&trace);
                trace = gzip.finish().unwrap_or_default();
            }
            trace
        }
    }
}

fn packets(input: &mut Unstructured<'_>, trace: &mut Encoder) -> Result<()> {
    while !input.is_empty() {
        if input.ratio(1, 20)? {
            let mut group = Encoder::default();
            for _ in 0..input.int_in_range(0..=4)? {
                packet(input, &mut group)?;
            }
            let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
            let _ = zlib.write_all(group.bytes());
            let packet = trace.open(1);
            trace.raw(50, &zlib.finish().unwrap_or_default());
            trace.close(packet);
        }
        packet(input, trace)?;
    }
    Ok(())
}

/// The fields of a packet that are messages, and some that are not.
const DATA: [u32; 12] = [6, 11, 12, 35, 44, 53, 54, 59, 60, 66, 128, 1789];

fn packet(input: &mut Unstructured<'_>, trace: &mut Encoder) -> Result<()> {
    let packet = trace.open(1);
    trace.uint(10, input.int_in_range(0..=3)?);
    trace.uint(8, number(input)?);
    if input.ratio(1, 4)? {
        trace.uint(13, input.int_in_range(0..=3)?);
    }
    if input.ratio(1, 10)? {
        trace.uint(*input.choose(&[42, 58, 87, 98])?, number(input)?);
    }
    for _ in 0..input.int_in_range(1..=2)? {
        let field = *input.choose(&DATA)?;
        message(input, trace, field, 0)?;
    }
    trace.close(packet);
    Ok(())
}

/// Field numbers with a meaning in some message.
const FIELDS: [u32; 24] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17, 18, 19, 20, 21, 23, 24, 52, 1000, 3000,
];

fn message(input: &mut Unstructured<'_>, out: &mut Encoder, field: u32, depth: u32) -> Result<()> {
    let message = out.open(field);
    let count = input.int_in_range(0..=6).unwrap_or(0);
    for _ in 0..count {
        let Ok(field) = input.choose(&FIELDS) else {
            break;
        };
        match input.int_in_range(0..=4).unwrap_or(0) {
            0 if depth < 4 => message_or_nothing(input, out, *field, depth + 1),
            1 => out.string(
                *field,
                input
                    .choose(&["a", "b", "copy", "fill", ""])
                    .unwrap_or(&"a"),
            ),
            2 => out.raw(*field, input.bytes(2).unwrap_or_default()),
            _ => out.uint(*field, number(input).unwrap_or(1)),
        }
    }
    out.close(message);
    Ok(())
}

fn message_or_nothing(input: &mut Unstructured<'_>, out: &mut Encoder, field: u32, depth: u32) {
    let _ = message(input, out, field, depth);
}

/// A number, small in most cases, so that ids coincide.
fn number(input: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match input.int_in_range(0..=9)? {
        0 => input.arbitrary()?,
        1 => u64::MAX,
        _ => input.int_in_range(0..=5)?,
    })
}
