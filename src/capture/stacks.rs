//! The call stacks of the names store: each different one once, in memory of a fixed limit.

use gputrail_record::number_map::NumberMap;
use gputrail_record::{CallStack, CallStackId, FrameAddress, Records, flags};
use std::ops::Range;

/// The most bytes of the records of stacks.
pub(super) const MAX_BYTES: usize = 16 << 20;

/// The effect of asking for a stack's id.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NewStack {
    /// The stack was there, or is one more of too many.
    Known,
    /// It is new: the place of its record in [`Stacks::records`].
    Record(Range<usize>),
    /// It is the first one for which there is no room.
    TooMany,
}

/// The stacks, and the ids that they were given.
#[derive(Default)]
pub(super) struct Stacks {
    records: Vec<u8>,
    /// The place of each record, by id.
    places: Vec<u32>,
    /// Ids by the hash of the stack; a stack whose place is taken by another one has the next place.
    ids: NumberMap<u64, CallStackId>,
    is_full: bool,
}

impl Stacks {
    /// All records, in the order of their ids.
    pub fn records(&self) -> &[u8] {
        &self.records
    }

    /// The id of a stack, which gets one unless there are too many.
    pub fn id(&mut self, frames: &[FrameAddress], is_complete: bool) -> (CallStackId, NewStack) {
        let mut hash = hash(frames, is_complete);
        while let Some(id) = self.ids.get(&hash) {
            if self.is(*id, frames, is_complete) {
                return (*id, NewStack::Known);
            }
            hash = hash.wrapping_add(1);
        }
        let mut record = CallStack::new(frames, is_complete);
        if self.records.len() + record.bytes().len() > MAX_BYTES {
            let first = !std::mem::replace(&mut self.is_full, true);
            let new = if first {
                NewStack::TooMany
            } else {
                NewStack::Known
            };
            return (CallStackId::NONE, new);
        }
        let begin = self.records.len();
        // `MAX_BYTES` fits in 32 bits.
        self.places.push(begin as u32);
        record.id = CallStackId(self.places.len() as u32);
        self.records.extend_from_slice(record.bytes());
        self.ids.insert(hash, record.id);
        (record.id, NewStack::Record(begin..self.records.len()))
    }

    fn is(&self, id: CallStackId, frames: &[FrameAddress], is_complete: bool) -> bool {
        let place = (id.0 as usize).checked_sub(1);
        let place = place.and_then(|place| self.places.get(place));
        let bytes = place.and_then(|place| self.records.get(*place as usize..));
        let Some(record) = bytes.and_then(|bytes| Records::new(bytes).next()) else {
            return false;
        };
        let known = record.bytes().get(CallStack::bytes_for(0)..);
        known == Some(bytemuck::cast_slice(frames))
            && record.header().has(flags::UNFINISHED) != is_complete
    }
}

fn hash(frames: &[FrameAddress], is_complete: bool) -> u64 {
    let mix =
        |hash: u64, frame: u64| (hash.rotate_left(5) ^ frame).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let frames = frames.iter().map(|frame| frame.0);
    frames.fold(mix(0, is_complete.into()), mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_share_an_id_and_a_record() {
        let mut stacks = Stacks::default();
        let (short, long) = ([FrameAddress(1)], [FrameAddress(1), FrameAddress(2)]);
        assert_eq!(
            stacks.id(&short, true),
            (CallStackId(1), NewStack::Record(0..24))
        );
        assert_eq!(
            stacks.id(&long, true),
            (CallStackId(2), NewStack::Record(24..56))
        );
        assert_eq!(stacks.id(&short, true), (CallStackId(1), NewStack::Known));
        assert_eq!(stacks.id(&short, false).0, CallStackId(3));
        let records = Records::new(stacks.records()).map(|record| record.read::<CallStack>());
        let frames: Vec<_> = records.map(|stack| stack.unwrap().frames().len()).collect();
        assert_eq!(frames, [1, 2, 1]);
    }

    #[test]
    fn beyond_the_limit_stacks_have_no_id_and_known_ones_keep_theirs() {
        let mut stacks = Stacks::default();
        let mut number = 0;
        let (id, new) = loop {
            number += 1;
            let frames = [FrameAddress(number); gputrail_record::MAX_FRAMES];
            let (id, new) = stacks.id(&frames, true);
            if !matches!(new, NewStack::Record(_)) {
                break (id, new);
            }
        };
        assert_eq!((id, new), (CallStackId::NONE, NewStack::TooMany));
        assert!(stacks.records().len() <= MAX_BYTES);
        let other = [FrameAddress(0); gputrail_record::MAX_FRAMES];
        assert_eq!(
            stacks.id(&other, true),
            (CallStackId::NONE, NewStack::Known)
        );
        let first = [FrameAddress(1); gputrail_record::MAX_FRAMES];
        assert_eq!(stacks.id(&first, true), (CallStackId(1), NewStack::Known));
    }
}
