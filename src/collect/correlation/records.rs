//! A thread's records on their way to the buffers that want them, a lane in each.

use super::{Call, HostThread};
use crate::buffer::Lane;
use crate::buffer::lanes::Using;
use crate::collect::switchboard::{Buffers, Interest};
use crate::record::*;
use bytemuck::Pod;

/// Records that a thread loses for want of a lane before it asks for one again.
const RETRY: u32 = 64;

impl HostThread {
    /// Writes a record of another kind to the buffers that want it now. `false` says that it was dropped, and
    /// counted.
    #[inline]
    pub fn write<R: Record>(&mut self, record: R) -> bool {
        self.write_to(self.board.buffers_for(R::KIND), record)
    }

    /// Writes a record to `buffers`. `false` says that one of them has not got it, and counted that.
    #[inline(always)]
    pub fn write_to<R: Record>(&mut self, buffers: Buffers, record: R) -> bool {
        self.put(buffers, R::KIND, |place| *place = record)
    }

    /// The same with a record that `fill` puts together in its place.
    #[inline(always)]
    pub(crate) fn fill<R: Record>(&mut self, buffers: Buffers, fill: impl Fn(&mut R)) -> bool {
        self.put(buffers, R::KIND, fill)
    }

    /// Writes a record to those of `buffers` where that takes no waiting (see [`Lane::try_write`]), and returns the
    /// others.
    #[inline(always)]
    pub fn try_write_to<R: Record>(&mut self, buffers: Buffers, record: R) -> Buffers {
        self.try_fill(buffers, |place| *place = record)
    }

    /// The same with a record that `fill` puts together in its place.
    #[inline(always)]
    pub(crate) fn try_fill<R: Record>(
        &mut self,
        buffers: Buffers,
        fill: impl Fn(&mut R),
    ) -> Buffers {
        let write = |lane: &mut Lane| lane.commit_filled(&fill);
        self.put_into_each(buffers, None, size_of::<R>(), write)
    }

    /// Writes a record of `kind`.
    #[inline(always)]
    pub(super) fn put<R: Pod>(
        &mut self,
        buffers: Buffers,
        kind: Kind,
        fill: impl Fn(&mut R),
    ) -> bool {
        let write = |lane: &mut Lane| lane.commit_filled(&fill);
        let left = self.put_into_each(buffers, Some(kind), size_of::<R>(), write);
        left.is_none()
    }

    /// Writes the arguments of `call`.
    #[inline(never)]
    pub(super) fn put_arguments(&mut self, call: &Call, values: &[u64]) {
        let values = &values[..values.len().min(MAX_ARGUMENTS)];
        let (correlation, operation) = (call.correlation, call.operation);
        let head = ArgumentsHead::new(correlation, operation, values.len());
        let write = |lane: &mut Lane| {
            let mut records = lane.together();
            records.put_arguments(head, values);
            records.publish();
        };
        let (buffers, bytes) = (self.annotated(call), Arguments::bytes_for(values.len()));
        self.put_into_each(buffers, Some(Kind::ARGUMENTS), bytes, write);
    }

    /// Has a record of `bytes` written to `buffers`; nearly always there is one of them. If it is of `kind` its loss is
    /// counted where there is no room; without one the lane does not wait. Returns those that have not got it.
    #[inline(always)]
    fn put_into_each(
        &mut self,
        buffers: Buffers,
        kind: Option<Kind>,
        bytes: usize,
        write: impl Fn(&mut Lane),
    ) -> Buffers {
        let mut left = Buffers::NONE;
        for slot in buffers.slots() {
            loop {
                if let Some(mut lane) = self.room_in(slot, bytes) {
                    write(&mut lane);
                    break;
                }
                if !self.make_room(slot, kind, bytes) {
                    left = left.or(Interest::buffer(slot).buffers());
                    break;
                }
            }
        }
        left
    }

    /// The lane in `slot`, if it has room for `bytes` as it is.
    #[inline(always)]
    pub(crate) fn room_in(&mut self, slot: usize, bytes: usize) -> Option<Using<'_>> {
        self.lanes.with_room(slot, bytes)
    }

    /// Has the thread have a lane in `slot`, with room for a record of `bytes`, which is put there next. `false`: there
    /// is none, and if the record is of a `kind` that was counted.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, slot: usize, kind: Option<Kind>, bytes: usize) -> bool {
        let is_open = self.lanes.is_open(slot) || self.open(slot);
        let lane = match is_open {
            true => self.lanes.using(slot),
            false => None,
        };
        match (lane, kind) {
            (Some(mut lane), Some(kind)) => lane.has_room(kind, bytes),
            (Some(mut lane), None) => lane.has_room_now(bytes),
            (None, Some(kind)) => {
                let buffers = Interest::buffer(slot).buffers();
                self.board.count_unlaned(buffers, kind);
                false
            }
            (None, None) => false,
        }
    }

    /// The buffers that want records of `kind` now.
    #[inline]
    pub fn buffers_for(&self, kind: Kind) -> Buffers {
        self.board.buffers_for(kind)
    }

    /// Writes the arguments of a call.
    #[inline]
    pub fn write_arguments(&mut self, call: &Call, arguments: &mut Arguments) -> bool {
        let bytes = Arguments::bytes_for((arguments.count as usize).min(MAX_ARGUMENTS));
        let mut all = true;
        for slot in self.annotated(call).slots() {
            all &= self.make_room(slot, Some(Kind::ARGUMENTS), bytes)
                && self
                    .lanes
                    .using(slot)
                    .is_some_and(|mut lane| lane.write_arguments(arguments));
        }
        all
    }

    /// The buffers that get the arguments of `call`.
    #[inline]
    pub(super) fn annotated(&self, call: &Call) -> Buffers {
        match call.interest.has_arguments() {
            true => call
                .interest
                .buffers()
                .and(self.board.buffers_for(Kind::ARGUMENTS)),
            false => Buffers::NONE,
        }
    }

    /// Opens a lane in the buffer of `slot`, for the first record.
    #[cold]
    #[inline(never)]
    pub(super) fn open(&mut self, slot: usize) -> bool {
        // Asking is dear: not for every record of a thread that has been refused.
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

    /// Opens its lanes in all buffers there are, now and not at the first record. `false` if one of them has
    /// none left.
    pub fn open_lanes(&mut self) -> bool {
        self.board.buffers().slots().all(|slot| self.open(slot))
    }
}
