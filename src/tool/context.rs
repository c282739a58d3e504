//! Contexts and their services.

use super::callback::{Callback, ExternalRequest, Subscriber};
use super::callee::{Callee, call};
use super::functions::{check, functions};
use super::{Buffer, Error};
use crate::capi::{
    CallbackData, ContextHandle, ExternalRequest as RequestData, SelectionOptions, SubscriberHandle,
};
use crate::record::*;
use core::ffi::c_void;

type CallBack = Box<dyn Fn(Callback<'_>, &mut u64) + Send + Sync>;
type Supply = Box<dyn Fn(ExternalRequest<'_>) -> Option<ExternalId> + Send + Sync>;

/// A set of services that are started and stopped together. Dropping it destroys it.
#[derive(Debug)]
pub struct Context(ContextHandle);

impl Context {
    /// A context with no services.
    ///
    /// # Errors
    ///
    /// `TOO_MANY`.
    pub fn new() -> Result<Context, Error> {
        let mut handle = ContextHandle::default();
        // SAFETY: a place for the id.
        check(unsafe { (functions()?.context_create)(&mut handle) })?;
        Ok(Context(handle))
    }

    /// Has records of `kinds` go to `buffer` while the context is started.
    ///
    /// # Errors
    ///
    /// `LOCKED` after the first start, `CONFLICT`, `NOT_ALONE`, `UNKNOWN_KIND`.
    pub fn trace_to(&self, buffer: &Buffer, kinds: &[Kind]) -> Result<(), Error> {
        self.trace_operations_to(buffer, kinds, &[])
    }

    /// The same, of API calls those of `operations` only.
    ///
    /// # Errors
    ///
    /// As for [`Context::trace_to`], and `UNKNOWN_OPERATION`.
    pub fn trace_operations_to(
        &self,
        buffer: &Buffer,
        kinds: &[Kind],
        operations: &[Operation],
    ) -> Result<(), Error> {
        let selection = SelectionOptions {
            size: size_of::<SelectionOptions>(),
            kinds: kinds.as_ptr(),
            kind_count: kinds.len(),
            operations: if operations.is_empty() {
                std::ptr::null()
            } else {
                operations.as_ptr()
            },
            operation_count: operations.len(),
        };
        // SAFETY: a structure of this size with as many values as it says.
        check(unsafe { (functions()?.trace_to)(self.0, buffer.handle, &selection) })
    }

    /// Has `call_back` called for `operations`, on the thread on which they happen, possibly on several at once. The
    /// number is the subscriber's own: 0 at enter, and at exit what it left there. If it panics, it is not called again.
    ///
    /// # Errors
    ///
    /// `LOCKED` after the first start, `TOO_MANY`, `UNKNOWN_OPERATION`.
    pub fn call_back(
        &self,
        operations: &[Operation],
        call_back: impl Fn(Callback<'_>, &mut u64) + Send + Sync + 'static,
    ) -> Result<Subscriber, Error> {
        unsafe extern "C" fn called_back(data: *mut CallbackData, user_data: *mut c_void) {
            // SAFETY: the library's structure, and what was given below, which lasts as long as the subscriber.
            let (data, callee) = unsafe { (&mut *data, &*user_data.cast::<Callee<CallBack>>()) };
            let mut number = data.user_data;
            call(&callee.failed, || {
                (callee.function)(Callback(data), &mut number)
            });
            data.user_data = number;
        }
        let functions = functions()?;
        let callee = Callee::new(Box::new(call_back) as CallBack);
        let mut handle = SubscriberHandle::default();
        // SAFETY: as many operations as it says, a function, what it is given, and a place for the id.
        let status = unsafe {
            let (operations, count) = (operations.as_ptr(), operations.len());
            (functions.subscribe)(
                self.0,
                operations,
                count,
                Some(called_back),
                callee.cast(),
                &mut handle,
            )
        };
        check(status).inspect_err(|_| {
            // SAFETY: made above, and the library did not take it.
            drop(unsafe { Box::from_raw(callee) })
        })?;
        Ok(Subscriber::new(handle, callee))
    }

    /// Has `supply` asked for the external id of each call of `operations`, at its enter, on the thread that makes it: the id
    /// stands in the call's record and in those of its work. None leaves it to the ids that are pushed. See
    /// [`crate::context::Context::supply_external_ids`].
    ///
    /// # Errors
    ///
    /// As for [`Context::call_back`].
    pub fn supply_external_ids(
        &self,
        operations: &[Operation],
        supply: impl Fn(ExternalRequest<'_>) -> Option<ExternalId> + Send + Sync + 'static,
    ) -> Result<Subscriber, Error> {
        unsafe extern "C" fn asked(
            request: *const RequestData,
            id: *mut ExternalId,
            user_data: *mut c_void,
        ) -> i32 {
            // SAFETY: the library's structure, and what was given below, which lasts as long as the subscriber.
            let (request, callee) = unsafe { (&*request, &*user_data.cast::<Callee<Supply>>()) };
            let mut supplied = None;
            call(&callee.failed, || {
                supplied = (callee.function)(ExternalRequest(request));
            });
            if let Some(supplied) = supplied {
                // SAFETY: the library's place for it.
                unsafe { id.write(supplied) };
            }
            i32::from(supplied.is_some())
        }
        let functions = functions()?;
        let callee = Callee::new(Box::new(supply) as Supply);
        let mut handle = SubscriberHandle::default();
        // SAFETY: as many operations as it says, a function, what it is given, and a place for the id.
        let status = unsafe {
            let (operations, count) = (operations.as_ptr(), operations.len());
            let supply = functions.external_supply;
            supply(
                self.0,
                operations,
                count,
                Some(asked),
                callee.cast(),
                &mut handle,
            )
        };
        check(status).inspect_err(|_| {
            // SAFETY: made above, and the library did not take it.
            drop(unsafe { Box::from_raw(callee) })
        })?;
        Ok(Subscriber::new(handle, callee))
    }

    /// Lets the services run.
    ///
    /// # Errors
    ///
    /// `STARTED`.
    pub fn start(&self) -> Result<(), Error> {
        check((functions()?.context_start)(self.0))
    }

    /// Lets them rest.
    ///
    /// # Errors
    ///
    /// `STOPPED`.
    pub fn stop(&self) -> Result<(), Error> {
        check((functions()?.context_stop)(self.0))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Ok(functions) = functions() {
            // It may be gone, with the tool's end.
            (functions.context_destroy)(self.0);
        }
    }
}
