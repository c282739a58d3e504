//! Which dispatch a sample is of: that of its kernel whose time on the device holds the sample's.
//!
//! The program's threads put down what they enqueue and what completes; whoever drains the rings reads it. The order
//! is what makes it whole: first the notes are taken, then the rings are drained. So when a completion is looked at, every
//! sample that was taken before its end is there.
//!
//! Samples wait for the completion of their dispatch. Where two dispatches of one kernel ran at the same time, the one
//! that completed first gets what both may have had.

use super::mappings::KernelCode;
use crate::capture::code::CodeOffset;
use crate::record::{AgentId, CorrelationId, ExternalId, KernelId, WorkId};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

/// Notes that wait to be read; more are counted, and their samples belong to no dispatch.
const MAX_NOTES: usize = 1 << 18;
/// Dispatches that have not completed.
const MAX_OUTSTANDING: usize = 1 << 18;
/// Samples that wait for their dispatch to complete.
pub const MAX_HELD: usize = 1 << 18;
/// Gaps in the samples of a thread that are remembered.
const MAX_GAPS: usize = 1 << 12;
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
            if waiting.len() < MAX_NOTES {
                return waiting.push(note);
            }
            break;
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes all of them, leaving the room of `into`, which is empty, for new ones.
    pub fn take(&self, into: &mut Vec<Note>) {
        let mut waiting = crate::platform::sync::lock_std(&self.waiting);
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
        } else if self.outstanding.len() >= MAX_OUTSTANDING {
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
        if self.gaps.len() == MAX_GAPS
            && let Some(oldest) = self.gaps.pop_front()
        {
            self.lost_elsewhere += oldest.lost;
        }
        self.gaps.push_back(Gap { from, to, lost });
    }

    /// The agent of work that has not completed.
    pub fn agent_of(&self, work: WorkId) -> Option<AgentId> {
        self.outstanding
            .get(&work)
            .map(|dispatch| dispatch.enqueued.agent)
    }

    /// Work has completed: hands out its samples, and counts them. The times are by the clock of samples.
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
        self.held_count > MAX_HELD
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::CodeObjectId;
    use std::sync::Barrier;

    const HOT: KernelId = KernelId(1);
    const COLD: KernelId = KernelId(2);

    fn dispatch(work: u64, kernel: KernelId) -> Enqueued {
        Enqueued {
            work: WorkId(work),
            kernel,
            correlation: CorrelationId(100 + work),
            external: ExternalId(0),
            agent: AgentId(1),
            is_recorded: true,
        }
    }

    fn book(dispatches: &[Enqueued]) -> Book {
        let mut book = Book::default();
        for enqueued in dispatches {
            let name = if enqueued.kernel == HOT {
                "hot"
            } else {
                "cold"
            };
            book.enqueued(*enqueued, || Some(name.into()));
        }
        book
    }

    fn hold(book: &mut Book, kernel: &str, times: &[u64]) {
        let code = Arc::new(KernelCode::new(CodeObjectId(1), kernel));
        for time in times {
            book.hold(Held {
                time: *time,
                offset: CodeOffset(0),
                thread: 1,
                cpu: 0,
                code: code.clone(),
            });
        }
        book.sort();
    }

    #[test]
    fn a_dispatch_gets_the_samples_of_its_kernel_in_its_time() {
        let mut book = book(&[dispatch(1, HOT), dispatch(2, HOT), dispatch(3, COLD)]);
        hold(&mut book, "hot", &[25, 10, 15, 20, 30]);
        hold(&mut book, "cold", &[12]);
        let mut of = |work, times| {
            let mut given = Vec::new();
            let counted = book.completed(WorkId(work), times, |held, verdict| {
                assert!(matches!(verdict, Verdict::Of(..)));
                given.push(held.time);
                true
            });
            (given, counted.map(|counted| counted.total))
        };
        assert_eq!(of(1, (10, 20)), (vec![10, 15, 20], Some(3)));
        assert_eq!(of(2, (21, 29)), (vec![25], Some(1)));
        assert_eq!(of(3, (0, 100)), (vec![12], Some(1)));
        // Told twice, or of a copy: nothing.
        assert_eq!(of(3, (0, 100)), (vec![], None));
        // One belongs to none.
        let mut unknown = 0;
        book.give_all(|_, verdict| {
            assert!(matches!(verdict, Verdict::Unknown));
            unknown += 1;
            true
        });
        assert_eq!(unknown, 1);
    }

    #[test]
    fn what_is_given_early_is_in_the_totals() {
        let mut book = book(&[dispatch(1, HOT)]);
        hold(&mut book, "hot", &[10, 11, 12]);
        book.give_all(|held, verdict| {
            assert!(matches!(verdict, Verdict::Of(..)));
            // There is no room for one of them.
            held.time != 11
        });
        hold(&mut book, "hot", &[13]);
        let counted = book.completed(WorkId(1), (10, 20), |_, _| true).unwrap();
        assert_eq!((counted.total, counted.dropped), (4, 1));
    }

    #[test]
    fn lost_samples_are_spread_over_their_time_and_none_is_counted_twice() {
        let mut book = book(&[dispatch(1, HOT), dispatch(2, HOT), dispatch(3, HOT)]);
        book.gap(100, 200, 10);
        let mut dropped = |work, times| {
            let counted = book.completed(WorkId(work), times, |_, _| true).unwrap();
            assert_eq!(counted.total, counted.dropped);
            counted.dropped
        };
        let all = [
            dropped(1, (50, 150)),
            dropped(2, (150, 170)),
            dropped(3, (170, 300)),
        ];
        assert_eq!((all[0], all.iter().sum::<u64>()), (5, 10));
        assert_eq!(book.lost_elsewhere, 0);
    }

    #[test]
    fn kernels_that_nobody_records_keep_their_samples_to_themselves() {
        let mut left_out = dispatch(1, HOT);
        left_out.is_recorded = false;
        let mut book = book(&[left_out]);
        hold(&mut book, "hot", &[10]);
        let mut seen = 0;
        book.completed(WorkId(1), (0, 20), |_, verdict| {
            assert!(matches!(verdict, Verdict::LeftOut));
            seen += 1;
            true
        });
        assert_eq!(seen, 1);
    }

    #[test]
    fn kernels_of_a_command_buffer_share_its_time() {
        let mut book = book(&[dispatch(1, HOT), dispatch(1, COLD)]);
        hold(&mut book, "hot", &[10]);
        hold(&mut book, "cold", &[11]);
        let mut kernels = Vec::new();
        book.completed(WorkId(1), (0, 20), |_, verdict| {
            if let Verdict::Of(_, kernel) = verdict {
                kernels.push(kernel);
            }
            true
        });
        assert_eq!(kernels, [HOT, COLD]);
    }

    #[test]
    fn notes_of_many_threads_arrive_or_are_counted() {
        let notes = Notes::default();
        let start = Barrier::new(4);
        let mut taken = Vec::new();
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                let (notes, start) = (&notes, &start);
                scope.spawn(move || {
                    start.wait();
                    for number in 0..1000 {
                        notes.put(Note::Completed {
                            work: WorkId(thread << 32 | number),
                            start: 1,
                            end: 2,
                        });
                    }
                });
            }
            start.wait();
            for _ in 0..100 {
                let mut some = Vec::new();
                notes.take(&mut some);
                taken.append(&mut some);
            }
        });
        notes.take(&mut taken);
        let mut rest = Vec::new();
        notes.take(&mut rest);
        assert_eq!((taken.len() + rest.len()) as u64 + notes.lost(), 3000);
    }
}
