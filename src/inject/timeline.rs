//! When work ran, in nanoseconds of the host: the enqueue records and completions of batches put together, with their
//! times converted.
//!
//! For histograms of kernels or the bandwidth of copies, while the program runs. A [`Timeline`] gets every batch of a
//! buffer and tells of each piece of work once.

use gputrail_buffer::clock::NoSnapshot;
use gputrail_capture::join::{Enqueue, Found, Join};
use gputrail_capture::names::Names;
use gputrail_collect::times::TimeConverter;
use gputrail_interface::joined::WorkTimes;
use gputrail_record::*;

/// The enqueue record of a piece of work.
#[derive(Copy, Clone, Debug)]
pub enum EnqueueRecord {
    /// A kernel.
    Kernel(KernelDispatch),
    /// A transfer.
    Copy(MemoryCopy),
    /// A fill.
    Set(MemorySet),
    /// A marker or barrier.
    Synchronization(Synchronization),
}

/// A piece of work.
#[derive(Copy, Clone, Debug)]
pub struct TimedWork {
    /// Its enqueue record. `None`: that was dropped, or has not been among the batches.
    pub enqueued: Option<EnqueueRecord>,
    /// Its completion. `None`: it has not completed, or that was dropped.
    pub completion: Option<Completion>,
    /// When the call that enqueued it was entered; none if that is not known.
    pub enqueue_time: Nanos,
    /// When the runtime took it; none if that is not known.
    pub queued: Nanos,
    /// When the runtime handed it to the agent; none if that is not known.
    pub submitted: Nanos,
    /// When it began to run; none if that is not known.
    pub start: Nanos,
    /// When it ended; none if that is not known.
    pub end: Nanos,
    /// When the host learnt of its completion; none if that is not known.
    pub completed: Nanos,
}

impl TimedWork {
    /// How long it ran, if that is known.
    pub fn duration(&self) -> Option<Nanos> {
        self.times().duration()
    }

    /// The work of a joined record.
    fn joined(record: RecordRef<'_>, times: WorkTimes) -> TimedWork {
        let kernel = record.read().map(EnqueueRecord::Kernel);
        let copy = || record.read().map(EnqueueRecord::Copy);
        let set = || record.read().map(EnqueueRecord::Set);
        let other = || record.read().map(EnqueueRecord::Synchronization);
        TimedWork {
            enqueued: kernel.or_else(copy).or_else(set).or_else(other),
            completion: None,
            enqueue_time: times.enqueued,
            queued: times.queued,
            submitted: times.submitted,
            start: times.start,
            end: times.end,
            completed: times.completed,
        }
    }

    /// Its times.
    pub fn times(&self) -> WorkTimes {
        let completion = self.completion.as_ref();
        WorkTimes {
            enqueued: self.enqueue_time,
            queued: self.queued,
            submitted: self.submitted,
            start: self.start,
            end: self.end,
            completed: self.completed,
            status: completion.map_or(0, |completion| completion.status),
            unfinished: completion.map_or(Unfinished::NO_COMPLETION, |completion| {
                completion.unfinished
            }),
            reserved: [0; 3],
        }
    }
}

/// See the module.
pub struct Timeline {
    times: TimeConverter,
    join: Join<WaitingEnqueue>,
    found: Vec<Found<WaitingEnqueue>>,
}

impl Timeline {
    /// The timeline of the process whose agents `names` names.
    pub fn new(names: Names) -> Result<Timeline, NoSnapshot> {
        Ok(Timeline {
            times: TimeConverter::new(names)?,
            join: Join::default(),
            found: Vec::new(),
        })
    }

    /// Adds records, and calls `deliver` with each piece of work whose enqueue record and completion are both known
    /// now.
    pub fn add(&mut self, records: Records<'_>, mut deliver: impl FnMut(&TimedWork)) {
        for record in records {
            if let Some(times) = WorkTimes::of(record) {
                deliver(&TimedWork::joined(record, times));
                continue;
            }
            let Timeline { join, found, .. } = self;
            match record.kind() {
                Kind::KERNEL_DISPATCH => {
                    enqueue(join, record.read().map(EnqueueRecord::Kernel), found)
                }
                Kind::MEMORY_COPY => enqueue(join, record.read().map(EnqueueRecord::Copy), found),
                Kind::MEMORY_SET => enqueue(join, record.read().map(EnqueueRecord::Set), found),
                Kind::SYNCHRONIZATION => {
                    // Waits of the host are no work.
                    let marker = record
                        .read::<Synchronization>()
                        .filter(|record| record.work.id.is_some());
                    enqueue(join, marker.map(EnqueueRecord::Synchronization), found);
                }
                Kind::COMPLETION => {
                    if let Some(completion) = record.read() {
                        let work = join.complete(&completion, found);
                        found.extend(work.map(|work| Found::Both(work, completion)));
                    }
                }
                _ => {}
            }
        }
        self.deliver_found(&mut deliver);
    }

    /// Calls `deliver` with the work of which only the enqueue record or only the completion is known, and forgets it.
    pub fn finish(&mut self, mut deliver: impl FnMut(&TimedWork)) {
        self.join.finish(&mut self.found);
        self.deliver_found(&mut deliver);
    }

    /// Calls `deliver` with the work of `completion` that waits, and goes on waiting: it has not completed.
    pub(super) fn unfinished(
        &mut self,
        completion: &Completion,
        mut deliver: impl FnMut(&TimedWork),
    ) {
        let waiting = self.join.waiting(completion.work);
        self.found
            .extend(waiting.map(|work| Found::Both(*work, *completion)));
        self.deliver_found(&mut deliver);
    }

    /// The clocks of the process.
    pub(super) fn clocks(&mut self) -> &mut TimeConverter {
        &mut self.times
    }

    fn deliver_found(&mut self, deliver: &mut impl FnMut(&TimedWork)) {
        for found in std::mem::take(&mut self.found) {
            let (enqueued, completion) = found.parts();
            let (enqueued, completion) = (enqueued.map(|one| one.what), completion.copied());
            let entered = enqueued.map_or(Ticks::NONE, |one| one.work().enqueued);
            let enqueue_time = self.times.host(entered);
            let ran = completion.as_ref().map(|of| {
                let times = [of.queued, of.submitted, of.start, of.end];
                self.times.of_work(of.agent, enqueue_time, times)
            });
            let [queued, submitted, start, end] = ran.unwrap_or_default();
            let completed = completion
                .as_ref()
                .map_or(Ticks::NONE, |completion| completion.completed);
            deliver(&TimedWork {
                enqueued,
                completion,
                enqueue_time,
                queued,
                submitted,
                start,
                end,
                completed: self.times.host(completed),
            });
        }
    }
}

fn enqueue(
    join: &mut Join<WaitingEnqueue>,
    what: Option<EnqueueRecord>,
    found: &mut Vec<Found<WaitingEnqueue>>,
) {
    if let Some(what) = what {
        join.enqueue(WaitingEnqueue { what, serial: 0 }, found);
    }
}

/// An enqueue record that waits for its completion.
#[derive(Copy, Clone, Debug)]
struct WaitingEnqueue {
    what: EnqueueRecord,
    serial: u32,
}

impl EnqueueRecord {
    pub(super) fn header(&self) -> &Header {
        match self {
            EnqueueRecord::Kernel(record) => &record.header,
            EnqueueRecord::Copy(record) => &record.header,
            EnqueueRecord::Set(record) => &record.header,
            EnqueueRecord::Synchronization(record) => &record.header,
        }
    }

    /// The fields that all work records share.
    pub fn work(&self) -> &WorkHeader {
        match self {
            EnqueueRecord::Kernel(record) => &record.work,
            EnqueueRecord::Copy(record) => &record.work,
            EnqueueRecord::Set(record) => &record.work,
            EnqueueRecord::Synchronization(record) => &record.work,
        }
    }

    /// Its record, as bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            EnqueueRecord::Kernel(record) => bytemuck::bytes_of(record),
            EnqueueRecord::Copy(record) => bytemuck::bytes_of(record),
            EnqueueRecord::Set(record) => bytemuck::bytes_of(record),
            EnqueueRecord::Synchronization(record) => bytemuck::bytes_of(record),
        }
    }
}

impl Enqueue for WaitingEnqueue {
    fn work(&self) -> WorkId {
        self.what.work().id
    }

    fn is_untracked(&self) -> bool {
        self.what.header().has(flags::UNTRACKED)
    }

    fn is_shared(&self) -> bool {
        self.what.header().has(flags::SHARED)
    }

    fn serial(&self) -> u32 {
        self.serial
    }

    fn set_serial(&mut self, serial: u32) {
        self.serial = serial;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_buffer::clock::{self, SystemClock};

    #[test]
    fn a_kernel_is_delivered_once_with_its_times() {
        let names = Names::new();
        let mut times = Timeline::new(names.clone()).unwrap();
        let agent = AgentId(1);
        for _ in 0..20 {
            let mut pair = ClockPair::blank();
            pair.agent = agent;
            pair.before = clock::now_ordered();
            pair.device = DeviceTime(SystemClock::MonotonicRaw.read().0);
            pair.after = clock::now_ordered();
            names.clock_pair(pair);
        }
        let mut kernel = KernelDispatch::blank();
        let work = &mut kernel.work;
        (work.id, work.agent, work.enqueued) = (WorkId(7), agent, clock::now());
        let mut done = Completion::blank();
        (done.work, done.agent) = (kernel.work.id, agent);
        done.start = DeviceTime(SystemClock::MonotonicRaw.read().0);
        done.end = DeviceTime(done.start.0 + 5000);
        let mut delivered = Vec::new();
        times.add(Records::new(bytemuck::bytes_of(&done)), |work| {
            delivered.push(*work)
        });
        assert!(delivered.is_empty());
        times.add(Records::new(bytemuck::bytes_of(&kernel)), |work| {
            delivered.push(*work)
        });
        times.finish(|work| delivered.push(*work));
        let [work] = delivered[..] else {
            panic!("{delivered:?}")
        };
        assert!(matches!(work.enqueued, Some(EnqueueRecord::Kernel(_))));
        // Within what two conversions round.
        assert!(work.duration().unwrap().0.abs_diff(5000) <= 10);
        assert!(work.enqueue_time.is_some());
    }
}
