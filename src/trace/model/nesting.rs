//! Brings the complete slices of one lane into the order that nesting needs.
//!
//! Records come in the order of their ends, inner slices first. The [stream](super) has slices in the order of their
//! begins, and at equal times the outer slice first, since viewers that nest slices by their times (Perfetto) break
//! ties by order. So inner slices wait until their outer slice has come. If too many wait, they are passed on before
//! it, and the begin of the outer slice comes late.

use gputrail_record::Nanos;

/// Maximum number of inner slices that wait for their outermost one.
const MAX_WAITING: usize = 4096;

/// A slice that nests with other slices of its lane.
pub(crate) trait Nested {
    /// Its id. Ids rise in the order of the begins.
    fn id(&self) -> u64;
    /// The id of the enclosing slice; 0 for an outermost one.
    fn parent(&self) -> u64;
    /// When it begins.
    fn start(&self) -> Nanos;
    /// When it ends; `None` if it did not end.
    fn end(&self) -> Option<Nanos>;
}

/// An event in the order of the stream.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum NestingStep<'a, T> {
    /// A slice begins.
    Begin(&'a T),
    /// The slice with this id ends.
    End(Nanos, u64),
}

/// The waiting slices of one lane.
#[derive(Debug)]
pub(crate) struct Nesting<T> {
    waiting: Vec<T>,
    /// Ends and ids of the slices that are open while the waiting ones are passed on.
    open: Vec<(Nanos, u64)>,
}

impl<T> Default for Nesting<T> {
    fn default() -> Nesting<T> {
        Nesting {
            waiting: Vec::new(),
            open: Vec::new(),
        }
    }
}

impl<T: Nested> Nesting<T> {
    /// Whether no slices wait. If so, an outermost slice without inner ones may be passed on without being added.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The number of waiting slices.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a slice, and passes on the slices that no longer need to wait.
    pub fn add<E>(
        &mut self,
        slice: T,
        step: impl FnMut(NestingStep<'_, T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_outermost = slice.parent() == 0;
        self.waiting.push(slice);
        if is_outermost || self.waiting.len() >= MAX_WAITING {
            return self.finish(step);
        }
        Ok(())
    }

    /// Passes on all waiting slices, with their begins and ends in order.
    pub fn finish<E>(
        &mut self,
        mut step: impl FnMut(NestingStep<'_, T>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.waiting
            .sort_by_key(|slice| (slice.start(), slice.id()));
        for slice in &self.waiting {
            // A slice that has ended by now comes before this one, unless it encloses this one and took no time.
            while let Some((end, id)) = self.open.last().copied() {
                if end > slice.start() || id == slice.parent() {
                    break;
                }
                step(NestingStep::End(end, id))?;
                self.open.pop();
            }
            step(NestingStep::Begin(slice))?;
            if let Some(end) = slice.end() {
                // An inner slice never ends after its outer one, whatever the clocks say.
                let outer = self.open.last().map_or(end, |(outer, _)| *outer);
                let end = end.min(outer).max(slice.start());
                self.open.push((end, slice.id()));
            }
        }
        while let Some((end, id)) = self.open.pop() {
            step(NestingStep::End(end, id))?;
        }
        self.waiting.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Id, parent, start and end; `u64::MAX` is no end.
    #[derive(Copy, Clone)]
    struct Slice(u64, u64, u64, u64);

    impl Nested for Slice {
        fn id(&self) -> u64 {
            self.0
        }

        fn parent(&self) -> u64 {
            self.1
        }

        fn start(&self) -> Nanos {
            Nanos(self.2)
        }

        fn end(&self) -> Option<Nanos> {
            (self.3 != u64::MAX).then_some(Nanos(self.3))
        }
    }

    /// The steps as text: `+id` for a begin, `-time` for an end.
    fn steps(slices: impl IntoIterator<Item = Slice>) -> String {
        let mut nesting = Nesting::default();
        let mut text = Vec::new();
        for slice in slices {
            let done: Result<(), ()> = nesting.add(slice, |step| {
                text.push(match step {
                    NestingStep::Begin(slice) => format!("+{}", slice.0),
                    NestingStep::End(end, _) => format!("-{}", end.0),
                });
                Ok(())
            });
            done.unwrap();
        }
        text.join(" ")
    }

    #[test]
    fn calls_one_after_the_other_stay_so() {
        let calls = [
            Slice(1, 0, 10, 20),
            Slice(2, 0, 20, 20),
            Slice(3, 0, 20, 25),
        ];
        assert_eq!(steps(calls), "+1 -20 +2 -20 +3 -25");
    }

    #[test]
    fn inner_calls_come_after_the_begin_of_the_outer_one() {
        let calls = [
            Slice(3, 2, 11, 12),
            Slice(2, 1, 11, 13),
            Slice(4, 1, 13, 20),
            Slice(1, 0, 10, 20),
        ];
        assert_eq!(steps(calls), "+1 +2 +3 -12 -13 +4 -20 -20");
    }

    #[test]
    fn an_outer_and_an_inner_call_with_the_same_times_nest() {
        assert_eq!(
            steps([Slice(2, 1, 10, 20), Slice(1, 0, 10, 20)]),
            "+1 +2 -20 -20"
        );
        assert_eq!(
            steps([Slice(2, 1, 10, 10), Slice(1, 0, 10, 10)]),
            "+1 +2 -10 -10"
        );
    }

    #[test]
    fn siblings_that_take_no_time_do_not_nest() {
        let calls = [
            Slice(2, 1, 10, 10),
            Slice(3, 1, 10, 10),
            Slice(1, 0, 10, 30),
        ];
        assert_eq!(steps(calls), "+1 +2 -10 +3 -10 -30");
    }

    #[test]
    fn a_call_that_did_not_end_has_no_end() {
        assert_eq!(steps([Slice(1, 0, 10, u64::MAX)]), "+1");
        let calls = [Slice(2, 1, 15, u64::MAX), Slice(1, 0, 10, u64::MAX)];
        assert_eq!(steps(calls), "+1 +2");
    }

    #[test]
    fn an_inner_call_that_seems_to_end_late_is_cut() {
        assert_eq!(
            steps([Slice(2, 1, 15, 25), Slice(1, 0, 10, 20)]),
            "+1 +2 -20 -20"
        );
    }

    #[test]
    fn too_many_inner_calls_do_not_wait() {
        let inner = |id| Slice(id, 1, 2 * id, 2 * id + 1);
        assert_eq!(steps((2..MAX_WAITING as u64 + 1).map(inner)), "");
        let begins = steps((2..MAX_WAITING as u64 + 2).map(inner))
            .matches('+')
            .count();
        assert_eq!(begins, MAX_WAITING);
    }

    proptest! {
        /// Calls made at random, as a thread would: the steps nest as the calls did.
        #[test]
        fn the_reported_nesting_is_the_nesting_that_was(moves in prop::collection::vec((0u8..3, 0u64..3), 1..200)) {
            let (mut time, mut next, mut stack, mut calls) = (1, 0, Vec::new(), Vec::new());
            for (what, step) in moves {
                time += step;
                if what < 2 || stack.is_empty() {
                    next += 1;
                    stack.push((next, time));
                } else {
                    let (id, start) = stack.pop().unwrap();
                    calls.push(Slice(id, stack.last().map_or(0, |(id, _)| *id), start, time));
                }
            }
            while let Some((id, start)) = stack.pop() {
                calls.push(Slice(id, stack.last().map_or(0, |(id, _)| *id), start, time));
            }
            let parents: std::collections::HashMap<u64, u64> =
                calls.iter().map(|slice| (slice.0, slice.1)).collect();
            let mut open = vec![0];
            for step in steps(calls).split(' ') {
                match step.strip_prefix('+') {
                    Some(id) => {
                        let id = id.parse().unwrap();
                        prop_assert_eq!(parents[&id], *open.last().unwrap());
                        open.push(id);
                    }
                    None => drop(open.pop()),
                }
            }
            prop_assert_eq!(open, [0]);
        }
    }
}
