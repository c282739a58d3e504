//! External ids: ids of a tool's own that the records of a thread carry.

use super::library::board;
use super::status::{Failure, Status};
use super::{checked, done, place, text};
use crate::external::{self, ExternalError};
use crate::record::{ExternalId, ExternalKind};
use core::ffi::c_char;

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
/// `id` is null or a place for the id.
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
