//! The data passed to subscribers.

use super::CallArguments;
use gputrail_capture::names::Names;
use gputrail_interface::operations::Phase;
use gputrail_record::{
    CodeObject, ContextId, CorrelationId, ExternalId, KernelId, KernelSymbol, Operation, RecordRef,
    ThreadId,
};

/// The data of a callback besides its operation.
#[derive(Copy, Clone, Debug)]
pub enum Payload<'a> {
    /// A call.
    Call(CallArguments<'a>),
    /// Work, a wait, or an object, as a record without sequence number.
    Record(RecordRef<'a>),
    /// A code object with its machine code, which is empty if the runtime does not provide it.
    Code(&'a CodeObject, &'a [u8]),
    /// The passes of a kernel that have run, and all that its counters need.
    Replay {
        /// The number of passes that have run.
        done: u32,
        /// The number of passes.
        passes: u32,
    },
    /// No data.
    None,
}

/// The arguments of a callback, which runs on the thread of the event.
#[derive(Clone)]
pub struct CallbackArguments<'a> {
    /// The operation.
    pub operation: Operation,
    /// Its name.
    pub name: &'static str,
    /// The phase.
    pub phase: Phase,
    /// The thread.
    pub thread: ThreadId,
    /// The id of the call, or of the call that caused the event.
    pub correlation: CorrelationId,
    /// The status that the call returned, at its exit.
    pub return_code: Option<i32>,
    /// The whole value that the call returned, at its exit: a status, or the handle or address of what it made (CUPTI:
    /// `functionReturnValue`).
    pub return_value: u64,
    /// The context in the runtime of a call, where its arguments or the runtime tell it (CUPTI: `context`, which is the
    /// handle in its record, and `contextUid`).
    pub runtime_context: ContextId,
    /// The runtime's own id of the call, or 0 (CUPTI: `correlationId`).
    pub runtime_correlation: u64,
    /// The launched kernel, if any; [`CallbackArguments::kernel_name`] is its name (CUPTI: `symbolName`).
    pub kernel: KernelId,
    /// The data of the event.
    pub payload: Payload<'a>,
    /// The user data of the subscriber: 0 at the enter, at the exit the value set at the enter, and at the
    /// completion the value set at the exit of the enqueue.
    pub user_data: u64,
    /// The external id of the call or the work, as records in buffers of the subscriber's context carry it.
    pub external: ExternalId,
    /// The external id that the subscriber supplies.
    pub(crate) supplied: Option<ExternalId>,
    names: Option<&'a Names>,
}

impl<'a> CallbackArguments<'a> {
    /// A callback without further data.
    #[inline]
    pub fn new(operation: Operation, name: &'static str, phase: Phase) -> CallbackArguments<'a> {
        CallbackArguments {
            kernel: KernelId::NONE,
            external: ExternalId::NONE,
            supplied: None,
            names: None,
            operation,
            name,
            phase,
            thread: ThreadId::NONE,
            correlation: CorrelationId::NONE,
            return_code: None,
            return_value: 0,
            runtime_context: ContextId::NONE,
            runtime_correlation: 0,
            payload: Payload::None,
            user_data: 0,
        }
    }

    /// Sets the kernel, and the store with its name.
    #[inline]
    pub fn with_kernel(self, kernel: KernelId, names: &'a Names) -> CallbackArguments<'a> {
        CallbackArguments {
            kernel,
            names: Some(names),
            ..self
        }
    }

    /// The name of the launched kernel in the program, looked up on demand. `None` without a kernel, or if the names
    /// store has dropped the name.
    pub fn kernel_name(&self) -> Option<String> {
        let names = self.names?;
        let symbol = names.get::<KernelSymbol>(self.kernel.0)?;
        names.text(symbol.name)
    }
}

impl std::fmt::Debug for CallbackArguments<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callback")
            .field("name", &self.name)
            .field("phase", &self.phase)
            .field("correlation", &self.correlation)
            .field("payload", &self.payload)
            .finish_non_exhaustive()
    }
}
