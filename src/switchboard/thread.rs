//! What others may know of a thread: its lanes, and whether it is in a callback.

use super::{BUFFERS, Switchboard};
use crate::buffer::lanes::{Lanes, OwnLanes};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The shared part of one thread's state.
pub(crate) struct ThreadState {
    lanes: Arc<Lanes<BUFFERS>>,
    /// The slot of the subscriber that the thread is calling and 1, or 0.
    calling: AtomicU32,
}

impl ThreadState {
    /// The state of a new thread, which `board` gets to know.
    pub fn new(board: &Switchboard, lanes: &OwnLanes<BUFFERS>) -> Arc<ThreadState> {
        let state = Arc::new(ThreadState {
            lanes: lanes.shared(),
            calling: AtomicU32::new(0),
        });
        board.register(&state);
        state
    }

    pub fn lanes(&self) -> &Lanes<BUFFERS> {
        &self.lanes
    }

    /// Whether the thread is in a callback: what it calls is not recorded.
    #[inline]
    pub fn is_in_callback(&self) -> bool {
        self.calling.load(Ordering::Relaxed) != 0
    }

    /// Acquire: pairs with the release below, so that the end of a callback has happened.
    pub fn is_calling(&self, slot: usize) -> bool {
        self.calling.load(Ordering::Acquire) == slot as u32 + 1
    }

    /// The thread itself says which subscriber it is calling.
    #[inline]
    pub fn calls(&self, slot: Option<usize>) {
        self.calling
            .store(slot.map_or(0, |slot| slot as u32 + 1), Ordering::Release);
    }
}
