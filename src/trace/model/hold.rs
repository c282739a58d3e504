//! Work that is held back until data of another kind about it has come: samples, counters.
//!
//! Work and data come in either order, and the data in several parts. Both tables are bounded: if one is full, the
//! oldest work is passed on with the data that has come, and the oldest data is dropped.

use std::collections::BTreeMap;

use gputrail_record::WorkId;

/// Data about one piece of work.
#[derive(Debug, Default)]
struct HeldPiece<D> {
    data: D,
    /// Whether all data about the work has come.
    complete: bool,
}

/// Pieces of work of type `T` that wait for data of type `D`.
#[derive(Debug)]
pub(crate) struct Hold<T, D> {
    /// The waiting work, by work id and by number among the parts of a command buffer.
    held: BTreeMap<(WorkId, u32), T>,
    known: BTreeMap<WorkId, HeldPiece<D>>,
    limit: usize,
}

impl<T, D: Clone + Default> Hold<T, D> {
    /// Holds at most `limit` pieces of work, and data about as many.
    pub fn new(limit: usize) -> Hold<T, D> {
        Hold {
            held: BTreeMap::new(),
            known: BTreeMap::new(),
            limit,
        }
    }

    /// The number of waiting pieces of work.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Adds work. If its data is complete, it is returned with it.
    pub fn add(&mut self, work: WorkId, serial: u32, item: T) -> Option<(T, D)> {
        if self.known.get(&work).is_some_and(|known| known.complete) {
            return self.known.remove(&work).map(|known| (item, known.data));
        }
        self.held.insert((work, serial), item);
        None
    }

    /// Whether parts of `work` wait.
    pub fn holds(&self, work: WorkId) -> bool {
        let mut parts = self.held.range((work, 0)..=(work, u32::MAX));
        parts.next().is_some()
    }

    /// The data about `work`, for adding to it.
    pub fn data(&mut self, work: WorkId) -> &mut D {
        &mut self.known(work).data
    }

    /// Makes room for data about `work`. The result is the data that had to go.
    pub fn make_room(&mut self, work: WorkId) -> Option<D> {
        let is_full = self.known.len() >= self.limit && !self.known.contains_key(&work);
        let (_, oldest) = is_full.then(|| self.known.pop_first()).flatten()?;
        Some(oldest.data)
    }

    fn known(&mut self, work: WorkId) -> &mut HeldPiece<D> {
        self.make_room(work);
        self.known.entry(work).or_default()
    }

    /// Marks the data about `work` as complete, and returns the work that waited for it: each part with a copy of the
    /// data.
    pub fn complete(&mut self, work: WorkId) -> impl Iterator<Item = (T, D)> + use<T, D> {
        let range = (work, 0)..=(work, u32::MAX);
        let held: Vec<T> = self
            .held
            .extract_if(range, |_, _| true)
            .map(|(_, item)| item)
            .collect();
        let data = if held.is_empty() {
            self.known(work).complete = true;
            None
        } else {
            self.known.remove(&work).map(|known| known.data)
        };
        let data = data.unwrap_or_default();
        held.into_iter().map(move |item| (item, data.clone()))
    }

    /// Whether more work waits than there is room for.
    pub fn is_over_limit(&self) -> bool {
        self.held.len() > self.limit
    }

    /// The id of the oldest work that waits.
    pub fn oldest(&self) -> Option<WorkId> {
        self.held.keys().next().map(|(work, _)| *work)
    }

    /// Removes the oldest work, with the data that has come for it.
    pub fn take_oldest(&mut self) -> Option<(T, Option<D>)> {
        let ((work, _), item) = self.held.pop_first()?;
        Some((item, self.known.remove(&work).map(|known| known.data)))
    }

    /// Removes all data whose work has not come.
    pub fn take_data(&mut self) -> impl Iterator<Item = D> + use<T, D> {
        std::mem::take(&mut self.known)
            .into_values()
            .map(|known| known.data)
    }

    /// Removes all waiting work, without data.
    pub fn take_all(&mut self) -> impl Iterator<Item = T> + use<T, D> {
        std::mem::take(&mut self.held).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: WorkId = WorkId(1);
    const B: WorkId = WorkId(2);

    #[test]
    fn work_waits_until_its_data_is_complete() {
        let mut hold = Hold::new(8);
        assert_eq!(hold.add(A, 0, "a"), None);
        *hold.data(A) += 3;
        *hold.data(A) += 4;
        assert_eq!(hold.complete(A).collect::<Vec<_>>(), [("a", 7)]);
        assert_eq!((hold.len(), hold.take_oldest()), (0, None));
    }

    #[test]
    fn data_may_be_complete_before_its_work_comes() {
        let mut hold = Hold::new(8);
        *hold.data(A) += 3;
        assert_eq!(hold.complete(A).count(), 0);
        assert_eq!(hold.add(A, 0, "a"), Some(("a", 3)));
        assert_eq!(hold.add(A, 0, "later"), None);
    }

    #[test]
    fn all_parts_of_a_command_buffer_get_the_data() {
        let mut hold = Hold::new(8);
        hold.add(A, 1, "first");
        hold.add(A, 2, "second");
        hold.add(B, 0, "other");
        *hold.data(A) += 3;
        let parts: Vec<_> = hold.complete(A).collect();
        assert_eq!(parts, [("first", 3), ("second", 3)]);
        assert_eq!(hold.take_all().collect::<Vec<_>>(), ["other"]);
    }

    #[test]
    fn the_oldest_goes_ahead_and_old_data_is_dropped() {
        let mut hold = Hold::new(1);
        hold.add(A, 0, "a");
        hold.add(B, 0, "b");
        *hold.data(A) += 3;
        *hold.data(B) += 4;
        assert!(hold.is_over_limit());
        assert_eq!(hold.oldest(), Some(A));
        assert_eq!(hold.take_oldest(), Some(("a", None)));
        assert_eq!(hold.take_oldest(), Some(("b", Some(4))));
    }
}
