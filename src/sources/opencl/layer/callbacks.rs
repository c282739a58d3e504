//! Callbacks of subscribers about calls and the operations inside them: work, memory, waits, objects.
//!
//! Calls without such subscribers do not come here. Callbacks about completed work come from the runtime's own
//! callback, on a thread of its choice and perhaps under its locks. On a thread that is already in a callback they are
//! postponed: they wait in the work's slot until that callback has returned.

use super::call::ObservedCall;
use super::completion::OUTSTANDING;
use super::ffi::cl_int;
use super::functions::{self, Inside};
use super::queues::QueueIds;
use super::work::Enqueue;
use super::{counting, dispatch, sampling};
use gputrail_collect::correlation::HostThread;
use gputrail_collect::notify::{self, Followers, Notifier};
use gputrail_collect::process::Current;
use gputrail_collect::switchboard::{CallArguments, Callback, Payload, Switchboard, Within};
use gputrail_interface::operations::Phase;
use gputrail_interface::operations::{
    kernel_dispatch, memory_allocation, resource, synchronization,
};
use gputrail_record::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process whose subscribers have been notified that the runtime is initialized.
static INITIALIZED: AtomicU32 = AtomicU32::new(0);

/// A thread in a call, from which subscribers are called back.
pub(super) struct CallSite {
    thread: Current,
    board: &'static Arc<Switchboard>,
    id: ThreadId,
    correlation: CorrelationId,
    depth: u32,
}

/// The description of a piece of work for subscribers: the operations of its two ends, its record and its kernel.
pub(super) struct CommandDescription<'a> {
    pub enqueue: Operation,
    pub complete: Operation,
    pub record: RecordRef<'a>,
    pub kernel: KernelId,
}

impl CallSite {
    /// The call site on `thread`. `None` within a callback, and after the end of recording.
    #[inline]
    pub fn new(thread: Current, correlation: CorrelationId, depth: u32) -> Option<CallSite> {
        if thread.state().is_in_callback() {
            return None;
        }
        Some(CallSite {
            thread,
            board: thread.board()?,
            id: thread.state().thread(),
            correlation,
            depth,
        })
    }

    fn notifier(&self) -> Notifier<'_> {
        Notifier {
            board: self.board,
            state: self.thread.state(),
            correlation: self.correlation,
            depth: self.depth,
        }
    }

    /// Notifies subscribers of an operation without duration.
    pub fn instant(&self, operation: Operation, payload: Payload<'_>) {
        self.notifier().instant(operation, payload);
        self.notify_postponed();
    }

    /// Notifies the followers of work that completed while this thread was in a callback.
    fn notify_postponed(&self) {
        if OUTSTANDING.any_parked() {
            super::completion::notify_postponed(self.thread);
        }
    }
}

impl ObservedCall {
    #[inline]
    fn site(&self) -> Option<CallSite> {
        CallSite::new(self.thread?, self.core.correlation, self.core.depth)
    }

    /// The call site, if subscribers want operations inside the call.
    #[inline]
    pub fn inner_call_site(&self) -> Option<CallSite> {
        if !self.core.interest.has_inner_callbacks() {
            return None;
        }
        self.site()
    }

    /// Notifies the subscribers of the call itself.
    #[inline(always)]
    pub(super) fn notify(&self, phase: Phase, arguments: &[u64], returned: Option<(cl_int, u64)>) {
        let subscribers = self.core.interest.subscribers();
        let description = functions::description(self.core.operation.number);
        let (Some(thread), Some(description)) = (self.thread, description) else {
            return;
        };
        let Some(board) = thread.board().filter(|_| !subscribers.is_none()) else {
            return;
        };
        let payload = Payload::Call(CallArguments::in_progress(description.arguments, arguments));
        let mut callback = Callback::new(self.core.operation, description.name, phase)
            .with_kernel(dispatch::launched(description, arguments), board.names());
        let (state, place) = (thread.state(), (self.core.depth, Within::Call));
        (callback.thread, callback.correlation) = (state.thread(), self.core.correlation);
        callback.payload = payload;
        callback.runtime_context = dispatch::context_of(description, arguments);
        if let Some((status, value)) = returned {
            (callback.return_code, callback.return_value) = (Some(status), value);
        }
        board.notify_within(state, place, subscribers, &callback);
        if OUTSTANDING.any_parked() {
            super::completion::notify_postponed(thread);
        }
    }

    /// Resets the user data of operations inside the call at its enter, and notifies subscribers of an allocation or a
    /// free that it is going to make.
    #[cold]
    pub(super) fn notify_begin(&self, arguments: &[u64]) {
        let Some(site) = self.inner_call_site() else {
            return;
        };
        let process = std::process::id();
        if INITIALIZED.swap(process, Ordering::Relaxed) != process {
            site.instant(resource::RUNTIME_INITIALIZED, Payload::None);
        }
        site.notifier().begin(Within::Work, WorkId::NONE);
        site.notifier().begin(Within::Wait, WorkId::NONE);
        let Some(description) = functions::description(self.core.operation.number) else {
            return;
        };
        let arguments = CallArguments::in_progress(description.arguments, arguments);
        let named = |name| arguments.get(name).unwrap_or(0);
        match description.inside {
            Inside::Nothing => {}
            Inside::Allocates => {
                let mut record = Allocation::blank();
                record.operation = AllocationOperation::ALLOCATE;
                (record.bytes, record.runtime_flags) = (named("size"), named("flags"));
                self.notify_allocation(&site, record);
            }
            Inside::FreesShared => super::memory::notify_free(self, named("ptr")),
        }
    }

    /// Notifies subscribers that memory is going to be allocated or freed.
    pub(super) fn notify_allocation(&self, site: &CallSite, mut record: Allocation) {
        (record.correlation, record.start) = (self.core.correlation, self.core.start);
        record.thread = site.id;
        let operation = allocation(record.operation);
        let record = RecordRef::of(&record);
        site.notifier()
            .enter(Within::Work, operation, record, KernelId::NONE);
    }

    /// Notifies subscribers that memory has been allocated or freed.
    pub(super) fn notify_allocated(&self, record: &Allocation) {
        if let Some(site) = self.inner_call_site() {
            let operation = allocation(record.operation);
            let payload = Payload::Record(RecordRef::of(record));
            site.notifier()
                .exit(Within::Work, operation, payload, KernelId::NONE, 0);
            site.notifier().end(Within::Work);
        }
    }

    /// Notifies subscribers that the host is going to wait.
    pub(super) fn notify_wait(&mut self, mut record: Synchronization) {
        if let Some(site) = self.inner_call_site() {
            let work = &mut record.work;
            (work.correlation, work.enqueued) = (self.core.correlation, self.core.start);
            work.thread = site.id;
            let record_ref = RecordRef::of(&record);
            let operation = wait(record.what);
            site.notifier()
                .enter(Within::Wait, operation, record_ref, KernelId::NONE);
            self.core.start = gputrail_buffer::clock::now();
        }
    }

    /// Notifies subscribers that the host has waited.
    pub(super) fn notify_waited(&self, record: &Synchronization, status: cl_int) {
        if let Some(site) = self.inner_call_site() {
            let payload = Payload::Record(RecordRef::of(record));
            let operation = wait(record.what);
            site.notifier()
                .exit(Within::Wait, operation, payload, KernelId::NONE, status);
            site.notifier().end(Within::Wait);
        }
    }

    /// Notifies subscribers that `work` is going to be put into `queue`.
    pub(super) fn notify_enqueuing(&self, work: &impl Enqueue, queue: &QueueIds, blocking: bool) {
        let Some(site) = self.inner_call_site() else {
            return;
        };
        if sampling::is_on() || counting::is_on() {
            let unnamed = self.enqueue_info(site.id, queue, WorkId::NONE, blocking);
            work.describe(&unnamed, &mut |work| site.notifier().profiled(work.kernel));
        }
        let Some(id) = site.thread.with(HostThread::new_work) else {
            return;
        };
        site.notifier().begin(Within::Work, id);
        let enqueue = self.enqueue_info(site.id, queue, id, blocking);
        work.describe(&enqueue, &mut |work| {
            site.notifier()
                .enter(Within::Work, work.enqueue, work.record, work.kernel);
        });
        site.notify_postponed();
    }

    /// Notifies subscribers that `work` has been put into `queue`. Returns its id and the subscribers that follow it.
    #[cold]
    pub(super) fn notify_enqueued(
        &self,
        work: &impl Enqueue,
        queue: &QueueIds,
        blocking: bool,
    ) -> Option<(WorkId, Option<Box<Followers>>)> {
        let site = self.inner_call_site()?;
        let id = site.notifier().user_data(Within::Work).work();
        let mut followers: Option<Followers> = None;
        let enqueue = self.enqueue_info(site.id, queue, id, blocking);
        work.describe(&enqueue, &mut |work| {
            let payload = Payload::Record(work.record);
            site.notifier()
                .exit(Within::Work, work.enqueue, payload, work.kernel, 0);
            // The first kernel of a command buffer stands for all of its parts.
            let speaks = match &followers {
                None => true,
                Some(one) => !one.have_kernel() && work.kernel.is_some(),
            };
            if speaks && let Some(new) = site.notifier().followers(work.complete, work.kernel) {
                followers = Some(new);
            }
        });
        let user_data = site.notifier().end(Within::Work);
        site.notify_postponed();
        let followers = followers.map(|followers| Box::new(followers.with_user_data(user_data)));
        id.is_some().then_some((id, followers))
    }

    /// Notifies subscribers that `done` of the `passes` of a kernel have run.
    #[cold]
    pub(super) fn notify_replay(&self, work: &impl Enqueue, done: usize, passes: usize) {
        if let (Some(site), Some(launch)) = (self.inner_call_site(), work.launch()) {
            let payload = Payload::Replay {
                done: done as u32,
                passes: passes as u32,
            };
            let kernel = super::kernels::id(launch.kernel);
            site.notifier()
                .instant_of(kernel_dispatch::REPLAY, kernel, payload);
            site.notify_postponed();
        }
    }

    /// Ends the operations inside the call, which returned `status`: those that were entered but not carried out get
    /// their exit.
    #[cold]
    pub(super) fn notify_end(&self, status: cl_int) {
        let Some(site) = self.inner_call_site() else {
            return;
        };
        for within in [Within::Work, Within::Wait] {
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

    /// Notifies subscribers of a change of a graph.
    pub(super) fn notify_graph(&self, change: &GraphChange) {
        if let Some(site) = self.inner_call_site() {
            site.notifier().graph_changed(change);
            site.notify_postponed();
        }
    }

    /// Notifies subscribers that an object has been created or is going to be destroyed. `id` is the id of an `R`.
    pub(super) fn notify_object<R: Record>(&self, operation: Operation, id: u32) {
        if let Some(site) = self.inner_call_site() {
            site.notifier().object::<R>(operation, id);
            site.notify_postponed();
        }
    }
}

fn allocation(operation: AllocationOperation) -> Operation {
    match operation {
        AllocationOperation::FREE => memory_allocation::FREE,
        _ => memory_allocation::ALLOCATE,
    }
}

/// The operation under which subscribers see a wait, or a marker or barrier.
pub(super) fn wait(what: SynchronizationType) -> Operation {
    Operation {
        number: what.0.into(),
        ..synchronization::COMPLETE
    }
}

/// Notifies the followers of work that has completed, unless the thread is in a callback.
pub(super) fn completed(followers: &mut Followers, completion: &Completion, thread: Current) {
    if let Some(board) = thread.board() {
        notify::completed(board, thread.state(), followers, completion);
    }
}
