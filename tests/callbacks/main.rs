//! Callbacks of a real program on PoCL. Each test runs in a process of its own, which is program, layer and tool at
//! once.
#![cfg(target_os = "linux")]

mod buffers;
mod external;
mod lines;
mod opencl;
mod sources;

use gputrail_collect::context::{
    CallArguments, CallbackArguments, Context, OperationSet, Payload, Subscriber,
};
use gputrail_collect::process;
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_interface::operations::Phase;
use gputrail_interface::operations::{
    kernel_dispatch, memory_allocation, memory_copy, resource, synchronization,
};
use gputrail_record::{
    Allocation, Completion, Context as ContextRecord, Domain, KernelDispatch, KernelSymbol,
    MemoryCopy, MemorySet, Module, Operation, Queue, Record, Synchronization, WorkHeader,
};
use gputrail_sources::operations;
use opencl::{COUNT, OpenCl, Small, on_layer};
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The fields of one callback.
#[derive(Clone, Debug)]
struct ReceivedCallback {
    operation: Operation,
    phase: Phase,
    correlation: u64,
    status: Option<i32>,
    kernel: Option<String>,
    record: Vec<u8>,
    arguments: Vec<(&'static str, String)>,
    binary: usize,
}

impl ReceivedCallback {
    fn new(callback: &CallbackArguments<'_>) -> ReceivedCallback {
        assert_eq!(operations::name(callback.operation), Some(callback.name));
        let mut received = ReceivedCallback {
            operation: callback.operation,
            phase: callback.phase,
            correlation: callback.correlation.0,
            status: callback.return_code,
            kernel: callback.kernel_name(),
            record: Vec::new(),
            arguments: Vec::new(),
            binary: 0,
        };
        match callback.payload {
            Payload::Record(record) => received.record = record.bytes().to_vec(),
            Payload::Code(object, binary) => {
                assert!(object.id.is_some() && object.module.is_some());
                received.binary = binary.len();
            }
            Payload::Call(arguments) => received.arguments = texts(&arguments),
            _ => {}
        }
        received
    }

    fn read<R: Record>(&self) -> R {
        let mut records = gputrail_record::Records::new(&self.record);
        records.next().unwrap().read().unwrap()
    }
}

fn texts(arguments: &CallArguments<'_>) -> Vec<(&'static str, String)> {
    let text = |argument: gputrail_collect::context::CallArgument<'_>| {
        (argument.info.name, argument.text(2))
    };
    arguments.iter().map(text).collect()
}

/// All callbacks of one subscriber. Checks that the completion of work gets the user data that its enqueue left.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<ReceivedCallback>>>);

impl Log {
    fn listen(&self, operations: OperationSet) -> (Context, Subscriber) {
        let into = self.clone();
        subscribe(operations, move |callback| into.receive(callback))
    }

    fn receive(&self, callback: &mut CallbackArguments<'_>) {
        let received = ReceivedCallback::new(callback);
        match received.phase {
            Phase::Enter => {
                assert_eq!(callback.user_data, 0, "{received:?}");
                callback.user_data = 1;
            }
            Phase::Exit => {
                assert_eq!(callback.user_data, 1, "{received:?}");
                callback.user_data = received.correlation;
            }
            Phase::Complete => {
                assert_eq!(callback.user_data, received.correlation, "{received:?}");
                let completion = received.read::<Completion>();
                assert_eq!(completion.correlation.0, received.correlation);
            }
            _ => {}
        }
        self.0.lock().unwrap().push(received);
    }

    fn all(&self) -> Vec<ReceivedCallback> {
        self.0.lock().unwrap().clone()
    }

    fn of(&self, operation: Operation, phase: Phase) -> Vec<ReceivedCallback> {
        let mut all = self.all();
        all.retain(|received| (received.operation, received.phase) == (operation, phase));
        all
    }

    /// Waits until that many completions of `operation` have been received: another thread may still deliver them.
    fn wait(&self, operation: Operation, count: usize) {
        for _ in 0..2000 {
            if self.of(operation, Phase::Complete).len() >= count {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{operation:?}: {:#?}", self.all());
    }
}

fn subscribe(
    operations: OperationSet,
    call_back: impl Fn(&mut CallbackArguments<'_>) + Send + Sync + 'static,
) -> (Context, Subscriber) {
    let context = Context::new().unwrap();
    let subscriber = context.call_back(operations, call_back).unwrap();
    context.start().unwrap();
    (context, subscriber)
}

fn api(name: &str) -> Operation {
    operations::find(Domain::OPENCL, name).unwrap()
}

fn numbers() -> [i32; COUNT] {
    std::array::from_fn(|place| place as i32)
}

fn squares() -> [i32; COUNT] {
    numbers().map(|number| number * number)
}

/// A program that uses most kinds of functions.
fn work(opencl: &OpenCl) {
    let small = Small::new(opencl);
    small.write(&numbers());
    small.launch();
    assert_eq!(small.read(), squares());
    small.fill(3);
    small.launch();
    small.finish();
    assert_eq!(small.read(), [9; COUNT]);
    // CL_INVALID_WORK_DIMENSION
    assert_eq!(small.launch_in(77, null_mut()), -53);
    let mut event = null_mut();
    assert_eq!(small.launch_in(1, &mut event), 0);
    // SAFETY: an event of the program's.
    unsafe {
        assert_eq!((opencl.clWaitForEvents)(1, &event), 0);
        assert_eq!((opencl.clReleaseEvent)(event), 0);
    }
    small.release();
}

const KERNELS: usize = 3;

fn check_callbacks_of_a_program(opencl: &OpenCl) {
    let log = Log::default();
    let (context, _subscriber) = log.listen(OperationSet::all());
    work(opencl);
    log.wait(kernel_dispatch::COMPLETE, KERNELS);
    log.wait(memory_copy::COPY_COMPLETE, 3);
    log.wait(memory_copy::FILL_COMPLETE, 1);
    context.stop().unwrap();
    let all = log.all();

    // Each enter has its exit, of the same call, and no callback comes twice.
    let mut open: HashMap<(Operation, u64), i32> = HashMap::new();
    for received in &all {
        let count = open
            .entry((received.operation, received.correlation))
            .or_default();
        match received.phase {
            Phase::Enter => *count += 1,
            Phase::Exit => *count -= 1,
            _ => continue,
        }
        assert!((0..=1).contains(count), "{received:?}");
    }
    assert!(open.values().all(|count| *count == 0), "{open:?}");

    let one = |operation, phase| {
        let received = log.of(operation, phase);
        assert_eq!(received.len(), 1, "{received:?}");
        received[0].clone()
    };
    // Calls, with their arguments and return codes.
    let create = one(api("clCreateKernel"), Phase::Enter);
    let (name, text) = &create.arguments[1];
    assert_eq!(*name, "kernel_name");
    assert!(text.ends_with(" -> \"square\""), "{text}");
    let build = one(api("clBuildProgram"), Phase::Exit);
    assert!(build.arguments[3].1.ends_with(" -> \"-w\""), "{build:?}");
    assert_eq!(build.status, Some(0));
    let launches = log.of(api("clEnqueueNDRangeKernel"), Phase::Exit);
    let statuses: Vec<_> = launches.iter().map(|received| received.status).collect();
    assert_eq!(statuses, [Some(0), Some(0), Some(-53), Some(0)]);
    let named = |received: &ReceivedCallback| received.kernel.as_deref() == Some("square");
    assert!(launches.iter().all(named));
    let size = COUNT.to_string();
    let global = &launches[0].arguments[4];
    assert!(global.0 == "global_work_size" && global.1.ends_with(&format!(" -> {size}")));

    // Kernels.
    let enters = log.of(kernel_dispatch::ENQUEUE, Phase::Enter);
    let exits = log.of(kernel_dispatch::ENQUEUE, Phase::Exit);
    let completes = log.of(kernel_dispatch::COMPLETE, Phase::Complete);
    assert_eq!(
        (enters.len(), exits.len(), completes.len()),
        (4, 4, KERNELS)
    );
    let mut works = Vec::new();
    for (enter, exit) in enters.iter().zip(&exits) {
        let before = enter.read::<KernelDispatch>();
        assert!(named(enter) && before.work.id.is_some() && before.work.queue.is_some());
        if exit.status == Some(0) {
            let after = exit.read::<KernelDispatch>();
            // The call's start is taken again after the callbacks of its enter.
            let enqueued = after.work.enqueued;
            assert!(before.work.enqueued <= enqueued);
            let before_work = WorkHeader {
                enqueued,
                ..before.work
            };
            assert_eq!(
                (before_work, before.grid),
                (after.work, [COUNT as u64, 1, 1])
            );
            works.push(after.work.id);
        } else {
            assert_eq!(exit.status, Some(-53));
        }
    }
    let completed = |received: &ReceivedCallback| received.read::<Completion>();
    let mut completed: Vec<_> = completes.iter().map(completed).collect();
    completed.sort_by_key(|completion| completion.work);
    assert!(completes.iter().all(named));
    assert!(
        completed
            .iter()
            .all(|one| one.end > one.start && one.start.is_some())
    );
    assert_eq!(
        completed.iter().map(|one| one.work).collect::<Vec<_>>(),
        works
    );

    // Copies, fills, memory, waits.
    let copies = log.of(memory_copy::COPY_ENQUEUE, Phase::Exit);
    let bytes = |received: &ReceivedCallback| received.read::<MemoryCopy>().bytes;
    assert_eq!(copies.iter().map(bytes).collect::<Vec<_>>(), [1024; 3]);
    let fill = one(memory_copy::FILL_ENQUEUE, Phase::Enter).read::<MemorySet>();
    assert_eq!((fill.bytes, fill.value), (1024, 3));
    let allocating = one(memory_allocation::ALLOCATE, Phase::Enter).read::<Allocation>();
    assert_eq!((allocating.bytes, allocating.address), (1024, 0));
    let allocated = one(memory_allocation::ALLOCATE, Phase::Exit).read::<Allocation>();
    let freeing = one(memory_allocation::FREE, Phase::Enter).read::<Allocation>();
    assert_eq!(
        (allocated.bytes, allocated.address),
        (1024, freeing.address)
    );
    one(memory_allocation::FREE, Phase::Exit);
    // Three blocking transfers, and clFinish.
    let waits = log.of(synchronization::STREAM_SYNCHRONIZE, Phase::Exit);
    assert_eq!(waits.len(), 4);
    assert!(
        waits
            .iter()
            .all(|wait| wait.read::<Synchronization>().waited_for.is_some())
    );
    let wait = one(synchronization::EVENT_SYNCHRONIZE, Phase::Exit).read::<Synchronization>();
    assert_eq!((wait.events, Some(&wait.waited_for)), (1, works.last()));

    // Objects are created and destroyed in order.
    let objects: Vec<_> = all
        .iter()
        .filter(|received| received.operation.domain == Domain::RESOURCE)
        .map(|received| received.operation)
        .collect();
    assert_eq!(
        objects,
        [
            resource::RUNTIME_INITIALIZED,
            resource::AGENT_KNOWN,
            resource::CONTEXT_CREATED,
            resource::QUEUE_CREATED,
            resource::MODULE_LOADED,
            resource::CODE_OBJECT_LOADED,
            resource::KERNEL_SYMBOL_REGISTERED,
            resource::KERNEL_SYMBOL_UNREGISTERED,
            resource::CODE_OBJECT_UNLOADED,
            resource::MODULE_UNLOADED,
            resource::QUEUE_DESTROYED,
            resource::CONTEXT_DESTROYED,
        ]
    );
    assert!(one(resource::CODE_OBJECT_LOADED, Phase::Instant).binary > 1000);
}

#[test]
fn a_program_is_reported_call_by_call_and_work_by_work() {
    needs!(a_program_is_reported_call_by_call_and_work_by_work: Need::Pocl, Need::OpenClToolchain);
    let test = "a_program_is_reported_call_by_call_and_work_by_work";
    on_layer(test, Driver::Threaded, check_callbacks_of_a_program);
}

#[test]
fn a_program_is_reported_alike_where_work_runs_on_the_thread_that_waits() {
    needs!(a_program_is_reported_alike_where_work_runs_on_the_thread_that_waits: Need::Pocl, Need::OpenClToolchain);
    let test = "a_program_is_reported_alike_where_work_runs_on_the_thread_that_waits";
    on_layer(test, Driver::Basic, check_callbacks_of_a_program);
}

/// The OpenCL functions with a static lifetime, which callbacks need.
fn for_callbacks(opencl: &OpenCl) -> &'static OpenCl {
    // SAFETY: it lives until the test's process ends: `on_layer` keeps it until the test is over.
    unsafe { &*std::ptr::from_ref(opencl) }
}

#[test]
fn an_object_still_exists_when_its_destruction_is_reported() {
    needs!(an_object_still_exists_when_its_destruction_is_reported: Need::Pocl, Need::OpenClToolchain);
    let test = "an_object_still_exists_when_its_destruction_is_reported";
    on_layer(test, Driver::Threaded, |opencl| {
        let inside = for_callbacks(opencl);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let into = asked.clone();
        let mut operations = OperationSet::default();
        operations.set_domain(Domain::RESOURCE, true);
        operations.set(memory_allocation::FREE, true);
        let _subscribed = subscribe(operations, move |callback| {
            let Payload::Record(record) = callback.payload else {
                return;
            };
            let (handle, what, ask) = match callback.operation {
                resource::CONTEXT_DESTROYED => {
                    let record = record.read::<ContextRecord>().unwrap();
                    (record.handle, 0x1080, inside.clGetContextInfo)
                }
                resource::QUEUE_DESTROYED => {
                    let record = record.read::<Queue>().unwrap();
                    (record.handle, 0x1092, inside.clGetCommandQueueInfo)
                }
                resource::MODULE_UNLOADED => {
                    let record = record.read::<Module>().unwrap();
                    (record.handle, 0x1160, inside.clGetProgramInfo)
                }
                resource::KERNEL_SYMBOL_UNREGISTERED => {
                    let record = record.read::<KernelSymbol>().unwrap();
                    (record.handle, 0x1192, inside.clGetKernelInfo)
                }
                memory_allocation::FREE if callback.phase == Phase::Enter => {
                    let record = record.read::<Allocation>().unwrap();
                    (record.address, 0x1105, inside.clGetMemObjectInfo)
                }
                _ => return,
            };
            // The remaining references.
            let mut references = 0u32;
            let to = (&raw mut references).cast();
            // SAFETY: the object is still there: that is what is tested.
            let status = unsafe { ask(handle as *mut _, what, 4, to, null_mut()) };
            let received = (callback.operation, status, references > 0);
            into.lock().unwrap().push(received);
        });
        Small::new(opencl).release();
        let alive = |operation| (operation, 0, true);
        assert_eq!(
            *asked.lock().unwrap(),
            [
                alive(memory_allocation::FREE),
                alive(resource::KERNEL_SYMBOL_UNREGISTERED),
                alive(resource::MODULE_UNLOADED),
                alive(resource::QUEUE_DESTROYED),
                alive(resource::CONTEXT_DESTROYED),
            ]
        );
    });
}

/// Callbacks of a call synchronize, and enqueue work of their own.
fn callbacks_that_call(opencl: &OpenCl) {
    let inside = for_callbacks(opencl);
    let log = Log::default();
    let into = log.clone();
    let launch = api("clEnqueueNDRangeKernel");
    let _subscribed = subscribe(OperationSet::all(), move |callback| {
        into.receive(callback);
        if callback.operation == launch
            && let Payload::Call(arguments) = callback.payload
        {
            let queue = arguments.get("command_queue").unwrap() as *mut _;
            // SAFETY: the program's queue, in a call of which it is an argument.
            unsafe {
                let none = std::ptr::null();
                let marker = inside.clEnqueueMarkerWithWaitList;
                assert_eq!(marker(queue, 0, none, null_mut()), 0);
                assert_eq!((inside.clFinish)(queue), 0);
            }
        }
    });
    let small = Small::new(opencl);
    small.write(&numbers());
    for _ in 0..20 {
        // The program's own work is in flight when the callback waits.
        small.fill(2);
        small.launch();
    }
    small.finish();
    assert_eq!(small.read(), [4; COUNT]);
    log.wait(kernel_dispatch::COMPLETE, 20);
    log.wait(memory_copy::FILL_COMPLETE, 20);
    log.wait(memory_copy::COPY_COMPLETE, 2);
    let count = |operation, phase| log.of(operation, phase).len();
    assert_eq!(
        count(api("clFinish"), Phase::Enter),
        1,
        "only the program's"
    );
    assert_eq!(count(synchronization::MARKER, Phase::Enter), 0);
    assert_eq!(count(synchronization::COMPLETE, Phase::Complete), 0);
    assert_eq!(count(kernel_dispatch::COMPLETE, Phase::Complete), 20);
    assert_eq!(count(memory_copy::FILL_COMPLETE, Phase::Complete), 20);
    small.release();
}

#[test]
fn callbacks_of_calls_may_synchronize_and_their_own_calls_are_not_reported() {
    needs!(callbacks_of_calls_may_synchronize_and_their_own_calls_are_not_reported: Need::Pocl, Need::OpenClToolchain);
    let test = "callbacks_of_calls_may_synchronize_and_their_own_calls_are_not_reported";
    on_layer(test, Driver::Threaded, callbacks_that_call);
}

/// With this driver, work completes on the thread that waits: within the callback that waits.
#[test]
fn work_that_completes_within_a_callback_is_reported_when_that_has_returned() {
    needs!(work_that_completes_within_a_callback_is_reported_when_that_has_returned: Need::Pocl, Need::OpenClToolchain);
    let test = "work_that_completes_within_a_callback_is_reported_when_that_has_returned";
    on_layer(test, Driver::Basic, callbacks_that_call);
}

#[test]
fn without_a_tool_calls_pass_through_and_a_tool_may_come_late() {
    needs!(without_a_tool_calls_pass_through_and_a_tool_may_come_late: Need::Pocl, Need::OpenClToolchain);
    let test = "without_a_tool_calls_pass_through_and_a_tool_may_come_late";
    on_layer(test, Driver::Threaded, |opencl| {
        let small = Small::new(opencl);
        small.write(&numbers());
        small.launch();
        small.finish();
        assert!(!process::is_observed());
        assert!(process::interest(api("clFinish")).is_none());
        let log = Log::default();
        let (context, subscriber) = log.listen(OperationSet::all());
        assert!(process::is_observed());
        small.fill(5);
        small.launch();
        assert_eq!(small.read(), [25; COUNT]);
        log.wait(kernel_dispatch::COMPLETE, 1);
        log.wait(memory_copy::COPY_COMPLETE, 1);
        let enqueue = &log.of(kernel_dispatch::ENQUEUE, Phase::Exit)[0];
        assert_eq!(enqueue.kernel.as_deref(), Some("square"));
        drop(subscriber);
        let received = log.all().len();
        small.launch();
        small.finish();
        assert_eq!(log.all().len(), received);
        assert!(context.is_started());
        small.release();
    });
}

#[test]
fn threads_call_while_tools_come_and_go_and_panic() {
    needs!(threads_call_while_tools_come_and_go_and_panic: Need::Pocl, Need::OpenClToolchain);
    let test = "threads_call_while_tools_come_and_go_and_panic";
    on_layer(test, Driver::Threaded, |opencl| {
        let (stop, all) = (AtomicBool::new(false), Log::default());
        let _stays = all.listen(OperationSet::all());
        let launched = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let callers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let small = Small::new(opencl);
                        for _ in 0..20 {
                            small.write(&numbers());
                            small.launch();
                            assert_eq!(small.read(), squares());
                            launched.fetch_add(1, Ordering::Relaxed);
                        }
                        small.release();
                    })
                })
                .collect();
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let log = Log::default();
                    let whole = log.listen(OperationSet::all());
                    let panicking = subscribe(OperationSet::all(), |_| {
                        std::panic::resume_unwind(Box::new(()));
                    });
                    drop((whole.1, panicking.1));
                    let received = log.all().len();
                    std::thread::yield_now();
                    assert_eq!(log.all().len(), received);
                }
            });
            for caller in callers {
                caller.join().unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let launched = launched.load(Ordering::Relaxed);
        all.wait(kernel_dispatch::COMPLETE, launched);
        let enters = all.of(kernel_dispatch::ENQUEUE, Phase::Enter).len();
        let completes = all.of(kernel_dispatch::COMPLETE, Phase::Complete).len();
        assert_eq!((enters, completes), (launched, launched));
    });
}
