//! The names of buffers, subscribers and contexts, and how many there can be.

use super::interest::{Buffers, Interest};

/// The consumer of what a service selects.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum ServiceConsumer {
    /// The buffer in this slot.
    Buffer(usize),
    /// The subscriber in this slot.
    Subscriber(usize),
}

/// A context: its index, and its incarnation, which distinguishes successive users of the index.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ContextKey {
    pub(super) place: usize,
    pub(super) incarnation: u32,
}

/// The most contexts of a process.
pub(crate) const CONTEXTS: usize = 64;

/// A buffer of the switchboard: its slot, and its incarnation, which distinguishes successive users of the slot.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct BufferKey {
    pub slot: usize,
    pub incarnation: u32,
}

impl BufferKey {
    /// The set with this buffer only.
    pub fn buffers(self) -> Buffers {
        Interest::buffer(self.slot).buffers()
    }
}

/// The limit of buffers or subscribers is reached.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("too many {what}: the maximum is {most}")]
pub struct TooMany {
    /// The kind of object.
    pub what: &'static str,
    /// The limit.
    pub most: usize,
}
