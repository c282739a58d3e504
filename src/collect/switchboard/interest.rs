//! The table of consumers: one word for each operation and each kind of record, read on the hot path.

use gputrail_record::{Domain, KINDS, Kind, Operation};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Buffers that a process has at a time.
pub const BUFFERS: usize = 32;
/// Subscribers that a process has at a time.
pub const SUBSCRIBERS: usize = 23;
/// Domains that a table has room for.
pub(crate) const DOMAINS: usize = 16;
/// Operations of a domain that a table has room for. The CUDA driver API has more than 800. Pages of domains that no
/// source observes are never touched.
pub(crate) const OPERATIONS: usize = 1024;

/// The work of a source for an operation, regardless of consumers.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Observed {
    /// Nothing.
    #[default]
    No,
    /// It tracks state in the call.
    Books,
    /// The call enqueues device work, or makes records of other kinds than its own.
    Work,
}

/// The consumers of an operation, and what follows from their configuration for its calls.
///
/// ```text
/// 0..32    buffers that want the call's record
/// 32..55   subscribers that are called back
/// 55       the exit is simple: one buffer wants the record, its contexts have no external ids of their own, nobody
///          wants the call's stack, and bit 57 is not set
/// 56       the call stands on the open-call stack while it is in progress
/// 57       the exit is noticed: for retirements, or for calls that take long
/// 58       a buffer wants the call's arguments
/// 59       the call may be where a recording begins or ends
/// 60       subscribers are called back inside the call: for work, memory, objects, waits
/// 61       the source tracks its objects by the call
/// 62       the call's device work is wanted: the call gets an id
/// 63       the recording has ended: the call is only counted
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
#[repr(transparent)]
pub struct Interest(u64);

impl Interest {
    /// No consumer.
    pub const NONE: Interest = Interest(0);
    const SIMPLE_EXIT: Interest = Interest(1 << 55);
    pub(crate) const OPEN: Interest = Interest(1 << 56);
    pub(crate) const NOTICED: Interest = Interest(1 << 57);
    pub(crate) const ARGUMENTS: Interest = Interest(1 << 58);
    pub(crate) const GATED: Interest = Interest(1 << 59);
    pub(crate) const INSIDE: Interest = Interest(1 << 60);
    pub(crate) const LATE: Interest = Interest(1 << 63);
    pub(crate) const WORK: Interest = Interest(1 << 62);
    pub(crate) const OBSERVED: Interest = Interest(1 << 61);

    /// The interest of buffers that get the record.
    pub const fn of(buffers: Buffers) -> Interest {
        Interest(buffers.0 as u64)
    }

    pub(crate) const fn buffer(slot: usize) -> Interest {
        Interest(1 << slot)
    }

    pub(crate) const fn subscriber(slot: usize) -> Interest {
        Interest(1 << (BUFFERS + slot))
    }

    pub(crate) const fn with(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }

    /// Adds the bits that follow from the others. The contexts of the buffers in `own_ids` have external ids of their
    /// own. `wants_stack` says whether the stack of the call is wanted.
    pub(super) fn complete(self, own_ids: Buffers, wants_stack: bool) -> Interest {
        let buffers = self.buffers();
        let is_one = buffers.only().is_some() && buffers.and(own_ids).is_none();
        if is_one && !wants_stack && !self.is_noticed() {
            self.with(Interest::SIMPLE_EXIT)
        } else {
            self
        }
    }

    /// Whether there is no consumer.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether the exit of a call writes one record to one buffer and does nothing else, if the call has neither
    /// arguments nor external ids.
    #[inline(always)]
    pub(crate) fn has_simple_exit(self) -> bool {
        self.0 & Interest::SIMPLE_EXIT.0 != 0
    }

    /// The slot of the first buffer; there must be one.
    #[inline(always)]
    pub(crate) fn first_buffer(self) -> usize {
        self.0.trailing_zeros() as usize % BUFFERS
    }

    /// Whether there is no consumer, or the recording has ended.
    #[inline(always)]
    pub(crate) fn is_none_or_late(self) -> bool {
        const { assert!(Interest::LATE.0 as i64 == i64::MIN) };
        self.0 as i64 <= 0
    }

    /// The buffers among the consumers.
    #[inline]
    pub fn buffers(self) -> Buffers {
        Buffers(self.0 as u32)
    }

    /// The subscribers among the consumers.
    #[inline]
    pub fn subscribers(self) -> SubscriberSet {
        SubscriberSet((self.0 >> BUFFERS) as u32 & ((1 << SUBSCRIBERS) - 1))
    }

    /// Whether there are subscribers.
    #[inline]
    pub fn has_subscribers(self) -> bool {
        !self.subscribers().is_none()
    }

    /// Whether subscribers are called back for the call or inside it.
    #[inline]
    pub fn has_callbacks(self) -> bool {
        const ALL: u64 = ((1 << SUBSCRIBERS) - 1) << BUFFERS | Interest::INSIDE.0;
        self.0 & ALL != 0
    }

    /// Whether subscribers of the call are its only consumers.
    #[inline]
    pub(crate) fn has_only_callbacks(self) -> bool {
        const OTHERS: u64 = u32::MAX as u64 | Interest::WORK.0 | Interest::INSIDE.0;
        self.has_callbacks() && self.0 & OTHERS == 0
    }

    /// Whether subscribers are called back inside the call.
    #[inline]
    pub fn has_inner_callbacks(self) -> bool {
        self.0 & Interest::INSIDE.0 != 0
    }

    /// Whether the call gets an id: a consumer wants it or the work that it enqueues.
    #[inline]
    pub fn is_recorded(self) -> bool {
        self.0 & !(Interest::OBSERVED.0 | Interest::LATE.0 | Interest::GATED.0) != 0
    }

    /// Whether the call stands on the open-call stack while it is in progress.
    #[inline(always)]
    pub(crate) fn is_open(self) -> bool {
        self.0 & Interest::OPEN.0 != 0
    }

    /// Whether the call's exit is noticed.
    #[inline(always)]
    pub(crate) fn is_noticed(self) -> bool {
        self.0 & Interest::NOTICED.0 != 0
    }

    /// Whether a consumer wants the call's times.
    #[inline(always)]
    pub fn is_timed(self) -> bool {
        !self.buffers().is_none() || !self.has_only_callbacks() || self.is_noticed()
    }

    /// Whether a buffer wants the call's arguments.
    #[inline(always)]
    pub fn has_arguments(self) -> bool {
        self.0 & Interest::ARGUMENTS.0 != 0
    }

    /// Whether the call has to pass the gate of a recording.
    #[inline]
    pub fn is_gated(self) -> bool {
        self.0 & Interest::GATED.0 != 0
    }

    /// The interest without the gate.
    pub(crate) fn without_gate(self) -> Interest {
        Interest(self.0 & !Interest::GATED.0)
    }

    /// Whether the recording has ended.
    #[inline]
    pub fn is_late(self) -> bool {
        self.0 & Interest::LATE.0 != 0
    }
}

/// A set of buffers of one process.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Buffers(pub u32);

impl Buffers {
    /// No buffer.
    pub const NONE: Buffers = Buffers(0);

    /// Whether the set is empty.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The union of both sets.
    #[inline]
    pub fn or(self, other: Buffers) -> Buffers {
        Buffers(self.0 | other.0)
    }

    /// The intersection of both sets.
    #[inline]
    pub fn and(self, other: Buffers) -> Buffers {
        Buffers(self.0 & other.0)
    }

    /// The slot of the only buffer, if there is exactly one.
    #[inline(always)]
    pub(crate) fn only(self) -> Option<usize> {
        self.0
            .is_power_of_two()
            .then(|| self.0.trailing_zeros() as usize % BUFFERS)
    }

    /// The buffers that are not in `other`.
    #[inline]
    pub fn without(self, other: Buffers) -> Buffers {
        Buffers(self.0 & !other.0)
    }

    /// Their slots, in ascending order.
    #[inline]
    pub(crate) fn slots(self) -> Slots {
        Slots(self.0)
    }
}

/// A set of subscribers, a bit each.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct SubscriberSet(pub u32);

impl SubscriberSet {
    /// No subscriber.
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

/// The table that the hot path reads. All zeros are a valid table without consumers, which is what a forked child
/// finds.
///
/// Its words are stored under the switchboard's lock and read `Relaxed`: a call that reads an old word is recorded, or is not,
/// around a start or a stop. What a buffer needs it finds through its lane.
#[repr(C, align(4096))]
pub(crate) struct WantedTable {
    /// Counts the processes that have used this memory; 0 in a forked child that has not begun its own. Stored with release
    /// after the pointer to the process: whoever loads it with acquire finds that process.
    pub generation: AtomicU64,
    /// By [`Kind::index`]: the buffers that want records of the kind.
    kinds: [AtomicU32; KINDS],
    /// Also with those of stopped contexts, for calls that were entered before the stop.
    selected: [AtomicU32; KINDS],
    /// By domain and number: an [`Interest`].
    operations: [[AtomicU64; OPERATIONS]; DOMAINS],
    /// By domain and number, a bit each: the calls whose stack is wanted.
    stacks: [[AtomicU64; OPERATIONS / 64]; DOMAINS],
}

impl WantedTable {
    pub const fn new() -> WantedTable {
        WantedTable {
            generation: AtomicU64::new(0),
            kinds: [const { AtomicU32::new(0) }; KINDS],
            selected: [const { AtomicU32::new(0) }; KINDS],
            operations: [const { [const { AtomicU64::new(0) }; OPERATIONS] }; DOMAINS],
            stacks: [const { [const { AtomicU64::new(0) }; OPERATIONS / 64] }; DOMAINS],
        }
    }

    /// The consumers of calls of `operation`. Operations beyond the table have none.
    ///
    /// Threads whose cancellation type is asynchronous are unwound from any instruction of it. A function that takes a
    /// closure has a place for the destruction of it in builds without optimisations, from which they cannot be.
    #[inline]
    pub fn operation(&self, operation: Operation) -> Interest {
        match self.word(operation) {
            Some(word) => Interest(word.load(Ordering::Relaxed)),
            None => Interest::NONE,
        }
    }

    /// The buffers that want records of `kind`.
    #[inline]
    pub fn kind(&self, kind: Kind) -> Buffers {
        Buffers(self.kinds[kind.index()].load(Ordering::Relaxed))
    }

    /// Whether the stacks of calls of `operation` are wanted.
    #[inline]
    pub fn stack(&self, operation: Operation) -> bool {
        let words = self.stacks.get(operation.domain.0 as usize);
        let word = words.and_then(|words| words.get(operation.number as usize / 64));
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (operation.number % 64) & 1 != 0)
    }

    /// Sets the consumers of each operation of `domain`; `own_ids` as for [`Interest::complete`], `stacks` are the calls
    /// whose stack is wanted. Pages of unused domains stay untouched.
    pub fn set_operations(
        &self,
        domain: Domain,
        interests: &[Interest; OPERATIONS],
        stacks: &[u64; OPERATIONS / 64],
        own_ids: Buffers,
    ) {
        let bits = self.stacks.get(domain.0 as usize);
        for (word, bits) in bits.into_iter().flatten().zip(stacks) {
            if word.load(Ordering::Relaxed) != *bits {
                word.store(*bits, Ordering::Release);
            }
        }
        let words = self.operations.get(domain.0 as usize);
        let words = words.into_iter().flatten().zip(interests);
        for (number, (word, interest)) in words.enumerate() {
            let wants_stack = stacks[number / 64] >> (number % 64) & 1 != 0;
            let interest = interest.complete(own_ids, wants_stack);
            if word.load(Ordering::Relaxed) != interest.0 {
                word.store(interest.0, Ordering::Release);
            }
        }
    }

    /// The buffers that want records of the kind, or would if their context was not stopped.
    #[inline]
    pub fn selected(&self, kind: Kind) -> Buffers {
        Buffers(self.selected[kind.index()].load(Ordering::Relaxed))
    }

    /// `selected` are the buffers of all contexts, `buffers` those that want records now.
    pub fn set_kind(&self, kind: Kind, buffers: Buffers, selected: Buffers) {
        self.selected[kind.index()].store(selected.0, Ordering::Release);
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
    fn an_exit_is_simple_with_one_buffer_without_ids_of_its_own_or_stacks_that_is_not_notified() {
        let one = Interest::buffer(31).with(Interest::ARGUMENTS);
        let complete = one.complete(Interest::buffer(30).buffers(), false);
        assert!(complete.has_simple_exit() && complete.first_buffer() == 31);
        assert!(!one.complete(one.buffers(), false).has_simple_exit());
        assert!(!one.complete(Buffers::NONE, true).has_simple_exit());
        let others = [
            Interest::NONE,
            Interest::subscriber(0),
            one.with(Interest::buffer(0)),
            one.with(Interest::NOTICED),
        ];
        assert!(
            !others
                .iter()
                .any(|interest| interest.complete(Buffers::NONE, false).has_simple_exit())
        );
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
