//! The lanes of one thread, one for each buffer it has written to.
//!
//! The thread uses them without a lock. Whoever destroys a buffer takes the buffer's lane away from every thread, idle
//! ones too: it first [closes](Lanes::close) them, then issues a fence on every other processor
//! ([`fence_heavy`](crate::platform::sync::fence_heavy)), then waits until no thread is in the middle of a use. From
//! then on the thread finds that the lane is closed, and leaves it alone.
//!
//! A thread that waits for a block may take those that others hold partly filled in the same way: the lanes are
//! [paused](Lanes::pause), and [go on](Lanes::resume) without their blocks.
//!
//! Lanes are opened, closed, paused and taken away under one lock, which [`Opening`] stands for.

use super::Lane;
use crate::platform::sync::{
    AtomicU32, MutPtr, Ordering, UnsafeCell, fence_light, fence_light_is_free,
};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::compiler_fence;

/// Proof that the lock for opening and removing lanes is held.
pub struct Opening(());

impl Opening {
    /// # Safety
    ///
    /// While the value lives, the caller holds the one lock that belongs to the lanes it is used with.
    pub unsafe fn locked() -> Opening {
        Opening(())
    }
}

/// The lanes of one thread; see the module. Clones are views of the same lanes.
#[derive(Clone)]
pub struct Lanes<const N: usize>(Arc<[LaneCell; N]>);

/// There is no lane.
const CLOSED: u32 = 0;
/// There is a lane, and each use begins with a fence.
const FENCED: u32 = 1;
/// There is a lane, and uses need no fence, because the system supports fences on other processors.
const OPEN: u32 = 2;

/// There is, and somebody is at it for a moment: its thread waits.
const PAUSED: u32 = 3;

/// The lane in one slot.
///
/// Each slot has its own flag, besides the flag of the thread's borrowed state: a thread also borrows its state to open
/// a lane, which waits for the lock that the destroyer of a buffer holds while it waits for this flag.
#[repr(align(128))]
struct LaneCell {
    /// 1 while the thread uses the lane.
    in_use: AtomicU32,
    /// Whether there is a lane that the thread may use: [`CLOSED`], [`FENCED`], [`OPEN`] or [`PAUSED`].
    state: AtomicU32,
    lane: UnsafeCell<Option<Lane>>,
}

// SAFETY: a lane is reached by its thread, between `in_use` and while it is open, or by the holder of the lock, after
// it was closed and `in_use` was seen clear; see the module.
unsafe impl Sync for LaneCell {}

/// The thread's own side of its [`Lanes`].
pub struct OwnLanes<const N: usize>(Lanes<N>);

impl<const N: usize> OwnLanes<N> {
    /// An empty set of lanes.
    pub fn new() -> Self {
        // Made where they stay: the thread's stack may be small.
        let slots: Arc<[LaneCell]> = (0..N).map(|_| LaneCell::closed()).collect();
        let slots = slots.try_into().ok();
        OwnLanes(Lanes(slots.expect("as many slots as were collected")))
    }

    /// The view for threads that remove lanes.
    pub fn shared(&self) -> Lanes<N> {
        self.0.clone()
    }

    /// Whether there is a lane in `slot`.
    #[inline(always)]
    pub fn is_open(&self, slot: usize) -> bool {
        self.0.0[slot].state.load(Ordering::Relaxed) != CLOSED
    }

    /// The lane in `slot`, which is not removed while it is used; `None` if it has to be opened first.
    #[inline(always)]
    pub fn using(&mut self, slot: usize) -> Option<Using<'_>> {
        self.0.0[slot].using()
    }

    /// Puts `lane` into `slot`.
    pub fn open(&mut self, slot: usize, lane: Lane, _: &Opening) {
        let place = &self.0.0[slot];
        // SAFETY: the lock is held, so nobody takes lanes away; this is the thread itself, and not in a use.
        let earlier = place
            .lane
            .with_mut(|place| unsafe { (*place).replace(lane) });
        let state = if fence_light_is_free() { OPEN } else { FENCED };
        place.state.store(state, Ordering::Relaxed);
        drop(earlier);
    }
}

impl LaneCell {
    fn closed() -> LaneCell {
        LaneCell {
            in_use: AtomicU32::new(0),
            state: AtomicU32::new(CLOSED),
            lane: UnsafeCell::new(None),
        }
    }

    /// The lane, if it is open. For the thread itself, which must not be using any of its lanes.
    #[inline(always)]
    fn using(&self) -> Option<Using<'_>> {
        self.in_use.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // Acquire: what was done to the lane while it was paused is over.
        if self.state.load(Ordering::Acquire) == OPEN || self.is_open_after_fence() {
            return Some(Using {
                in_use: &self.in_use,
                lane: Some(self.lane.get_mut()),
            });
        }
        self.in_use.store(0, Ordering::Release);
        None
    }

    #[cold]
    #[inline(never)]
    fn is_open_after_fence(&self) -> bool {
        loop {
            fence_light();
            match self.state.load(Ordering::Acquire) {
                CLOSED => return false,
                PAUSED => {
                    self.in_use.store(0, Ordering::Release);
                    crate::platform::sync::pause();
                    self.in_use.store(1, Ordering::Relaxed);
                    compiler_fence(Ordering::SeqCst);
                }
                _ => return true,
            }
        }
    }
}

/// A lane that its thread uses.
pub struct Using<'a> {
    in_use: &'a AtomicU32,
    /// `Some` until the use ends; cleared before other threads may see the end.
    lane: Option<MutPtr<Option<Lane>>>,
}

impl Using<'_> {
    #[inline(always)]
    fn place(&self) -> *mut Option<Lane> {
        // SAFETY: `lane` is `Some` until `drop` clears it.
        unsafe { self.lane.as_ref().unwrap_unchecked() }.with(|lane| lane)
    }
}

impl Deref for Using<'_> {
    type Target = Lane;

    fn deref(&self) -> &Lane {
        // SAFETY: as in `deref_mut`, for readers.
        unsafe { (*self.place()).as_ref().unwrap_unchecked() }
    }
}

impl DerefMut for Using<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Lane {
        // SAFETY: the lane was seen open after `in_use` was set, so that nobody takes it away before that is clear again;
        // the borrow of the thread's lanes keeps it from a second use. An open one is there, in a slot that lives for as long
        // as `in_use` is borrowed.
        unsafe { (*self.place()).as_mut().unwrap_unchecked() }
    }
}

impl Drop for Using<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lane = None;
        self.in_use.store(0, Ordering::Release);
    }
}

impl<const N: usize> Lanes<N> {
    /// Closes the lane in `slot`: the thread no longer uses it after the next heavy fence.
    pub fn close(&self, slot: usize, _: &Opening) {
        self.0[slot].state.store(CLOSED, Ordering::Relaxed);
    }

    /// Has the thread wait before its next use of the lane in `slot`, from the next heavy fence on. The result is for
    /// [`Lanes::resume`]; `None`: there is no lane, or the thread is using it.
    pub fn pause(&self, slot: usize, _: &Opening) -> Option<Paused> {
        let place = &self.0[slot];
        let state = place.state.load(Ordering::Relaxed);
        if state == CLOSED || place.in_use.load(Ordering::Relaxed) != 0 {
            return None;
        }
        place.state.store(PAUSED, Ordering::Relaxed);
        Some(Paused { slot, state })
    }

    /// Lets the thread into a lane again. With `give_block`, which a heavy fence has to precede, the lane's block is given
    /// to the collector first, unless the thread is using the lane.
    pub fn resume(&self, paused: Paused, give_block: bool, _: &Opening) {
        let place = &self.0[paused.slot];
        if give_block && place.in_use.load(Ordering::Acquire) == 0 {
            // SAFETY: as in `take`.
            place
                .lane
                .with_mut(|lane| unsafe { (*lane).as_mut().map(Lane::give_block) });
        }
        // Release: pairs with the acquire in `using`.
        place.state.store(paused.state, Ordering::Release);
    }

    /// Takes the lane in `slot` away, after it was [closed](Lanes::close) and a heavy fence has succeeded. `None` if there
    /// is none; an error if the thread is still using it after `patience` looks.
    pub fn take(
        &self,
        slot: usize,
        patience: u32,
        _: &Opening,
    ) -> Result<Option<Lane>, StillInUse> {
        let place = &self.0[slot];
        let mut looks = 0;
        while place.in_use.load(Ordering::Acquire) != 0 {
            looks += 1;
            if looks > patience {
                return Err(StillInUse);
            }
            crate::platform::sync::pause();
        }
        // SAFETY: the thread was not in a use after it could see that the lane is closed, so it will not
        // reach for this lane again; the lock keeps others away.
        Ok(place.lane.with_mut(|lane| unsafe { (*lane).take() }))
    }
}

/// A lane that its thread is kept out of for a moment.
#[must_use = "the thread waits for it"]
pub struct Paused {
    slot: usize,
    state: u32,
}

/// A thread is in the middle of a write that does not end: it was jumped out of by a signal handler, or has
/// lost its processor for long.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StillInUse;
