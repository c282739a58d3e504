//! Batches: records on their way into a lane's block.
//!
//! [`Lane::reserve`] begins a batch, [`ReservedBatch::put`] builds each record at its final address, and
//! [`ReservedBatch::publish`] makes all of them visible with one release store. No other code writes records, and the
//! models of `models.rs` run it as it is.

use super::Lane;
use super::block::BlockHeader;
use crate::platform::sync::Ordering;
use gputrail_record::{ArgumentsHead, Record};

/// Reserved space at the end of a lane's block. Dropping a batch that was not published discards its records.
#[must_use = "records become visible when the batch is published"]
pub struct ReservedBatch<'a> {
    // Copies of the lane's fields: the compiler cannot prove that a store to a record leaves the lane unchanged, and
    // would load them again after each store.
    data: *mut u8,
    header: *const BlockHeader,
    /// The commit word's high half, in place.
    generation: u64,
    /// Offset in the block of the next record.
    end: u32,
    /// Sequence number of the next record.
    sequence: u32,
    lane: &'a mut Lane,
}

impl<'a> ReservedBatch<'a> {
    /// A batch at the end of `lane`'s block.
    #[inline(always)]
    pub(super) fn begin(lane: &'a mut Lane) -> ReservedBatch<'a> {
        ReservedBatch {
            data: lane.block.data,
            header: lane.block.header,
            generation: lane.block.generation,
            end: lane.block.committed,
            sequence: lane.sequence,
            lane,
        }
    }

    /// Adds the next record, which `fill` constructs at its final address; its sequence number is set afterwards.
    ///
    /// A record that is constructed elsewhere and copied costs more: a processor that copies data stored in smaller
    /// pieces waits until those stores have left its store buffer.
    #[inline(always)]
    pub fn put<R: Record>(&mut self, fill: impl FnOnce(&mut R)) {
        const {
            assert!(
                R::FIXED,
                "records of variable size have methods of their own"
            )
        };
        const { assert!(align_of::<R>() == 8) };
        let address = self.address(size_of::<R>());
        // SAFETY: `address` says that the record lies in the lane's block, which nobody else writes; readers stop at the
        // committed length. Records and that length are aligned to 8, and all bytes are valid for a record.
        fill(unsafe { &mut *address.cast::<R>() });
        self.advance(size_of::<R>());
    }

    /// Adds the arguments of a call: `head` followed by `values`.
    #[inline(always)]
    pub fn put_arguments(&mut self, head: ArgumentsHead, values: &[u64]) {
        let bytes = size_of::<ArgumentsHead>() + size_of_val(values);
        let head_address = self.address(bytes).cast::<ArgumentsHead>();
        // SAFETY: as in `put`, with room for the values behind the head.
        unsafe {
            head_address.write(head);
            let mut address = head_address.add(1).cast::<u64>();
            // One by one, since they were stored one by one; see `put`.
            for value in values {
                address.write_volatile(*value);
                address = address.add(1);
            }
        }
        self.advance(bytes);
    }

    /// The address of the next record, of `bytes`.
    #[inline(always)]
    fn address(&self, bytes: usize) -> *mut u8 {
        debug_assert!(self.end as usize + bytes <= self.lane.block.capacity as usize);
        #[cfg(loom)]
        self.lane.note_write(self.end, bytes as u32);
        // SAFETY: within the block: the batch was reserved with room for its records.
        unsafe { self.data.add(self.end as usize) }
    }

    /// Completes the next record with its sequence number.
    #[inline(always)]
    fn advance(&mut self, bytes: usize) {
        // SAFETY: as in `put`. The sequence number is the second word of every record's header.
        unsafe {
            let header = self.data.add(self.end as usize).cast::<u32>();
            header.add(1).write(self.sequence);
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.end += bytes as u32;
    }

    /// Makes the records visible to readers of the block.
    #[inline(always)]
    pub fn publish(self) {
        self.lane.sequence = self.sequence;
        self.lane.block.committed = self.end;
        let commit = self.generation | u64::from(self.end);
        // SAFETY: the lane has a block, whose header stays mapped. Release: pairs with the acquire in
        // `BlockHeader::committed`.
        unsafe { (*self.header).commit.store(commit, Ordering::Release) };
    }
}
