//! Rows for events that overlap on one track.
//!
//! Slices of one track nest, and pieces of work of one queue follow each other. Events that do neither take a further row.

use std::cmp::Reverse;

/// Most rows of one track. Events beyond them go to the last row.
const MAX_ROWS: usize = 256;

/// Sorts events into the order that [`TrackRows::place`] expects: by start, an outer event before those inside it.
pub(super) fn order(start: u64, end: u64) -> (u64, Reverse<u64>) {
    (start, Reverse(end))
}

/// The rows of one track.
#[derive(Debug, Default)]
pub(super) struct TrackRows {
    /// For each row the ends of its open events, outermost first.
    rows: Vec<Vec<u64>>,
}

impl TrackRows {
    /// The row of an event that lasts from `start` to `end`, and how many events of that row it is in, where events may
    /// contain each other. `ended` is called for each event that has ended by then, with its row and its end.
    pub fn nest<E>(
        &mut self,
        start: u64,
        end: u64,
        mut ended: impl FnMut(usize, u64) -> Result<(), E>,
    ) -> Result<(usize, usize), E> {
        for (row, open) in self.rows.iter_mut().enumerate() {
            while let Some(last) = open.last().copied().filter(|last| *last <= start) {
                open.pop();
                ended(row, last)?;
            }
        }
        let fits = |open: &Vec<u64>| open.last().is_none_or(|last| *last >= end);
        let row = self.take(fits, end);
        Ok((row, self.rows[row].len() - 1))
    }

    /// The row of an event that lasts from `start` to `end`, where events do not contain each other.
    pub fn follow(&mut self, start: u64, end: u64) -> usize {
        let fits = |open: &Vec<u64>| open.last().is_none_or(|last| *last <= start);
        let row = self.take(fits, end);
        let open = &mut self.rows[row];
        let latest = open.iter().copied().max().unwrap_or(end);
        open.clear();
        open.push(latest);
        row
    }

    /// Takes the first row that `fits`.
    fn take(&mut self, fits: impl Fn(&Vec<u64>) -> bool, end: u64) -> usize {
        let row = match self.rows.iter().position(fits) {
            Some(row) => row,
            None if self.rows.len() < MAX_ROWS => {
                self.rows.push(Vec::new());
                self.rows.len() - 1
            }
            None => MAX_ROWS - 1,
        };
        let open = &mut self.rows[row];
        let outer = open.last().copied().filter(|_| row == MAX_ROWS - 1);
        open.push(outer.map_or(end, |outer| end.min(outer)));
        row
    }

    /// Calls `ended` for all events that are open.
    pub fn finish<E>(
        &mut self,
        mut ended: impl FnMut(usize, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        for (row, open) in self.rows.iter_mut().enumerate() {
            while let Some(last) = open.pop() {
                ended(row, last)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn work_that_overlaps_takes_a_further_row() {
        let mut rows = TrackRows::default();
        let placed = [(0, 10), (10, 20), (15, 30), (20, 21), (29, 30), (30, 31)];
        let placed = placed.map(|(start, end)| rows.follow(start, end));
        assert_eq!(placed, [0, 0, 1, 0, 0, 0]);
    }

    proptest! {
        /// Whatever the intervals, those of one row nest, and each that began is ended once, in the order of a stack.
        #[test]
        fn events_of_one_row_nest(mut events in prop::collection::vec((0u64..50, 0u64..20), 0..100)) {
            for event in &mut events {
                event.1 += event.0;
            }
            events.sort_by_key(|(start, end)| order(*start, *end));
            let mut rows = TrackRows::default();
            let mut open: Vec<Vec<u64>> = Vec::new();
            let (mut begun, mut ended) = (0, 0);
            for (start, end) in events {
                let row = rows.nest(start, end, |row, end| {
                    ended += 1;
                    match open[row].pop() {
                        Some(last) if last == end && end <= start => Ok(()),
                        other => Err(other),
                    }
                });
                let (row, depth) = row.unwrap();
                open.resize(open.len().max(row + 1), Vec::new());
                prop_assert!(open[row].iter().all(|outer| *outer >= end));
                prop_assert_eq!(open[row].len(), depth);
                open[row].push(end);
                begun += 1;
            }
            rows.finish(|row, end| match open[row].pop() {
                Some(last) if last == end => { ended += 1; Ok(()) }
                other => Err(other),
            }).unwrap();
            prop_assert_eq!(begun, ended);
        }
    }
}
