//! Work that the runtime has taken, which is followed to its completion.

use super::below::next;
use super::call::ObservedCall;
use super::clocks;
use super::completion::{self, OUTSTANDING};
use super::counters;
use super::counting;
use super::devices;
use super::ffi::*;
use super::queues::QueueIds;
use super::waits::{self, WaitList};
use super::work::{EnqueuedRecords, OnQueue, queue_of};
use crate::perf::CountedKernel;
use gputrail_collect::outstanding::OutstandingWork;
use gputrail_collect::switchboard::Buffers;
use gputrail_record::*;

impl ObservedCall {
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
        work: impl EnqueuedRecords,
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
        let queue = unsafe { queue_of(queue, &work) };
        let info = own.source.queue(queue);
        let counts = counters::is_on() && work.is_kernel();
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

    /// Notes `id` as the latest work of `queue` and of its event.
    #[inline(always)]
    fn remember_work(&self, queue: &QueueIds, id: WorkId, event: EventOf) {
        waits::last_work(queue.id, id);
        if !event.is_ours {
            waits::remember(event.handle, id, queue);
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
        work: impl EnqueuedRecords,
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
        let counts = counters::is_on() && work.is_kernel();
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
                completion::write_completed(&mut host, &enqueue.work, buffers, times);
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
