//! Lanes, pool and collector together, with real threads.

use super::block::BlockState;
use super::*;
use gputrail_record::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// A sink that stores all records.
#[derive(Clone, Default)]
struct CollectingSink(Arc<Mutex<Vec<Delivery>>>);

/// Lane, block and bytes of one delivery.
type Delivery = (u32, u32, Vec<u8>);

impl Sink for CollectingSink {
    fn records(&mut self, view: &BlockView<'_>) {
        self.0
            .lock()
            .unwrap()
            .push((view.lane, view.sequence, view.bytes.to_vec()));
    }
}

impl CollectingSink {
    fn lanes(&self) -> HashMap<u32, Vec<u8>> {
        let mut lanes: HashMap<u32, Vec<u8>> = HashMap::new();
        for (lane, _, bytes) in self.0.lock().unwrap().iter() {
            lanes.entry(*lane).or_default().extend(bytes);
        }
        lanes
    }

    fn all<R: Record>(&self) -> Vec<R> {
        let lanes = self.lanes();
        lanes
            .values()
            .flat_map(|bytes| {
                Records::new(bytes)
                    .filter_map(|record| record.read::<R>())
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}

fn buffer(blocks: usize, policy: Policy) -> Buffer {
    let layout = Layout::new(blocks * 4096, 4096, 64).unwrap();
    Buffer::new(Mapping::anonymous(layout).unwrap(), policy)
}

fn collector(buffer: &Buffer, sink: &CollectingSink) -> Collector {
    Collector::without_thread(
        buffer.clone(),
        vec![Box::new(sink.clone())],
        CollectorOptions::default(),
    )
}

fn api(n: u64) -> Api {
    let mut api = Api::blank();
    api.correlation = CorrelationId(n);
    api
}

#[test]
fn records_arrive_in_the_order_they_were_written() {
    let (buffer, sink) = (buffer(64, Policy::Discard), CollectingSink::default());
    let collector = collector(&buffer, &sink);
    let mut lane = buffer.lane(ThreadId(1)).unwrap();
    (0..1000).for_each(|n| assert!(lane.write(api(n))));
    collector.flush();
    let read = sink.all::<Api>();
    assert!(
        read.iter()
            .enumerate()
            .all(|(n, api)| api.correlation.0 == n as u64 && api.header.sequence == n as u32)
    );
    assert_eq!(read.len(), 1000);
}

/// One record of four sizes, with its correlation id.
fn write_any(lane: &mut Lane, size: usize, n: u64) -> (bool, usize) {
    let id = CorrelationId(n);
    match size {
        0 => {
            let mut retirement = Retirement::blank();
            retirement.correlation = id;
            (lane.write(retirement), size_of::<Retirement>())
        }
        1 => (lane.write(api(n)), size_of::<Api>()),
        2 => {
            let mut completion = Completion::blank();
            completion.correlation = id;
            (lane.write(completion), size_of::<Completion>())
        }
        _ => {
            let mut dispatch = KernelDispatch::blank();
            dispatch.work.correlation = id;
            (lane.write(dispatch), size_of::<KernelDispatch>())
        }
    }
}

/// The correlation id of a record of [`write_any`].
fn id_of(record: &RecordRef<'_>) -> u64 {
    let id = match record.activity() {
        Activity::Retirement(record) => record.correlation,
        Activity::Api(record) => record.correlation,
        Activity::Completion(record) => record.correlation,
        Activity::KernelDispatch(record) => record.work.correlation,
        other => panic!("{other:?}"),
    };
    id.0
}

proptest::proptest! {
    #[test]
    fn records_of_any_sizes_fill_blocks_to_the_last_that_fits_and_come_back(
        records in proptest::collection::vec((0..4usize, proptest::bool::weighted(0.02)), 1..600),
    ) {
        let (buffer, sink) = (buffer(3, Policy::Discard), CollectingSink::default());
        let collector = collector(&buffer, &sink);
        let mut lane = buffer.lane(ThreadId(1)).unwrap();
        let (mut left, mut empty, mut written) = (0, 3, 0);
        for (size, flush) in records {
            if flush {
                collector.flush();
                // All blocks are empty again except the one that the lane fills.
                empty = if written == 0 { 3 } else { 2 };
            }
            let (fits, bytes) = write_any(&mut lane, size, written);
            proptest::prop_assert_eq!(fits, bytes <= left || empty > 0);
            if !fits {
                break;
            }
            if bytes > left {
                (left, empty) = (4096, empty - 1);
            }
            left -= bytes;
            written += 1;
        }
        collector.flush();
        let bytes = sink.lanes().remove(&1).unwrap_or_default();
        let ids: Vec<_> = Records::new(&bytes).map(|record| (id_of(&record), record.header().sequence)).collect();
        let expected: Vec<_> = (0..written).map(|n| (n, n as u32)).collect();
        proptest::prop_assert_eq!(ids, expected);
    }
}

#[test]
fn the_commit_word_of_a_block_counts_its_uses_and_its_bytes() {
    let (buffer, sink) = (buffer(2, Policy::Discard), CollectingSink::default());
    let collector = collector(&buffer, &sink);
    let mut uses = [0; 2];
    for thread in 1..=6 {
        let mut lane = buffer.lane(ThreadId(thread)).unwrap();
        assert!(lane.write(api(0)) && lane.write(api(1)));
        let filling = |block: &u32| buffer.mapping().block_state(*block) == BlockState::Filling;
        let block = (0..2).find(filling).unwrap();
        uses[block as usize] += 1;
        let commit = buffer.mapping().block(block).commit.load(Ordering::Acquire);
        assert_eq!((commit >> 32, commit as u32), (uses[block as usize], 128));
        drop(lane);
        collector.flush();
    }
}

#[test]
fn a_session_begins_once_and_has_one_end() {
    let mapping = || Mapping::anonymous(Layout::new(1 << 16, 4096, 4).unwrap()).unwrap();
    let ended = mapping();
    assert_eq!(ended.state(), SessionState::New);
    ended.begin();
    assert_eq!(ended.state(), SessionState::Recording);
    ended.end();
    ended.abandon();
    ended.begin();
    assert_eq!(ended.state(), SessionState::Ended);
    let abandoned = mapping();
    abandoned.abandon();
    abandoned.end();
    assert_eq!(abandoned.state(), SessionState::Abandoned);
}

#[test]
fn a_flush_takes_what_is_there_and_no_more_than_once() {
    let (buffer, sink) = (buffer(4, Policy::Discard), CollectingSink::default());
    let collector = collector(&buffer, &sink);
    let mut lane = buffer.lane(ThreadId(1)).unwrap();
    for n in 0..10 {
        lane.write(api(n));
        collector.flush();
        collector.flush();
    }
    assert_eq!(sink.all::<Api>().len(), 10);
}

#[test]
fn a_full_lane_counts_what_it_drops() {
    let (buffer, sink) = (buffer(2, Policy::Discard), CollectingSink::default());
    let collector = collector(&buffer, &sink);
    let mut lane = buffer.lane(ThreadId(9)).unwrap();
    let written = (0..1000).filter(|n| lane.write(api(*n))).count();
    assert_eq!(written, 2 * 4096 / 64);
    collector.flush();
    assert!(lane.write(api(5000)));
    collector.finish();
    let losses = sink.all::<Loss>();
    assert_eq!(losses.len(), 1);
    assert_eq!(
        (losses[0].lost, losses[0].count, losses[0].thread),
        (Kind::API, 1000 - written as u64, ThreadId(9))
    );
    let read = sink.all::<Api>();
    // The drops consumed sequence numbers: the gap shows where records are missing, and how many.
    assert_eq!(read.last().unwrap().header.sequence as usize, 1000 + 1);
}

#[test]
fn a_record_that_its_caller_keeps_is_not_counted_when_there_is_no_room() {
    let (buffer, sink) = (buffer(2, Policy::Lossless), CollectingSink::default());
    let collector = collector(&buffer, &sink);
    let mut lane = buffer.lane(ThreadId(9)).unwrap();
    let has_room = |lane: &mut Lane| lane.make_room(size_of::<Api>(), WhenFull::Keep);
    let written = (0..1000).filter(|n| has_room(&mut lane) && lane.write(api(*n)));
    assert_eq!(written.count(), 2 * 4096 / 64);
    collector.flush();
    assert!(has_room(&mut lane) && lane.write(api(5000)));
    collector.finish();
    assert_eq!(sink.all::<Api>().len(), 2 * 4096 / 64 + 1);
    assert!(sink.all::<Loss>().is_empty());
}

#[test]
fn losses_that_no_lane_could_report_are_reported_at_the_end() {
    let (buffer, sink) = (buffer(2, Policy::Discard), CollectingSink::default());
    let collector = collector(&buffer, &sink);
    let mut lane = buffer.lane(ThreadId(9)).unwrap();
    let written = (0..300).filter(|n| lane.write(api(*n))).count() as u64;
    let mut gone = buffer.lane(ThreadId(10)).unwrap();
    assert!(!gone.write(api(0)));
    drop(gone);
    buffer.count_unlaned(Kind::API);
    collector.finish();
    let lost: u64 = sink.all::<Loss>().iter().map(|loss| loss.count).sum();
    assert_eq!(lost, 300 - written + 1 + 1);
}

/// Writes 5000 records on each of three threads that share two blocks.
fn write_with_waits(report_waits: bool) -> CollectingSink {
    let (buffer, sink) = (buffer(2, Policy::Lossless), CollectingSink::default());
    buffer.report_waits(report_waits);
    let collector = Collector::start(
        buffer.clone(),
        vec![Box::new(sink.clone())],
        CollectorOptions::default(),
    )
    .unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let buffer = &buffer;
            scope.spawn(move || {
                let mut lane = buffer.lane(ThreadId(thread + 1)).unwrap();
                (0..5000).for_each(|n| assert!(lane.write(api(n))));
            });
        }
    });
    collector.finish();
    sink
}

#[test]
fn nothing_is_lost_when_lanes_may_wait() {
    let sink = write_with_waits(true);
    assert_eq!(sink.all::<Api>().len(), 15_000);
    assert!(sink.all::<Loss>().is_empty());
    assert!(!sink.all::<Overhead>().is_empty(), "waits show as overhead");
}

#[test]
fn waits_are_recorded_only_where_they_are_wanted() {
    let sink = write_with_waits(false);
    assert_eq!(sink.all::<Api>().len(), 15_000);
    assert!(sink.all::<Overhead>().is_empty());
}

/// The numbers of the calls that a dump shows, of each lane.
fn kept(buffer: &Buffer) -> HashMap<u32, Vec<u64>> {
    let mut kept: HashMap<u32, Vec<u64>> = HashMap::new();
    buffer.dump(Ticks::NONE, |view| {
        let calls = view.records().filter_map(|record| record.read::<Api>());
        let numbers = calls.map(|call| call.correlation.0);
        kept.entry(view.lane).or_default().extend(numbers);
    });
    kept
}

#[test]
fn the_latest_records_are_kept_whichever_lane_wrote_the_older_ones() {
    // A block takes 64 calls.
    let buffer = buffer(4, Policy::Overwrite);
    let mut first = buffer.lane(ThreadId(1)).unwrap();
    assert_eq!(buffer.dump(Ticks::NONE, |_| {}), None);
    (0..3 * 64).for_each(|n| assert!(first.write(api(n))));
    let begun = crate::clock::now();
    (3 * 64..4 * 64 - 10).for_each(|n| assert!(first.write(api(n))));
    let mut second = buffer.lane(ThreadId(2)).unwrap();
    (1000..1000 + 3 * 64).for_each(|n| assert!(second.write(api(n))));
    // Of the first lane, blocks have been overwritten that were begun before.
    let reach = buffer
        .dump(Ticks::NONE, |_| {})
        .expect("something was overwritten");
    assert!(reach >= begun, "{reach:?} {begun:?}");
    let kept = kept(&buffer);
    let numbers = |range: std::ops::Range<u64>| range.collect::<Vec<_>>();
    assert_eq!(
        kept[&1],
        numbers(3 * 64..4 * 64 - 10),
        "the block that it fills"
    );
    assert_eq!(kept[&2], numbers(1000..1000 + 3 * 64));
    assert_eq!(buffer.dropped()[Kind::API.index()], 0);
}

#[test]
fn a_lane_that_must_not_wait_discards_and_counts_under_lossless_too() {
    let buffer = buffer(2, Policy::Lossless);
    let mut lane = buffer.lane(ThreadId(1)).unwrap();
    lane.set_may_wait(false);
    assert!((0..1000).any(|n| !lane.write(api(n))));
}

#[test]
fn a_lane_does_not_wait_for_blocks_that_idle_lanes_hold() {
    let buffer = buffer(2, Policy::Lossless);
    let mut idle: Vec<Lane> = (1..=2).map(|n| buffer.lane(ThreadId(n)).unwrap()).collect();
    idle.iter_mut().for_each(|lane| assert!(lane.write(api(0))));
    let mut lane = buffer.lane(ThreadId(3)).unwrap();
    assert!(!lane.write(api(0)), "it would wait for ever");
    drop(idle);
}

#[test]
fn a_lane_that_waits_goes_on_when_the_buffer_ends() {
    let buffer = buffer(2, Policy::Lossless);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut lane = buffer.lane(ThreadId(1)).unwrap();
            while lane.write(api(0)) {}
        });
        while buffer.empty_blocks() > 0 {
            std::thread::yield_now();
        }
        buffer.end();
    });
}

#[test]
fn threads_that_come_and_go_do_not_use_up_blocks_or_lanes() {
    let (buffer, sink) = (buffer(8, Policy::Discard), CollectingSink::default());
    let collector = collector(&buffer, &sink);
    for thread in 1..500 {
        let mut lane = buffer.lane(ThreadId(thread)).unwrap();
        assert!(lane.write(api(0)));
        drop(lane);
        collector.flush();
    }
    assert_eq!(buffer.empty_blocks(), 8);
}

#[test]
fn more_threads_than_lanes_get_none() {
    let buffer = buffer(2, Policy::Discard);
    let lanes: Vec<_> = (0..64).map(|n| buffer.lane(ThreadId(n)).unwrap()).collect();
    assert!(buffer.lane(ThreadId(99)).is_none());
    drop(lanes);
    assert!(buffer.lane(ThreadId(99)).is_some());
}

#[test]
fn written_is_delivered_plus_dropped_with_many_threads_and_flushes() {
    let (buffer, sink) = (buffer(16, Policy::Discard), CollectingSink::default());
    let options = CollectorOptions {
        watermark: 0,
        ..Default::default()
    };
    let collector =
        Collector::start(buffer.clone(), vec![Box::new(sink.clone())], options).unwrap();
    const THREADS: u64 = 8;
    const EACH: u64 = 20_000;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (buffer, collector) = (&buffer, &collector);
            scope.spawn(move || {
                let mut lane = buffer.lane(ThreadId(thread as u32 + 1)).unwrap();
                for n in 0..EACH {
                    lane.write(api(n));
                    if n % 977 == thread {
                        collector.flush();
                    }
                    if n % 4999 == 0 {
                        lane = buffer.lane(ThreadId(thread as u32 + 1)).unwrap();
                    }
                }
            });
        }
    });
    collector.finish();
    let lost: u64 = sink.all::<Loss>().iter().map(|loss| loss.count).sum();
    assert_eq!(sink.all::<Api>().len() as u64 + lost, THREADS * EACH);
    for (lane, bytes) in sink.lanes() {
        let sequences: Vec<u32> = Records::new(&bytes)
            .map(|record| record.header().sequence)
            .collect();
        assert!(
            sequences.is_sorted_by(|a, b| a < b),
            "lane {lane} was delivered out of order"
        );
    }
}

#[test]
fn layouts_that_make_no_pool_are_refused() {
    assert_eq!(
        Layout::new(1 << 20, 1000, 1),
        Err(LayoutError::BlockSize(1000))
    );
    assert_eq!(
        Layout::new(4096, 4096, 1),
        Err(LayoutError::PoolSize {
            pool: 4096,
            block: 4096
        })
    );
    assert_eq!(Layout::new(1 << 20, 4096, 0), Err(LayoutError::Lanes(0)));
}

#[test]
fn a_mapping_that_is_not_ours_is_refused() {
    let layout = Layout::new(1 << 16, 4096, 4).unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(layout.total_bytes() as u64).unwrap();
    let size = layout.total_bytes();
    let refused = |size| Mapping::open(&file, size).err().unwrap().to_string();
    assert!(refused(100).contains("expected at least 4096"));
    assert!(refused(size).contains("magic"));
    drop(Mapping::create(&file, layout).unwrap());
    assert_eq!(*Mapping::open(&file, size).unwrap().layout(), layout);
    assert!(refused(size - 4096).contains("its layout needs"));
}

#[test]
fn a_collector_that_dies_at_any_point_leaves_every_record_to_be_found() {
    for dies_at in 0..6 {
        let buffer = buffer(4, Policy::Discard);
        let mut lane = buffer.lane(ThreadId(1)).unwrap();
        (0..200).for_each(|n| assert!(lane.write(api(n))));
        let mut delivered = Vec::new();
        let mut collect = |dies_at: usize| {
            let mut steps = 0;
            let mut step = || {
                steps += 1;
                if steps > dies_at {
                    std::panic::resume_unwind(Box::new("killed"));
                }
            };
            let step = std::cell::RefCell::new(&mut step);
            let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let deliver = |view: &BlockView<'_>| {
                    delivered.push((view.sequence, view.offset, view.bytes.to_vec()));
                    step.borrow_mut()();
                };
                deliver_in_order(
                    buffer.mapping(),
                    0,
                    &mut Default::default(),
                    deliver,
                    |_| step.borrow_mut()(),
                );
            }));
            died.is_err()
        };
        // Twice at a time: each of the four blocks is a step when delivered, and the full ones when emptied.
        assert!(collect(dies_at));
        assert!(!collect(usize::MAX));
        delivered.dedup();
        let read: Vec<u64> = delivered
            .iter()
            .flat_map(|(_, _, bytes)| {
                Records::new(bytes).map(|record| record.read::<Api>().unwrap().correlation.0)
            })
            .collect();
        assert_eq!(read, (0..200).collect::<Vec<_>>(), "died at step {dies_at}");
    }
}

/// A client with as many blocks as are asked for, which counts those that came back.
#[derive(Clone, Default)]
struct Lender {
    lent: Arc<Mutex<usize>>,
    back: Arc<Mutex<usize>>,
}

impl BlockClient for Lender {
    fn request(&mut self) -> Option<ClientBlock> {
        *self.lent.lock().unwrap() += 1;
        Some(ClientBlock::owned(vec![0; 512].into()))
    }

    fn partial(&mut self, _: &BlockView<'_>) {}

    fn complete(&mut self, _: CompletedBlock) {
        *self.back.lock().unwrap() += 1;
    }
}

#[test]
fn a_clients_block_that_a_lane_has_taken_does_not_come_back_at_the_end() {
    let client = Lender::default();
    let mapping = Mapping::for_client(CLIENT_BLOCKS, 1).unwrap();
    let buffer = Buffer::new(mapping, Policy::Discard);
    let collector =
        Collector::without_thread(buffer.clone(), Vec::new(), CollectorOptions::default());
    let collector = collector.with_client(Box::new(client.clone()), 4);
    let mut lane = buffer.lane(ThreadId(1)).unwrap();
    assert!(lane.write(api(1)));
    collector.flush();
    // A lane that was given up on between taking a block and beginning it: the block may still be written.
    let taken = buffer.mapping().pool().take().unwrap();
    assert_eq!(buffer.mapping().block_state(taken), BlockState::Empty);
    drop(lane);
    collector.finish();
    let (lent, back) = (*client.lent.lock().unwrap(), *client.back.lock().unwrap());
    assert_eq!(back, lent - 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_pool_can_be_kept_out_of_children() {
    let mapping = Mapping::anonymous(Layout::new(1 << 20, 4096, 4).unwrap()).unwrap();
    let address = std::ptr::from_ref(mapping.slot(0)) as usize;
    // The flags of the memory, as proc_pid_smaps(5) has them: `dc` is left out when a process forks.
    let flags = || {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = maps.lines().skip_while(|line| {
            let range = line
                .split(' ')
                .next()
                .and_then(|range| range.split_once('-'));
            let [from, to] = range.map_or([0; 2], |(from, to)| {
                [from, to].map(|text| usize::from_str_radix(text, 16).unwrap_or(0))
            });
            !(from..to).contains(&address)
        });
        let flags = lines.find_map(|line| line.strip_prefix("VmFlags:"));
        flags.expect("the memory has flags").to_owned()
    };
    assert!(!flags().contains(" dc"), "{}", flags());
    mapping.keep_from_children().unwrap();
    assert!(flags().contains(" dc"), "{}", flags());
}
