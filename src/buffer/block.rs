//! Blocks: their headers in the mapping, and the views of them that sinks get.
//!
//! A block is `Empty` (in the pool), `Filling` (a lane writes to it) or `Full` (the collector's). The lane changes it
//! from Empty to Filling to Full, the collector from Full to Empty: each transition belongs to one side. The commit
//! word holds generation and committed length together, so that a reader after the death of the process cannot take the
//! length of one use for that of another.

use super::Mapping;
use crate::platform::sync::{AtomicU32, AtomicU64, Ordering};
use gputrail_record::ThreadId;
use std::sync::atomic::AtomicU64 as PlainU64;

/// The state of a block, which determines who may access it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum BlockState {
    Empty = 0,
    Filling = 1,
    Full = 2,
}

/// Under [`Policy::Overwrite`](super::Policy), a full block that a dump reads. For all others it counts as full.
const FULL_READ: u32 = 3;
const FILLING_READ: u32 = 4;
/// Maximum number of attempts of a dump or a lane to change the state of a block that the other changes meanwhile.
const CLAIMS: u32 = 8;

/// The header of a block in the mapping. 64 bytes, a cache line of its own.
#[repr(C, align(64))]
pub(crate) struct BlockHeader {
    /// generation << 32 | committed bytes. The lane's release store publishes a record.
    pub commit: AtomicU64,
    /// A [`BlockState`].
    state: AtomicU32,
    /// Id of the lane that fills or filled it.
    lane: AtomicU32,
    /// Number of the block in its lane, from 0.
    sequence: AtomicU32,
    /// Sequence number of its first record.
    first_record: AtomicU32,
    thread: AtomicU32,
    /// Bytes that the collector has handed to its sinks. Only the collector writes it.
    pub consumed: AtomicU32,
    /// Under [`Policy::Overwrite`](super::Policy): the begin of this use of the block, in ticks, for comparisons of
    /// age.
    begun: PlainU64,
    reserved: [PlainU64; 3],
}

/// The fields that a lane sets when it begins to fill a block.
#[derive(Copy, Clone)]
pub(crate) struct BlockOwner {
    pub lane: u32,
    pub thread: ThreadId,
    pub sequence: u32,
    pub first_record: u32,
}

impl BlockHeader {
    #[cfg(loom)]
    pub fn new() -> BlockHeader {
        BlockHeader {
            commit: AtomicU64::new(0),
            state: AtomicU32::new(0),
            lane: AtomicU32::new(0),
            sequence: AtomicU32::new(0),
            first_record: AtomicU32::new(0),
            thread: AtomicU32::new(0),
            consumed: AtomicU32::new(0),
            begun: PlainU64::new(0),
            reserved: [const { PlainU64::new(0) }; 3],
        }
    }

    /// Acquire: a reader that sees Full or Filling sees the owner's fields; one that sees Empty sees that they are no
    /// longer needed. A value that no version wrote counts as Empty.
    pub fn state(&self) -> BlockState {
        match self.state.load(Ordering::Acquire) {
            1 | FILLING_READ => BlockState::Filling,
            2 | FULL_READ => BlockState::Full,
            _ => BlockState::Empty,
        }
    }

    /// Lane: begins to use an empty block. Returns the generation of this use.
    pub fn begin(&self, owner: BlockOwner) -> u32 {
        let generation = ((self.commit.load(Ordering::Relaxed) >> 32) as u32).wrapping_add(1);
        self.lane.store(owner.lane, Ordering::Relaxed);
        self.thread.store(owner.thread.0, Ordering::Relaxed);
        self.sequence.store(owner.sequence, Ordering::Relaxed);
        self.first_record
            .store(owner.first_record, Ordering::Relaxed);
        self.consumed.store(0, Ordering::Relaxed);
        self.commit
            .store(u64::from(generation) << 32, Ordering::Relaxed);
        self.state
            .store(BlockState::Filling as u32, Ordering::Release);
        generation
    }

    /// Lane: stops writing to the block.
    pub fn fill(&self) {
        self.state.store(BlockState::Full as u32, Ordering::Release);
    }

    fn change(&self, from: u32, to: u32) -> bool {
        // AcqRel: each side's accesses to the block are over before the other side's begin.
        self.state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Lane that keeps its blocks: stops writing to the block, unless it takes it back.
    pub fn fill_kept(&self) {
        // A dump claims and releases it at any time, but at most once per dump. The program may have overwritten it.
        let filled = (0..CLAIMS).any(|_| {
            self.change(BlockState::Filling as u32, BlockState::Full as u32)
                || self.change(FILLING_READ, FULL_READ)
        });
        if !filled {
            self.fill();
        }
    }

    /// Whether a lane fills the block and no dump reads it.
    #[cfg(not(loom))]
    pub fn is_held(&self) -> bool {
        self.state.load(Ordering::Relaxed) == BlockState::Filling as u32
    }

    /// Lane: takes a full block that no dump reads, to fill it again.
    pub fn take_back(&self) -> bool {
        self.change(BlockState::Full as u32, BlockState::Empty as u32)
    }

    /// Dump: claims the block, so that no lane takes it back before [`BlockHeader::release`]. `false` if it is empty,
    /// or if its lane keeps changing it.
    pub fn claim(&self) -> bool {
        // Its lane changes it too, but seldom. The mapping may contain any value, so attempts are bounded.
        (0..CLAIMS).any(|_| {
            self.change(BlockState::Full as u32, FULL_READ)
                || self.change(BlockState::Filling as u32, FILLING_READ)
        })
    }

    /// Lane that keeps its blocks: sets the begin of this use of the block to `ticks`.
    pub fn set_begun(&self, ticks: u64) {
        self.begun.store(ticks, Ordering::Relaxed);
    }

    /// The begin of the latest use of the block.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether the block has been filled before its latest use.
    pub fn is_reused(&self) -> bool {
        self.commit.load(Ordering::Relaxed) >> 32 > 1
    }

    /// Dump: releases the block.
    pub fn release(&self) {
        if !self.change(FILLING_READ, BlockState::Filling as u32) {
            // Its lane has filled it meanwhile.
            self.change(FULL_READ, BlockState::Full as u32);
        }
    }

    /// Collector: returns the block to Empty after all of it has been delivered.
    pub fn empty(&self) {
        self.state
            .store(BlockState::Empty as u32, Ordering::Release);
    }

    /// The number of committed bytes. Acquire: the records in them may be read.
    pub fn committed(&self) -> u32 {
        self.commit.load(Ordering::Acquire) as u32
    }

    /// The lane that fills it; valid after [`BlockHeader::state`] returned Filling or Full.
    pub fn owner(&self) -> BlockOwner {
        BlockOwner {
            lane: self.lane.load(Ordering::Relaxed),
            thread: ThreadId(self.thread.load(Ordering::Relaxed)),
            sequence: self.sequence.load(Ordering::Relaxed),
            first_record: self.first_record.load(Ordering::Relaxed),
        }
    }
}

/// A run of records that one lane wrote, in place in its block.
#[derive(Copy, Clone, Debug)]
pub struct BlockView<'a> {
    /// The lane, unique in the process.
    pub lane: u32,
    /// The lane's thread.
    pub thread: ThreadId,
    /// Number of the block in its lane.
    pub sequence: u32,
    /// Offset of these bytes in the block; not 0 if earlier bytes were delivered before the block was full.
    pub offset: u32,
    /// Sequence number of the first record of the block.
    pub first_record: u32,
    /// The records.
    pub bytes: &'a [u8],
}

#[cfg(not(loom))]
impl<'a> BlockView<'a> {
    /// Its records, one after the other, in place.
    pub fn records(&self) -> gputrail_record::Records<'a> {
        gputrail_record::Records::new(self.bytes)
    }
}

/// A block with undelivered records.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FoundBlock {
    lane: u32,
    sequence: u32,
    block: u32,
}

/// Blocks found by a scan, kept between scans so that scanning does not allocate.
#[derive(Default)]
pub struct Scan {
    found: Vec<FoundBlock>,
    again: Vec<FoundBlock>,
}

/// Calls `deliver` with everything that is committed and not yet consumed in the full blocks of `mapping`, and in the
/// blocks being filled that hold at least `watermark` bytes of it; each lane's blocks in the order it filled them.
/// Calls `emptied` for each block that is empty afterwards.
///
/// Only one thread at a time may do this to a mapping.
pub fn deliver_in_order(
    mapping: &Mapping,
    watermark: u32,
    scan: &mut Scan,
    mut deliver: impl FnMut(&BlockView<'_>),
    mut emptied: impl FnMut(u32),
) {
    deliver_each(mapping, watermark, scan, |found| match found {
        DeliveryStep::Filling(_, view) | DeliveryStep::Full(_, view) => deliver(view),
        DeliveryStep::Emptied(block) => emptied(block),
    });
}

/// A step of [`deliver_each`].
pub(crate) enum DeliveryStep<'a, 'b> {
    /// Records of a block that a lane fills.
    #[cfg_attr(loom, allow(dead_code))]
    Filling(u32, &'a BlockView<'b>),
    /// The last records of a block that is full; it is emptied next.
    #[cfg_attr(loom, allow(dead_code))]
    Full(u32, &'a BlockView<'b>),
    /// The block is empty now.
    Emptied(u32),
}

/// Like [`deliver_in_order`], for callers that handle filling and full blocks differently.
pub(crate) fn deliver_each(
    mapping: &Mapping,
    watermark: u32,
    scan: &mut Scan,
    mut deliver: impl FnMut(DeliveryStep<'_, '_>),
) {
    look(mapping, watermark, &mut scan.found);
    if scan.found.is_empty() {
        return;
    }
    // A lane may have filled an earlier block after the scan had passed it and a later one before the scan reached it.
    // If the scan sees the later one, the earlier one is Full, so a second scan finds it. Other blocks that the second
    // scan finds may follow gaps, and wait for the next time.
    scan.found.sort_unstable();
    look(mapping, u32::MAX, &mut scan.again);
    let first_look = scan.found.len();
    for candidate in &scan.again {
        let known = &scan.found[..first_look];
        let last_of_lane =
            known[..known.partition_point(|found| found.lane <= candidate.lane)].last();
        let precedes = last_of_lane
            .is_some_and(|last| last.lane == candidate.lane && candidate.sequence < last.sequence);
        if precedes && known.binary_search(candidate).is_err() {
            scan.found.push(*candidate);
        }
    }
    scan.found.sort_unstable();
    for FoundBlock { block, .. } in scan.found.drain(..) {
        let header = mapping.block(block);
        // The state comes first: once it is Full, the length is final.
        let full = header.state() == BlockState::Full;
        // Any value from the mapping is limited to the block, and to whole words as records are.
        let committed = header.committed().min(mapping.capacity(block)) & !7;
        let consumed = header.consumed.load(Ordering::Relaxed).min(committed) & !7;
        if committed > consumed {
            let owner = header.owner();
            let show = |bytes: &[u8]| {
                let view = BlockView {
                    lane: owner.lane,
                    thread: owner.thread,
                    sequence: owner.sequence,
                    offset: consumed,
                    first_record: owner.first_record,
                    bytes,
                };
                deliver(if full {
                    DeliveryStep::Full(block, &view)
                } else {
                    DeliveryStep::Filling(block, &view)
                })
            };
            // SAFETY: `committed` was loaded with acquire; only this function returns blocks.
            unsafe { mapping.read(block, consumed, committed, show) };
            header.consumed.store(committed, Ordering::Release);
        }
        if full {
            header.empty();
            deliver(DeliveryStep::Emptied(block));
        }
    }
}

/// Calls `show` with the committed bytes of each block that a lane fills, including consumed ones.
///
/// Only one thread at a time may do this, or [`deliver_in_order`], to a mapping.
#[cfg(not(loom))]
pub fn show_filling(mapping: &Mapping, mut show: impl FnMut(&[u8])) {
    for block in 0..mapping.layout().blocks() {
        if mapping.block_state(block) == BlockState::Filling {
            let committed = mapping.block(block).committed();
            let committed = committed.min(mapping.capacity(block)) & !7;
            // SAFETY: `committed` was loaded with acquire; only `deliver_in_order` returns blocks.
            unsafe { mapping.read(block, 0, committed, &mut show) };
        }
    }
}

/// Calls `show` with the committed bytes of each block that have not been consumed; in block `shown.0`, those from offset
/// `shown.1` on.
///
/// Only one thread at a time may do this, or [`deliver_in_order`], to a mapping.
#[cfg(not(loom))]
pub(super) fn show_undelivered(mapping: &Mapping, shown: (u32, u32), mut show: impl FnMut(&[u8])) {
    for block in 0..mapping.layout().blocks() {
        if mapping.block_state(block) == BlockState::Empty {
            continue;
        }
        let header = mapping.block(block);
        let committed = header.committed().min(mapping.capacity(block)) & !7;
        let mut consumed = header.consumed.load(Ordering::Relaxed);
        if block == shown.0 {
            consumed = consumed.max(shown.1);
        }
        let consumed = consumed.min(committed) & !7;
        // SAFETY: `committed` was loaded with acquire; only `deliver_in_order` returns blocks.
        unsafe { mapping.read(block, consumed, committed, &mut show) };
    }
}

/// Records in the blocks of a mapping.
#[cfg(not(loom))]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Undelivered {
    /// Their number.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Counts the records that are committed and not consumed in the blocks of a mapping that another process fills.
#[cfg(not(loom))]
pub(crate) fn undelivered(mapping: &Mapping) -> Undelivered {
    let mut all = Undelivered::default();
    for block in 0..mapping.layout().blocks() {
        if mapping.block_state(block) == BlockState::Empty {
            continue;
        }
        let header = mapping.block(block);
        let commit = header.commit.load(Ordering::Acquire);
        // Any value from the mapping is limited to the block, and to whole words as records are.
        let committed = (commit as u32).min(mapping.capacity(block)) & !7;
        let consumed = header.consumed.load(Ordering::Relaxed).min(committed) & !7;
        let count = |bytes: &[u8]| gputrail_record::Records::new(bytes).count() as u64;
        // SAFETY: a copy is read, word by word. Where a lane that keeps its blocks overwrites one meanwhile, its generation
        // tells, and the number is dropped.
        let records = unsafe { mapping.read(block, consumed, committed, count) };
        if header.commit.load(Ordering::Acquire) >> 32 == commit >> 32 {
            all.records += records;
            all.bytes += u64::from(committed - consumed);
        }
    }
    all
}

fn look(mapping: &Mapping, watermark: u32, found: &mut Vec<FoundBlock>) {
    found.clear();
    for block in 0..mapping.layout().blocks() {
        let due = match mapping.block_state(block) {
            BlockState::Empty => false,
            BlockState::Full => true,
            BlockState::Filling => {
                let header = mapping.block(block);
                let ready = header
                    .committed()
                    .saturating_sub(header.consumed.load(Ordering::Relaxed));
                ready >= watermark.max(1)
            }
        };
        if due {
            let owner = mapping.block(block).owner();
            found.push(FoundBlock {
                lane: owner.lane,
                sequence: owner.sequence,
                block,
            });
        }
    }
}
