//! Who wants what: one word for each operation and each kind of record, read on the hot path.

use crate::record::{Domain, KINDS, Kind, Operation};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Buffers that a process has at a time.
pub const BUFFERS: usize = 32;
/// Subscribers that a process has at a time.
pub const SUBSCRIBERS: usize = 24;
/// Domains that a table has room for.
pub(crate) const DOMAINS: usize = 16;
/// Operations of a domain that a table has room for.
pub(crate) const OPERATIONS: usize = 512;

/// Who wants to hear of an operation: one bit a consumer.
///
/// ```text
/// 0..32    buffers that want the call's record
/// 32..56   subscribers that are called back
/// 56       the call stands in a buffer's memory while it is in progress
/// 57       somebody wants to hear of the call's exit, or at least how long it took
/// 58       a buffer wants the call's arguments
/// 59       the call may be where a recording begins or ends
/// 60       subscribers are told of what the call does: work, memory, objects, waits
/// 61       the source keeps its own books by the call
/// 62       the call's device work is wanted: the call gets an id
/// 63       the recording has ended: the call is only counted
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Interest(u64);

impl Interest {
    /// Nobody.
    pub const NONE: Interest = Interest(0);
    pub(crate) const OPEN: Interest = Interest(1 << 56);
    pub(crate) const NOTICED: Interest = Interest(1 << 57);
    pub(crate) const ARGUMENTS: Interest = Interest(1 << 58);
    pub(crate) const GATED: Interest = Interest(1 << 59);
    pub(crate) const INSIDE: Interest = Interest(1 << 60);
    pub(crate) const LATE: Interest = Interest(1 << 63);
    pub(crate) const WORK: Interest = Interest(1 << 62);
    pub(crate) const OBSERVED: Interest = Interest(1 << 61);

    pub(crate) const fn buffer(slot: usize) -> Interest {
        Interest(1 << slot)
    }

    pub(crate) const fn subscriber(slot: usize) -> Interest {
        Interest(1 << (BUFFERS + slot))
    }

    pub(crate) const fn with(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }

    /// Whether nobody wants it.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether nobody wants it, or the recording has ended.
    #[inline(always)]
    pub(crate) fn is_none_or_late(self) -> bool {
        const { assert!(Interest::LATE.0 as i64 == i64::MIN) };
        self.0 as i64 <= 0
    }

    /// The buffers among them.
    #[inline]
    pub fn buffers(self) -> Buffers {
        Buffers(self.0 as u32)
    }

    /// The subscribers among them.
    #[inline]
    pub(crate) fn subscribers(self) -> SubscriberSet {
        SubscriberSet((self.0 >> BUFFERS) as u32 & ((1 << SUBSCRIBERS) - 1))
    }

    /// Whether there are subscribers among them.
    #[inline]
    pub fn has_subscribers(self) -> bool {
        !self.subscribers().is_none()
    }

    /// Whether there are subscribers to be told of the call, or of what it does.
    #[inline]
    pub(crate) fn is_told(self) -> bool {
        const ALL: u64 = ((1 << SUBSCRIBERS) - 1) << BUFFERS | Interest::INSIDE.0;
        self.0 & ALL != 0
    }

    /// Whether subscribers are told of the call, and that is all.
    #[inline]
    pub(crate) fn is_only_told(self) -> bool {
        const OTHERS: u64 = u32::MAX as u64 | Interest::WORK.0 | Interest::INSIDE.0;
        self.is_told() && self.0 & OTHERS == 0
    }

    /// Whether the buffer in `slot` wants the call's record, and that is all that is wanted of the call itself but,
    /// perhaps, its arguments.
    #[inline(always)]
    pub(crate) fn is_plain_for(self, slot: usize) -> bool {
        const BESIDE: u64 = Interest::WORK.0
            | Interest::OBSERVED.0
            | Interest::GATED.0
            | Interest::ARGUMENTS.0
            | Interest::OPEN.0
            | Interest::NOTICED.0;
        self.0 & !BESIDE == 1 << slot
    }

    /// Whether subscribers are told of what the call does.
    #[inline]
    pub(crate) fn tells_inside(self) -> bool {
        self.0 & Interest::INSIDE.0 != 0
    }

    /// Whether the call has an id and times: for somebody who wants it or the work that it enqueues.
    #[inline]
    pub fn is_recorded(self) -> bool {
        self.0 & !(Interest::OBSERVED.0 | Interest::LATE.0 | Interest::GATED.0) != 0
    }

    /// Whether somebody may look for the call while it is in progress.
    #[inline(always)]
    pub(crate) fn is_open(self) -> bool {
        self.0 & Interest::OPEN.0 != 0
    }

    /// Whether somebody wants to hear of the call's exit.
    #[inline(always)]
    pub(crate) fn is_noticed(self) -> bool {
        self.0 & Interest::NOTICED.0 != 0
    }

    /// Whether somebody wants the call's times.
    #[inline(always)]
    pub(crate) fn is_timed(self) -> bool {
        !self.buffers().is_none() || !self.is_only_told() || self.is_noticed()
    }

    /// Whether a buffer wants the call's arguments.
    #[inline(always)]
    pub(crate) fn has_arguments(self) -> bool {
        self.0 & Interest::ARGUMENTS.0 != 0
    }

    /// Whether the call has to pass the gate of a recording.
    #[inline]
    pub(crate) fn is_gated(self) -> bool {
        self.0 & Interest::GATED.0 != 0
    }

    /// The same but for that.
    pub(crate) fn without_gate(self) -> Interest {
        Interest(self.0 & !Interest::GATED.0)
    }

    /// Whether the recording has ended.
    #[inline]
    pub(crate) fn is_late(self) -> bool {
        self.0 & Interest::LATE.0 != 0
    }
}

/// A set of buffers of one process: those that a record goes to.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Buffers(pub(crate) u32);

impl Buffers {
    /// No buffer.
    pub const NONE: Buffers = Buffers(0);

    /// Whether there is none.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Those in either.
    #[inline]
    pub fn or(self, other: Buffers) -> Buffers {
        Buffers(self.0 | other.0)
    }

    /// Those that are in `other` too.
    #[inline]
    pub fn and(self, other: Buffers) -> Buffers {
        Buffers(self.0 & other.0)
    }

    /// The slot of the only one, if there is one.
    #[inline(always)]
    pub(crate) fn only(self) -> Option<usize> {
        self.0
            .is_power_of_two()
            .then(|| self.0.trailing_zeros() as usize % BUFFERS)
    }

    /// Those that are not in `other`.
    #[inline]
    pub fn without(self, other: Buffers) -> Buffers {
        Buffers(self.0 & !other.0)
    }

    /// Their slots.
    #[inline]
    pub(crate) fn slots(self) -> Slots {
        Slots(self.0)
    }
}

/// A set of subscribers, a bit each.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct SubscriberSet(pub u32);

impl SubscriberSet {
    /// Nobody.
    pub const NONE: SubscriberSet = SubscriberSet(0);

    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// The numbers of the bits that are set.
pub(crate) struct Slots(pub u32);

impl Iterator for Slots {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let slot = self.0.trailing_zeros() as usize;
        // The last value has no bit to clear.
        self.0 &= self.0.checked_sub(1)?;
        Some(slot)
    }
}

/// The table that the hot path reads. All zeros are a valid one, in which nobody wants anything: that
/// is what a forked child finds.
#[repr(C, align(4096))]
pub(crate) struct Wanted {
    /// Counts the processes that have used this memory; 0 in a child that has not begun anew.
    pub generation: AtomicU64,
    /// 1 and the slot of the buffer, where there is one only that wants dispatches, and nobody wants to be told more of
    /// work than by its kind; 0 otherwise.
    plain_dispatches: AtomicU32,
    /// By [`Kind::index`]: the buffers that want records of the kind.
    kinds: [AtomicU32; KINDS],
    /// By domain and number: an [`Interest`].
    operations: [[AtomicU64; OPERATIONS]; DOMAINS],
}

impl Wanted {
    pub const fn new() -> Wanted {
        Wanted {
            generation: AtomicU64::new(0),
            plain_dispatches: AtomicU32::new(0),
            kinds: [const { AtomicU32::new(0) }; KINDS],
            operations: [const { [const { AtomicU64::new(0) }; OPERATIONS] }; DOMAINS],
        }
    }

    /// Who wants calls of `operation`. Those beyond the table are of no interest to anybody.
    #[inline]
    pub fn operation(&self, operation: Operation) -> Interest {
        Interest(
            self.word(operation)
                .map_or(0, |word| word.load(Ordering::Relaxed)),
        )
    }

    /// The buffers that want records of `kind`.
    #[inline]
    pub fn kind(&self, kind: Kind) -> Buffers {
        Buffers(self.kinds[kind.index()].load(Ordering::Relaxed))
    }

    /// The slot of the buffer that wants dispatches, where nobody wants more of work than by its kind.
    #[inline(always)]
    pub fn plain_dispatches(&self) -> Option<usize> {
        let slot = self.plain_dispatches.load(Ordering::Relaxed);
        slot.checked_sub(1).map(|slot| slot as usize % BUFFERS)
    }

    pub fn set_plain_dispatches(&self, slot: Option<usize>) {
        let word = slot.map_or(0, |slot| slot as u32 + 1);
        self.plain_dispatches.store(word, Ordering::Release);
    }

    /// Who wants calls of each operation of `domain`. Pages of domains that nobody uses stay untouched.
    pub fn set_operations(&self, domain: Domain, interests: &[Interest; OPERATIONS]) {
        let words = self.operations.get(domain.0 as usize);
        for (word, interest) in words.into_iter().flatten().zip(interests) {
            if word.load(Ordering::Relaxed) != interest.0 {
                word.store(interest.0, Ordering::Release);
            }
        }
    }

    pub fn set_kind(&self, kind: Kind, buffers: Buffers) {
        self.kinds[kind.index()].store(buffers.0, Ordering::Release);
    }

    #[inline]
    fn word(&self, operation: Operation) -> Option<&AtomicU64> {
        self.operations
            .get(operation.domain.0 as usize)?
            .get(operation.number as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_the_places_of_the_bits() {
        assert_eq!(Slots(0).next(), None);
        assert_eq!(Slots(0b1010).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(Slots(1 << 31 | 1).collect::<Vec<_>>(), [0, 31]);
    }

    #[test]
    fn buffers_and_subscribers_do_not_meet() {
        let all = (0..BUFFERS).fold(Interest::NONE, |all, slot| all.with(Interest::buffer(slot)));
        assert_eq!(
            (all.buffers(), all.subscribers()),
            (Buffers(u32::MAX), SubscriberSet::NONE)
        );
        let all = (0..SUBSCRIBERS).fold(Interest::NONE, |all, slot| {
            all.with(Interest::subscriber(slot))
        });
        assert_eq!(all.buffers(), Buffers::NONE);
        assert_eq!(all.subscribers().0.count_ones() as usize, SUBSCRIBERS);
        assert!(all.is_recorded() && !all.is_late());
        assert!(!Interest::OBSERVED.with(Interest::LATE).is_recorded());
        assert!(Interest::WORK.is_recorded());
    }
}
