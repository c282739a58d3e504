//! The data that subscribers leave in the calls in progress, for each part of a call.

use super::interest::{SUBSCRIBERS, SubscriberSet};
use gputrail_record::{Domain, Kind, Operation, WorkId};

/// The parts of a call that are reported to subscribers; each has user data of its own.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ReportedPart {
    /// The call itself.
    Call = 0,
    /// The work that it enqueues, or the memory that it allocates or frees.
    Work = 1,
    /// The wait of the host in it.
    Wait = 2,
}

impl ReportedPart {
    /// The part of a call that a record of `kind` is about, as request services for external ids distinguish them.
    #[inline(always)]
    pub const fn of(kind: Kind) -> ReportedPart {
        match kind {
            Kind::KERNEL_DISPATCH
            | Kind::MEMORY_COPY
            | Kind::MEMORY_SET
            | Kind::MEMORY_ALLOCATION => ReportedPart::Work,
            _ => ReportedPart::Call,
        }
    }
}

/// The user data of subscribers: kept from the enter of a call to its exit, and from an enqueue to its completion.
#[derive(Copy, Clone)]
pub struct UserData {
    /// The newest subscription at the enter. Later ones do not see the rest: they may reuse the slot of an earlier one.
    pub(super) newest: u64,
    /// The subscribers that have seen the enter but not the exit.
    pub(super) notified: SubscriberSet,
    /// The subscribers that have set their word; the others' are 0.
    left: SubscriberSet,
    /// The operation that was entered.
    pub(super) operation: Operation,
    /// The id of the work, if any.
    work: WorkId,
    /// By slot.
    words: [u64; SUBSCRIBERS],
}

impl UserData {
    /// Empty user data.
    pub const NONE: UserData = UserData {
        newest: 0,
        notified: SubscriberSet::NONE,
        left: SubscriberSet::NONE,
        operation: Operation {
            domain: Domain(0),
            number: 0,
        },
        work: WorkId::NONE,
        words: [0; SUBSCRIBERS],
    };

    /// Resets the user data at the enter.
    #[inline]
    pub(super) fn begin(&mut self, newest: u64, work: WorkId) {
        (self.newest, self.work) = (newest, work);
        (self.notified, self.left) = (SubscriberSet::NONE, SubscriberSet::NONE);
    }

    /// The word of the subscriber in `slot`.
    #[inline]
    pub(super) fn word(&self, slot: usize) -> u64 {
        match self.left.0 >> slot & 1 {
            0 => 0,
            _ => self.words[slot],
        }
    }

    #[inline]
    pub(super) fn leave(&mut self, slot: usize, word: u64) {
        self.words[slot] = word;
        self.left.0 |= 1 << slot;
    }

    /// The id of the work.
    pub fn work(&self) -> WorkId {
        self.work
    }

    /// The operation that was entered.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Whether a subscriber has seen the enter but not the exit.
    pub fn is_open(&self) -> bool {
        !self.notified.is_none()
    }
}
