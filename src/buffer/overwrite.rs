//! [`Policy::Overwrite`](super::Policy): the latest records are kept in the blocks until a dump shows them.
//!
//! The blocks of all lanes are one ring: a hand goes round them, and each lane that needs a block takes the next one that is
//! empty or full, which is the one that was taken longest ago. A dump first claims every block by compare-and-swap, so
//! that no lane takes it meanwhile: it reads full blocks, and the committed part of blocks that are being filled. Lanes skip
//! blocks that a dump reads, and those that others fill. Where lanes fill all blocks, idle ones give theirs up.

use super::BufferState;
use super::block::{BlockHeader, BlockOwner, BlockView};
use crate::platform::sync::Ordering;
use gputrail_record::Ticks;

/// Attempts of a lane to get a block of an idle lane.
#[cfg(not(loom))]
const ATTEMPTS: u32 = 40;

/// A block for a lane to fill. `may_wait`: if lanes fill all blocks, has idle lanes give theirs up.
pub(super) fn take(shared: &BufferState, may_wait: bool) -> Option<u32> {
    let block = next(shared);
    #[cfg(not(loom))]
    if block.is_none() && may_wait {
        return take_of_idle(shared);
    }
    let _ = may_wait;
    block
}

#[cfg(not(loom))]
#[cold]
fn take_of_idle(shared: &BufferState) -> Option<u32> {
    let blocks = shared.mapping.supplied();
    (0..ATTEMPTS).find_map(|_| {
        // Blocks that a dump reads come back by themselves.
        let is_held = (0..blocks).any(|block| shared.mapping.block(block).is_held());
        if !is_held || shared.mapping.pool().is_closed() {
            return None;
        }
        shared.reclaim_blocks();
        let block = next(shared);
        if block.is_none() {
            // Another lane is at it, or all are in the middle of a write.
            std::thread::yield_now();
        }
        block
    })
}

/// The next empty or full block of the ring.
fn next(shared: &BufferState) -> Option<u32> {
    let (mapping, pool) = (&shared.mapping, shared.mapping.pool());
    let blocks = mapping.supplied();
    if pool.is_closed() {
        return None;
    }
    (0..blocks).find_map(|_| {
        let turn = shared.hand.fetch_add(1, Ordering::Relaxed);
        let block = (turn % u64::from(blocks)) as u32;
        let is_free = pool.take_back(block) || mapping.block(block).take_back();
        is_free.then_some(block)
    })
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
    shared: &BufferState,
    since: u64,
    mut show: impl FnMut(&BlockView<'_>),
) -> Option<Ticks> {
    struct Claimed {
        owner: BlockOwner,
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
    // Of a lane, all blocks may have been overwritten: what began before the oldest one that is kept.
    let headers = || claimed.iter().map(|one| mapping.block(one.block));
    let mut reach = (headers().any(BlockHeader::is_reused))
        .then(|| headers().map(BlockHeader::begun).min())
        .flatten()
        .filter(|begun| *begun > since)
        .map(Ticks);
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
