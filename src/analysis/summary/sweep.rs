//! The time of a device by what ran on it at once: kernels that compute, kernels that communicate, and copies.
//!
//! Work comes nearly in the order of time. Begins wait in a heap of bounded size, from which the earliest leaves when it is
//! full; what begins before the time that the sweep has reached is cut off and counted. Marks are points in time at which the
//! sums are wanted: the sums between two marks are a difference.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{AddAssign, SubAssign};

use gputrail_record::Nanos;

use super::timeline::{Load, Timeline};

/// The class of a piece of device work.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum WorkClass {
    /// A kernel that computes.
    Compute,
    /// A kernel that moves data between devices.
    Communication,
    /// A copy, a fill, or work of unknown kind.
    Transfer,
}

impl WorkClass {
    const COUNT: usize = 3;

    const fn bit(self) -> usize {
        1 << self as usize
    }
}

/// The time of a device by the classes of work that ran at once.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceTimes {
    /// The time in which exactly a set of classes ran, ns, by the bits of the classes. No class: always 0.
    sums: [u64; 1 << WorkClass::COUNT],
    /// The number of kernels that began.
    pub kernels: u64,
}

impl DeviceTimes {
    fn sum(&self, wanted: impl Fn(usize) -> bool) -> Nanos {
        let sums = self.sums.iter().enumerate();
        Nanos(
            sums.filter(|(set, _)| wanted(*set))
                .map(|(_, sum)| *sum)
                .sum(),
        )
    }

    /// The time in which anything ran.
    pub fn busy(&self) -> Nanos {
        self.sum(|set| set != 0)
    }

    /// The time in which work of a class ran.
    pub fn of(&self, class: WorkClass) -> Nanos {
        self.sum(|set| set & class.bit() != 0)
    }

    /// The time in which kernels communicated and none computed.
    pub fn exposed_communication(&self) -> Nanos {
        let (compute, communication) = (WorkClass::Compute.bit(), WorkClass::Communication.bit());
        self.sum(|set| set & communication != 0 && set & compute == 0)
    }

    /// The time in which kernels communicated and others computed.
    pub fn hidden_communication(&self) -> Nanos {
        let both = WorkClass::Compute.bit() | WorkClass::Communication.bit();
        self.sum(|set| set & both == both)
    }

    /// The time in which copies ran, and no kernel.
    pub fn exposed_transfers(&self) -> Nanos {
        self.sum(|set| set == WorkClass::Transfer.bit())
    }
}

impl AddAssign for DeviceTimes {
    fn add_assign(&mut self, other: DeviceTimes) {
        for (sum, more) in self.sums.iter_mut().zip(other.sums) {
            *sum = sum.wrapping_add(more);
        }
        self.kernels = self.kernels.wrapping_add(other.kernels);
    }
}

impl SubAssign for DeviceTimes {
    fn sub_assign(&mut self, other: DeviceTimes) {
        for (sum, less) in self.sums.iter_mut().zip(other.sums) {
            *sum = sum.wrapping_sub(less);
        }
        self.kernels = self.kernels.wrapping_sub(other.kernels);
    }
}

/// A begin of work, or a mark. Marks come before work that begins at their time.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SweepEvent {
    Mark(u32),
    Work { end: u64, class: u8, kernel: bool },
}

/// Adds up the time of a device.
#[derive(Clone, Debug)]
pub struct Sweep {
    pending: BinaryHeap<Reverse<(u64, SweepEvent)>>,
    most: usize,
    /// The time that the sums have reached.
    now: u64,
    /// The latest end of the work of each class.
    until: [u64; WorkClass::COUNT],
    times: DeviceTimes,
    span: Option<(u64, u64)>,
    late: u64,
    /// The load over time, if it is wanted.
    timeline: Option<Box<Timeline>>,
}

/// The load of a device on which a set of classes runs.
fn load_of(set: usize) -> Load {
    let has = |class: WorkClass| set & class.bit() != 0;
    match (has(WorkClass::Compute), has(WorkClass::Communication)) {
        (true, false) => Load::Compute,
        (true, true) => Load::Hidden,
        (false, true) => Load::Exposed,
        (false, false) => Load::Transfer,
    }
}

impl Sweep {
    /// A sweep that holds back at most `most` events.
    pub fn new(most: usize) -> Sweep {
        Sweep {
            timeline: None,
            pending: BinaryHeap::new(),
            most,
            now: 0,
            until: [0; WorkClass::COUNT],
            times: DeviceTimes::default(),
            span: None,
            late: 0,
        }
    }

    /// Has the load over time kept, too.
    pub fn with_timeline(mut self) -> Sweep {
        self.timeline = Some(Box::default());
        self
    }

    /// The load over time, if it was wanted.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_deref()
    }

    /// Adds work that ran from `start` to `end`.
    pub fn work(&mut self, (start, end): (Nanos, Nanos), class: WorkClass) {
        let (start, end) = (start.0, end.0.max(start.0));
        let (first, last) = self.span.get_or_insert((start, end));
        (*first, *last) = (start.min(*first), end.max(*last));
        let work = SweepEvent::Work {
            end,
            class: class as u8,
            kernel: class != WorkClass::Transfer,
        };
        self.pending.push(Reverse((start, work)));
    }

    /// Adds a mark, a number of the caller's choosing.
    pub fn mark(&mut self, time: Nanos, mark: u32) {
        self.pending.push(Reverse((time.0, SweepEvent::Mark(mark))));
    }

    /// Goes on to the next mark, as far as more events wait than are held back: the mark, and the sums up to it.
    pub fn advance(&mut self) -> Option<(u32, DeviceTimes)> {
        while self.pending.len() > self.most {
            if let Some(passed) = self.pass() {
                return Some(passed);
            }
        }
        None
    }

    /// Goes on to the next mark, to the end of all work.
    pub fn finish(&mut self) -> Option<(u32, DeviceTimes)> {
        while !self.pending.is_empty() {
            if let Some(passed) = self.pass() {
                return Some(passed);
            }
        }
        self.sum_up_to(self.until.into_iter().max().unwrap_or(0));
        None
    }

    /// Passes the earliest event.
    fn pass(&mut self) -> Option<(u32, DeviceTimes)> {
        let Reverse((time, event)) = self.pending.pop()?;
        self.late += u64::from(time < self.now);
        self.sum_up_to(time);
        match event {
            SweepEvent::Mark(mark) => Some((mark, self.times)),
            SweepEvent::Work { end, class, kernel } => {
                self.times.kernels += u64::from(kernel);
                let until = &mut self.until[usize::from(class)];
                *until = end.max(*until);
                None
            }
        }
    }

    fn sum_up_to(&mut self, time: u64) {
        while self.now < time {
            let running = |until: &&u64| **until > self.now;
            let ends = self.until.iter().filter(running).min();
            let next = ends.map_or(time, |end| time.min(*end));
            let mut set = 0;
            for (class, until) in self.until.iter().enumerate() {
                set |= usize::from(*until > self.now) << class;
            }
            if set != 0 {
                self.times.sums[set] += next - self.now;
                if let Some(timeline) = &mut self.timeline {
                    timeline.add(self.now, next, load_of(set));
                }
            }
            self.now = next;
        }
    }

    /// The sums so far.
    pub fn times(&self) -> DeviceTimes {
        self.times
    }

    /// From the begin of the first work to the end of the last.
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        self.span.map(|(first, last)| (Nanos(first), Nanos(last)))
    }

    /// The number of begins and marks that came too late; 0 if the sums are exact.
    pub fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swept(most: usize, work: &[(u64, u64, WorkClass)]) -> Sweep {
        let mut sweep = Sweep::new(most);
        for (start, end, class) in work {
            sweep.work((Nanos(*start), Nanos(*end)), *class);
            assert_eq!(sweep.advance(), None);
        }
        assert_eq!(sweep.finish(), None);
        sweep
    }

    #[test]
    fn classes_that_run_at_once_count_once_as_busy() {
        let work = [
            (10, 20, WorkClass::Compute),
            (15, 40, WorkClass::Communication),
            (18, 19, WorkClass::Compute),
            (30, 50, WorkClass::Transfer),
            (60, 70, WorkClass::Compute),
        ];
        for most in [0, 2, 100] {
            let sweep = swept(most, &work);
            let times = sweep.times();
            assert_eq!(times.busy(), Nanos(50));
            let of = |class| times.of(class).0;
            assert_eq!(of(WorkClass::Compute), 20);
            assert_eq!(of(WorkClass::Communication), 25);
            assert_eq!(of(WorkClass::Transfer), 20);
            assert_eq!(times.exposed_communication(), Nanos(20));
            assert_eq!(times.hidden_communication(), Nanos(5));
            assert_eq!(times.exposed_transfers(), Nanos(10));
            assert_eq!(times.kernels, 4);
            assert_eq!(sweep.span(), Some((Nanos(10), Nanos(70))));
            assert_eq!(sweep.late(), 0);
        }
    }

    #[test]
    fn the_load_over_time_adds_up_to_the_sums() {
        let mut sweep = Sweep::new(0).with_timeline();
        for (start, end, class) in [
            (10, 20, WorkClass::Compute),
            (15, 40, WorkClass::Communication),
            (30, 50, WorkClass::Transfer),
        ] {
            sweep.work((Nanos(start), Nanos(end)), class);
        }
        sweep.finish();
        let timeline = sweep.timeline().expect("it was wanted");
        let sum = |load: Load| {
            let of = timeline.spans().map(|(_, loads)| loads[load as usize]);
            of.sum::<u64>()
        };
        assert_eq!(Load::ALL.map(sum), [5, 5, 20, 10]);
        assert_eq!(sweep.times().busy(), Nanos(40));
    }

    #[test]
    fn marks_get_the_sums_up_to_their_time() {
        let mut sweep = Sweep::new(100);
        sweep.work((Nanos(10), Nanos(20)), WorkClass::Compute);
        sweep.work((Nanos(30), Nanos(40)), WorkClass::Compute);
        for (time, mark) in [(30, 2), (15, 1), (90, 3)] {
            sweep.mark(Nanos(time), mark);
        }
        let mut passed = Vec::new();
        while let Some((mark, times)) = sweep.finish() {
            passed.push((mark, times.busy().0, times.kernels));
        }
        // The kernel that begins at the second mark counts after it.
        assert_eq!(passed, [(1, 5, 1), (2, 10, 1), (3, 20, 2)]);
    }

    #[test]
    fn work_that_comes_too_late_is_cut_off_and_counted() {
        let work = [
            (10, 20, WorkClass::Compute),
            (50, 60, WorkClass::Compute),
            (15, 55, WorkClass::Compute),
        ];
        let sweep = swept(0, &work);
        assert_eq!((sweep.times().busy(), sweep.late()), (Nanos(20), 1));
        assert_eq!(swept(3, &work).times().busy(), Nanos(50));
    }
}
