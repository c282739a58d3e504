//! Buffers of a tool with a real program on PoCL: requests of a flush to the source, retirement of calls, selection by
//! context, and dumps of a flight recorder.

use crate::opencl::{COUNT, Handle, OpenCl, Small, on_layer};
use gputrail_buffer::BlockView;
use gputrail_capture::Reader;
use gputrail_collect::context::{
    BufferOptions, Context, FlightOptions, FlightRecorder, RecordBuffer, RecordSelection,
};
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_record::{Activity, Completion, KernelDispatch, Kind, Retirement, Unfinished, flags};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Default)]
struct Seen {
    dispatches: Vec<KernelDispatch>,
    completions: Vec<Completion>,
    retirements: Vec<Retirement>,
}

fn buffer(kinds: &[Kind]) -> (RecordBuffer, Context, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let into = seen.clone();
    let deliver = move |batch: &BlockView<'_>| {
        let mut seen = into.lock().unwrap();
        for record in batch.records() {
            match record.activity() {
                Activity::KernelDispatch(dispatch) => seen.dispatches.push(*dispatch),
                Activity::Completion(completion) => seen.completions.push(*completion),
                Activity::Retirement(retirement) => seen.retirements.push(*retirement),
                _ => {}
            }
        }
    };
    let options = BufferOptions {
        // Records are delivered by flushes only.
        period: Duration::from_secs(3600),
        ..BufferOptions::default()
    };
    let buffer = RecordBuffer::create(options, deliver).unwrap();
    let context = Context::new().unwrap();
    context
        .trace_to(&buffer, RecordSelection::kinds(kinds))
        .unwrap();
    context.start().unwrap();
    (buffer, context, seen)
}

/// Launches the kernel so that it runs when `event` has completed.
fn launch_after(small: &Small<'_>, event: Handle) {
    let (global, local) = ([COUNT], [16]);
    // SAFETY: the call gets what OpenCL asks for.
    let status = unsafe {
        (small.opencl.clEnqueueNDRangeKernel)(
            small.queue,
            small.kernel,
            1,
            null(),
            global.as_ptr(),
            local.as_ptr(),
            1,
            &event,
            null_mut(),
        )
    };
    assert_eq!(status, 0);
}

#[test]
fn a_forced_flush_shows_work_that_waits_and_its_completion_still_comes() {
    needs!(a_forced_flush_shows_work_that_waits_and_its_completion_still_comes: Need::Pocl, Need::OpenClToolchain);
    let test = "buffers::a_forced_flush_shows_work_that_waits_and_its_completion_still_comes";
    on_layer(test, Driver::Threaded, |opencl: &OpenCl| {
        let kinds = [
            Kind::API,
            Kind::KERNEL_DISPATCH,
            Kind::COMPLETION,
            Kind::RETIREMENT,
        ];
        let (buffer, context, seen) = buffer(&kinds);
        let small = Small::new(opencl);
        let mut status = 0;
        // SAFETY: the calls get what OpenCL asks for.
        let event = unsafe { (opencl.clCreateUserEvent)(small.context, &mut status) };
        assert_eq!(status, 0);
        launch_after(&small, event);

        buffer.flush().unwrap();
        let dispatch = seen.lock().unwrap().dispatches[0];
        let of_work = |seen: &Seen| {
            let all = seen.completions.iter().copied();
            all.filter(|completion| completion.work == dispatch.work.id)
                .collect::<Vec<_>>()
        };
        let retired = |seen: &Seen| {
            let all = seen.retirements.iter();
            all.filter(|retirement| retirement.correlation == dispatch.work.correlation)
                .count()
        };
        assert_eq!(of_work(&seen.lock().unwrap()), []);
        buffer.flush_forced().unwrap();
        {
            let seen = seen.lock().unwrap();
            let [shown] = of_work(&seen)[..] else {
                panic!("{:?}", seen.completions);
            };
            assert_eq!(shown.unfinished, Unfinished::AT_FLUSH);
            assert!(shown.header.has(flags::UNFINISHED) && shown.status > 0);
            assert!(!shown.end.is_some());
            assert_eq!(retired(&seen), 0);
        }

        // SAFETY: as above.
        unsafe { assert_eq!((opencl.clSetUserEventStatus)(event, 0), 0) };
        small.finish();
        // The queue may be done before the runtime has called back about the work: the flush queries it.
        buffer.flush().unwrap();
        {
            let seen = seen.lock().unwrap();
            let [_, real] = of_work(&seen)[..] else {
                panic!("{:?}", seen.completions);
            };
            assert_eq!((real.unfinished, real.status), (Unfinished::NO, 0));
            assert_eq!(retired(&seen), 1);
        }

        context
            .enable_kind_in(
                &buffer,
                dispatch.work.context,
                Kind::KERNEL_DISPATCH,
                Some(false),
            )
            .unwrap();
        small.launch();
        let other = Small::new(opencl);
        other.launch();
        other.finish();
        small.finish();
        buffer.flush().unwrap();
        let contexts: Vec<_> = seen
            .lock()
            .unwrap()
            .dispatches
            .iter()
            .map(|dispatch| dispatch.work.context)
            .collect();
        assert_eq!(contexts.len(), 2);
        assert_ne!(contexts[0], contexts[1]);
        // SAFETY: as above.
        unsafe { assert_eq!((opencl.clReleaseEvent)(event), 0) };
        other.release();
        small.release();
    });
}

#[test]
fn a_flight_recorder_dumps_while_the_program_goes_on() {
    needs!(a_flight_recorder_dumps_while_the_program_goes_on: Need::Pocl, Need::OpenClToolchain);
    let test = "buffers::a_flight_recorder_dumps_while_the_program_goes_on";
    on_layer(test, Driver::Threaded, |opencl: &OpenCl| {
        let folder = tempfile::tempdir().unwrap();
        let options = FlightOptions {
            keep_bytes: 64 * 4096,
            block_bytes: 4096,
            threads: 64,
            ..FlightOptions::default()
        };
        let recorder = FlightRecorder::start(options).unwrap();
        let small = Small::new(opencl);
        // Far more than the recorder keeps.
        for _ in 0..2000 {
            small.launch();
        }
        small.finish();
        let dump = recorder.dump(&folder.path().join("dump")).unwrap();
        small.launch();
        small.finish();
        small.release();

        let reader = Reader::open(&dump.path).unwrap();
        assert!(reader.ended() && reader.findings().is_empty());
        let (mut chunks, mut dispatches) = (reader.chunks(), Vec::new());
        while let Some(chunk) = chunks.next() {
            let of_chunk = chunk
                .records()
                .filter_map(|record| record.read::<KernelDispatch>());
            dispatches.extend(of_chunk);
        }
        assert!(!dispatches.is_empty() && dispatches.len() < 2000);
        // The kernel was named long before the kept records.
        let kernel = reader.metadata().kernels[&dispatches[0].kernel];
        assert_eq!(reader.metadata().string(kernel.name), "square");
        // The readings that relate device times to host times.
        assert!(!reader.metadata().pairs.is_empty() && reader.metadata().snapshots.len() > 1);
    });
}
