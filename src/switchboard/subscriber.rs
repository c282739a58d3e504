//! Subscribers: who is called back on the thread that makes a call, and how one leaves while calls are in
//! flight.
//!
//! A thread says which subscriber it is calling, in a word of its own. Whoever ends a subscription takes it
//! off the table, has every thread see that ([`every_thread_knows`]), and waits for those threads that had
//! said so before. The hot path pays two plain stores.

use super::callback::Callback;
use super::interest::Slots;
use super::{Consumer, Interest, SUBSCRIBERS, Switchboard, ThreadState, TooMany};
use crate::buffer::lanes::every_thread_knows;
use crate::sync::{fence_light, lock_std};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a subscriber wants to be called. It may be called on several threads at once.
pub(crate) type CallBack = Box<dyn Fn(&mut Callback<'_>) + Send + Sync>;

/// One subscriber.
pub(crate) struct Subscription {
    call_back: CallBack,
    /// Its callback panicked: it is not called any more.
    failed: AtomicBool,
}

/// What the subscribers leave from the enter of a call to its exit, by slot.
pub(crate) type UserData = [u64; SUBSCRIBERS];

/// A subscriber of the switchboard.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SubscriberKey {
    pub slot: usize,
    incarnation: u32,
}

/// Slots of subscribers.
#[derive(Default)]
pub(super) struct Subscribers {
    /// Who has a slot, 0 for nobody.
    incarnations: [u32; SUBSCRIBERS],
    last_incarnation: u32,
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
                subscribers.incarnations[*slot] == 0
                    && subscribers.leaving.iter().all(|(of, _)| of != slot)
            })
            .ok_or(TooMany {
                what: "subscribers",
                most: SUBSCRIBERS,
            })?;
        subscribers.last_incarnation += 1;
        let incarnation = subscribers.last_incarnation;
        subscribers.incarnations[slot] = incarnation;
        let subscription = Box::new(Subscription {
            call_back,
            failed: AtomicBool::new(false),
        });
        self.subscriptions[slot].store(Box::into_raw(subscription), Ordering::Release);
        Ok(SubscriberKey { slot, incarnation })
    }

    /// Ends a subscription. When this returns, the callback is not running on any thread and will not be
    /// called again; but called from within a callback (`caller` is in one) it does not wait for those that
    /// run elsewhere. `false`: it has ended before.
    pub(crate) fn unsubscribe(&self, key: SubscriberKey, caller: Option<&ThreadState>) -> bool {
        let threads;
        {
            let mut state = self.state();
            if state.subscribers.incarnations[key.slot] != key.incarnation {
                return false;
            }
            state.subscribers.incarnations[key.slot] = 0;
            state.services.forget(Consumer::Subscriber(key.slot));
            self.publish(&state);
            let subscription = self.subscriptions[key.slot].swap(ptr::null_mut(), Ordering::AcqRel);
            // SAFETY: it was made by `subscribe` from a box, and the swap gives it to this thread alone.
            // Threads that still use it are waited for before it is dropped.
            let subscription = unsafe { Box::from_raw(subscription) };
            state.subscribers.leaving.push((key.slot, subscription));
            threads = state.live_threads();
        }
        every_thread_knows();
        if caller.is_none_or(|caller| !caller.is_in_callback()) {
            for thread in threads {
                while thread.is_calling(key.slot) {
                    crate::sync::pause();
                }
            }
        }
        self.let_go_of_those_who_left();
        true
    }

    /// Drops subscriptions that have ended and that no thread is calling.
    fn let_go_of_those_who_left(&self) {
        let gone: Vec<_> = {
            let mut state = lock_std(&self.state);
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
        state.subscribers.incarnations[key.slot] == key.incarnation && !failed
    }

    /// Tells the subscribers in `interest`, on `thread`, which is the calling one. Nothing happens within a
    /// callback. A panic ends the subscription of the callback that raised it, and goes no further.
    pub(crate) fn notify(
        &self,
        thread: &ThreadState,
        interest: Interest,
        callback: &mut Callback<'_>,
        user_data: &mut UserData,
    ) {
        if thread.is_in_callback() {
            return;
        }
        for slot in Slots(interest.subscribers()) {
            thread.calls(Some(slot));
            fence_light();
            let subscription = self.subscriptions[slot].load(Ordering::Acquire);
            // SAFETY: null or not dropped before this thread says that it is not calling it any more.
            if let Some(subscription) = unsafe { subscription.as_ref() }
                && !subscription.failed.load(Ordering::Relaxed)
            {
                callback.user_data = user_data[slot];
                let call = AssertUnwindSafe(|| (subscription.call_back)(callback));
                if let Err(panic) = catch_unwind(call) {
                    subscription.failed.store(true, Ordering::Relaxed);
                    // Its payload may be anything, and may panic when it is dropped.
                    std::mem::forget(panic);
                }
                user_data[slot] = callback.user_data;
            }
            thread.calls(None);
        }
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
