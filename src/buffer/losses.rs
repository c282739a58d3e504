//! Counts of dropped records, and their conversion to [`Loss`] records.
//!
//! A lane counts its drops in its slot of the mapping and reports them at the beginning of its next block. Drops that
//! no lane reports are reported by the end of the session, or by the recovery. A process may die between any two
//! instructions, and its recovery must find each drop once: in a committed report or in a counter.
//!
//! A lane that reports a counter sets [`REPORTING`] in it and notes the position in its block at which the report will
//! end; the counter is valid until the block's commit word has reached that position. Counters of a lane that has ended
//! stay in its slot.

use super::LaneSlot;
#[cfg(not(loom))]
use super::{BlockView, FINAL_LOSSES, Mapping};
use crate::platform::sync::Ordering;
#[cfg(not(loom))]
use gputrail_record::KINDS;
use gputrail_record::{Kind, Loss, ThreadId, Ticks};

/// Bit of a drop counter: the slot's lane is writing the report, which ends at [`LaneSlot::report`].
const REPORTING: u64 = 1 << 63;

impl LaneSlot {
    /// Counts a record of `kind` that was dropped at `now` by the lane of `thread`, which uses the slot.
    pub(super) fn count_drop(&self, kind: Kind, thread: ThreadId, now: Ticks) {
        if !self.has_drops() {
            self.first_drop.store(now.0, Ordering::Relaxed);
            self.dropped_by.store(thread.0, Ordering::Relaxed);
        }
        self.last_drop.store(now.0, Ordering::Relaxed);
        self.dropped[kind.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// Whether there are unreported drops.
    pub(super) fn has_drops(&self) -> bool {
        let mut counters = self.dropped.iter();
        counters.any(|dropped| dropped.load(Ordering::Relaxed) != 0)
    }

    /// The number of unreported drops of a kind, by [`Kind::index`]. A report that is being written counts as not
    /// written.
    pub(super) fn drops(&self, kind: usize) -> u64 {
        self.dropped[kind].load(Ordering::Relaxed) & !REPORTING
    }

    /// Lane: notes that `count` drops of a kind are reported by a record that ends at `end` in `block`; the lane
    /// commits it next.
    pub(super) fn begin_report(&self, kind: usize, count: u64, block: u32, end: u32) {
        let place = u64::from(block) << 32 | u64::from(end);
        self.report.store(place, Ordering::Relaxed);
        // Release: the position is stored before the bit, and the bit before the commit word.
        self.dropped[kind].store(count | REPORTING, Ordering::Release);
    }

    /// Lane: clears the counter after the report has been committed.
    pub(super) fn end_report(&self, kind: usize) {
        // Release: the commit word is stored before.
        self.dropped[kind].store(0, Ordering::Release);
    }

    /// The number of drops of a kind that have no committed report in `mapping`.
    #[cfg(not(loom))]
    fn unreported(&self, mapping: &Mapping, kind: usize) -> u64 {
        let count = self.dropped[kind].load(Ordering::Acquire);
        if count & REPORTING == 0 {
            return count;
        }
        let place = self.report.load(Ordering::Acquire);
        let (block, end) = ((place >> 32) as u32, place as u32);
        // The memory may belong to another process and contain any value.
        let is_committed =
            block < mapping.layout().blocks() && mapping.block(block).committed() >= end;
        if is_committed { 0 } else { count & !REPORTING }
    }
}

/// Reports of all drops in `mapping` that no lane has reported. Drops without a lane end at `last`.
#[cfg(not(loom))]
pub fn unreported(mapping: &Mapping, last: Ticks) -> Vec<Loss> {
    let mut losses = Vec::new();
    for index in 0..mapping.layout().lanes() {
        let slot = mapping.slot(index);
        for kind in 0..KINDS {
            let mut loss = loss_of(kind, slot.unreported(mapping, kind));
            loss.first = Ticks(slot.first_drop.load(Ordering::Relaxed));
            loss.last = Ticks(slot.last_drop.load(Ordering::Relaxed));
            loss.thread = ThreadId(slot.dropped_by.load(Ordering::Relaxed));
            losses.push(loss);
        }
    }
    for kind in 0..KINDS {
        let mut loss = loss_of(kind, mapping.unlaned_by_index(kind).load(Ordering::Relaxed));
        loss.last = last;
        losses.push(loss);
    }
    losses.retain(|loss| loss.count > 0);
    losses
}

/// Shows the [`unreported`] drops, if there are any: as a block of lane 0, and one by one.
#[cfg(not(loom))]
pub fn show_unreported(mapping: &Mapping, last: Ticks, show: impl FnOnce(&BlockView<'_>, &[Loss])) {
    let mut losses = unreported(mapping, last);
    for (sequence, loss) in (0..).zip(&mut losses) {
        loss.header.sequence = sequence;
    }
    if !losses.is_empty() {
        let view = BlockView {
            lane: 0,
            thread: ThreadId::NONE,
            sequence: FINAL_LOSSES,
            offset: 0,
            first_record: 0,
            bytes: bytemuck::cast_slice(&losses),
        };
        show(&view, &losses);
    }
}

/// Forgets all drops: they have been delivered. No lane uses the mapping any more.
#[cfg(not(loom))]
pub fn forget_drops(mapping: &Mapping) {
    for kind in 0..KINDS {
        for slot in 0..mapping.layout().lanes() {
            mapping.slot(slot).end_report(kind);
        }
        mapping.unlaned_by_index(kind).store(0, Ordering::Relaxed);
    }
}

/// A report of `count` drops of a kind, by [`Kind::index`].
pub(super) fn loss_of(kind: usize, count: u64) -> Loss {
    let mut loss = Loss::blank();
    loss.count = count;
    loss.lost = Kind::from_index(kind).unwrap_or_default();
    loss
}
