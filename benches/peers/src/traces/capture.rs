//! Captures of generated calls, like those of a recording of clpeak: every enqueue has four cheap calls beside it.

use std::path::Path;

use bytemuck::bytes_of;
use gputrail_buffer::BlockView;
use gputrail_buffer::clock::{TickSource, virtual_snapshot};
use gputrail_capture::names::Names;
use gputrail_capture::{FileHeader, Writer};
use gputrail_record::*;

/// The function of each of the five calls around an enqueue.
const FUNCTIONS: [&str; 5] = [
    "clSetKernelArg",
    "clSetKernelArg",
    "clGetEventInfo",
    "clReleaseEvent",
    "clEnqueueNDRangeKernel",
];

/// The times before its start at which each kernel is queued and submitted, in nanoseconds.
pub const QUEUED_BEFORE: u64 = 4_700;
pub const SUBMITTED_BEFORE: u64 = 900;

/// Writes a capture of `enqueues` enqueues, with two arguments of each cheap call if `arguments`; returns the number of
/// records.
pub fn write(path: &Path, enqueues: u64, arguments: bool) -> u64 {
    let ticks = TickSource::Virtual.code();
    let header = FileHeader::new(ticks, ProcessId(4242), 1_000_000_000, 0, [1; 16]);
    let writer = Writer::create(path, &header).expect("room for the capture");
    let names = Names::writing_to(writer.clone());
    let agent = names.agent(Agent {
        name: names.string("GPU"),
        ..Agent::blank()
    });
    let queue = names.queue(Queue {
        agent,
        ..Queue::blank()
    });
    let kernel = names.kernel(KernelSymbol {
        name: names.string("saxpy"),
        ..KernelSymbol::blank()
    });
    for (number, function) in (0..).zip(FUNCTIONS) {
        let group = if function.contains("Enqueue") {
            OperationGroup::ENQUEUE
        } else {
            OperationGroup::OTHER
        };
        let operation = Operation {
            domain: Domain::OPENCL,
            number,
        };
        names.operation(operation, function, "index:uint,size:uint", group);
    }
    for time in [1, 10_000_000_000] {
        names.clock_snapshot(virtual_snapshot(Ticks(time)));
        names.clock_pair(ClockPair {
            before: Ticks(time),
            after: Ticks(time),
            device: DeviceTime(time),
            agent,
            ..ClockPair::blank()
        });
    }
    let thread = ThreadId(4242);
    let (mut calls, mut completions) = (Vec::new(), Vec::new());
    let mut time = 1_000;
    for number in 0..enqueues {
        for call in 0..5 {
            time += 700;
            let correlation = CorrelationId(number * 5 + call + 1);
            if call == 4 {
                calls.extend_from_slice(bytes_of(&KernelDispatch {
                    work: WorkHeader {
                        id: WorkId(number + 1),
                        correlation,
                        enqueued: Ticks(time),
                        agent,
                        queue,
                        thread,
                        ..WorkHeader::default()
                    },
                    kernel,
                    grid: [1 << 20, 1, 1],
                    workgroup: [256, 1, 1],
                    ..KernelDispatch::blank()
                }));
                completions.extend_from_slice(bytes_of(&Completion {
                    work: WorkId(number + 1),
                    correlation,
                    queued: DeviceTime(time + 5_000 - QUEUED_BEFORE),
                    submitted: DeviceTime(time + 5_000 - SUBMITTED_BEFORE),
                    start: DeviceTime(time + 5_000),
                    end: DeviceTime(time + 6_400),
                    completed: Ticks(time + 7_000),
                    agent,
                    ..Completion::blank()
                }));
            }
            let operation = Operation {
                domain: Domain::OPENCL,
                number: call as u16,
            };
            if arguments && call < 4 {
                let arguments = Arguments::new(correlation, operation, &[number % 4, 1 << 20]);
                let bytes = Arguments::bytes_for(2);
                calls.extend_from_slice(&bytes_of(&arguments)[..bytes]);
            }
            calls.extend_from_slice(bytes_of(&Api {
                start: Ticks(time),
                end: Ticks(time + 300),
                correlation,
                thread,
                operation,
                ..Api::blank()
            }));
        }
        if calls.len() > 200_000 || number + 1 == enqueues {
            for (lane, bytes) in [(1, &mut calls), (2, &mut completions)] {
                let view = BlockView {
                    lane,
                    thread,
                    sequence: number as u32,
                    offset: 0,
                    first_record: 0,
                    bytes,
                };
                writer.records(&view).expect("room for the capture");
                bytes.clear();
            }
        }
    }
    7 * enqueues
}
