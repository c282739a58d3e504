//! Batches of joined records: each piece of work is one record, its enqueue record with [`WorkTimes`] behind it, in
//! nanoseconds. Buffers of tools deliver these unless they ask for records as they were written.

use super::timeline::{TimedWork, Timeline};
use gputrail_buffer::BlockView;
use gputrail_record::*;
use bytemuck::{Pod, Zeroable};

/// The form in which a buffer delivers work.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum RecordFormat {
    /// One record for each piece of work when it has completed, with its times in nanoseconds behind it.
    #[default]
    Joined = 0,
    /// Records as they were written: one when work is enqueued, one when it completes, in the units of the clocks.
    Raw = 1,
}

/// The times of a piece of work, in nanoseconds of CLOCK_BOOTTIME; 0 is not known. They follow its record in buffers of
/// joined records.
///
/// Commands of a command buffer (`SHARED` in the flags of the record) have the times of the whole buffer. Some runtimes
/// measure only its end, and state that it began shortly before.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct WorkTimes {
    /// When the call that enqueued it was entered.
    pub enqueued: Nanos,
    /// When the runtime took it.
    pub queued: Nanos,
    /// When the runtime handed it to the agent.
    pub submitted: Nanos,
    /// When it began to run.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// When the host learnt of its completion.
    pub completed: Nanos,
    /// Status of the runtime, negative for errors.
    pub status: i32,
    /// Why times are missing.
    pub unfinished: Unfinished,
    /// 0.
    pub reserved: [u8; 3],
}

impl WorkTimes {
    /// The times of a record of work, if it is a joined one.
    pub fn of(record: RecordRef<'_>) -> Option<WorkTimes> {
        let alone = match record.kind() {
            Kind::KERNEL_DISPATCH => size_of::<KernelDispatch>(),
            Kind::MEMORY_COPY => size_of::<MemoryCopy>(),
            Kind::MEMORY_SET => size_of::<MemorySet>(),
            Kind::SYNCHRONIZATION => size_of::<Synchronization>(),
            _ => return None,
        };
        let times = record.bytes().get(alone..)?;
        (times.len() == size_of::<WorkTimes>()).then(|| bytemuck::pod_read_unaligned(times))
    }

    /// How long it ran, if that is known.
    pub fn duration(&self) -> Option<Nanos> {
        let known = self.start.is_some() && self.end.is_some();
        known.then(|| Nanos(self.end.0.saturating_sub(self.start.0)))
    }
}

/// Joins the records of a buffer's batches.
pub struct Joiner {
    timeline: Timeline,
    /// The batch that is being made; words keep records aligned.
    batch: Vec<u64>,
}

impl Joiner {
    /// A joiner of work whose times `timeline` knows.
    pub fn new(timeline: Timeline) -> Joiner {
        Joiner {
            timeline,
            batch: Vec::new(),
        }
    }

    /// The joined records that a batch completes.
    pub fn join<'a>(&'a mut self, view: &BlockView<'_>) -> BlockView<'a> {
        let Joiner { timeline, batch } = self;
        batch.clear();
        for record in Records::new(view.bytes) {
            let of_work = match record.kind() {
                Kind::KERNEL_DISPATCH | Kind::MEMORY_COPY | Kind::MEMORY_SET | Kind::COMPLETION => {
                    true
                }
                // Waits of the host are no work.
                Kind::SYNCHRONIZATION => record
                    .read::<Synchronization>()
                    .is_some_and(|record| record.work.id.is_some()),
                _ => false,
            };
            match of_work {
                true => timeline.add(Records::new(record.bytes()), |work| {
                    append_work(batch, work)
                }),
                false => append(batch, record.bytes()),
            }
        }
        BlockView {
            bytes: bytemuck::cast_slice(batch),
            offset: 0,
            first_record: 0,
            ..*view
        }
    }

    /// The records of work of which only a part has come.
    pub fn finish(&mut self) -> BlockView<'_> {
        let Joiner { timeline, batch } = self;
        batch.clear();
        timeline.finish(|work| append_work(batch, work));
        BlockView {
            lane: 0,
            thread: ThreadId::NONE,
            sequence: 0,
            offset: 0,
            first_record: 0,
            bytes: bytemuck::cast_slice(batch),
        }
    }
}

fn append(batch: &mut Vec<u64>, record: &[u8]) {
    let (start, words) = (batch.len(), record.len() / 8);
    batch.resize(start + words, 0);
    bytemuck::cast_slice_mut(&mut batch[start..]).copy_from_slice(&record[..words * 8]);
}

fn append_work(batch: &mut Vec<u64>, work: &TimedWork) {
    let Some(enqueued) = &work.enqueued else {
        // Its enqueue record was dropped.
        if let Some(completion) = &work.completion {
            append(batch, bytemuck::bytes_of(completion));
        }
        return;
    };
    let start = batch.len();
    append(batch, enqueued.bytes());
    append(batch, bytemuck::bytes_of(&work.times()));
    let words = (batch.len() - start) as u16;
    let header: &mut [Header] = bytemuck::cast_slice_mut(&mut batch[start..=start]);
    header[0].words = words;
    if let Some(completion) = &work.completion {
        header[0].flags |= completion.header.flags;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_capture::names::Names;
    use gputrail_buffer::clock::{self, SystemClock};

    fn view(bytes: &[u8]) -> BlockView<'_> {
        BlockView {
            lane: 3,
            thread: ThreadId(7),
            sequence: 0,
            offset: 64,
            first_record: 5,
            bytes,
        }
    }

    #[test]
    fn a_kernel_comes_once_with_its_times_in_nanoseconds() {
        let names = Names::new();
        let mut joiner = Joiner::new(Timeline::new(names.clone()).unwrap());
        let agent = AgentId(1);
        for _ in 0..20 {
            let mut pair = ClockPair::blank();
            pair.agent = agent;
            pair.before = clock::now_ordered();
            pair.device = DeviceTime(SystemClock::MonotonicRaw.read().0);
            pair.after = clock::now_ordered();
            names.clock_pair(pair);
        }
        let before = SystemClock::Boottime.read();
        let mut kernel = KernelDispatch::blank();
        (kernel.work.id, kernel.work.agent) = (WorkId(7), agent);
        kernel.work.enqueued = clock::now();
        let mut done = Completion::blank();
        (done.work, done.agent, done.completed) = (WorkId(7), agent, clock::now());
        done.start = DeviceTime(SystemClock::MonotonicRaw.read().0);
        done.end = DeviceTime(done.start.0 + 5000);
        let call = Api::blank();

        let enqueues = [bytemuck::bytes_of(&kernel), bytemuck::bytes_of(&call)].concat();
        let batch = joiner.join(&view(&enqueues));
        let kinds: Vec<Kind> = batch.records().map(|record| record.kind()).collect();
        assert_eq!(kinds, [Kind::API], "a kernel that runs is not delivered");

        let batch = joiner.join(&view(bytemuck::bytes_of(&done)));
        let records: Vec<RecordRef<'_>> = batch.records().collect();
        let [record] = records[..] else {
            panic!("{records:?}")
        };
        assert_eq!(record.read::<KernelDispatch>().unwrap().work, kernel.work);
        let times = WorkTimes::of(record).unwrap();
        assert!(times.duration().unwrap().0.abs_diff(5000) <= 10);
        assert!(
            times.start.0 + 1_000_000 > before.0
                && times.enqueued.is_some()
                && times.completed.is_some()
        );
        assert!(joiner.finish().bytes.is_empty());
    }

    #[test]
    fn work_that_has_not_completed_comes_at_the_end_without_times() {
        let mut joiner = Joiner::new(Timeline::new(Names::new()).unwrap());
        let mut copy = MemoryCopy::blank();
        copy.work.id = WorkId(1);
        assert!(
            joiner
                .join(&view(bytemuck::bytes_of(&copy)))
                .bytes
                .is_empty()
        );
        let left = joiner.finish();
        let record = left.records().next().unwrap();
        assert_eq!(record.kind(), Kind::MEMORY_COPY);
        assert_eq!(WorkTimes::of(record).unwrap().duration(), None);
    }
}
