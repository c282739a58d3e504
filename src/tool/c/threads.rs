//! Threads of the library's: those that call a tool back with records, and what a tool is told of their making.

use super::buffer::UserData;
use super::callback::Inside;
use super::objects::{self, BufferHandle, CallbackThreadHandle, Class, WatchHandle};
use super::status::{Failure, Status};
use super::{done, library, place};
use crate::collect::context::{CallbackThread, InternalThread, InternalThreadWatch};
use core::ffi::c_void;
use std::io::ErrorKind;
use std::sync::Arc;

/// Makes a thread that delivers what buffers get that are assigned to it, one after the other. Buffers that have none share
/// one: there a callback that takes long holds up all others.
///
/// Errors: `GPUTRAIL_TOO_MANY` with 64 of them; `GPUTRAIL_NO_THREAD`, `GPUTRAIL_NOT_INITIALISED`,
/// `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `thread` is null or a place for the id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_callback_thread_create(
    thread: *mut CallbackThreadHandle,
) -> Status {
    done(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { place(thread, "thread") }?;
        drop(library::state()?);
        let made = CallbackThread::create().map_err(|error| match error.kind() {
            ErrorKind::QuotaExceeded => Failure::from(Status::TOO_MANY),
            _ => Failure::new(Status::NO_THREAD, error.to_string()),
        })?;
        let mut state = library::state()?;
        let id = state.new_id(Class::CallbackThread);
        state.threads.insert(id, Arc::new(made));
        place.write(CallbackThreadHandle { handle: id });
        Ok(())
    })
}

/// Lets go of a callback thread. It goes on for as long as buffers are assigned to it.
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

/// Has a callback thread deliver what `buffer` gets from now on. The thread that did so before may still be at it when this
/// returns.
///
/// Errors: `GPUTRAIL_NO_SUCH_BUFFER`, `GPUTRAIL_NO_SUCH_THREAD`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_buffer_assign(
    buffer: BufferHandle,
    thread: CallbackThreadHandle,
) -> Status {
    done(|| {
        objects::buffer(buffer)?.assign(&*objects::thread(thread)?);
        Ok(())
    })
}

/// Is told of a thread of the library's, on the thread that makes it: with `made` 0 before it is made, with 1 when it has
/// been, or could not be. It must not throw.
pub type ThreadFunction = Option<unsafe extern "C" fn(made: i32, user_data: *mut c_void)>;

/// Has `tell` called around the making of each thread of the library's from now on (rocprofiler-sdk:
/// `rocprofiler_at_internal_thread_create`).
///
/// Errors: `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `tell` is null or such a function, `watch` is null or a place for the id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_thread_watch(
    tell: ThreadFunction,
    user_data: *mut c_void,
    watch: *mut WatchHandle,
) -> Status {
    done(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { place(watch, "watch") }?;
        let tell = tell.ok_or_else(|| Failure::new(Status::NULL_POINTER, "tell is null"))?;
        let user_data = UserData(user_data);
        let mut state = library::state()?;
        let id = state.new_id(Class::Watch);
        let made = InternalThreadWatch::new(move |moment| {
            let _inside = Inside::batch();
            // SAFETY: a function of the tool's, which the tool gave for this.
            unsafe { tell(i32::from(moment == InternalThread::After), user_data.get()) };
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
