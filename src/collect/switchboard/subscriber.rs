//! Subscribers: who is called back on the thread that makes a call, and how one leaves while calls are in
//! flight.
//!
//! A thread says which subscriber it is calling, in a word of its own. Whoever ends a subscription takes it
//! off the table, has every thread see that ([`fence_heavy`]), and waits for those threads that had
//! said so before. The hot path pays two plain stores.

use super::callback::Callback;
use super::callback::Phase;
use super::interest::{Slots, SubscriberSet};
use super::thread::here;
use super::{Consumer, SUBSCRIBERS, Switchboard, ThreadState, TooMany, Within};
use crate::platform::inside::Uncancelled;
use crate::platform::sync::{fence_heavy, fence_light};
use crate::record::{Domain, ExternalId, Operation, WorkId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a subscriber wants to be called. It may be called on several threads at once.
pub(crate) type CallBack = Box<dyn Fn(&mut Callback<'_>) + Send + Sync>;

/// One subscriber.
pub(crate) struct Subscription {
    call_back: CallBack,
    /// Its number among all that there have been, from 1.
    number: u64,
    /// Its callback panicked: it is not called any more.
    failed: AtomicBool,
}

/// What subscribers leave for what comes later: from the enter of a call to its exit, from an enqueue to its
/// completion.
#[derive(Copy, Clone)]
pub(crate) struct UserData {
    /// The newest subscription when it began. Those that came later are not told of the rest: a slot may be theirs
    /// that was another's.
    newest: u64,
    /// Those who have been told of its enter and not of its exit.
    told: SubscriberSet,
    /// Those whose word is valid: that of others is 0.
    left: SubscriberSet,
    /// What they were told to begin.
    operation: Operation,
    /// The id of the work, if it is work.
    work: WorkId,
    /// By slot.
    words: [u64; SUBSCRIBERS],
}

impl UserData {
    /// Nobody's.
    pub const NONE: UserData = UserData {
        newest: 0,
        told: SubscriberSet::NONE,
        left: SubscriberSet::NONE,
        operation: Operation {
            domain: Domain(0),
            number: 0,
        },
        work: WorkId::NONE,
        words: [0; SUBSCRIBERS],
    };

    /// Something new begins; what was left is forgotten.
    #[inline]
    fn begin(&mut self, newest: u64, work: WorkId) {
        (self.newest, self.work) = (newest, work);
        (self.told, self.left) = (SubscriberSet::NONE, SubscriberSet::NONE);
    }

    /// What the subscriber in `slot` has left.
    #[inline]
    fn word(&self, slot: usize) -> u64 {
        match self.left.0 >> slot & 1 {
            0 => 0,
            _ => self.words[slot],
        }
    }

    #[inline]
    fn leave(&mut self, slot: usize, word: u64) {
        self.words[slot] = word;
        self.left.0 |= 1 << slot;
    }

    /// The id that the work has got.
    pub fn work(&self) -> WorkId {
        self.work
    }

    /// What was told to begin.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Whether somebody was told of the enter and not of the exit.
    pub fn is_open(&self) -> bool {
        !self.told.is_none()
    }
}

/// A subscriber of the switchboard.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SubscriberKey {
    pub slot: usize,
    number: u64,
}

/// Slots of subscribers.
#[derive(Default)]
pub(super) struct Subscribers {
    /// Numbers of those who have a slot, 0 for nobody.
    numbers: [u64; SUBSCRIBERS],
    /// Subscriptions that have ended while a thread may have been in their callback.
    leaving: Vec<(usize, Box<Subscription>)>,
}

impl Switchboard {
    /// Lets `call_back` be called, as soon as a service says for what.
    pub(crate) fn subscribe(&self, call_back: CallBack) -> Result<SubscriberKey, TooMany> {
        self.let_go_of_those_who_left();
        let mut state = self.state();
        let subscribers = &mut state.subscribers;
        let slot = (0..SUBSCRIBERS)
            .find(|slot| {
                subscribers.numbers[*slot] == 0
                    && subscribers.leaving.iter().all(|(of, _)| of != slot)
            })
            .ok_or(TooMany {
                what: "subscribers",
                most: SUBSCRIBERS,
            })?;
        // The lock is held: nobody else counts.
        let number = self.newest_subscription.load(Ordering::Relaxed) + 1;
        self.newest_subscription.store(number, Ordering::Release);
        subscribers.numbers[slot] = number;
        let subscription = Box::new(Subscription {
            call_back,
            number,
            failed: AtomicBool::new(false),
        });
        self.subscriptions[slot].store(Box::into_raw(subscription), Ordering::Release);
        Ok(SubscriberKey { slot, number })
    }

    /// Ends a subscription. When this returns, the callback is not running on any thread and will not be
    /// called again; but called from within a callback it does not wait for those that run elsewhere. `false`: it
    /// has ended before.
    pub(crate) fn unsubscribe(&self, key: SubscriberKey) -> bool {
        let (threads, subscription);
        {
            let mut state = self.state();
            if state.subscribers.numbers[key.slot] != key.number {
                return false;
            }
            state.subscribers.numbers[key.slot] = 0;
            state.services.forget(Consumer::Subscriber(key.slot));
            self.publish(&state);
            let pointer = self.subscriptions[key.slot].swap(ptr::null_mut(), Ordering::AcqRel);
            // SAFETY: it was made by `subscribe` from a box, and the swap gives it to this thread alone.
            // Threads that still use it are waited for before it is dropped.
            subscription = unsafe { Box::from_raw(pointer) };
            threads = state.live_threads();
        }
        // After the fence, each thread that has the pointer says that it is calling.
        match fence_heavy() {
            true => {
                let mut state = self.state();
                state.subscribers.leaving.push((key.slot, subscription));
            }
            // A thread may have the pointer without saying so: the subscription is never dropped.
            false => std::mem::forget(subscription),
        }
        let here = here();
        // Two callbacks that wait for each other would do so for ever.
        let in_callback = |thread: &ThreadState| thread.runs_on(here) && thread.is_in_callback();
        if !threads.iter().any(|thread| in_callback(thread)) {
            for thread in threads {
                while thread.is_calling(key.slot) {
                    crate::platform::sync::pause();
                }
            }
        }
        self.let_go_of_those_who_left();
        true
    }

    /// Drops subscriptions that have ended and that no thread is calling.
    fn let_go_of_those_who_left(&self) {
        let gone: Vec<_> = {
            let mut state = self.state();
            let threads = state.live_threads();
            let in_use = |slot: usize| threads.iter().any(|thread| thread.is_calling(slot));
            let leaving = &mut state.subscribers.leaving;
            leaving.extract_if(.., |(slot, _)| !in_use(*slot)).collect()
        };
        // What the callback owns is dropped without the lock.
        drop(gone);
    }

    /// Whether the subscription is there and its callback has not panicked.
    pub(crate) fn is_subscribed(&self, key: SubscriberKey) -> bool {
        let state = self.state();
        let subscription = self.subscriptions[key.slot].load(Ordering::Acquire);
        // SAFETY: null or a subscription that is not dropped while the state is locked and it has its slot.
        let failed = unsafe { subscription.as_ref() }
            .is_none_or(|subscription| subscription.failed.load(Ordering::Relaxed));
        state.subscribers.numbers[key.slot] == key.number && !failed
    }

    /// Something begins within the call at `depth`: what is left there of an earlier one is forgotten.
    #[inline]
    pub(crate) fn begin_within(&self, thread: &ThreadState, place: (u32, Within), work: WorkId) {
        let newest = self.newest_subscription.load(Ordering::Acquire);
        self.with_user_data(thread, place, |user_data| user_data.begin(newest, work));
    }

    /// Tells `subscribers`, on `thread`, which is the calling one, of a moment of the call at `depth`. What they leave
    /// at its enter, with which it begins, they find at what follows. Returns what [`Switchboard::tell`] does.
    #[inline(always)]
    pub(crate) fn tell_within(
        &self,
        thread: &ThreadState,
        place: (u32, Within),
        subscribers: SubscriberSet,
        callback: &mut Callback<'_>,
    ) -> Option<ExternalId> {
        self.with_user_data(thread, place, |user_data| {
            if callback.phase == Phase::Enter {
                if place.1 == Within::Call {
                    let newest = self.newest_subscription.load(Ordering::Acquire);
                    user_data.begin(newest, WorkId::NONE);
                }
                user_data.told = SubscriberSet(user_data.told.0 | subscribers.0);
                user_data.operation = callback.operation;
            }
            self.tell_each(thread, subscribers, callback, user_data)
        })?
    }

    /// Tells of the exit those who have been told of the enter.
    pub(crate) fn tell_exit(
        &self,
        thread: &ThreadState,
        place: (u32, Within),
        callback: &mut Callback<'_>,
    ) {
        self.with_user_data(thread, place, |user_data| {
            self.tell_each(thread, user_data.told, callback, user_data);
        });
    }

    /// The exit has been told. What subscribers have left is theirs to find at a completion.
    pub(crate) fn end_within(&self, thread: &ThreadState, place: (u32, Within)) -> UserData {
        let end = |user_data: &mut UserData| {
            user_data.told = SubscriberSet::NONE;
            *user_data
        };
        self.with_user_data(thread, place, end)
            .unwrap_or(UserData::NONE)
    }

    /// What subscribers have left in the call at `depth` so far.
    pub(crate) fn user_data(&self, thread: &ThreadState, place: (u32, Within)) -> UserData {
        self.with_user_data(thread, place, |user_data| *user_data)
            .unwrap_or(UserData::NONE)
    }

    /// `None`, and nothing is done, in a callback.
    #[inline]
    fn with_user_data<R>(
        &self,
        thread: &ThreadState,
        (depth, within): (u32, Within),
        work: impl FnOnce(&mut UserData) -> R,
    ) -> Option<R> {
        if thread.is_in_callback() {
            return None;
        }
        // SAFETY: this is the thread itself, and it is not in a callback, which is all that `work` lets in.
        Some(unsafe { thread.with_user_data(depth, within, work) })
    }

    /// User data of something that begins now.
    pub(crate) fn new_user_data(&self) -> UserData {
        UserData {
            newest: self.newest_subscription.load(Ordering::Acquire),
            ..UserData::NONE
        }
    }

    /// Tells `subscribers`, on `thread`, which is the calling one. Nothing happens within a callback. A panic ends
    /// the subscription of the callback that raised it, and goes no further. The last of them may change `callback`.
    ///
    /// Returns the external id that one of them has supplied: of several, whoever has subscribed first.
    pub(crate) fn tell(
        &self,
        thread: &ThreadState,
        subscribers: SubscriberSet,
        callback: &mut Callback<'_>,
        user_data: &mut UserData,
    ) -> Option<ExternalId> {
        match thread.is_in_callback() {
            true => None,
            false => self.tell_each(thread, subscribers, callback, user_data),
        }
    }

    /// The same on a thread that is not in a callback.
    #[inline(always)]
    fn tell_each(
        &self,
        thread: &ThreadState,
        subscribers: SubscriberSet,
        callback: &mut Callback<'_>,
        user_data: &mut UserData,
    ) -> Option<ExternalId> {
        let mut supplied: Option<(u64, ExternalId)> = None;
        let mut copy;
        // A cancellation point in a callback would unwind through us.
        let _uncancelled = Uncancelled::begin();
        let mut slots = Slots(subscribers.0);
        while let Some(slot) = slots.next() {
            thread.calls(Some(slot));
            fence_light();
            let subscription = self.subscriptions[slot].load(Ordering::Acquire);
            // SAFETY: null or not dropped before this thread says that it is not calling it any more.
            if let Some(subscription) = unsafe { subscription.as_ref() }
                && subscription.number <= user_data.newest
                && !subscription.failed.load(Ordering::Relaxed)
            {
                // A copy for each but the last: what one of them changes is nobody else's business.
                let callback = if slots.0 == 0 {
                    &mut *callback
                } else {
                    copy = callback.clone();
                    &mut copy
                };
                callback.user_data = user_data.word(slot);
                let call = AssertUnwindSafe(|| (subscription.call_back)(callback));
                if let Err(panic) = catch_unwind(call) {
                    subscription.failed.store(true, Ordering::Relaxed);
                    // Its payload may be anything, and may panic when it is dropped.
                    std::mem::forget(panic);
                }
                user_data.leave(slot, callback.user_data);
                if let Some(id) = callback.external
                    && supplied.is_none_or(|(number, _)| subscription.number < number)
                {
                    supplied = Some((subscription.number, id));
                }
            }
            thread.calls(None);
        }
        supplied.map(|(_, id)| id)
    }
}

impl Drop for Switchboard {
    fn drop(&mut self) {
        for subscription in &self.subscriptions {
            let subscription = subscription.swap(ptr::null_mut(), Ordering::AcqRel);
            if !subscription.is_null() {
                // SAFETY: made by `subscribe` from a box; no thread holds the switchboard any more.
                drop(unsafe { Box::from_raw(subscription) });
            }
        }
    }
}
