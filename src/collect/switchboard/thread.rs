//! The state of a thread that other threads may access: its lanes, and whether it is in a callback.

use super::external::{ContextSet, ExternalContexts, ExternalStacks};
use super::interest::{BUFFERS, SUBSCRIBERS};
use super::user_data::{ReportedPart, UserData};
use gputrail_buffer::lanes::{Lanes, OwnLanes};
use gputrail_record::{ExternalId, ThreadId};
use std::cell::{Cell, UnsafeCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};

/// Nested calls whose user data is kept apart; deeper ones share theirs.
const DEPTHS: usize = 256;

/// The value of [`ThreadState::calling`] in a tool's function that is no subscriber.
const IN_TOOL: u32 = u32::MAX;

/// User data of one call in progress.
type OfCall = [UserData; 3];

/// The shared part of one thread's state.
pub struct ThreadState {
    lanes: Lanes<BUFFERS>,
    /// The slot of the subscriber that the thread is calling and 1, or 0.
    calling: AtomicU32,
    /// Whether `external` may have an id for any consumer; see [`ExternalStacks::concern_all`].
    has_external: AtomicBool,
    /// Whether `external` is in use; accessed by the thread itself only.
    external_is_used: Cell<bool>,
    /// The thread's id in records.
    thread: ThreadId,
    /// See [`ThreadState::number`].
    number: u32,
    /// The thread of the operating system.
    runs_on: u32,
    /// The user data of subscribers in calls in progress, by depth; accessed by the thread itself only.
    user_data: UnsafeCell<Vec<OfCall>>,
    /// Whether `user_data` is in use; accessed by the thread itself only.
    user_data_is_used: Cell<bool>,
    /// External ids; accessed by the thread itself only.
    external: UnsafeCell<ExternalStacks>,
}

// SAFETY: `user_data`, `external` and their flags are reached by the thread itself alone
// (`ThreadState::with_user_data`, `ThreadState::with_external`); the rest is atomic or has rules of its own.
unsafe impl Sync for ThreadState {}

/// The calling thread of the operating system.
pub(super) fn here() -> u32 {
    gputrail_buffer::platform::system::thread_id()
}

impl ThreadState {
    /// The state of a new thread.
    pub fn new(thread: ThreadId, number: u32, lanes: &OwnLanes<BUFFERS>) -> Arc<ThreadState> {
        Arc::new(ThreadState {
            lanes: lanes.shared(),
            calling: AtomicU32::new(0),
            has_external: AtomicBool::new(false),
            external_is_used: Cell::new(false),
            thread,
            number,
            runs_on: here(),
            user_data: UnsafeCell::new(Vec::new()),
            user_data_is_used: Cell::new(false),
            external: UnsafeCell::default(),
        })
    }

    /// The lanes of the thread, one for each buffer.
    pub fn lanes(&self) -> &Lanes<BUFFERS> {
        &self.lanes
    }

    /// The thread's id in records.
    #[inline]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// A number that no other thread of the process has at the same time, below 1024.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether the thread is in a callback: what it calls is not recorded.
    #[inline]
    pub fn is_in_callback(&self) -> bool {
        self.calling.load(Ordering::Relaxed) != 0
    }

    /// The slot of the subscriber that the thread is calling.
    pub fn calling_slot(&self) -> Option<usize> {
        let slot = self.calling.load(Ordering::Relaxed).checked_sub(1)? as usize;
        (slot < SUBSCRIBERS).then_some(slot)
    }

    /// Acquire: pairs with the release below, so that the end of a callback has happened.
    pub fn is_calling(&self, slot: usize) -> bool {
        self.calling.load(Ordering::Acquire) == slot as u32 + 1
    }

    /// Whether it runs on `thread` of the operating system, as `here` gives it.
    pub fn runs_on(&self, thread: u32) -> bool {
        self.runs_on == thread
    }

    /// The thread itself says which subscriber it is calling.
    #[inline]
    pub fn calls(&self, slot: Option<usize>) {
        self.calling
            .store(slot.map_or(0, |slot| slot as u32 + 1), Ordering::Release);
    }

    /// The thread ends the process from within a callback, to which it never returns: what it does from now on is in no
    /// callback.
    ///
    /// # Safety
    ///
    /// Called by the thread itself, and as it says.
    pub unsafe fn leaves_callback(&self) {
        self.calls(None);
        // The use that was interrupted never goes on.
        self.user_data_is_used.set(false);
    }

    /// Runs a function of a tool that is no subscriber: as in a callback, what it calls is not recorded.
    pub fn in_tool<R>(&self, function: impl FnOnce() -> R) -> R {
        let before = self.calling.swap(IN_TOOL, Ordering::AcqRel);
        let result = function();
        self.calling.store(before, Ordering::Release);
        result
    }

    /// Lets `work` use what subscribers leave in the call at `depth`. `None` within such a use: in a callback, or in a signal
    /// handler that interrupted one.
    ///
    /// # Safety
    ///
    /// Called by the thread itself.
    #[inline(always)]
    pub unsafe fn with_user_data<R>(
        &self,
        depth: u32,
        within: ReportedPart,
        work: impl FnOnce(&mut UserData) -> R,
    ) -> Option<R> {
        if self.user_data_is_used.replace(true) {
            return None;
        }
        compiler_fence(Ordering::SeqCst);
        let depth = (depth as usize).min(DEPTHS - 1);
        // SAFETY: only this function reaches `user_data`, on the thread that the state belongs to (the caller's promise), and
        // not while it is in use, as the flag says: there is no other reference.
        let all = unsafe { &mut *self.user_data.get() };
        if depth >= all.len() {
            make_deeper(all, depth);
        }
        let result = work(&mut all[depth][within as usize]);
        compiler_fence(Ordering::SeqCst);
        self.user_data_is_used.set(false);
        Some(result)
    }

    /// Whether a consumer without contexts in a [`ContextSet`] may get an external id of this thread.
    #[inline(always)]
    pub fn has_external(&self) -> bool {
        self.has_external.load(Ordering::Relaxed)
    }

    /// Lets `work` use the external ids. `None` in a signal handler that interrupted such a use.
    ///
    /// # Safety
    ///
    /// Called by the thread itself.
    pub unsafe fn with_external<R>(
        &self,
        work: impl FnOnce(&mut ExternalStacks) -> R,
    ) -> Option<R> {
        if self.external_is_used.replace(true) {
            return None;
        }
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the thread that the state belongs to is calling (the caller's promise), and the flag excludes a use from
        // within `work`: there is no other reference.
        let stacks = unsafe { &mut *self.external.get() };
        let result = work(stacks);
        self.has_external
            .store(stacks.concern_all(), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.external_is_used.set(false);
        Some(result)
    }

    /// [`ThreadState::with_external`] for `work` that changes nothing.
    ///
    /// # Safety
    ///
    /// Called by the thread itself.
    #[inline(always)]
    pub unsafe fn read_external<R>(&self, work: impl FnOnce(&ExternalStacks) -> R) -> Option<R> {
        if self.external_is_used.replace(true) {
            return None;
        }
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the thread that the state belongs to is calling (the caller's promise), and the flag excludes a use from
        // within `work`: there is no other reference.
        let result = work(unsafe { &*self.external.get() });
        compiler_fence(Ordering::SeqCst);
        self.external_is_used.set(false);
        Some(result)
    }

    /// The external id that a consumer with `contexts` gets with a record of the activity in `place`.
    ///
    /// # Safety
    ///
    /// Called by the thread itself.
    #[inline(always)]
    pub unsafe fn external(
        &self,
        all: &ExternalContexts,
        contexts: ContextSet,
        place: (u32, ReportedPart),
    ) -> ExternalId {
        if contexts.is_none() && !self.has_external() {
            return all.main();
        }
        // SAFETY: the thread that the state belongs to is calling (the caller's promise).
        unsafe { self.read_external(|stacks| stacks.id(all, contexts, place)) }
            .unwrap_or_else(|| all.main())
    }
}

/// Room for a call at `depth`.
#[cold]
#[inline(never)]
fn make_deeper(all: &mut Vec<OfCall>, depth: usize) {
    all.resize(depth + 1, [UserData::NONE; 3]);
}
