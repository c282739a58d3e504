//! External ids: ids of a tool's own that the records of a thread carry.

use super::callback;
use super::caller::Caller;
use super::context::these_operations;
use super::library;
use super::markers::{begin, begin_observed};
use super::owner::ToolPointer;
use super::status::FailedCall;
use super::{checked, done, place, text};
use core::ffi::{c_char, c_void};
use gputrail_collect::external::{self, ExternalError};
use gputrail_interface::c::{
    ContextHandle, ExternalRequest, SizedStruct, Status, SubscriberHandle, SupplyFunction,
};
use gputrail_record::{ExternalId, ExternalKind, Operation};
use std::sync::Arc;

impl From<ExternalError> for FailedCall {
    fn from(error: ExternalError) -> FailedCall {
        let status = match error {
            ExternalError::Empty(_) => Status::STACK_EMPTY,
            ExternalError::Full => Status::STACK_FULL,
            ExternalError::UnknownKind(_) => Status::INVALID_ARGUMENT,
            ExternalError::NotAvailable => Status::NOT_AVAILABLE,
            ExternalError::TooManyKinds => Status::TOO_MANY,
        };
        FailedCall::new(status, error.to_string())
    }
}

/// Registers a kind of external ids of the tool's own. The same name gives the same kind. The kinds that there are
/// without that have names of their own: `GPUTRAIL_EXTERNAL_KIND_CUSTOM0` and so on.
///
/// Errors: `GPUTRAIL_TOO_MANY` with 256 kinds; `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_INVALID_ARGUMENT`.
///
/// # Safety
///
/// `name` is null or a text that ends with a 0; `kind` is null or a place for the kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_external_register_kind(
    name: *const c_char,
    kind: *mut ExternalKind,
) -> Status {
    done(|| {
        checked(kind, "kind")?;
        // SAFETY: `name` is null or a text that ends with a 0, `kind` is null or a place for a kind (the caller's promises).
        unsafe {
            let registered = external::register_kind(text::given(name, "name")?)?;
            place(kind, "kind")?.write(registered);
        }
        Ok(())
    })
}

/// The name of a kind of external ids, registered or not, ended by a 0. `length`, which may be null, gets the length
/// without the 0; a null `to` asks for it alone.
///
/// Errors: `GPUTRAIL_NOT_FOUND`; `GPUTRAIL_TOO_SMALL`, and nothing is written but the length.
///
/// # Safety
///
/// `to` is null or leads to `capacity` bytes, `length` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_external_kind_name(
    kind: ExternalKind,
    to: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    done(|| {
        let name = external::kind_name(kind).ok_or(Status::NOT_FOUND)?;
        // SAFETY: `to` is null or leads to `capacity` bytes, `length` is null or a place for a number (the caller's
        // promises).
        unsafe { text::copy(&name, to, capacity, length) }
    })
}

/// The id that records of the calling thread carry now in buffers whose contexts have no ids of their own; 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_external_current() -> ExternalId {
    let mut current = ExternalId::NONE;
    done(|| {
        current = external::current();
        Ok(())
    });
    current
}

/// Pushes `id` for the process on the calling thread's stack of `kind`. Records of the thread's calls and of their work
/// carry the id that was pushed last, of any kind; those of a thread that has none carry the main thread's (CUPTI:
/// `cuptiActivityPushExternalCorrelationId`). Buffers of a context with ids of its own get those instead: see
/// `gputrail_context_push_external`.
///
/// Like a marker, an id begins the recording of a program that uses no GPU. In a recorded process the library need not be
/// initialised; in another one it has to be.
///
/// Errors: `GPUTRAIL_INVALID_ARGUMENT` for a kind that is none; `GPUTRAIL_STACK_FULL` with 1024 ids;
/// `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NOT_AVAILABLE`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_external_push(kind: ExternalKind, id: ExternalId) -> Status {
    done(|| {
        begin_observed()?;
        Ok(external::push(kind, id)?)
    })
}

/// Takes the latest id of `kind` that was pushed for the process off the calling thread's stack. `id`, which may be null, gets it (CUPTI:
/// `cuptiActivityPopExternalCorrelationId`).
///
/// Errors: `GPUTRAIL_STACK_EMPTY`; otherwise as for `gputrail_external_push`.
///
/// # Safety
///
/// `id` is null or a place for the id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_external_pop(kind: ExternalKind, id: *mut ExternalId) -> Status {
    done(|| {
        begin_observed()?;
        let popped = external::pop(kind)?;
        if !id.is_null() {
            // SAFETY: `id` is not null, and a place for an id (the caller's promise); `place` refuses a misaligned one.
            unsafe { place(id, "id")?.write(popped) };
        }
        Ok(())
    })
}

/// Pushes `id` for one context on the calling thread's stack of `kind`: records in the buffers of the context, its
/// samples and its callbacks carry the id that was pushed there last, of any kind, and those of other contexts do not
/// (rocprofiler-sdk: `rocprofiler_push_external_correlation_id`). Where the context has no id on a thread, it gets the id
/// that the main thread has pushed for the context, or else that of the process.
///
/// Errors: also `GPUTRAIL_NO_SUCH_CONTEXT`; otherwise as for `gputrail_external_push`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_context_push_external(
    context: ContextHandle,
    kind: ExternalKind,
    id: ExternalId,
) -> Status {
    done(|| {
        begin();
        Ok(library::context(context)?.push_external_id(kind, id)?)
    })
}

/// Takes the latest id of `kind` that was pushed for `context` off the calling thread's stack. `id`, which may be null,
/// gets it (rocprofiler-sdk: `rocprofiler_pop_external_correlation_id`).
///
/// Errors: `GPUTRAIL_STACK_EMPTY`; otherwise as for `gputrail_context_push_external`.
///
/// # Safety
///
/// `id` is null or a place for the id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_context_pop_external(
    context: ContextHandle,
    kind: ExternalKind,
    id: *mut ExternalId,
) -> Status {
    done(|| {
        let popped = library::context(context)?.pop_external_id(kind)?;
        if !id.is_null() {
            // SAFETY: `id` is not null, and a place for an id (the caller's promise); `place` refuses a misaligned one.
            unsafe { place(id, "id")?.write(popped) };
        }
        Ok(())
    })
}

/// The id that records of the calling thread carry now in buffers of `context`; 0 for none.
///
/// Errors: `GPUTRAIL_NO_SUCH_CONTEXT`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `id` is null or a place for the id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_context_current_external(
    context: ContextHandle,
    id: *mut ExternalId,
) -> Status {
    done(|| {
        // SAFETY: `id` is null or a place for an id (the caller's promise).
        let place = unsafe { place(id, "id") }?;
        place.write(library::context(context)?.external_id());
        Ok(())
    })
}

/// Says what an id stands for, before it is pushed: traces show it as a slice above the calls for as long as it is.
///
/// Errors: `GPUTRAIL_NULL_POINTER`; otherwise as for `gputrail_external_push`.
///
/// # Safety
///
/// `name` is null or a text that ends with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_external_name(
    kind: ExternalKind,
    id: ExternalId,
    name: *const c_char,
) -> Status {
    done(|| {
        begin_observed()?;
        // SAFETY: `name` is null or a text that ends with a 0 (the caller's promise).
        Ok(external::name(kind, id, unsafe {
            text::given(name, "name")
        }?)?)
    })
}

/// Requests external ids from `supply` while the context is started: for each call of the operations at its enter, and
/// for kernels, copies, fills, allocations and frees (`GPUTRAIL_KERNEL_DISPATCH_ENQUEUE` and so on) at theirs, on the
/// thread that makes the call. A null `operations` with a count of 0 selects all of these. The id of a call stands in
/// its record, and in those of the work, the memory and the waits in it, instead of the one that was pushed last; an id
/// that is supplied for the work itself replaces it there (rocprofiler-sdk:
/// `rocprofiler_configure_external_correlation_id_request_service`).
///
/// The ids are for the buffers, samples and callbacks of `context`: each tool gets its own. Contexts that neither push nor
/// supply ids, such as the recording of `gputrail record`, get those of the service that was subscribed first. The
/// commands of a command buffer share the first id that is supplied for one of them. Other operations are ignored.
///
/// `subscriber` is one as `gputrail_subscribe` gives it: operations are enabled and disabled by it, and
/// `gputrail_unsubscribe` ends the service.
///
/// Errors: as for `gputrail_subscribe`.
///
/// # Safety
///
/// `operations` is null or leads to `operation_count` of them, `supply` is null or such a function, `subscriber` is
/// null or a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_external_supply(
    context: ContextHandle,
    operations: *const Operation,
    operation_count: usize,
    supply: SupplyFunction,
    user_data: *mut c_void,
    subscriber: *mut SubscriberHandle,
) -> Status {
    done(|| {
        // SAFETY: `subscriber` is null or a place for a handle (the caller's promise).
        let place = unsafe { place(subscriber, "subscriber") }?;
        let supply =
            supply.ok_or_else(|| FailedCall::new(Status::NULL_POINTER, "supply is null"))?;
        // SAFETY: `operations` leads to `operation_count` of them, or is null (the caller's promise); `these_operations`
        // copies them.
        let operations = unsafe { these_operations(operations, operation_count) }?;
        let of = library::context(context)?;
        let (user_data, caller) = (ToolPointer(user_data), Caller::of_subscriber());
        let subscriber = of.supply_external_ids(operations, move |asked| {
            let request = ExternalRequest {
                operation: asked.operation,
                thread: asked.thread,
                name: callback::name_of(asked.operation, asked.name),
                correlation: asked.correlation,
                kernel: asked.kernel,
                ..ExternalRequest::blank()
            };
            let mut id = ExternalId::NONE;
            // SAFETY: a function of the tool's, which the tool gave for this.
            let supplied = caller.run(|| unsafe { supply(&request, &mut id, user_data.get()) });
            (supplied != 0).then_some(id)
        })?;
        place.write(callback::keep(context, subscriber, Arc::default())?);
        Ok(())
    })
}
