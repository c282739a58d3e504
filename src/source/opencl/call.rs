//! One call of the program, from the wrapper's enter to its exit.
//!
//! It looks up the thread's state once. Times are taken next to the runtime's own work; what the
//! layer does afterwards is not in them.

use super::attach;
use super::completion::{self, OUTSTANDING};
use super::dispatch::{next, operation};
use super::ffi::*;
use super::outstanding::Enqueued;
use super::queues::{self, QueueInfo};
use super::waits;
use super::work::{Enqueue, OnQueue, Place, Put};
use crate::clock;
use crate::correlation::{self, HostThread};
use crate::names::Names;
use crate::process::Current;
use crate::record::*;
use crate::recorder::Recorder;
use core::ffi::CStr;

/// A call in progress. It has no destructor: a call that is jumped out of is taken off by the next enter.
pub(super) struct Call {
    /// The thread that the wrapper runs on.
    thread: Current,
    core: correlation::Call,
    /// When the runtime returned, once that is known.
    end: Ticks,
}

impl Call {
    /// The program calls function `number`. `None`: nothing is recorded, and the call is passed through.
    #[inline(always)]
    pub fn enter(number: u16) -> Option<Call> {
        let thread = attach::thread()?;
        // An address in the wrapper's frame, as this is inlined.
        let frame = 0u8;
        let stack_pointer = (&raw const frame) as usize;
        let core =
            thread.with(|host| host.enter(operation(number), stack_pointer, clock::now()))?;
        Some(Call {
            thread,
            core,
            end: Ticks::NONE,
        })
    }

    /// When the runtime returned: the first time that this is asked.
    #[inline(always)]
    pub fn end(&mut self) -> Ticks {
        if !self.end.is_some() {
            self.end = clock::now();
        }
        self.end
    }

    /// The call ends with `status`.
    #[inline(always)]
    pub fn exit(mut self, status: cl_int) {
        let (end, core) = (self.end(), self.core);
        let flags = if status < 0 { flags::FAILED } else { 0 };
        self.host(|host| host.exit(&core, end, status, flags));
    }

    /// Does `work` with the thread's state, unless the runtime forked or ended the process meanwhile.
    /// No foreign code may be called in it.
    #[inline(always)]
    pub fn host<R>(&mut self, work: impl FnOnce(&mut HostThread) -> R) -> Option<R> {
        if !self.thread.is_current() {
            return None;
        }
        self.thread.with(work)
    }

    pub fn correlation(&self) -> CorrelationId {
        self.core.correlation
    }

    pub fn start(&self) -> Ticks {
        self.core.start
    }

    /// The names store, while there is one.
    pub fn names(&self) -> Option<&'static Names> {
        attach::recorder().map(Recorder::names)
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
        // SAFETY: the caller's promise.
        let text = unsafe { CStr::from_ptr(text) };
        self.names().map_or(0, |names| {
            u64::from(names.string(&text.to_string_lossy()).0)
        })
    }

    /// Keeps arguments, as `add` gives them.
    #[inline(always)]
    pub fn annotate(&mut self, add: impl FnOnce(&mut Call, &mut Values)) {
        self.end();
        let mut values = Values(Arguments::blank());
        values.0.correlation = self.core.correlation;
        values.0.operation = self.core.operation;
        add(self, &mut values);
        if values.0.count > 0 {
            self.host(|host| host.write_arguments(&mut values.0));
        }
    }

    /// The runtime took `work` into `queue`, with `event`, for which the program asked if `asked` is not null.
    ///
    /// # Safety
    ///
    /// `asked` is null or the program's place for an event; `event` is null or an event that
    /// the program has not been given yet.
    #[inline(always)]
    pub unsafe fn enqueued(
        &mut self,
        queue: impl OnQueue,
        work: impl Enqueue,
        event: cl_event,
        asked: *mut cl_event,
        blocking: bool,
    ) {
        self.end();
        // SAFETY: the caller's promise.
        let mut queue = unsafe { queue.queue() };
        if queue.is_null() {
            queue = work.own_queue();
        }
        let info = queues::lookup(self, queue);
        // SAFETY: the caller's promise.
        let id = unsafe { self.track(&info, event, asked) };
        let header_flags = if id.1 { 0 } else { flags::UNTRACKED }
            | if blocking { 0 } else { flags::ASYNCHRONOUS };
        work.enqueue(self, &info, id.0, header_flags);
        if blocking {
            waits::blocked(self, &info, id.0);
        }
    }

    /// Writes the record of `work`.
    #[inline(always)]
    pub fn put(&mut self, queue: &QueueInfo, mut work: impl Put, id: WorkId, header_flags: u8) {
        let call = self.core;
        self.host(|host| {
            work.put(&Place {
                correlation: call.correlation,
                external: host.external(),
                work: id,
                enqueued: call.start,
                agent: queue.agent,
                context: queue.context,
                queue: queue.id,
                thread: host.thread(),
                flags: header_flags,
            });
            host.write(work);
        });
    }

    /// Gives the program its event, and follows it to its completion. `false` says that no completion
    /// will come.
    ///
    /// # Safety
    ///
    /// As for [`Call::enqueued`].
    #[inline(always)]
    pub unsafe fn track(
        &mut self,
        queue: &QueueInfo,
        event: cl_event,
        asked: *mut cl_event,
    ) -> (WorkId, bool) {
        let correlation = self.core.correlation;
        let window = (self.core.start, self.end);
        let work = self.host(|host| {
            completion::write_parked(host);
            host.new_work()
        });
        let work = work.unwrap_or_default();
        waits::last_work(queue.id, work);
        if event.is_null() {
            return (work, false);
        }
        if !asked.is_null() {
            next!(clRetainEvent(event));
            // SAFETY: the program's place for it.
            unsafe { asked.write(event) };
            waits::remember(event, work);
        }
        let enqueued = Enqueued {
            event,
            work,
            correlation,
            agent: queue.agent,
            window,
        };
        let Some(ticket) = OUTSTANDING.take(enqueued) else {
            completion::release(event);
            return (work, false);
        };
        // Where this fails, the work is found by the next sweep.
        next!(clSetEventCallback(
            event,
            CL_COMPLETE,
            Some(completion::completed),
            ticket.0 as *mut c_void
        ));
        (work, true)
    }
}

/// Arguments that are being collected.
pub(super) struct Values(Arguments);

impl Values {
    /// Adds a value, if arguments of its type are kept.
    #[inline(always)]
    pub fn add(&mut self, kept: Option<ArgumentType>, value: impl FnOnce() -> u64) {
        if kept.is_some()
            && let Some(place) = self.0.values.get_mut(self.0.count as usize)
        {
            *place = value();
            self.0.count += 1;
        }
    }
}
