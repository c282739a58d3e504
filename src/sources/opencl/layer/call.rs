//! One call of the program, from the enter to the exit of its wrapper.
//!
//! A call looks up the thread's state once. Times are taken right before and after the runtime's own work, and exclude
//! the work of the layer.

use super::contained::contained;
use super::ffi::*;
use super::functions::{ClFunction, operation};
use core::ffi::CStr;
use gputrail_buffer::clock;
use gputrail_collect::correlation::{self, Extra, HostThread};
use gputrail_collect::process::{self, Borrowed, Current};
use gputrail_collect::switchboard::Interest;
use gputrail_record::*;

/// A call in progress. It has no destructor: if a longjmp skips its exit, the next enter removes it from the stack.
pub(super) struct ObservedCall {
    /// The calling thread; `None` if the call has no consumer (any more) and only the state of the layer is maintained.
    pub(super) thread: Option<Current>,
    pub(super) core: correlation::CallInProgress,
    /// The time at which the runtime returned, once taken.
    pub(super) end: Ticks,
}

impl ObservedCall {
    /// The consumers of a call of function `number`.
    #[inline(always)]
    pub fn interest_in(number: u16) -> Interest {
        process::interest(operation(number))
    }

    /// Whether a call with these consumers is passed through at once. `keeps_books` is whether the layer needs the call for its
    /// own state.
    #[inline(always)]
    pub fn is_handed_on(interest: Interest, keeps_books: bool) -> bool {
        interest.is_none() || !(keeps_books || interest.is_recorded() || interest.is_gated())
    }

    /// Begins a call of function `number` with these consumers, of which there are some. `stack_pointer` is an address in the wrapper's frame. Returns `false` if the
    /// call has no consumer and is passed through.
    ///
    /// One function for all wrappers, as is the exit: for programs with many other calls, the cost of observing them is
    /// the instruction cache more than the instructions.
    #[inline(never)]
    pub fn enter(&mut self, interest: Interest, number: u16, stack_pointer: usize) -> bool {
        let mut is_observed = false;
        contained(|| is_observed = self.begin(interest, operation(number), stack_pointer));
        is_observed
    }

    #[inline(always)]
    fn begin(
        &mut self,
        mut interest: Interest,
        operation: Operation,
        stack_pointer: usize,
    ) -> bool {
        if interest.is_gated() {
            let due;
            (interest, due) = process::pass_gate(operation);
            if due != Default::default() {
                // The call keeps the consumers that it has at its enter.
                process::flush_due(due);
            }
            if interest.is_none() {
                return false;
            }
        }
        if interest.is_recorded()
            && let Some(thread) = process::current()
            && !thread.state().is_in_callback()
            && let Some(mut host) = thread.borrow()
        {
            let is_timed = interest.is_timed();
            let now = || if is_timed { clock::now() } else { Ticks::NONE };
            self.core = host.enter_wanted(operation, interest, stack_pointer, now);
            self.thread = Some(thread);
        }
        true
    }

    /// A call that has not been entered, and from which only the layer's own state is updated.
    pub const UNRECORDED: ObservedCall = ObservedCall {
        thread: None,
        core: correlation::CallInProgress::NONE,
        end: Ticks::NONE,
    };

    /// The time at which the runtime returned, taken by the first caller. None if the call is not timed.
    #[inline(always)]
    pub fn end(&mut self) -> Ticks {
        if !self.end.is_some() && self.core.start.is_some() {
            self.end = clock::now();
        }
        self.end
    }

    /// Ends the call with `status`; `values` are those of its arguments that are recorded.
    #[inline(never)]
    pub fn exit(&mut self, status: cl_int, values: &[u64]) {
        if self.thread.is_none() {
            return;
        }
        let end = self.end();
        let flags = if status < 0 { flags::FAILED } else { 0 };
        if let Some(mut host) = self.borrow() {
            let extra = Extra {
                flags,
                arguments: values,
            };
            host.exit(&self.core, end, status, extra);
        }
    }

    /// The thread's state, as in [`ObservedCall::host`]. Used where that method's closure would construct a record and
    /// then copy it.
    #[inline(always)]
    pub(super) fn borrow(&self) -> Option<Borrowed> {
        self.thread
            .filter(|thread| thread.is_current())
            .and_then(Current::borrow)
    }

    /// Whether it is a call of one of `functions`.
    pub fn is_of(&self, functions: &[ClFunction]) -> bool {
        let mut operations = functions.iter().map(|function| operation(*function as u16));
        operations.any(|operation| operation == self.core.operation)
    }

    /// The consumers of the call at its enter.
    pub fn interest(&self) -> Interest {
        self.core.interest
    }

    /// Whether subscribers are called back for the call or inside it.
    #[inline(always)]
    pub fn has_callbacks(&self) -> bool {
        self.core.interest.has_callbacks()
    }

    /// Whether a consumer wants the values of the call's arguments.
    #[inline(always)]
    pub fn keeps_arguments(&self) -> bool {
        self.core.interest.has_arguments()
    }

    /// Calls `work` with the thread's state, unless the runtime forked or ended the process meanwhile. `work` must not
    /// call foreign code.
    #[inline(always)]
    pub fn host<R>(&mut self, work: impl FnOnce(&mut HostThread) -> R) -> Option<R> {
        let thread = self.thread?;
        if !thread.is_current() {
            return None;
        }
        thread.with(work)
    }

    pub fn correlation(&self) -> CorrelationId {
        self.core.correlation
    }

    pub fn start(&self) -> Ticks {
        self.core.start
    }

    /// The id of a string of the program, or 0 for a null pointer.
    ///
    /// # Safety
    ///
    /// `text` is null, or leads to a string that ends with a 0.
    pub unsafe fn intern(&mut self, text: *const c_char) -> u64 {
        if text.is_null() {
            return 0;
        }
        // SAFETY: `text` is not null, so that it ends with a 0; it stays during the call.
        let text = unsafe { CStr::from_ptr(text) };
        process::names().map_or(0, |names| {
            u64::from(names.string(&text.to_string_lossy()).0)
        })
    }

    /// Sets the fields of a wait's record that come from the call.
    #[inline(always)]
    pub(super) fn of_call(&self, record: &mut Synchronization, thread: ThreadId, end: Ticks) {
        let work = &mut record.work;
        (work.correlation, work.thread) = (self.core.correlation, thread);
        work.enqueued = self.core.start;
        record.end = end;
    }
}
