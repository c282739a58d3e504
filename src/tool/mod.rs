//! Tools in Rust that are libraries of their own, as `gputrail record --tool` loads them.
//!
//! A tool is a `cdylib` with [`tool!`](crate::tool!) in it. It talks to the library in the process through the C ABI, so
//! that several tools, in Rust and in C and of different compilers, share one layer; this module makes that safe.
//! [`crate::context`] is for what lives in one binary with its source: in a tool its contexts would see nothing.
//!
//! ```no_run
//! use gputrail::record::{Api, Kind};
//! use gputrail::tool::{Buffer, Context, Finaliser, Tool};
//! use std::error::Error;
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! gputrail::tool!(c"call-counter", initialise);
//!
//! fn initialise(_: Tool) -> Result<Finaliser, Box<dyn Error>> {
//!     let calls = Arc::new(AtomicU64::new(0));
//!     let count = calls.clone();
//!     let buffer = Buffer::new(Default::default(), move |batch| {
//!         let records = batch.records().filter(|record| record.get::<Api>().is_some());
//!         count.fetch_add(records.count() as u64, Ordering::Relaxed);
//!     })?;
//!     let context = Context::new()?;
//!     context.trace_to(&buffer, &[Kind::API])?;
//!     context.start()?;
//!     Ok(Box::new(move || {
//!         drop((context, buffer));
//!         eprintln!("{} calls", calls.load(Ordering::Relaxed));
//!     }))
//! }
//! # fn main() {}
//! ```

mod functions;

pub use crate::capi::{Status, ToolHandle};

use crate::capi::{
    Batch as BatchData, BufferHandle, BufferSettings, CallbackData, ContextHandle, DropCounts,
    FlightHandle, FlightSettings, GPUTRAIL_API_VERSION, SelectionOptions, Sized_, SubscriberHandle,
    TimelineHandle, ToolDescription, WorkData,
};
use crate::record::*;
use core::ffi::{CStr, c_void};
use functions::{check, functions};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

/// What the library refused, and why.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    /// The status.
    pub status: Status,
    /// What happened.
    pub text: String,
}

/// What a tool does at its end: the program ends, or the tool has asked for it. Everything that was recorded until then
/// has been delivered.
pub type Finaliser = Box<dyn FnOnce() + Send>;

/// The tool itself, as gputrail knows it.
#[derive(Copy, Clone, Debug)]
pub struct Tool(ToolHandle);

impl Tool {
    /// Asks for the tool's end before that of the program.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_TOOL` if it has ended already.
    pub fn finish(self) -> Result<(), Error> {
        check((functions()?.tool_finish)(self.0))
    }
}

/// Makes a library a tool: its name, a C string, and a function `fn(Tool) -> Result<Finaliser, Box<dyn Error>>`, which is
/// called before the program's first OpenCL call goes on. An error discards the tool, with a message; the program runs
/// without it.
#[macro_export]
macro_rules! tool {
    ($name:literal, $initialise:path) => {
        /// What gputrail asks first.
        #[unsafe(no_mangle)]
        pub extern "C" fn gputrail_tool_configure(
            _: *const ::core::ffi::c_void,
        ) -> *const $crate::tool::Description {
            extern "C" fn initialise_this_tool(
                tool: $crate::tool::ToolHandle,
                _: *mut ::core::ffi::c_void,
            ) -> $crate::tool::Status {
                $crate::tool::Description::initialise($name, tool, $initialise)
            }
            static DESCRIPTION: $crate::tool::Description =
                $crate::tool::Description::new($name, initialise_this_tool);
            &DESCRIPTION
        }
    };
}

/// What [`tool!`](crate::tool!) says of a tool.
#[doc(hidden)]
#[repr(transparent)]
pub struct Description(ToolDescription);

// SAFETY: a name and functions, which last for ever; no user data.
unsafe impl Sync for Description {}

/// What the tool of this library does at its end.
static FINALISER: Mutex<Option<Finaliser>> = Mutex::new(None);

#[doc(hidden)]
impl Description {
    pub const fn new(
        name: &'static CStr,
        initialise: unsafe extern "C" fn(ToolHandle, *mut c_void) -> Status,
    ) -> Description {
        Description(ToolDescription {
            size: size_of::<ToolDescription>(),
            api_version: GPUTRAIL_API_VERSION,
            priority: 0,
            name: name.as_ptr(),
            initialise: Some(initialise),
            finalise: Some(finalise),
            user_data: std::ptr::null_mut(),
        })
    }

    pub fn initialise(
        name: &CStr,
        tool: ToolHandle,
        initialise: fn(Tool) -> Result<Finaliser, Box<dyn std::error::Error>>,
    ) -> Status {
        let failed = |why: String| {
            eprintln!("gputrail: tool {}: {why}", name.to_string_lossy());
            Status::NOT_AVAILABLE
        };
        match catch_unwind(|| initialise(Tool(tool))) {
            Ok(Ok(finaliser)) => {
                *crate::sync::lock_std(&FINALISER) = Some(finaliser);
                Status::OK
            }
            Ok(Err(error)) => failed(error.to_string()),
            Err(_) => failed("its initialisation panicked".into()),
        }
    }
}

unsafe extern "C" fn finalise(_: *mut c_void) {
    let finaliser = crate::sync::lock_std(&FINALISER).take();
    if let Some(finaliser) = finaliser {
        // The hook has said what there is to say.
        let _ = catch_unwind(AssertUnwindSafe(finaliser));
    }
}

thread_local! {
    /// Whether the thread is in a callback of this tool's.
    static CALLED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a callback of the tool's: a panic goes no further, and `failed` keeps that it happened.
fn call(failed: &std::sync::atomic::AtomicBool, work: impl FnOnce()) {
    use std::sync::atomic::Ordering;
    if failed.load(Ordering::Relaxed) {
        return;
    }
    let before = CALLED.replace(true);
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        failed.store(true, Ordering::Relaxed);
    }
    CALLED.set(before);
}

/// A function of the tool's that the library calls, at a place of its own.
struct Callee<F: ?Sized> {
    failed: std::sync::atomic::AtomicBool,
    function: F,
}

impl<F> Callee<F> {
    fn new(function: F) -> *mut Callee<F> {
        Box::into_raw(Box::new(Callee {
            failed: false.into(),
            function,
        }))
    }
}

/// How a buffer is made; see [`crate::context::BufferOptions`]. 0 asks for what is usual.
#[derive(Clone, Debug, Default)]
pub struct BufferOptions {
    /// Bytes of all its blocks together.
    pub pool_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes in a thread's block from which on they are delivered at the next look; 1 delivers whatever is there.
    pub watermark: u32,
    /// What happens when no block is empty.
    pub policy: crate::buffer::Policy,
    /// Longest time between two looks.
    pub period: Duration,
    /// Threads that may record at a time.
    pub threads: u32,
}

/// Some records of one thread, in place.
#[derive(Copy, Clone)]
pub struct Batch<'a>(&'a BatchData);

impl<'a> Batch<'a> {
    /// Its records, one after the other.
    pub fn records(&self) -> Records<'a> {
        // SAFETY: the library's batch, whose records are there while it is borrowed.
        Records::new(unsafe { std::slice::from_raw_parts(self.0.records, self.0.bytes) })
    }

    /// The thread that wrote them; none for records of the library's own.
    pub fn thread(&self) -> ThreadId {
        self.0.thread
    }
}

type Deliver = Box<dyn FnMut(Batch<'_>) + Send>;

/// A buffer. Dropping it destroys it; what has been recorded is delivered first. Dropped within a callback, it stays
/// until the end.
pub struct Buffer {
    handle: BufferHandle,
    callee: *mut Callee<Mutex<Deliver>>,
}

// SAFETY: the function that `callee` leads to is `Send`, and behind a lock.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer whose records `deliver` gets. If that panics, it is not called again.
    ///
    /// # Errors
    ///
    /// As for `gputrail_buffer_create` in `gputrail.h`.
    pub fn new(
        options: BufferOptions,
        deliver: impl FnMut(Batch<'_>) + Send + 'static,
    ) -> Result<Buffer, Error> {
        unsafe extern "C" fn deliver_to(batch: *const BatchData, user_data: *mut c_void) {
            // SAFETY: the library's batch, and what was given below, which lasts as long as the buffer.
            let (batch, callee) =
                unsafe { (&*batch, &*user_data.cast::<Callee<Mutex<Deliver>>>()) };
            call(&callee.failed, || {
                crate::sync::lock_std(&callee.function)(Batch(batch))
            });
        }
        let functions = functions()?;
        let settings = BufferSettings {
            size: size_of::<BufferSettings>(),
            pool_bytes: options.pool_bytes,
            block_bytes: options.block_bytes,
            period_nanos: options.period.as_nanos().try_into().unwrap_or(u64::MAX),
            watermark: options.watermark,
            policy: options.policy as u32,
            threads: options.threads,
            ..BufferSettings::blank()
        };
        let callee = Callee::new(Mutex::new(Box::new(deliver) as Deliver));
        let mut handle = BufferHandle::default();
        // SAFETY: a structure of this size, a function, what it is given, and a place for the id.
        let status = unsafe {
            (functions.buffer_create)(&settings, Some(deliver_to), callee.cast(), &mut handle)
        };
        check(status).inspect_err(|_| {
            // SAFETY: made above, and the library did not take it.
            drop(unsafe { Box::from_raw(callee) })
        })?;
        Ok(Buffer { handle, callee })
    }

    /// Delivers everything that has been recorded so far, on the calling thread.
    ///
    /// # Errors
    ///
    /// `BUSY` within a callback; `NO_SUCH_BUFFER` after the tool's end.
    pub fn flush(&self) -> Result<(), Error> {
        check((functions()?.buffer_flush)(self.handle))
    }

    /// How many records have been dropped since it was made, of all kinds.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_BUFFER` after the tool's end.
    pub fn dropped_in_total(&self) -> Result<u64, Error> {
        let mut drops = DropCounts {
            size: size_of::<DropCounts>(),
            total: 0,
            of_kind: [0; 256],
        };
        // SAFETY: a structure of this size.
        check(unsafe { (functions()?.buffer_dropped)(self.handle, &mut drops) })?;
        Ok(drops.total)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Ok(functions) = functions()
            && (functions.buffer_destroy)(self.handle) == Status::OK
        {
            // SAFETY: made by `new`; the library has let go of it.
            drop(unsafe { Box::from_raw(self.callee) });
        }
    }
}

/// What a subscriber is told.
#[derive(Copy, Clone)]
pub struct Callback<'a>(&'a CallbackData);

impl Callback<'_> {
    /// What happens.
    pub fn operation(&self) -> Operation {
        self.0.operation
    }

    /// Its name.
    pub fn name(&self) -> &str {
        // SAFETY: the library's text, which ends with a 0 and lasts for ever.
        unsafe { CStr::from_ptr(self.0.name) }
            .to_str()
            .unwrap_or("")
    }

    /// Whether the call begins; otherwise it has returned, or something has happened.
    pub fn is_enter(&self) -> bool {
        self.0.phase == crate::context::Phase::Enter as u32
    }

    /// The call's id.
    pub fn correlation(&self) -> CorrelationId {
        self.0.correlation
    }

    /// The thread.
    pub fn thread(&self) -> ThreadId {
        self.0.thread
    }

    /// What the call returned, when it has.
    pub fn return_code(&self) -> Option<i32> {
        (self.0.has_return_code != 0).then_some(self.0.return_code)
    }
}

type CallBack = Box<dyn Fn(Callback<'_>, &mut u64) + Send + Sync>;

/// A function that is called back, until this is dropped. Dropped within a callback, what the function owns stays
/// until the end.
pub struct Subscriber {
    handle: SubscriberHandle,
    callee: *mut Callee<CallBack>,
}

// SAFETY: the function that `callee` leads to is `Send` and `Sync`.
unsafe impl Send for Subscriber {}
// SAFETY: as above.
unsafe impl Sync for Subscriber {}

impl Drop for Subscriber {
    fn drop(&mut self) {
        if let Ok(functions) = functions()
            && (functions.unsubscribe)(self.handle) == Status::OK
            && !CALLED.get()
        {
            // SAFETY: made by `call_back`; the library has let go of it, and waited for those who were in it.
            drop(unsafe { Box::from_raw(self.callee) });
        }
    }
}

/// A set of services that are started and stopped together. Dropping it destroys it.
#[derive(Debug)]
pub struct Context(ContextHandle);

impl Context {
    /// A context with no services.
    ///
    /// # Errors
    ///
    /// `TOO_MANY`.
    pub fn new() -> Result<Context, Error> {
        let mut handle = ContextHandle::default();
        // SAFETY: a place for the id.
        check(unsafe { (functions()?.context_create)(&mut handle) })?;
        Ok(Context(handle))
    }

    /// Has records of `kinds` go to `buffer` while the context is started.
    ///
    /// # Errors
    ///
    /// `LOCKED` after the first start, `CONFLICT`, `NOT_ALONE`, `UNKNOWN_KIND`.
    pub fn trace_to(&self, buffer: &Buffer, kinds: &[Kind]) -> Result<(), Error> {
        self.trace_operations_to(buffer, kinds, &[])
    }

    /// The same, of API calls those of `operations` only.
    ///
    /// # Errors
    ///
    /// As for [`Context::trace_to`], and `UNKNOWN_OPERATION`.
    pub fn trace_operations_to(
        &self,
        buffer: &Buffer,
        kinds: &[Kind],
        operations: &[Operation],
    ) -> Result<(), Error> {
        let selection = SelectionOptions {
            size: size_of::<SelectionOptions>(),
            kinds: kinds.as_ptr(),
            kind_count: kinds.len(),
            operations: if operations.is_empty() {
                std::ptr::null()
            } else {
                operations.as_ptr()
            },
            operation_count: operations.len(),
        };
        // SAFETY: a structure of this size with as many values as it says.
        check(unsafe { (functions()?.trace_to)(self.0, buffer.handle, &selection) })
    }

    /// Has `call_back` called for `operations`, on the thread on which they happen, possibly on several at once. The
    /// number is the subscriber's own: 0 at enter, and at exit what it left there. If it panics, it is not called again.
    ///
    /// # Errors
    ///
    /// `LOCKED` after the first start, `TOO_MANY`, `UNKNOWN_OPERATION`.
    pub fn call_back(
        &self,
        operations: &[Operation],
        call_back: impl Fn(Callback<'_>, &mut u64) + Send + Sync + 'static,
    ) -> Result<Subscriber, Error> {
        unsafe extern "C" fn called_back(data: *mut CallbackData, user_data: *mut c_void) {
            // SAFETY: the library's structure, and what was given below, which lasts as long as the subscriber.
            let (data, callee) = unsafe { (&mut *data, &*user_data.cast::<Callee<CallBack>>()) };
            let mut number = data.user_data;
            call(&callee.failed, || {
                (callee.function)(Callback(data), &mut number)
            });
            data.user_data = number;
        }
        let functions = functions()?;
        let callee = Callee::new(Box::new(call_back) as CallBack);
        let mut handle = SubscriberHandle::default();
        // SAFETY: as many operations as it says, a function, what it is given, and a place for the id.
        let status = unsafe {
            let (operations, count) = (operations.as_ptr(), operations.len());
            (functions.subscribe)(
                self.0,
                operations,
                count,
                Some(called_back),
                callee.cast(),
                &mut handle,
            )
        };
        check(status).inspect_err(|_| {
            // SAFETY: made above, and the library did not take it.
            drop(unsafe { Box::from_raw(callee) })
        })?;
        Ok(Subscriber { handle, callee })
    }

    /// Lets the services run.
    ///
    /// # Errors
    ///
    /// `STARTED`.
    pub fn start(&self) -> Result<(), Error> {
        check((functions()?.context_start)(self.0))
    }

    /// Lets them rest.
    ///
    /// # Errors
    ///
    /// `STOPPED`.
    pub fn stop(&self) -> Result<(), Error> {
        check((functions()?.context_stop)(self.0))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Ok(functions) = functions() {
            // It may be gone, with the tool's end.
            (functions.context_destroy)(self.0);
        }
    }
}

/// A piece of work: a kernel, a copy, a fill, a marker or barrier.
#[derive(Copy, Clone)]
pub struct Work<'a>(&'a WorkData);

impl Work<'_> {
    /// Its enqueue record, if it is an `R`: that says what it is.
    pub fn record<R: Record>(&self) -> Option<&R> {
        // SAFETY: null or the library's record, all of it.
        let header = unsafe { self.0.record.as_ref() }?;
        let whole = header.kind == R::KIND && header.bytes() >= size_of::<R>();
        // SAFETY: of this kind and at least this size, and borrowed no longer than the callback.
        whole.then(|| unsafe { &*self.0.record.cast::<R>() })
    }

    /// Its completion.
    pub fn completion(&self) -> Option<&Completion> {
        // SAFETY: null or the library's record.
        unsafe { self.0.completion.as_ref() }
    }

    /// When the call that enqueued it was entered, on CLOCK_BOOTTIME.
    pub fn enqueued(&self) -> Nanos {
        self.0.enqueued
    }

    /// When it began to run, on CLOCK_BOOTTIME; none if that is not known.
    pub fn start(&self) -> Nanos {
        self.0.start
    }

    /// When it ended.
    pub fn end(&self) -> Nanos {
        self.0.end
    }

    /// How long it ran, if that is known.
    pub fn duration(&self) -> Option<Nanos> {
        let known = self.0.start.is_some() && self.0.end.is_some();
        known.then(|| Nanos(self.0.end.0.saturating_sub(self.0.start.0)))
    }
}

/// Puts the enqueue records and completions of batches together, see [`crate::timeline`].
#[derive(Debug)]
pub struct Timeline(TimelineHandle);

impl Timeline {
    /// An empty one.
    ///
    /// # Errors
    ///
    /// `NOT_INITIALISED` after the tool's end.
    pub fn new() -> Result<Timeline, Error> {
        let mut handle = TimelineHandle::default();
        // SAFETY: a place for the id.
        check(unsafe { (functions()?.timeline_create)(&mut handle) })?;
        Ok(Timeline(handle))
    }

    /// Takes in a batch, and tells `tell` of the work that is known in full by it.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_TIMELINE` after the tool's end.
    pub fn add(&mut self, batch: Batch<'_>, mut tell: impl FnMut(Work<'_>)) -> Result<(), Error> {
        unsafe extern "C" fn told<F: FnMut(Work<'_>)>(
            work: *const WorkData,
            user_data: *mut c_void,
        ) {
            // SAFETY: the library's structure, and what was given below.
            let (work, tell) = unsafe { (&*work, &mut *user_data.cast::<F>()) };
            let _ = catch_unwind(AssertUnwindSafe(|| tell(Work(work))));
        }
        fn of<F: FnMut(Work<'_>)>(_: &F) -> unsafe extern "C" fn(*const WorkData, *mut c_void) {
            told::<F>
        }
        let function = of(&tell);
        // SAFETY: a batch of the library's, and a function with what it is given, which lasts as long as the call.
        check(unsafe {
            (functions()?.timeline_add)(self.0, batch.0, Some(function), (&raw mut tell).cast())
        })
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        if let Ok(functions) = functions() {
            // SAFETY: no function, and nothing that it is given.
            unsafe { (functions.timeline_destroy)(self.0, None, std::ptr::null_mut()) };
        }
    }
}

/// How a flight recorder works; see [`crate::context::FlightOptions`]. 0 asks for what is usual.
#[derive(Clone, Debug, Default)]
pub struct FlightOptions {
    /// Bytes that are kept, of all threads together.
    pub keep_bytes: u64,
    /// Time that is written out, counted back from the dump.
    pub keep_time: Option<Duration>,
    /// A call that takes at least as long triggers a dump.
    pub slow_call: Option<Duration>,
    /// This signal triggers a dump. It must be one that the program has no handler for.
    pub signal: Option<i32>,
    /// Triggered dumps, at most.
    pub most_dumps: u32,
}

/// Keeps what was recorded last, and writes it out when something happens: triggered dumps go to
/// `flight-PROCESS-NUMBER.gputrail` in the current folder. Dropping it ends it, and writes nothing.
#[derive(Debug)]
pub struct FlightRecorder(FlightHandle);

impl FlightRecorder {
    /// Begins to record everything.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` for a signal that cannot be had, and as for [`Buffer::new`].
    pub fn start(options: FlightOptions) -> Result<FlightRecorder, Error> {
        let nanos = |time: Option<Duration>| {
            let nanos = time.map_or(0, |time| time.as_nanos());
            nanos.try_into().unwrap_or(u64::MAX)
        };
        let settings = FlightSettings {
            size: size_of::<FlightSettings>(),
            keep_bytes: options.keep_bytes,
            keep_nanos: nanos(options.keep_time),
            slow_call_nanos: nanos(options.slow_call),
            signal: options.signal.unwrap_or(0),
            most_dumps: options.most_dumps,
            ..FlightSettings::blank()
        };
        let mut handle = FlightHandle::default();
        // SAFETY: a structure of this size, and a place for the id.
        check(unsafe { (functions()?.flight_start)(&settings, &mut handle) })?;
        Ok(FlightRecorder(handle))
    }

    /// Writes what is kept now to a new capture at `path`; returns how many records are in it.
    ///
    /// # Errors
    ///
    /// `NOT_WRITTEN`, among others where there is such a file already; `BUSY` within a callback.
    pub fn dump(&self, path: &CStr) -> Result<u64, Error> {
        let mut records = 0;
        // SAFETY: a text that ends with a 0, and a place for the number.
        check(unsafe { (functions()?.flight_dump)(self.0, path.as_ptr(), &mut records) })?;
        Ok(records)
    }

    /// How many dumps have been triggered so far.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_FLIGHT` after the tool's end.
    pub fn triggered(&self) -> Result<usize, Error> {
        let mut count = 0;
        // SAFETY: a place for the number.
        check(unsafe { (functions()?.flight_triggered)(self.0, &mut count) })?;
        Ok(count)
    }
}

impl Drop for FlightRecorder {
    fn drop(&mut self) {
        if let Ok(functions) = functions() {
            // It may be gone, with the tool's end.
            (functions.flight_stop)(self.0);
        }
    }
}

/// The time now, in the clock of host times in records.
pub fn now() -> Ticks {
    functions().map_or(Ticks::NONE, |functions| (functions.now)())
}

/// How many ticks a second has; 0 outside of a program that gputrail observes.
pub fn ticks_per_second() -> u64 {
    functions().map_or(0, |functions| (functions.ticks_per_second)())
}

/// Host time on CLOCK_BOOTTIME.
///
/// # Errors
///
/// `NOT_INITIALISED` after the tool's end.
pub fn to_nanos(ticks: Ticks) -> Result<Nanos, Error> {
    let mut nanos = Nanos::NONE;
    // SAFETY: a place for the answer.
    check(unsafe { (functions()?.ticks_to_nanos)(ticks, &mut nanos) })?;
    Ok(nanos)
}

/// The text of a string id.
pub fn string(id: StringId) -> Option<String> {
    functions::text(|functions| functions.string, id)
}

/// The name of a kernel.
pub fn kernel_name(id: KernelId) -> Option<String> {
    functions::text(|functions| functions.kernel_name, id)
}

/// The name of an agent.
pub fn agent_name(id: AgentId) -> Option<String> {
    functions::text(|functions| functions.agent_name, id)
}

/// The name of an operation.
pub fn operation_name(operation: Operation) -> Option<&'static str> {
    let name = (functions().ok()?.operation_name)(operation);
    // SAFETY: not null, and then it ends with a 0 and lasts for ever.
    (!name.is_null())
        .then(|| unsafe { CStr::from_ptr(name) })?
        .to_str()
        .ok()
}

/// The operation of a domain that has this name.
pub fn operation(domain: Domain, name: &CStr) -> Option<Operation> {
    let mut operation = Operation::default();
    // SAFETY: a text that ends with a 0, and a place for the answer.
    let status =
        unsafe { (functions().ok()?.operation_by_name)(domain, name.as_ptr(), &mut operation) };
    (status == Status::OK).then_some(operation)
}
