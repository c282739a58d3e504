//! [`Policy::Overwrite`](super::Policy): the latest records are kept in the blocks until a dump shows them.
//!
//! Each lane keeps a ring of the blocks that it has filled. If the pool has no block to spare, the lane takes back the
//! oldest of them. A dump first claims every block by compare-and-swap, so that no lane takes it back meanwhile: it
//! reads full blocks, and the committed part of blocks that are being filled. A lane skips blocks that a dump reads.
//! Full blocks of lanes that have ended are available to any lane that needs a block and finds them older than its own.

use super::block::{BlockHeader, BlockView, Owner};
use super::{Mapping, Shared};
use crate::platform::sync::Ordering;
use gputrail_record::Ticks;

/// One in this many blocks is reserved for lanes with few blocks.
const RESERVE: usize = 8;
/// Number of blocks from which on a lane leaves the reserved ones to others.
const ENOUGH: usize = 2;

/// The full blocks of a lane, the oldest first.
#[derive(Default)]
pub(super) struct Ring(std::collections::VecDeque<u32>);

impl Ring {
    /// Adds `block`, which the lane has filled.
    pub fn keep(&mut self, block: u32) {
        self.0.push_back(block);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A block for the lane to fill.
    pub fn take(&mut self, shared: &Shared) -> Option<u32> {
        let (mapping, pool) = (&shared.mapping, shared.mapping.pool());
        if pool.is_closed() {
            return None;
        }
        let reserve = mapping.supplied() as usize / RESERVE;
        if (self.0.len() < ENOUGH || pool.len() > reserve)
            && let Some(block) = pool.take()
        {
            return Some(block);
        }
        let own = self.0.front().map(|block| mapping.block(*block).begun());
        let left_behind = oldest_left_behind(shared, own.unwrap_or(u64::MAX));
        if let Some(block) = left_behind
            && take_left_behind(mapping, block)
        {
            return Some(block);
        }
        // Blocks that a dump reads are skipped.
        let free = |block: &u32| mapping.block(*block).take_back();
        let place = self.0.iter().position(free);
        place
            .and_then(|place| self.0.remove(place))
            .or_else(|| pool.take())
    }
}

/// The oldest full block whose lane has ended, if its use began before `before`.
fn oldest_left_behind(shared: &Shared, before: u64) -> Option<u32> {
    let mapping = &shared.mapping;
    if shared.left_behind.load(Ordering::Relaxed) == 0 {
        return None;
    }
    (0..mapping.layout().blocks())
        .filter(|block| mapping.block(*block).begun() < before)
        .filter(|block| mapping.block(*block).is_kept())
        .filter(|block| !is_alive(mapping, mapping.block(*block).owner().lane))
        .min_by_key(|block| mapping.block(*block).begun())
}

/// Takes `block` for another lane, unless another thread has taken it since it was found.
fn take_left_behind(mapping: &Mapping, block: u32) -> bool {
    let header = mapping.block(block);
    if !header.take_back() {
        return false;
    }
    // A live lane may have taken, filled and kept it: then it belongs to that lane.
    let ours = !is_alive(mapping, header.owner().lane);
    if !ours {
        header.put_back();
    }
    ours
}

fn is_alive(mapping: &Mapping, lane: u32) -> bool {
    let slots = 0..mapping.layout().lanes();
    slots
        .map(|slot| mapping.slot(slot).lane.load(Ordering::Acquire))
        .any(|id| id == lane)
}

/// Calls `show` with the kept records: each lane's blocks in the order it filled them, of the blocks in use after
/// `since`. The lanes continue meanwhile.
///
/// Only one thread at a time may do this to a mapping. It may belong to another process than the lanes, whose data is
/// not trusted.
///
/// Returns when the records of the lane that reaches back least begin, if that is after `since`: the older ones have been
/// overwritten.
pub(super) fn dump(
    shared: &Shared,
    since: u64,
    mut show: impl FnMut(&BlockView<'_>),
) -> Option<Ticks> {
    struct Claimed {
        owner: Owner,
        block: u32,
    }
    let mapping = &shared.mapping;
    let mut claimed: Vec<Claimed> = (0..mapping.layout().blocks())
        .filter(|block| mapping.block(*block).claim())
        .map(|block| Claimed {
            owner: mapping.block(block).owner(),
            block,
        })
        .collect();
    claimed.sort_unstable_by_key(|claimed| (claimed.owner.lane, claimed.owner.sequence));
    let mut reach = None;
    for place in 0..claimed.len() {
        let Claimed { owner, block } = claimed[place];
        let header: &BlockHeader = mapping.block(block);
        let is_first = place == 0 || claimed[place - 1].owner.lane != owner.lane;
        if is_first && owner.sequence > 0 && header.begun() > since {
            reach = reach.max(Some(Ticks(header.begun())));
        }
        // A block was in use until its lane began the next one.
        let is_old = claimed.get(place + 1).is_some_and(|next| {
            next.owner.lane == owner.lane && mapping.block(next.block).begun() < since
        });
        // Any value from the mapping is limited to the block, and to whole words as records are.
        let committed = header.committed().min(mapping.capacity(block)) & !7;
        if !is_old && committed > 0 {
            let show = |bytes: &[u8]| {
                show(&BlockView {
                    lane: owner.lane,
                    thread: owner.thread,
                    sequence: owner.sequence,
                    offset: 0,
                    first_record: owner.first_record,
                    bytes,
                });
            };
            // SAFETY: `committed` was loaded with acquire, and no lane takes back a block that is claimed.
            unsafe { mapping.read(block, 0, committed, show) };
        }
        header.release();
    }
    reach
}
