//! External ids: ids of a tool's own that the records of a thread carry.

use super::buffer::UserData;
use super::callback::{self, Caller};
use super::context::these_operations;
use super::library::board;
use super::objects::{self, ContextHandle, SubscriberHandle};
use super::sized::{SizedStruct, sized};
use super::status::{Failure, Status};
use super::{checked, done, place, text};
use crate::collect::external::{self, ExternalError};
use crate::record::{CorrelationId, ExternalId, ExternalKind, Operation, ThreadId};
use core::ffi::{c_char, c_void};

impl From<ExternalError> for Failure {
    fn from(error: ExternalError) -> Failure {
        let status = match error {
            ExternalError::Empty(_) => Status::STACK_EMPTY,
            ExternalError::Full => Status::STACK_FULL,
            ExternalError::UnknownKind(_) => Status::INVALID_ARGUMENT,
            ExternalError::NotAvailable => Status::NOT_AVAILABLE,
            ExternalError::TooManyKinds => Status::TOO_MANY,
        };
        Failure::new(status, error.to_string())
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
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promises.
        unsafe { text::copy(&name, to, capacity, length) }
    })
}

/// The id that records of the calling thread carry now; 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_external_current() -> ExternalId {
    let mut current = ExternalId::NONE;
    done(|| {
        current = external::current();
        Ok(())
    });
    current
}

/// Pushes `id` on the calling thread's stack of `kind`. Records of the thread's calls carry the id that was pushed
/// last, of any kind; those of a thread that has none carry the main thread's (CUPTI:
/// `cuptiActivityPushExternalCorrelationId`).
///
/// Errors: `GPUTRAIL_INVALID_ARGUMENT` for a kind that is none; `GPUTRAIL_STACK_FULL` with 1024 ids;
/// `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NOT_AVAILABLE`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_external_push(kind: ExternalKind, id: ExternalId) -> Status {
    done(|| {
        board()?;
        Ok(external::push(kind, id)?)
    })
}

/// Takes the latest id of `kind` off the calling thread's stack. `id`, which may be null, gets it (CUPTI:
/// `cuptiActivityPopExternalCorrelationId`).
///
/// Errors: `GPUTRAIL_STACK_EMPTY`; otherwise as for `gputrail_external_push`.
///
/// # Safety
///
/// `id` is null or a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_external_pop(kind: ExternalKind, id: *mut ExternalId) -> Status {
    done(|| {
        board()?;
        let popped = external::pop(kind)?;
        if !id.is_null() {
            // SAFETY: the caller's promise.
            unsafe { place(id, "id")?.write(popped) };
        }
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
        board()?;
        // SAFETY: the caller's promise.
        Ok(external::name(kind, id, unsafe {
            text::given(name, "name")
        }?)?)
    })
}

/// A request for the external id of a call that begins. Valid during the callback.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct ExternalRequest {
    /// Size of this structure.
    pub size: usize,
    /// The function.
    pub operation: Operation,
    /// The thread that calls it, which is the calling one.
    pub thread: ThreadId,
    /// Its name, `clFinish` say.
    pub name: *const c_char,
    /// The call's id.
    pub correlation: CorrelationId,
}
sized!(ExternalRequest, "gputrail_external_request", 32);

/// Supplies the external id of a call: returns 1 if it has written one to `id`, 0 to use the id that is pushed. Called
/// possibly on several threads at a time. Its own calls are not observed. It must not throw.
pub type SupplyFunction = Option<
    unsafe extern "C" fn(
        request: *const ExternalRequest,
        id: *mut ExternalId,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Has `supply` asked for the external id of each call of the operations, at its enter, on the thread that makes it,
/// while the context is started; a null `operations` with a count of 0 asks for those of every call. The id stands in
/// the call's record, and in those of the work, the memory and the waits in it, instead of the one that was pushed last
/// (rocprofiler-sdk: `rocprofiler_configure_external_correlation_id_request_service`). Of several tools that supply one
/// for the same call, the one that asked for the service first is heard. Operations that are no calls are not asked
/// for.
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
        // SAFETY: the caller's promise.
        let place = unsafe { place(subscriber, "subscriber") }?;
        let supply = supply.ok_or_else(|| Failure::new(Status::NULL_POINTER, "supply is null"))?;
        // SAFETY: the caller's promise.
        let operations = unsafe { these_operations(operations, operation_count) }?;
        let of = objects::context(context)?;
        let (user_data, caller) = (UserData(user_data), Caller::of_subscriber());
        let subscriber = of.supply_external_ids(operations, move |asked| {
            let request = ExternalRequest {
                operation: asked.operation,
                thread: asked.thread,
                name: callback::name_of(asked.operation, asked.name),
                correlation: asked.correlation,
                ..ExternalRequest::blank()
            };
            let mut id = ExternalId::NONE;
            // SAFETY: a function of the tool's, which the tool gave for this.
            let supplied = caller.run(|| unsafe { supply(&request, &mut id, user_data.get()) });
            (supplied != 0).then_some(id)
        })?;
        place.write(callback::keep(context, subscriber)?);
        Ok(())
    })
}
