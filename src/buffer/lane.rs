//! Lanes: one writer each.
//!
//! A lane owns the block that it fills. Writing a record is a bounds check, stores into the block and one release store
//! ([`ReservedBatch`]); the cold half below changes blocks, reports drops and waits. One thread uses a lane at a time;
//! a signal handler that interrupts a use must not write to the lane.

use super::batch::ReservedBatch;
use super::block::{BlockHeader, BlockOwner, BlockState};
use super::delivering::is_delivering;
use super::losses::loss_of;
#[cfg(not(loom))]
use super::open_calls::OpenCalls;
use super::overwrite;
#[cfg(not(loom))]
use super::queue_drops::QueuePlace;
use super::wake::Wake;
use super::{BufferState, LaneSlot, Policy};
use crate::clock;
use crate::platform::sync::Ordering;
use gputrail_record::{Kind, Loss, Overhead, OverheadKind, Record, ThreadId, Ticks};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of waits, with no full block in sight, during which the collector looked for work and returned no block, after
/// which a lane gives up. More than one: the blocks of idle lanes are still to come.
const MAX_FUTILE_WAITS: u32 = 40;
/// Such waits between two attempts to get the blocks of idle lanes.
const RECLAIM_INTERVAL: u32 = 8;
/// Shortest time between two of them, by any lanes.
#[cfg(not(loom))]
const RECLAIM_PERIOD: Duration = Duration::from_millis(2);
/// Maximum number of successive blocks that the lane's own records (drop reports, waits) may fill.
const MAX_BLOCKS_OF_OWN_RECORDS: u32 = 8;
/// Maximum wait for a collector that shows no sign of life. A collector in another process may have died, been stopped,
/// or be blocked on a disk; the client that it asks for a block may not answer.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which a waiting lane checks whether the process that collects has ended.
const COLLECTOR_CHECK: Duration = Duration::from_millis(50);

/// A writer of records for one buffer.
pub struct Lane {
    pub(super) block: OpenBlock,
    /// Sequence number of the next record.
    pub(super) sequence: u32,
    /// Sequence number of the next block.
    next_block: u32,
    id: u32,
    slot: u32,
    thread: ThreadId,
    may_wait: bool,
    /// The lane's last wait ended without a block: the client refused one, or no block came back for long. It waits again
    /// once it has had one.
    gave_up: bool,
    shared: Arc<BufferState>,
}

/// The treatment of a record for which there is no empty block.
#[derive(Copy, Clone, Debug)]
pub enum WhenFull {
    /// Waits for a block if the policy and the lane allow it; otherwise counts one dropped record of this kind.
    Drop(Kind),
    /// Counts one dropped record of this kind, without waiting.
    DropAtOnce(Kind),
    /// Neither waits nor counts: the caller keeps the record.
    Keep,
}

/// The block that a lane fills.
pub(super) struct OpenBlock {
    /// Number of committed bytes; equal to the commit word's low half.
    pub(super) committed: u32,
    /// Number of bytes that may be committed now: the block's size, or less if `records_left` limits them.
    pub(super) capacity: u32,
    /// Size of the block; 0 if the lane has none.
    bytes: u32,
    /// Number of records that the block still takes, if it has a limit.
    records_left: Option<u32>,
    /// The commit word's high half, in its position.
    pub(super) generation: u64,
    index: u32,
    /// Valid while `bytes` is not 0: `Lane::shared` keeps the mapping.
    pub(super) header: *const BlockHeader,
    /// As `header`.
    pub(super) data: *mut u8,
}

impl OpenBlock {
    const NONE: OpenBlock = OpenBlock {
        committed: 0,
        capacity: 0,
        bytes: 0,
        records_left: None,
        generation: 0,
        index: 0,
        header: std::ptr::null(),
        data: std::ptr::null_mut(),
    };
}

// SAFETY: one thread uses a lane at a time; its pointers lead into the mapping, which `shared` keeps alive and which any
// thread may use.
unsafe impl Send for Lane {}

impl Lane {
    pub(super) fn open(shared: Arc<BufferState>, thread: ThreadId) -> Option<Lane> {
        if shared.mapping.pool().is_closed() {
            return None;
        }
        let id = shared.next_lane_id();
        let take = |slot: &u32| {
            let lane = &shared.mapping.slot(*slot).lane;
            lane.compare_exchange(0, id, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        // Slots with unreported drops of an earlier lane are used last, so that their reports name the right thread.
        let mut slots = 0..shared.mapping.layout().lanes();
        let has_no_drops = |slot: &u32| !shared.mapping.slot(*slot).has_drops();
        let slot = slots.clone().find(|slot| has_no_drops(slot) && take(slot));
        let slot = slot.or_else(|| slots.find(take))?;
        let lane_slot = shared.mapping.slot(slot);
        lane_slot.thread.store(thread.0, Ordering::Relaxed);
        lane_slot.depth.store(0, Ordering::Relaxed);
        Some(Lane {
            block: OpenBlock::NONE,
            sequence: 0,
            next_block: 0,
            id,
            slot,
            thread,
            may_wait: true,
            gave_up: false,
            shared,
        })
    }

    /// Reserves `bytes` bytes for records in the lane's block. `None` if the block is full or there is none yet; the
    /// caller calls [`Lane::make_room`] and tries again.
    #[inline(always)]
    pub fn reserve(&mut self, bytes: usize) -> Option<ReservedBatch<'_>> {
        let fits = self.block.committed + bytes as u32 <= self.block.capacity;
        fits.then(|| ReservedBatch::begin(self))
    }

    /// Provides space for a record of `bytes` bytes, in another block if necessary, so that the next [`Lane::reserve`]
    /// succeeds. `false` if there is no empty block; then the record has been treated according to `when_full`.
    #[cold]
    #[inline(never)]
    pub fn make_room(&mut self, bytes: usize, when_full: WhenFull) -> bool {
        let bytes = bytes as u32;
        let may_wait = self.may_wait && matches!(when_full, WhenFull::Drop(_));
        // The lane's own records may fill a block with a limit of records.
        for _ in 0..MAX_BLOCKS_OF_OWN_RECORDS {
            if self.fits(bytes) {
                return true;
            }
            if !self.next_block(may_wait) || bytes > self.block.bytes {
                break;
            }
        }
        let fits = self.fits(bytes);
        if let WhenFull::Drop(kind) | WhenFull::DropAtOnce(kind) = when_full
            && !fits
        {
            self.count_drop(kind);
        }
        fits
    }

    /// Writes `record` as a batch of its own. `false` if it was dropped and counted.
    #[inline]
    pub fn write<R: Record>(&mut self, record: R) -> bool {
        loop {
            if let Some(mut batch) = self.reserve(size_of::<R>()) {
                batch.put(|place| *place = record);
                batch.publish();
                return true;
            }
            if !self.make_room(size_of::<R>(), WhenFull::Drop(R::KIND)) {
                return false;
            }
        }
    }

    /// Informs loom that the lane writes these bytes of its block.
    #[cfg(loom)]
    pub(super) fn note_write(&self, from: u32, bytes: u32) {
        let mapping = &self.shared.mapping;
        mapping.note_write(self.block.index, from, from + bytes);
    }

    /// Sets whether the lane may wait for an empty block under [`Policy::Lossless`], and returns the earlier setting.
    /// Waiting is forbidden on the collector's and tools' own threads, in callbacks of a runtime, and in signal
    /// handlers.
    pub fn set_may_wait(&mut self, may_wait: bool) -> bool {
        std::mem::replace(&mut self.may_wait, may_wait)
    }

    /// The lane's slot: unique among the buffer's live lanes, and below the layout's number of lanes.
    pub fn number(&self) -> u32 {
        self.slot
    }

    /// The thread that the lane was opened for.
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    pub(crate) fn slot(&self) -> &LaneSlot {
        self.shared.mapping.slot(self.slot)
    }

    /// The lane's open-call stack.
    #[cfg(not(loom))]
    pub fn open_calls(&self) -> OpenCalls {
        OpenCalls::new(self.slot(), self.shared.clone())
    }

    /// Whether a record of `bytes` bytes fits into the block. In a block with a limit of records, `true` admits that
    /// one record.
    fn fits(&mut self, bytes: u32) -> bool {
        let block = &mut self.block;
        match &mut block.records_left {
            None => bytes <= block.capacity - block.committed,
            Some(left) if *left > 0 && bytes <= block.bytes - block.committed => {
                *left -= 1;
                block.capacity = block.committed + bytes;
                true
            }
            Some(_) => false,
        }
    }

    /// Passes the full block to the collector and takes an empty one, which begins with the lane's own records about
    /// its wait and its drops. `false` if there is no block and the lane may not wait.
    fn next_block(&mut self, may_wait: bool) -> bool {
        self.give_block();
        let shared = self.shared.clone();
        if shared.policy == Policy::Overwrite {
            let Some(block) = overwrite::take(&shared, may_wait) else {
                return false;
            };
            shared.mapping.block(block).set_begun(clock::now().0);
            self.begin_block(block);
            self.report_drops();
            return true;
        }
        let (mapping, pool) = (&shared.mapping, shared.mapping.pool());
        let refusals = shared.refusals();
        let (mut waited, mut futile, mut checks, mut came_back) = (None, 0, 1, false);
        let mut last_sign = (mapping.looks().load(Ordering::Relaxed), None);
        let block = loop {
            if let Some(block) = pool.take() {
                break block;
            }
            shared.wake().wake();
            if !may_wait
                || self.gave_up
                || !(mapping.is_of_client() || shared.policy == Policy::Lossless)
                || pool.is_closed()
                || shared.collector_is_lost()
                || is_delivering()
            {
                return false;
            }
            // A client's refusal ends the wait unless nothing may be lost.
            let is_refused = shared.policy != Policy::Lossless && shared.refusals() != refusals;
            let looks = mapping.looks().load(Ordering::Relaxed);
            let has_looked = looks != last_sign.0;
            futile = if came_back || self.any_block_is_full() {
                0
            } else {
                futile + u32::from(has_looked)
            };
            if futile % RECLAIM_INTERVAL == 1 {
                shared.reclaim_now_and_then();
            }
            if is_refused || futile > MAX_FUTILE_WAITS {
                self.gave_up = true;
                return false;
            }
            let since = *last_sign.1.get_or_insert_with(Instant::now);
            if has_looked {
                (last_sign, checks) = ((looks, None), 1);
            } else if since.elapsed() > COLLECTOR_CHECK * checks {
                checks += 1;
                if since.elapsed() <= COLLECTOR_TIMEOUT && !shared.collector_has_ended() {
                    continue;
                }
                let lost = 1 + u64::from(looks);
                shared.collector_lost.store(lost, Ordering::Relaxed);
                return false;
            }
            waited.get_or_insert_with(clock::now);
            came_back = pool.wait();
        };
        self.gave_up = false;
        self.begin_block(block);
        if let Some(start) = waited
            && shared.policy == Policy::Lossless
            && shared.reports_waits.load(Ordering::Relaxed)
        {
            let mut overhead = Overhead::blank();
            (overhead.start, overhead.end) = (start, clock::now());
            (overhead.thread, overhead.what) = (self.thread, OverheadKind::WAIT);
            self.write_own(overhead);
        }
        self.report_drops();
        true
    }

    /// Begins to fill block `index`.
    fn begin_block(&mut self, index: u32) {
        let mapping = &self.shared.mapping;
        #[cfg(not(loom))]
        mapping.populate_for_lane(index);
        let header = mapping.block(index);
        let generation = header.begin(BlockOwner {
            lane: self.id,
            thread: self.thread,
            sequence: self.next_block,
            first_record: self.sequence,
        });
        self.next_block = self.next_block.wrapping_add(1);
        let bytes = mapping.capacity(index);
        let records_left = match mapping.record_limit(index) {
            0 => None,
            limit => Some(limit),
        };
        self.block = OpenBlock {
            committed: 0,
            capacity: if records_left.is_none() { bytes } else { 0 },
            bytes,
            records_left,
            generation: u64::from(generation) << 32,
            index,
            header,
            data: mapping.data(index),
        };
    }

    /// Whether the collector has a full block to empty.
    fn any_block_is_full(&self) -> bool {
        let mapping = &self.shared.mapping;
        (0..mapping.layout().blocks()).any(|block| mapping.block_state(block) == BlockState::Full)
    }

    /// Passes the lane's block to the collector, whether or not it is full.
    pub(super) fn give_block(&mut self) {
        if self.block.bytes > 0 {
            let header = self.shared.mapping.block(self.block.index);
            if self.shared.policy == Policy::Overwrite {
                header.fill_kept();
                self.block = OpenBlock::NONE;
                return;
            }
            header.fill();
            self.block = OpenBlock::NONE;
            // A wake-up is a system call: while there are enough empty blocks, the collector's next poll is early
            // enough.
            let wake = self.shared.wake();
            if self.shared.mapping.pool().is_low() {
                wake.wake();
            } else {
                wake.wake_from_long_sleep();
            }
        }
    }

    /// Counts a record of `kind` as dropped. It consumes a sequence number, so that readers see the gap.
    fn count_drop(&mut self, kind: Kind) {
        self.sequence = self.sequence.wrapping_add(1);
        self.slot().count_drop(kind, self.thread, clock::now());
    }

    /// Counts a record that was dropped, and counted by kind, by the place that it names.
    #[cfg(not(loom))]
    pub fn count_drop_of(&self, place: QueuePlace) {
        self.shared.queue_drops.count(place);
    }

    /// Writes a report for each kind of dropped records into a new block.
    fn report_drops(&mut self) {
        for kind in 0..gputrail_record::KINDS {
            let slot = self.slot();
            let count = slot.drops(kind);
            if count == 0 {
                continue;
            }
            let mut loss = loss_of(kind, count);
            loss.first = Ticks(slot.first_drop.load(Ordering::Relaxed));
            loss.last = Ticks(slot.last_drop.load(Ordering::Relaxed));
            loss.thread = ThreadId(slot.dropped_by.load(Ordering::Relaxed));
            let bytes = size_of::<Loss>() as u32;
            if !self.fits(bytes) {
                // The next block has space.
                return;
            }
            let end = self.block.committed + bytes;
            self.slot().begin_report(kind, count, self.block.index, end);
            let mut batch = ReservedBatch::begin(self);
            batch.put(|place| *place = loss);
            batch.publish();
            self.shared.reported[kind].fetch_add(count, Ordering::Relaxed);
            self.slot().end_report(kind);
        }
    }

    /// Writes a record of the lane's own into a new block, if it fits.
    fn write_own<R: Record>(&mut self, record: R) -> bool {
        let fits = self.fits(size_of::<R>() as u32);
        if fits {
            let mut batch = ReservedBatch::begin(self);
            batch.put(|place| *place = record);
            batch.publish();
        }
        fits
    }
}

impl BufferState {
    /// The word on which the buffer's collector sleeps.
    pub(super) fn wake(&self) -> &Wake {
        #[cfg(not(loom))]
        if let Some(number) = self.served_by.load(Ordering::Relaxed).checked_sub(1) {
            return super::threads::wake_of(number);
        }
        self.mapping.wake()
    }

    fn next_lane_id(&self) -> u32 {
        let before = self.last_lane.fetch_add(1, Ordering::Relaxed);
        before.wrapping_add(1).max(1)
    }

    /// Requests that the client of the blocks has refused so far.
    fn refusals(&self) -> u32 {
        #[cfg(not(loom))]
        return self.refusals.load(Ordering::Relaxed);
        #[cfg(loom)]
        0
    }

    /// Whether the process that collects is known to have ended.
    pub(super) fn collector_has_ended(&self) -> bool {
        self.collector_ended.get().is_some_and(|ended| ended())
    }

    /// Has idle lanes give up their blocks.
    #[cfg(not(loom))]
    pub(super) fn reclaim_blocks(&self) {
        self.reclaim.get().into_iter().for_each(|reclaim| reclaim());
    }

    /// Has idle lanes give up their blocks, unless that has just been done.
    fn reclaim_now_and_then(&self) {
        #[cfg(not(loom))]
        {
            let (now, last) = (clock::now().0, self.reclaimed.load(Ordering::Relaxed));
            let relaxed = Ordering::Relaxed;
            if now.saturating_sub(last) > clock::ticks_of(RECLAIM_PERIOD)
                && (self.reclaimed.compare_exchange(last, now, relaxed, relaxed)).is_ok()
            {
                self.reclaim_blocks();
            }
        }
    }

    /// Whether a lane's wait for the collector timed out, and the collector has shown no sign of life since.
    fn collector_is_lost(&self) -> bool {
        let looks = self.mapping.looks().load(Ordering::Relaxed);
        self.collector_lost.load(Ordering::Relaxed) == 1 + u64::from(looks)
    }
}

impl Drop for Lane {
    /// Passes the block to the collector, and the slot to the next lane. Unreported drops stay in the slot.
    fn drop(&mut self) {
        self.give_block();
        let slot = self.slot();
        slot.depth.store(0, Ordering::Relaxed);
        slot.lane.store(0, Ordering::Release);
    }
}
