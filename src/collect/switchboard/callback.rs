//! What a subscriber is told.

use super::CallArguments;
use crate::capture::names::Names;
use crate::record::{
    CodeObject, CorrelationId, ExternalId, KernelId, KernelSymbol, Operation, RecordRef, ThreadId,
};

/// The moment of what a callback is about.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Phase {
    /// A call begins (CUPTI: `CUPTI_API_ENTER`).
    Enter = 1,
    /// A call has returned (CUPTI: `CUPTI_API_EXIT`).
    Exit = 2,
    /// Work that was enqueued has completed.
    Complete = 3,
    /// Something happened, of which nothing else will be told.
    Instant = 4,
}

/// What a callback is about, beside its operation.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub enum Payload<'a> {
    /// A call.
    Call(CallArguments<'a>),
    /// Work, a wait, an object: what a record says of it. Records that are told have no sequence number.
    Record(RecordRef<'a>),
    /// A code object with its machine code, empty where the runtime does not give it.
    Code(&'a CodeObject, &'a [u8]),
    /// Nothing.
    None,
}

/// What a subscriber is told, on the thread on which it happens.
#[derive(Clone)]
#[non_exhaustive]
pub struct Callback<'a> {
    /// What happens.
    pub operation: Operation,
    /// Its name.
    pub name: &'static str,
    /// Which part of it.
    pub phase: Phase,
    /// The thread.
    pub thread: ThreadId,
    /// The call's id, or that of the call that caused it.
    pub correlation: CorrelationId,
    /// What the call returned, when it has.
    pub return_code: Option<i32>,
    /// The kernel that is launched, where one is; [`Callback::kernel_name`] is its name (CUPTI: `symbolName`).
    pub kernel: KernelId,
    /// What else there is to know.
    pub payload: Payload<'a>,
    /// The subscriber's own: 0 at enter, at exit what it left there at enter, at a completion what it left there at
    /// the exit of the enqueue.
    pub user_data: u64,
    /// The external id that records of the call are to carry, if it begins and the subscriber is asked for one.
    pub(crate) external: Option<ExternalId>,
    names: Option<&'a Names>,
}

impl<'a> Callback<'a> {
    /// Something about `operation`; the rest is still to be said.
    #[inline]
    pub(crate) fn new(operation: Operation, name: &'static str, phase: Phase) -> Callback<'a> {
        Callback {
            kernel: KernelId::NONE,
            external: None,
            names: None,
            operation,
            name,
            phase,
            thread: ThreadId::NONE,
            correlation: CorrelationId::NONE,
            return_code: None,
            payload: Payload::None,
            user_data: 0,
        }
    }

    /// The kernel that it is about, and the store that knows its name.
    #[inline]
    pub(crate) fn with_kernel(self, kernel: KernelId, names: &'a Names) -> Callback<'a> {
        Callback {
            kernel,
            names: Some(names),
            ..self
        }
    }

    /// The name of the kernel that is launched, as the program calls it. `None` where no kernel is, or where its name
    /// is one too many to be kept. Looked up when it is asked for.
    pub fn kernel_name(&self) -> Option<String> {
        let names = self.names?;
        let symbol = names.get::<KernelSymbol>(self.kernel.0)?;
        names.text(symbol.name)
    }
}

impl std::fmt::Debug for Callback<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callback")
            .field("name", &self.name)
            .field("phase", &self.phase)
            .field("correlation", &self.correlation)
            .field("payload", &self.payload)
            .finish_non_exhaustive()
    }
}
