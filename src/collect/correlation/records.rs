//! Writes a thread's records to the buffers that want them, through one lane in each.

use super::{CallInProgress, HostThread};
use crate::switchboard::{Buffers, Interest, ReportedPart};
use gputrail_buffer::{Lane, QueuePlace, ReservedBatch, WhenFull};
use gputrail_record::*;

/// Records that a thread loses for want of a lane before it asks for one again.
const RETRY: u32 = 64;

impl HostThread {
    /// Writes a record to the buffers that want its kind now. `false`: one of them dropped it, and counted that.
    #[inline]
    pub fn write<R: Record>(&mut self, record: R) -> bool {
        self.write_to(self.board.buffers_for(R::KIND), record)
    }

    /// Writes a record to `buffers`. `false`: one of them dropped it, and counted that.
    #[inline(always)]
    pub fn write_to<R: Record>(&mut self, buffers: Buffers, record: R) -> bool {
        self.fill(buffers, |place: &mut R| *place = record)
    }

    /// [`HostThread::write_to`] for a record that `fill` builds where it stays. Records of calls and of work get the
    /// external id that the contexts of each buffer have at present.
    #[inline(always)]
    pub fn fill<R: Record>(&mut self, buffers: Buffers, fill: impl Fn(&mut R)) -> bool {
        let when_full = WhenFull::Drop(R::KIND);
        let put = |batch: &mut ReservedBatch<'_>, external: ExternalId| {
            batch.put(|record: &mut R| {
                fill(record);
                if let Some(offset) = const { R::KIND.external_offset() } {
                    let place = &mut bytemuck::bytes_of_mut(record)[offset..offset + 8];
                    place.copy_from_slice(bytemuck::bytes_of(&external));
                }
            });
        };
        let left = self.put(buffers, (R::KIND, size_of::<R>()), when_full, put);
        if const { QueuePlace::is_in(R::KIND) } && !left.is_none() {
            self.count_by_place(left, fill);
        }
        left.is_none()
    }

    /// Writes a record about a call of another thread, with the external id that it has, to `buffers`. Does not wait, and
    /// counts it as dropped where there is no room. For callbacks of runtimes that report work after its call.
    pub fn write_late<R: Record>(&mut self, buffers: Buffers, record: R) {
        self.write_at_once(buffers, record);
    }

    /// Writes a record to `buffers` without waiting, and counts it as dropped where there is no room.
    #[cold]
    pub(super) fn write_at_once<R: Record>(&mut self, buffers: Buffers, record: R) {
        let when_full = WhenFull::DropAtOnce(R::KIND);
        let put = |batch: &mut ReservedBatch<'_>, _| batch.put(|place: &mut R| *place = record);
        let left = self.put(buffers, (R::KIND, size_of::<R>()), when_full, put);
        if const { QueuePlace::is_in(R::KIND) } && !left.is_none() {
            self.count_by_place(left, |place: &mut R| *place = record);
        }
    }

    /// Counts a record that `buffers` have dropped by the place that it names.
    #[cold]
    #[inline(never)]
    fn count_by_place<R: Record>(&mut self, buffers: Buffers, fill: impl Fn(&mut R)) {
        let mut record = R::zeroed();
        fill(&mut record);
        let place = QueuePlace::of(R::KIND, bytemuck::bytes_of(&record));
        for slot in buffers.slots() {
            match self.lanes.using(slot) {
                Some(lane) => lane.count_drop_of(place),
                None => self.board.count_drop_of(slot, place),
            }
        }
    }

    /// Writes a record that `fill` builds where it stays to those of `buffers` whose lane has room without waiting, and
    /// returns the others.
    #[inline(always)]
    pub fn try_fill<R: Record>(&mut self, buffers: Buffers, fill: impl Fn(&mut R)) -> Buffers {
        let put = |batch: &mut ReservedBatch<'_>, _| batch.put(&fill);
        self.put(buffers, (R::KIND, size_of::<R>()), WhenFull::Keep, put)
    }

    /// Writes the arguments of `call` to the buffers that want them.
    #[inline(never)]
    pub fn write_arguments(&mut self, call: &CallInProgress, values: &[u64]) {
        let values = &values[..values.len().min(MAX_ARGUMENTS)];
        let head = ArgumentsHead::new(call.correlation, call.operation, values.len());
        let (buffers, bytes) = (self.annotated(call), Arguments::bytes_for(values.len()));
        let when_full = WhenFull::Drop(Kind::ARGUMENTS);
        self.put(buffers, (Kind::ARGUMENTS, bytes), when_full, |batch, _| {
            batch.put_arguments(head, values);
        });
    }

    /// Puts a record of `bytes` into a batch of its own in each of `buffers`, of which there is nearly always one.
    /// `put` gets the buffer's external id if the kind has one. Returns the buffers that have no room for the record;
    /// `when_full` was done for them.
    #[inline(always)]
    fn put(
        &mut self,
        buffers: Buffers,
        (kind, bytes): (Kind, usize),
        when_full: WhenFull,
        put: impl Fn(&mut ReservedBatch<'_>, ExternalId),
    ) -> Buffers {
        let mut left = Buffers::NONE;
        for slot in buffers.slots() {
            let external = match kind.external_offset() {
                Some(_) => {
                    let contexts = self.board.external().of_buffer(slot);
                    self.external_of(contexts, ReportedPart::of(kind))
                }
                None => ExternalId::NONE,
            };
            loop {
                if let Some(mut lane) = self.lanes.using(slot)
                    && let Some(mut batch) = lane.reserve(bytes)
                {
                    put(&mut batch, external);
                    batch.publish();
                    break;
                }
                if !self.make_room(slot, bytes, when_full) {
                    left = left.or(Interest::buffer(slot).buffers());
                    break;
                }
            }
        }
        left
    }

    /// Opens a lane in the buffer of `slot` if the thread has none, and makes room in it. `false`: there is no room,
    /// and `when_full` was done.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, slot: usize, bytes: usize, when_full: WhenFull) -> bool {
        let is_open = self.lanes.is_open(slot) || self.open(slot);
        let lane = if is_open {
            self.lanes.using(slot)
        } else {
            None
        };
        match (lane, when_full) {
            (Some(mut lane), when_full) => lane.make_room(bytes, when_full),
            (None, WhenFull::Drop(kind) | WhenFull::DropAtOnce(kind)) => {
                let buffers = Interest::buffer(slot).buffers();
                self.board.count_unlaned(buffers, kind);
                false
            }
            (None, WhenFull::Keep) => false,
        }
    }

    /// The buffers that want records of `kind` now.
    #[inline]
    pub fn buffers_for(&self, kind: Kind) -> Buffers {
        self.board.buffers_for(kind)
    }

    /// The buffers that get the arguments of `call`.
    fn annotated(&self, call: &CallInProgress) -> Buffers {
        if call.interest.has_arguments() {
            call.interest
                .buffers()
                .and(self.board.selected(Kind::ARGUMENTS))
        } else {
            Buffers::NONE
        }
    }

    /// Opens a lane in the buffer of `slot`, for the first record.
    #[cold]
    #[inline(never)]
    pub(super) fn open(&mut self, slot: usize) -> bool {
        // Opening takes a lock: a thread that was refused does not try it for every record.
        let refused = self.refused[slot];
        if !refused.is_multiple_of(RETRY) {
            self.refused[slot] = refused.wrapping_add(1);
            return false;
        }
        let may_wait = self.may_wait;
        let prepare = |lane: &mut Lane| {
            lane.set_may_wait(may_wait);
        };
        let opened = self
            .board
            .open_lane(slot, self.thread, prepare, &mut self.lanes);
        self.refused[slot] = if opened { 0 } else { refused.wrapping_add(1) };
        opened
    }

    /// Opens the thread's lanes in all buffers now instead of at its first records. `false`: a buffer has no lane left.
    pub fn open_lanes(&mut self) -> bool {
        self.board.buffers().slots().all(|slot| self.open(slot))
    }
}
