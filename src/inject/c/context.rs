//! Contexts and their services.

use super::objects::destroy;
use super::sized;
use super::status::FailedCall;
use super::{Answer, done, library, place, values};
use gputrail_collect::context::{Context, KindSet, OperationSet, RecordSelection};
use gputrail_interface::c::{BufferHandle, ContextHandle, SelectionOptions, Status};
use gputrail_record::{ContextId, Kind, Operation};
use std::sync::Arc;

/// Makes a context, with no services.
///
/// Errors: `GPUTRAIL_TOO_MANY` with 64 of them; `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `context` is null or a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_context_create(context: *mut ContextHandle) -> Status {
    done(|| {
        // SAFETY: `context` is null or a place for a handle (the caller's promise).
        let place = unsafe { place(context, "context") }?;
        drop(library::state()?);
        let context = Arc::new(Context::new()?);
        let mut state = library::state()?;
        let id = state.contexts.new_handle();
        state.contexts.insert(id, context);
        place.write(ContextHandle { handle: id });
        Ok(())
    })
}

/// Stops a context and destroys it, with its services and subscribers.
///
/// Errors: `GPUTRAIL_NO_SUCH_CONTEXT`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_context_destroy(context: ContextHandle) -> Status {
    done(|| {
        let mut state = library::state()?;
        let gone = state.contexts.remove(context.handle)?;
        let subscribers = state.subscribers.take_if(|of| of.context == context);
        drop(state);
        subscribers.into_iter().for_each(destroy);
        destroy(gone);
        Ok(())
    })
}

/// Starts the services of a context. The first start locks them; their selections may still be changed.
///
/// Errors: `GPUTRAIL_BUSY` from within a buffer's callback if the context samples; `GPUTRAIL_STARTED`,
/// `GPUTRAIL_NO_SUCH_CONTEXT`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_context_start(context: ContextHandle) -> Status {
    done(|| Ok(library::context(context)?.start()?))
}

/// Stops the services of a context. Calls in progress and work in flight are still recorded when they end.
///
/// Errors: `GPUTRAIL_BUSY` from within a buffer's callback if the context samples; `GPUTRAIL_STOPPED`,
/// `GPUTRAIL_NO_SUCH_CONTEXT`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_context_stop(context: ContextHandle) -> Status {
    done(|| Ok(library::context(context)?.stop()?))
}

/// Writes whether a context exists: 1 or 0.
///
/// Errors: `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `valid` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_context_is_valid(
    context: ContextHandle,
    valid: *mut i32,
) -> Status {
    done(|| {
        // SAFETY: `valid` is null or a place for a number (the caller's promise).
        let valid = unsafe { place(valid, "valid") }?;
        valid.write(i32::from(library::state()?.contexts.has(context.handle)));
        Ok(())
    })
}

/// Writes whether a context is started: 1 or 0.
///
/// Errors: `GPUTRAIL_NO_SUCH_CONTEXT`, `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `active` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_context_is_active(
    context: ContextHandle,
    active: *mut i32,
) -> Status {
    done(|| {
        // SAFETY: `active` is null or a place for a number (the caller's promise).
        let active = unsafe { place(active, "active") }?;
        active.write(i32::from(library::context(context)?.is_started()));
        Ok(())
    })
}

/// Configures buffer tracing: what `selection` names goes to `buffer` while the context is started. A null
/// `selection` asks for everything.
///
/// Errors: `GPUTRAIL_LOCKED` after the first start; `GPUTRAIL_CONFLICT` if the buffer has a service here already;
/// `GPUTRAIL_NOT_ALONE` for kinds that need another; `GPUTRAIL_UNKNOWN_KIND`, `GPUTRAIL_UNKNOWN_OPERATION`;
/// `GPUTRAIL_NO_SUCH_CONTEXT`, `GPUTRAIL_NO_SUCH_BUFFER`, `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `selection` is null or leads to a selection whose pointers are null or lead to as many values as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_context_trace_to(
    context: ContextHandle,
    buffer: BufferHandle,
    selection: *const SelectionOptions,
) -> Status {
    done(|| {
        let (context, buffer) = (library::context(context)?, library::buffer(buffer)?);
        // SAFETY: `selection` is null or leads to a selection whose arrays are null or as long as it says (the caller's
        // promise).
        let mut selection = unsafe { selected(selection) }?;
        selection.kinds = buffer.needed(selection.kinds);
        Ok(context.trace_to(&buffer, selection)?)
    })
}

/// # Safety
///
/// As for [`gputrail_context_trace_to`].
pub(super) unsafe fn selected(selection: *const SelectionOptions) -> Answer<RecordSelection> {
    if selection.is_null() {
        return Ok(RecordSelection::all());
    }
    // SAFETY: `selection` is not null, so it leads to a selection of as many bytes as its size says (the caller's promise).
    let asked = unsafe { sized::read(selection) }?;
    let kinds = if asked.kinds.is_null() && asked.kind_count == 0 {
        KindSet::ALL
    } else {
        // SAFETY: `asked.kinds` leads to `asked.kind_count` kinds, or is null (the caller's promise); `KindSet` copies them.
        let kinds = unsafe { values(asked.kinds, asked.kind_count, "kinds") }?;
        if let Some(unknown) = kinds.iter().find(|kind| kind.producer().is_none()) {
            let name = unknown.name().unwrap_or("of no name");
            let text = format!("nothing produces records of kind {:#x} ({name})", unknown.0);
            return Err(FailedCall::new(Status::UNKNOWN_KIND, text));
        }
        KindSet::of(kinds)
    };
    // SAFETY: `asked.operations` leads to `asked.operation_count` operations, or is null (the caller's promise).
    let operations = unsafe { these_operations(asked.operations, asked.operation_count) }?;
    Ok(RecordSelection {
        kinds,
        operations,
        enqueue_arguments: true,
        call_stacks: false,
    })
}

/// # Safety
///
/// `operations` is null, misaligned, or leads to `count` operations, which nobody writes during the call.
pub(super) unsafe fn these_operations(
    operations: *const Operation,
    count: usize,
) -> Answer<OperationSet> {
    if operations.is_null() && count == 0 {
        return Ok(OperationSet::all());
    }
    let mut set = OperationSet::default();
    // SAFETY: `operations` leads to `count` operations, or is null, which `values` refuses (the caller's promise); the set
    // copies them.
    for operation in unsafe { values(operations, count, "operations") }? {
        if !set.set(*operation, true) {
            let text = format!("unknown {operation}");
            return Err(FailedCall::new(Status::UNKNOWN_OPERATION, text));
        }
    }
    Ok(set)
}

/// Enables (`on` is not 0) or disables a kind of records for a buffer, also while the context is started.
///
/// Errors: `GPUTRAIL_NO_SUCH_SERVICE` if the buffer has no service in the context; `GPUTRAIL_NOT_ALONE`, and nothing is
/// changed; `GPUTRAIL_UNKNOWN_KIND`, `GPUTRAIL_NO_SUCH_CONTEXT`, `GPUTRAIL_NO_SUCH_BUFFER`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_context_enable_kind(
    context: ContextHandle,
    buffer: BufferHandle,
    kind: Kind,
    on: i32,
) -> Status {
    done(|| {
        let (context, buffer) = (library::context(context)?, library::buffer(buffer)?);
        let one = KindSet::of(&[kind]);
        if on != 0 && buffer.needed(one) != one {
            context.enable_kind(&buffer, Kind::COMPLETION, true)?;
        }
        Ok(context.enable_kind(&buffer, kind, on != 0)?)
    })
}

/// Enables or disables a kind of records for one context of a runtime, which supersedes the buffer's selection for all
/// others (CUPTI: `cuptiActivityEnableContext`): `on` is 1 or 0, or -1, which removes the exception. Also while the
/// context is started.
///
/// Errors: `GPUTRAIL_UNKNOWN_KIND` for kinds whose records belong to no context of a runtime;
/// `GPUTRAIL_INVALID_ARGUMENT` for another `on`; `GPUTRAIL_NO_SUCH_SERVICE` if the buffer has no service in the
/// context; `GPUTRAIL_NO_SUCH_CONTEXT`, `GPUTRAIL_NO_SUCH_BUFFER`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_context_enable_kind_in(
    context: ContextHandle,
    buffer: BufferHandle,
    of: ContextId,
    kind: Kind,
    on: i32,
) -> Status {
    done(|| {
        let (context, buffer) = (library::context(context)?, library::buffer(buffer)?);
        let on = match on {
            -1 => None,
            0 => Some(false),
            1 => Some(true),
            _ => {
                let text = format!("unknown on {on}: expected 1, 0 or -1");
                return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
            }
        };
        Ok(context.enable_kind_in(&buffer, of, kind, on)?)
    })
}

/// Enables (`on` is not 0) or disables the records of one operation's calls for a buffer, also while the context is
/// started.
///
/// Errors: `GPUTRAIL_UNKNOWN_OPERATION`, `GPUTRAIL_NO_SUCH_SERVICE`, `GPUTRAIL_NO_SUCH_CONTEXT`,
/// `GPUTRAIL_NO_SUCH_BUFFER`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_context_enable_operation(
    context: ContextHandle,
    buffer: BufferHandle,
    operation: Operation,
    on: i32,
) -> Status {
    done(|| {
        let (context, buffer) = (library::context(context)?, library::buffer(buffer)?);
        Ok(context.enable_operation(&buffer, operation, on != 0)?)
    })
}
