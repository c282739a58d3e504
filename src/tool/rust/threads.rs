//! Threads of the library's that call the tool back.

use super::Error;
use super::callee::{Callee, Held, call};
use super::functions::{answer, functions};
use crate::platform::internal_thread::InternalThread;
use crate::tool::c::{Status, ThreadHandle, WatchHandle};
use core::ffi::c_void;

/// A thread that delivers what buffers get that are assigned to it ([`Buffer::assign`](super::Buffer::assign)), one after
/// the other. Buffers that have none share one: there a callback that takes long holds up all others. Dropped, it goes on
/// for as long as buffers are assigned to it.
#[derive(Debug)]
pub struct CallbackThread(ThreadHandle);

impl CallbackThread {
    /// A new one.
    ///
    /// # Errors
    ///
    /// `TOO_MANY`, `NO_THREAD`.
    pub fn new() -> Result<CallbackThread, Error> {
        // SAFETY: a place for the id.
        answer(|functions, handle| unsafe { (functions.callback_thread_create)(handle) })
            .map(CallbackThread)
    }

    pub(super) fn handle(&self) -> ThreadHandle {
        self.0
    }
}

impl Drop for CallbackThread {
    fn drop(&mut self) {
        if let Ok(functions) = functions() {
            // It may be gone, with the tool's end.
            (functions.callback_thread_destroy)(self.0);
        }
    }
}

type Tell = Box<dyn Fn(InternalThread) + Send + Sync>;

/// A function that is called around the making of each thread of the library's, until this is dropped; it may still be
/// running on another thread then, so what it owns stays until the end.
pub struct InternalThreadWatch(WatchHandle);

impl InternalThreadWatch {
    /// Has `tell` called from now on, on the thread that makes another. If it panics, it is not called again.
    ///
    /// # Errors
    ///
    /// `NOT_INITIALISED` after the tool's end.
    pub fn new(
        tell: impl Fn(InternalThread) + Send + Sync + 'static,
    ) -> Result<InternalThreadWatch, Error> {
        unsafe extern "C" fn told(made: i32, user_data: *mut c_void) {
            // SAFETY: what was given below, which lasts for ever.
            let callee = unsafe { &*user_data.cast::<Callee<Tell>>() };
            let moment = match made {
                0 => InternalThread::Before,
                _ => InternalThread::After,
            };
            call(&callee.failed, || (callee.function)(moment));
        }
        let callee = Held::new(Box::new(tell) as Tell);
        let watch = answer(|functions, handle| {
            // SAFETY: a function, what it is given, and a place for the id.
            unsafe { (functions.thread_watch)(Some(told), callee.pointer(), handle) }
        });
        watch.map(InternalThreadWatch).inspect_err(|_| {
            // SAFETY: the library did not take it.
            unsafe { callee.release() }
        })
    }
}

impl Drop for InternalThreadWatch {
    fn drop(&mut self) {
        if let Ok(functions) = functions() {
            // It may be gone, with the tool's end.
            let _: Status = (functions.thread_unwatch)(self.0);
        }
    }
}
