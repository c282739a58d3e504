//! Callbacks of subscribers about calls, and about the work that calls put into queues.
//!
//! Calls without such subscribers do not come here.

use super::call::ObservedCall;
use super::completion::{self, OUTSTANDING};
use super::contexts::CONTEXTS;
use super::ffi::*;
use super::functions::{self, CallEffect, FunctionDescription, ObjectType};
use super::queues::{self, QUEUES, QueueIds};
use super::work::{EnqueuedRecords, OnQueue, queue_of};
use super::{counters, kernels, memory, programs, sampling, waits};
use gputrail_buffer::clock;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::notify::Followers;
use gputrail_collect::process;
use gputrail_collect::switchboard::{CallArguments, CallbackArguments, Payload, ReportedPart};
use gputrail_interface::operations::{Phase, kernel_dispatch, resource};
use gputrail_record::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process whose subscribers have been notified that the runtime is initialized.
static INITIALIZED: AtomicU32 = AtomicU32::new(0);

impl ObservedCall {
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

    /// Notifies the subscribers of the call itself.
    #[inline(always)]
    fn notify(&self, phase: Phase, arguments: &[u64], returned: Option<(cl_int, u64)>) {
        let subscribers = self.core.interest.subscribers();
        let description = functions::description(self.core.operation.number);
        let (Some(thread), Some(description)) = (self.thread, description) else {
            return;
        };
        let Some(board) = thread.board().filter(|_| !subscribers.is_none()) else {
            return;
        };
        let payload = Payload::Call(CallArguments::in_progress(description.arguments, arguments));
        let mut callback = CallbackArguments::new(self.core.operation, description.name, phase)
            .with_kernel(launched(description, arguments), board.names());
        let (state, place) = (thread.state(), (self.core.depth, ReportedPart::Call));
        (callback.thread, callback.correlation) = (state.thread(), self.core.correlation);
        callback.payload = payload;
        callback.runtime_context = context_of(description, arguments);
        if let Some((status, value)) = returned {
            (callback.return_code, callback.return_value) = (Some(status), value);
        }
        board.notify_within(state, place, subscribers, &callback);
        if OUTSTANDING.any_parked() {
            completion::notify_postponed(thread);
        }
    }

    /// Resets the user data of operations inside the call at its enter, and notifies subscribers of an allocation or a
    /// free that it is going to make.
    #[cold]
    fn notify_begin(&self, arguments: &[u64]) {
        let Some(site) = self.inner_call_site() else {
            return;
        };
        let process = std::process::id();
        if INITIALIZED.swap(process, Ordering::Relaxed) != process {
            site.instant(resource::RUNTIME_INITIALIZED, Payload::None);
        }
        site.notifier().begin(ReportedPart::Work, WorkId::NONE);
        site.notifier().begin(ReportedPart::Wait, WorkId::NONE);
        let Some(description) = functions::description(self.core.operation.number) else {
            return;
        };
        let arguments = CallArguments::in_progress(description.arguments, arguments);
        let named = |name| arguments.get(name).unwrap_or(0);
        match description.inside {
            CallEffect::Nothing => {}
            CallEffect::Allocates => {
                let mut record = Allocation::blank();
                record.operation = AllocationOperation::ALLOCATE;
                (record.bytes, record.runtime_flags) = (named("size"), named("flags"));
                self.notify_allocation(&site, record);
            }
            CallEffect::FreesShared => memory::notify_free(self, named("ptr")),
        }
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
        work: impl EnqueuedRecords,
        blocking: bool,
    ) {
        if !self.core.interest.has_inner_callbacks() {
            return;
        }
        // SAFETY: `queue` is a queue, or a list that is null or leads to one.
        let queue = queues::ids(unsafe { queue_of(queue, &work) });
        self.notify_enqueuing(&work, &queue, blocking);
        if blocking {
            self.notify_wait(waits::for_queue(&queue));
        }
        self.core.start = clock::now();
    }

    /// Notifies subscribers that `work` is going to be put into `queue`.
    fn notify_enqueuing(&self, work: &impl EnqueuedRecords, queue: &QueueIds, blocking: bool) {
        let Some(site) = self.inner_call_site() else {
            return;
        };
        if sampling::is_on() || counters::is_on() {
            let unnamed = self.enqueue_info(site.id, queue, WorkId::NONE, blocking);
            work.describe(&unnamed, &mut |work| site.notifier().profiled(work.kernel));
        }
        let Some(id) = site.thread.with(HostThread::new_work) else {
            return;
        };
        site.notifier().begin(ReportedPart::Work, id);
        let enqueue = self.enqueue_info(site.id, queue, id, blocking);
        work.describe(&enqueue, &mut |work| {
            site.notifier()
                .enter(ReportedPart::Work, work.enqueue, work.record, work.kernel);
        });
        site.notify_postponed();
    }

    /// Notifies subscribers that `work` has been put into `queue`. Returns its id and the subscribers that follow it.
    #[cold]
    pub(super) fn notify_enqueued(
        &self,
        work: &impl EnqueuedRecords,
        queue: &QueueIds,
        blocking: bool,
    ) -> Option<(WorkId, Option<Box<Followers>>)> {
        let site = self.inner_call_site()?;
        let id = site.notifier().user_data(ReportedPart::Work).work();
        let mut followers: Option<Followers> = None;
        let enqueue = self.enqueue_info(site.id, queue, id, blocking);
        work.describe(&enqueue, &mut |work| {
            let payload = Payload::Record(work.record);
            site.notifier()
                .exit(ReportedPart::Work, work.enqueue, payload, work.kernel, 0);
            // The first kernel of a command buffer stands for all of its parts.
            let speaks = match &followers {
                None => true,
                Some(one) => !one.have_kernel() && work.kernel.is_some(),
            };
            if speaks && let Some(new) = site.notifier().followers(work.complete, work.kernel) {
                followers = Some(new);
            }
        });
        let user_data = site.notifier().end(ReportedPart::Work);
        site.notify_postponed();
        let followers = followers.map(|followers| Box::new(followers.with_user_data(user_data)));
        id.is_some().then_some((id, followers))
    }

    /// Notifies subscribers that `done` of the `passes` of a kernel have run.
    #[cold]
    pub(super) fn notify_replay(&self, work: &impl EnqueuedRecords, done: usize, passes: usize) {
        if let (Some(site), Some(launch)) = (self.inner_call_site(), work.launch()) {
            let payload = Payload::Replay {
                done: done as u32,
                passes: passes as u32,
            };
            let kernel = kernels::id(launch.kernel);
            site.notifier()
                .instant_of(kernel_dispatch::REPLAY, kernel, payload);
            site.notify_postponed();
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

    /// Ends the operations inside the call, which returned `status`: those that were entered but not carried out get
    /// their exit.
    #[cold]
    fn notify_end(&self, status: cl_int) {
        let Some(site) = self.inner_call_site() else {
            return;
        };
        for within in [ReportedPart::Work, ReportedPart::Wait] {
            let left = site.notifier().user_data(within);
            if left.is_open() {
                let (operation, none) = (left.operation(), Payload::None);
                site.notifier()
                    .exit(within, operation, none, KernelId::NONE, status);
                site.notifier().end(within);
            }
        }
        site.notify_postponed();
    }
}

/// The kernel that a call of `function` with these arguments launches.
#[inline]
fn launched(function: &FunctionDescription, arguments: &[u64]) -> KernelId {
    // The kernel is always the second argument.
    match (function.objects, arguments) {
        ([_, ObjectType::Kernel], [_, kernel, ..]) if function.group == OperationGroup::ENQUEUE => {
            kernels::id(cl_kernel(*kernel as *mut c_void))
        }
        _ => KernelId::NONE,
    }
}

/// The context of a call, as far as its first argument says.
#[inline]
fn context_of(function: &FunctionDescription, arguments: &[u64]) -> ContextId {
    let Some(handle) = arguments.first() else {
        return ContextId::NONE;
    };
    let handle = *handle as *mut c_void;
    let known = match function.objects[0] {
        ObjectType::Context => CONTEXTS.get(cl_context(handle)).map(|info| info.id),
        ObjectType::Queue => {
            let info = QUEUES.get(cl_command_queue(handle));
            info.map(|info| info.ids.context)
        }
        ObjectType::Program => programs::context_of(cl_program(handle)),
        ObjectType::Memory => memory::context_of(cl_mem(handle)),
        ObjectType::Kernel => kernels::context_of(cl_kernel(handle)),
        ObjectType::Other => None,
    };
    known.unwrap_or_default()
}
