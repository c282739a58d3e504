//! External ids: ids of a tool's own that the records of a thread carry.
//!
//! Each thread has a stack of them for each [`ExternalKind`]. The records of its calls carry the id that was
//! pushed last, of any kind, as rocprofiler-sdk has it; a thread without any inherits the main thread's. Whoever
//! enables records of kind `external correlation` also gets one for each kind that has an id, ahead of the
//! call's, as CUPTI has it; those are the thread's own. A tool that would rather be asked than push supplies the id of
//! each call as it begins: [`Context::supply_external_ids`](crate::collect::context::Context::supply_external_ids).
//!
//! A process has them once it has begun to be observed ([`crate::collect::context`]); before that, pushing is refused.

use crate::clock;
use crate::collect::process;
use crate::collect::scope::Due;
use crate::platform::sync::OnceBox;
use crate::record::{ExternalId, ExternalKind};
use std::sync::atomic::{AtomicU32, Ordering};

/// First of the kinds that are registered.
const FIRST_REGISTERED: u32 = 16;
/// Kinds that can be registered.
const MAX_REGISTERED: usize = 256;

/// What went wrong with external ids.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExternalError {
    /// The stack is empty (CUPTI: `CUPTI_ERROR_QUEUE_EMPTY`).
    #[error("no id of kind {0:?} is pushed on this thread")]
    Empty(ExternalKind),
    /// A stack holds 1024 ids.
    #[error("1024 ids are pushed on this thread, which is as many as it holds")]
    Full,
    /// Neither one of the constants nor registered.
    #[error("{0:?} is not a kind of external ids")]
    UnknownKind(ExternalKind),
    /// The process is not observed, or the thread is in the middle of a record.
    #[error("external ids are not available on this thread now")]
    NotAvailable,
    /// 256 kinds are registered.
    #[error("256 kinds of external ids are registered, which is as many as there can be")]
    TooManyKinds,
}

/// The names of registered kinds, from the first place on. A forked child has those of its parent.
static REGISTERED: [OnceBox<Box<str>>; MAX_REGISTERED] = [const { OnceBox::new() }; MAX_REGISTERED];
/// The process whose names store has the name of each.
static NAMED: [AtomicU32; MAX_REGISTERED] = [const { AtomicU32::new(0) }; MAX_REGISTERED];

/// A kind of the tool's own. The same name gives the same kind.
///
/// # Errors
///
/// [`ExternalError::TooManyKinds`].
pub fn register_kind(name: &str) -> Result<ExternalKind, ExternalError> {
    let is_it = |entry: &OnceBox<Box<str>>| **entry.get_or_init(|| name.into()) == *name;
    let place = REGISTERED.iter().position(is_it);
    let place = place.ok_or(ExternalError::TooManyKinds)?;
    Ok(ExternalKind(FIRST_REGISTERED + place as u32))
}

/// The name of a kind, registered or not; `None` if there is no such kind.
pub fn kind_name(kind: ExternalKind) -> Option<String> {
    if let Some(name) = kind.name() {
        return Some(name.into());
    }
    registered(kind).map(|(_, name)| name.to_owned())
}

/// The place and the name of a registered kind.
fn registered(kind: ExternalKind) -> Option<(usize, &'static str)> {
    let place = kind.0.checked_sub(FIRST_REGISTERED)? as usize;
    REGISTERED.get(place)?.get().map(|name| (place, &**name))
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
    if !is_known(kind) {
        return Err(ExternalError::UnknownKind(kind));
    }
    let gate = process::gate();
    let due = gate.map_or_else(Due::default, |gate| gate.pass_external(kind, id));
    let pushed = process::current()
        .and_then(|thread| thread.with(|host| host.push_external(kind, id, clock::now())));
    if due != Due::default() {
        process::flush_due(due);
    }
    pushed
        .ok_or(ExternalError::NotAvailable)?
        .then_some(())
        .ok_or(ExternalError::Full)
}

/// Takes the latest id of `kind` off the calling thread's stack (CUPTI: `cuptiActivityPopExternalCorrelationId`).
///
/// # Errors
///
/// [`ExternalError::Empty`], [`ExternalError::UnknownKind`], [`ExternalError::NotAvailable`].
pub fn pop(kind: ExternalKind) -> Result<ExternalId, ExternalError> {
    if !is_known(kind) {
        return Err(ExternalError::UnknownKind(kind));
    }
    process::current()
        .and_then(|thread| thread.with(|host| host.pop_external(kind, clock::now())))
        .ok_or(ExternalError::NotAvailable)?
        .ok_or(ExternalError::Empty(kind))
}

/// The id that records of the calling thread carry now, or none.
pub fn current() -> ExternalId {
    process::current()
        .and_then(|thread| thread.with(|host| host.external()))
        .unwrap_or_default()
}

/// Says what `id` stands for: traces show it as a slice above the calls for as long as it is pushed. To be said
/// before it is pushed.
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
    if let Some((place, text)) = registered(kind)
        && NAMED[place].swap(process, Ordering::Relaxed) != process
    {
        // The name of id 0 is the kind's own.
        board.names().external(kind, ExternalId::NONE, text);
    }
    board.names().external(kind, id, name);
    if let Some(gate) = process::gate() {
        gate.name_external(kind, id, name);
    }
    Ok(())
}
