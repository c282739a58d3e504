//! Work that was enqueued and has not completed: a bounded slab of slots, one for each piece.
//!
//! A slot is the reservation that makes the lossless policy complete: it is taken when work is enqueued, holds the key
//! by which the source finds the work's times, and has room for those times. A completion callback may run anywhere and
//! must not wait: when its lane is full, it parks the times in the slot.
//!
//! The key is a word of the source's choosing: the handle of an event of which the slot holds a reference, or a
//! vendor's correlation id, by which activity records that arrive late find their slot.
//!
//! Whoever brings a slot's state from `PENDING` to `CLAIMED` by compare-and-swap owns it. The state carries the slot's
//! generation, and so does the [`Ticket`] that the source hands to its callback: a callback that comes late finds
//! another generation and does nothing.
//!
//! While the enqueuing thread sets the callback the slot is still its own (`SETTING`). Some runtimes have completed the
//! work by then and call back at once, on that thread: such a callback needs no locked instruction.

use super::notify::Followers;
use super::switchboard::Buffers;
use gputrail_record::{
    AgentId, Completion, CorrelationId, DeviceTime, Header, Ticks, Unfinished, WorkId, flags,
};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::{io, ptr};

/// Bytes of address space of the slab; pages are touched as slots are first used.
const BYTES: usize = 8 << 20;
/// Slots of the slab.
pub(crate) const CAPACITY: usize = BYTES / size_of::<Slot>();

const FREE: u64 = 0;
/// The work is not known to have completed.
const PENDING: u64 = 1;
/// Claimed by a thread that will free it.
const CLAIMED: u64 = 2;
/// A sweep asks whether it has completed.
const SWEPT: u64 = 3;
/// The callback came during that sweep, which now owns the slot.
const FIRED: u64 = 4;
/// Complete; the times wait to be written.
const PARKED: u64 = 5;
/// The thread that enqueued the work sets its callback.
const SETTING: u64 = 6;
const STATE_BITS: u32 = 3;
const STATE_MASK: u64 = (1 << STATE_BITS) - 1;
/// Bits of the user data that are the slot's index; the rest is the generation.
const INDEX_BITS: u32 = 20;

const _: () = assert!(CAPACITY < 1 << INDEX_BITS);

/// One piece of outstanding work. Two cache lines, the second for parked times.
///
/// All fields but `state` belong to whoever took or claimed the slot.
#[repr(C, align(128))]
struct Slot {
    /// `generation << 3 | state`.
    state: AtomicU64,
    key: AtomicU64,
    work: AtomicU64,
    correlation: AtomicU64,
    before: AtomicU64,
    after: AtomicU64,
    agent: AtomicU32,
    /// The buffers that get the completion.
    buffers: AtomicU32,
    /// Index of the next free slot and 1, or 0.
    next: AtomicU32,
    status: AtomicI32,
    unfinished: AtomicU32,
    queued: AtomicU64,
    submitted: AtomicU64,
    start: AtomicU64,
    end: AtomicU64,
    completed: AtomicU64,
    /// A `Box<Followers>`, or 0.
    followers: AtomicU64,
}

/// A piece of work that has not completed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct OutstandingWork {
    /// The word by which the source finds the work.
    pub key: u64,
    /// Its id.
    pub work: WorkId,
    /// The call that enqueued it.
    pub correlation: CorrelationId,
    /// The agent that does it.
    pub agent: AgentId,
    /// The runtime took the work between these.
    pub window: (Ticks, Ticks),
    /// The buffers that get the completion: those that got the record of the work.
    pub buffers: Buffers,
}

/// Index and generation of a slot, as a source hands them to its callback.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

impl Ticket {
    fn index(self) -> usize {
        (self.0 & ((1 << INDEX_BITS) - 1)) as usize
    }

    fn state(self, state: u64) -> u64 {
        (self.0 >> INDEX_BITS) << STATE_BITS | state
    }
}

/// The slab of one source, with state of type `S` that it keeps for each thread.
pub struct Outstanding<S: 'static> {
    slots: AtomicPtr<Slot>,
    /// Slots used so far; those below are in use or in the free list.
    fresh: AtomicUsize,
    /// The free list: `changes << 32 | index + 1`. The count keeps a slot that left and came back
    /// from looking like one that never moved.
    free: AtomicU64,
    /// By the number of the thread. Where callbacks run on the thread that enqueues, slots go back and forth without a
    /// locked instruction.
    threads: [OfThread<S>; THREADS],
    parked: AtomicUsize,
}

/// Threads with state of their own; others share it.
pub const THREADS: usize = 1024;

/// State that a thread keeps for itself, by plain loads and stores.
#[repr(align(64))]
pub struct OfThread<S> {
    /// A free slot: index and 1, or 0.
    slot: AtomicU32,
    /// The ticket of the callback that the thread sets right now, or 0.
    setting: AtomicU64,
    /// The source's own state.
    pub source: S,
}

/// Looks at threads that write completions before a flush goes on without them.
const PATIENCE: u32 = 100_000;

/// A slot that was taken, whose callback is being set.
pub struct TakenSlot<'a> {
    slot: &'a Slot,
    /// The slot's ticket, for the callback.
    pub ticket: Ticket,
}

/// A slot that was claimed: it must be freed, parked or put back.
pub struct ClaimedSlot<'a> {
    slot: &'a Slot,
    ticket: Ticket,
}

impl<S> OfThread<S> {
    /// The state of a thread without work.
    pub const fn new(source: S) -> OfThread<S> {
        OfThread {
            slot: AtomicU32::new(0),
            setting: AtomicU64::new(0),
            source,
        }
    }

    /// Takes the free slot.
    #[inline(always)]
    fn take(&self) -> Option<usize> {
        let index = self.slot.load(Ordering::Relaxed).checked_sub(1)?;
        self.slot.store(0, Ordering::Relaxed);
        Some(index as usize)
    }
}

impl<S> Outstanding<S> {
    /// A slab without memory, of a source whose state of each thread begins like this.
    pub const fn new(threads: [OfThread<S>; THREADS]) -> Outstanding<S> {
        Outstanding {
            slots: AtomicPtr::new(ptr::null_mut()),
            fresh: AtomicUsize::new(0),
            free: AtomicU64::new(0),
            threads,
            parked: AtomicUsize::new(0),
        }
    }

    /// Maps the slab's memory, and forgets the slots of a parent process.
    pub fn open(&self) -> io::Result<()> {
        let memory = memmap2::MmapOptions::new()
            .len(BYTES)
            .no_reserve_swap()
            .map_anon()?;
        // It stays mapped until the process ends: callbacks of the runtime may come at any time.
        let slots = std::mem::ManuallyDrop::new(memory).as_mut_ptr();
        self.fresh.store(0, Ordering::Relaxed);
        self.free.store(0, Ordering::Relaxed);
        self.parked.store(0, Ordering::Relaxed);
        for thread in &self.threads {
            thread.slot.store(0, Ordering::Relaxed);
        }
        self.slots.store(slots.cast(), Ordering::Release);
        Ok(())
    }

    fn slots(&self) -> &[Slot] {
        let slots = self.slots.load(Ordering::Acquire);
        if slots.is_null() {
            return &[];
        }
        // SAFETY: the mapping is never unmapped, holds `CAPACITY` slots, and zeros are valid ones.
        unsafe { std::slice::from_raw_parts(slots, CAPACITY) }
    }

    /// The state of the thread with this number. The number is one thread's at a time, and the next one to get it sees
    /// what the one before it did.
    #[inline(always)]
    pub fn of_thread(&self, number: u32) -> &OfThread<S> {
        &self.threads[number as usize % THREADS]
    }

    /// Takes a slot for `work`; `None` if the slab is full. `own` is the calling thread's, which sets the callback now,
    /// and [opens](Outstanding::publish) the slot to others then.
    #[inline(always)]
    pub fn take(&self, work: OutstandingWork, own: &OfThread<S>) -> Option<TakenSlot<'_>> {
        let slots = self.slots();
        let index = own.take().or_else(|| self.pop(slots))?;
        let slot = slots.get(index)?;
        let generation = (slot.state.load(Ordering::Relaxed) >> STATE_BITS) + 1;
        slot.key.store(work.key, Ordering::Relaxed);
        slot.work.store(work.work.0, Ordering::Relaxed);
        slot.correlation
            .store(work.correlation.0, Ordering::Relaxed);
        slot.agent.store(work.agent.0, Ordering::Relaxed);
        slot.buffers.store(work.buffers.0, Ordering::Relaxed);
        slot.followers.store(0, Ordering::Relaxed);
        slot.before.store(work.window.0.0, Ordering::Relaxed);
        slot.after.store(work.window.1.0, Ordering::Relaxed);
        let ticket = Ticket(generation << INDEX_BITS | index as u64);
        // Release: pairs with the acquire of a callback on another thread.
        slot.state.store(ticket.state(SETTING), Ordering::Release);
        // The callback that is set now: on this thread it has the slot.
        own.setting.store(ticket.0, Ordering::Relaxed);
        Some(TakenSlot { slot, ticket })
    }

    /// Lets subscribers follow the work of `ticket`, which the calling thread has just taken.
    #[cold]
    pub fn follow(&self, ticket: Ticket, followers: Box<Followers>) {
        if let Some(slot) = self.slots().get(ticket.index()) {
            let followers = Box::into_raw(followers) as u64;
            // The next store publishes it: no other thread reads the slot before.
            slot.followers.store(followers, Ordering::Release);
        }
    }

    /// The callback is set: from now on any thread may claim the slot. If the callback has come meanwhile on another
    /// thread, the caller gets the claim, and completes the work.
    #[inline(always)]
    pub fn publish<'a>(&self, taken: TakenSlot<'a>, own: &OfThread<S>) -> Option<ClaimedSlot<'a>> {
        own.setting.store(0, Ordering::Relaxed);
        let state = taken.slot.state.load(Ordering::Relaxed);
        let is_open = |other| state == taken.ticket.state(other);
        // Otherwise the callback has come on this thread, which has completed the work.
        if is_open(SETTING) || is_open(FIRED) {
            taken.publish()
        } else {
            None
        }
    }

    /// The slot of a callback on the thread whose `own` this is, if it is called while that thread sets it.
    #[inline(always)]
    pub fn claim_in_enqueue(&self, ticket: Ticket, own: &OfThread<S>) -> Option<ClaimedSlot<'_>> {
        if own.setting.load(Ordering::Relaxed) != ticket.0 {
            return None;
        }
        let slot = self.slots().get(ticket.index())?;
        own.setting.store(0, Ordering::Relaxed);
        // Nobody but this thread does anything to it, nor will: the callback comes once.
        slot.state.store(ticket.state(CLAIMED), Ordering::Relaxed);
        Some(ClaimedSlot::of(slot, ticket))
    }

    /// The slot of a callback, unless another thread has claimed it.
    #[inline]
    pub fn claim(&self, ticket: Ticket) -> Option<ClaimedSlot<'_>> {
        let slot = self.slots().get(ticket.index())?;
        loop {
            if transition(slot, ticket, PENDING, CLAIMED) {
                return Some(ClaimedSlot::of(slot, ticket));
            }
            // A sweep asks about the work: it will find it complete, or find this state. So will the thread that still
            // sets the callback.
            if transition(slot, ticket, SWEPT, FIRED) || transition(slot, ticket, SETTING, FIRED) {
                return None;
            }
            // Unless the sweep puts the slot back just now, another thread has claimed it.
            let state = slot.state.load(Ordering::Relaxed);
            if ![PENDING, SWEPT, SETTING]
                .iter()
                .any(|other| state == ticket.state(*other))
            {
                return None;
            }
        }
    }

    /// Claims every piece of work that has not been claimed, as far as it was enqueued before the
    /// call, and asks whether it has completed. Those for which `completed` says no are put back.
    pub fn sweep(
        &self,
        mut completed: impl FnMut(&ClaimedSlot<'_>) -> bool,
        mut done: impl FnMut(ClaimedSlot<'_>),
    ) {
        for (index, slot) in self.in_use() {
            let state = slot.state.load(Ordering::Relaxed);
            let ticket = Ticket((state >> STATE_BITS) << INDEX_BITS | index as u64);
            if state != ticket.state(PENDING) || !transition(slot, ticket, PENDING, SWEPT) {
                continue;
            }
            let claim = ClaimedSlot::of(slot, ticket);
            if completed(&claim) || !transition(slot, ticket, SWEPT, PENDING) {
                slot.state.store(ticket.state(CLAIMED), Ordering::Relaxed);
                done(claim);
            }
        }
    }

    /// Waits for threads that are writing completions; not for ever, since they may have been interrupted.
    pub fn settle(&self) {
        let mut patience = PATIENCE;
        for (_, slot) in self.in_use() {
            let state = slot.state.load(Ordering::Acquire);
            while state & STATE_MASK == CLAIMED && slot.state.load(Ordering::Acquire) == state {
                let Some(less) = patience.checked_sub(1) else {
                    return;
                };
                patience = less;
                std::thread::yield_now();
            }
        }
    }

    /// Claims everything that is parked. What `write` cannot write it counts as lost: nothing is parked twice.
    pub fn unpark(&self, mut write: impl FnMut(Buffers, Completion)) {
        if self.parked.load(Ordering::Relaxed) == 0 {
            return;
        }
        for (index, slot) in self.in_use() {
            let state = slot.state.load(Ordering::Relaxed);
            let ticket = Ticket((state >> STATE_BITS) << INDEX_BITS | index as u64);
            if state != ticket.state(PARKED) || !transition(slot, ticket, PARKED, CLAIMED) {
                continue;
            }
            if slot.followers.load(Ordering::Relaxed) != 0 {
                // Its followers are called first: see `take_postponed`.
                slot.state.store(ticket.state(PARKED), Ordering::Release);
                continue;
            }
            let buffers = Buffers(slot.buffers.load(Ordering::Relaxed));
            write(buffers, slot.completion());
            self.parked.fetch_sub(1, Ordering::Relaxed);
            self.free(ClaimedSlot::of(slot, ticket), None);
        }
    }

    /// Claims what is parked and has followers, one after the other.
    pub fn take_postponed(&self, mut notify: impl FnMut(ClaimedSlot<'_>, Completion)) {
        for (index, slot) in self.in_use() {
            let state = slot.state.load(Ordering::Relaxed);
            let ticket = Ticket((state >> STATE_BITS) << INDEX_BITS | index as u64);
            if state != ticket.state(PARKED)
                || slot.followers.load(Ordering::Relaxed) == 0
                || !transition(slot, ticket, PARKED, CLAIMED)
            {
                continue;
            }
            self.parked.fetch_sub(1, Ordering::Relaxed);
            notify(ClaimedSlot::of(slot, ticket), slot.completion());
        }
    }

    /// Whether every slot is in use, except perhaps those that threads keep.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.fresh.load(Ordering::Relaxed) >= CAPACITY
            && self.free.load(Ordering::Relaxed) as u32 == 0
    }

    /// Whether times wait to be written.
    #[inline]
    pub fn any_parked(&self) -> bool {
        self.parked.load(Ordering::Relaxed) > 0
    }

    /// Gives the slot back; to `own`, if it is the calling thread's and keeps none.
    #[inline(always)]
    pub fn free(&self, claim: ClaimedSlot<'_>, own: Option<&OfThread<S>>) {
        let free = claim.ticket.state(FREE);
        // Release: pairs with the acquire in `settle`: what was written for the work is there.
        claim.slot.state.store(free, Ordering::Release);
        match own.filter(|own| own.slot.load(Ordering::Relaxed) == 0) {
            Some(own) => {
                let place = claim.ticket.index() as u32 + 1;
                own.slot.store(place, Ordering::Relaxed);
            }
            None => self.push(claim),
        }
    }

    #[inline(never)]
    fn push(&self, claim: ClaimedSlot<'_>) {
        let index = claim.ticket.index() as u64;
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            claim.slot.next.store(head as u32, Ordering::Relaxed);
            let new = ((head >> 32) + 1) << 32 | (index + 1);
            // Release: pairs with the acquire in `pop`, for `next`.
            match self
                .free
                .compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(found) => head = found,
            }
        }
    }

    /// Keeps `completion` in the slot until somebody can write it to `buffers`.
    pub fn park(&self, claim: ClaimedSlot<'_>, buffers: Buffers, completion: &Completion) {
        let slot = claim.slot;
        slot.buffers.store(buffers.0, Ordering::Relaxed);
        slot.queued.store(completion.queued.0, Ordering::Relaxed);
        slot.submitted
            .store(completion.submitted.0, Ordering::Relaxed);
        slot.start.store(completion.start.0, Ordering::Relaxed);
        slot.end.store(completion.end.0, Ordering::Relaxed);
        slot.completed
            .store(completion.completed.0, Ordering::Relaxed);
        slot.status.store(completion.status, Ordering::Relaxed);
        slot.unfinished
            .store(u32::from(completion.unfinished.0), Ordering::Relaxed);
        self.parked.fetch_add(1, Ordering::Relaxed);
        slot.state
            .store(claim.ticket.state(PARKED), Ordering::Release);
    }

    /// The number of pieces of work that have not completed, or whose times are parked.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.in_use().filter(|(_, slot)| held(slot)).count()
    }

    /// The number of slots in use with this key.
    pub fn with_key(&self, key: u64) -> u32 {
        let holds = |slot: &Slot| {
            let state = slot.state.load(Ordering::Acquire) & STATE_MASK;
            !matches!(state, FREE | PARKED) && slot.key.load(Ordering::Relaxed) == key
        };
        self.in_use().filter(|(_, slot)| holds(slot)).count() as u32
    }

    fn in_use(&self) -> impl Iterator<Item = (usize, &Slot)> {
        let used = self.fresh.load(Ordering::Relaxed).min(CAPACITY);
        self.slots().iter().take(used).enumerate()
    }

    #[inline]
    fn pop(&self, slots: &[Slot]) -> Option<usize> {
        let mut head = self.free.load(Ordering::Acquire);
        while head as u32 != 0 {
            let index = (head as u32 - 1) as usize;
            let next = slots[index].next.load(Ordering::Relaxed);
            let new = ((head >> 32) + 1) << 32 | u64::from(next);
            match self
                .free
                .compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Some(index),
                Err(found) => head = found,
            }
        }
        let index = self.fresh.fetch_add(1, Ordering::Relaxed);
        if index < slots.len() {
            return Some(index);
        }
        self.fresh.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

/// The header of a completion with these fields.
#[inline(always)]
pub fn completion_header(status: i32, unfinished: Unfinished) -> Header {
    let of_unfinished = match unfinished {
        Unfinished::AT_END | Unfinished::AT_FLUSH => flags::UNFINISHED,
        Unfinished::NO_TIMES => flags::TIME_UNKNOWN,
        _ => 0,
    };
    let of_status = if status < 0 { flags::FAILED } else { 0 };
    const { Header::of::<Completion>() }.with(of_unfinished | of_status)
}

#[cfg(test)]
fn held(slot: &Slot) -> bool {
    slot.state.load(Ordering::Relaxed) & STATE_MASK != FREE
}

#[inline]
fn transition(slot: &Slot, ticket: Ticket, from: u64, to: u64) -> bool {
    let (from, to) = (ticket.state(from), ticket.state(to));
    slot.state
        .compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
        .is_ok()
}

impl Slot {
    fn completion(&self) -> Completion {
        let time = |time: &AtomicU64| DeviceTime(time.load(Ordering::Relaxed));
        let mut completion = Completion::blank();
        completion.work = WorkId(self.work.load(Ordering::Relaxed));
        completion.correlation = CorrelationId(self.correlation.load(Ordering::Relaxed));
        completion.agent = AgentId(self.agent.load(Ordering::Relaxed));
        (completion.queued, completion.submitted) = (time(&self.queued), time(&self.submitted));
        (completion.start, completion.end) = (time(&self.start), time(&self.end));
        completion.completed = Ticks(self.completed.load(Ordering::Relaxed));
        completion.status = self.status.load(Ordering::Relaxed);
        completion.unfinished = Unfinished(self.unfinished.load(Ordering::Relaxed) as u8);
        completion.header = completion_header(completion.status, completion.unfinished);
        completion
    }
}

impl<'a> TakenSlot<'a> {
    #[inline(never)]
    fn publish(self) -> Option<ClaimedSlot<'a>> {
        let TakenSlot { slot, ticket } = self;
        let (setting, pending) = (ticket.state(SETTING), ticket.state(PENDING));
        // Release: pairs with the acquire of whoever claims it.
        let opened =
            slot.state
                .compare_exchange(setting, pending, Ordering::Release, Ordering::Relaxed);
        (opened.is_err() && transition(slot, ticket, FIRED, CLAIMED))
            .then(|| ClaimedSlot::of(slot, ticket))
    }
}

impl<'a> ClaimedSlot<'a> {
    /// Only `buffers` get the completion.
    #[cold]
    pub fn keep_for(&self, buffers: Buffers) {
        self.slot.buffers.store(buffers.0, Ordering::Relaxed);
    }

    /// Takes the subscribers that follow the work.
    #[inline]
    pub fn take_followers(&self) -> Option<Box<Followers>> {
        if self.slot.followers.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let followers = self.slot.followers.swap(0, Ordering::Acquire) as *mut Followers;
        // SAFETY: made by `follow` or `keep_followers` from a box; the swap gives it to this thread, which has
        // claimed the slot.
        Some(unsafe { Box::from_raw(followers) })
    }

    /// Whether subscribers follow the work.
    #[inline]
    pub fn has_followers(&self) -> bool {
        self.slot.followers.load(Ordering::Relaxed) != 0
    }

    /// Puts the followers back: they cannot be called now.
    pub fn keep_followers(&self, followers: Box<Followers>) {
        let followers = Box::into_raw(followers) as u64;
        self.slot.followers.store(followers, Ordering::Release);
    }

    /// The work.
    #[inline(always)]
    pub fn work(&self) -> OutstandingWork {
        let slot = self.slot;
        OutstandingWork {
            key: slot.key.load(Ordering::Relaxed),
            work: WorkId(slot.work.load(Ordering::Relaxed)),
            correlation: CorrelationId(slot.correlation.load(Ordering::Relaxed)),
            agent: AgentId(slot.agent.load(Ordering::Relaxed)),
            window: (
                Ticks(slot.before.load(Ordering::Relaxed)),
                Ticks(slot.after.load(Ordering::Relaxed)),
            ),
            buffers: Buffers(slot.buffers.load(Ordering::Relaxed)),
        }
    }

    #[inline(always)]
    fn of(slot: &'a Slot, ticket: Ticket) -> ClaimedSlot<'a> {
        ClaimedSlot { slot, ticket }
    }
}

#[cfg(test)]
mod tests;
