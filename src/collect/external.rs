//! External ids: ids chosen by a tool that records carry.
//!
//! Ids are pushed for the process, with [`push`], or for one context, with
//! [`Context::push_external_id`](crate::context::Context::push_external_id). Each thread has a stack of ids for
//! each of these and for each [`ExternalKind`]. As in rocprofiler-sdk, the records of its calls and their work carry the
//! id that was pushed last, of any kind: in the buffers of a context that of the context, in all others, and where the
//! context has none, that of the process. A thread without ids inherits the main thread's. As in CUPTI, records of kind
//! `external correlation`, if enabled, precede the call's record: one for each kind with an id on the thread itself.
//! Instead of pushing, a tool may supply the id of each call and of its work when it begins:
//! [`Context::supply_external_ids`](crate::context::Context::supply_external_ids).
//!
//! External ids are available once the process is observed ([`crate::context`]).

use crate::process;
use crate::scope::Due;
use crate::switchboard::ExternalScope;
use gputrail_buffer::clock;
use gputrail_buffer::platform::sync::OnceBox;
use gputrail_record::{ExternalId, ExternalKind};
use std::sync::atomic::{AtomicU32, Ordering};

/// The first registered kind.
const FIRST_REGISTERED: u32 = 16;
/// The most kinds that can be registered.
const MAX_REGISTERED: usize = 256;

/// An error of an operation on external ids.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExternalError {
    /// The stack is empty (CUPTI: `CUPTI_ERROR_QUEUE_EMPTY`).
    #[error("no id of kind {0} is pushed on this thread")]
    Empty(ExternalKind),
    /// The stack is full.
    #[error("1024 ids are pushed on this thread, the maximum")]
    Full,
    /// The kind is neither predefined nor registered.
    #[error("{0} is not a kind of external ids")]
    UnknownKind(ExternalKind),
    /// The process is not observed, or the thread is writing a record.
    #[error("external ids are not available on this thread now")]
    NotAvailable,
    /// All kinds are in use.
    #[error("256 kinds of external ids are registered, the maximum")]
    TooManyKinds,
}

/// The names of registered kinds, filled from the front. A forked child inherits them.
static REGISTERED: [OnceBox<Box<str>>; MAX_REGISTERED] = [const { OnceBox::new() }; MAX_REGISTERED];
/// The id of the process whose names store has each name.
static NAMED: [AtomicU32; MAX_REGISTERED] = [const { AtomicU32::new(0) }; MAX_REGISTERED];

/// Registers a kind. Equal names give equal kinds.
///
/// # Errors
///
/// [`ExternalError::TooManyKinds`].
pub fn register_kind(name: &str) -> Result<ExternalKind, ExternalError> {
    let is_it = |entry: &OnceBox<Box<str>>| **entry.get_or_init(|| name.into()) == *name;
    let index = REGISTERED.iter().position(is_it);
    let index = index.ok_or(ExternalError::TooManyKinds)?;
    Ok(ExternalKind(FIRST_REGISTERED + index as u32))
}

/// The name of a kind, or `None` if it does not exist.
pub fn kind_name(kind: ExternalKind) -> Option<String> {
    if let Some(name) = kind.name() {
        return Some(name.into());
    }
    registered(kind).map(|(_, name)| name.to_owned())
}

/// The index and the name of a registered kind.
fn registered(kind: ExternalKind) -> Option<(usize, &'static str)> {
    let index = kind.0.checked_sub(FIRST_REGISTERED)? as usize;
    REGISTERED.get(index)?.get().map(|name| (index, &**name))
}

fn is_known(kind: ExternalKind) -> bool {
    kind.name().is_some() || registered(kind).is_some()
}

/// Pushes `id` on the calling thread's stack of `kind` (CUPTI: `cuptiActivityPushExternalCorrelationId`).
///
/// # Errors
///
/// [`ExternalError::UnknownKind`], [`ExternalError::Full`], [`ExternalError::NotAvailable`].
pub fn push(kind: ExternalKind, id: ExternalId) -> Result<(), ExternalError> {
    let gate = process::gate().filter(|_| is_known(kind));
    let due = gate.map_or_else(Due::default, |gate| gate.pass_external(kind, id));
    let pushed = push_for(ExternalScope::Process, kind, id);
    if due != Due::default() {
        process::flush_due(due);
    }
    pushed
}

/// [`push`] for the consumers of `scope`.
pub(super) fn push_for(
    scope: ExternalScope,
    kind: ExternalKind,
    id: ExternalId,
) -> Result<(), ExternalError> {
    if !is_known(kind) {
        return Err(ExternalError::UnknownKind(kind));
    }
    process::current()
        .and_then(|thread| {
            thread.with(|host| host.push_external_for(scope, (kind, id), clock::now()))
        })
        .ok_or(ExternalError::NotAvailable)?
        .then_some(())
        .ok_or(ExternalError::Full)
}

/// Pops the latest id of `kind` from the calling thread's stack (CUPTI: `cuptiActivityPopExternalCorrelationId`).
///
/// # Errors
///
/// [`ExternalError::Empty`], [`ExternalError::UnknownKind`], [`ExternalError::NotAvailable`].
pub fn pop(kind: ExternalKind) -> Result<ExternalId, ExternalError> {
    pop_for(ExternalScope::Process, kind)
}

/// [`pop`] for the consumers of `scope`.
pub(super) fn pop_for(
    scope: ExternalScope,
    kind: ExternalKind,
) -> Result<ExternalId, ExternalError> {
    if !is_known(kind) {
        return Err(ExternalError::UnknownKind(kind));
    }
    process::current()
        .and_then(|thread| thread.with(|host| host.pop_external_for(scope, kind, clock::now())))
        .ok_or(ExternalError::NotAvailable)?
        .ok_or(ExternalError::Empty(kind))
}

/// The id that records of the calling thread carry in buffers whose contexts have none of their own, or none.
pub fn current() -> ExternalId {
    process::current()
        .and_then(|thread| thread.with(|host| host.external()))
        .unwrap_or_default()
}

/// Names `id`. Traces show it as a slice above the calls while it is pushed. Must be called before the push.
///
/// # Errors
///
/// [`ExternalError::UnknownKind`], [`ExternalError::NotAvailable`].
pub fn name(kind: ExternalKind, id: ExternalId, name: &str) -> Result<(), ExternalError> {
    if !is_known(kind) {
        return Err(ExternalError::UnknownKind(kind));
    }
    let board = process::board().ok_or(ExternalError::NotAvailable)?;
    let process = std::process::id();
    if let Some((index, text)) = registered(kind)
        && NAMED[index].swap(process, Ordering::Relaxed) != process
    {
        // The name of id 0 is the name of the kind.
        board.names().external(kind, ExternalId::NONE, text);
    }
    board.names().external(kind, id, name);
    let is_of_ranges = registered(kind).is_some_and(|(_, text)| text == ExternalKind::RANGES);
    if !is_of_ranges {
        board.ranges().name_external(kind, id, name);
    }
    if let Some(gate) = process::gate() {
        gate.name_external(kind, id, name);
    }
    Ok(())
}
