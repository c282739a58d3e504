//! Definitions of counters and files that name them: any text, or pieces of the formats in any order; then all metrics are evaluated and planned.
#![no_main]

use gputrail_counters::{self as counters, Catalogue, CounterIndex, Measured, Sources};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

const PIECES: [&str; 40] = [
    "pmc: A B\n",
    "range: 3:9\n",
    "gpu: 0\n",
    "kernel: x\n",
    "jobs:\n",
    "  - pmc: [A, B]\n",
    "    kernel_include_regex: 'a+'\n",
    "    kernel_iteration_range: \"[2-4], [8-]\"\n",
    "<gfx9>\n",
    "</gfx9>\n",
    "<global>\n",
    "<gfx10 base=\"gfx9\">",
    "<metric name=\"A\" block=SQ event=1>",
    "<metric name=\"B\" expr=sum(A,16)/A>",
    "#include \"x\"\n",
    "gputrail:\n",
    "rocprofiler-sdk:\n  counters:\n",
    "  - name: A\n",
    "    definitions:\n",
    "    - architectures: [gfx9]\n",
    "      block: SQ\n      event: 4\n",
    "      expression: reduce(A,max)*B\n",
    "      expression: select(accumulate(A,HIGH_RES),[D=[0:3]])\n",
    "  blocks:\n",
    "  - {name: SQ, architectures: [gfx9], capacity: 2}\n",
    "name=P\n",
    "[CLGfx8]\n",
    "TA*_X[0..15]\n",
    "comp=0,1..3,sum3,/,(100),*\n",
    "usage=items\n",
    "SQ_X\n",
    "comp=",
    "(",
    ")",
    "-",
    "1e300*",
    "/0",
    "A[3]",
    "\n",
    "min(A,2)",
];

fn text(data: &[u8]) -> Result<String> {
    let mut input = Unstructured::new(data);
    let mut text = String::new();
    while !input.is_empty() && text.len() < 1 << 14 {
        if input.ratio(1, 8)? {
            text.push_str(input.arbitrary::<&str>().unwrap_or("?"))
        } else {
            text.push_str(input.choose(&PIECES)?)
        }
    }
    Ok(text)
}

fuzz_target!(|data: &[u8]| {
    let made = text(data).unwrap_or_default();
    for text in [String::from_utf8_lossy(data).into_owned(), made] {
        for is_yaml in [false, true] {
            if let Ok(input) = gputrail_definitions::read_input(&text, is_yaml) {
                let ranges = input
                    .kernels
                    .dispatches
                    .iter()
                    .chain(&input.kernels.iterations);
                for range in ranges {
                    assert_eq!(
                        counters::NumberRange::read(&range.to_string()),
                        Some(*range)
                    );
                }
            }
        }
        let mut sources = Sources::default();
        let mut include = |_: &str| Ok("<gfx9>\n<metric name=\"C\" expr=B>\n</gfx9>".to_owned());
        gputrail_definitions::read_text("fuzzed", &text, &mut include, &mut sources);
        let catalogue = Catalogue::from(sources);
        for architecture in catalogue.architectures.values() {
            let all: Vec<CounterIndex> = (0..architecture.counters().len() as u32)
                .map(CounterIndex)
                .collect();
            let columns = counters::evaluate(
                architecture,
                &all,
                &Measured {
                    dispatches: 2,
                    ..Measured::default()
                },
            );
            for column in columns {
                assert!(column.get(0).is_ok_and(f64::is_finite) || column.get(0).is_err());
            }
            let _ = counters::plan(architecture, &all);
        }
    }
});
