//! Source lines with counted samples of a kernel on PoCL, for tools that request them.

use crate::opencl::{OpenCl, Small, on_layer};
use gputrail_buffer::BlockView;
use gputrail_collect::context::{BufferOptions, Context, RecordBuffer, RecordSelection};
use gputrail_collect::process;
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_interface::sampling::{Deliver, Request};
use gputrail_record::{
    Activity, InstructionCorrelation, Kind, SampleAggregate, SamplingMethod, SamplingUnit,
    SourceLocator, SourceLocatorId,
};
use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex};

/// Its loop is on line 3.
const HOT: &CStr = c"kernel void square(global int *x) {
    int sum = x[get_global_id(0)];
    for (int round = 0; round < 20000; round++) { sum = sum * 3 + round; }
    x[get_global_id(0)] = sum;
}";
const HOT_LINE: u32 = 3;

#[derive(Default)]
struct Seen {
    aggregates: Vec<SampleAggregate>,
    locators: Vec<SourceLocator>,
    instructions: Vec<InstructionCorrelation>,
}

/// Samples some launches, with records of these kinds beside the counts.
fn sampled(small: &Small<'_>, kinds: &[Kind]) -> Seen {
    gputrail_code::reader::link(&gputrail_symbols::GPUTRAIL_SYMBOLS);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let into = seen.clone();
    let deliver = move |batch: &BlockView<'_>| {
        let mut seen = into.lock().unwrap();
        for record in batch.records() {
            match record.activity() {
                Activity::SampleAggregate(one) => seen.aggregates.push(*one),
                Activity::SourceLocator(one) => seen.locators.push(*one),
                Activity::InstructionCorrelation(one) => seen.instructions.push(*one),
                _ => {}
            }
        }
    };
    let buffer = RecordBuffer::create(BufferOptions::default(), deliver).unwrap();
    let context = Context::new().unwrap();
    context
        .trace_to(&buffer, RecordSelection::kinds(kinds))
        .unwrap();
    let agent = process::board().unwrap().sampling().agents()[0];
    let every = Request {
        method: SamplingMethod::HOST_TRAP,
        unit: SamplingUnit::TIME,
        interval: 1_000_000,
    };
    let asked = context.sample(&buffer, agent, every, Deliver::Aggregates);
    asked.unwrap();
    context.start().unwrap();
    for _ in 0..20 {
        small.launch();
    }
    small.finish();
    context.stop().unwrap();
    buffer.flush().unwrap();
    drop((context, buffer));
    // The thread that samples may hold the buffer, and with it the closure, a moment longer.
    std::mem::take(&mut *seen.lock().unwrap())
}

fn a_kernels_lines(opencl: &OpenCl) {
    let _observes = Context::new().unwrap();
    // Options with which old PoCL has lines, too.
    let small = Small::of(opencl, HOT, c"-g -cl-opt-disable");

    let without = sampled(&small, &[Kind::KERNEL_DISPATCH]);
    assert!(!without.aggregates.is_empty());
    assert!(without.locators.is_empty() && without.instructions.is_empty());
    let unknown = |one: &SampleAggregate| one.source_locator == SourceLocatorId::NONE;
    assert!(without.aggregates.iter().all(unknown));

    let seen = sampled(
        &small,
        &[Kind::SOURCE_LOCATOR, Kind::INSTRUCTION_CORRELATION],
    );
    let lines: HashMap<_, _> = seen.locators.iter().map(|one| (one.id, one.line)).collect();
    assert_eq!(lines.len(), seen.locators.len(), "each comes once");
    let received: HashMap<_, _> = seen
        .instructions
        .iter()
        .map(|one| ((one.code_object, one.offset), one))
        .collect();
    assert_eq!(received.len(), seen.instructions.len(), "each comes once");
    let (mut all, mut hot) = (0, 0);
    for one in &seen.aggregates {
        all += one.samples;
        if lines.get(&one.source_locator) == Some(&HOT_LINE) {
            hot += one.samples;
        }
        if cfg!(target_arch = "x86_64") {
            let instruction = received[&(one.code_object, one.offset)];
            assert_eq!(instruction.source_locator, one.source_locator);
            assert!(instruction.text.is_some());
        }
    }
    assert!(hot * 100 >= all * 95, "{hot} of {all} samples: {lines:?}");
    small.release();
}

#[test]
fn a_tool_that_counts_samples_gets_their_lines_beside_them() {
    needs!(a_tool_that_counts_samples_gets_their_lines_beside_them: Need::Pocl, Need::OpenClToolchain);
    let test = "lines::a_tool_that_counts_samples_gets_their_lines_beside_them";
    on_layer(test, Driver::Threaded, a_kernels_lines);
}
