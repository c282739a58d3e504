//! Lanes: one writer each.
//!
//! A lane owns the block it fills. Writing a record is a bounds check, a copy and one release store;
//! everything else (another block, losses, waiting) is in the cold half below. A lane belongs to one
//! thread at a time; a signal handler that interrupts it must not write to it.

#[cfg(not(loom))]
use super::block::BlockHeader;
use super::block::{BlockState, Owner};
use super::delivering::is_delivering;
use super::overwrite::Ring;
use super::wake::Wake;
use super::{LaneSlot, Policy, Shared};
use crate::clock;
use crate::platform::sync::Ordering;
use crate::record::{Arguments, Kind, Loss, Overhead, OverheadKind, Record, ThreadId, Ticks};
#[cfg(not(loom))]
use crate::record::{ArgumentsHead, CorrelationId, Operation};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Waits that see no full block before a lane gives up: between emptying a block and putting it back the
/// collector may lose its core.
const FUTILE_WAITS: u32 = 40;
/// Blocks in a row that may be taken up by what the lane itself has to say.
const MAX_OWN_BLOCKS: u32 = 8;
/// How long a lane waits for a collector that does nothing: one that is in another process may have
/// died or been stopped, or sit in a disk that has no answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// One writer of records for one buffer.
pub struct Lane {
    block: OpenBlock,
    /// Sequence number of the next record.
    sequence: u32,
    /// Sequence number of the next block.
    next_block: u32,
    id: u32,
    slot: u32,
    thread: ThreadId,
    may_wait: bool,
    /// The lane waited in vain: idle lanes held all blocks. It waits again once it has had one.
    gave_up: bool,
    /// Its full blocks, where the policy is to keep them.
    ring: Ring,
    shared: Arc<Shared>,
}

/// The block that a lane fills.
struct OpenBlock {
    /// Bytes committed; equal to the commit word's low half.
    committed: u32,
    /// Bytes that may be committed now: all it holds, or, with a limit of records, what was measured out.
    capacity: u32,
    /// Bytes it holds, 0 when the lane has no block.
    bytes: u32,
    /// Records that it takes still, where it has a limit.
    records_left: Option<u32>,
    /// The commit word's high half, in place.
    generation: u64,
    index: u32,
    /// Its header and data, valid while `bytes` is not 0: the mapping lives as long as `shared`.
    #[cfg(not(loom))]
    header: *const BlockHeader,
    #[cfg(not(loom))]
    data: *mut u8,
}

impl OpenBlock {
    const NONE: OpenBlock = OpenBlock {
        committed: 0,
        capacity: 0,
        bytes: 0,
        records_left: None,
        generation: 0,
        index: 0,
        #[cfg(not(loom))]
        header: std::ptr::null(),
        #[cfg(not(loom))]
        data: std::ptr::null_mut(),
    };
}

// SAFETY: a lane is used by one thread at a time; its pointers lead into the mapping, which `shared`
// keeps alive and which may be used from any thread.
unsafe impl Send for Lane {}

impl Lane {
    pub(super) fn open(shared: Arc<Shared>, thread: ThreadId) -> Option<Lane> {
        if shared.mapping.pool().is_closed() {
            return None;
        }
        let id = shared.mapping.next_lane_id();
        let slot = (0..shared.mapping.layout().lanes()).find(|slot| {
            let free = &shared.mapping.slot(*slot).lane;
            free.compare_exchange(0, id, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })?;
        let place = shared.mapping.slot(slot);
        place.thread.store(thread.0, Ordering::Relaxed);
        place.depth.store(0, Ordering::Relaxed);
        Some(Lane {
            block: OpenBlock::NONE,
            sequence: 0,
            next_block: 0,
            id,
            slot,
            thread,
            may_wait: true,
            gave_up: false,
            ring: Ring::default(),
            shared,
        })
    }

    /// Appends `record`, with the lane's next sequence number. `false` says that it was dropped, and
    /// counted.
    #[inline]
    pub fn write<R: Record>(&mut self, record: R) -> bool {
        const {
            assert!(
                R::FIXED,
                "records of variable size have writers of their own"
            )
        };
        if !self.has_room(R::KIND, size_of::<R>()) {
            return false;
        }
        self.commit_record(record);
        true
    }

    /// Appends `record` if that takes no waiting, whatever the policy. `false` says that there is no room
    /// now, and counts nothing: the caller keeps the record for another time.
    #[inline]
    pub fn try_write<R: Record>(&mut self, record: R) -> bool {
        const { assert!(R::FIXED) };
        let has_room = self.has_room_now(size_of::<R>());
        if has_room {
            self.commit_record(record);
        }
        has_room
    }

    /// Whether `bytes` more fit into the block as it is.
    #[inline(always)]
    pub(crate) fn fits_now(&self, bytes: usize) -> bool {
        self.block.committed + bytes as u32 <= self.block.capacity
    }

    /// Whether `bytes` more fit without waiting, if need be in another block.
    #[inline(always)]
    pub(crate) fn has_room_now(&mut self, bytes: usize) -> bool {
        self.fits_now(bytes) || self.make_room(bytes, false)
    }

    /// Appends the used part of `arguments`.
    #[inline]
    pub fn write_arguments(&mut self, arguments: &mut Arguments) -> bool {
        let used =
            Arguments::bytes_for((arguments.count as usize).min(crate::record::MAX_ARGUMENTS));
        arguments.header.words = (used / 8) as u16;
        if !self.has_room(Kind::ARGUMENTS, used) {
            return false;
        }
        arguments.header.sequence = self.sequence;
        self.commit(&bytemuck::bytes_of(arguments)[..used]);
        true
    }

    /// Whether `bytes` more fit, if need be in another block. If not, a record of `kind` is counted as dropped.
    #[inline(always)]
    pub(crate) fn has_room(&mut self, kind: Kind, bytes: usize) -> bool {
        self.fits_now(bytes) || self.change_block(kind, bytes)
    }

    /// Publishes `record`, which begins with a header, as the next one; there must be room for it.
    #[cfg(not(loom))]
    #[inline(always)]
    fn commit_record<R: bytemuck::Pod>(&mut self, record: R) {
        self.commit_filled(|place| *place = record);
    }

    /// Publishes the record that `fill` puts together in its place, but for its sequence number; there must be room
    /// for it.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn commit_filled<R: bytemuck::Pod>(&mut self, fill: impl FnOnce(&mut R)) {
        let mut records = self.together();
        fill(records.place());
        records.put::<R>();
        records.publish();
    }

    /// Begins records that are published in one step; there must be room for all of them.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn together(&mut self) -> Together<'_> {
        Together {
            data: self.block.data,
            end: self.block.committed,
            sequence: self.sequence,
            generation: self.block.generation,
            header: self.block.header,
            lane: self,
        }
    }

    #[cfg(loom)]
    fn commit_record<R: bytemuck::Pod>(&mut self, mut record: R) {
        let bytes = bytemuck::bytes_of_mut(&mut record);
        bytes[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        self.commit(bytes);
    }

    /// Publishes `bytes` as the next record; there must be room for it.
    #[cfg(not(loom))]
    #[inline(always)]
    fn commit(&mut self, bytes: &[u8]) {
        self.sequence = self.sequence.wrapping_add(1);
        let block = &mut self.block;
        debug_assert!(bytes.len() <= (block.capacity - block.committed) as usize);
        // SAFETY: the lane has a block with room for `bytes` (`has_room` said so), which no one else
        // writes; readers stop at the committed length.
        unsafe {
            let to = block.data.add(block.committed as usize);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            block.committed += bytes.len() as u32;
            // Release: pairs with the acquire in `BlockHeader::committed`.
            (*block.header).commit.store(
                block.generation | u64::from(block.committed),
                Ordering::Release,
            );
        }
    }

    #[cfg(loom)]
    fn commit(&mut self, bytes: &[u8]) {
        self.sequence = self.sequence.wrapping_add(1);
        let block = &mut self.block;
        self.shared
            .mapping
            .write_words(block.index, block.committed, bytes);
        block.committed += bytes.len() as u32;
        self.shared.mapping.block(block.index).commit.store(
            block.generation | u64::from(block.committed),
            Ordering::Release,
        );
    }

    /// Whether the lane may wait for an empty block under [`Policy::Lossless`]. Never on the
    /// collector's or a tool's own threads, in callbacks of a runtime, or in signal handlers.
    pub fn set_may_wait(&mut self, may_wait: bool) -> bool {
        std::mem::replace(&mut self.may_wait, may_wait)
    }

    /// A number that no other lane of the buffer has at the same time, below the layout's number of lanes.
    pub fn number(&self) -> u32 {
        self.slot
    }

    /// The thread it was opened for.
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    pub(crate) fn slot(&self) -> &LaneSlot {
        self.shared.mapping.slot(self.slot)
    }

    /// Where calls in progress on this lane stand, for whoever looks at a process that hangs or has died.
    #[cfg(not(loom))]
    pub(crate) fn open_calls(&self) -> OpenCalls {
        OpenCalls {
            place: std::ptr::from_ref(self.slot()),
            _memory: self.shared.clone(),
        }
    }

    /// The cold half of writing: hands the full block over and takes an empty one with room for
    /// `bytes`. `false` says that there is none, and that a record of `kind` was counted as dropped.
    #[cold]
    #[inline(never)]
    fn change_block(&mut self, kind: Kind, bytes: usize) -> bool {
        let fits = self.make_room(bytes, self.may_wait);
        if !fits {
            self.count_drop(kind);
        }
        fits
    }

    /// Makes room for a record of `bytes`. `false`: there is none, and the lane may not wait for it.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, bytes: usize, may_wait: bool) -> bool {
        let bytes = bytes as u32;
        // What the lane itself has to say may take all of a block that has a limit of records.
        for _ in 0..MAX_OWN_BLOCKS {
            if self.fits(bytes) {
                return true;
            }
            if !self.next_block(may_wait) || bytes > self.block.bytes {
                return false;
            }
        }
        self.fits(bytes)
    }

    /// Whether a record of `bytes` fits into the block; it is then the next one.
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

    /// Hands the full block over and takes an empty one, with what the lane itself has to say at its
    /// beginning. `false`: there is none, and the lane may not wait for one.
    #[cold]
    #[inline(never)]
    fn next_block(&mut self, may_wait: bool) -> bool {
        self.give_block();
        let shared = self.shared.clone();
        if shared.policy == Policy::Overwrite {
            let Some(block) = self.ring.take(&shared) else {
                return false;
            };
            shared.mapping.block(block).set_begun(clock::now().0);
            self.take_block(block);
            self.report_drops();
            return true;
        }
        let (mapping, pool) = (&shared.mapping, shared.mapping.pool());
        let (mut waited, mut futile) = (None, 0);
        let mut last_sign = (mapping.looks().load(Ordering::Relaxed), None);
        let block = loop {
            if let Some(block) = pool.take() {
                break block;
            }
            shared.wake().wake();
            if !may_wait
                || self.gave_up
                || shared.policy != Policy::Lossless
                || pool.is_closed()
                || shared.collector_is_lost()
                || is_delivering()
            {
                return false;
            }
            futile = if self.any_block_is_full() {
                0
            } else {
                futile + 1
            };
            if futile > FUTILE_WAITS {
                self.gave_up = true;
                return false;
            }
            let looks = mapping.looks().load(Ordering::Relaxed);
            let since = *last_sign.1.get_or_insert_with(Instant::now);
            if looks != last_sign.0 {
                last_sign = (looks, None);
            } else if since.elapsed() > PATIENCE {
                let lost = 1 + u64::from(looks);
                shared.collector_lost.store(lost, Ordering::Relaxed);
                return false;
            }
            waited.get_or_insert_with(clock::now);
            pool.wait();
        };
        self.gave_up = false;
        self.take_block(block);
        if let Some(start) = waited {
            let mut overhead = Overhead::blank();
            (overhead.start, overhead.end) = (start, clock::now());
            (overhead.thread, overhead.what) = (self.thread, OverheadKind::WAIT);
            self.commit_extra(overhead);
        }
        self.report_drops();
        true
    }

    fn take_block(&mut self, index: u32) {
        let mapping = &self.shared.mapping;
        #[cfg(not(loom))]
        mapping.takes(index);
        let header = mapping.block(index);
        let generation = header.begin(Owner {
            lane: self.id,
            thread: self.thread,
            sequence: self.next_block,
            first_record: self.sequence,
        });
        self.next_block = self.next_block.wrapping_add(1);
        let bytes = mapping.capacity(index);
        let records_left = match mapping.most_records(index) {
            0 => None,
            most => Some(most),
        };
        self.block = OpenBlock {
            committed: 0,
            capacity: if records_left.is_none() { bytes } else { 0 },
            bytes,
            records_left,
            generation: u64::from(generation) << 32,
            index,
            #[cfg(not(loom))]
            header,
            #[cfg(not(loom))]
            data: mapping.data(index),
        };
    }

    /// Whether the collector has a block to empty.
    fn any_block_is_full(&self) -> bool {
        let mapping = &self.shared.mapping;
        (0..mapping.layout().blocks()).any(|block| mapping.block_state(block) == BlockState::Full)
    }

    /// Gives the lane's block to the collector, however full it is.
    fn give_block(&mut self) {
        if self.block.bytes > 0 {
            let header = self.shared.mapping.block(self.block.index);
            if self.shared.policy == Policy::Overwrite {
                header.fill_kept();
                self.ring.keep(self.block.index);
                self.block = OpenBlock::NONE;
                return;
            }
            header.fill();
            self.block = OpenBlock::NONE;
            // Waking is a system call: as long as there are blocks enough, the collector's next look will do.
            let wake = self.shared.wake();
            if self.shared.mapping.pool().is_low() {
                wake.wake();
            } else {
                wake.tell();
            }
        }
    }

    /// Counts a record of `kind` as dropped. It consumes a sequence number, so that the gap shows.
    fn count_drop(&mut self, kind: Kind) {
        self.sequence = self.sequence.wrapping_add(1);
        let (slot, now) = (self.slot(), clock::now());
        if slot
            .dropped
            .iter()
            .all(|count| count.load(Ordering::Relaxed) == 0)
        {
            slot.first_drop.store(now.0, Ordering::Relaxed);
        }
        slot.last_drop.store(now.0, Ordering::Relaxed);
        slot.dropped[kind.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// Writes what was dropped since the last report into the fresh block.
    fn report_drops(&mut self) {
        for index in 0..crate::record::KINDS {
            let slot = self.slot();
            let count = slot.dropped[index].load(Ordering::Relaxed);
            if count == 0 {
                continue;
            }
            let mut loss = Loss::blank();
            loss.count = count;
            loss.first = Ticks(slot.first_drop.load(Ordering::Relaxed));
            loss.last = Ticks(slot.last_drop.load(Ordering::Relaxed));
            loss.thread = self.thread;
            loss.lost = Kind::from_index(index).unwrap_or_default();
            if !self.commit_extra(loss) {
                // In the next block.
                return;
            }
            self.shared.reported[index].fetch_add(count, Ordering::Relaxed);
            self.slot().dropped[index].fetch_sub(count, Ordering::Relaxed);
        }
    }

    /// Commits a record of the lane's own at the beginning of a fresh block, if it fits.
    fn commit_extra<R: Record>(&mut self, record: R) -> bool {
        let fits = self.fits(size_of::<R>() as u32);
        if fits {
            self.commit_record(record);
        }
        fits
    }
}

/// Records on their way into a lane's block, which has room for them. They are put together where they go: once there they
/// are copied nowhere, since processors wait for what has just been stored in smaller pieces.
#[cfg(not(loom))]
#[must_use]
pub(crate) struct Together<'a> {
    // What is written through a pointer could be any field of the lane: these are read before.
    data: *mut u8,
    /// Where the next one goes.
    end: u32,
    /// That of the next one.
    sequence: u32,
    generation: u64,
    header: *const BlockHeader,
    lane: &'a mut Lane,
}

#[cfg(not(loom))]
impl Together<'_> {
    /// The place of the next record, to be filled but for the sequence number, and then [put](Together::put).
    #[inline(always)]
    pub fn place<R: bytemuck::Pod>(&mut self) -> &mut R {
        const { assert!(size_of::<R>() >= 8 && align_of::<R>() == 8) };
        debug_assert!(self.end + size_of::<R>() as u32 <= self.lane.block.capacity);
        // SAFETY: the lane has a block with room for the record (whoever puts it has asked), which no one else writes;
        // readers stop at the committed length. Records are aligned to 8, and so is that length. Whatever the memory holds
        // is a value of `R`.
        unsafe { &mut *self.data.add(self.end as usize).cast::<R>() }
    }

    /// The record that is in its [place](Together::place) is one of them.
    #[inline(always)]
    pub fn put<R: bytemuck::Pod>(&mut self) {
        self.put_bytes(size_of::<R>());
    }

    /// Puts a record of the arguments of a call.
    #[inline(always)]
    pub fn put_arguments(&mut self, head: ArgumentsHead, values: &[u64]) {
        let bytes = size_of::<ArgumentsHead>() + size_of_val(values);
        debug_assert!(self.end + bytes as u32 <= self.lane.block.capacity);
        // SAFETY: as in `place`.
        unsafe {
            let to = self.data.add(self.end as usize).cast::<ArgumentsHead>();
            to.write(head);
            let mut to = to.add(1).cast::<u64>();
            // Not copied as a whole: see above.
            for value in values {
                to.write_volatile(*value);
                to = to.add(1);
            }
        }
        self.put_bytes(bytes);
    }

    #[inline(always)]
    fn put_bytes(&mut self, bytes: usize) {
        // SAFETY: as in `place`. The sequence number is the second word of every record's header.
        unsafe {
            let to = self.data.add(self.end as usize).cast::<u32>();
            to.add(1).write(self.sequence);
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.end += bytes as u32;
    }

    /// They are there, for whoever collects the buffer.
    #[inline(always)]
    pub fn publish(self) {
        self.lane.sequence = self.sequence;
        self.lane.block.committed = self.end;
        let commit = self.generation | u64::from(self.end);
        // SAFETY: the lane has a block. Release: pairs with the acquire in `BlockHeader::committed`.
        unsafe { (*self.header).commit.store(commit, Ordering::Release) };
    }
}

impl Shared {
    /// What wakes whoever collects the buffer.
    pub(super) fn wake(&self) -> &Wake {
        #[cfg(not(loom))]
        if let Some(number) = self.served_by.load(Ordering::Relaxed).checked_sub(1) {
            return super::threads::wake_of(number);
        }
        self.mapping.wake()
    }

    /// Whether a lane has waited in vain for the collector to do anything, and it still has not.
    fn collector_is_lost(&self) -> bool {
        let looks = self.mapping.looks().load(Ordering::Relaxed);
        self.collector_lost.load(Ordering::Relaxed) == 1 + u64::from(looks)
    }
}

impl Drop for Lane {
    /// Gives the block to the collector and the slot to whoever comes next. Drops that could not be
    /// reported any more are added to those without a lane.
    fn drop(&mut self) {
        self.give_block();
        self.shared
            .left_behind
            .fetch_add(u64::from(!self.ring.is_empty()), Ordering::Relaxed);
        let slot = self.slot();
        for (index, dropped) in slot.dropped.iter().enumerate() {
            let count = dropped.swap(0, Ordering::Relaxed);
            if count > 0 {
                self.shared
                    .mapping
                    .unlaned_by_index(index)
                    .fetch_add(count, Ordering::Relaxed);
            }
        }
        slot.depth.store(0, Ordering::Relaxed);
        slot.lane.store(0, Ordering::Release);
    }
}

/// The open-call stack of a lane. It may be used as long as the lane is its thread's.
#[cfg(not(loom))]
pub(crate) struct OpenCalls {
    place: *const LaneSlot,
    _memory: Arc<Shared>,
}

// SAFETY: it leads to atomics in memory that it keeps alive.
#[cfg(not(loom))]
unsafe impl Send for OpenCalls {}

#[cfg(not(loom))]
impl OpenCalls {
    #[inline(always)]
    fn place(&self) -> &LaneSlot {
        // SAFETY: within the mapping that `_memory` keeps alive; atomics only.
        unsafe { &*self.place }
    }

    /// A call is going to begin, within `depth` others. Those that did not concern this lane leave gaps.
    #[inline(always)]
    pub fn prepare(&self, depth: u32, correlation: CorrelationId, operation: Operation) {
        let place = self.place();
        let known = place.depth.load(Ordering::Relaxed);
        if known != depth {
            self.come_to(depth, known);
        }
        if let Some(call) = place.calls.get(depth as usize) {
            call.correlation.store(correlation.0, Ordering::Relaxed);
            let operation = u32::from(operation.domain.0) | u32::from(operation.number) << 16;
            call.operation.store(operation, Ordering::Relaxed);
        }
    }

    /// It begins.
    #[inline(always)]
    pub fn enter(&self, depth: u32, start: Ticks) {
        let place = self.place();
        if let Some(call) = place.calls.get(depth as usize) {
            call.start.store(start.0, Ordering::Relaxed);
        }
        // Release: a depth that is seen has its call.
        place.depth.store(depth + 1, Ordering::Release);
    }

    #[cold]
    #[inline(never)]
    fn come_to(&self, depth: u32, known: u32) {
        if known > depth {
            // Calls that were jumped out of: their places are taken now.
            return self.close(depth);
        }
        let calls = self.place().calls.iter();
        for gap in calls.take(depth as usize).skip(known as usize) {
            gap.correlation.store(0, Ordering::Relaxed);
        }
    }

    /// Only `depth` calls are in progress now.
    #[inline]
    pub fn close(&self, depth: u32) {
        self.place().depth.store(depth, Ordering::Release);
    }
}
