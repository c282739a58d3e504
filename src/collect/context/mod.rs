//! The tool API: contexts and their services, for people who write profilers.
//!
//! A tool makes a [`Context`], configures services in it, and starts and stops it:
//!
//! * buffer tracing ([`Context::trace_to`]): records of the kinds and operations that a [`RecordSelection`] names go to
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
//! use gputrail_collect::context::{BufferOptions, Context, RecordBuffer, RecordSelection};
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
//! context.trace_to(&buffer, RecordSelection::kinds(&[Kind::API]))?;
//! context.start()?;
//! // ... the program calls OpenCL ...
//! context.stop()?;
//! buffer.flush()?;
//! # Ok(())
//! # }
//! ```

mod agents;
mod attributes;
mod buffer;
mod error;
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
    ArgumentInfo, CallArgument, CallArguments, CallbackArguments, KindSet, OperationSet, Payload,
    RecordSelection,
};
pub use attributes::{LIMITS, ProcessAttributes};
pub use buffer::{BufferOptions, Drops, RecordBuffer};
pub use error::ToolError;
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

use crate::counting::is_choosing;
use crate::process;
use crate::switchboard::{ContextKey, OF_CONTEXTS, ServiceConsumer, SubscriberKey, Switchboard};
use gputrail_record::{ContextId, Domain, Kind, Operation};
use std::sync::Arc;

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
    pub fn trace_to(
        &self,
        buffer: &RecordBuffer,
        selection: RecordSelection,
    ) -> Result<(), ToolError> {
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
            .add_service(self.key, ServiceConsumer::Buffer(slot), selection)?)
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
        call_back: impl Fn(&mut CallbackArguments<'_>) + Send + Sync + 'static,
    ) -> Result<Subscriber, ToolError> {
        let key = self.board.subscribe(Box::new(call_back))?;
        let subscriber = Subscriber {
            board: self.board.clone(),
            key,
        };
        let selection = RecordSelection {
            operations,
            ..RecordSelection::none()
        };
        self.board
            .add_service(self.key, ServiceConsumer::Subscriber(key.slot), selection)?;
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
        let change = |selection: &mut RecordSelection| {
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
            .change_service(self.key, ServiceConsumer::Buffer(slot), change)?
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
        self.change_operation(ServiceConsumer::Buffer(slot), operation, on)
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
        self.change_operation(
            ServiceConsumer::Subscriber(subscriber.key.slot),
            operation,
            on,
        )
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
        let consumer = ServiceConsumer::Subscriber(subscriber.key.slot);
        let change = |selection: &mut RecordSelection| selection.operations.set_domain(domain, on);
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
        let consumer = ServiceConsumer::Subscriber(subscriber.key.slot);
        let change = |selection: &mut RecordSelection| {
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
        let consumer = ServiceConsumer::Subscriber(subscriber.key.slot);
        let ask = |selection: &mut RecordSelection| selection.operations.clone();
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
        let consumer = ServiceConsumer::Subscriber(subscriber.key.slot);
        let ask = |selection: &mut RecordSelection| selection.operations.has(operation);
        Ok(self.board.change_service(self.key, consumer, ask)?)
    }

    fn change_operation(
        &self,
        consumer: ServiceConsumer,
        operation: Operation,
        on: bool,
    ) -> Result<(), ToolError> {
        let change = |selection: &mut RecordSelection| selection.operations.set(operation, on);
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
