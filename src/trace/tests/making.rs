//! Captures that are made record by record, and what the tests of their traces look for.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;

use super::Reader as TraceReader;
use gputrail_buffer::BlockView;
use gputrail_buffer::clock::{TickSource, virtual_snapshot};
use gputrail_capture::names::Names;
use gputrail_capture::{FileHeader, Reader, Writer};
use gputrail_record::*;
use gputrail_trace::capture::{Options, Report};
use gputrail_trace::perfetto::Exporter;
use gputrail_trace::perfetto::schema::trace_packet::Data;
use gputrail_trace::perfetto::schema::{GpuRenderStageEvent, InternedData, TrackEvent};
use gputrail_trace::{MadeTrace, make_trace};

pub(super) const CALL: Operation = Operation {
    domain: Domain::OPENCL,
    number: 1,
};

pub(super) const MAIN: ThreadId = ThreadId(100);

pub(super) const HELPER: ThreadId = ThreadId(101);

/// A capture that is being made. Ticks and device times are nanoseconds of BOOTTIME.
pub(super) struct Making {
    pub(super) directory: tempfile::TempDir,
    pub(super) path: PathBuf,
    pub(super) writer: Writer,
    pub(super) names: Names,
    pub(super) agent: AgentId,
    queue: QueueId,
    pub(super) kernel: KernelId,
    /// The number of blocks of each lane.
    blocks: RefCell<HashMap<ThreadId, u32>>,
}

impl Making {
    pub(super) fn new(pid: u32) -> Making {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.gputrail");
        let ticks = TickSource::Virtual.code();
        let header = FileHeader::new(ticks, ProcessId(pid), 1_000_000_000, 0, [pid as u8; 16]);
        let writer = Writer::create(&path, &header).unwrap();
        let names = Names::writing_to(writer.clone());
        names.process(Process {
            id: ProcessId(pid),
            executable: names.string("/usr/bin/app"),
            command: names.string("app --fast"),
            host: names.string("machine"),
            version: names.string("0.1.0"),
            configuration: names.string("lossless"),
            ..Process::blank()
        });
        for time in [1, 1_000_000_000] {
            names.clock_snapshot(virtual_snapshot(Ticks(time)));
        }
        let agent = names.agent(Agent {
            name: names.string("Device"),
            architecture: names.string("gfx"),
            domain: Domain::OPENCL,
            kind: AgentKind::GPU,
            ..Agent::blank()
        });
        for time in [1, 1_000_000_000] {
            names.clock_pair(ClockPair {
                before: Ticks(time),
                after: Ticks(time),
                device: DeviceTime(time),
                agent,
                ..ClockPair::blank()
            });
        }
        let context = names.context(Context {
            agent,
            domain: Domain::OPENCL,
            ..Context::blank()
        });
        let queue = names.queue(Queue {
            context,
            agent,
            ..Queue::blank()
        });
        let kernel = names.kernel(KernelSymbol {
            name: names.string("saxpy"),
            ..KernelSymbol::blank()
        });
        names.thread(MAIN, "main");
        names.operation(
            CALL,
            "clCall",
            "size:uint,name:string",
            OperationGroup::ENQUEUE,
        );
        Making {
            directory,
            path,
            writer,
            names,
            agent,
            queue,
            kernel,
            blocks: RefCell::default(),
        }
    }

    /// The lane of `thread` overwrites a block of records.
    pub(super) fn overwrite(&self, thread: ThreadId) {
        *self.blocks.borrow_mut().entry(thread).or_default() += 1;
    }

    /// Appends a block of records.
    pub(super) fn run(&self, thread: ThreadId, records: &[&[u8]]) {
        let mut blocks = self.blocks.borrow_mut();
        let block = blocks.entry(thread).or_default();
        let view = BlockView {
            lane: thread.0,
            thread,
            sequence: *block,
            offset: 0,
            first_record: 0,
            bytes: &records.concat(),
        };
        self.writer.records(&view).unwrap();
        *block += 1;
    }

    pub(super) fn dispatch(&self, work: u64, call: u64, enqueued: u64) -> KernelDispatch {
        KernelDispatch {
            work: WorkHeader {
                id: WorkId(work),
                correlation: CorrelationId(call),
                enqueued: Ticks(enqueued),
                agent: self.agent,
                queue: self.queue,
                thread: MAIN,
                ..WorkHeader::default()
            },
            kernel: self.kernel,
            grid: [128, 1, 1],
            workgroup: [64, 1, 1],
            ..KernelDispatch::blank()
        }
    }

    pub(super) fn completion(&self, work: u64, start: u64, end: u64) -> Completion {
        Completion {
            work: WorkId(work),
            queued: DeviceTime(start.saturating_sub(20)),
            submitted: DeviceTime(start.saturating_sub(10)),
            start: DeviceTime(start),
            end: DeviceTime(end),
            completed: Ticks(end + 5),
            agent: self.agent,
            ..Completion::blank()
        }
    }

    pub(super) fn capture(&self) -> Reader {
        self.writer.end().unwrap();
        Reader::open(&self.path).unwrap()
    }

    pub(super) fn convert(&self) -> (Report, TraceReader) {
        converted(&[self.capture()], &Options::default())
    }
}

pub(super) fn converted(captures: &[Reader], options: &Options) -> (Report, TraceReader) {
    let mut out = Vec::new();
    let converted = make_trace(captures, Exporter::new(&mut out), options, &mut ());
    let MadeTrace { report, bytes, .. } = converted.unwrap();
    assert_eq!(bytes, out.len() as u64);
    (report, TraceReader::new(&out))
}

pub(super) fn call(id: u64, ancestor: u64, start: u64, end: u64) -> Api {
    Api {
        start: Ticks(start),
        end: Ticks(end),
        correlation: CorrelationId(id),
        ancestor: CorrelationId(ancestor),
        thread: MAIN,
        operation: CALL,
        ..Api::blank()
    }
}

/// Begins of calls, with their times.
pub(super) fn begins(trace: &TraceReader) -> Vec<(u64, TrackEvent)> {
    let mut begins = Vec::new();
    trace.walk(|packet, time, _| {
        if let Some(Data::TrackEvent(event)) = &packet.data
            && event.r#type == Some(1)
        {
            begins.push((time, event.clone()));
        }
    });
    begins
}

pub(super) fn stage_name(event: &GpuRenderStageEvent, interned: &InternedData) -> String {
    let mut specifications = interned.gpu_specifications.iter();
    let stage = specifications.find(|specification| specification.iid == event.stage_iid);
    stage.unwrap().name().to_owned()
}

pub(super) fn details(event: &GpuRenderStageEvent) -> Vec<(&str, &str)> {
    let details = event.extra_data.iter();
    details
        .map(|detail| (detail.name(), detail.value()))
        .collect()
}
