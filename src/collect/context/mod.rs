//! The tool API: contexts and their services, for people who write profilers.
//!
//! A tool makes a [`Context`], configures services in it, and starts and stops it:
//!
//! * buffer tracing ([`Context::trace_to`]): records of the kinds and operations that a [`Selection`] names go to
//!   a [`RecordBuffer`], whose callback gets them in batches, on a thread of ours;
//! * callback tracing ([`Context::call_back`]): a function is called on the thread that makes a call, at its enter
//!   and its exit, and where work is enqueued and completes, objects come and go, the host waits
//!   ([`crate::operations`] lists it all).
//!
//! Several contexts may run at once, in one process and for one buffer. A context's services are locked by its first
//! start; what they select may be changed at any time. Work in flight when a context stops is still completed: its
//! completion goes to those buffers that got the record of its enqueuing.
//!
//! # Which of the two tool APIs
//!
//! | where your code is | the API |
//! |---|---|
//! | in a library of its own, which gputrail loads into programs that know nothing of it (`gputrail record --tool`) | `gputrail_tool`, in C `gputrail.h` |
//! | in the program itself, which is linked with `libgputrail.so.0` | `gputrail_tool` with `gputrail_tool::program`, in C `gputrail.h` |
//! | in the binary that has the source too: a layer, a simulation, gputrail itself | [`crate::context`] |
//!
//! They are the same contexts, buffers, subscribers and flight recorders, with the same rules: what is said here of
//! them, of callbacks above all, holds for all three. A copy of this crate has objects of its own, though: contexts
//! made by the copy in a tool's library would see nothing of what the layer in the process observes, so a tool talks to
//! that one by the C ABI, and its errors are statuses.
//!
//! The model is that of rocprofiler-sdk's contexts and services, with CUPTI's kinds and callbacks.
//!
//! The rules of callbacks are those of [`gputrail_interface`](gputrail_interface#rules-of-callbacks). A callback in Rust that panics is not called again. See [`Subscriber`] for what its drop waits for.
//!
//! ```no_run
//! use gputrail_collect::context::{BufferOptions, Context, RecordBuffer, Selection};
//! use gputrail_record::{Api, Kind};
//!
//! # fn main() -> Result<(), gputrail_collect::context::ToolError> {
//! let buffer = RecordBuffer::create(BufferOptions::default(), |batch| {
//!     for record in batch.records() {
//!         if let Some(call) = record.get::<Api>() {
//!             println!("{:?} took {} ticks", call.operation, call.end - call.start);
//!         }
//!     }
//! })?;
//! let context = Context::new()?;
//! context.trace_to(&buffer, Selection::kinds(&[Kind::API]))?;
//! context.start()?;
//! // ... the program calls OpenCL ...
//! context.stop()?;
//! buffer.flush()?;
//! # Ok(())
//! # }
//! ```

mod attributes;
mod buffer;
mod external;
mod flight;
mod group;
mod pool;
mod sessions;
#[cfg(test)]
mod stress;
#[cfg(test)]
mod tests;

use crate::delivering::is_delivering;
pub use crate::switchboard::{
    Argument, ArgumentInfo, CallArguments, Callback, KindSet, OperationSet, Payload, Selection,
};
pub use attributes::{Attributes, LIMITS};
pub use buffer::{BufferOptions, Drops, RecordBuffer};
pub use external::ExternalRequest;
pub use flight::{Dump, FlightOptions, FlightRecorder};
pub use gputrail_buffer::platform::internal_thread::{InternalThread, InternalThreadWatch};
pub use gputrail_buffer::{
    BlockClient, CallbackThread, ClientBlock, ClientMemory, CompletedBlock, Layout, Mapping,
    Policy, QueuePlace,
};
pub use group::{CounterGroup, GroupError};
pub use pool::{CounterPool, MAX_POOL_ENTRIES, PoolEntry, PoolError, PoolHandler, PooledKernels};
pub use sessions::{CounterSessions, KEPT_SESSIONS, SessionCounter, SessionError};

use crate::agents::{Refused, ServiceKind};
use crate::counting::{
    Countable, CounterSet, Counting, CountingError, CountingRequest, DispatchCounting, is_choosing,
};
use crate::process;
use crate::sampling::SamplingError;
use crate::switchboard::{
    ConfigureAgent, Consumer, ContextKey, OF_CONTEXTS, ServiceError, SubscriberKey, Switchboard,
    TooMany,
};
use gputrail_buffer::{LayoutError, MappingError};
use gputrail_interface::counting::CountingMode;
use gputrail_interface::sampling::{Configuration, Deliver, Request, SamplingPeriod};
use gputrail_record::{AgentId, ContextId, Domain, Kind, Operation, SamplingMethod, SamplingUnit};
use std::num::NonZeroU32;
use std::sync::Arc;

/// An error of the tool API. The library continues to work.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The process has forked, the library is being finalised, or memory is exhausted.
    #[error("gputrail is not available in this process now")]
    NotAvailable,
    /// The context has been destroyed.
    #[error("the context has been destroyed")]
    NoSuchContext,
    /// The buffer has been destroyed, or belongs to another process or switchboard.
    #[error("the buffer has been destroyed, or is not of this process")]
    NoSuchBuffer,
    /// The services of a context are locked by its first start.
    #[error("the context has been started before: its services are locked")]
    Locked,
    /// The context already has a service for this buffer.
    #[error("the context has such a service already")]
    Conflict,
    /// The context has no service for this buffer or subscriber.
    #[error("the context has no such service")]
    NoSuchService,
    /// The context is started already.
    #[error("the context is started already")]
    Started,
    /// The context is not started.
    #[error("the context is not started")]
    Stopped,
    /// A kind that nothing produces for buffers.
    #[error("nothing produces records of kind {0} for buffers")]
    UnknownKind(Kind),
    /// An operation or domain out of range.
    #[error("unknown {0}")]
    UnknownOperation(Operation),
    /// A kind that complements others, without any of them (CUPTI: `CUPTI_ERROR_NOT_COMPATIBLE`).
    #[error(
        "records of kind {0} come only together with the calls or the work that they belong to"
    )]
    NotAlone(Kind),
    /// Not allowed within a callback.
    #[error(
        "busy: a callback cannot flush buffers, nor a buffer's callback start and stop sampling"
    )]
    Busy,
    /// The signal cannot trigger dumps.
    #[error("signal {signal} cannot be used: {source}")]
    Signal {
        /// The signal.
        signal: i32,
        /// The reason, for example that the program has a handler for it.
        source: std::io::Error,
    },
    /// Attributes apply to the whole process and are locked by the first start of a context.
    #[error("a context has been started: attributes are set before that")]
    AttributesLocked,
    /// The sizes of the buffer are invalid.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The memory of the buffer could not be allocated.
    #[error(transparent)]
    Memory(#[from] MappingError),
    /// The buffer's thread could not be started.
    #[error("cannot start the thread that delivers records: {0}")]
    Thread(#[source] std::io::Error),
    /// An error of PC sampling.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// Counters cannot be collected as requested.
    #[error(transparent)]
    Counting(#[from] CountingError),
    /// A limit is reached.
    #[error("too many {what}: the maximum is {most}")]
    TooMany {
        /// The kind of object.
        what: &'static str,
        /// The limit.
        most: usize,
    },
}

impl From<TooMany> for ToolError {
    fn from(TooMany { what, most }: TooMany) -> ToolError {
        ToolError::TooMany { what, most }
    }
}

impl ToolError {
    /// The error for a callback thread that could not be started.
    fn of_thread(error: std::io::Error) -> ToolError {
        match error.kind() {
            std::io::ErrorKind::QuotaExceeded => ToolError::TooMany {
                what: "callback threads",
                most: gputrail_buffer::CALLBACK_THREADS,
            },
            _ => ToolError::Thread(error),
        }
    }
}

impl From<ServiceError> for ToolError {
    fn from(error: ServiceError) -> ToolError {
        match error {
            ServiceError::NoSuchContext => ToolError::NoSuchContext,
            ServiceError::Locked => ToolError::Locked,
            ServiceError::Conflict => ToolError::Conflict,
            ServiceError::NoSuchService => ToolError::NoSuchService,
            ServiceError::Started => ToolError::Started,
            ServiceError::Stopped => ToolError::Stopped,
            ServiceError::Busy => ToolError::Busy,
            ServiceError::TooMany => ToolError::TooMany {
                what: "contexts",
                most: crate::switchboard::CONTEXTS,
            },
        }
    }
}

/// A set of services that are started and stopped together. Dropping it destroys it.
#[derive(Debug)]
pub struct Context {
    board: Arc<Switchboard>,
    key: ContextKey,
}

/// A subscribed function, from [`Context::call_back`] until this is dropped.
///
/// When the drop returns, the function is not running on any thread and will not be called again. A drop within a
/// callback does not wait for callbacks on other threads.
#[derive(Debug)]
pub struct Subscriber {
    board: Arc<Switchboard>,
    key: SubscriberKey,
}

impl Context {
    /// Creates a context of this process without services.
    ///
    /// # Errors
    ///
    /// [`ToolError::NotAvailable`]; [`ToolError::TooMany`] with 64 contexts.
    pub fn new() -> Result<Context, ToolError> {
        Self::on(process::begin_for_tool().ok_or(ToolError::NotAvailable)?)
    }

    /// Creates a context for `board`, such as that of the simulated GPU.
    ///
    /// # Errors
    ///
    /// [`ToolError::TooMany`] with 64 contexts.
    pub fn on(board: &Arc<Switchboard>) -> Result<Context, ToolError> {
        Ok(Context {
            key: board.add_context()?,
            board: board.clone(),
        })
    }

    /// Configures buffer tracing: records in `selection` go to `buffer` while the context is started.
    ///
    /// # Errors
    ///
    /// [`ToolError::Locked`] after the first start; [`ToolError::Conflict`] if the buffer has a service here
    /// already; [`ToolError::NoSuchBuffer`]; [`ToolError::NotAlone`] for kinds that need others.
    pub fn trace_to(&self, buffer: &RecordBuffer, selection: Selection) -> Result<(), ToolError> {
        let slot = buffer.slot_on(&self.board)?;
        check_kinds(selection.kinds)?;
        let mut of_work = [Kind::COMPLETION, Kind::GRAPH_NODE, Kind::CHILD_KERNEL].into_iter();
        if let Some(alone) = of_work.find(|kind| selection.kinds.has(*kind))
            && !WORK.iter().any(|kind| selection.kinds.has(*kind))
        {
            return Err(ToolError::NotAlone(alone));
        }
        Ok(self
            .board
            .add_service(self.key, Consumer::Buffer(slot), selection)?)
    }

    /// Configures callback tracing: `call_back` is called for `operations` while the context is started, on the thread
    /// of the event, possibly on several threads at once. Calls that it makes are not traced and do not recurse. If it
    /// panics, it is not called again.
    ///
    /// # Errors
    ///
    /// [`ToolError::Locked`] after the first start; [`ToolError::TooMany`] with 23 subscribers in the process.
    pub fn call_back(
        &self,
        operations: OperationSet,
        call_back: impl Fn(&mut Callback<'_>) + Send + Sync + 'static,
    ) -> Result<Subscriber, ToolError> {
        let key = self.board.subscribe(Box::new(call_back))?;
        let subscriber = Subscriber {
            board: self.board.clone(),
            key,
        };
        let selection = Selection {
            operations,
            ..Selection::none()
        };
        self.board
            .add_service(self.key, Consumer::Subscriber(key.slot), selection)?;
        Ok(subscriber)
    }

    /// Enables or disables a kind of records for `buffer`. Allowed while the context is started.
    ///
    /// # Errors
    ///
    /// [`ToolError::NoSuchService`] if the buffer has no service here; [`ToolError::NotAlone`], and nothing is
    /// changed; [`ToolError::NoSuchBuffer`].
    pub fn enable_kind(
        &self,
        buffer: &RecordBuffer,
        kind: Kind,
        on: bool,
    ) -> Result<(), ToolError> {
        let slot = buffer.slot_on(&self.board)?;
        if kind.producer().is_none() {
            return Err(ToolError::UnknownKind(kind));
        }
        let change = |selection: &mut Selection| {
            let one = KindSet::of(&[kind]);
            let kinds = if on {
                selection.kinds.or(one)
            } else {
                selection.kinds.without(one)
            };
            check_kinds(kinds)?;
            selection.kinds = kinds;
            Ok(())
        };
        self.board
            .change_service(self.key, Consumer::Buffer(slot), change)?
    }

    /// Sets whether `buffer` wants records of `kind` in one runtime context, overriding the setting for all contexts
    /// (CUPTI: `cuptiActivityEnableContext`); `None` removes the setting. Allowed while the context is started.
    ///
    /// # Errors
    ///
    /// [`ToolError::UnknownKind`] for kinds whose records belong to no context of a runtime;
    /// [`ToolError::NoSuchService`] if the buffer has no service here; [`ToolError::NoSuchBuffer`].
    pub fn enable_kind_in(
        &self,
        buffer: &RecordBuffer,
        of: ContextId,
        kind: Kind,
        on: Option<bool>,
    ) -> Result<(), ToolError> {
        let slot = buffer.slot_on(&self.board)?;
        if !OF_CONTEXTS.contains(&kind) {
            return Err(ToolError::UnknownKind(kind));
        }
        Ok(self.board.narrow(self.key, slot, of, kind, on)?)
    }

    /// Enables or disables the records of one operation's calls for `buffer`. Allowed while the context is started.
    ///
    /// # Errors
    ///
    /// [`ToolError::UnknownOperation`]; [`ToolError::NoSuchService`]; [`ToolError::NoSuchBuffer`].
    pub fn enable_operation(
        &self,
        buffer: &RecordBuffer,
        operation: Operation,
        on: bool,
    ) -> Result<(), ToolError> {
        let slot = buffer.slot_on(&self.board)?;
        self.change_operation(Consumer::Buffer(slot), operation, on)
    }

    /// Enables or disables callbacks for one operation. Allowed while the context is started.
    ///
    /// # Errors
    ///
    /// [`ToolError::UnknownOperation`]; [`ToolError::NoSuchService`] if the subscriber is not of this context.
    pub fn enable_callback(
        &self,
        subscriber: &Subscriber,
        operation: Operation,
        on: bool,
    ) -> Result<(), ToolError> {
        self.change_operation(Consumer::Subscriber(subscriber.key.slot), operation, on)
    }

    /// Enables or disables callbacks for all operations of a domain. Allowed while the context is started.
    ///
    /// # Errors
    ///
    /// As for [`Context::enable_callback`].
    pub fn enable_domain(
        &self,
        subscriber: &Subscriber,
        domain: Domain,
        on: bool,
    ) -> Result<(), ToolError> {
        let consumer = Consumer::Subscriber(subscriber.key.slot);
        let change = |selection: &mut Selection| selection.operations.set_domain(domain, on);
        if self.board.change_service(self.key, consumer, change)? {
            Ok(())
        } else {
            Err(ToolError::UnknownOperation(Operation { domain, number: 0 }))
        }
    }

    /// Enables or disables callbacks for all operations of all domains (CUPTI: `cuptiEnableAllDomains`). Allowed while
    /// the context is started.
    ///
    /// # Errors
    ///
    /// [`ToolError::NoSuchService`] if the subscriber is not of this context.
    pub fn enable_all_callbacks(&self, subscriber: &Subscriber, on: bool) -> Result<(), ToolError> {
        let consumer = Consumer::Subscriber(subscriber.key.slot);
        let change = |selection: &mut Selection| {
            selection.operations = if on {
                OperationSet::all()
            } else {
                OperationSet::default()
            };
        };
        Ok(self.board.change_service(self.key, consumer, change)?)
    }

    /// The operations for which callbacks are enabled (CUPTI: `cuptiGetCallbackState`, for a single one). They may
    /// include operations unknown to this version.
    ///
    /// # Errors
    ///
    /// [`ToolError::NoSuchService`] if the subscriber is not of this context.
    pub fn enabled_callbacks(&self, subscriber: &Subscriber) -> Result<OperationSet, ToolError> {
        let consumer = Consumer::Subscriber(subscriber.key.slot);
        let ask = |selection: &mut Selection| selection.operations.clone();
        Ok(self.board.change_service(self.key, consumer, ask)?)
    }

    /// Whether callbacks for `operation` are enabled (the context need not be started).
    ///
    /// # Errors
    ///
    /// [`ToolError::NoSuchService`] if the subscriber is not of this context.
    pub fn callback_is_enabled(
        &self,
        subscriber: &Subscriber,
        operation: Operation,
    ) -> Result<bool, ToolError> {
        let consumer = Consumer::Subscriber(subscriber.key.slot);
        let ask = |selection: &mut Selection| selection.operations.has(operation);
        Ok(self.board.change_service(self.key, consumer, ask)?)
    }

    /// Configures PC sampling: `agent` is sampled according to `request` while the context is started, and the records
    /// go to `buffer`. A context can sample several agents. Only one context of the process can have this service,
    /// until it is dropped (rocprofiler-sdk: `rocprofiler_configure_pc_sampling_service`).
    ///
    /// [`AgentId::ALL`] stands for all agents that can be sampled, also those that the process comes to know later, even while the
    /// context is started. Agents that cannot do what `request` says are left out, which a message says; those that the context has
    /// configured for themselves keep that.
    ///
    /// # Errors
    ///
    /// [`ToolError::Sampling`], which names what the agent can do; [`ToolError::Locked`] after the first start;
    /// [`ToolError::NoSuchBuffer`].
    pub fn sample(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        request: Request,
        deliver: Deliver,
    ) -> Result<(), ToolError> {
        let slot = buffer.slot_on(&self.board)?;
        if agent == AgentId::ALL {
            return self.sample_all(buffer, deliver, move |_, _| Ok(request));
        }
        Ok(self
            .board
            .sample(self.key, slot, agent, request, deliver)??)
    }

    /// Has all agents sampled as `request_of` says.
    fn sample_all(
        &self,
        buffer: &RecordBuffer,
        deliver: Deliver,
        request_of: impl Fn(&Switchboard, AgentId) -> Result<Request, SamplingError>
        + Send
        + Sync
        + 'static,
    ) -> Result<(), ToolError> {
        self.board.sampling().check_turn()?;
        let (key, slot) = (self.key, buffer.slot_on(&self.board)?);
        let configure: ConfigureAgent = Box::new(move |board, agent| {
            let request = request_of(board, agent)?;
            Ok(board.sample_now(key, slot, agent, request, deliver)??)
        });
        let service = ServiceKind::PcSampling;
        let refused = |conflict| SamplingError::from(Refused::<Configuration>::from(conflict));
        let served = self.board.serve_all(key, slot, service, configure)?;
        Ok(served.map_err(refused)?)
    }

    /// Configures PC sampling with CUPTI's parameters (`cuptiActivityConfigurePCSampling`). Returns the resulting
    /// request; for [`AgentId::ALL`], whose requests differ, one without an interval.
    ///
    /// # Errors
    ///
    /// As for [`Context::sample`].
    pub fn sample_every(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        period: SamplingPeriod,
        deliver: Deliver,
    ) -> Result<Request, ToolError> {
        if agent == AgentId::ALL {
            self.sample_all(buffer, deliver, move |board, agent| {
                board.sampling().request(agent, period)
            })?;
            return Ok(Request {
                method: SamplingMethod::default(),
                unit: SamplingUnit::default(),
                interval: 0,
            });
        }
        let request = self.board.sampling().request(agent, period)?;
        self.sample(buffer, agent, request, deliver)?;
        Ok(request)
    }

    /// The configurations with which `agent` can be sampled at this moment: only the active one if it is configured,
    /// none if it cannot be sampled.
    ///
    /// # Errors
    ///
    /// [`SamplingError::UnknownAgent`], [`SamplingError::Debugger`], [`SamplingError::Busy`] from within a buffer's
    /// callback.
    pub fn sampling_configurations(&self, agent: AgentId) -> Result<Vec<Configuration>, ToolError> {
        Ok(self.board.sampling().configurations(agent)?)
    }

    /// Configures counter collection: the counters and metrics with these `names` are counted on `agent` while the context
    /// is started, and their [values](gputrail_record::CounterValue) go to `buffer`. A context can count on several agents.
    /// Only one context of the process can have this service, until it is dropped, and it excludes PC sampling
    /// (rocprofiler-sdk: `rocprofiler_configure_dispatch_counting_service`, `rocprofiler_configure_device_counting_service`).
    ///
    /// [`AgentId::ALL`] stands for all agents that have counters, also those that the process comes to know later, even while the
    /// context is started. Agents that do not have all of these counters are left out, which a message says; those that the context
    /// has configured for themselves keep that.
    ///
    /// # Errors
    ///
    /// [`ToolError::Counting`], which names the nearest counters, or what the agent can do; [`ToolError::Locked`] after the
    /// first start; [`ToolError::NoSuchBuffer`].
    pub fn count(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        names: &[impl AsRef<str>],
        mode: CountingMode,
    ) -> Result<(), ToolError> {
        let names = owned(names);
        self.count_by(buffer, agent, move |counting, agent| {
            counting.request(agent, &names, mode, None)
        })
    }

    /// [`Context::count`] for each range of markers whose name matches `pattern` (`*` stands for any text, `?` for one
    /// character), as a whole. Ranges inside of such a range belong to it. One range of the process is counted at a time:
    /// the values of a range of another thread that begins meanwhile are invalid. The context has to trace or call back for
    /// markers, and for kernel dispatches (CUPTI: ranges that are pushed and popped, `CUPTI_UserRange`).
    ///
    /// With [`CountingMode::Range`], [`Context::count`] does so for the outermost ranges, whatever their names.
    ///
    /// # Errors
    ///
    /// As for [`Context::count`].
    pub fn count_ranges(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        names: &[impl AsRef<str>],
        pattern: &str,
    ) -> Result<(), ToolError> {
        let (names, pattern) = (owned(names), pattern.to_owned());
        self.count_by(buffer, agent, move |counting, agent| {
            let request = counting.request(agent, &names, CountingMode::Range, None)?;
            Ok(request.of_ranges(Some(pattern.clone())))
        })
    }

    /// [`Context::count`] for each dispatch, with at most `per_pass` counters in a pass: a kernel runs once for each pass.
    ///
    /// # Errors
    ///
    /// As for [`Context::count`].
    pub fn count_in_passes(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        names: &[impl AsRef<str>],
        per_pass: NonZeroU32,
    ) -> Result<(), ToolError> {
        let names = owned(names);
        self.count_by(buffer, agent, move |counting, agent| {
            counting.request(agent, &names, CountingMode::Dispatch, Some(per_pass))
        })
    }

    /// [`Context::count`] with a value for each instance of a block in the place of their sum: the values of a counter
    /// follow each other, by the number of the instance.
    ///
    /// # Errors
    ///
    /// As for [`Context::count`].
    pub fn count_each_instance(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        names: &[impl AsRef<str>],
        mode: CountingMode,
    ) -> Result<(), ToolError> {
        let names = owned(names);
        self.count_by(buffer, agent, move |counting, agent| {
            let request = counting.request(agent, &names, mode, None)?;
            Ok(request.with_each_instance(true))
        })
    }

    /// Configures counter collection with counters that `tool` chooses for each kernel: while the context is started, the
    /// kernels of `agent` run one after the other, and each that is counted runs once for each pass of its counters. The
    /// values go to `tool` and to `buffer`. The context has to trace or call back for kernel dispatches (rocprofiler-sdk:
    /// `rocprofiler_configure_callback_dispatch_counting_service`; ROCProfiler v1: `rocprofiler_set_queue_callbacks`).
    ///
    /// # Errors
    ///
    /// As for [`Context::count`].
    pub fn count_chosen(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        tool: Arc<dyn DispatchCounting>,
    ) -> Result<(), ToolError> {
        self.count_by(buffer, agent, move |counting, agent| {
            counting.request_of(agent, tool.clone())
        })
    }

    /// A set of counters and metrics for [`Context::count_chosen`], with at most `per_pass` counters in a pass
    /// (rocprofiler-sdk: `rocprofiler_create_counter_config`).
    ///
    /// # Errors
    ///
    /// As for [`Context::count`], of what does not depend on the context.
    pub fn counter_set(
        &self,
        agent: AgentId,
        names: &[impl AsRef<str>],
        per_pass: Option<NonZeroU32>,
    ) -> Result<Arc<CounterSet>, ToolError> {
        Ok(self.board.counting().set(agent, names, per_pass)?)
    }

    /// [`Context::count`] with a request that `request_of` makes for an agent: for `agent`, or for each.
    fn count_by(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        request_of: impl Fn(&Counting, AgentId) -> Result<CountingRequest, CountingError>
        + Send
        + Sync
        + 'static,
    ) -> Result<(), ToolError> {
        if agent != AgentId::ALL {
            let request = request_of(self.board.counting(), agent)?;
            return self.count_request(buffer, agent, request);
        }
        self.board.counting().check_turn()?;
        let (key, slot) = (self.key, buffer.slot_on(&self.board)?);
        let configure: ConfigureAgent = Box::new(move |board, agent| {
            let request = request_of(board.counting(), agent)?;
            Ok(board.count_now(key, slot, agent, request)?)
        });
        let service = ServiceKind::Counters;
        let refused = |conflict| CountingError::from(Refused::<Countable>::from(conflict));
        let served = self.board.serve_all(key, slot, service, configure)?;
        Ok(served.map_err(refused)?)
    }

    /// [`Context::count`] with a request that has been made.
    pub(crate) fn count_request(
        &self,
        buffer: &RecordBuffer,
        agent: AgentId,
        request: CountingRequest,
    ) -> Result<(), ToolError> {
        let slot = buffer.slot_on(&self.board)?;
        Ok(self.board.count(self.key, slot, agent, request)??)
    }

    /// The counters that `agent` offers; `None` if it has none.
    ///
    /// # Errors
    ///
    /// [`CountingError::UnknownAgent`], [`CountingError::Busy`] from within a buffer's callback.
    pub fn countable(&self, agent: AgentId) -> Result<Option<Countable>, ToolError> {
        Ok(self.board.counting().configurations(agent)?.pop())
    }

    /// Declares that the tool itself collects counters in this context, by means of its own. It excludes PC sampling, as in
    /// rocprofiler-sdk.
    ///
    /// # Errors
    ///
    /// [`SamplingError::Counters`] if it samples.
    pub fn collects_counters(&self) -> Result<(), ToolError> {
        Ok(self.board.collects_counters(self.key)??)
    }

    /// Reserves counter collection for this context, also before its agents are known: no other context can count while this
    /// one is there.
    ///
    /// # Errors
    ///
    /// [`CountingError::OtherContext`]; [`CountingError::Sampling`] if this one samples.
    pub fn reserve_counters(&self) -> Result<(), ToolError> {
        Ok(self.board.reserve_counters(self.key)??)
    }

    fn change_operation(
        &self,
        consumer: Consumer,
        operation: Operation,
        on: bool,
    ) -> Result<(), ToolError> {
        let change = |selection: &mut Selection| selection.operations.set(operation, on);
        if self.board.change_service(self.key, consumer, change)? {
            Ok(())
        } else {
            Err(ToolError::UnknownOperation(operation))
        }
    }

    /// Starts the services. The first start locks them.
    ///
    /// # Errors
    ///
    /// [`ToolError::Started`]; [`ToolError::Busy`] from within a buffer's callback if the context samples.
    pub fn start(&self) -> Result<(), ToolError> {
        attributes::lock();
        Ok(self.board.start_context(self.key)?)
    }

    /// Stops the services. Calls in progress and work in flight are still recorded when they end.
    ///
    /// # Errors
    ///
    /// [`ToolError::Stopped`]; [`ToolError::Busy`] within a buffer's callback if the context samples: pending
    /// samples are written first, which may have to wait for the callback.
    pub fn stop(&self) -> Result<(), ToolError> {
        Ok(self.board.stop_context(self.key)?)
    }

    /// Whether the context is started.
    pub fn is_started(&self) -> bool {
        self.board.context_runs(self.key) == Some(true)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let (board, key) = (self.board.clone(), self.key);
        // Only this drop removes it, so it exists.
        let remove = move || _ = board.remove_context(key);
        if !(is_delivering() || is_choosing()) || !self.board.has_agents(key) {
            return remove();
        }
        // From within a callback: what sampling or counting waits for may be this very thread. Where no other can be had,
        // the context lives on until the process ends.
        let _ = gputrail_buffer::platform::internal_thread::spawn(remove);
    }
}

impl Subscriber {
    /// Whether the function is still called, which ends with a panic or when it calls exit(3).
    pub fn is_subscribed(&self) -> bool {
        self.board.is_subscribed(self.key)
    }

    /// Its slot of the switchboard.
    #[cfg(test)]
    pub(crate) fn slot(&self) -> usize {
        self.key.slot
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.board.unsubscribe(self.key);
    }
}

fn owned(names: &[impl AsRef<str>]) -> Vec<String> {
    names.iter().map(|name| name.as_ref().to_owned()).collect()
}

/// Kinds that say something about calls, and mean nothing without them.
const WITH_CALLS: [Kind; 3] = [
    Kind::ARGUMENTS,
    Kind::EXTERNAL_CORRELATION,
    Kind::RETIREMENT,
];

/// Kinds that completions belong to.
pub const WORK: [Kind; 4] = [
    Kind::KERNEL_DISPATCH,
    Kind::MEMORY_COPY,
    Kind::MEMORY_SET,
    Kind::SYNCHRONIZATION,
];

fn check_kinds(kinds: KindSet) -> Result<(), ToolError> {
    if let Some(kind) = kinds.listed().find(|kind| kind.producer().is_none()) {
        return Err(ToolError::UnknownKind(kind));
    }
    let alone = WITH_CALLS
        .into_iter()
        .find(|kind| kinds.has(*kind) && !kinds.has(Kind::API));
    alone.map_or(Ok(()), |kind| Err(ToolError::NotAlone(kind)))
}
