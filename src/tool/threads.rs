//! Threads of the library's that call the tool back.

use super::Error;
use super::callee::{self, Callee, HeldCallee};
use super::functions::{act, ask, call, check};
use core::ffi::c_void;
use gputrail_buffer::platform::internal_thread::InternalThread;
use gputrail_interface::c::{CallbackThreadHandle, WatchHandle};

/// A thread that delivers what buffers get that are assigned to it ([`Buffer::assign`](super::Buffer::assign)), one
/// after the other. Buffers that have none share one: there a callback that takes long holds up all others. Dropped, it
/// goes on for as long as buffers are assigned to it.
#[derive(Debug)]
pub struct CallbackThread(CallbackThreadHandle);

impl CallbackThread {
    /// A new one.
    ///
    /// # Errors
    ///
    /// `TOO_MANY`, `NO_THREAD`.
    pub fn new() -> Result<CallbackThread, Error> {
        ask!(gputrail_callback_thread_create()).map(CallbackThread)
    }

    pub(super) fn handle(&self) -> CallbackThreadHandle {
        self.0
    }
}

impl Drop for CallbackThread {
    fn drop(&mut self) {
        // It may be gone, with the tool's end.
        let _ = act!(gputrail_callback_thread_destroy(self.0));
    }
}

type ThreadReceiver = Box<dyn Fn(InternalThread) + Send + Sync>;

/// A function that is called around the making of each thread of the library's, until this is dropped; it may still be
/// running on another thread then, so what it owns stays until the end.
pub struct InternalThreadWatch(WatchHandle);

impl InternalThreadWatch {
    /// Has `callback` called from now on, on the thread that makes another. If it panics, it is not called again.
    ///
    /// # Errors
    ///
    /// `NOT_INITIALISED` after the tool's end.
    pub fn new(
        callback: impl Fn(InternalThread) + Send + Sync + 'static,
    ) -> Result<InternalThreadWatch, Error> {
        unsafe extern "C-unwind" fn trampoline(made: i32, user_data: *mut c_void) {
            // SAFETY: what was given below, which lasts for ever.
            let callee = unsafe { &*user_data.cast::<Callee<ThreadReceiver>>() };
            let moment = match made {
                0 => InternalThread::Before,
                _ => InternalThread::After,
            };
            callee::call(&callee.failed, || (callee.function)(moment));
        }
        let callee = HeldCallee::new(Box::new(callback) as ThreadReceiver);
        let (watch, mut handle) = (callee.pointer(), WatchHandle::default());
        // SAFETY: a function, its user data, and a place for the id.
        match check(unsafe { call!(gputrail_thread_watch(Some(trampoline), watch, &mut handle)) }) {
            Ok(()) => Ok(InternalThreadWatch(handle)),
            Err(error) => {
                // SAFETY: the library did not take it.
                unsafe { callee.release() };
                Err(error)
            }
        }
    }
}

impl Drop for InternalThreadWatch {
    fn drop(&mut self) {
        // It may be gone, with the tool's end.
        let _ = act!(gputrail_thread_unwatch(self.0));
    }
}
