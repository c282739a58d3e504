//! loom models of the hand-overs: every interleaving that the memory model allows, for tiny buffers.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p gputrail-buffer --lib models`. `ORDERINGS.md` says which
//! weakened orderings they notice.

use super::block::{Scan, deliver_in_order};
use super::lanes::{Opening, OwnLanes};
use super::*;
use crate::platform::sync::{AtomicU32, fence_heavy};
use gputrail_record::*;
use loom::thread;

/// Blocks that hold exactly two records of 40 bytes.
const BLOCK: u32 = 80;

fn buffer(blocks: u32, policy: Policy) -> Buffer {
    Buffer::new(Mapping::model(2, blocks, BLOCK), policy)
}

fn note(n: u64) -> ClockPair {
    let mut pair = ClockPair::blank();
    pair.device = DeviceTime(n);
    pair
}

/// The records that the collector has received.
#[derive(Default)]
struct ReceivedRecords {
    /// Lane and number of each record.
    records: Vec<(u32, u64)>,
    /// Sum of the reported losses.
    lost: u64,
}

/// Delivers records as the collector does.
fn deliver(buffer: &Buffer, watermark: u32, seen: &mut ReceivedRecords) {
    let shared = &buffer.shared;
    let show = |view: &BlockView<'_>| {
        let mut records = Records::new(view.bytes);
        for record in records.by_ref() {
            if let Some(loss) = record.read::<Loss>() {
                seen.lost += loss.count;
            } else {
                let pair = record.read::<ClockPair>().expect("a record of the model");
                seen.records.push((view.lane, pair.device.0));
            }
        }
        assert_eq!(records.malformed(), None);
    };
    let pool = shared.mapping.pool();
    let put = |block| pool.put(block);
    deliver_in_order(&shared.mapping, watermark, &mut Scan::default(), show, put);
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    // A lane reads the drop counter of each kind.
    builder.max_branches = 10_000;
    builder.check(check);
}

#[test]
fn a_partial_flush_sees_whole_records_once_and_in_order() {
    model(|| {
        let buffer = buffer(2, Policy::Discard);
        let writer = {
            let buffer = buffer.clone();
            thread::spawn(move || {
                let mut lane = buffer.lane(ThreadId(1)).unwrap();
                (1..=3).for_each(|n| assert!(lane.write(note(n))));
            })
        };
        let mut seen = ReceivedRecords::default();
        deliver(&buffer, 0, &mut seen);
        deliver(&buffer, 0, &mut seen);
        writer.join().unwrap();
        deliver(&buffer, 0, &mut seen);
        assert_eq!(seen.records, [(1, 1), (1, 2), (1, 3)]);
        assert_eq!(buffer.empty_blocks(), 2);
    });
}

#[test]
fn blocks_go_round_and_what_is_written_or_dropped_adds_up() {
    model(|| {
        let buffer = buffer(2, Policy::Discard);
        let writer = {
            let buffer = buffer.clone();
            thread::spawn(move || {
                let mut lane = buffer.lane(ThreadId(1)).unwrap();
                (1..=7)
                    .filter(|n| lane.write(note(*n)))
                    .collect::<Vec<u64>>()
            })
        };
        let mut seen = ReceivedRecords::default();
        deliver(&buffer, u32::MAX, &mut seen);
        let written = writer.join().unwrap();
        deliver(&buffer, 0, &mut seen);
        assert_eq!(
            seen.records.iter().map(|(_, n)| *n).collect::<Vec<_>>(),
            written
        );
        let unlaned = buffer
            .mapping()
            .unlaned(Kind::CLOCK_PAIR)
            .load(std::sync::atomic::Ordering::Relaxed);
        // The lane has ended: its unreported drops stay in its slot.
        let unreported = buffer.mapping().slot(0).drops(Kind::CLOCK_PAIR.index());
        assert_eq!(written.len() as u64 + seen.lost + unreported + unlaned, 7);
    });
}

#[test]
fn no_block_is_taken_by_two() {
    model(|| {
        let memory = Arc::new(Mapping::model(1, 2, BLOCK));
        let taken: Arc<[AtomicU32; 2]> = Arc::new(std::array::from_fn(|_| AtomicU32::new(0)));
        let take_and_put = |memory: &Mapping, taken: &[AtomicU32; 2]| {
            let pool = memory.pool();
            for _ in 0..2 {
                if let Some(block) = pool.take() {
                    assert_eq!(taken[block as usize].swap(1, Ordering::Relaxed), 0);
                    taken[block as usize].store(0, Ordering::Relaxed);
                    pool.put(block);
                }
            }
        };
        let other = {
            let (memory, taken) = (memory.clone(), taken.clone());
            thread::spawn(move || take_and_put(&memory, &taken))
        };
        take_and_put(&memory, &taken);
        other.join().unwrap();
        let mut left: Vec<u32> = std::iter::from_fn(|| memory.pool().take()).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 1]);
    });
}

#[test]
fn use_of_a_block_is_over_before_it_is_taken_again() {
    model(|| {
        let memory = Arc::new(Mapping::model(1, 2, BLOCK));
        memory.pool().take().unwrap();
        memory.pool().take().unwrap();
        let other = {
            let memory = memory.clone();
            thread::spawn(move || {
                for block in [1, 0] {
                    memory.note_write(block, 0, 8);
                    memory.pool().put(block);
                }
            })
        };
        for _ in 0..2 {
            // Loom reports an error if a write here races with the one before `put`.
            if let Some(block) = memory.pool().take() {
                memory.note_write(block, 0, 8);
            }
        }
        other.join().unwrap();
    });
}

#[test]
fn a_thread_that_waits_for_a_block_is_woken_when_one_comes_back() {
    model(|| {
        let memory = Arc::new(Mapping::model(1, 1, BLOCK));
        let block = memory.pool().take().unwrap();
        let waiter = {
            let memory = memory.clone();
            thread::spawn(move || {
                while memory.pool().take().is_none() {
                    memory.pool().wait();
                }
            })
        };
        memory.pool().put(block);
        waiter.join().unwrap();
    });
}

#[test]
fn a_thread_that_waits_for_a_block_is_woken_when_the_pool_closes() {
    model(|| {
        let memory = Arc::new(Mapping::model(1, 1, BLOCK));
        memory.pool().take().unwrap();
        let waiter = {
            let memory = memory.clone();
            thread::spawn(move || {
                while memory.pool().take().is_none() && !memory.pool().is_closed() {
                    memory.pool().wait();
                }
            })
        };
        memory.end();
        waiter.join().unwrap();
    });
}

#[test]
fn a_lane_that_ends_leaves_its_block_and_its_slot() {
    model(|| {
        let buffer = buffer(2, Policy::Discard);
        let writers: Vec<_> = (1..=2)
            .map(|n| {
                let buffer = buffer.clone();
                thread::spawn(move || {
                    assert!(buffer.lane(ThreadId(n)).unwrap().write(note(n.into())))
                })
            })
            .collect();
        let mut seen = ReceivedRecords::default();
        deliver(&buffer, 0, &mut seen);
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        deliver(&buffer, 0, &mut seen);
        let mut numbers: Vec<_> = seen.records.iter().map(|(_, n)| *n).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(buffer.empty_blocks(), 2);
        assert!(buffer.lane(ThreadId(3)).is_some());
    });
}

/// A number of checks that is not exhausted before the thread has left its lane.
const FOR_EVER: u32 = u32::MAX;

/// A thread's lanes, one of them open in `buffer`.
fn opened(buffer: &Buffer) -> OwnLanes<1> {
    // SAFETY: the model has no other thread yet.
    let lock = unsafe { Opening::locked() };
    let mut lanes = OwnLanes::new();
    lanes.open(0, buffer.lane(ThreadId(1)).unwrap(), &lock);
    lanes
}

#[test]
fn a_writer_whose_buffer_is_destroyed_writes_before_or_not_at_all() {
    model(|| {
        let buffer = buffer(2, Policy::Discard);
        let mut own = opened(&buffer);
        let shared = own.shared();
        let writer = thread::spawn(move || {
            let write = |n| Some(own.using(0)?.write(note(n)));
            (1..=2)
                .map(write)
                .filter(|written| *written == Some(true))
                .count()
        });
        // SAFETY: the only thread of the model that opens lanes or takes them away.
        let lock = unsafe { Opening::locked() };
        shared.close(0, &lock);
        assert!(fence_heavy());
        // Loom reports an error if two threads access the lane.
        let lane = shared.take(0, FOR_EVER, &lock).unwrap();
        drop(lane.expect("the writer has a lane"));
        let mut seen = ReceivedRecords::default();
        deliver(&buffer, 0, &mut seen);
        let delivered = seen.records.len();
        let written = writer.join().unwrap();
        assert_eq!(
            delivered, written,
            "nothing is written to a buffer that is gone"
        );
        assert_eq!(buffer.empty_blocks(), 2);
    });
}

#[test]
fn a_slot_that_another_buffer_gets_is_opened_anew() {
    model(|| {
        let (first, second) = (buffer(1, Policy::Discard), buffer(1, Policy::Discard));
        // The state that the switchboard's lock guards: the buffer that has the slot.
        let in_slot = Arc::new(loom::sync::Mutex::new(first.clone()));
        let mut own = opened(&first);
        let shared = own.shared();
        let writer = {
            let in_slot = in_slot.clone();
            thread::spawn(move || {
                let written = own.using(0).map(|mut lane| lane.write(note(1)));
                if written.is_none() {
                    let in_slot = in_slot.lock().unwrap();
                    // SAFETY: the model's lock is held.
                    let lock = unsafe { Opening::locked() };
                    let lane = in_slot.lane(ThreadId(1)).unwrap();
                    own.open(0, lane, &lock);
                    drop(in_slot);
                    own.using(0).unwrap().write(note(2));
                }
            })
        };
        {
            let mut in_slot = in_slot.lock().unwrap();
            // SAFETY: the model's lock is held.
            let lock = unsafe { Opening::locked() };
            shared.close(0, &lock);
            assert!(fence_heavy());
            drop(shared.take(0, FOR_EVER, &lock).unwrap());
            *in_slot = second.clone();
        }
        writer.join().unwrap();
        let (mut of_first, mut of_second) =
            (ReceivedRecords::default(), ReceivedRecords::default());
        deliver(&first, 0, &mut of_first);
        deliver(&second, 0, &mut of_second);
        let mut all = of_first.records;
        assert!(all.iter().all(|(_, n)| *n == 1));
        all.extend(of_second.records);
        assert_eq!(all.len(), 1);
    });
}

#[test]
fn a_lane_whose_block_is_given_to_the_collector_meanwhile_goes_on_in_another() {
    model(|| {
        let buffer = buffer(3, Policy::Discard);
        let mut own = opened(&buffer);
        let shared = own.shared();
        let writer = thread::spawn(move || {
            let write = |n: &u64| own.using(0).unwrap().write(note(*n));
            let written: Vec<u64> = (1..=2).filter(write).collect();
            (own, written)
        });
        // SAFETY: the only thread of the model that opens or pauses lanes.
        let lock = unsafe { Opening::locked() };
        if let Some(paused) = shared.pause(0, &lock) {
            // Loom objects where the lane is reached for by two.
            shared.resume(paused, fence_heavy(), &lock);
        }
        let (own, written) = writer.join().unwrap();
        let mut seen = ReceivedRecords::default();
        deliver(&buffer, 0, &mut seen);
        let numbers: Vec<u64> = seen.records.iter().map(|(_, n)| *n).collect();
        assert_eq!((written, numbers), (vec![1, 2], vec![1, 2]));
        drop(own);
    });
}

/// The contents of a dump: lane and number of each record.
fn dump(buffer: &Buffer) -> Vec<(u32, u64)> {
    let mut seen = Vec::new();
    buffer.dump(Ticks::NONE, |view| {
        let pairs = Records::new(view.bytes).filter_map(|record| record.read::<ClockPair>());
        seen.extend(pairs.map(|pair| (view.lane, pair.device.0)));
    });
    seen
}

fn is_ascending(seen: &[(u32, u64)]) -> bool {
    seen.is_sorted_by(|one, other| one < other)
}

#[test]
fn a_lane_takes_back_its_oldest_block_but_none_that_a_dump_reads() {
    model(|| {
        let buffer = buffer(2, Policy::Overwrite);
        let writer = {
            let buffer = buffer.clone();
            thread::spawn(move || {
                let mut lane = buffer.lane(ThreadId(1)).unwrap();
                // Loom reports an error if one of these overwrites bytes that the dump reads.
                let written = (1..=5).filter(|n| lane.write(note(*n))).collect::<Vec<_>>();
                (lane, written)
            })
        };
        let seen = dump(&buffer);
        assert!(is_ascending(&seen), "{seen:?}");
        let (lane, written) = writer.join().unwrap();
        let kept = dump(&buffer);
        assert!(is_ascending(&kept), "{kept:?}");
        let last = written.last().copied().unwrap_or_default();
        assert_eq!(kept.last().map_or(0, |(_, n)| *n), last);
        drop(lane);
    });
}

#[test]
fn a_block_of_an_ended_lane_is_reused_or_read_but_not_both() {
    model(|| {
        let buffer = buffer(1, Policy::Overwrite);
        let mut first = buffer.lane(ThreadId(1)).unwrap();
        assert!(first.write(note(1)));
        drop(first);
        let second = {
            let buffer = buffer.clone();
            thread::spawn(move || buffer.lane(ThreadId(2)).unwrap().write(note(2)))
        };
        let seen = dump(&buffer);
        let written = second.join().unwrap();
        assert!(seen.len() <= 1, "{seen:?}");
        let kept = dump(&buffer);
        let expected = if written { 2 } else { 1 };
        assert_eq!(kept.iter().map(|(_, n)| *n).collect::<Vec<_>>(), [expected]);
    });
}

#[test]
fn recovery_at_any_moment_sees_committed_records_once_however_blocks_were_reused() {
    model(|| {
        let buffer = buffer(2, Policy::Discard);
        let writer = {
            let buffer = buffer.clone();
            thread::spawn(move || {
                let mut lane = buffer.lane(ThreadId(1)).unwrap();
                let written = (1..=6).filter(|n| lane.write(note(*n)));
                let written: Vec<u64> = written.collect();
                // Its process has died: nothing is passed on any more.
                std::mem::forget(lane);
                written
            })
        };
        let mut seen = ReceivedRecords::default();
        // The collector has emptied the blocks that were full by then, and the lane may have taken them again.
        deliver(&buffer, u32::MAX, &mut seen);
        // From here on there is no collector. The recovery reads the mapping at any moment of the lane's writes.
        let mut recovered = ReceivedRecords::default();
        let show = |view: &BlockView<'_>| {
            let records = Records::new(view.bytes).filter_map(|record| record.read::<ClockPair>());
            recovered
                .records
                .extend(records.map(|pair| (view.lane, pair.device.0)));
        };
        deliver_in_order(
            &buffer.shared.mapping,
            0,
            &mut Scan::default(),
            show,
            |_| {},
        );
        seen.records.append(&mut recovered.records);
        let written = writer.join().unwrap();
        let all: Vec<u64> = seen.records.iter().map(|(_, n)| *n).collect();
        assert!(is_ascending(&seen.records), "{all:?}");
        assert!(
            all.iter().all(|n| written.contains(n)),
            "{all:?} of {written:?}"
        );
    });
}
