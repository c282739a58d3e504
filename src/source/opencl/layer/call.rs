//! One call of the program, from the wrapper's enter to its exit.
//!
//! It looks up the thread's state once. Times are taken next to the runtime's own work; what the
//! layer does afterwards is not in them.

use super::attach;
use super::clocks;
use super::completion::{self, OUTSTANDING};
use super::dispatch::{contained, next};
use super::ffi::*;
use super::functions::operation;
use super::outstanding::Enqueued;
use super::queues::{self, QueueIds};
use super::waits::{self, WaitList};
use super::work::{Enqueue, OnQueue, Place};
use crate::clock;
use crate::correlation::{self, HostThread};
use crate::process::{self, Borrowed, Current};
use crate::record::*;
use crate::switchboard::{Buffers, Phase};
use core::ffi::CStr;

/// A call in progress. It has no destructor: a call that is jumped out of is taken off by the next enter.
pub(super) struct Call {
    /// The thread that the wrapper runs on; absent where nobody wants to know of the call, and only the layer's
    /// own books are kept.
    pub(super) thread: Option<Current>,
    pub(super) core: correlation::Call,
    /// When the runtime returned, once that is known.
    end: Ticks,
}

impl Call {
    /// Whether a call of function `number` is handed on at once: nobody wants it. `keeps_books` says whether the
    /// layer's own books have to do with it.
    #[inline(always)]
    pub fn is_handed_on(number: u16, keeps_books: bool) -> bool {
        let interest = process::interest(operation(number));
        interest.is_none() || !(keeps_books || interest.is_recorded() || interest.is_gated())
    }

    /// The program calls function `number`. `stack_pointer` is an address in the wrapper's frame. `false`: it is of no
    /// interest, and passed through.
    ///
    /// One function for all wrappers, as is the exit: what observing costs a program that does not only enqueue is
    /// the processor's cache of instructions more than the instructions.
    #[inline(never)]
    pub fn enter(&mut self, number: u16, stack_pointer: usize) -> bool {
        let mut is_observed = false;
        contained(|| is_observed = self.begin(operation(number), stack_pointer));
        is_observed
    }

    #[inline(always)]
    fn begin(&mut self, operation: Operation, stack_pointer: usize) -> bool {
        let mut interest = process::interest(operation);
        if interest.is_none() {
            return false;
        }
        if interest.is_gated() {
            let due;
            (interest, due) = process::pass_gate(operation);
            if due != Default::default() {
                // Those who want this call keep their interest in it.
                process::pay(due);
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
            let now = match host.wants_time(interest) {
                true => clock::now(),
                false => Ticks::NONE,
            };
            self.core = host.enter_wanted(operation, interest, stack_pointer, now);
            self.thread = Some(thread);
        }
        true
    }

    /// A call of which only the layer's own books take notice, as long as it is not entered.
    pub const UNRECORDED: Call = Call {
        thread: None,
        core: correlation::Call::NONE,
        end: Ticks::NONE,
    };

    /// When the runtime returned: the first time that this is asked. None if nobody wants to know.
    #[inline(always)]
    pub fn end(&mut self) -> Ticks {
        if !self.end.is_some() && self.core.start.is_some() {
            self.end = clock::now();
        }
        self.end
    }

    /// The call ends with `status`; `values` are those of its arguments that are kept.
    #[inline(never)]
    pub fn exit(&mut self, status: cl_int, values: &[u64]) {
        if self.thread.is_none() {
            return;
        }
        let end = self.end();
        let flags = if status < 0 { flags::FAILED } else { 0 };
        if let Some(mut host) = self.borrow() {
            host.exit_with(&self.core, values, end, status, flags);
        }
    }

    /// The thread's state, as [`Call::host`] gives it. Records that are put together in a closure are
    /// put together in one place and copied from there.
    #[inline(always)]
    fn borrow(&self) -> Option<Borrowed> {
        self.thread
            .filter(|thread| thread.is_current())
            .and_then(Current::borrow)
    }

    /// Whether subscribers are told of the call, or of what it does.
    #[inline(always)]
    pub fn is_told(&self) -> bool {
        self.core.interest.is_told()
    }

    /// Whether somebody wants the values of the call's arguments.
    #[inline(always)]
    pub fn keeps_arguments(&self) -> bool {
        self.core.interest.has_arguments()
    }

    /// Tells subscribers that the call begins, with the bits of its arguments. What they take is not in the
    /// call's time.
    #[inline(never)]
    pub fn tell_enter(&mut self, arguments: &[u64]) {
        self.tell(Phase::Enter, arguments, None);
        if self.core.interest.tells_inside() {
            self.tell_begin(arguments);
        }
        if self.core.start.is_some() {
            self.core.start = clock::now();
        }
    }

    /// Tells subscribers that the call has ended.
    #[inline(never)]
    pub fn tell_exit(&self, arguments: &[u64], status: cl_int) {
        self.tell(Phase::Exit, arguments, Some(status));
    }

    /// Tells subscribers that the call is going to put `work` into `queue`.
    ///
    /// # Safety
    ///
    /// `queue` is the program's; a list is null or leads to a queue.
    #[cold]
    pub unsafe fn tell_enqueue(&mut self, queue: impl OnQueue, work: impl Enqueue, blocking: bool) {
        if !self.core.interest.tells_inside() {
            return;
        }
        // SAFETY: the caller's promise.
        let queue = unsafe { Self::queue_of(queue, &work) };
        self.tell_enqueuing(&work, &queue, blocking);
        if blocking {
            self.tell_wait(waits::for_queue(&queue));
        }
        self.core.start = clock::now();
    }

    /// The queue that `work` goes to.
    ///
    /// # Safety
    ///
    /// As for [`OnQueue::queue`].
    #[inline(always)]
    unsafe fn queue_of(queue: impl OnQueue, work: &impl Enqueue) -> QueueIds {
        // SAFETY: the caller's promise.
        let mut queue = unsafe { queue.queue() };
        if queue.is_null() {
            queue = work.own_queue();
        }
        queues::ids(queue)
    }

    /// The call ends with `status`, of which subscribers are told.
    #[inline]
    pub fn end_told(&mut self, status: cl_int) {
        self.end();
        if self.core.interest.tells_inside() {
            self.tell_end(status);
        }
    }

    /// Does `work` with the thread's state, unless the runtime forked or ended the process meanwhile.
    /// No foreign code may be called in it.
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
        // SAFETY: the caller's promise.
        let text = unsafe { CStr::from_ptr(text) };
        attach::names().map_or(0, |names| {
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
        let (call, end) = (self.core, self.end());
        // SAFETY: the caller's promise.
        let info = unsafe { Self::queue_of(queue, &work) };
        let told = match call.interest.tells_inside() {
            // Copies: what others have a reference to is kept in memory, for all that follows.
            true => {
                let (work, info) = (work, info);
                self.tell_enqueued(&work, &info, blocking)
            }
            false => None,
        };
        let (known, followers) = told.map_or((None, None), |(id, followers)| (Some(id), followers));
        let own = OUTSTANDING.of_lane(thread.state().number());
        let times = match event.is_null() || followers.is_some() {
            true => None,
            false => completion::at_once(event, blocking, own),
        };
        if times.is_none() && OUTSTANDING.is_full() {
            completion::make_room(thread);
        }
        let put = if let Some(mut host) = self.borrow() {
            completion::write_parked(&mut host);
            let id = known.unwrap_or_else(|| host.new_work());
            // Not those that have come in the middle of a call whose time nobody wanted.
            let buffers = match call.start.is_some() {
                true => work.wanted_by(&host, info.context),
                false => Buffers::NONE,
            };
            let follows = !(event.is_null() || buffers.is_none() && followers.is_none());
            let times = times.filter(|_| follows);
            let taken = if !follows || times.is_some() {
                None
            } else {
                let enqueued = Enqueued {
                    event,
                    work: id,
                    correlation: call.correlation,
                    agent: info.agent,
                    window: (call.start, end),
                    buffers,
                };
                OUTSTANDING.take(enqueued, own)
            };
            let tracked = match taken.is_some() || times.is_some() {
                true => {
                    host.work_begins(call.correlation);
                    0
                }
                false => flags::UNTRACKED,
            };
            let place = Place {
                correlation: call.correlation,
                external: host.external(),
                work: id,
                enqueued: call.start,
                agent: info.agent,
                context: info.context,
                queue: info.id,
                thread: host.thread(),
                buffers,
                flags: tracked | if blocking { 0 } else { flags::ASYNCHRONOUS },
            };
            if !waits.is_empty() {
                // SAFETY: the caller's promise.
                unsafe { waits::depend(&mut host, buffers, (call.correlation, id), waits) };
            }
            work.enqueue(&mut host, &place);
            if let Some(times) = times {
                completion::write_at_once(&mut host, &place, times, end);
            }
            Some((id, taken))
        } else {
            None
        };
        let (id, taken) = put.unwrap_or_default();
        waits::last_work(info.id, id);
        if !is_ours {
            waits::remember(event, id, info.id);
        }
        match taken {
            Some(taken) => {
                if !is_ours {
                    // The program has the reference that came with the event; this is ours.
                    next!(clRetainEvent(event));
                }
                if let Some(followers) = followers {
                    OUTSTANDING.follow(taken.ticket, followers);
                }
                let to = taken.ticket.0 as *mut c_void;
                // Where this fails, the work is found by the next sweep.
                next!(clSetEventCallback(
                    event,
                    CL_COMPLETE,
                    Some(completion::completed),
                    to
                ));
                if let Some(claim) = OUTSTANDING.publish(taken, own) {
                    completion::overtaken(claim, thread);
                }
            }
            // It is complete, or nobody follows it.
            None if is_ours && !event.is_null() => completion::release(event),
            None => {}
        }
        if let Some([queued, ..]) = times {
            clocks::offer(info.agent, (call.start, end), DeviceTime(queued));
        }
        if blocking {
            waits::blocked(self, info, id);
        }
    }
}
