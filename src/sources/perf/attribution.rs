//! Attribution of samples to dispatches: a sample belongs to the dispatch of its kernel during
//! whose execution it was taken.
//!
//! Program threads push an event for each enqueue and each completion; the drain thread pops them. Each round takes the
//! events first and drains the rings afterwards, so that every sample taken before a completion is present when the
//! completion is processed.
//!
//! Samples wait for the completion of their dispatch. If two dispatches of one kernel overlap, the one that completes first gets
//! the samples of the overlap. Dropped samples are spread over the dispatches of that time, and count in their totals.

use super::mappings::KernelCode;
use gputrail_capture::code::CodeOffset;
use gputrail_record::{AgentId, CorrelationId, ExternalId, KernelId, WorkId};
use std::collections::{HashMap, VecDeque};
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, compiler_fence};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

/// The most queued events. Further ones are counted, and their samples remain unattributed.
const MAX_EVENTS: usize = 1 << 18;
/// The most dispatches that have not completed.
const MAX_OUTSTANDING: usize = 1 << 18;
/// The most samples that wait for their dispatch to complete.
pub const MAX_WAITING: usize = 1 << 18;
/// The most gaps in the samples that are remembered.
const MAX_GAPS: usize = 1 << 12;
/// Attempts to take a lock that is held for a few instructions, before the thread that holds it is taken for one that has lost its
/// processor.
const MAX_ATTEMPTS: u32 = 2_000;
/// How long it is waited for between two later attempts.
const PAUSE: Duration = Duration::from_micros(100);
/// The most of these.
const MAX_PAUSES: u32 = 10_000;

/// An event in the life of a dispatch, reported by a thread of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchEvent {
    /// A kernel was enqueued.
    Enqueued(EnqueuedKernel),
    /// Work completed. Unknown times are 0.
    Completed {
        /// The work.
        work: WorkId,
        /// Device time of the start.
        start: u64,
        /// Device time of the end.
        end: u64,
    },
}

/// An enqueued kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnqueuedKernel {
    /// The work, which the kernels of one command buffer share.
    pub work: WorkId,
    /// The kernel.
    pub kernel: KernelId,
    /// The call that enqueued it.
    pub correlation: CorrelationId,
    /// The external id of that call.
    pub external: ExternalId,
    /// The agent.
    pub agent: AgentId,
    /// Whether any buffer records it.
    pub is_recorded: bool,
}

/// The queue of dispatch events.
#[derive(Default)]
pub struct DispatchEvents {
    waiting: Mutex<Vec<DispatchEvent>>,
    /// The thread that pushes: the address of its [`HERE`], or 0.
    pushing: AtomicUsize,
    lost: AtomicU64,
}

thread_local! {
    /// Its address is another one in each thread.
    static HERE: u8 = const { 0 };
}

impl DispatchEvents {
    /// Pushes an event. Completion callbacks call this, and so may a signal handler that has interrupted this very function:
    /// its event is lost, and counted. Other threads hold the queue for a few instructions, and are waited for.
    pub fn push(&self, event: DispatchEvent) {
        let here = HERE.with(|here| ptr::from_ref(here).addr());
        for attempt in 0..MAX_ATTEMPTS + MAX_PAUSES {
            let mut waiting = match self.waiting.try_lock() {
                Ok(waiting) => waiting,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if self.pushing.load(Ordering::Relaxed) == here => {
                    break;
                }
                Err(TryLockError::WouldBlock) => {
                    if attempt < MAX_ATTEMPTS {
                        std::hint::spin_loop();
                    } else {
                        std::thread::sleep(PAUSE);
                    }
                    continue;
                }
            };
            self.pushing.store(here, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            let has_room = waiting.len() < MAX_EVENTS;
            if has_room {
                waiting.push(event);
            }
            compiler_fence(Ordering::SeqCst);
            self.pushing.store(0, Ordering::Relaxed);
            if has_room {
                return;
            }
            break;
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes all events. `into` must be empty; its capacity is reused.
    pub fn take(&self, into: &mut Vec<DispatchEvent>) {
        let mut waiting = gputrail_buffer::platform::sync::lock_std(&self.waiting);
        std::mem::swap(&mut *waiting, into);
    }

    /// The number of events that did not fit.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// A sample in the code of a kernel.
#[derive(Clone, Debug)]
pub struct KernelSample {
    /// The time, by the samples' clock or, once attributed, by the device's.
    pub time: u64,
    /// The position in the code.
    pub offset: CodeOffset,
    /// The thread that was sampled.
    pub thread: u32,
    /// The CPU on which it ran.
    pub cpu: u32,
    /// The code.
    pub code: Arc<KernelCode>,
}

/// A dispatch that has not completed.
#[derive(Clone, Debug)]
pub struct PendingDispatch {
    /// The first kernel of the work.
    pub enqueued: EnqueuedKernel,
    /// The other kernels of a command buffer.
    others: Vec<KernelId>,
    /// Samples attributed before completion.
    early: u64,
    /// The number of these that were dropped.
    early_dropped: u64,
}

impl PendingDispatch {
    fn kernels(&self) -> impl Iterator<Item = KernelId> {
        std::iter::once(self.enqueued.kernel).chain(self.others.iter().copied())
    }
}

/// An interval in which samples of a thread were lost.
#[derive(Clone, Copy, Debug)]
struct Gap {
    from: u64,
    to: u64,
    lost: u64,
}

/// The dispatch that a sample is attributed to.
pub enum Attributed<'a> {
    /// This dispatch and kernel.
    To(&'a PendingDispatch, KernelId),
    /// A dispatch that no buffer records.
    Unrecorded,
    /// No known dispatch.
    Unknown,
}

/// The sample counts of a completed dispatch.
pub struct DispatchTotals {
    /// The first kernel of the work.
    pub enqueued: EnqueuedKernel,
    /// All samples.
    pub total: u64,
    /// The number of these that were dropped.
    pub dropped: u64,
}

/// Outstanding dispatches and the samples that wait for them.
#[derive(Default)]
pub struct Attribution {
    /// The names of kernels, shared between equal ones.
    kernels: HashMap<KernelId, Arc<str>>,
    outstanding: HashMap<WorkId, PendingDispatch>,
    /// By the kernel's name, sorted by time.
    waiting: HashMap<Arc<str>, Vec<KernelSample>>,
    waiting_count: usize,
    gaps: VecDeque<Gap>,
    /// Dispatches that exceeded [`MAX_OUTSTANDING`].
    pub forgotten: u64,
    /// Lost samples that fell into no dispatch.
    pub lost_outside: u64,
}

impl Attribution {
    /// Adds an enqueued kernel. `name` returns its name.
    pub fn enqueue(&mut self, enqueued: EnqueuedKernel, name: impl FnOnce() -> Option<Arc<str>>) {
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
            let dispatch = PendingDispatch {
                enqueued,
                others: Vec::new(),
                early: 0,
                early_dropped: 0,
            };
            self.outstanding.insert(enqueued.work, dispatch);
        }
    }

    /// Adds a sample.
    pub fn add_sample(&mut self, sample: KernelSample) {
        self.waiting_count += 1;
        match self.waiting.get_mut(&sample.code.kernel) {
            Some(samples) => samples.push(sample),
            None => {
                self.waiting
                    .insert(sample.code.kernel.clone(), vec![sample]);
            }
        }
    }

    /// Sorts the samples of a round.
    pub fn sort(&mut self) {
        for samples in self.waiting.values_mut() {
            // Mostly sorted: one run per thread.
            samples.sort_by_key(|sample| sample.time);
        }
    }

    /// Adds an interval in which samples of one thread were lost.
    pub fn add_gap(&mut self, from: u64, to: u64, lost: u64) {
        if self.gaps.len() == MAX_GAPS
            && let Some(oldest) = self.gaps.pop_front()
        {
            self.lost_outside += oldest.lost;
        }
        self.gaps.push_back(Gap { from, to, lost });
    }

    /// The agent of outstanding work.
    pub fn agent_of(&self, work: WorkId) -> Option<AgentId> {
        self.outstanding
            .get(&work)
            .map(|dispatch| dispatch.enqueued.agent)
    }

    /// Completes work: emits its samples and returns their counts. The times are by the samples' clock. `emit` returns
    /// `false` if it dropped the sample.
    pub fn complete(
        &mut self,
        work: WorkId,
        (start, end): (u64, u64),
        mut emit: impl FnMut(KernelSample, Attributed<'_>) -> bool,
    ) -> Option<DispatchTotals> {
        let dispatch = self.outstanding.remove(&work)?;
        let (mut total, mut dropped) = (dispatch.early, dispatch.early_dropped);
        for kernel in dispatch.kernels() {
            let Some(samples) = self
                .kernels
                .get(&kernel)
                .and_then(|name| self.waiting.get_mut(name))
            else {
                continue;
            };
            let first = samples.partition_point(|sample| sample.time < start);
            let after = samples.partition_point(|sample| sample.time <= end);
            for sample in samples.drain(first..after.max(first)) {
                self.waiting_count -= 1;
                let verdict = if dispatch.enqueued.is_recorded {
                    Attributed::To(&dispatch, kernel)
                } else {
                    Attributed::Unrecorded
                };
                total += 1;
                dropped += u64::from(!emit(sample, verdict));
            }
        }
        let lost = self.lost_in(start, end);
        Some(DispatchTotals {
            enqueued: dispatch.enqueued,
            total: total + lost,
            dropped: dropped + lost,
        })
    }

    /// Takes the lost samples of an interval: those of a gap are spread over it evenly.
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
            // The remaining ones are spread over the remaining part of the gap.
            gap.lost -= share;
            if end >= gap.from && start <= gap.from {
                gap.from = to;
            }
            lost += share;
        }
        self.gaps.retain(|gap| gap.lost > 0 && gap.from < gap.to);
        lost
    }

    /// Whether too many samples wait.
    pub fn is_full(&self) -> bool {
        self.waiting_count > MAX_WAITING
    }

    /// Emits all waiting samples: attributed if exactly one outstanding dispatch runs their kernel.
    pub fn emit_all(&mut self, mut emit: impl FnMut(KernelSample, Attributed<'_>) -> bool) {
        for (name, samples) in &mut self.waiting {
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
            for sample in samples.drain(..) {
                match &mut only {
                    Some((dispatch, _)) if !dispatch.enqueued.is_recorded => {
                        emit(sample, Attributed::Unrecorded);
                    }
                    Some((dispatch, kernel)) => {
                        let emitted = emit(sample, Attributed::To(dispatch, *kernel));
                        dispatch.early += 1;
                        dispatch.early_dropped += u64::from(!emitted);
                    }
                    None => {
                        emit(sample, Attributed::Unknown);
                    }
                }
            }
        }
        self.waiting_count = 0;
    }

    /// Removes all outstanding dispatches, and returns the counts of those with samples attributed.
    pub fn unfinished(&mut self) -> Vec<DispatchTotals> {
        let emitted = self.outstanding.drain().map(|(_, dispatch)| dispatch);
        emitted
            .filter(|dispatch| dispatch.early > 0 && dispatch.enqueued.is_recorded)
            .map(|dispatch| DispatchTotals {
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
    use gputrail_record::CodeObjectId;
    use std::sync::Barrier;

    const HOT: KernelId = KernelId(1);
    const COLD: KernelId = KernelId(2);

    fn dispatch(work: u64, kernel: KernelId) -> EnqueuedKernel {
        EnqueuedKernel {
            work: WorkId(work),
            kernel,
            correlation: CorrelationId(100 + work),
            external: ExternalId(0),
            agent: AgentId(1),
            is_recorded: true,
        }
    }

    fn attribution(dispatches: &[EnqueuedKernel]) -> Attribution {
        let mut attribution = Attribution::default();
        for enqueued in dispatches {
            let name = if enqueued.kernel == HOT {
                "hot"
            } else {
                "cold"
            };
            attribution.enqueue(*enqueued, || Some(name.into()));
        }
        attribution
    }

    fn hold(attribution: &mut Attribution, kernel: &str, times: &[u64]) {
        let code = Arc::new(KernelCode::new(CodeObjectId(1), kernel));
        for time in times {
            attribution.add_sample(KernelSample {
                time: *time,
                offset: CodeOffset(0),
                thread: 1,
                cpu: 0,
                code: code.clone(),
            });
        }
        attribution.sort();
    }

    #[test]
    fn a_dispatch_gets_the_samples_of_its_kernel_in_its_time() {
        let mut attribution = attribution(&[dispatch(1, HOT), dispatch(2, HOT), dispatch(3, COLD)]);
        hold(&mut attribution, "hot", &[25, 10, 15, 20, 30]);
        hold(&mut attribution, "cold", &[12]);
        let mut of = |work, times| {
            let mut emitted = Vec::new();
            let counted = attribution.complete(WorkId(work), times, |sample, verdict| {
                assert!(matches!(verdict, Attributed::To(..)));
                emitted.push(sample.time);
                true
            });
            (emitted, counted.map(|counted| counted.total))
        };
        assert_eq!(of(1, (10, 20)), (vec![10, 15, 20], Some(3)));
        assert_eq!(of(2, (21, 29)), (vec![25], Some(1)));
        assert_eq!(of(3, (0, 100)), (vec![12], Some(1)));
        // Completed twice, or not a kernel.
        assert_eq!(of(3, (0, 100)), (vec![], None));
        // One sample belongs to no dispatch.
        let mut unknown = 0;
        attribution.emit_all(|_, verdict| {
            assert!(matches!(verdict, Attributed::Unknown));
            unknown += 1;
            true
        });
        assert_eq!(unknown, 1);
    }

    #[test]
    fn samples_attributed_before_completion_are_in_the_totals() {
        let mut attribution = attribution(&[dispatch(1, HOT)]);
        hold(&mut attribution, "hot", &[10, 11, 12]);
        attribution.emit_all(|sample, verdict| {
            assert!(matches!(verdict, Attributed::To(..)));
            // One of them is dropped.
            sample.time != 11
        });
        hold(&mut attribution, "hot", &[13]);
        let counted = attribution
            .complete(WorkId(1), (10, 20), |_, _| true)
            .unwrap();
        assert_eq!((counted.total, counted.dropped), (4, 1));
    }

    #[test]
    fn lost_samples_are_spread_over_their_time_and_none_is_counted_twice() {
        let mut attribution = attribution(&[dispatch(1, HOT), dispatch(2, HOT), dispatch(3, HOT)]);
        attribution.add_gap(100, 200, 10);
        let mut dropped = |work, times| {
            let counted = attribution
                .complete(WorkId(work), times, |_, _| true)
                .unwrap();
            assert_eq!(counted.total, counted.dropped);
            counted.dropped
        };
        let all = [
            dropped(1, (50, 150)),
            dropped(2, (150, 170)),
            dropped(3, (170, 300)),
        ];
        assert_eq!((all[0], all.iter().sum::<u64>()), (5, 10));
        assert_eq!(attribution.lost_outside, 0);
    }

    #[test]
    fn samples_of_unrecorded_kernels_are_left_out() {
        let mut left_out = dispatch(1, HOT);
        left_out.is_recorded = false;
        let mut attribution = attribution(&[left_out]);
        hold(&mut attribution, "hot", &[10]);
        let mut seen = 0;
        attribution.complete(WorkId(1), (0, 20), |_, verdict| {
            assert!(matches!(verdict, Attributed::Unrecorded));
            seen += 1;
            true
        });
        assert_eq!(seen, 1);
    }

    #[test]
    fn kernels_of_a_command_buffer_share_its_time() {
        let mut attribution = attribution(&[dispatch(1, HOT), dispatch(1, COLD)]);
        hold(&mut attribution, "hot", &[10]);
        hold(&mut attribution, "cold", &[11]);
        let mut kernels = Vec::new();
        attribution.complete(WorkId(1), (0, 20), |_, verdict| {
            if let Attributed::To(_, kernel) = verdict {
                kernels.push(kernel);
            }
            true
        });
        assert_eq!(kernels, [HOT, COLD]);
    }

    #[test]
    fn events_of_many_threads_arrive_or_are_counted() {
        let events = DispatchEvents::default();
        let start = Barrier::new(4);
        let mut taken = Vec::new();
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                let (events, start) = (&events, &start);
                scope.spawn(move || {
                    start.wait();
                    for number in 0..1000 {
                        events.push(DispatchEvent::Completed {
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
                events.take(&mut some);
                taken.append(&mut some);
            }
        });
        events.take(&mut taken);
        let mut rest = Vec::new();
        events.take(&mut rest);
        assert_eq!((taken.len() + rest.len()) as u64 + events.lost(), 3000);
    }
}
