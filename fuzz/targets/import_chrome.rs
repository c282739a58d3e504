//! A file of trace events: any bytes, or events with any fields.
#![no_main]

use gputrail_convert::export::ChromeWriter;
use gputrail_convert::import::{InputFormat, Inputs};
use gputrail_fuzz::file_of;
use gputrail_trace::model::Producer;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let text = match input.arbitrary::<u8>() {
        Ok(0) | Err(_) => data.get(1..).unwrap_or_default().to_vec(),
        Ok(_) => {
            let mut text = b"[".to_vec();
            // The input's end ends the file.
            let _ = events(&mut input, &mut text);
            text
        }
    };
    let (_file, path) = file_of(&text);
    let Ok(inputs) = Inputs::open(&[path]) else {
        return;
    };
    if inputs.recordings()[0].format() != InputFormat::ChromeTrace {
        return;
    }
    let mut json = ChromeWriter::new(Vec::new());
    let report = inputs.produce(&mut json).expect("memory takes all");
    for finding in &report.findings {
        assert!(
            finding
                .offset
                .is_none_or(|offset| offset <= text.len() as u64)
        );
    }
    let made = json.into_inner();
    assert!(made.ends_with(b"\n]}\n"));
});

fn events(input: &mut Unstructured<'_>, text: &mut Vec<u8>) -> Result<()> {
    while !input.is_empty() {
        if input.ratio(1, 16)? {
            text.extend_from_slice(input.bytes(3)?);
        }
        if input.ratio(1, 16)? {
            let between: [&[u8]; 4] = [b"]\n[", b"]{\"traceEvents\":[", b"{\"z\":nan,", b"{\"ph\":\"X\","];
            text.extend_from_slice(input.choose(&between)?);
        }
        text.push(b'{');
        for _ in 0..input.int_in_range(2..=9)? {
            let name = *input.choose(&[
                "ph", "ts", "dur", "pid", "tid", "id", "cat", "name", "args", "bp", "id2", "bind_id",
                "flow_in", "flow_out",
            ])?;
            let values: &[&str] = match name {
                "ph" => &[
                    "\"X\"", "\"B\"", "\"E\"", "\"b\"", "\"e\"", "\"n\"", "\"i\"", "\"C\"",
                    "\"s\"", "\"t\"", "\"f\"", "\"M\"",
                ],
                "cat" => &[
                    "\"kernel\"",
                    "\"cuda_runtime\"",
                    "\"ac2g\"",
                    "\"gpu_memcpy\"",
                    "\"cuda_sync\"",
                    "\"x\"",
                ],
                "name" => &[
                    "\"process_name\"",
                    "\"thread_sort_index\"",
                    "\"[memory]\"",
                    "\"a\"",
                    "\"\\ud83d\"",
                ],
                "args" => &[
                    "{\"correlation\":1,\"stream\":7}",
                    "{\"correlation\":2,\"device\":-1,\"graph id\":3,\"grid\":[1,2,3],\"block\":[4,5,6]}",
                    "{\"name\":\"n\",\"sort_index\":-5,\"labels\":\"GPU 1\"}",
                    "{\"Total Allocated\":9,\"x\":[[1],{\"y\":null}]}",
                    "7",
                ],
                "bp" => &["\"e\""],
                "flow_in" | "flow_out" => &["true", "false"],
                "pid" => &["0", "1", "2", "-1", "\"[TP00] 1\"", "\"[TP01] 0\"", "\"2_1\"", "\"a\""],
                _ => &[
                    "0",
                    "1",
                    "2",
                    "3.5",
                    "-1",
                    "1e18",
                    "\"0x1\"",
                    "\"\"",
                    "99999999999999999999",
                    "{\"local\":1}",
                ],
            };
            let value = *input.choose(values)?;
            text.extend_from_slice(format!("\"{name}\":{value},").as_bytes());
        }
        text.extend_from_slice(b"\"z\":1},");
    }
    Ok(())
}
