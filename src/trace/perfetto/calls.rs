//! The calls of one thread, in the order that Perfetto needs them.
//!
//! Records come in the order of their ends, inner calls first. Perfetto nests slices by their times,
//! and at equal times by their order in the file: an outer begin has to stand before an inner one,
//! an inner end before an outer one. So inner calls wait until the call they were made from is
//! there. If they get too many they go ahead, and the outer begin comes late.

use crate::record::{Api, CorrelationId, ExternalId, Nanos, Operation, flags};

/// Most inner calls that wait for their outermost one.
const MAX_INNER_CALLS: usize = 4096;

/// A call, as far as the trace shows it, with its times in nanoseconds.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct TimedCall {
    pub correlation: CorrelationId,
    pub ancestor: CorrelationId,
    pub external: ExternalId,
    pub operation: Operation,
    pub return_code: i32,
    /// As its source has flagged it: a return code alone may be an answer, "not ready" say.
    pub failed: bool,
    pub start: Nanos,
    /// None: it did not end.
    pub end: Option<Nanos>,
}

impl TimedCall {
    /// The call of a record, with its times.
    #[inline]
    pub fn new(record: &Api, start: Nanos, end: Option<Nanos>) -> TimedCall {
        TimedCall {
            correlation: record.correlation,
            ancestor: record.ancestor,
            external: record.external,
            operation: record.operation,
            return_code: record.return_code,
            failed: record.header.has(flags::FAILED),
            start,
            end,
        }
    }
}

/// What to write next.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Step<'a> {
    Begin(&'a TimedCall),
    End(Nanos),
}

/// The calls that wait.
#[derive(Debug, Default)]
pub(super) struct Calls {
    waiting: Vec<TimedCall>,
    /// Ends of the slices that are open while steps are told, and the calls they belong to.
    open: Vec<(Nanos, u64)>,
}

impl Calls {
    /// Whether any calls wait. If not, a call that no other made may be told without being added.
    #[inline]
    pub fn any_wait(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes in a call, and tells those that wait for nothing any more.
    pub fn add<E>(
        &mut self,
        call: TimedCall,
        tell: impl FnMut(Step<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_outer = !call.ancestor.is_some();
        self.waiting.push(call);
        if is_outer || self.waiting.len() >= MAX_INNER_CALLS {
            return self.finish(tell);
        }
        Ok(())
    }

    /// Tells all waiting calls, begins and ends in order, and forgets them.
    pub fn finish<E>(&mut self, mut tell: impl FnMut(Step<'_>) -> Result<(), E>) -> Result<(), E> {
        // Ids of a thread rise in the order in which calls were entered.
        self.waiting
            .sort_by_key(|call| (call.start, call.correlation));
        for call in &self.waiting {
            // What ended when this call began came before it, unless it is its caller and took no time.
            while let Some((end, id)) = self.open.last().copied() {
                if end > call.start || id == call.ancestor.0 {
                    break;
                }
                tell(Step::End(end))?;
                self.open.pop();
            }
            tell(Step::Begin(call))?;
            if let Some(end) = call.end {
                // An inner call never ends after the one it is in, whatever the clocks say.
                let outer = self.open.last().map_or(end, |(outer, _)| *outer);
                let end = end.min(outer).max(call.start);
                self.open.push((end, call.correlation.0));
            }
        }
        while let Some((end, _)) = self.open.pop() {
            tell(Step::End(end))?;
        }
        self.waiting.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(id: u64, ancestor: u64, start: u64, end: u64) -> TimedCall {
        let record = Api {
            correlation: CorrelationId(id),
            ancestor: CorrelationId(ancestor),
            ..Api::blank()
        };
        let end = (end != u64::MAX).then_some(Nanos(end));
        TimedCall::new(&record, Nanos(start), end)
    }

    /// The steps as text: `+id` for a begin, `-time` for an end.
    fn told(calls: impl IntoIterator<Item = TimedCall>) -> String {
        let mut order = Calls::default();
        let mut text = Vec::new();
        for call in calls {
            let steps: Result<(), ()> = order.add(call, |step| {
                text.push(match step {
                    Step::Begin(call) => format!("+{}", call.correlation.0),
                    Step::End(end) => format!("-{}", end.0),
                });
                Ok(())
            });
            steps.unwrap();
        }
        text.join(" ")
    }

    #[test]
    fn calls_one_after_the_other_stay_so() {
        let calls = [call(1, 0, 10, 20), call(2, 0, 20, 20), call(3, 0, 20, 25)];
        assert_eq!(told(calls), "+1 -20 +2 -20 +3 -25");
    }

    #[test]
    fn inner_calls_come_after_the_begin_of_the_outer_one() {
        let calls = [
            call(3, 2, 11, 12),
            call(2, 1, 11, 13),
            call(4, 1, 13, 20),
            call(1, 0, 10, 20),
        ];
        assert_eq!(told(calls), "+1 +2 +3 -12 -13 +4 -20 -20");
    }

    #[test]
    fn an_outer_and_an_inner_call_with_the_same_times_nest() {
        assert_eq!(
            told([call(2, 1, 10, 20), call(1, 0, 10, 20)]),
            "+1 +2 -20 -20"
        );
        assert_eq!(
            told([call(2, 1, 10, 10), call(1, 0, 10, 10)]),
            "+1 +2 -10 -10"
        );
    }

    #[test]
    fn siblings_that_take_no_time_do_not_nest() {
        let calls = [call(2, 1, 10, 10), call(3, 1, 10, 10), call(1, 0, 10, 30)];
        assert_eq!(told(calls), "+1 +2 -10 +3 -10 -30");
    }

    #[test]
    fn a_call_that_did_not_end_has_no_end() {
        assert_eq!(told([call(1, 0, 10, u64::MAX)]), "+1");
        let calls = [call(2, 1, 15, u64::MAX), call(1, 0, 10, u64::MAX)];
        assert_eq!(told(calls), "+1 +2");
    }

    #[test]
    fn an_inner_call_that_seems_to_end_late_is_cut() {
        assert_eq!(
            told([call(2, 1, 15, 25), call(1, 0, 10, 20)]),
            "+1 +2 -20 -20"
        );
    }

    #[test]
    fn too_many_inner_calls_do_not_wait() {
        let inner = |id| call(id, 1, 2 * id, 2 * id + 1);
        assert_eq!(told((2..MAX_INNER_CALLS as u64 + 1).map(inner)), "");
        let begins = told((2..MAX_INNER_CALLS as u64 + 2).map(inner))
            .matches('+')
            .count();
        assert_eq!(begins, MAX_INNER_CALLS);
    }

    proptest! {
        /// Calls made at random, as a thread would: the steps nest as the calls did.
        #[test]
        fn the_nesting_told_is_the_nesting_that_was(moves in prop::collection::vec((0u8..3, 0u64..3), 1..200)) {
            let (mut time, mut next, mut stack, mut calls) = (1, 0, Vec::new(), Vec::new());
            for (what, step) in moves {
                time += step;
                if what < 2 || stack.is_empty() {
                    next += 1;
                    stack.push((next, time));
                } else {
                    let (id, start) = stack.pop().unwrap();
                    calls.push(call(id, stack.last().map_or(0, |(id, _)| *id), start, time));
                }
            }
            while let Some((id, start)) = stack.pop() {
                calls.push(call(id, stack.last().map_or(0, |(id, _)| *id), start, time));
            }
            let parents: std::collections::HashMap<u64, u64> =
                calls.iter().map(|call| (call.correlation.0, call.ancestor.0)).collect();
            let mut open = vec![0];
            for step in told(calls).split(' ') {
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
