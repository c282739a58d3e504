//! Subscribers: calling them on the thread that makes a call, and removing them while calls are in flight.
//!
//! A thread publishes the subscriber that it is calling in a word of its own. Ending a subscription removes it from the
//! table, makes every thread see that ([`fence_heavy`]), and waits for the threads that are still calling it. The hot
//! path costs two plain stores.

use super::board::Switchboard;
use super::callback::{CallbackArguments, Payload};
use super::interest::{SUBSCRIBERS, Slots, SubscriberSet};
use super::keys::{ServiceConsumer, TooMany};
use super::subscription::{SubscriberFunction, SubscriberKey, Subscription};
use super::thread::{ThreadState, here};
use super::user_data::{ReportedPart, UserData};
use crate::delivering::Notifying;
use bytemuck::Zeroable as _;
use gputrail_buffer::platform::inside::Uncancelled;
use gputrail_buffer::platform::sync::{fence_heavy, fence_light};
use gputrail_interface::operations::Phase;
use gputrail_record::{ExternalId, RecordCopy, WorkId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The external ids of an activity that subscribers are notified of.
#[derive(Copy, Clone)]
pub(crate) enum ExternalIds<'a> {
    /// The ids of the calling thread, for an activity in this place.
    OfThread((u32, ReportedPart)),
    /// The ids of work at its enqueue, by slot; see [`Switchboard::external_ids`].
    OfWork(&'a [ExternalId; SUBSCRIBERS]),
}

impl ExternalIds<'_> {
    /// The ids of the calling thread, for the call in progress.
    pub const OF_CALL: ExternalIds<'static> = ExternalIds::OfThread((u32::MAX, ReportedPart::Call));
}

impl Switchboard {
    /// Adds a subscriber. Services determine when it is called.
    pub(crate) fn subscribe(
        &self,
        call_back: SubscriberFunction,
    ) -> Result<SubscriberKey, TooMany> {
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
        // The lock is held: no other thread increments the number.
        let number = self.newest_subscription.load(Ordering::Relaxed) + 1;
        self.newest_subscription.store(number, Ordering::Release);
        subscribers.numbers[slot] = number;
        let subscription = Box::new(Subscription {
            call_back,
            number,
            is_over: AtomicBool::new(false),
        });
        self.subscriptions[slot].store(Box::into_raw(subscription), Ordering::Release);
        Ok(SubscriberKey { slot, number })
    }

    /// Ends a subscription. When this returns, the callback is not running and will not be called again. Within a
    /// callback, it does not wait for callbacks on other threads. Returns `false` if the subscription has ended before.
    pub(crate) fn unsubscribe(&self, key: SubscriberKey) -> bool {
        let (threads, subscription);
        {
            let mut state = self.state();
            if state.subscribers.numbers[key.slot] != key.number {
                return false;
            }
            state.subscribers.numbers[key.slot] = 0;
            state.services.forget(ServiceConsumer::Subscriber(key.slot));
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
        // Two callbacks that wait for each other would deadlock.
        let in_callback = |thread: &ThreadState| thread.runs_on(here) && thread.is_in_callback();
        if !threads.iter().any(|thread| in_callback(thread)) {
            for thread in threads {
                while thread.is_calling(key.slot) {
                    gputrail_buffer::platform::sync::pause();
                }
            }
        }
        self.let_go_of_those_who_left();
        true
    }

    /// The calling thread, which is `thread`, ends the process, if it is in a callback from within it. That subscriber is not
    /// called any more.
    ///
    /// # Safety
    ///
    /// As for [`ThreadState::leaves_callback`].
    pub(crate) unsafe fn leave_callback(&self, thread: &ThreadState) {
        if let Some(slot) = thread.calling_slot() {
            let subscription = self.subscriptions[slot].load(Ordering::Acquire);
            // SAFETY: null, or not dropped while this thread has it published as being called.
            if let Some(subscription) = unsafe { subscription.as_ref() } {
                subscription.is_over.store(true, Ordering::Relaxed);
            }
        }
        // SAFETY: the caller's promise: this is the thread, and it does not return to the callback.
        unsafe { thread.leaves_callback() };
    }

    /// Drops ended subscriptions that no thread is calling.
    fn let_go_of_those_who_left(&self) {
        let gone: Vec<_> = {
            let mut state = self.state();
            let threads = state.live_threads();
            let in_use = |slot: usize| threads.iter().any(|thread| thread.is_calling(slot));
            let leaving = &mut state.subscribers.leaving;
            leaving.extract_if(.., |(slot, _)| !in_use(*slot)).collect()
        };
        // Drops the callbacks without holding the lock.
        drop(gone);
    }

    /// Whether the subscription exists and is called.
    pub(crate) fn is_subscribed(&self, key: SubscriberKey) -> bool {
        let state = self.state();
        let subscription = self.subscriptions[key.slot].load(Ordering::Acquire);
        // SAFETY: null, or a subscription that is not dropped while the state is locked.
        let failed = unsafe { subscription.as_ref() }
            .is_none_or(|subscription| subscription.is_over.load(Ordering::Relaxed));
        state.subscribers.numbers[key.slot] == key.number && !failed
    }

    /// Resets the user data of an activity within the call at `depth`, and forgets external ids supplied for an
    /// earlier one.
    #[inline]
    pub(crate) fn begin_within(
        &self,
        thread: &ThreadState,
        place: (u32, ReportedPart),
        work: WorkId,
    ) {
        let newest = self.newest_subscription.load(Ordering::Acquire);
        self.with_user_data(thread, place, |user_data| user_data.begin(newest, work));
        if thread.has_external() {
            // SAFETY: `thread` is the calling one.
            unsafe { thread.with_external(|stacks| stacks.begin_supplied(place)) };
        }
    }

    /// Notifies `subscribers` of a phase of an activity within the call at `depth`, on `thread`, the calling one. The
    /// user data set at the enter is passed to later phases.
    #[inline(always)]
    pub fn notify_within(
        &self,
        thread: &ThreadState,
        place: (u32, ReportedPart),
        subscribers: SubscriberSet,
        callback: &CallbackArguments<'_>,
    ) {
        let end_supplied = |phase| {
            if callback.phase == phase && place.1 == ReportedPart::Call && thread.has_external() {
                // SAFETY: `thread` is the calling one.
                unsafe { thread.with_external(|stacks| stacks.end_supplied(place.0)) };
            }
        };
        end_supplied(Phase::Enter);
        self.with_user_data(thread, place, |user_data| {
            if callback.phase == Phase::Enter {
                if place.1 == ReportedPart::Call {
                    let newest = self.newest_subscription.load(Ordering::Acquire);
                    user_data.begin(newest, WorkId::NONE);
                }
                user_data.notified = SubscriberSet(user_data.notified.0 | subscribers.0);
                user_data.operation = callback.operation;
            }
            let ids = ExternalIds::OfThread(place);
            self.notify_each(thread, subscribers, callback, user_data, ids);
        });
        end_supplied(Phase::Exit);
    }

    /// Notifies the subscribers that have seen the enter of the exit.
    pub(crate) fn notify_exit(
        &self,
        thread: &ThreadState,
        place: (u32, ReportedPart),
        callback: &CallbackArguments<'_>,
    ) {
        self.with_user_data(thread, place, |user_data| {
            let ids = ExternalIds::OfThread(place);
            self.notify_each(thread, user_data.notified, callback, user_data, ids);
        });
    }

    /// Ends an activity after its exit, and returns its user data for the completion.
    pub(crate) fn end_within(&self, thread: &ThreadState, place: (u32, ReportedPart)) -> UserData {
        let end = |user_data: &mut UserData| {
            user_data.notified = SubscriberSet::NONE;
            *user_data
        };
        self.with_user_data(thread, place, end)
            .unwrap_or(UserData::NONE)
    }

    /// The current user data of an activity within the call at `depth`.
    pub(crate) fn user_data(&self, thread: &ThreadState, place: (u32, ReportedPart)) -> UserData {
        self.with_user_data(thread, place, |user_data| *user_data)
            .unwrap_or(UserData::NONE)
    }

    /// Runs `work`, or returns `None` within a callback.
    #[inline(always)]
    fn with_user_data<R>(
        &self,
        thread: &ThreadState,
        (depth, within): (u32, ReportedPart),
        work: impl FnOnce(&mut UserData) -> R,
    ) -> Option<R> {
        if thread.is_in_callback() {
            return None;
        }
        // SAFETY: `thread` is the calling one.
        unsafe { thread.with_user_data(depth, within, work) }
    }

    /// User data for a new activity.
    pub(crate) fn new_user_data(&self) -> UserData {
        let mut user_data = UserData::NONE;
        user_data.newest = self.newest_subscription.load(Ordering::Acquire);
        user_data
    }

    /// The external ids that `subscribers` get with the work in `place`, for its completion.
    pub(crate) fn external_ids(
        &self,
        thread: &ThreadState,
        place: (u32, ReportedPart),
        subscribers: SubscriberSet,
    ) -> [ExternalId; SUBSCRIBERS] {
        let mut ids = [ExternalId::NONE; SUBSCRIBERS];
        for slot in Slots(subscribers.0) {
            let contexts = self.external().of_subscriber(slot);
            // SAFETY: `thread` is the calling one.
            ids[slot] = unsafe { thread.external(self.external(), contexts, place) };
        }
        ids
    }

    /// Notifies `subscribers` on `thread`, the calling one. Does nothing within a callback. A panic is contained and
    /// ends the subscription.
    pub(crate) fn notify(
        &self,
        thread: &ThreadState,
        subscribers: SubscriberSet,
        callback: &CallbackArguments<'_>,
        user_data: &mut UserData,
        ids: ExternalIds<'_>,
    ) {
        if !thread.is_in_callback() {
            self.notify_each(thread, subscribers, callback, user_data, ids);
        }
    }

    /// Like [`Switchboard::notify`], on a thread that is not in a callback.
    #[inline(always)]
    fn notify_each(
        &self,
        thread: &ThreadState,
        subscribers: SubscriberSet,
        callback: &CallbackArguments<'_>,
        user_data: &mut UserData,
        ids: ExternalIds<'_>,
    ) {
        // A cancellation point in a callback would unwind our frames.
        let _uncancelled = Uncancelled::begin();
        let _notifying = Notifying::begin();
        for slot in Slots(subscribers.0) {
            thread.calls(Some(slot));
            fence_light();
            let subscription = self.subscriptions[slot].load(Ordering::Acquire);
            // SAFETY: null, or not dropped while this thread has it published as being called.
            if let Some(subscription) = unsafe { subscription.as_ref() }
                && subscription.number <= user_data.newest
                && !subscription.is_over.load(Ordering::Relaxed)
            {
                let contexts = self.external().of_subscriber(slot);
                // Each subscriber gets a copy: its changes remain private.
                let mut copy;
                let mut callback = callback.clone();
                callback.external = match ids {
                    // SAFETY: `thread` is the calling one.
                    ExternalIds::OfThread(place) => unsafe {
                        thread.external(self.external(), contexts, place)
                    },
                    ExternalIds::OfWork(ids) => ids[slot],
                };
                if let Payload::Record(record) = callback.payload {
                    copy = RecordCopy::zeroed();
                    let record = record.with_external(callback.external, &mut copy);
                    callback.payload = Payload::Record(record);
                }
                callback.user_data = user_data.word(slot);
                let call = AssertUnwindSafe(|| (subscription.call_back)(&mut callback));
                if let Err(panic) = catch_unwind(call) {
                    subscription.is_over.store(true, Ordering::Relaxed);
                    // The payload may panic when it is dropped.
                    std::mem::forget(panic);
                }
                user_data.leave(slot, callback.user_data);
                if let (Some(id), ExternalIds::OfThread(place)) = (callback.supplied, ids) {
                    let service = (contexts, subscription.number);
                    // SAFETY: `thread` is the calling one.
                    unsafe { thread.with_external(|stacks| stacks.supply(place, service, id)) };
                }
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
                // SAFETY: `subscribe` made it from a box; no thread uses the switchboard any more.
                drop(unsafe { Box::from_raw(subscription) });
            }
        }
    }
}
