//! The lanes of one thread, one for each buffer it has written to.
//!
//! The thread uses them without a lock. Whoever destroys a buffer takes the buffer's lane away from
//! every thread, idle ones too: it first makes the buffer's incarnation invalid, then has every other
//! processor see that ([`fence_heavy`]), then waits until the thread is not in the middle of a use. From then on
//! the thread finds another incarnation than that of its lane and leaves the lane alone.
//!
//! What changes incarnations, opens lanes and takes them away holds one lock, which [`Opening`] stands for.

use super::Lane;
use crate::sync::{AtomicU32, Ordering, UnsafeCell, fence_heavy, fence_light};
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
    /// Incarnations of the buffers whose lanes these are, [`NOBODY`] for none.
    opened: [AtomicU32; N],
    lanes: [UnsafeCell<Option<Lane>>; N],
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
            opened: std::array::from_fn(|_| AtomicU32::new(NOBODY)),
            lanes: std::array::from_fn(|_| UnsafeCell::new(None)),
        }))
    }

    /// For those who may take lanes away.
    pub fn shared(&self) -> Arc<Lanes<N>> {
        self.0.clone()
    }

    /// Does `work` with the lane in `slot`, or says that it has to be opened first.
    #[inline(always)]
    pub fn with<R>(
        &mut self,
        slot: usize,
        incarnations: &Incarnations<N>,
        work: impl FnOnce(&mut Lane) -> R,
    ) -> Option<R> {
        let lanes = &*self.0;
        lanes.in_use.store(1, Ordering::Relaxed);
        fence_light();
        let mut result = None;
        if lanes.opened[slot].load(Ordering::Relaxed) == incarnations.of(slot) {
            // SAFETY: the incarnation is right and was read after `in_use` was set, so that nobody takes the
            // lane away before it is clear again; `&mut self` keeps the thread from a second use. `opened` is that
            // of a buffer only while there is a lane.
            result = lanes.lanes[slot]
                .with_mut(|lane| Some(work(unsafe { (*lane).as_mut().unwrap_unchecked() })));
        }
        lanes.in_use.store(0, Ordering::Release);
        result
    }

    /// Puts `lane` into `slot`, for the buffer that has `incarnation`.
    pub fn open(&mut self, slot: usize, incarnation: u32, lane: Lane, _: &Opening) {
        let lanes = &*self.0;
        // SAFETY: the lock is held, so nobody takes lanes away; this is the thread itself, and not in a use.
        let earlier = lanes.lanes[slot].with_mut(|place| unsafe { (*place).replace(lane) });
        lanes.opened[slot].store(incarnation, Ordering::Relaxed);
        drop(earlier);
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
        self.opened[slot].store(NOBODY, Ordering::Relaxed);
        // SAFETY: the thread was not in a use after it could see the new incarnation, so it will not
        // reach for this lane again; the lock keeps others away.
        Ok(self.lanes[slot].with_mut(|lane| unsafe { (*lane).take() }))
    }
}

/// A thread is in the middle of a write that does not end: it was jumped out of by a signal handler, or has
/// lost its processor for long.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct StillInUse;

/// Has every thread see what was stored before: pairs with the light fence of [`OwnLanes::with`].
pub(crate) fn every_thread_knows() {
    fence_heavy();
}
