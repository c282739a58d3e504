//! A tool that uses every part of `gputrail_tool` on a program that builds a kernel and launches it repeatedly
//! (`hot_loop`). At its end it prints how many launches it has counted, and every deviation from the expectation.

use gputrail_record::*;
use gputrail_tool::sampling::{self, Deliver, PeriodLevel, Request, SamplingPeriod};
use gputrail_tool::{
    self as tool, Attributes, BlockClient, BlockView, Buffer, BufferOptions, Callback,
    CallbackThread, ClientBlock, CompletedBlock, Context, Error, Finaliser, FlightOptions,
    FlightRecorder, InternalThread, InternalThreadWatch, QueuePlace, Status, Subscriber, Timeline,
    Tool, external, marker, recording,
};
use std::fmt::Debug;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

gputrail_tool::tool!(c"whole-tool", initialise);

/// The number of launches after which the tool disables their callbacks.
const ENOUGH: u64 = 10;
const EPOCH: ExternalId = ExternalId(77);
const SUPPLIED: ExternalId = ExternalId(78);

static FAILED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn failed(text: String) {
    FAILED.lock().expect("nobody panics").push(text);
}

#[track_caller]
fn check<T: PartialEq + Debug>(what: &str, is: T, should: T) {
    if is != should {
        failed(format!("{what}: {is:?}, and not {should:?}"));
    }
}

#[track_caller]
fn refused<T>(what: &str, result: Result<T, Error>, status: Status) {
    check(what, result.err().map(|error| error.status), Some(status));
}

/// The number of events of each kind.
#[derive(Default)]
struct Seen {
    calls: AtomicU64,
    /// Calls with the id that was pushed, and with the one that was supplied.
    pushed: AtomicU64,
    supplied: AtomicU64,
    launches: AtomicU64,
    launches_in_file: AtomicU64,
    arguments: AtomicU64,
    markers: AtomicU64,
    told: AtomicU64,
    argued: AtomicU64,
    finishes: AtomicU64,
    calls_of_client: AtomicU64,
    work_of_client: AtomicU64,
    shown: AtomicU64,
    blocks_out: AtomicU64,
    samples: AtomicU64,
    totals: AtomicU64,
    threads_before: AtomicU64,
    threads_after: AtomicU64,
    /// The threads that have delivered records.
    shared_thread: AtomicU64,
    own_thread: AtomicU64,
}

/// Lends blocks of the Rust heap, and puts the work in them together.
struct Lender(Arc<Seen>, Timeline);

impl BlockClient for Lender {
    fn request(&mut self) -> Option<ClientBlock> {
        self.0.blocks_out.fetch_add(1, Relaxed);
        Some(ClientBlock::owned(vec![0; 256].into_boxed_slice()).with_max_records(8))
    }

    fn partial(&mut self, view: &BlockView<'_>) {
        self.0
            .shown
            .fetch_add(view.records().count() as u64, Relaxed);
    }

    fn complete(&mut self, block: CompletedBlock) {
        check("size of a block", block.memory.len(), 2048);
        let calls = block
            .records()
            .filter(|record| record.kind() == Kind::API)
            .count();
        if block.records().count() > 8 {
            failed("a block holds more records than it may".into());
        }
        self.0.calls_of_client.fetch_add(calls as u64, Relaxed);
        let seen = &self.0;
        let added = self.1.add_block(&block, |work| {
            let is_kernel = work.record::<KernelDispatch>().is_some();
            if is_kernel && work.duration().is_none() {
                failed("a kernel without its times".into());
            }
            seen.work_of_client.fetch_add(is_kernel.into(), Relaxed);
        });
        if let Err(error) = added {
            failed(error.to_string());
        }
        self.0.blocks_out.fetch_sub(1, Relaxed);
    }
}

fn of_opencl(name: &std::ffi::CStr) -> Operation {
    tool::operation(Domain::OPENCL, name).expect("OpenCL's function")
}

/// The objects that exist until the end.
struct Whole {
    contexts: Vec<Context>,
    subscribers: Vec<Subscriber>,
    calls: Buffer,
    of_client: Buffer,
    in_file: Buffer,
    sampling: OnceLock<(Context, Buffer)>,
    watch: InternalThreadWatch,
    thread: CallbackThread,
}

static WHOLE: OnceLock<Mutex<Option<Whole>>> = OnceLock::new();

fn initialise(_: Tool) -> Result<Finaliser, Box<dyn std::error::Error>> {
    let seen = Arc::new(Seen::default());
    attributes()?;
    markers_and_ids_that_are_refused();

    let count = seen.clone();
    let watch = InternalThreadWatch::new(move |moment| {
        let threads = match moment {
            InternalThread::Before => &count.threads_before,
            InternalThread::After => &count.threads_after,
        };
        threads.fetch_add(1, Relaxed);
    })?;
    let thread = CallbackThread::new()?;

    let calls = buffer_of_calls(&seen)?;
    let recorded = Context::new()?;
    recorded.trace_to(&calls, &[Kind::API, Kind::KERNEL_DISPATCH, Kind::MARKER])?;
    // It records nothing until it is enabled.
    recorded.start()?;
    refused("a second start", recorded.start(), Status::STARTED);
    refused(
        "attributes",
        Attributes::get()?.set(),
        Status::ATTRIBUTES_LOCKED,
    );
    check("started", recorded.is_started()?, true);
    recorded.enable_kind(&calls, Kind::ARGUMENTS, true)?;
    recorded.enable_operation(&calls, of_opencl(c"clSetKernelArg"), false)?;
    let refuse = recorded.enable_kind(&calls, Kind::API, false);
    refused("arguments alone", refuse, Status::NOT_ALONE);

    let of_client = Buffer::of_client(
        BufferOptions::default(),
        Lender(seen.clone(), Timeline::new()?),
    )?;
    of_client.assign(&thread)?;
    let lent = Context::new()?;
    lent.trace_operations_to(
        &of_client,
        &[Kind::API, Kind::KERNEL_DISPATCH],
        &[of_opencl(c"clEnqueueNDRangeKernel")],
    )?;
    lent.start()?;

    let (in_file, filed) = buffer_in_file(&seen, &thread)?;
    let told = Context::new()?;
    let subscribers = subscribe(&told, &seen)?;
    told.start()?;

    let whole = Whole {
        contexts: vec![recorded, lent, filed, told],
        subscribers,
        calls,
        of_client,
        in_file,
        sampling: OnceLock::new(),
        watch,
        thread,
    };
    let _ = WHOLE.set(Mutex::new(Some(whole)));
    markers()?;
    flights()?;
    Ok(Box::new(move || {
        let whole = WHOLE
            .get()
            .and_then(|whole| whole.lock().expect("nobody panics").take());
        match end(whole.expect("initialised"), &seen) {
            Ok(()) => {}
            Err(error) => failed(error.to_string()),
        }
        for text in FAILED.lock().expect("nobody panics").iter() {
            eprintln!("whole-tool: {text}");
        }
        eprintln!("whole-tool: {} launches", seen.launches.load(Relaxed));
    }))
}

fn attributes() -> Result<(), Error> {
    check(
        "the library's version",
        tool::version(),
        Some(env!("CARGO_PKG_VERSION")),
    );
    let limits = tool::limits()?;
    check("contexts there may be", limits.contexts, 64);
    let mut attributes = Attributes::get()?;
    attributes.block_bytes = 32 << 10;
    attributes.set()?;
    check("bytes of a block", Attributes::get()?, attributes.clone());
    attributes.block_bytes = 77;
    refused("77 bytes in a block", attributes.set(), Status::LAYOUT);
    Ok(())
}

fn markers_and_ids_that_are_refused() {
    let unknown = ExternalKind(4711);
    refused(
        "an id of an unknown kind",
        external::push(unknown, EPOCH),
        Status::INVALID_ARGUMENT,
    );
    refused(
        "an empty stack",
        external::pop(ExternalKind::CUSTOM0),
        Status::STACK_EMPTY,
    );
    refused(
        "a 0 in a name",
        marker::mark("a\0b"),
        Status::INVALID_ARGUMENT,
    );
    let none = marker::RangeId::from_number(99);
    refused(
        "a range that never began",
        marker::end(none),
        Status::NOT_FOUND,
    );
    refused(
        "an invalid agent",
        marker::name_agent(AgentId(99), "x"),
        Status::NOT_FOUND,
    );
    refused(
        "an invalid queue",
        marker::name_queue(99, "x"),
        Status::NOT_FOUND,
    );
    refused(
        "an invalid object",
        tool::describe::<Agent>(AgentId(99)),
        Status::NOT_FOUND,
    );
}

fn markers() -> Result<(), Error> {
    marker::name_thread("the tool's")?;
    let mark = marker::Mark::named("moment")
        .domain("whole")
        .category("of all")
        .color(0xff00_00ff);
    marker::mark(mark.payload(-5_i64))?;
    let _range = marker::range("range")?;
    let started = marker::start("started")?;
    marker::end(started)
}

/// A flight recorder for markers only: dumps one of them.
fn flights() -> Result<(), Error> {
    let flight = FlightRecorder::start(FlightOptions {
        kinds: vec![Kind::MARKER],
        block_bytes: 4096,
        threads: 4,
        ..FlightOptions::default()
    })?;
    check("dumps", (flight.triggered()?, flight.path(0)), (0, None));
    let path = c"whole-tool.gputrail";
    check("records of nothing", flight.dump(path)?, 0);
    refused("the same file", flight.dump(path), Status::NOT_WRITTEN);
    let file = std::path::Path::new("whole-tool.gputrail");
    check("a file", std::fs::remove_file(file).is_ok(), true);
    marker::end(marker::start("in flight")?)?;
    check("records of a range", flight.dump(path)?, 2);
    check("a file", std::fs::remove_file(file).is_ok(), true);
    let nowhere = FlightOptions {
        kinds: vec![Kind::ARGUMENTS],
        ..FlightOptions::default()
    };
    refused(
        "arguments alone",
        FlightRecorder::start(nowhere),
        Status::NOT_ALONE,
    );
    Ok(())
}

fn buffer_of_calls(seen: &Arc<Seen>) -> Result<Buffer, Error> {
    let seen = seen.clone();
    let launch = of_opencl(c"clEnqueueNDRangeKernel");
    Buffer::new(BufferOptions::default(), move |batch| {
        check("the batch and its view", batch.view().lane, batch.lane());
        let this = u64::from(tool::thread().0);
        seen.shared_thread.store(this, Relaxed);
        for record in batch.records() {
            if let Some(call) = record.get::<Api>() {
                seen.calls.fetch_add(1, Relaxed);
                seen.pushed
                    .fetch_add(u64::from(call.external == EPOCH), Relaxed);
                seen.supplied
                    .fetch_add(u64::from(call.external == SUPPLIED), Relaxed);
                check(
                    "what was disabled",
                    call.operation == of_opencl(c"clSetKernelArg"),
                    false,
                );
            } else if record.get::<KernelDispatch>().is_some() {
                seen.launches.fetch_add(1, Relaxed);
            } else if record.kind() == Kind::MARKER {
                seen.markers.fetch_add(1, Relaxed);
            } else if record
                .read::<Arguments>()
                .is_some_and(|of| of.operation == launch)
            {
                seen.arguments.fetch_add(1, Relaxed);
                match tool::arguments_of_record(record) {
                    Ok(mut arguments) => {
                        let dimensions = arguments.find(|argument| argument.name() == "work_dim");
                        let text = dimensions.map(|argument| argument.text(0));
                        check("work_dim of a record", text.as_deref(), Some("1"));
                    }
                    Err(error) => failed(format!("arguments of a record: {error}")),
                }
            }
        }
    })
}

fn buffer_in_file(
    seen: &Arc<Seen>,
    thread: &CallbackThread,
) -> Result<(Buffer, Context), Box<dyn std::error::Error>> {
    let options = BufferOptions {
        pool_bytes: 1 << 20,
        block_bytes: 4096,
        threads: 16,
        ..BufferOptions::default()
    };
    let file = rustix::fs::memfd_create("whole-tool", rustix::fs::MemfdFlags::CLOEXEC)?;
    let refuse = Buffer::in_file(file.as_fd(), options.clone(), |_| {});
    refused("an empty file", refuse.map(drop), Status::TOO_SMALL);
    let recover = tool::recover(file.as_fd(), |_| failed("records in an empty file".into()));
    refused("nothing to recover", recover, Status::MALFORMED);
    rustix::fs::ftruncate(&file, options.file_bytes()?)?;
    let seen = seen.clone();
    let buffer = Buffer::in_file(file.as_fd(), options, move |batch| {
        let launches = batch
            .records()
            .filter(|record| record.get::<KernelDispatch>().is_some());
        seen.launches_in_file
            .fetch_add(launches.count() as u64, Relaxed);
        seen.own_thread.store(u64::from(tool::thread().0), Relaxed);
    })?;
    buffer.assign(thread)?;
    let context = Context::new()?;
    context.trace_to(&buffer, &[Kind::KERNEL_DISPATCH])?;
    context.start()?;
    Ok((buffer, context))
}

fn subscribe(context: &Context, seen: &Arc<Seen>) -> Result<Vec<Subscriber>, Error> {
    let (launch, build) = (
        of_opencl(c"clEnqueueNDRangeKernel"),
        of_opencl(c"clBuildProgram"),
    );
    let (read, kernel) = (
        of_opencl(c"clEnqueueReadBuffer"),
        of_opencl(c"clCreateKernel"),
    );
    let names = tool::arguments_of_operation(launch).map(|argument| argument.name());
    check(
        "arguments of a function",
        names.take(2).collect(),
        vec!["command_queue", "kernel"],
    );
    check(
        "OpenCL's functions",
        tool::operations(Domain::OPENCL)?.contains(&launch),
        true,
    );
    let of = seen.clone();
    let told = context.call_back(&[launch, build], move |callback, number| {
        if callback.operation() == build && !callback.is_enter() {
            on_build(&of);
        } else if callback.operation() == launch && callback.is_enter() {
            *number = of.told.fetch_add(1, Relaxed) + 1;
            on_launch(callback, &of);
        } else if callback.operation() == launch {
            check("return code", callback.return_code(), Some(0));
            if *number == ENOUGH {
                with_whole(|whole| whole.subscribers[0].enable(launch, false));
            }
        }
    })?;
    let of = seen.clone();
    let released = context.call_back(&[], move |_, _| {
        of.finishes.fetch_add(1, Relaxed);
    })?;
    check("nothing is enabled", released.enabled()?, vec![]);
    released.enable_all(true)?;
    check("all is enabled", released.is_enabled(launch)?, true);
    released.enable_all(false)?;
    released.enable_domain(Domain::MARKER, true)?;
    check(
        "markers are enabled",
        released
            .enabled()?
            .iter()
            .all(|of| of.domain == Domain::MARKER),
        true,
    );
    released.enable_domain(Domain::MARKER, false)?;
    released.enable(read, true)?;
    check("one is enabled", released.enabled()?, vec![read]);
    let supplied = context.supply_external_ids(&[kernel], |_| Some(SUPPLIED))?;
    Ok(vec![told, released, supplied])
}

/// Runs `work` with the objects that exist until the end, in a callback.
fn with_whole(work: impl FnOnce(&mut Whole) -> Result<(), Error>) {
    let mut whole = WHOLE
        .get()
        .expect("set before the first call")
        .lock()
        .expect("nobody panics");
    if let Some(Err(error)) = whole.as_mut().map(work) {
        failed(error.to_string());
    }
}

/// The program has been built: from now on its calls have an id, and its kernels are sampled.
fn on_build(seen: &Arc<Seen>) {
    let begin = || {
        external::name(ExternalKind::CUSTOM0, EPOCH, "epoch")?;
        external::push(ExternalKind::CUSTOM0, EPOCH)?;
        check("the id now", external::current(), EPOCH);
        let own = external::register_kind("of the whole tool")?;
        check(
            "its kind",
            external::kind_name(own).as_deref(),
            Some("of the whole tool"),
        );
        external::push(own, ExternalId(5))?;
        check("the id of its kind", external::pop(own)?, ExternalId(5));
        let agent = sampling::agents()?[0];
        check("the agents", tool::agents()?, vec![agent]);
        let described = tool::describe::<Agent>(agent)?;
        check(
            "its name",
            tool::string(described.name),
            tool::agent_name(agent),
        );
        check("links of a processor", tool::agent_links(agent)?.len(), 0);
        refused(
            "links of no agent",
            tool::agent_links(AgentId(77)),
            Status::NOT_FOUND,
        );
        let widest = tool::agent_attribute(agent, AgentAttributeKind::MAX_WORKGROUP_X)?;
        check("its workgroups", widest > 0, true);
        let none = tool::agent_attribute(AgentId(77), AgentAttributeKind::ECC);
        refused("an attribute of no agent", none, Status::NOT_FOUND);
        check("its handle", tool::agent_of(described.handle), Some(agent));
        marker::name_agent(agent, "the only one")?;

        let configurations = sampling::configurations(agent)?;
        let can = configurations[0];
        let of = seen.clone();
        let buffer = Buffer::new(BufferOptions::default(), move |batch| {
            for record in batch.records() {
                of.samples.fetch_add(
                    u64::from(record.kind() == Kind::PC_SAMPLE_HOST_TRAP),
                    Relaxed,
                );
                let total = record
                    .get::<SamplingTotals>()
                    .map_or(0, |totals| totals.total - totals.dropped);
                of.totals.fetch_add(total, Relaxed);
            }
        })?;
        let context = Context::new()?;
        let none = SamplingPeriod::default();
        let refuse = context.sample_every(&buffer, agent, none, Deliver::Samples);
        refused("no period", refuse, Status::INVALID_ARGUMENT);
        let low = SamplingPeriod {
            level: PeriodLevel::LOW,
            ..none
        };
        let other = Context::new()?;
        check(
            "an interval",
            other.sample_every(&buffer, agent, low, Deliver::Aggregates)? > 0,
            true,
        );
        drop(other);
        let request = Request {
            method: can.method,
            unit: can.unit,
            interval: 1_000_000,
        };
        context.sample(&buffer, agent, request, Deliver::Samples)?;
        refused(
            "counters",
            context.collects_counters(),
            Status::CONTEXT_CONFLICT,
        );
        context.start()?;
        with_whole(|whole| {
            refused("a flush in a callback", whole.calls.flush(), Status::BUSY);
            let _ = whole.sampling.set((context, buffer));
            Ok(())
        });
        Ok(())
    };
    begin().unwrap_or_else(|error: Error| failed(error.to_string()));
}

fn on_launch(callback: Callback<'_>, seen: &Seen) {
    check("the kernel", callback.kernel_name().as_deref(), Some("hot"));
    let described = tool::describe::<KernelSymbol>(callback.kernel());
    check("its description", described.is_ok(), true);
    for argument in callback.arguments() {
        match argument.name() {
            "work_dim" => check("work_dim", argument.value(), 1),
            "global_work_size" => {
                check("depth", argument.dereference_depth(), 1);
                let text = argument.text(1);
                check("global_work_size", text.ends_with("-> 256"), true);
            }
            "command_queue" => {
                let kept = argument.kept_as() == Some(ArgumentType::POINTER);
                check(
                    "the queue",
                    (kept, tool::queue_of(argument.value()).is_some()),
                    (true, true),
                );
            }
            _ => continue,
        }
        seen.argued.fetch_add(1, Relaxed);
    }
}

fn end(whole: Whole, seen: &Seen) -> Result<(), Error> {
    whole.calls.flush()?;
    whole.calls.flush_synchronized(QueuePlace::NONE)?;
    check(
        "drops by place",
        whole.calls.dropped_at(QueuePlace::NONE)?,
        0,
    );
    whole.of_client.flush_forced()?;
    check(
        "drops of the tool's blocks",
        whole.of_client.dropped()?.total(),
        0,
    );
    check("drops", whole.calls.dropped()?.total(), 0);
    check(
        "drops of launches",
        whole.in_file.dropped_in_total()?.of(Kind::KERNEL_DISPATCH),
        0,
    );
    match recording::flush() {
        Ok(()) => {
            recording::stop()?;
            refused("a second stop", recording::stop(), Status::STOPPED);
            recording::start()?;
            refused(
                "what keeps everything",
                recording::dump(),
                Status::NOT_AVAILABLE,
            );
        }
        Err(error) => check("no recording", error.status, Status::NOT_FOUND),
    }
    let now = tool::to_nanos(tool::now())?;
    check(
        "the clocks' error",
        tool::clock_error(AgentId::NONE)?.0 < now.0,
        true,
    );
    Timeline::new()?.finish(|_| failed("work of an empty timeline".into()))?;
    if let Some((context, buffer)) = whole.sampling.into_inner() {
        context.stop()?;
        drop((context, buffer));
    }
    drop((whole.contexts, whole.subscribers));
    drop((whole.calls, whole.of_client, whole.in_file));
    drop((whole.watch, whole.thread));

    let of = |count: &AtomicU64| count.load(Relaxed);
    let launches = of(&seen.launches);
    check("launches in the file", of(&seen.launches_in_file), launches);
    check(
        "launches in the tool's blocks",
        of(&seen.calls_of_client),
        launches,
    );
    check(
        "kernels in the tool's blocks",
        of(&seen.work_of_client),
        launches,
    );
    check("records of arguments", of(&seen.arguments), launches);
    check("blocks that did not come back", of(&seen.blocks_out), 0);
    check("launches told", of(&seen.told), launches.min(ENOUGH));
    check("arguments told", of(&seen.argued), 3 * launches.min(ENOUGH));
    check("reads told, enter and exit", of(&seen.finishes), 2);
    check("calls with the id that was supplied", of(&seen.supplied), 1);
    check(
        "calls with the id that was pushed",
        of(&seen.pushed) > launches,
        true,
    );
    check(
        "markers, and external ids pushed and popped",
        of(&seen.markers),
        7 + 3,
    );
    check(
        "threads that were made",
        of(&seen.threads_after),
        of(&seen.threads_before),
    );
    check("a thread was made", of(&seen.threads_after) > 0, true);
    check("samples", of(&seen.samples) > 0, true);
    check("all samples", of(&seen.samples), of(&seen.totals));
    Ok(())
}
