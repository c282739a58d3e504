//! Samples with their stacks, for flame graphs.
//!
//! Viewers do not weigh samples (Perfetto up to version 58 does not), so they are passed on one by one. If there are
//! more than [`MAX_SHOWN`], they are thinned out: one of every power of two is kept at random, so that no pattern of
//! the agent's is amplified. They are passed on at the end, in the order of their times.

use std::collections::{HashMap, HashSet};
use std::io;

use super::{Parent, ProcessIndex, StackFrame, StackIndex, StackSamples, Stream, Track, TrackKind};
use gputrail_code::aggregate::Address;
use gputrail_record::{KernelId, Nanos, QueueId, WorkId};

/// Maximum number of samples of one process that are shown.
pub const MAX_SHOWN: usize = 1 << 19;
/// Maximum number of different stacks; beyond it, samples are shown without their addresses.
const MAX_STACKS: usize = 1 << 18;
/// Number of samples that are passed on together.
const BATCH: usize = 200;

/// The queue of a sample's dispatch.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum SampledQueue {
    /// The queue, if it is known.
    Known(QueueId),
    /// The queue of this dispatch, which is known when its enqueue record comes.
    OfDispatch(WorkId),
}

/// The properties that determine the stack of a sample.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The queue of the sampled dispatch.
    pub queue: SampledQueue,
    /// The kernel.
    pub kernel: KernelId,
    /// `None` if there are too many.
    pub address: Option<Address>,
}

#[derive(Copy, Clone, Debug)]
struct ShownStack {
    time: Nanos,
    stack: u32,
    /// A random number: the sample is kept as long as its lower bits are 0.
    lot: u32,
}

/// The samples of one process that are to be shown.
#[derive(Debug, Default)]
pub struct Flame {
    shown: Vec<ShownStack>,
    stacks: Vec<Stack>,
    numbers: HashMap<Stack, u32>,
    latest: Option<(Stack, u32)>,
    /// The exponent of the thinning: one of two to the power of this many samples is kept.
    thinned: u32,
    samples: u64,
}

impl Flame {
    /// Adds a sample.
    pub fn add(&mut self, time: Nanos, stack: Stack) {
        self.samples += 1;
        self.put(time, stack, lot(self.samples));
    }

    /// Adds `count` samples taken between two times, and spreads them evenly between these.
    pub fn add_many(&mut self, (from, to): (Nanos, Nanos), stack: Stack, count: u64) {
        while count >> self.thinned > MAX_SHOWN as u64 {
            self.thin();
        }
        self.samples = self.samples.wrapping_add(count);
        // As many as would have been kept had they come one by one; the remainder is a chance of one more.
        let thinned = self.thinned;
        let rest = count & ((1 << thinned) - 1);
        let chance = u64::from(lot(self.samples)) & ((1 << thinned) - 1);
        let shown = (count >> thinned) + u64::from(chance < rest);
        let length = u128::from(to.0.saturating_sub(from.0));
        for number in 0..shown {
            let within = length * u128::from(2 * number + 1) / (2 * u128::from(shown));
            let lot = lot(self.samples.wrapping_sub(number)) << thinned;
            self.put(Nanos(from.0 + within as u64), stack, lot);
        }
    }

    fn put(&mut self, time: Nanos, stack: Stack, lot: u32) {
        if lot & ((1 << self.thinned) - 1) != 0 {
            return;
        }
        let stack = self.number(stack);
        self.shown.push(ShownStack { time, stack, lot });
        while self.shown.len() > MAX_SHOWN {
            self.thin();
        }
    }

    fn thin(&mut self) {
        self.thinned += 1;
        let mask = (1 << self.thinned) - 1;
        self.shown.retain(|sample| sample.lot & mask == 0);
    }

    fn number(&mut self, stack: Stack) -> u32 {
        if let Some((latest, number)) = self.latest
            && latest == stack
        {
            return number;
        }
        let number = match self.numbers.get(&stack) {
            Some(number) => *number,
            None if self.stacks.len() >= MAX_STACKS && stack.address.is_some() => {
                let queue = match stack.queue {
                    SampledQueue::Known(queue) => queue,
                    SampledQueue::OfDispatch(_) => QueueId::NONE,
                };
                // Queues and kernels are named, and there are fewer names than stacks.
                return self.number(Stack {
                    queue: SampledQueue::Known(queue),
                    address: None,
                    ..stack
                });
            }
            None => {
                self.stacks.push(stack);
                let number = self.stacks.len() as u32 - 1;
                self.numbers.insert(stack, number);
                number
            }
        };
        self.latest = Some((stack, number));
        number
    }

    /// How many samples one shown sample stands for.
    pub fn one_of(&self) -> u64 {
        1 << self.thinned
    }

    /// Passes on all samples. `frames` gives the frames of a stack, outermost first.
    pub fn finish(
        &mut self,
        stream: &mut Stream<'_>,
        process: ProcessIndex,
        mut frames: impl FnMut(&Stack) -> Vec<StackFrame>,
    ) -> io::Result<()> {
        if self.shown.is_empty() {
            return Ok(());
        }
        self.shown.sort_by_key(|sample| sample.time);
        let name = match self.one_of() {
            1 => "kernel samples".to_owned(),
            factor => format!("kernel samples (1 of {factor})"),
        };
        let track = stream.new_track(&Track {
            parent: Parent::Process(process),
            name: &name,
            kind: TrackKind::Samples,
            order: None,
        })?;
        let mut declared = HashSet::new();
        for samples in self.shown.chunks(BATCH) {
            for sample in samples {
                if declared.insert(sample.stack) {
                    let frames = frames(&self.stacks[sample.stack as usize]);
                    stream
                        .consumer
                        .stack(track, StackIndex(sample.stack), &frames)?;
                }
            }
            let samples: Vec<_> = samples
                .iter()
                .map(|sample| (sample.time, StackIndex(sample.stack)))
                .collect();
            let samples = &samples;
            stream
                .consumer
                .stack_samples(&StackSamples { track, samples })?;
        }
        Ok(())
    }
}

/// A number without a pattern, different for each sample (the finaliser of splitmix64).
fn lot(number: u64) -> u32 {
    let value = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (value ^ value >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::CodeObjectId;

    fn stack(offset: u64) -> Stack {
        Stack {
            queue: SampledQueue::Known(QueueId(1)),
            kernel: KernelId(1),
            address: Some(Address {
                code_object: CodeObjectId(1),
                offset,
            }),
        }
    }

    #[test]
    fn samples_are_thinned_evenly_and_in_bounded_memory() {
        let mut flame = Flame::default();
        // A pattern of eight, as of an agent with eight compute units.
        let samples = 5 * MAX_SHOWN as u64;
        for number in 0..samples {
            flame.add(Nanos(number), stack(number % 8));
            assert!(flame.shown.len() <= MAX_SHOWN);
        }
        assert_eq!(flame.one_of(), 8);
        let expected = samples as f64 / 8.0 / 8.0;
        for part in 0..8 {
            let of_stack = flame.shown.iter().filter(|sample| sample.stack == part);
            let off = of_stack.count() as f64 / expected - 1.0;
            assert!(off.abs() < 0.05, "stack {part} is off by {off}");
            // Early and late samples are kept equally.
            let from = u64::from(part) * samples / 8;
            let shown = flame.shown.iter().map(|sample| sample.time.0);
            let off = shown.filter(|time| (from..from + samples / 8).contains(time));
            let off = off.count() as f64 / expected - 1.0;
            assert!(off.abs() < 0.05, "time {part} is off by {off}");
        }
    }

    #[test]
    fn samples_that_come_as_counts_have_their_share() {
        let mut flame = Flame::default();
        let mut of_stack = [0u64; 3];
        let span = |at: u64| (Nanos(1000 * at), Nanos(1000 * at + 999));
        for at in 0..400 {
            let part = at % 3;
            let count = [40_000, 7, 3_000][part as usize];
            of_stack[part as usize] += count;
            flame.add_many(span(at), stack(part), count);
            flame.add(Nanos(1000 * at), stack(0));
            of_stack[0] += 1;
            assert!(flame.shown.len() <= MAX_SHOWN);
        }
        assert!(flame.one_of() > 1);
        for (part, samples) in of_stack.into_iter().enumerate() {
            let shown = flame.shown.iter().filter(|one| one.stack as usize == part);
            let shown = (shown.count() as u64 * flame.one_of()) as f64;
            let slack = 5.0 * (samples as f64 * flame.one_of() as f64).sqrt();
            assert!((shown - samples as f64).abs() <= slack, "{part}: {shown}");
        }
        // More than a table could hold, but without iterating over them.
        flame.add_many(span(400), stack(0), 1 << 40);
        assert!(flame.shown.len() <= MAX_SHOWN && flame.shown.len() > MAX_SHOWN / 4);
        assert!(flame.shown.iter().all(|one| one.time <= span(400).1));
    }

    #[test]
    fn counts_stand_in_the_middle_of_their_parts_of_the_time() {
        let mut flame = Flame::default();
        flame.add_many((Nanos(5000), Nanos(6000)), stack(0), 4);
        let times: Vec<u64> = flame.shown.iter().map(|one| one.time.0).collect();
        assert_eq!(times, [5125, 5375, 5625, 5875]);
    }

    #[test]
    fn beyond_so_many_stacks_addresses_are_left_out() {
        let mut flame = Flame::default();
        for offset in 0..MAX_STACKS as u64 + 10 {
            flame.add(Nanos(offset), stack(offset));
        }
        assert_eq!(flame.stacks.len(), MAX_STACKS + 1);
        assert_eq!(flame.stacks.last().unwrap().address, None);
    }
}
