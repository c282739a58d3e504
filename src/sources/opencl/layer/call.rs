//! One call of the program, from the enter to the exit of its wrapper.
//!
//! A call looks up the thread's state once. Times are taken right before and after the runtime's own work, and exclude
//! the work of the layer.

use super::clocks;
use super::completion::{self, OUTSTANDING};
use super::counting;
use super::devices;
use super::dispatch::{contained, next};
use super::ffi::*;
use super::functions::{Function, operation};
use super::queues::{self, QueueIds};
use super::waits::{self, WaitList};
use super::work::{Enqueue, EnqueueInfo, OnQueue};
use crate::perf::CountedKernel;
use core::ffi::CStr;
use gputrail_buffer::clock;
use gputrail_collect::correlation::{self, Extra, HostThread};
use gputrail_collect::outstanding::OutstandingWork;
pub use gputrail_collect::process::{self, Borrowed, Current};
use gputrail_collect::switchboard::{Buffers, Interest};
use gputrail_interface::operations::Phase;
use gputrail_record::*;

/// A call in progress. It has no destructor: if a longjmp skips its exit, the next enter removes it from the stack.
pub(super) struct ObservedCall {
    /// The calling thread; `None` if the call has no consumer (any more) and only the state of the layer is maintained.
    pub(super) thread: Option<Current>,
    pub(super) core: correlation::CallInProgress,
    /// The time at which the runtime returned, once taken.
    end: Ticks,
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
    fn borrow(&self) -> Option<Borrowed> {
        self.thread
            .filter(|thread| thread.is_current())
            .and_then(Current::borrow)
    }

    /// Whether it is a call of one of `functions`.
    pub fn is_of(&self, functions: &[Function]) -> bool {
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

    /// Notifies subscribers of the enter of the call, with the bits of its arguments. The time of the callbacks is not
    /// part of the call's time.
    #[inline(never)]
    pub fn notify_enter(&mut self, arguments: &[u64]) {
        self.notify(Phase::Enter, arguments, None);
        if self.core.interest.has_inner_callbacks() {
            self.notify_begin(arguments);
        }
        // The callback may have added a consumer of the call's work, which needs the time.
        let is_timed =
            self.core.start.is_some() || process::interest(self.core.operation).is_timed();
        if is_timed {
            self.core.start = clock::now();
        }
    }

    /// Notifies subscribers of the exit of the call, which has `returned` a value or handle.
    #[inline(never)]
    pub fn notify_exit(&self, arguments: &[u64], status: cl_int, returned: u64) {
        self.notify(Phase::Exit, arguments, Some((status, returned)));
    }

    /// Notifies subscribers that the call is going to put `work` into `queue`.
    ///
    /// # Safety
    ///
    /// `queue` is the program's; a list is null or leads to a queue.
    #[cold]
    pub unsafe fn notify_enqueue(
        &mut self,
        queue: impl OnQueue,
        work: impl Enqueue,
        blocking: bool,
    ) {
        if !self.core.interest.has_inner_callbacks() {
            return;
        }
        // SAFETY: `queue` is a queue, or a list that is null or leads to one.
        let queue = queues::ids(unsafe { Self::queue_of(queue, &work) });
        self.notify_enqueuing(&work, &queue, blocking);
        if blocking {
            self.notify_wait(waits::for_queue(&queue));
        }
        self.core.start = clock::now();
    }

    /// The queue that `work` goes to.
    ///
    /// # Safety
    ///
    /// As for [`OnQueue::queue`].
    #[inline(always)]
    unsafe fn queue_of(queue: impl OnQueue, work: &impl Enqueue) -> cl_command_queue {
        // SAFETY: `queue` is a queue, or a list that is null or leads to one.
        let queue = unsafe { queue.queue() };
        if queue.is_null() {
            work.own_queue()
        } else {
            queue
        }
    }

    /// Ends a call that has subscribers with `status`.
    #[inline]
    pub fn end_with_callbacks(&mut self, status: cl_int) {
        self.end();
        if self.core.interest.has_inner_callbacks() {
            self.notify_end(status);
        }
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

    /// The runtime took `work` into `queue`, with `event`, which is ours alone if `is_ours` and otherwise the
    /// program's: follows it to its completion.
    ///
    /// # Safety
    ///
    /// `queue` is the program's; a list is null or leads to a queue. `event` is null or a live event. `waits` is a list
    /// that the runtime has taken.
    #[inline(never)]
    pub unsafe fn enqueued(
        &mut self,
        queue: impl OnQueue,
        work: impl Enqueue,
        event: cl_event,
        is_ours: bool,
        blocking: bool,
        waits: WaitList,
    ) {
        let Some(thread) = self.thread else {
            if is_ours && !event.is_null() {
                completion::release(event);
            }
            return;
        };
        let own = OUTSTANDING.of_thread(thread.state().number());
        // SAFETY: `queue` is a queue, or a list that is null or leads to one.
        let queue = unsafe { Self::queue_of(queue, &work) };
        let info = own.source.queue(queue);
        let counts = counting::is_on() && work.is_kernel();
        let has_ended = counts && counting::after(self, work, info.agent, queue, event);
        self.end();
        let event = EventOf {
            handle: event,
            is_ours,
        };
        let mut times = [0; 4];
        let is_plain = !(event.handle.is_null() || self.core.interest.has_inner_callbacks());
        let has_run = is_plain
            && completion::completed_in_enqueue(
                event.handle,
                blocking || has_ended,
                own,
                &mut times,
            );
        let times = has_run.then_some(times);
        // SAFETY: `event` and `waits` are as `follow` needs them: it has the same `# Safety` as this function.
        unsafe { self.follow(info, work, event, times, blocking, waits) };
        work.taken(self);
    }

    /// Sets the fields of a wait's record that come from the call.
    #[inline(always)]
    pub(super) fn of_call(&self, record: &mut Synchronization, thread: ThreadId, end: Ticks) {
        let work = &mut record.work;
        (work.correlation, work.thread) = (self.core.correlation, thread);
        work.enqueued = self.core.start;
        record.end = end;
    }

    /// The fields of records that describe `queue`.
    #[inline(always)]
    pub fn queue(&self, queue: cl_command_queue) -> QueueIds {
        match self.thread {
            Some(thread) => OUTSTANDING
                .of_thread(thread.state().number())
                .source
                .queue(queue),
            None => queues::ids(queue),
        }
    }

    /// The record of a kernel that the call is going to put into `queue`, without what is known later.
    pub(super) fn dispatch_of(
        &self,
        queue: cl_command_queue,
        work: impl Enqueue,
    ) -> Option<KernelDispatch> {
        let thread = self.thread?.state().thread();
        let info = self.enqueue_info(thread, &queues::ids(queue), WorkId::NONE, false);
        let mut dispatch = None;
        work.describe(&info, &mut |command| {
            dispatch = command.record.read::<KernelDispatch>();
        });
        dispatch
    }

    /// The enqueue info of a piece of work of this call, without buffers.
    #[inline(always)]
    pub(super) fn enqueue_info(
        &self,
        thread: ThreadId,
        queue: &QueueIds,
        work: WorkId,
        blocking: bool,
    ) -> EnqueueInfo {
        EnqueueInfo {
            work: WorkHeader {
                id: work,
                correlation: self.core.correlation,
                enqueued: self.core.start,
                agent: queue.agent,
                context: queue.context,
                queue: queue.id,
                thread,
                ..WorkHeader::default()
            },
            buffers: Buffers::NONE,
            flags: if blocking { 0 } else { flags::ASYNCHRONOUS },
        }
    }

    /// Notes `id` as the latest work of `queue` and of its event.
    #[inline(always)]
    fn remember_work(&self, queue: &QueueIds, id: WorkId, event: EventOf) {
        waits::last_work(queue.id, id);
        if !event.is_ours {
            waits::remember(event.handle, id, queue.id);
        }
    }

    /// Follows `work` to its completion, for any kind of work and any consumers; it has run already if there are
    /// `times`.
    ///
    /// # Safety
    ///
    /// As for [`ObservedCall::enqueued`].
    #[inline(never)]
    unsafe fn follow(
        &mut self,
        info: QueueIds,
        work: impl Enqueue,
        event: EventOf,
        times: Option<[u64; 4]>,
        blocking: bool,
        waits: WaitList,
    ) {
        let Some(thread) = self.thread else {
            return;
        };
        let (call, end, handle) = (self.core, self.end, event.handle);
        let own = OUTSTANDING.of_thread(thread.state().number());
        let (mut times, mut known, mut followers) = (times, None, None);
        if call.interest.has_inner_callbacks() {
            if let Some((id, notified)) = self.notify_enqueued(&work, &info, blocking) {
                (known, followers) = (Some(id), notified);
            }
            if followers.is_none() && !handle.is_null() {
                let mut asked = [0; 4];
                let has_run = completion::completed_in_enqueue(handle, blocking, own, &mut asked);
                times = has_run.then_some(asked);
            }
        }
        if times.is_none() && OUTSTANDING.is_full() {
            completion::make_room(thread);
        }
        let mut counted = CountedKernel::default();
        let counts = counting::is_on() && work.is_kernel();
        // A counted kernel has ended, also where its completion is told later.
        let measured = match times {
            None if counts => completion::times_of(handle),
            times => times,
        };
        if let Some([queued, ..]) = times {
            // Before the completion is written: a consumer of it finds the agent's clock.
            clocks::offer(info.agent, (self.core.start, self.end), DeviceTime(queued));
        }
        let written = if let Some(mut host) = self.borrow() {
            completion::write_parked(&mut host);
            let id = known.unwrap_or_else(|| host.new_work());
            // Buffers that were added in the middle of an untimed call, after its enter, get no records.
            let buffers = if call.start.is_some() {
                work.wanted_by(&host, call.interest, info.context)
            } else {
                Buffers::NONE
            };
            let follows = !(handle.is_null() || buffers.is_none() && followers.is_none());
            let times = times.filter(|_| follows);
            let taken = if !follows || times.is_some() {
                None
            } else {
                let work = OutstandingWork {
                    key: handle.into(),
                    work: id,
                    correlation: call.correlation,
                    agent: info.agent,
                    window: (call.start, end),
                    buffers,
                };
                OUTSTANDING.take(work, own)
            };
            let tracked = if taken.is_some() || times.is_some() {
                host.work_begins(&call);
                0
            } else {
                flags::UNTRACKED
            };
            let mut enqueue = self.enqueue_info(host.thread(), &info, id, blocking);
            (enqueue.buffers, enqueue.flags) = (buffers, enqueue.flags | tracked);
            if !waits.is_empty() {
                // SAFETY: `waits` is a list that the runtime has taken, and that the program keeps during the call.
                unsafe { waits::depend(&mut host, buffers, (call.correlation, id), waits) };
            }
            work.enqueue(&mut host, &enqueue);
            if let Some(times) = times {
                completion::write_completed(&mut host, &enqueue, times, end);
            }
            if counts {
                counted = counting::write(&mut host, &enqueue, measured);
            }
            Some((id, taken))
        } else {
            None
        };
        counted.tell();
        let (id, taken) = written.unwrap_or_default();
        match taken {
            Some(taken) => {
                if !event.is_ours {
                    // The program owns the reference that came with the event; this one is ours.
                    // SAFETY: the event of the command that the runtime has just taken.
                    unsafe { next!(clRetainEvent(handle)) };
                }
                if let Some(followers) = followers {
                    OUTSTANDING.follow(taken.ticket, followers);
                }
                let to = taken.ticket.0 as *mut c_void;
                // If this fails, the next sweep finds the work.
                if devices::has_event_callbacks(info.agent) {
                    // SAFETY: a reference to the event is ours; `to` is a number, by which `completed` finds the work.
                    unsafe {
                        next!(clSetEventCallback(
                            handle,
                            CL_COMPLETE,
                            Some(completion::completed),
                            to
                        ))
                    };
                }
                if let Some(claim) = OUTSTANDING.publish(taken, own) {
                    completion::overtaken(claim, thread);
                }
            }
            // The work is complete, or has no consumer.
            None if event.is_ours && !handle.is_null() => completion::release(handle),
            None => {}
        }
        self.remember_work(&info, id, event);
        if blocking {
            waits::blocked(self, info, id);
        }
    }
}

/// The event that the runtime created for a piece of work.
#[derive(Copy, Clone)]
struct EventOf {
    handle: cl_event,
    /// Whether the program did not request it.
    is_ours: bool,
}
