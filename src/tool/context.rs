//! Contexts and their services.

use super::callback::{Callback, ExternalRequest, Subscriber};
use super::callee::{self, Callee, HeldCallee};
use super::functions::{act, ask, c_string, call, check};
use super::{Buffer, Error};
use core::ffi::c_void;
use gputrail_interface::c::{
    CallbackData, ContextHandle, CounterSetHandle, CountingOptions, ExternalRequest as RequestData,
    SamplingOptions, SamplingPeriodOptions, SelectionOptions, SizedStruct,
};
use gputrail_interface::counting::CountingMode;
use gputrail_interface::sampling::{Deliver, Request, SamplingPeriod};
use gputrail_record::*;

type CallBack = Box<dyn Fn(Callback<'_>, &mut u64) + Send + Sync>;
type Choosing = (
    Box<dyn Fn(&KernelDispatch) -> Option<CounterSetHandle> + Send + Sync>,
    Box<dyn Fn(&[CounterValue]) + Send + Sync>,
);
type Supply = Box<dyn Fn(ExternalRequest<'_>) -> Option<ExternalId> + Send + Sync>;

/// These kinds; of API calls those of `operations` only, if there are any.
pub(super) fn selection(kinds: &[Kind], operations: &[Operation]) -> SelectionOptions {
    SelectionOptions {
        size: size_of::<SelectionOptions>(),
        kinds: kinds.as_ptr(),
        kind_count: kinds.len(),
        operations: if operations.is_empty() {
            std::ptr::null()
        } else {
            operations.as_ptr()
        },
        operation_count: operations.len(),
    }
}

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
        ask!(gputrail_context_create()).map(Context)
    }

    /// Has records of `kinds` go to `buffer` while the context is started.
    ///
    /// # Errors
    ///
    /// `LOCKED` after the first start, `CONFLICT`, `NOT_ALONE`, `UNKNOWN_KIND`.
    pub fn trace_to(&self, buffer: &Buffer, kinds: &[Kind]) -> Result<(), Error> {
        self.trace_operations_to(buffer, kinds, &[])
    }

    /// Has records of `kinds` go to `buffer`; of API calls only those of `operations`.
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
        let selection = selection(kinds, operations);
        // SAFETY: a structure of this size with as many values as it says.
        check(unsafe { call!(gputrail_context_trace_to(self.0, buffer.handle, &selection)) })
    }

    /// Has records of all kinds go to `buffer`.
    ///
    /// # Errors
    ///
    /// `LOCKED` after the first start, `CONFLICT`.
    pub fn trace_all_to(&self, buffer: &Buffer) -> Result<(), Error> {
        // SAFETY: null asks for everything.
        check(unsafe {
            call!(gputrail_context_trace_to(
                self.0,
                buffer.handle,
                std::ptr::null()
            ))
        })
    }

    /// Has `call_back` called for `operations`, on the thread on which they happen, possibly on several at once. The
    /// number is the subscriber's own: 0 at enter, and at exit what it left there. If it panics, it is not called
    /// again.
    ///
    /// # Errors
    ///
    /// `LOCKED` after the first start, `TOO_MANY`, `UNKNOWN_OPERATION`.
    pub fn call_back(
        &self,
        operations: &[Operation],
        call_back: impl Fn(Callback<'_>, &mut u64) + Send + Sync + 'static,
    ) -> Result<Subscriber, Error> {
        unsafe extern "C-unwind" fn called_back(data: *mut CallbackData, user_data: *mut c_void) {
            // SAFETY: the library's structure, and what was given below, which lasts as long as the subscriber.
            let (data, callee) = unsafe { (&mut *data, &*user_data.cast::<Callee<CallBack>>()) };
            let mut number = data.user_data;
            callee::call(&callee.failed, || {
                (callee.function)(Callback(data), &mut number)
            });
            data.user_data = number;
        }
        let (operations, count) = (operations.as_ptr(), operations.len());
        let callee = HeldCallee::new(Box::new(call_back) as CallBack);
        Subscriber::new(callee, |callee, handle| {
            // SAFETY: as many operations as it says, a function, its user data, and a place for the id.
            unsafe {
                call!(gputrail_subscribe(
                    self.0,
                    operations,
                    count,
                    Some(called_back),
                    callee,
                    handle
                ))
            }
        })
    }

    /// Pushes `id` for this context on the calling thread's stack of `kind`: records in its buffers, its samples and its
    /// callbacks carry the id that was pushed there last, of any kind, and those of other contexts do not.
    ///
    /// # Errors
    ///
    /// As for [`external::push`](super::external::push).
    pub fn push_external_id(&self, kind: ExternalKind, id: ExternalId) -> Result<(), Error> {
        act!(gputrail_context_push_external(self.0, kind, id))
    }

    /// Takes the latest id of `kind` that was pushed for this context off the calling thread's stack.
    ///
    /// # Errors
    ///
    /// `STACK_EMPTY`; otherwise as for [`external::push`](super::external::push).
    pub fn pop_external_id(&self, kind: ExternalKind) -> Result<ExternalId, Error> {
        ask!(gputrail_context_pop_external(self.0, kind))
    }

    /// The id that records of the calling thread carry now in buffers of this context.
    pub fn external_id(&self) -> ExternalId {
        ask!(gputrail_context_current_external(self.0)).unwrap_or(ExternalId::NONE)
    }

    /// Requests the external ids of `operations` from `supply`, on the thread that makes the call: of each call at its
    /// enter, and of kernels, copies, fills, allocations and frees at theirs. `None` leaves it to the ids that are
    /// pushed. The ids are for the buffers, samples and callbacks of this context.
    ///
    /// # Errors
    ///
    /// As for [`Context::call_back`].
    pub fn supply_external_ids(
        &self,
        operations: &[Operation],
        supply: impl Fn(ExternalRequest<'_>) -> Option<ExternalId> + Send + Sync + 'static,
    ) -> Result<Subscriber, Error> {
        unsafe extern "C-unwind" fn asked(
            request: *const RequestData,
            id: *mut ExternalId,
            user_data: *mut c_void,
        ) -> i32 {
            // SAFETY: the library's structure, and what was given below, which lasts as long as the subscriber.
            let (request, callee) = unsafe { (&*request, &*user_data.cast::<Callee<Supply>>()) };
            let mut supplied = None;
            callee::call(&callee.failed, || {
                supplied = (callee.function)(ExternalRequest(request));
            });
            if let Some(supplied) = supplied {
                // SAFETY: the library's place for it.
                unsafe { id.write(supplied) };
            }
            i32::from(supplied.is_some())
        }
        let (operations, count) = (operations.as_ptr(), operations.len());
        let callee = HeldCallee::new(Box::new(supply) as Supply);
        Subscriber::new(callee, |callee, handle| {
            // SAFETY: as many operations as it says, a function, its user data, and a place for the id.
            unsafe {
                call!(gputrail_external_supply(
                    self.0,
                    operations,
                    count,
                    Some(asked),
                    callee,
                    handle
                ))
            }
        })
    }

    /// Enables or disables a kind of records for `buffer`, also while the context is started.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_SERVICE` if the buffer has no service here; `NOT_ALONE`, and nothing is changed; `UNKNOWN_KIND`.
    pub fn enable_kind(&self, buffer: &Buffer, kind: Kind, on: bool) -> Result<(), Error> {
        act!(gputrail_context_enable_kind(
            self.0,
            buffer.handle,
            kind,
            on.into()
        ))
    }

    /// Says whether `buffer` wants records of `kind` of one context of a runtime, which supersedes what it wants of all
    /// others; `None` takes that back. Also while the context is started.
    ///
    /// # Errors
    ///
    /// `UNKNOWN_KIND` for kinds whose records belong to no context of a runtime; `NO_SUCH_SERVICE` if the buffer has no
    /// service here.
    pub fn enable_kind_in(
        &self,
        buffer: &Buffer,
        of: ContextId,
        kind: Kind,
        on: Option<bool>,
    ) -> Result<(), Error> {
        let on = on.map_or(-1, i32::from);
        act!(gputrail_context_enable_kind_in(
            self.0,
            buffer.handle,
            of,
            kind,
            on
        ))
    }

    /// Enables or disables the records of one operation's calls for `buffer`, also while the context is started.
    ///
    /// # Errors
    ///
    /// `UNKNOWN_OPERATION`, `NO_SUCH_SERVICE`.
    pub fn enable_operation(
        &self,
        buffer: &Buffer,
        operation: Operation,
        on: bool,
    ) -> Result<(), Error> {
        act!(gputrail_context_enable_operation(
            self.0,
            buffer.handle,
            operation,
            on.into()
        ))
    }

    /// Has `agent`, or with [`AgentId::ALL`] each agent, also those that come later, sampled as `request` says while the context is
    /// started: the records go to `buffer`. Agents that cannot do what is asked for are left out of all, which a message says. One context of
    /// the process has this service. What an agent can do [`sampling::configurations`](super::sampling::configurations)
    /// tells.
    ///
    /// # Errors
    ///
    /// `SAMPLING_INCOMPATIBLE_SYSTEM` if the system does not allow it, `SAMPLING_FAILED` if it allows it and it failed all the same,
    /// `SAMPLING_NOT_AVAILABLE` if the agent cannot do it now, `INVALID_ARGUMENT` for an interval that it cannot do, both with
    /// what it can; `CONTEXT_CONFLICT`, `LOCKED`, `NO_SUCH_AGENT`.
    pub fn sample(
        &self,
        buffer: &Buffer,
        agent: AgentId,
        request: Request,
        deliver: Deliver,
    ) -> Result<(), Error> {
        let options = SamplingOptions {
            interval: request.interval,
            method: request.method,
            unit: request.unit,
            aggregates: u8::from(deliver == Deliver::Aggregates),
            ..SamplingOptions::blank()
        };
        // SAFETY: a structure of this size.
        check(unsafe {
            call!(gputrail_context_sample(
                self.0,
                buffer.handle,
                agent,
                &options
            ))
        })
    }

    /// Configures sampling by a period, as CUPTI does. Returns the interval, in the agent's unit; 0 for [`AgentId::ALL`].
    ///
    /// # Errors
    ///
    /// As for [`Context::sample`]; also `INVALID_ARGUMENT` if no period is set, or one that does not exist.
    pub fn sample_every(
        &self,
        buffer: &Buffer,
        agent: AgentId,
        period: SamplingPeriod,
        deliver: Deliver,
    ) -> Result<u64, Error> {
        let options = SamplingPeriodOptions {
            level: period.level,
            exponent: period.exponent,
            aggregates: u8::from(deliver == Deliver::Aggregates),
            ..SamplingPeriodOptions::blank()
        };
        let (buffer, mut interval) = (buffer.handle, 0);
        // SAFETY: a structure of this size, and a place for the number.
        check(unsafe {
            call!(gputrail_context_sample_every(
                self.0,
                buffer,
                agent,
                &options,
                &mut interval
            ))
        })?;
        Ok(interval)
    }

    /// Has `agent`, or with [`AgentId::ALL`] each agent, count while the context is started: the values of the counters and metrics
    /// `names` go to `buffer` as
    /// [`CounterValue`]s. One context of the process has this service, and it excludes sampling. What an agent can count
    /// [`counting::counters`](super::counting::counters) tells.
    ///
    /// # Errors
    ///
    /// `NOT_FOUND` for an unknown counter, with the nearest; `INVALID_ARGUMENT` for counters that need too many passes, and
    /// a period that is too short; `COUNTERS_NOT_AVAILABLE`, `CONTEXT_CONFLICT`, `LOCKED`, `NO_SUCH_AGENT`.
    pub fn count(
        &self,
        buffer: &Buffer,
        agent: AgentId,
        names: &[&str],
        mode: CountingMode,
    ) -> Result<(), Error> {
        self.count_with(buffer, agent, names, mode, None, CountingOptions::blank())
    }

    /// [`Context::count`] with a value for each instance of a block in the place of their sum: the values of a counter
    /// follow each other, by the number of the instance.
    ///
    /// # Errors
    ///
    /// As for [`Context::count`].
    pub fn count_each_instance(
        &self,
        buffer: &Buffer,
        agent: AgentId,
        names: &[&str],
        mode: CountingMode,
    ) -> Result<(), Error> {
        let options = CountingOptions {
            each_instance: 1,
            ..CountingOptions::blank()
        };
        self.count_with(buffer, agent, names, mode, None, options)
    }

    /// [`Context::count`] for each range of markers whose name matches `pattern` (`*` stands for any text, `?` for one
    /// character), as a whole. Ranges inside of such a range belong to it. One range of the process is counted at a time:
    /// the values of a range of another thread that begins meanwhile are invalid. The context has to trace or call back for
    /// markers, and for kernel dispatches. [`CountingMode::Range`] in [`Context::count`] counts the outermost ranges, whatever
    /// their names.
    ///
    /// # Errors
    ///
    /// As for [`Context::count`].
    pub fn count_ranges(
        &self,
        buffer: &Buffer,
        agent: AgentId,
        names: &[&str],
        pattern: &str,
    ) -> Result<(), Error> {
        let (mode, options) = (CountingMode::Range, CountingOptions::blank());
        self.count_with(buffer, agent, names, mode, Some(pattern), options)
    }

    /// [`Context::count`] for each dispatch, with at most `per_pass` counters in a pass: a kernel runs once for each pass.
    ///
    /// # Errors
    ///
    /// As for [`Context::count`].
    pub fn count_in_passes(
        &self,
        buffer: &Buffer,
        agent: AgentId,
        names: &[&str],
        per_pass: core::num::NonZeroU32,
    ) -> Result<(), Error> {
        let options = CountingOptions {
            per_pass: per_pass.get(),
            ..CountingOptions::blank()
        };
        let mode = CountingMode::Dispatch;
        self.count_with(buffer, agent, names, mode, None, options)
    }

    /// Has `choose` choose the counters of each kernel of `agent` while the context is started: the handle of a
    /// [`CounterSet`](super::counting::CounterSet), or none for a kernel that is not counted. The values go to `counted`
    /// and to `buffer`. Kernels of the agent run one after the other. Both are called on threads of the program, and what
    /// they call is not observed; one that panics is not called again. They stay in memory until the process ends.
    ///
    /// # Errors
    ///
    /// As for [`Context::count`].
    pub fn count_chosen(
        &self,
        buffer: &Buffer,
        agent: AgentId,
        choose: impl Fn(&KernelDispatch) -> Option<CounterSetHandle> + Send + Sync + 'static,
        counted: impl Fn(&[CounterValue]) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        unsafe extern "C-unwind" fn choosing(
            dispatch: *const KernelDispatch,
            set: *mut CounterSetHandle,
            callee: *mut c_void,
        ) {
            // SAFETY: the library's record, and what was given below, which lasts for ever.
            let (dispatch, callee) = unsafe { (&*dispatch, &*callee.cast::<Callee<Choosing>>()) };
            callee::call(&callee.failed, || {
                if let Some(chosen) = (callee.function.0)(dispatch) {
                    // SAFETY: the library's place.
                    unsafe { set.write(chosen) };
                }
            });
        }
        unsafe extern "C-unwind" fn counting(
            values: *const CounterValue,
            count: usize,
            callee: *mut c_void,
        ) {
            // SAFETY: what was given below, which lasts for ever.
            let callee = unsafe { &*callee.cast::<Callee<Choosing>>() };
            // SAFETY: the library's values, as many as it says.
            let values = unsafe { core::slice::from_raw_parts(values, count) };
            callee::call(&callee.failed, || (callee.function.1)(values));
        }
        let functions: Choosing = (Box::new(choose), Box::new(counted));
        let held = HeldCallee::new(functions);
        // SAFETY: functions of these types, with their callee.
        let result = check(unsafe {
            call!(gputrail_context_count_chosen(
                self.0,
                buffer.handle,
                agent,
                Some(choosing),
                Some(counting),
                held.pointer()
            ))
        });
        if result.is_err() {
            // SAFETY: the library did not take it.
            unsafe { held.release() };
        }
        result
    }

    fn count_with(
        &self,
        buffer: &Buffer,
        agent: AgentId,
        names: &[&str],
        mode: CountingMode,
        range: Option<&str>,
        options: CountingOptions,
    ) -> Result<(), Error> {
        let range = match mode {
            CountingMode::Range => Some(range.unwrap_or_default()),
            _ => None,
        };
        let range = range.map(c_string).transpose()?;
        let names = c_string(&names.join(","))?;
        let options = CountingOptions {
            counters: names.as_ptr(),
            period: match mode {
                CountingMode::Dispatch | CountingMode::Range => 0,
                CountingMode::Device { period } => period.0,
            },
            range: range
                .as_ref()
                .map_or(std::ptr::null(), |range| range.as_ptr()),
            ..options
        };
        // SAFETY: a structure of this size, with a text that ends with a 0.
        check(unsafe {
            call!(gputrail_context_count(
                self.0,
                buffer.handle,
                agent,
                &options
            ))
        })
    }

    /// Says that the context collects counters by means of the tool's own: it cannot sample then.
    ///
    /// # Errors
    ///
    /// `CONTEXT_CONFLICT` if it samples.
    pub fn collects_counters(&self) -> Result<(), Error> {
        act!(gputrail_context_collects_counters(self.0))
    }

    /// Reserves counter collection for the context, also before its agents are known: no other context can count while this
    /// one is there.
    ///
    /// # Errors
    ///
    /// `CONTEXT_CONFLICT` if another context counts or has reserved it, or this one samples.
    pub fn reserve_counters(&self) -> Result<(), Error> {
        act!(gputrail_context_reserve_counters(self.0))
    }

    /// Whether the context is started.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_CONTEXT` after the tool's end.
    pub fn is_started(&self) -> Result<bool, Error> {
        let active: i32 = ask!(gputrail_context_is_active(self.0))?;
        Ok(active != 0)
    }

    /// Starts the services.
    ///
    /// # Errors
    ///
    /// `STARTED`.
    pub fn start(&self) -> Result<(), Error> {
        act!(gputrail_context_start(self.0))
    }

    /// Stops the services.
    ///
    /// # Errors
    ///
    /// `STOPPED`.
    pub fn stop(&self) -> Result<(), Error> {
        act!(gputrail_context_stop(self.0))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // It may be gone, with the tool's end.
        let _ = act!(gputrail_context_destroy(self.0));
    }
}
