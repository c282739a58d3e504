//! Callbacks: their data, requests for external ids, and subscribers.

use super::Error;
use super::arguments::{self, Argument};
use super::callee::{HeldCallee, is_called};
use super::functions::{act, ask, check, list};
use core::ffi::{CStr, c_void};
use gputrail_interface::c::{
    CallbackData, ExternalRequest as RequestData, Status, SubscriberHandle,
};
use gputrail_interface::joined::RecordFormat;
use gputrail_interface::operations::Phase;
use gputrail_record::*;

/// The data of a callback.
#[derive(Copy, Clone)]
pub struct Callback<'a>(pub(super) &'a CallbackData);

impl<'a> Callback<'a> {
    /// The operation that is reported.
    pub fn operation(&self) -> Operation {
        self.0.operation
    }

    /// Its name.
    pub fn name(&self) -> &str {
        // SAFETY: the library's text, which ends with a 0 and lasts for ever.
        unsafe { CStr::from_ptr(self.0.name) }
            .to_str()
            .unwrap_or("")
    }

    /// Whether the call begins; otherwise it has returned, or something has happened.
    pub fn is_enter(&self) -> bool {
        self.0.phase == gputrail_interface::operations::Phase::Enter as u32
    }

    /// The moment that it is about; none that this version knows in callbacks of a newer library.
    pub fn phase(&self) -> Option<Phase> {
        let all = [Phase::Enter, Phase::Exit, Phase::Complete, Phase::Instant];
        all.into_iter().find(|phase| *phase as u32 == self.0.phase)
    }

    /// The kernel that is launched or has completed, where one is.
    pub fn kernel(&self) -> KernelId {
        self.0.kernel
    }

    /// Its name, as the program calls it. Looked up when it is asked for.
    pub fn kernel_name(&self) -> Option<String> {
        super::kernel_name(self.0.kernel)
    }

    /// The record of the work, the wait or the object that is reported, if it is an `R`. Its times are nanoseconds of
    /// CLOCK_BOOTTIME, unless [`Subscriber::set_format`] asks for raw ones.
    pub fn record<R: Record>(&self) -> Option<&'a R> {
        // SAFETY: null or the library's record, all of it, during the callback.
        let header = unsafe { self.0.record.as_ref() }?;
        let whole = header.kind == R::KIND && header.bytes() >= size_of::<R>();
        // SAFETY: of this kind and at least this size, and borrowed no longer than the callback.
        whole.then(|| unsafe { &*self.0.record.cast::<R>() })
    }

    /// The machine code of a code object that is loaded or unloaded; empty where the runtime does not give it.
    pub fn code(&self) -> &'a [u8] {
        if self.0.code.is_null() {
            return &[];
        }
        // SAFETY: the library's bytes, as many as it says, during the callback.
        unsafe { std::slice::from_raw_parts(self.0.code, self.0.code_bytes) }
    }

    /// The call's arguments, in the order of the function's signature: at its enter and its exit.
    pub fn arguments(&self) -> impl Iterator<Item = Argument<'a>> + use<'a> {
        arguments::of_callback(self.0)
    }

    /// The call's id.
    pub fn correlation(&self) -> CorrelationId {
        self.0.correlation
    }

    /// The thread.
    pub fn thread(&self) -> ThreadId {
        self.0.thread
    }

    /// The external id of the call or the work, as records in buffers of the subscriber's context carry it.
    pub fn external(&self) -> ExternalId {
        self.0.external
    }

    /// The value that the call returned; `None` before it returns.
    pub fn return_code(&self) -> Option<i32> {
        (self.0.has_return_code != 0).then_some(self.0.return_code)
    }

    /// The whole value that the call returned: a status, or the handle or address of what it made. `None` before it
    /// returns.
    pub fn return_value(&self) -> Option<u64> {
        (self.0.has_return_code != 0).then_some(self.0.return_value)
    }

    /// The context in the runtime of a call, where its first argument or the runtime tells it.
    pub fn runtime_context(&self) -> ContextId {
        self.0.runtime_context
    }

    /// Of a kernel that runs in several passes for its counters: the passes that have run.
    pub fn passes_done(&self) -> u32 {
        self.0.passes_done
    }

    /// The runtime's own id of the call (CUPTI: `correlationId`).
    pub fn runtime_correlation(&self) -> Option<u64> {
        Some(self.0.runtime_correlation).filter(|id| *id != 0)
    }
}

/// A call or work that begins, and needs an external id.
#[derive(Copy, Clone)]
pub struct ExternalRequest<'a>(pub(super) &'a RequestData);

impl ExternalRequest<'_> {
    /// The function, or the enqueue, allocation or free in it.
    pub fn operation(&self) -> Operation {
        self.0.operation
    }

    /// The kernel that is launched, where one is.
    pub fn kernel(&self) -> KernelId {
        self.0.kernel
    }

    /// The thread that makes the call, which is the calling one.
    pub fn thread(&self) -> ThreadId {
        self.0.thread
    }

    /// The call's id.
    pub fn correlation(&self) -> CorrelationId {
        self.0.correlation
    }
}

/// A function that is called back, until this is dropped. Dropped within a callback, what the function owns stays
/// until the end.
///
/// Its operations may be changed at any time, from any thread and from callbacks.
pub struct Subscriber {
    handle: SubscriberHandle,
    callee: Option<HeldCallee>,
}

impl Subscriber {
    /// A subscriber that `subscribe` creates and that calls `callee`.
    pub(super) fn new(
        callee: HeldCallee,
        subscribe: impl FnOnce(*mut c_void, *mut SubscriberHandle) -> Result<Status, Error>,
    ) -> Result<Subscriber, Error> {
        let mut handle = SubscriberHandle::default();
        match check(subscribe(callee.pointer(), &mut handle)) {
            Ok(()) => Ok(Subscriber {
                handle,
                callee: Some(callee),
            }),
            Err(error) => {
                // SAFETY: the library did not take it.
                unsafe { callee.release() };
                Err(error)
            }
        }
    }

    /// Sets the format of the records in its callbacks: joined ones, the usual ones, have times in nanoseconds of
    /// CLOCK_BOOTTIME, raw ones as they were read.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_SUBSCRIBER` once its context is gone.
    pub fn set_format(&self, format: RecordFormat) -> Result<(), Error> {
        act!(gputrail_subscriber_format(self.handle, format as u32))
    }

    /// Enables or disables callbacks for one operation.
    ///
    /// # Errors
    ///
    /// `UNKNOWN_OPERATION`; `NO_SUCH_SUBSCRIBER` once its context is gone.
    pub fn enable(&self, operation: Operation, on: bool) -> Result<(), Error> {
        act!(gputrail_enable_callback(self.handle, operation, on.into()))
    }

    /// Enables or disables callbacks for all operations of a domain.
    ///
    /// # Errors
    ///
    /// As for [`Subscriber::enable`].
    pub fn enable_domain(&self, domain: Domain, on: bool) -> Result<(), Error> {
        act!(gputrail_enable_domain(self.handle, domain, on.into()))
    }

    /// Enables or disables callbacks for all operations of all domains.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_SUBSCRIBER` once its context is gone.
    pub fn enable_all(&self, on: bool) -> Result<(), Error> {
        act!(gputrail_enable_all_callbacks(self.handle, on.into()))
    }

    /// Whether callbacks for an operation are enabled; the context need not be started.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_SUBSCRIBER` once its context is gone.
    pub fn is_enabled(&self, operation: Operation) -> Result<bool, Error> {
        let enabled: i32 = ask!(gputrail_callback_is_enabled(self.handle, operation))?;
        Ok(enabled != 0)
    }

    /// The operations, of those that the library knows, for which callbacks are enabled.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_SUBSCRIBER` once its context is gone.
    pub fn enabled(&self) -> Result<Vec<Operation>, Error> {
        list!(gputrail_enabled_callbacks(self.handle))
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        if act!(gputrail_unsubscribe(self.handle)).is_ok()
            && !is_called()
            && let Some(callee) = self.callee.take()
        {
            // SAFETY: the library has let go of it, and waited for those who were in it.
            unsafe { callee.release() };
        }
    }
}
