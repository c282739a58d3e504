//! External ids: ids of the tool's own that the records of a thread carry.
//!
//! Each thread has a stack of ids for each kind, for the process and for each context
//! ([`Context::push_external_id`](super::Context::push_external_id)). The records of its calls and their work carry the id that was
//! pushed last, of any kind: in the buffers of a context that of the context, in all others, and where the context has none, that
//! of the process. A thread without ids inherits the main thread's. A context may also be asked for the id of each call
//! ([`Context::supply_external_ids`](super::Context::supply_external_ids)).

use super::Error;
use super::functions::{act, ask, c_string, call, check, text};
use gputrail_record::{ExternalId, ExternalKind};

/// A kind of the tool's own. The same name gives the same kind.
///
/// # Errors
///
/// `TOO_MANY` with 256 kinds, `INVALID_ARGUMENT` for a name with a 0 in it.
pub fn register_kind(name: &str) -> Result<ExternalKind, Error> {
    let name = c_string(name)?;
    let mut kind = ExternalKind::default();
    // SAFETY: a text that ends with a 0, and a place for the answer.
    check(unsafe { call!(gputrail_external_register_kind(name.as_ptr(), &mut kind)) })?;
    Ok(kind)
}

/// The name of a kind, registered or not; `None` if there is no such kind.
pub fn kind_name(kind: ExternalKind) -> Option<String> {
    text!(gputrail_external_kind_name(kind))
}

/// Pushes `id` for the process on the calling thread's stack of `kind`: records of the thread's calls carry the id that
/// was pushed last, of any kind, except in buffers of contexts with ids of their own
/// ([`Context::push_external_id`](super::Context::push_external_id)).
///
/// # Errors
///
/// `INVALID_ARGUMENT` for a kind that is none, `STACK_FULL` with 1024 ids.
pub fn push(kind: ExternalKind, id: ExternalId) -> Result<(), Error> {
    act!(gputrail_external_push(kind, id))
}

/// Takes the latest id of `kind` off the calling thread's stack.
///
/// # Errors
///
/// `STACK_EMPTY`; otherwise as for [`push`].
pub fn pop(kind: ExternalKind) -> Result<ExternalId, Error> {
    ask!(gputrail_external_pop(kind))
}

/// The id that records of the calling thread carry now.
pub fn current() -> ExternalId {
    call!(gputrail_external_current()).unwrap_or(ExternalId::NONE)
}

/// Says what an id stands for, before it is pushed: traces show it as a slice above the calls for as long as it is.
///
/// # Errors
///
/// As for [`push`]; `INVALID_ARGUMENT` also for a name with a 0 in it.
pub fn name(kind: ExternalKind, id: ExternalId, name: &str) -> Result<(), Error> {
    let name = c_string(name)?;
    // SAFETY: a text that ends with a 0.
    check(unsafe { call!(gputrail_external_name(kind, id, name.as_ptr())) })
}
