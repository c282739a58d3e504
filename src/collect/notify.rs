//! Callbacks of subscribers about what happens inside of calls: work, memory, waits, objects.
//!
//! All of it is off the path of calls that have no such subscriber. A [`Notifier`] stands for the place from which a
//! source calls back: a thread, and a call in progress on it. Work that is enqueued gets [`Followers`], which the
//! source keeps until the work completes.

use super::operations;
use super::switchboard::{
    CallbackArguments, ExternalIds, Payload, ReportedPart, SUBSCRIBERS, SubscriberSet, Switchboard,
    ThreadState, UserData,
};
use gputrail_interface::operations::Phase;
use gputrail_interface::operations::resource;
use gputrail_record::*;

/// The subscribers that are called back when a piece of work completes, and the words that they left at its enqueue.
pub struct Followers {
    operation: Operation,
    subscribers: SubscriberSet,
    kernel: KernelId,
    user_data: UserData,
    /// By slot.
    external: [ExternalId; SUBSCRIBERS],
}

impl Followers {
    /// Nobody, in tests.
    #[doc(hidden)]
    pub fn none(operation: Operation) -> Followers {
        Followers {
            operation,
            subscribers: SubscriberSet::NONE,
            kernel: KernelId::NONE,
            user_data: UserData::NONE,
            external: [ExternalId::NONE; SUBSCRIBERS],
        }
    }

    /// Whether the work has a kernel.
    pub fn have_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// Keeps the words that subscribers left at the enqueue.
    pub fn with_user_data(self, user_data: UserData) -> Followers {
        Followers { user_data, ..self }
    }
}

/// A place from which subscribers are called back.
#[derive(Copy, Clone)]
pub struct Notifier<'a> {
    /// The switchboard that knows the subscribers.
    pub board: &'a Switchboard,
    /// The calling thread.
    pub state: &'a ThreadState,
    /// The call in progress.
    pub correlation: CorrelationId,
    /// The depth of the call in progress.
    pub depth: u32,
}

impl<'a> Notifier<'a> {
    /// The subscribers of `operation`.
    pub fn subscribers(&self, operation: Operation) -> SubscriberSet {
        self.board.interest(operation).subscribers()
    }

    fn callback(&self, operation: Operation, phase: Phase) -> CallbackArguments<'a> {
        let mut callback = CallbackArguments::new(operation, operations::name(operation), phase);
        (callback.thread, callback.correlation) = (self.state.thread(), self.correlation);
        callback.with_kernel(KernelId::NONE, self.board.names())
    }

    /// Calls back about something that happens once.
    pub fn instant(&self, operation: Operation, payload: Payload<'_>) {
        self.instant_of(operation, KernelId::NONE, payload);
    }

    /// Calls back about something that happens once to a kernel.
    pub fn instant_of(&self, operation: Operation, kernel: KernelId, payload: Payload<'_>) {
        let subscribers = self.subscribers(operation);
        if !subscribers.is_none() {
            let mut callback = self.callback(operation, Phase::Instant);
            (callback.payload, callback.kernel) = (payload, kernel);
            let mut user_data = self.board.new_user_data();
            let ids = ExternalIds::OfThread((self.depth, ReportedPart::Call));
            self.board
                .notify(self.state, subscribers, &callback, &mut user_data, ids);
        }
    }

    /// Calls back about a change of a graph.
    pub fn graph_changed(&self, change: &GraphChange) {
        let payload = Payload::Record(RecordRef::of(change));
        self.instant(operations::of_graph_change(change.what), payload);
    }

    /// Calls back about an object that has come or is going: `id` is that of an `R`.
    pub fn object<R: Record>(&self, operation: Operation, id: u32) {
        if !self.subscribers(operation).is_none() {
            let record = self.board.names().get::<R>(id);
            let payload = record.as_ref().map(RecordRef::of);
            self.instant(operation, payload.map_or(Payload::None, Payload::Record));
        }
    }

    /// Calls back about the module of `kernel`, which is enqueued while kernels are sampled or counted, unless that was
    /// done for this module.
    #[cold]
    pub fn profiled(&self, kernel: KernelId) {
        if self.subscribers(resource::MODULE_PROFILED).is_none() {
            return;
        }
        let symbol = self.board.names().get::<KernelSymbol>(kernel.0);
        let module = symbol.map_or(ModuleId::NONE, |symbol| symbol.module);
        if module.is_some() && self.board.is_first_profile(module) {
            self.object::<Module>(resource::MODULE_PROFILED, module.0);
        }
    }

    /// Something begins within the call: words that subscribers left earlier are forgotten.
    pub fn begin(&self, within: ReportedPart, work: WorkId) {
        let place = (self.depth, within);
        self.board.begin_within(self.state, place, work);
    }

    /// Calls back at its enter.
    pub fn enter(
        &self,
        within: ReportedPart,
        operation: Operation,
        record: RecordRef<'_>,
        kernel: KernelId,
    ) {
        let subscribers = self.subscribers(operation);
        if !subscribers.is_none() {
            let mut callback = self.callback(operation, Phase::Enter);
            (callback.payload, callback.kernel) = (Payload::Record(record), kernel);
            let place = (self.depth, within);
            self.board
                .notify_within(self.state, place, subscribers, &callback);
        }
    }

    /// Calls back at its exit the subscribers that were called at its enter.
    pub fn exit(
        &self,
        within: ReportedPart,
        operation: Operation,
        payload: Payload<'_>,
        kernel: KernelId,
        status: i32,
    ) {
        let mut callback = self.callback(operation, Phase::Exit);
        (callback.payload, callback.kernel) = (payload, kernel);
        callback.return_code = Some(status);
        let place = (self.depth, within);
        self.board.notify_exit(self.state, place, &callback);
    }

    /// It has ended. Returns the words that subscribers have left.
    pub fn end(&self, within: ReportedPart) -> UserData {
        self.board.end_within(self.state, (self.depth, within))
    }

    /// The words that subscribers have left so far.
    pub fn user_data(&self, within: ReportedPart) -> UserData {
        self.board.user_data(self.state, (self.depth, within))
    }

    /// The subscribers that are called back when the work being enqueued completes, under `operation`; `None` if there
    /// are none.
    pub fn followers(&self, operation: Operation, kernel: KernelId) -> Option<Followers> {
        let subscribers = self.subscribers(operation);
        let place = (self.depth, ReportedPart::Work);
        (!subscribers.is_none()).then(|| Followers {
            operation,
            subscribers,
            kernel,
            user_data: UserData::NONE,
            external: self.board.external_ids(self.state, place, subscribers),
        })
    }
}

/// Calls back, on the calling thread, which `state` is of, the followers of work that has completed. Nothing happens on
/// a thread that is in a callback.
pub fn completed(
    board: &Switchboard,
    state: &ThreadState,
    followers: &mut Followers,
    completion: &Completion,
) {
    let notifier = Notifier {
        board,
        state,
        correlation: completion.correlation,
        depth: 0,
    };
    let mut callback = notifier.callback(followers.operation, Phase::Complete);
    callback.payload = Payload::Record(RecordRef::of(completion));
    (callback.kernel, callback.return_code) = (followers.kernel, Some(completion.status));
    let ids = ExternalIds::OfWork(&followers.external);
    let (subscribers, user_data) = (followers.subscribers, &mut followers.user_data);
    board.notify(state, subscribers, &callback, user_data, ids);
}

/// Calls back, on the calling thread, which `state` is of, those who follow the passes of a kernel that has run `passes` times.
/// Nothing happens on a thread that is in a callback.
pub fn replayed(
    board: &Switchboard,
    state: &ThreadState,
    followers: &Followers,
    (correlation, passes): (CorrelationId, u32),
) {
    let notifier = Notifier {
        board,
        state,
        correlation,
        depth: 0,
    };
    for done in 1..=passes {
        let mut callback = notifier.callback(followers.operation, Phase::Instant);
        callback.payload = Payload::Replay { done, passes };
        callback.kernel = followers.kernel;
        let ids = ExternalIds::OfWork(&followers.external);
        let mut user_data = board.new_user_data();
        board.notify(state, followers.subscribers, &callback, &mut user_data, ids);
    }
}
