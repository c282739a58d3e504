//! Device time by the call stacks of the host from which the work was launched.
//!
//! Calls have the stacks, and work the times; they find each other by the id of the work, whichever comes first.

use std::collections::{HashMap, VecDeque};

use crate::stacks::StackTree;
use gputrail_code::call_stacks::CALLED_BY;
use gputrail_record::Nanos;
use gputrail_record::number_map::NumberMap;
use gputrail_trace::model::{Call, EventId, ProcessIndex, STACK};

/// Maximum number of calls and of work that wait for the other.
const MAX_WAITING: usize = 1 << 16;
/// Maximum number of stacks that are distinguished, and of their pairs with kinds of work.
const MAX_STACKS: usize = 1 << 16;
const MAX_PAIRS: usize = 1 << 18;
/// The number of work without a stack, or with one of too many.
const NONE: u32 = u32::MAX;

/// Work that was launched from one stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchStack {
    /// The functions, innermost first; `None` for work without a stack.
    pub stack: Option<String>,
    /// The number of launches that completed.
    pub count: u64,
    /// The time of their work.
    pub time: Nanos,
    /// The index of the name of the work that took most of it.
    pub(super) label: u32,
    /// The time of that work.
    most: u64,
}

/// Work whose call has not come.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct LaunchedWork {
    pub process: ProcessIndex,
    pub label: u32,
    pub took: u64,
}

#[derive(Copy, Clone, Debug)]
enum Half {
    Call(u32),
    Work(LaunchedWork),
}

/// Sums up device time by call stack.
#[derive(Debug, Default)]
pub(super) struct LaunchStacks {
    numbers: HashMap<Box<str>, u32>,
    halves: NumberMap<EventId, Half>,
    order: VecDeque<EventId>,
    /// The number and time of launches, by process, stack and kind of work.
    sums: NumberMap<(ProcessIndex, u32, u32), (u64, u64)>,
}

impl LaunchStacks {
    /// Adds a call.
    pub fn call(&mut self, call: &Call<'_>) {
        if call.submitted.is_empty() {
            return;
        }
        let parameters = call.function.parameters.iter();
        let mut stacks = parameters.zip(call.arguments);
        let stack = stacks.find(|(parameter, _)| &*parameter.name == STACK);
        let Some(stack) = stack.and_then(|(_, value)| value.as_text()) else {
            return;
        };
        let number = self.number(stack);
        for event in call.submitted {
            match self.halves.get(event) {
                Some(Half::Work(work)) => {
                    let work = *work;
                    self.halves.remove(event);
                    self.add(number, work);
                }
                _ => self.hold(*event, Half::Call(number)),
            }
        }
    }

    /// Adds work that ran.
    pub fn work(&mut self, event: Option<EventId>, work: LaunchedWork) {
        match event {
            None => self.add(NONE, work),
            Some(event) => match self.halves.get(&event) {
                Some(Half::Call(stack)) => {
                    let stack = *stack;
                    self.halves.remove(&event);
                    self.add(stack, work);
                }
                _ => self.hold(event, Half::Work(work)),
            },
        }
    }

    fn number(&mut self, stack: &str) -> u32 {
        if let Some(number) = self.numbers.get(stack) {
            return *number;
        }
        if self.numbers.len() >= MAX_STACKS {
            return NONE;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(stack.into(), number);
        number
    }

    fn add(&mut self, stack: u32, work: LaunchedWork) {
        let mut key = (work.process, stack, work.label);
        if self.sums.len() >= MAX_PAIRS && !self.sums.contains_key(&key) {
            key.2 = u32::MAX;
        }
        let (count, time) = self.sums.entry(key).or_default();
        *count += 1;
        *time = time.saturating_add(work.took);
    }

    fn hold(&mut self, event: EventId, half: Half) {
        while self.order.len() >= MAX_WAITING
            && let Some(old) = self.order.pop_front()
        {
            if let Some(Half::Work(work)) = self.halves.remove(&old) {
                self.add(NONE, work);
            }
        }
        if self.halves.insert(event, half).is_none() {
            self.order.push_back(event);
        }
    }

    /// All sums, with what waits for a call: process, stack, label, number and time.
    fn all(&self) -> impl Iterator<Item = (ProcessIndex, u32, u32, u64, u64)> {
        let summed = self.sums.iter();
        let summed = summed.map(|((process, stack, label), (count, time))| {
            (*process, *stack, *label, *count, *time)
        });
        let waiting = self.halves.values().filter_map(|half| match half {
            Half::Work(work) => Some((work.process, NONE, work.label, 1, work.took)),
            Half::Call(_) => None,
        });
        summed.chain(waiting)
    }

    /// The texts of the stacks, by number.
    fn texts(&self) -> HashMap<u32, &str> {
        let numbers = self.numbers.iter();
        numbers.map(|(text, number)| (*number, &**text)).collect()
    }

    /// The stacks, in descending order of time.
    pub fn list(&self) -> Vec<LaunchStack> {
        let texts = self.texts();
        let mut by_label: HashMap<(u32, u32), (u64, u64)> = HashMap::new();
        for (_, stack, label, count, time) in self.all() {
            let sum = by_label.entry((stack, label)).or_default();
            (sum.0, sum.1) = (sum.0 + count, sum.1.saturating_add(time));
        }
        let mut by_stack: HashMap<u32, LaunchStack> = HashMap::new();
        for ((stack, label), (count, time)) in by_label {
            let sum = by_stack.entry(stack).or_default();
            sum.count += count;
            sum.time = Nanos(sum.time.0.saturating_add(time));
            if sum.most == 0 || (time, sum.label) > (sum.most, label) {
                (sum.label, sum.most) = (label, time);
            }
            sum.stack = texts.get(&stack).map(|text| (*text).to_owned());
        }
        let mut list: Vec<LaunchStack> = by_stack.into_values().collect();
        list.sort_by(|a, b| (b.time, &a.stack).cmp(&(a.time, &b.stack)));
        list
    }

    /// The time by process, stack and work. `process` and `label` give the names.
    pub fn tree<'n>(
        &self,
        process: impl Fn(ProcessIndex) -> String,
        label: impl Fn(u32) -> &'n str,
    ) -> StackTree {
        let texts = self.texts();
        let mut all: Vec<_> = self.all().collect();
        all.sort_by_key(|(process, stack, label, ..)| (*process, *stack, *label));
        let mut tree = StackTree::default();
        for (of, stack, work, count, time) in all {
            let process = process(of);
            let frames = texts.get(&stack).map(|text| text.rsplit(CALLED_BY));
            let frames = std::iter::once(&*process).chain(frames.into_iter().flatten());
            tree.add_many(frames.chain([label(work)]), count, time);
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::ArgumentType;
    use gputrail_trace::model::{Function, Parameter, Value};

    fn work(label: u32, took: u64) -> LaunchedWork {
        LaunchedWork {
            process: ProcessIndex(0),
            label,
            took,
        }
    }

    #[test]
    fn work_counts_for_the_stack_of_its_call_whichever_comes_first() {
        let function = Function {
            parameters: vec![Parameter {
                name: STACK.into(),
                kind: ArgumentType::STRING,
            }],
            ..Function::default()
        };
        let mut stacks = LaunchStacks::default();
        let call = |stacks: &mut LaunchStacks, stack: &str, event: u64| {
            stacks.call(&Call {
                submitted: &[EventId(event)],
                arguments: &[Value::Text(stack)],
                ..Call::blank(&function)
            });
        };
        call(&mut stacks, "step < main", 1);
        stacks.work(Some(EventId(1)), work(0, 10));
        stacks.work(Some(EventId(2)), work(1, 50));
        call(&mut stacks, "step < main", 2);
        stacks.work(Some(EventId(3)), work(1, 7));
        stacks.work(None, work(1, 1));
        let list = stacks.list();
        let rows: Vec<_> = list
            .iter()
            .map(|row| (row.stack.as_deref(), row.count, row.time.0, row.label))
            .collect();
        let expected = [(Some("step < main"), 2, 60, 1), (None, 2, 8, 1)];
        assert_eq!(rows, expected);
        let tree = stacks.tree(
            |_| "app".to_owned(),
            |label| ["copy", "gemm"][label as usize],
        );
        let names = tree.names();
        let lines: Vec<_> = tree
            .stacks()
            .map(|(frames, count, time)| {
                let frames = frames.iter().map(|frame| &*names[*frame as usize]);
                (frames.collect::<Vec<_>>().join(";"), count, time)
            })
            .collect();
        let expected = [
            ("app;main;step;copy", 1, 10),
            ("app;main;step;gemm", 1, 50),
            ("app;gemm", 2, 8),
        ];
        assert_eq!(
            lines,
            expected.map(|(text, count, time)| (text.to_owned(), count, time))
        );
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut stacks = LaunchStacks::default();
        for event in 0..2 * MAX_WAITING as u64 {
            stacks.work(Some(EventId(event)), work(0, 1));
        }
        assert!(stacks.halves.len() <= MAX_WAITING && stacks.order.len() <= MAX_WAITING);
        assert_eq!(stacks.list()[0].count, 2 * MAX_WAITING as u64);
    }
}
