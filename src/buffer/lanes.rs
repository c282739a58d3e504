//! The lanes of one thread, one for each buffer it has written to.
//!
//! The thread uses them without a lock. Whoever destroys a buffer takes the buffer's lane away from
//! every thread, idle ones too: it first makes the buffer's incarnation invalid, then has every other
//! processor see that ([`fence_heavy`]), then waits until the thread is not in the middle of a use. From then on
//! the thread finds another incarnation than that of its lane and leaves the lane alone.
//!
//! What changes incarnations, opens lanes and takes them away holds one lock, which [`Opening`] stands for.

use super::Lane;
use crate::sync::{AtomicU32, MutPtr, Ordering, UnsafeCell, fence_heavy, fence_light};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Numbers of the buffers that are alive, by slot: 0 where there is none. Shared by all threads, changed only
/// when a buffer is created or destroyed.
pub(crate) struct Incarnations<const N: usize>([AtomicU32; N]);

/// The incarnation of no buffer, and not what stands where there is none.
pub(crate) const NOBODY: u32 = u32::MAX;

/// Proof that the lock is held under which lanes are opened and taken away.
pub(crate) struct Opening(());

impl Opening {
    /// # Safety
    ///
    /// While the value lives, the caller holds the one lock that belongs to the incarnations it is used with.
    pub unsafe fn locked() -> Opening {
        Opening(())
    }
}

impl<const N: usize> Incarnations<N> {
    pub fn new() -> Self {
        Incarnations(std::array::from_fn(|_| AtomicU32::new(0)))
    }

    #[inline]
    pub fn of(&self, slot: usize) -> u32 {
        self.0[slot].load(Ordering::Relaxed)
    }

    /// A buffer gets `slot`, or, with 0, leaves it.
    pub fn set(&self, slot: usize, incarnation: u32, _: &Opening) {
        debug_assert!(incarnation != NOBODY);
        self.0[slot].store(incarnation, Ordering::Release);
    }
}

/// The lanes of one thread; see the module.
pub(crate) struct Lanes<const N: usize> {
    /// 1 while the thread uses one of its lanes.
    in_use: AtomicU32,
    slots: [Slot; N],
}

/// The lane in one slot.
#[repr(align(128))]
struct Slot {
    /// Incarnation of the buffer whose lane this is, [`NOBODY`] for none.
    opened: AtomicU32,
    lane: UnsafeCell<Option<Lane>>,
}

// SAFETY: a lane is reached by its thread, between `in_use` and while the incarnation is right, or by the
// holder of the lock, after the incarnation is wrong and `in_use` was seen clear; see the module.
unsafe impl<const N: usize> Sync for Lanes<N> {}

/// The thread's own side of its [`Lanes`].
pub(crate) struct OwnLanes<const N: usize>(Arc<Lanes<N>>);

impl<const N: usize> OwnLanes<N> {
    /// No lanes yet.
    pub fn new() -> Self {
        OwnLanes(Arc::new(Lanes {
            in_use: AtomicU32::new(0),
            slots: std::array::from_fn(|_| Slot {
                opened: AtomicU32::new(NOBODY),
                lane: UnsafeCell::new(None),
            }),
        }))
    }

    /// For those who may take lanes away.
    pub fn shared(&self) -> Arc<Lanes<N>> {
        self.0.clone()
    }

    /// Whether there is a lane in `slot` for the buffer that has it now.
    #[inline(always)]
    pub fn is_open(&self, slot: usize, incarnations: &Incarnations<N>) -> bool {
        self.0.slots[slot].opened.load(Ordering::Relaxed) == incarnations.of(slot)
    }

    /// The lane in `slot`, which nobody takes away while it is used; `None`: it has to be opened first.
    #[inline(always)]
    pub fn using(&mut self, slot: usize, incarnations: &Incarnations<N>) -> Option<Using<'_>> {
        let lanes = &*self.0;
        lanes.in_use.store(1, Ordering::Relaxed);
        fence_light();
        let place = &lanes.slots[slot];
        if place.opened.load(Ordering::Relaxed) == incarnations.of(slot) {
            return Some(Using {
                in_use: &lanes.in_use,
                lane: Some(place.lane.get_mut()),
            });
        }
        lanes.in_use.store(0, Ordering::Release);
        None
    }

    /// The same if it has room for `bytes` as it is.
    #[inline(always)]
    pub fn with_room(
        &mut self,
        slot: usize,
        incarnations: &Incarnations<N>,
        bytes: usize,
    ) -> Option<Using<'_>> {
        self.using(slot, incarnations)
            .filter(|lane| lane.fits_now(bytes))
    }

    /// Puts `lane` into `slot`, for the buffer that has `incarnation`.
    pub fn open(&mut self, slot: usize, incarnation: u32, lane: Lane, _: &Opening) {
        let place = &self.0.slots[slot];
        // SAFETY: the lock is held, so nobody takes lanes away; this is the thread itself, and not in a use.
        let earlier = place
            .lane
            .with_mut(|place| unsafe { (*place).replace(lane) });
        place.opened.store(incarnation, Ordering::Relaxed);
        drop(earlier);
    }
}

/// A lane that its thread uses.
pub(crate) struct Using<'a> {
    in_use: &'a AtomicU32,
    /// There until the use ends, and before others may see that it has.
    lane: Option<MutPtr<Option<Lane>>>,
}

impl Using<'_> {
    /// # Safety
    ///
    /// The lane is the thread's, and there is no other reference to it.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // what is behind the pointer is not what is borrowed
    unsafe fn place(&self) -> &mut Option<Lane> {
        // SAFETY: the caller's promise; it is there until the use ends.
        unsafe { self.lane.as_ref().unwrap_unchecked().deref() }
    }
}

impl Deref for Using<'_> {
    type Target = Lane;

    fn deref(&self) -> &Lane {
        // SAFETY: as in `deref_mut`.
        unsafe { self.place().as_ref().unwrap_unchecked() }
    }
}

impl DerefMut for Using<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Lane {
        // SAFETY: the incarnation was right and was read after `in_use` was set, so that nobody takes the lane away
        // before it is clear again; the borrow of the thread's lanes keeps it from a second use. `opened` is that of a
        // buffer only while there is a lane.
        unsafe { self.place().as_mut().unwrap_unchecked() }
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
    /// Takes the lane in `slot` away, after its incarnation was made invalid and [`every_thread_knows`] has
    /// returned. `None` if there is none; an error if the thread does not leave it after `patience` looks.
    pub fn take(
        &self,
        slot: usize,
        patience: u32,
        _: &Opening,
    ) -> Result<Option<Lane>, StillInUse> {
        let mut looks = 0;
        while self.in_use.load(Ordering::Acquire) != 0 {
            looks += 1;
            if looks > patience {
                return Err(StillInUse);
            }
            crate::sync::pause();
        }
        let place = &self.slots[slot];
        place.opened.store(NOBODY, Ordering::Relaxed);
        // SAFETY: the thread was not in a use after it could see the new incarnation, so it will not
        // reach for this lane again; the lock keeps others away.
        Ok(place.lane.with_mut(|lane| unsafe { (*lane).take() }))
    }
}

/// A thread is in the middle of a write that does not end: it was jumped out of by a signal handler, or has
/// lost its processor for long.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct StillInUse;

/// Has every thread see what was stored before: pairs with the light fence of [`OwnLanes::using`].
pub(crate) fn every_thread_knows() {
    fence_heavy();
}
