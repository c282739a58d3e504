//! Joins enqueue records and completions.
//!
//! They come in either order: a completion is written by the thread that learnt of it, and the block of that thread may
//! be delivered first. Records without a partner wait in tables of bounded size; when a table is full, its older half
//! is passed on without a partner.

use gputrail_record::number_map::NumberMap;
use gputrail_record::{Completion, Unfinished, WorkId};
use std::collections::BTreeMap;

/// Maximum number of enqueue records, and of completions, that wait for their partner.
const MAX_WAITING: usize = 1 << 18;
/// Maximum number of completions that have met parts of a command buffer and may meet more of them, which come soon
/// after.
const MAX_MATCHED: usize = 1 << 14;

/// An enqueue record, in the form that its reader keeps.
pub trait Enqueue {
    /// The id of the work.
    fn work(&self) -> WorkId;
    /// Whether no completion will come.
    fn is_untracked(&self) -> bool;
    /// Whether the work is part of a command buffer, whose parts share a work id and a completion.
    fn is_shared(&self) -> bool;
    /// Its number among the parts of a command buffer; 0 for other work.
    fn serial(&self) -> u32;
    /// Sets the number among the parts of a command buffer.
    fn set_serial(&mut self, serial: u32);
}

/// The records of a piece of work that have been found.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Found<E> {
    /// Both records.
    Both(E, Completion),
    /// The enqueue record only: no completion came, or none will.
    Enqueued(E),
    /// The completion only: no enqueue record came.
    Completed(Completion),
}

impl<E> Found<E> {
    /// The enqueue record and the completion, as far as they were found.
    pub fn parts(&self) -> (Option<&E>, Option<&Completion>) {
        match self {
            Found::Both(work, completion) => (Some(work), Some(completion)),
            Found::Enqueued(work) => (Some(work), None),
            Found::Completed(completion) => (None, Some(completion)),
        }
    }
}

/// Slots of a [`WaitingRecords`] table: at first, and at most.
const PLACES: (usize, usize) = (256, 1 << 12);

/// A table of waiting records by work id. Ids rise and partners are usually found soon, so the latest records stand in
/// slots that are indexed by the lower bits of the id.
#[derive(Debug)]
struct WaitingRecords<T> {
    /// The latest records, by the lower bits of their ids. The length is a power of two, or 0 at first.
    places: Vec<Option<(WorkId, T)>>,
    /// The number of slots in use.
    taken: usize,
    /// Records that were displaced from their slots by later ones.
    others: NumberMap<WorkId, T>,
}

impl<T> Default for WaitingRecords<T> {
    fn default() -> WaitingRecords<T> {
        WaitingRecords {
            places: Vec::new(),
            taken: 0,
            others: NumberMap::default(),
        }
    }
}

impl<T> WaitingRecords<T> {
    #[inline]
    fn len(&self) -> usize {
        self.taken + self.others.len()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn place(&self, work: WorkId) -> usize {
        work.0 as usize & self.places.len().wrapping_sub(1)
    }

    /// Adds the record of `work` and replaces an earlier one. `make` constructs it in its slot.
    #[inline(always)]
    fn insert(&mut self, work: WorkId, make: impl FnOnce() -> T) {
        let place = self.place(work);
        match self.places.get_mut(place) {
            Some(free @ None) if self.others.is_empty() => {
                *free = Some((work, make()));
                self.taken += 1;
            }
            _ => self.make_room(work, make()),
        }
    }

    #[cold]
    fn make_room(&mut self, work: WorkId, one: T) {
        self.others.remove(&work);
        loop {
            let place = self.place(work);
            let in_the_way = match self.places.get(place) {
                None => true,
                Some(Some((other, _))) => *other != work,
                Some(None) => false,
            };
            if !in_the_way || self.places.len() >= PLACES.1 {
                break;
            }
            self.grow();
        }
        let place = self.place(work);
        match self.places[place].replace((work, one)) {
            None => self.taken += 1,
            Some((other, _)) if other == work => {}
            Some((other, driven_out)) => drop(self.others.insert(other, driven_out)),
        }
    }

    /// Doubles the number of slots. Records that had slots of their own keep such slots.
    fn grow(&mut self) {
        let count = (self.places.len() * 2).max(PLACES.0);
        let places = std::mem::take(&mut self.places);
        self.places.resize_with(count, || None);
        for (work, one) in places.into_iter().flatten() {
            let place = self.place(work);
            self.places[place] = Some((work, one));
        }
    }

    #[inline]
    fn remove(&mut self, work: WorkId) -> Option<T> {
        let place = self.place(work);
        match self.places.get_mut(place) {
            Some(place) if place.as_ref().is_some_and(|(known, _)| *known == work) => {
                self.taken -= 1;
                place.take().map(|(_, one)| one)
            }
            _ if self.others.is_empty() => None,
            _ => self.others.remove(&work),
        }
    }

    fn get(&self, work: WorkId) -> Option<&T> {
        match self.places.get(self.place(work)) {
            Some(Some((known, one))) if *known == work => Some(one),
            _ => self.others.get(&work),
        }
    }

    /// Removes all records, in no order.
    fn take(&mut self) -> impl Iterator<Item = (WorkId, T)> + use<T> {
        let WaitingRecords { places, others, .. } = std::mem::take(self);
        places.into_iter().flatten().chain(others)
    }

    /// Removes the older half, in order. Removing half at once keeps the cost of each record low.
    fn take_older_half(&mut self) -> impl Iterator<Item = T> {
        let places = self.places.iter_mut().filter_map(Option::take);
        self.others.extend(places);
        self.taken = 0;
        let mut ids: Vec<WorkId> = self.others.keys().copied().collect();
        let half = ids.len() / 2;
        ids.select_nth_unstable(half);
        ids.truncate(half);
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| self.others.remove(&id))
    }
}

/// The records that wait for their partner.
#[derive(Debug)]
pub struct Join<E> {
    enqueued: WaitingRecords<E>,
    /// Parts of command buffers, by work id and number.
    parts: BTreeMap<(WorkId, u32), E>,
    completed: WaitingRecords<Completion>,
    /// Completions of command buffers.
    met: WaitingRecords<Completion>,
    most: usize,
    serial: u32,
}

impl<E: Enqueue + Copy> Default for Join<E> {
    fn default() -> Join<E> {
        Join::of_size(MAX_WAITING)
    }
}

impl<E: Enqueue + Copy> Join<E> {
    /// A join that keeps at most `most` halves that wait for the other one.
    pub fn of_size(most: usize) -> Join<E> {
        Join {
            enqueued: WaitingRecords::default(),
            parts: BTreeMap::new(),
            completed: WaitingRecords::default(),
            met: WaitingRecords::default(),
            most,
            serial: 0,
        }
    }

    /// Adds an enqueue record, and appends to `found` the work that is fully known now. Returns the serial that the
    /// work was given.
    #[inline(always)]
    pub fn enqueue(&mut self, record: impl Into<E> + Copy, found: &mut Vec<Found<E>>) -> u32 {
        let work: E = record.into();
        let id = work.work();
        let waits = id.is_some() && !work.is_untracked() && !work.is_shared();
        if !waits || !self.completed.is_empty() || !self.met.is_empty() {
            return self.enqueue_any(record.into(), found);
        }
        self.enqueued.insert(id, || record.into());
        self.bound_enqueued(found);
        0
    }

    /// Adds an enqueue record that may be untracked, part of a command buffer, or preceded by its completion.
    fn enqueue_any(&mut self, mut work: E, found: &mut Vec<Found<E>>) -> u32 {
        let shared = work.is_shared();
        if shared {
            self.serial = self.serial.wrapping_add(1).max(1);
            work.set_serial(self.serial);
        }
        if work.is_untracked() || !work.work().is_some() {
            found.push(Found::Enqueued(work));
            return work.serial();
        }
        if let Some(completion) = self.completion(work.work(), shared) {
            found.push(Found::Both(work, completion));
            return work.serial();
        }
        if shared {
            self.parts.insert((work.work(), work.serial()), work);
            if self.parts.len() > self.most
                && let Some((_, oldest)) = self.parts.pop_first()
            {
                found.push(Found::Enqueued(oldest));
            }
        } else {
            self.enqueued.insert(work.work(), || work);
            self.bound_enqueued(found);
        }
        work.serial()
    }

    #[inline]
    fn bound_enqueued(&mut self, found: &mut Vec<Found<E>>) {
        if self.enqueued.len() > self.most {
            found.extend(self.enqueued.take_older_half().map(Found::Enqueued));
        }
    }

    /// Adds a completion. Returns the work that it completes, if it is a single piece whose enqueue record has come;
    /// appends to `found` all other work that is fully known now.
    #[inline]
    pub fn complete(&mut self, completion: &Completion, found: &mut Vec<Found<E>>) -> Option<E> {
        // The final completion comes later, or never.
        if completion.unfinished == Unfinished::AT_FLUSH {
            return None;
        }
        let work = self.enqueued.remove(completion.work);
        if work.is_none() {
            self.complete_others(completion, found);
        }
        work
    }

    /// Adds a completion of several pieces of work, or one that comes before its enqueue record.
    fn complete_others(&mut self, completion: &Completion, found: &mut Vec<Found<E>>) {
        let id = completion.work;
        let parts = self.parts.extract_if((id, 0)..=(id, u32::MAX), |_, _| true);
        let before = found.len();
        found.extend(parts.map(|(_, work)| Found::Both(work, *completion)));
        if let Some(parts) = found.get_mut(before..).filter(|parts| !parts.is_empty()) {
            // The last part has the serial 0.
            if matches!(&parts[0], Found::Both(work, _) if work.serial() == 0) {
                parts.rotate_left(1);
            }
            self.has_met(*completion);
            return;
        }
        self.completed.insert(id, || *completion);
        if self.completed.len() > self.most {
            found.extend(self.completed.take_older_half().map(Found::Completed));
        }
    }

    /// The enqueue records of `work` that wait for its completion.
    pub fn waiting(&self, work: WorkId) -> impl Iterator<Item = &E> {
        let parts = self.parts.range((work, 0)..=(work, u32::MAX));
        let parts = parts.map(|(_, part)| part);
        self.enqueued.get(work).into_iter().chain(parts)
    }

    /// The completion of `work`, if it came before the enqueue record.
    #[inline]
    fn completion(&mut self, work: WorkId, shared: bool) -> Option<Completion> {
        let early = if self.completed.is_empty() {
            None
        } else {
            self.completed.remove(work)
        };
        match early {
            Some(completion) if shared => self.has_met(completion),
            None if !self.met.is_empty() => return self.met.get(work).copied(),
            _ => {}
        }
        early
    }

    fn has_met(&mut self, completion: Completion) {
        self.met.insert(completion.work, || completion);
        if self.met.len() > MAX_MATCHED {
            self.met.take_older_half().for_each(drop);
        }
    }

    /// Appends to `found` the records that still wait at the end.
    pub fn finish(&mut self, found: &mut Vec<Found<E>>) {
        let parts = std::mem::take(&mut self.parts).into_iter();
        let mut enqueued: Vec<_> = self
            .enqueued
            .take()
            .map(|(id, work)| ((id, 0), work))
            .chain(parts)
            .collect();
        enqueued.sort_unstable_by_key(|(key, _)| *key);
        found.extend(enqueued.into_iter().map(|(_, work)| Found::Enqueued(work)));
        let unmet = self.completed.take().map(|(_, completion)| completion);
        let mut unmet: Vec<_> = unmet.collect();
        unmet.sort_unstable_by_key(|completion| completion.work);
        found.extend(unmet.into_iter().map(Found::Completed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_older_half_gives_way_wherever_it_is() {
        let mut waiting = WaitingRecords::default();
        let ids = (0..6).chain((0..4).map(|id| id << 20)).map(WorkId);
        ids.for_each(|id| waiting.insert(id, || id.0));
        assert_eq!(waiting.take_older_half().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(waiting.len(), 5);
        assert_eq!(waiting.remove(WorkId(3 << 20)), Some(3 << 20));
        assert_eq!(waiting.remove(WorkId(0)), None);
    }

    proptest! {
        /// Ids near each other, and ids that share a slot however many slots there are.
        #[test]
        fn waiting_records_are_found_as_in_a_plain_table(
            moves in prop::collection::vec((any::<bool>(), 0u64..600, prop_oneof![4 => Just(0u64), 1 => 0..3u64]), 0..2000),
        ) {
            let (mut waiting, mut table) = (WaitingRecords::default(), NumberMap::default());
            for (number, (comes, low, high)) in moves.into_iter().enumerate() {
                let id = WorkId(high << 40 | low);
                prop_assert_eq!(waiting.get(id), table.get(&id));
                if comes {
                    waiting.insert(id, || number);
                    table.insert(id, number);
                } else {
                    prop_assert_eq!(waiting.remove(id), table.remove(&id));
                }
                prop_assert_eq!(waiting.len(), table.len());
            }
            let left: NumberMap<_, _> = waiting.take().collect();
            prop_assert_eq!(left, table);
            prop_assert!(waiting.is_empty());
        }
    }
}
