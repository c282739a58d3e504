//! External ids: the stacks of each thread, and the contexts whose ids a consumer gets.
//!
//! An id is pushed for the process or for one context. A consumer gets the ids of its contexts: a subscriber belongs to
//! one, a buffer to those that record to it. Where these have none, it gets the id of the process. A thread without an
//! id inherits the main thread's, for the process and for each context.
//!
//! An id that a request service supplies for one call, or for the work in it, comes before those that are pushed. It is
//! for the consumers of the service's context, and for those whose contexts have no ids of their own.
//!
//! Contexts without ids of their own cost nothing: their consumers have an empty [`ContextSet`].

use super::interest::{BUFFERS, Buffers, Interest, SUBSCRIBERS};
use super::keys::{CONTEXTS, ContextKey};
use super::user_data::ReportedPart;
use gputrail_record::{ExternalId, ExternalKind};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// External ids that one thread pushes for the process, or for one context.
const MAX_PUSHED: usize = 1024;

/// Contexts with external ids of their own, a bit each.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct ContextSet(u64);

impl ContextSet {
    /// Whether the set is empty.
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    fn has(self, place: usize) -> bool {
        self.0 >> place & 1 != 0
    }
}

/// The consumers that a pushed id is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ExternalScope {
    /// The consumers whose contexts have no id.
    Process,
    /// The consumers of one context.
    Context(ContextKey),
}

/// The contexts with external ids of their own, by consumer, and the ids that threads inherit.
pub struct ExternalContexts {
    /// The latest id that the main thread has pushed for the process.
    main: AtomicU64,
    /// The contexts with ids of their own.
    own: AtomicU64,
    /// By slot of a buffer: the contexts of `own` that record to it.
    buffers: [AtomicU64; BUFFERS],
    /// By slot of a subscriber: the context of `own` that it belongs to.
    subscribers: [AtomicU64; SUBSCRIBERS],
    /// The context of `own` that samples.
    samples: AtomicU64,
    /// By place: the incarnation of the context.
    incarnations: [AtomicU32; CONTEXTS],
    /// By place: the latest id that the main thread has pushed for the context.
    main_of: [AtomicU64; CONTEXTS],
}

impl Default for ExternalContexts {
    fn default() -> Self {
        ExternalContexts {
            main: AtomicU64::new(0),
            own: AtomicU64::new(0),
            buffers: [const { AtomicU64::new(0) }; BUFFERS],
            subscribers: [const { AtomicU64::new(0) }; SUBSCRIBERS],
            samples: AtomicU64::new(0),
            incarnations: [const { AtomicU32::new(0) }; CONTEXTS],
            main_of: [const { AtomicU64::new(0) }; CONTEXTS],
        }
    }
}

/// The consumers of contexts with ids of their own, which [`ExternalContexts`] publishes.
#[derive(Default)]
pub(super) struct Consumers {
    own: u64,
    buffers: [u64; BUFFERS],
    subscribers: [u64; SUBSCRIBERS],
    samples: u64,
}

impl Consumers {
    /// Adds the context at `place`. Its consumers are added afterwards.
    pub fn add_context(&mut self, place: usize) {
        self.own |= 1 << place;
    }

    pub fn add_buffer(&mut self, place: usize, slot: usize) {
        self.buffers[slot] |= 1 << place;
    }

    pub fn add_subscriber(&mut self, place: usize, slot: usize) {
        self.subscribers[slot] |= 1 << place;
    }

    pub fn add_samples(&mut self, place: usize) {
        self.samples |= 1 << place;
    }
}

impl ExternalContexts {
    /// Sets the contexts of all consumers.
    pub(super) fn set(&self, consumers: &Consumers) {
        let set = |word: &AtomicU64, contexts| word.store(contexts, Ordering::Relaxed);
        for (word, contexts) in self.buffers.iter().zip(consumers.buffers) {
            set(word, contexts);
        }
        for (word, contexts) in self.subscribers.iter().zip(consumers.subscribers) {
            set(word, contexts);
        }
        set(&self.samples, consumers.samples);
        set(&self.own, consumers.own);
    }

    /// A new context has been created at the place of `key`.
    pub(super) fn begin(&self, key: ContextKey) {
        self.main_of[key.place].store(0, Ordering::Relaxed);
        self.incarnations[key.place].store(key.incarnation, Ordering::Relaxed);
    }

    /// Whether the context exists and has ids of its own.
    pub fn has(&self, key: ContextKey) -> bool {
        self.is_current(key) && self.own.load(Ordering::Relaxed) >> key.place & 1 != 0
    }

    /// Whether no later context has the place of `key`.
    fn is_current(&self, key: ContextKey) -> bool {
        self.incarnations[key.place].load(Ordering::Relaxed) == key.incarnation
    }

    /// The contexts with ids of their own that record to the buffer in `slot`.
    #[inline(always)]
    pub fn of_buffer(&self, slot: usize) -> ContextSet {
        ContextSet(self.buffers[slot].load(Ordering::Relaxed))
    }

    /// The context of the subscriber in `slot`, if it has ids of its own.
    #[inline(always)]
    pub fn of_subscriber(&self, slot: usize) -> ContextSet {
        ContextSet(self.subscribers[slot].load(Ordering::Relaxed))
    }

    /// The context that samples, if it has ids of its own.
    pub fn of_samples(&self) -> ContextSet {
        ContextSet(self.samples.load(Ordering::Relaxed))
    }

    /// The context of `key` alone.
    pub fn of(&self, key: ContextKey) -> ContextSet {
        ContextSet(u64::from(self.has(key)) << key.place)
    }

    /// The buffers to which contexts with ids of their own record.
    pub(super) fn buffers(&self) -> Buffers {
        self.buffers_where(|contexts| !contexts.is_none())
    }

    /// The buffers to which the context of `key` records.
    pub fn buffers_of(&self, key: ContextKey) -> Buffers {
        self.buffers_where(|contexts| contexts.has(key.place))
    }

    fn buffers_where(&self, wanted: impl Fn(ContextSet) -> bool) -> Buffers {
        let slots = (0..BUFFERS).filter(|slot| wanted(self.of_buffer(*slot)));
        slots.fold(Buffers::NONE, |all, slot| {
            all.or(Interest::buffer(slot).buffers())
        })
    }

    /// The latest id that the main thread has pushed for the process.
    #[inline(always)]
    pub fn main(&self) -> ExternalId {
        ExternalId(self.main.load(Ordering::Relaxed))
    }

    /// The latest id that the main thread has pushed for one of `contexts`.
    fn main_of(&self, contexts: ContextSet) -> Option<ExternalId> {
        let places = (0..CONTEXTS).filter(|place| contexts.has(*place));
        let mut ids = places.map(|place| ExternalId(self.main_of[place].load(Ordering::Relaxed)));
        ids.find(|id| id.is_some())
    }

    /// Publishes the main thread's latest id of `scope`.
    fn set_main(&self, scope: ExternalScope, id: ExternalId) {
        match scope {
            ExternalScope::Process => self.main.store(id.0, Ordering::Relaxed),
            ExternalScope::Context(key) if self.is_current(key) => {
                self.main_of[key.place].store(id.0, Ordering::Relaxed);
            }
            ExternalScope::Context(_) => {}
        }
    }
}

/// An id on a thread's stack.
#[derive(Copy, Clone)]
pub struct Pushed {
    /// The consumers that it is for.
    pub scope: ExternalScope,
    /// Its kind.
    pub kind: ExternalKind,
    /// The id itself.
    pub id: ExternalId,
}

impl Pushed {
    fn is_of(&self, scope: ExternalScope, kind: ExternalKind) -> bool {
        (self.scope, self.kind) == (scope, kind)
    }
}

/// An id that a request service has supplied for a call in progress, or for work in it.
#[derive(Copy, Clone)]
struct SuppliedId {
    /// The depth of the call.
    depth: u32,
    within: ReportedPart,
    /// The context of the service.
    contexts: ContextSet,
    /// The number of the subscription.
    number: u64,
    id: ExternalId,
}

/// The external ids of one thread.
#[derive(Default)]
pub struct ExternalStacks {
    pushed: Vec<Pushed>,
    /// The latest of each scope and kind in `pushed`, in the same order.
    latest: Vec<Pushed>,
    supplied: Vec<SuppliedId>,
    /// Whether an id was pushed for a context in a call in progress. The context may have had none when the call was
    /// entered, so that the consumers of the call are not marked as having ids of their own.
    pushed_in_call: bool,
}

impl ExternalStacks {
    /// Pushes an id. `false` says that the stack of its scope is full.
    pub fn push(&mut self, new: Pushed) -> bool {
        let of_scope = |one: &&Pushed| one.scope == new.scope;
        if self.pushed.iter().filter(of_scope).count() >= MAX_PUSHED {
            return false;
        }
        self.pushed.push(new);
        self.latest.retain(|one| !one.is_of(new.scope, new.kind));
        self.latest.push(new);
        true
    }

    /// Takes off the latest id of `kind` in `scope`, or returns `None` if there is none.
    pub fn pop(&mut self, scope: ExternalScope, kind: ExternalKind) -> Option<ExternalId> {
        let is_it = |one: &Pushed| one.is_of(scope, kind);
        let popped = self.pushed.remove(self.pushed.iter().rposition(is_it)?);
        self.latest.clear();
        for one in self.pushed.iter().rev() {
            if !self.latest.iter().any(|of| of.is_of(one.scope, one.kind)) {
                self.latest.push(*one);
            }
        }
        self.latest.reverse();
        Some(popped.id)
    }

    /// Takes off all ids, and publishes that other threads inherit none.
    pub fn clear_main(&mut self, all: &ExternalContexts) {
        for one in std::mem::take(&mut self.pushed) {
            all.set_main(one.scope, ExternalId::NONE);
        }
        self.latest.clear();
    }

    /// Publishes the latest id of `scope` as the one that other threads inherit.
    pub fn publish_main(&self, all: &ExternalContexts, scope: ExternalScope) {
        let latest = self.latest.iter().rev().find(|one| one.scope == scope);
        all.set_main(scope, latest.map_or(ExternalId::NONE, |one| one.id));
    }

    /// Supplies the id of the call at `depth`, or of the work in it. `number` is that of the subscription, whose
    /// first answer counts.
    pub fn supply(
        &mut self,
        (depth, within): (u32, ReportedPart),
        (contexts, number): (ContextSet, u64),
        id: ExternalId,
    ) {
        let same =
            |one: &SuppliedId| (one.depth, one.within, one.number) == (depth, within, number);
        if !self.supplied.iter().any(same) {
            self.supplied.push(SuppliedId {
                depth,
                within,
                contexts,
                number,
                id,
            });
        }
    }

    /// An id has been pushed for a context in a call in progress.
    pub fn push_in_call(&mut self) {
        self.pushed_in_call = true;
    }

    /// Forgets the ids supplied for calls at `depth` and deeper.
    pub fn end_supplied(&mut self, depth: u32) {
        self.supplied.retain(|one| one.depth < depth);
        self.pushed_in_call &= depth > 0;
    }

    /// Forgets the ids supplied for an earlier activity in the same place.
    pub fn begin_supplied(&mut self, place: (u32, ReportedPart)) {
        self.supplied.retain(|one| (one.depth, one.within) != place);
    }

    /// Whether consumers that were not known to have contexts in a [`ContextSet`] may get an id of this thread.
    pub fn concern_all(&self) -> bool {
        let of_process = |one: &Pushed| one.scope == ExternalScope::Process;
        !self.supplied.is_empty() || self.pushed_in_call || self.latest.iter().any(of_process)
    }

    /// The id that a consumer with `contexts` gets with a record of the activity in `place`.
    pub fn id(
        &self,
        all: &ExternalContexts,
        contexts: ContextSet,
        place: (u32, ReportedPart),
    ) -> ExternalId {
        let supplied = self.supplied(contexts, place);
        let own = || supplied.or_else(|| self.latest_where(|one| is_of(one, all, contexts)));
        let inherited = || all.main_of(contexts);
        let of_process = || self.latest_where(|one| one.scope == ExternalScope::Process);
        own()
            .or_else(inherited)
            .or_else(of_process)
            .unwrap_or_else(|| all.main())
    }

    /// The latest ids of each kind that are pushed for the process, the latest of all last; `None` if ids are supplied or
    /// none is pushed.
    #[inline]
    pub fn pushed_for_process(&self) -> Option<impl Iterator<Item = &Pushed> + Clone> {
        let of_process = |one: &&Pushed| one.scope == ExternalScope::Process;
        let ids = self.latest.iter().filter(of_process);
        let is_simple = self.supplied.is_empty() && ids.clone().next().is_some();
        is_simple.then_some(ids)
    }

    /// The id supplied for the activity in `place`, for its call, or for a call around it. Of several services the one
    /// that was subscribed first prevails.
    fn supplied(
        &self,
        contexts: ContextSet,
        (depth, within): (u32, ReportedPart),
    ) -> Option<ExternalId> {
        let is_for = |one: &&SuppliedId| {
            let of_call = one.within == ReportedPart::Call && one.depth <= depth;
            let of_work = (one.depth, one.within) == (depth, within);
            let is_own = contexts.is_none() || contexts.0 & one.contexts.0 != 0;
            is_own && (of_call || of_work)
        };
        let nearest = |one: &&SuppliedId| {
            (
                one.depth,
                one.within != ReportedPart::Call,
                Reverse(one.number),
            )
        };
        let found = self.supplied.iter().filter(is_for).max_by_key(nearest);
        found.map(|one| one.id)
    }

    fn latest_where(&self, wanted: impl Fn(&Pushed) -> bool) -> Option<ExternalId> {
        let found = self.latest.iter().rev().find(|one| wanted(one));
        found.map(|one| one.id)
    }

    /// The id at `index` among the latest of each kind, if a consumer with `contexts` gets it: the process's ids come
    /// with kinds of which its contexts have none. `None` past the last.
    pub fn latest_of_kind(
        &self,
        all: &ExternalContexts,
        contexts: ContextSet,
        index: usize,
    ) -> Option<Option<Pushed>> {
        let one = self.latest.get(index)?;
        let replaces = |own: &Pushed| own.kind == one.kind && is_of(own, all, contexts);
        let is_for = match one.scope {
            ExternalScope::Context(_) => is_of(one, all, contexts),
            ExternalScope::Process => !self.latest.iter().any(replaces),
        };
        Some(is_for.then_some(*one))
    }
}

/// Whether `pushed` is for one of `contexts`.
fn is_of(pushed: &Pushed, all: &ExternalContexts, contexts: ContextSet) -> bool {
    match pushed.scope {
        ExternalScope::Process => false,
        ExternalScope::Context(key) => contexts.has(key.place) && all.is_current(key),
    }
}
