//! Batches of joined records: each piece of work is one record, its enqueue record with [`WorkTimes`] behind it. All times
//! are nanoseconds of CLOCK_BOOTTIME. Buffers of tools deliver these unless they ask for records as they were written.

use super::nanos;
use super::timeline::{TimedWork, Timeline};
use gputrail_buffer::BlockView;
use gputrail_interface::joined::WorkTimes;
use gputrail_record::*;

/// Joins the records of a buffer's batches.
///
/// A completion whose enqueue record was dropped is left out: that drop has been counted.
pub struct Joiner {
    timeline: Timeline,
    /// The work that had not completed at a forced flush, or at the end of the process. Its enqueue records may come later.
    unfinished: Vec<Completion>,
}

impl Joiner {
    /// A joiner of work whose times `timeline` knows.
    pub fn new(timeline: Timeline) -> Joiner {
        Joiner {
            timeline,
            unfinished: Vec::new(),
        }
    }

    /// The joined records that `view` completes, made in `batch`, whose words keep records aligned.
    pub fn join<'b>(&mut self, view: &BlockView<'_>, batch: &'b mut Vec<u64>) -> BlockView<'b> {
        let Joiner {
            timeline,
            unfinished,
        } = self;
        batch.clear();
        for record in Records::new(view.bytes) {
            if let Some(completion) = record.read::<Completion>()
                && matches!(
                    completion.unfinished,
                    Unfinished::AT_FLUSH | Unfinished::AT_END
                )
            {
                unfinished.push(completion);
                continue;
            }
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
            if of_work {
                timeline.add(Records::new(record.bytes()), |work| {
                    append_work(batch, work, Unfinished::NO_COMPLETION)
                })
            } else {
                append(batch, record.bytes())
            }
        }
        BlockView {
            lane: view.lane,
            thread: view.thread,
            ..in_nanos(batch, timeline)
        }
    }

    /// The end of a flush: the records of work that had not completed, if the flush is forced. They come again, when the work has
    /// completed or at the end.
    pub fn flushed<'b>(&mut self, is_forced: bool, batch: &'b mut Vec<u64>) -> BlockView<'b> {
        let Joiner {
            timeline,
            unfinished,
        } = self;
        batch.clear();
        // In a process that ends, no flush finds the work again.
        unfinished.retain(|completion| {
            if is_forced {
                let at_flush = Completion {
                    unfinished: Unfinished::AT_FLUSH,
                    completed: Ticks::NONE,
                    ..*completion
                };
                timeline.unfinished(&at_flush, |work| {
                    append_work(batch, work, Unfinished::AT_FLUSH)
                });
            }
            completion.unfinished == Unfinished::AT_END
        });
        in_nanos(batch, timeline)
    }

    /// The records of all work without a completion. Work that is known not to have completed has the reason `pending` for it,
    /// other work `others`.
    pub fn finish<'b>(
        &mut self,
        pending: Unfinished,
        others: Unfinished,
        batch: &'b mut Vec<u64>,
    ) -> BlockView<'b> {
        let Joiner {
            timeline,
            unfinished,
        } = self;
        batch.clear();
        for mut completion in unfinished.drain(..) {
            (completion.unfinished, completion.completed) = (pending, Ticks::NONE);
            let completed = Records::new(bytemuck::bytes_of(&completion));
            timeline.add(completed, |work| append_work(batch, work, pending));
        }
        timeline.finish(|work| append_work(batch, work, others));
        in_nanos(batch, timeline)
    }
}

/// A batch of records of several lanes, after the conversion of their times.
fn in_nanos<'a>(batch: &'a mut [u64], timeline: &mut Timeline) -> BlockView<'a> {
    let mut rest = &mut *batch;
    while let Some(first) = rest.first() {
        let words = usize::from(bytemuck::cast::<u64, Header>(*first).words.max(1));
        let (record, others) = rest.split_at_mut(words.min(rest.len()));
        nanos::convert(record, timeline.clocks());
        rest = others;
    }
    BlockView {
        lane: 0,
        thread: ThreadId::NONE,
        sequence: 0,
        offset: 0,
        first_record: 0,
        bytes: bytemuck::cast_slice(batch),
    }
}

fn append(batch: &mut Vec<u64>, record: &[u8]) {
    let (start, words) = (batch.len(), record.len() / 8);
    batch.resize(start + words, 0);
    bytemuck::cast_slice_mut(&mut batch[start..]).copy_from_slice(&record[..words * 8]);
}

/// Appends the joined record of `work`. If it has no completion, `missing` is the reason for that.
fn append_work(batch: &mut Vec<u64>, work: &TimedWork, missing: Unfinished) {
    // The enqueue record was dropped.
    let Some(enqueued) = &work.enqueued else {
        return;
    };
    let mut times = work.times();
    let mut header = *enqueued.header();
    if work.completion.is_none() {
        times.unfinished = if header.has(flags::UNTRACKED) {
            Unfinished::NO_TIMES
        } else {
            missing
        };
    }
    header.flags |= match times.unfinished {
        Unfinished::NO => 0,
        Unfinished::AT_END | Unfinished::AT_FLUSH => flags::UNFINISHED,
        _ => flags::TIME_UNKNOWN,
    };
    if let Some(completion) = &work.completion {
        header.flags |= completion.header.flags & !flags::UNFINISHED;
    }
    header.words += (size_of::<WorkTimes>() / 8) as u16;
    let start = batch.len();
    append(batch, enqueued.bytes());
    batch[start] = bytemuck::cast(header);
    append(batch, bytemuck::bytes_of(&times));
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_buffer::clock::{self, SystemClock};
    use gputrail_capture::names::Names;

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
        let mut words = Vec::new();
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
        let batch = joiner.join(&view(&enqueues), &mut words);
        let kinds: Vec<Kind> = batch.records().map(|record| record.kind()).collect();
        assert_eq!(kinds, [Kind::API], "a kernel that runs is not delivered");

        let batch = joiner.join(&view(bytemuck::bytes_of(&done)), &mut words);
        let records: Vec<RecordRef<'_>> = batch.records().collect();
        let [record] = records[..] else {
            panic!("{records:?}")
        };
        let times = WorkTimes::of(record).unwrap();
        kernel.work.enqueued = Ticks(times.enqueued.0);
        assert_eq!(record.read::<KernelDispatch>().unwrap().work, kernel.work);
        assert!(times.duration().unwrap().0.abs_diff(5000) <= 10);
        assert!(
            times.start.0 + 1_000_000 > before.0
                && times.enqueued.is_some()
                && times.completed.is_some()
        );
        let left = joiner.finish(Unfinished::AT_END, Unfinished::AT_END, &mut words);
        assert!(left.bytes.is_empty());
    }

    /// A copy, and the completion of a forced flush that finds it pending.
    fn pending(work: WorkId) -> (MemoryCopy, Completion) {
        let mut copy = MemoryCopy::blank();
        copy.work.id = work;
        let mut completion = Completion::blank();
        (completion.work, completion.unfinished) = (work, Unfinished::AT_FLUSH);
        completion.completed = clock::now();
        completion.header = completion.header.with(flags::UNFINISHED);
        (copy, completion)
    }

    /// The copies of a batch: their work, why times are missing, and their flags.
    fn copies(batch: &BlockView<'_>) -> Vec<(WorkId, Unfinished, u8)> {
        let copies = batch.records().map(|record| {
            let times = WorkTimes::of(record).unwrap();
            assert_eq!((times.duration(), times.completed), (None, Nanos::NONE));
            let copy: MemoryCopy = record.read().unwrap();
            (copy.work.id, times.unfinished, copy.header.flags)
        });
        copies.collect()
    }

    #[test]
    fn a_forced_flush_shows_work_that_has_not_completed_and_its_completion_comes_later() {
        let mut joiner = Joiner::new(Timeline::new(Names::new()).unwrap());
        let mut words = Vec::new();
        let (copy, not_complete) = pending(WorkId(1));
        // The lane of the thread that flushes may come first.
        for record in [bytemuck::bytes_of(&not_complete), bytemuck::bytes_of(&copy)] {
            assert!(joiner.join(&view(record), &mut words).bytes.is_empty());
        }
        let shown = (WorkId(1), Unfinished::AT_FLUSH, flags::UNFINISHED);
        assert_eq!(copies(&joiner.flushed(true, &mut words)), [shown]);
        assert!(
            joiner.flushed(true, &mut words).bytes.is_empty(),
            "it is shown once a flush"
        );
        let mut done = Completion::blank();
        done.work = WorkId(1);
        let batch = joiner.join(&view(bytemuck::bytes_of(&done)), &mut words);
        assert_eq!(copies(&batch), [(WorkId(1), Unfinished::NO, 0)]);
    }

    #[test]
    fn work_that_the_end_of_the_process_finds_comes_at_forced_flushes_and_when_the_buffer_ends() {
        let mut joiner = Joiner::new(Timeline::new(Names::new()).unwrap());
        let mut words = Vec::new();
        let (copy, mut not_complete) = pending(WorkId(1));
        not_complete.unfinished = Unfinished::AT_END;
        for record in [bytemuck::bytes_of(&copy), bytemuck::bytes_of(&not_complete)] {
            assert!(joiner.join(&view(record), &mut words).bytes.is_empty());
        }
        assert!(joiner.flushed(false, &mut words).bytes.is_empty());
        let shown = (WorkId(1), Unfinished::AT_FLUSH, flags::UNFINISHED);
        for _ in 0..2 {
            assert_eq!(copies(&joiner.flushed(true, &mut words)), [shown]);
        }
        let left = joiner.finish(Unfinished::AT_END, Unfinished::NO_COMPLETION, &mut words);
        let last = (WorkId(1), Unfinished::AT_END, flags::UNFINISHED);
        assert_eq!(copies(&left), [last]);
    }

    #[test]
    fn work_without_a_completion_comes_at_the_end_and_says_why() {
        let mut joiner = Joiner::new(Timeline::new(Names::new()).unwrap());
        let mut words = Vec::new();
        let (first, not_complete) = pending(WorkId(1));
        let (second, _) = pending(WorkId(2));
        let (mut third, _) = pending(WorkId(3));
        third.header = third.header.with(flags::UNTRACKED);
        let batch = joiner.join(&view(bytemuck::bytes_of(&third)), &mut words);
        let untracked = flags::UNTRACKED | flags::TIME_UNKNOWN;
        assert_eq!(
            copies(&batch),
            [(WorkId(3), Unfinished::NO_TIMES, untracked)]
        );
        let bytes = [bytemuck::bytes_of(&first), bytemuck::bytes_of(&second)].concat();
        assert!(joiner.join(&view(&bytes), &mut words).bytes.is_empty());
        joiner.join(&view(bytemuck::bytes_of(&not_complete)), &mut words);
        let left = joiner.finish(Unfinished::AT_END, Unfinished::NO_COMPLETION, &mut words);
        let expected = [
            (WorkId(1), Unfinished::AT_END, flags::UNFINISHED),
            (WorkId(2), Unfinished::NO_COMPLETION, flags::TIME_UNKNOWN),
        ];
        assert_eq!(copies(&left), expected);
    }

    #[test]
    fn a_completion_whose_enqueue_record_was_dropped_is_left_out() {
        let mut joiner = Joiner::new(Timeline::new(Names::new()).unwrap());
        let mut words = Vec::new();
        let mut done = Completion::blank();
        done.work = WorkId(1);
        assert!(
            joiner
                .join(&view(bytemuck::bytes_of(&done)), &mut words)
                .bytes
                .is_empty()
        );
        let left = joiner.finish(Unfinished::AT_END, Unfinished::AT_END, &mut words);
        assert!(left.bytes.is_empty());
    }
}
