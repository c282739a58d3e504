//! What subscribers are told in the middle of calls: work, memory, waits, objects.
//!
//! All of it is off the path of calls about which nobody is told. Callbacks of work that completes come from the
//! runtime's own callback, on a thread of its choice and perhaps under its locks. On a thread that is in a callback
//! already they wait in the work's slot until that has returned.

use super::call::Call;
use super::completion::OUTSTANDING;
use super::dispatch;
use super::ffi::cl_int;
use super::functions::{self, Inside};
use super::queues::QueueIds;
use super::work::Enqueue;
use crate::collect::correlation::HostThread;
use crate::collect::operations::{self, memory_allocation, resource, synchronization};
use crate::collect::process::{self, Current};
use crate::collect::switchboard::{
    CallArguments, Callback, Payload, Phase, SubscriberSet, Switchboard, UserData, Within,
};
use crate::record::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process in which the runtime's initialization has been told.
static INITIALIZED: AtomicU32 = AtomicU32::new(0);

/// A thread on which subscribers are told.
pub(super) struct Teller {
    thread: Current,
    board: &'static Arc<Switchboard>,
    id: ThreadId,
    correlation: CorrelationId,
    depth: u32,
}

/// What is told of a piece of work: the operations of its two ends, its record and its kernel.
pub(super) struct Described<'a> {
    pub enqueue: Operation,
    pub complete: Operation,
    pub record: RecordRef<'a>,
    pub kernel: KernelId,
}

/// Who is told when work completes, and what they left when it was enqueued.
pub(super) struct Followers {
    operation: Operation,
    subscribers: SubscriberSet,
    kernel: KernelId,
    user_data: UserData,
}

impl Teller {
    /// The calling thread. `None` in a callback, and where nobody is told.
    #[inline]
    pub fn new(thread: Current, correlation: CorrelationId, depth: u32) -> Option<Teller> {
        if thread.state().is_in_callback() {
            return None;
        }
        Some(Teller {
            thread,
            board: thread.board()?,
            id: thread.state().thread(),
            correlation,
            depth,
        })
    }

    fn subscribers(&self, operation: Operation) -> SubscriberSet {
        self.board.interest(operation).subscribers()
    }

    fn callback<'a>(&'a self, operation: Operation, phase: Phase) -> Callback<'a> {
        let name = operations::name(operation);
        let mut callback = Callback::new(operation, name, phase);
        (callback.thread, callback.correlation) = (self.id, self.correlation);
        callback.with_kernel(KernelId::NONE, self.board.names())
    }

    /// Tells of something that happens once.
    pub fn instant(&self, operation: Operation, payload: Payload<'_>) {
        let subscribers = self.subscribers(operation);
        if !subscribers.is_none() {
            let mut callback = self.callback(operation, Phase::Instant);
            callback.payload = payload;
            self.thread.tell(subscribers, &mut callback);
        }
        self.tell_postponed();
    }

    fn begin(&self, within: Within, work: WorkId) {
        let place = (self.depth, within);
        self.board.begin_within(self.thread.state(), place, work);
    }

    fn enter(&self, within: Within, operation: Operation, record: RecordRef<'_>, kernel: KernelId) {
        let subscribers = self.subscribers(operation);
        if !subscribers.is_none() {
            let mut callback = self.callback(operation, Phase::Enter);
            (callback.payload, callback.kernel) = (Payload::Record(record), kernel);
            let place = (self.depth, within);
            let state = self.thread.state();
            self.board
                .tell_within(state, place, subscribers, &mut callback);
        }
    }

    fn exit(
        &self,
        within: Within,
        operation: Operation,
        payload: Payload<'_>,
        kernel: KernelId,
        status: cl_int,
    ) {
        let mut callback = self.callback(operation, Phase::Exit);
        (callback.payload, callback.kernel) = (payload, kernel);
        callback.return_code = Some(status);
        let place = (self.depth, within);
        let state = self.thread.state();
        self.board.tell_exit(state, place, &mut callback);
    }

    fn end(&self, within: Within) -> UserData {
        let place = (self.depth, within);
        self.board.end_within(self.thread.state(), place)
    }

    /// What completed while this thread was in a callback.
    fn tell_postponed(&self) {
        if OUTSTANDING.any_parked() {
            super::completion::tell_postponed(self.thread);
        }
    }
}

impl Call {
    #[inline]
    fn teller(&self) -> Option<Teller> {
        Teller::new(self.thread?, self.core.correlation, self.core.depth)
    }

    /// The same if somebody is told of what the call does.
    #[inline]
    pub fn tells_inside(&self) -> Option<Teller> {
        if !self.core.interest.tells_inside() {
            return None;
        }
        self.teller()
    }

    /// Tells subscribers of the call itself.
    #[inline(always)]
    pub(super) fn tell(&self, phase: Phase, arguments: &[u64], return_code: Option<cl_int>) {
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
        (callback.return_code, callback.payload) = (return_code, payload);
        if let Some(id) = board.tell_within(state, place, subscribers, &mut callback) {
            let supply = |host: &mut HostThread| host.supply_external(&self.core, id);
            thread.with(supply);
        }
        if OUTSTANDING.any_parked() {
            super::completion::tell_postponed(thread);
        }
    }

    /// The call begins: what was left of an earlier one is over, and memory is going to be allocated or freed.
    #[cold]
    pub(super) fn tell_begin(&self, arguments: &[u64]) {
        let Some(teller) = self.tells_inside() else {
            return;
        };
        let process = std::process::id();
        if INITIALIZED.swap(process, Ordering::Relaxed) != process {
            teller.instant(resource::RUNTIME_INITIALIZED, Payload::None);
        }
        teller.begin(Within::Work, WorkId::NONE);
        teller.begin(Within::Wait, WorkId::NONE);
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
                self.tell_allocation(&teller, record);
            }
            Inside::FreesShared => super::memory::tell_free(self, named("ptr")),
        }
    }

    /// Tells that memory is going to be allocated or freed.
    pub(super) fn tell_allocation(&self, teller: &Teller, mut record: Allocation) {
        (record.correlation, record.start) = (self.core.correlation, self.core.start);
        record.thread = teller.id;
        let operation = allocation(record.operation);
        let record = RecordRef::of(&record);
        teller.enter(Within::Work, operation, record, KernelId::NONE);
    }

    /// Tells that it has been.
    pub(super) fn tell_allocated(&self, record: &Allocation) {
        if let Some(teller) = self.tells_inside() {
            let operation = allocation(record.operation);
            let payload = Payload::Record(RecordRef::of(record));
            teller.exit(Within::Work, operation, payload, KernelId::NONE, 0);
            teller.end(Within::Work);
        }
    }

    /// Tells that the host is going to wait.
    pub(super) fn tell_wait(&mut self, mut record: Synchronization) {
        if let Some(teller) = self.tells_inside() {
            let work = &mut record.work;
            (work.correlation, work.enqueued) = (self.core.correlation, self.core.start);
            work.thread = teller.id;
            let record_ref = RecordRef::of(&record);
            let operation = wait(record.what);
            teller.enter(Within::Wait, operation, record_ref, KernelId::NONE);
            self.core.start = crate::clock::now();
        }
    }

    /// Tells that it has waited.
    pub(super) fn tell_waited(&self, record: &Synchronization, status: cl_int) {
        if let Some(teller) = self.tells_inside() {
            let payload = Payload::Record(RecordRef::of(record));
            let operation = wait(record.what);
            teller.exit(Within::Wait, operation, payload, KernelId::NONE, status);
            teller.end(Within::Wait);
        }
    }

    /// Tells that `work` is going to be put into `queue`.
    pub(super) fn tell_enqueuing(&self, work: &impl Enqueue, queue: &QueueIds, blocking: bool) {
        let Some(teller) = self.tells_inside() else {
            return;
        };
        let new_work = |host: &mut HostThread| (host.new_work(), host.external());
        let Some((id, external)) = teller.thread.with(new_work) else {
            return;
        };
        teller.begin(Within::Work, id);
        let place = self.place((teller.id, external), queue, id, blocking);
        work.describe(&place, &mut |work| {
            teller.enter(Within::Work, work.enqueue, work.record, work.kernel);
        });
        teller.tell_postponed();
    }

    /// Tells that it has been, and says who follows it, and by which id.
    #[cold]
    pub(super) fn tell_enqueued(
        &self,
        work: &impl Enqueue,
        queue: &QueueIds,
        blocking: bool,
    ) -> Option<(WorkId, Option<Box<Followers>>)> {
        let teller = self.tells_inside()?;
        let place = (self.core.depth, Within::Work);
        let id = teller.board.user_data(teller.thread.state(), place).work();
        let external = teller.thread.with(|host| host.external())?;
        let mut followers: Option<Followers> = None;
        let place = self.place((teller.id, external), queue, id, blocking);
        work.describe(&place, &mut |work| {
            let payload = Payload::Record(work.record);
            teller.exit(Within::Work, work.enqueue, payload, work.kernel, 0);
            let subscribers = teller.subscribers(work.complete);
            // Of the parts of a command buffer, the first kernel speaks for all.
            let speaks = match &followers {
                None => true,
                Some(one) => !one.kernel.is_some() && work.kernel.is_some(),
            };
            if speaks && !subscribers.is_none() {
                followers = Some(Followers {
                    operation: work.complete,
                    subscribers,
                    kernel: work.kernel,
                    user_data: UserData::NONE,
                });
            }
        });
        let user_data = teller.end(Within::Work);
        teller.tell_postponed();
        let followers = followers.map(|followers| {
            Box::new(Followers {
                user_data,
                ..followers
            })
        });
        id.is_some().then_some((id, followers))
    }

    /// The call ends with `status`. What was told to begin in it, and did not come about, ends too.
    #[cold]
    pub(super) fn tell_end(&self, status: cl_int) {
        let Some(teller) = self.tells_inside() else {
            return;
        };
        for within in [Within::Work, Within::Wait] {
            let place = (self.core.depth, within);
            let left = teller.board.user_data(teller.thread.state(), place);
            if left.is_open() {
                let (operation, none) = (left.operation(), Payload::None);
                teller.exit(within, operation, none, KernelId::NONE, status);
                teller.end(within);
            }
        }
        teller.tell_postponed();
    }

    /// Tells of an object that has come or is going: `id` is that of an `R`.
    pub(super) fn tell_object<R: Record>(&self, operation: Operation, id: u32) {
        if let Some(teller) = self.tells_inside() {
            let record = process::names().and_then(|names| names.get::<R>(id));
            let payload = record.as_ref().map(RecordRef::of);
            teller.instant(operation, payload.map_or(Payload::None, Payload::Record));
        }
    }
}

fn allocation(operation: AllocationOperation) -> Operation {
    match operation {
        AllocationOperation::FREE => memory_allocation::FREE,
        _ => memory_allocation::ALLOCATE,
    }
}

/// The operation that waits, or work that is one, are told as.
pub(super) fn wait(what: SynchronizationType) -> Operation {
    Operation {
        number: what.0.into(),
        ..synchronization::COMPLETE
    }
}

/// Tells `followers` that work has completed. `false`: the thread is in a callback, and it has to be done later.
pub(super) fn completed(
    followers: &mut Followers,
    completion: &Completion,
    thread: Current,
) -> bool {
    if thread.state().is_in_callback() {
        return false;
    }
    if let Some(teller) = Teller::new(thread, completion.correlation, 0) {
        let mut callback = teller.callback(followers.operation, Phase::Complete);
        callback.payload = Payload::Record(RecordRef::of(completion));
        (callback.kernel, callback.return_code) = (followers.kernel, Some(completion.status));
        let (state, subscribers) = (thread.state(), followers.subscribers);
        let user_data = &mut followers.user_data;
        teller
            .board
            .tell(state, subscribers, &mut callback, user_data);
    }
    true
}
