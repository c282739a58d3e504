//! What a subscriber is told.

use crate::record::{ArgumentType, CorrelationId, Operation, RecordRef, ThreadId};

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

/// An argument of a function.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ArgumentInfo {
    /// Its name.
    pub name: &'static str,
    /// Its type, as Rust writes it.
    pub type_name: &'static str,
    /// How records keep its value, if they do.
    pub kept: Option<ArgumentType>,
}

impl ArgumentInfo {
    /// How many times its value can be dereferenced: 0 for a number or handle.
    pub fn dereference_depth(&self) -> usize {
        self.type_name.matches('*').count()
    }
}

/// The arguments of a call in progress: what the program passed, bit by bit.
#[derive(Copy, Clone, Debug, Default)]
pub struct CallArguments<'a> {
    infos: &'static [ArgumentInfo],
    values: &'a [u64],
}

impl<'a> CallArguments<'a> {
    /// `values` are those of `infos`, bit by bit.
    pub fn new(infos: &'static [ArgumentInfo], values: &'a [u64]) -> CallArguments<'a> {
        CallArguments { infos, values }
    }

    /// Each argument with its value: numbers as they are, signed ones sign-extended to the argument's own size,
    /// pointers and handles as addresses.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static ArgumentInfo, u64)> + use<'a> {
        self.infos.iter().zip(self.values.iter().copied())
    }

    /// The value of the argument `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter()
            .find(|(info, _)| info.name == name)
            .map(|(_, value)| value)
    }
}

/// What a callback is about, beside its operation.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub enum Payload<'a> {
    /// A call.
    Call(CallArguments<'a>),
    /// Work, a wait, an object: what a record says of it. Records that are told have no sequence number.
    Record(RecordRef<'a>),
    /// Nothing.
    None,
}

/// What a subscriber is told, on the thread on which it happens.
#[derive(Clone, Debug)]
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
    /// What else there is to know.
    pub payload: Payload<'a>,
    /// The subscriber's own: 0 at enter, and at exit what it left there.
    pub user_data: u64,
}

impl<'a> Callback<'a> {
    /// Something about `operation`; the rest is still to be said.
    pub(crate) fn new(operation: Operation, name: &'static str, phase: Phase) -> Callback<'a> {
        Callback {
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
}
