//! Subscriptions, and the slots that they have.

use super::callback::CallbackArguments;
use super::interest::SUBSCRIBERS;
use std::sync::atomic::AtomicBool;

/// The function of a subscriber. It may run on several threads at once.
pub(crate) type SubscriberFunction = Box<dyn Fn(&mut CallbackArguments<'_>) + Send + Sync>;

/// A subscription.
pub(crate) struct Subscription {
    pub(super) call_back: SubscriberFunction,
    /// Its number among all subscriptions, from 1.
    pub(super) number: u64,
    /// Whether its callback has panicked or called exit(3), which ends the calls.
    pub(super) is_over: AtomicBool,
}

/// The key of a subscriber.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SubscriberKey {
    pub slot: usize,
    pub(super) number: u64,
}

/// The slots of subscribers.
#[derive(Default)]
pub(super) struct Subscribers {
    /// The subscription number in each slot, or 0.
    pub(super) numbers: [u64; SUBSCRIBERS],
    /// Ended subscriptions that a thread may still be calling.
    pub(super) leaving: Vec<(usize, Box<Subscription>)>,
}
