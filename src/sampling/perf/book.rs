//! Which dispatch a sample is of: that of its kernel whose time on the device holds the sample's.
//!
//! The program's threads put down what they enqueue and what completes; whoever drains the rings reads it. The order
//! is what makes it whole: first the notes are taken, then the rings are drained. So when a completion is looked at, every
//! sample that was taken before its end is there.
//!
//! Samples wait for the completion of their dispatch. Where two dispatches of one kernel ran at the same time, the one
//! that completed first gets what both may have had.

use super::mappings::KernelCode;
use crate::record::{AgentId, CorrelationId, ExternalId, KernelId, WorkId};
use crate::sampling::code::CodeOffset;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

/// Notes that wait to be read; more are counted, and their samples belong to no dispatch.
const MOST_NOTES: usize = 1 << 18;
/// Dispatches that have not completed.
const MOST_OUTSTANDING: usize = 1 << 18;
/// Samples that wait for their dispatch to complete.
pub const MOST_HELD: usize = 1 << 18;
/// Gaps in the samples of a thread that are remembered.
const MOST_GAPS: usize = 1 << 12;
/// Looks at a lock that somebody else holds, for the few instructions that a note takes.
const PATIENCE: u32 = 2_000;

/// What a thread of the program puts down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A kernel was put into a queue.
    Enqueued(Enqueued),
    /// Work has completed: when it ran, or zeros if that is not known.
    Completed {
        /// The work.
        work: WorkId,
        /// When it began.
        start: u64,
        /// When it ended.
        end: u64,
    },
}

/// A kernel in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The work; kernels of one command buffer share it.
    pub work: WorkId,
    /// The kernel.
    pub kernel: KernelId,
    /// The call that enqueued it.
    pub correlation: CorrelationId,
    /// External id of that call.
    pub external: ExternalId,
    /// The agent.
    pub agent: AgentId,
    /// Whether anybody gets a record of it.
    pub is_recorded: bool,
}

/// Where notes wait.
#[derive(Default)]
pub struct Notes {
    waiting: Mutex<Vec<Note>>,
    lost: AtomicU64,
}

impl Notes {
    /// Puts `note` down. Never waits: it may be called in a completion callback, or in a signal handler that has
    /// interrupted this very function.
    pub fn put(&self, note: Note) {
        for _ in 0..PATIENCE {
            let mut waiting = match self.waiting.try_lock() {
                Ok(waiting) => waiting,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    std::hint::spin_loop();
                    continue;
                }
            };
            if waiting.len() < MOST_NOTES {
                return waiting.push(note);
            }
            break;
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes all of them, leaving the room of `into`, which is empty, for new ones.
    pub fn take(&self, into: &mut Vec<Note>) {
        let mut waiting = crate::sync::lock_std(&self.waiting);
        std::mem::swap(&mut *waiting, into);
    }

    /// Notes that could not be put down.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// A sample in the code of a kernel.
#[derive(Clone, Debug)]
pub struct Held {
    /// When it was taken.
    pub time: u64,
    /// Where in the code.
    pub offset: CodeOffset,
    /// The thread.
    pub thread: u32,
    /// The CPU.
    pub cpu: u32,
    /// The code.
    pub code: Arc<KernelCode>,
}

/// A dispatch, and how many samples it has had.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// What is known of it.
    pub enqueued: Enqueued,
    /// The others of one command buffer.
    others: Vec<KernelId>,
    /// Samples that it got before it completed.
    early: u64,
    /// Those of them that there was no room for.
    early_dropped: u64,
}

impl Dispatch {
    fn kernels(&self) -> impl Iterator<Item = KernelId> {
        std::iter::once(self.enqueued.kernel).chain(self.others.iter().copied())
    }
}

/// A time in which samples of a thread were lost.
#[derive(Clone, Copy, Debug)]
struct Gap {
    from: u64,
    to: u64,
    lost: u64,
}

/// What happens to a sample.
pub enum Verdict<'a> {
    /// It is of this dispatch and kernel.
    Of(&'a Dispatch, KernelId),
    /// It is of a dispatch that nobody gets a record of.
    LeftOut,
    /// Its dispatch is not known.
    Unknown,
}

/// A dispatch that completed, with its samples counted.
pub struct Counted {
    /// The dispatch.
    pub enqueued: Enqueued,
    /// All of its samples.
    pub total: u64,
    /// Those that there was no room for.
    pub dropped: u64,
}

/// Dispatches and samples that wait for each other.
#[derive(Default)]
pub struct Book {
    /// Names of kernels, each one string.
    kernels: HashMap<KernelId, Arc<str>>,
    outstanding: HashMap<WorkId, Dispatch>,
    /// By the kernel's name, in the order of their times.
    held: HashMap<Arc<str>, Vec<Held>>,
    held_count: usize,
    gaps: VecDeque<Gap>,
    /// Dispatches that were too many to be remembered.
    pub forgotten: u64,
    /// Lost samples that turned out to be of no dispatch.
    pub lost_elsewhere: u64,
}

impl Book {
    /// A kernel was put into a queue; `name` says what it is called.
    pub fn enqueued(&mut self, enqueued: Enqueued, name: impl FnOnce() -> Option<Arc<str>>) {
        if let std::collections::hash_map::Entry::Vacant(vacant) =
            self.kernels.entry(enqueued.kernel)
            && let Some(name) = name()
        {
            vacant.insert(name);
        }
        if let Some(shared) = self.outstanding.get_mut(&enqueued.work) {
            if !shared.kernels().any(|kernel| kernel == enqueued.kernel) {
                shared.others.push(enqueued.kernel);
            }
        } else if self.outstanding.len() >= MOST_OUTSTANDING {
            self.forgotten += 1;
        } else {
            let dispatch = Dispatch {
                enqueued,
                others: Vec::new(),
                early: 0,
                early_dropped: 0,
            };
            self.outstanding.insert(enqueued.work, dispatch);
        }
    }

    /// A sample was taken.
    pub fn hold(&mut self, held: Held) {
        self.held_count += 1;
        match self.held.get_mut(&held.code.kernel) {
            Some(samples) => samples.push(held),
            None => {
                self.held.insert(held.code.kernel.clone(), vec![held]);
            }
        }
    }

    /// All samples of a round are here.
    pub fn sort(&mut self) {
        for samples in self.held.values_mut() {
            // Mostly sorted: one run a thread.
            samples.sort_by_key(|held| held.time);
        }
    }

    /// Samples of one thread were lost.
    pub fn gap(&mut self, from: u64, to: u64, lost: u64) {
        if self.gaps.len() == MOST_GAPS
            && let Some(oldest) = self.gaps.pop_front()
        {
            self.lost_elsewhere += oldest.lost;
        }
        self.gaps.push_back(Gap { from, to, lost });
    }

    /// Work has completed: hands out its samples, and counts them.
    pub fn completed(
        &mut self,
        work: WorkId,
        (start, end): (u64, u64),
        mut give: impl FnMut(Held, Verdict<'_>) -> bool,
    ) -> Option<Counted> {
        let dispatch = self.outstanding.remove(&work)?;
        let (mut total, mut dropped) = (dispatch.early, dispatch.early_dropped);
        for kernel in dispatch.kernels() {
            let Some(samples) = self
                .kernels
                .get(&kernel)
                .and_then(|name| self.held.get_mut(name))
            else {
                continue;
            };
            let first = samples.partition_point(|held| held.time < start);
            let after = samples.partition_point(|held| held.time <= end);
            for held in samples.drain(first..after.max(first)) {
                self.held_count -= 1;
                let verdict = match dispatch.enqueued.is_recorded {
                    true => Verdict::Of(&dispatch, kernel),
                    false => Verdict::LeftOut,
                };
                total += 1;
                dropped += u64::from(!give(held, verdict));
            }
        }
        let lost = self.lost_in(start, end);
        Some(Counted {
            enqueued: dispatch.enqueued,
            total: total + lost,
            dropped: dropped + lost,
        })
    }

    /// Takes those lost samples that fall into a time: a gap's are spread over it evenly.
    fn lost_in(&mut self, start: u64, end: u64) -> u64 {
        let mut lost = 0;
        for gap in &mut self.gaps {
            let (from, to) = (gap.from.max(start), gap.to.min(end));
            if from >= to || gap.lost == 0 {
                continue;
            }
            let share =
                u128::from(gap.lost) * u128::from(to - from) / u128::from(gap.to - gap.from);
            let share = (share as u64).min(gap.lost);
            // What is left is spread over what is left of the time.
            gap.lost -= share;
            if end >= gap.from && start <= gap.from {
                gap.from = to;
            }
            lost += share;
        }
        self.gaps.retain(|gap| gap.lost > 0 && gap.from < gap.to);
        lost
    }

    /// Whether so many samples wait that some have to go.
    pub fn is_full(&self) -> bool {
        self.held_count > MOST_HELD
    }

    /// Hands out every sample that waits: where one dispatch of its kernel alone is outstanding, it is that one's.
    pub fn give_all(&mut self, mut give: impl FnMut(Held, Verdict<'_>) -> bool) {
        for (name, samples) in &mut self.held {
            if samples.is_empty() {
                continue;
            }
            let kernels = &self.kernels;
            let mut candidates = self.outstanding.values_mut().filter_map(|dispatch| {
                let of_name = |kernel: &KernelId| kernels.get(kernel) == Some(name);
                let kernel = dispatch.kernels().find(of_name)?;
                Some((dispatch, kernel))
            });
            let only = candidates.next();
            let mut only = only.filter(|_| candidates.next().is_none());
            for held in samples.drain(..) {
                match &mut only {
                    Some((dispatch, _)) if !dispatch.enqueued.is_recorded => {
                        give(held, Verdict::LeftOut);
                    }
                    Some((dispatch, kernel)) => {
                        let given = give(held, Verdict::Of(dispatch, *kernel));
                        dispatch.early += 1;
                        dispatch.early_dropped += u64::from(!given);
                    }
                    None => {
                        give(held, Verdict::Unknown);
                    }
                }
            }
        }
        self.held_count = 0;
    }

    /// Dispatches that got samples before they completed, and have not.
    pub fn unfinished(&mut self) -> Vec<Counted> {
        let given = self.outstanding.drain().map(|(_, dispatch)| dispatch);
        given
            .filter(|dispatch| dispatch.early > 0 && dispatch.enqueued.is_recorded)
            .map(|dispatch| Counted {
                enqueued: dispatch.enqueued,
                total: dispatch.early,
                dropped: dispatch.early_dropped,
            })
            .collect()
    }
}
