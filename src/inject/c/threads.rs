//! Threads of the library: those that deliver records, and callbacks around their creation.

use super::caller::Caller;
use super::owner::ToolPointer;
use super::status::FailedCall;
use super::{done, library, place};
use core::ffi::c_void;
use gputrail_collect::context::{CallbackThread, InternalThread, InternalThreadWatch};
use gputrail_interface::c::{
    BufferHandle, CallbackThreadHandle, Status, ThreadFunction, WatchHandle,
};
use std::io::ErrorKind;
use std::sync::Arc;

/// Creates a thread that delivers the records of the buffers that are assigned to it, one after the other. Buffers
/// without one share a thread: a callback that takes long delays all others there.
///
/// Errors: `GPUTRAIL_TOO_MANY` with 64 of them; `GPUTRAIL_NO_THREAD`, `GPUTRAIL_NOT_INITIALISED`,
/// `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `thread` is null or a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_callback_thread_create(
    thread: *mut CallbackThreadHandle,
) -> Status {
    done(|| {
        // SAFETY: `thread` is null or a place for a handle (the caller's promise).
        let place = unsafe { place(thread, "thread") }?;
        drop(library::state()?);
        let made = CallbackThread::create().map_err(|error| match error.kind() {
            ErrorKind::QuotaExceeded => FailedCall::from(Status::TOO_MANY),
            _ => FailedCall::new(Status::NO_THREAD, error.to_string()),
        })?;
        let mut state = library::state()?;
        let id = state.threads.new_handle();
        state.threads.insert(id, Arc::new(made));
        place.write(CallbackThreadHandle { handle: id });
        Ok(())
    })
}

/// Destroys a callback thread. It runs for as long as buffers are assigned to it.
///
/// Errors: `GPUTRAIL_NO_SUCH_THREAD`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_callback_thread_destroy(thread: CallbackThreadHandle) -> Status {
    done(|| {
        let gone = library::state()?.threads.remove(thread.handle)?;
        drop(gone);
        Ok(())
    })
}

/// Has a callback thread deliver what `buffer` gets from now on. The thread that did so before may still be at it when
/// this returns.
///
/// Errors: `GPUTRAIL_NO_SUCH_BUFFER`, `GPUTRAIL_NO_SUCH_THREAD`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_buffer_assign(
    buffer: BufferHandle,
    thread: CallbackThreadHandle,
) -> Status {
    done(|| {
        library::buffer(buffer)?.assign(&*library::thread(thread)?);
        Ok(())
    })
}

/// Has `callback` called around the making of each thread of the library's from now on (rocprofiler-sdk:
/// `rocprofiler_at_internal_thread_create`).
///
/// Errors: `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `callback` is null or such a function, `watch` is null or a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_thread_watch(
    callback: ThreadFunction,
    user_data: *mut c_void,
    watch: *mut WatchHandle,
) -> Status {
    done(|| {
        // SAFETY: `watch` is null or a place for a handle (the caller's promise).
        let place = unsafe { place(watch, "watch") }?;
        let callback =
            callback.ok_or_else(|| FailedCall::new(Status::NULL_POINTER, "callback is null"))?;
        let (user_data, caller) = (ToolPointer(user_data), Caller::of_buffer());
        let mut state = library::state()?;
        let id = state.watches.new_handle();
        let made = InternalThreadWatch::new(move |moment| {
            let made = i32::from(moment == InternalThread::After);
            // SAFETY: a function of the tool's, which the tool gave for this.
            caller.run(|| unsafe { callback(made, user_data.get()) });
        });
        state.watches.insert(id, Arc::new(made));
        place.write(WatchHandle { handle: id });
        Ok(())
    })
}

/// Ends such a watch. It may still be running on another thread when this returns.
///
/// Errors: `GPUTRAIL_NO_SUCH_WATCH`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_thread_unwatch(watch: WatchHandle) -> Status {
    done(|| {
        let gone = library::state()?.watches.remove(watch.handle)?;
        drop(gone);
        Ok(())
    })
}
