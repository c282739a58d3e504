//! Many threads, buffers of every policy, threads and buffers that come and go, contexts that start and stop, flushes
//! at random: what was written is delivered or counted as dropped, exactly, and each lane's records come in order.
//!
//! `GPUTRAIL_STRESS=n` does n times as much; `tools/test stress` runs it under the address sanitizer too.

mod process;

use super::*;
use crate::correlation::{Extra, HostThread};
use gputrail_buffer::BlockView;
use gputrail_record::{Loss, Records, ThreadId, Ticks};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

const THREADS: u32 = 64;
const LIVES: u32 = 3;
const CALLS: u32 = 400;
const CALL: Operation = Operation {
    domain: Domain::SIM,
    number: 1,
};

fn times() -> u32 {
    let asked = std::env::var("GPUTRAIL_STRESS").ok();
    asked.and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Numbers that differ, for decisions that nothing depends on (xorshift64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// The records that a buffer has delivered.
#[derive(Default)]
struct Delivered {
    calls: u64,
    lost: u64,
    /// The last sequence number of each lane, and the number of missing records before it.
    lanes: HashMap<u32, (u32, u64)>,
}

impl Delivered {
    fn take(&mut self, lane: u32, records: Records<'_>) {
        let mut records = records;
        for record in records.by_ref() {
            let number = record.header().sequence;
            if let Some(loss) = record.read::<Loss>() {
                self.lost += loss.count;
            } else {
                // Besides calls, lanes say when they waited.
                self.calls += u64::from(record.kind() == Kind::API);
            }
            // The collector's own.
            if lane == 0 {
                continue;
            }
            let (last, missing) = self
                .lanes
                .entry(lane)
                .or_insert((number, u64::from(number)));
            if *last != number {
                assert!(*last < number, "lane {lane}: {number} after {last}");
                *missing += u64::from(number - *last - 1);
                *last = number;
            }
        }
        assert_eq!(records.malformed(), None);
    }

    fn missing(&self) -> u64 {
        self.lanes.values().map(|(_, missing)| missing).sum()
    }
}

type SharedDelivered = Arc<Mutex<Delivered>>;

fn options(dice: &mut Dice, policy: Policy) -> BufferOptions {
    BufferOptions {
        pool_bytes: 4096 * (16 << dice.roll(4)),
        block_bytes: 4096,
        watermark: [0, 500, u32::MAX][dice.roll(3) as usize],
        policy,
        period: Duration::from_millis(1 + dice.roll(20)),
        threads: 256,
        callback_thread: (dice.roll(2) == 0).then(|| CallbackThread::create().unwrap()),
        blocks_ahead: dice.roll(3) as u32,
    }
}

fn in_memory(board: &Arc<Switchboard>, options: BufferOptions) -> (RecordBuffer, SharedDelivered) {
    let delivered = SharedDelivered::default();
    let into = delivered.clone();
    let deliver = move |view: &BlockView<'_>| {
        into.lock().unwrap().take(view.lane, view.records());
    };
    let buffer = RecordBuffer::on(board, options, deliver).unwrap();
    (buffer, delivered)
}

/// A client with blocks of many sizes, some with a limit, some unusable, and sometimes none.
struct StressClient {
    dice: Dice,
    /// Where a lane of the block is not known: records by number of the block.
    delivered: SharedDelivered,
    lent: Arc<AtomicU32>,
}

impl BlockClient for StressClient {
    fn request(&mut self) -> Option<ClientBlock> {
        let words = match self.dice.roll(10) {
            0 => return None,
            1 => 10,
            _ => 128 << self.dice.roll(4),
        };
        self.lent.fetch_add(1, Ordering::Relaxed);
        let limit = [0, 0, 1, 7][self.dice.roll(4) as usize];
        let block = ClientBlock::owned(vec![0; words].into());
        Some(block.with_max_records(limit))
    }

    fn partial(&mut self, view: &BlockView<'_>) {
        // The collector's own comes in no block.
        if view.lane == 0 {
            self.delivered.lock().unwrap().take(0, view.records());
        }
    }

    fn complete(&mut self, block: CompletedBlock) {
        self.lent.fetch_sub(1, Ordering::Relaxed);
        // Which lane it was of, the block does not say.
        self.delivered.lock().unwrap().take(0, block.records());
    }
}

#[test]
fn written_is_delivered_and_dropped_exactly() {
    let board = Switchboard::new();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let context = Context::on(&board).unwrap();
    let selection = || RecordSelection::kinds(&[Kind::API]);

    let mut kept = Vec::new();
    for policy in [Policy::Discard, Policy::Lossless, Policy::Discard] {
        let (buffer, delivered) = in_memory(&board, options(&mut dice, policy));
        context.trace_to(&buffer, selection()).unwrap();
        kept.push((buffer, delivered));
    }
    let lent = Arc::new(AtomicU32::new(0));
    let client = StressClient {
        dice: Dice(7),
        delivered: SharedDelivered::default(),
        lent: lent.clone(),
    };
    let of_client = client.delivered.clone();
    let client_options = options(&mut dice, Policy::Discard);
    let client = RecordBuffer::of_client_on(&board, client_options, client).unwrap();
    context.trace_to(&client, selection()).unwrap();
    kept.push((client, of_client));
    context.start().unwrap();
    let flight = FlightOptions {
        keep_bytes: 64 * 4096,
        block_bytes: 4096,
        threads: 256,
        selection: selection(),
        ..FlightOptions::default()
    };
    let flight = FlightRecorder::start_on(&board, flight).unwrap();
    let folder = tempfile::tempdir().unwrap();

    let (running, calls, dumps) = (AtomicBool::new(true), AtomicU64::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let (board, kept, running, calls) = (&board, &kept, &running, &calls);
        let threads: Vec<_> = (1..=THREADS)
            .map(|number| {
                scope.spawn(move || {
                    let mut dice = Dice(u64::from(number));
                    for _ in 0..LIVES * times() {
                        let mut host = HostThread::new(board, ThreadId(number), false).unwrap();
                        for _ in 0..CALLS {
                            let call = host.enter(CALL, 1000, Ticks(1));
                            host.exit(&call, Ticks(2), 0, Extra::NONE);
                            calls.fetch_add(1, Ordering::Relaxed);
                            match dice.roll(200) {
                                0 => kept[dice.roll(4) as usize].0.flush().unwrap(),
                                1 => std::thread::yield_now(),
                                _ => {}
                            }
                        }
                    }
                })
            })
            .collect();
        // Buffers and contexts that come and go while calls are in flight.
        for seed in 100..103 {
            scope.spawn(move || {
                let mut dice = Dice(seed);
                while running.load(Ordering::Relaxed) {
                    let policy = [Policy::Discard, Policy::Lossless][dice.roll(2) as usize];
                    let (buffer, delivered) = in_memory(board, options(&mut dice, policy));
                    let context = Context::on(board).unwrap();
                    context
                        .trace_to(&buffer, RecordSelection::kinds(&[Kind::API]))
                        .unwrap();
                    for _ in 0..dice.roll(6) {
                        let _ = context.start();
                        buffer.flush().unwrap();
                        let _ = context.stop();
                    }
                    let subscriber = context.call_back(OperationSet::all(), |_| {});
                    drop((subscriber.ok(), context));
                    // Records that a thread was writing may still come: they are counted as dropped, or delivered.
                    drop(buffer);
                    let delivered = delivered.lock().unwrap();
                    assert!(delivered.missing() <= delivered.lost);
                }
            });
        }
        let (flight, folder, dumps) = (&flight, &folder, &dumps);
        scope.spawn(move || {
            while running.load(Ordering::Relaxed) {
                let number = dumps.fetch_add(1, Ordering::Relaxed);
                let path = folder.path().join(format!("{number}"));
                flight.dump(&path).unwrap();
                check_dump(&path);
                std::fs::remove_file(&path).unwrap();
            }
        });
        let panicked = threads.into_iter().map(|thread| thread.join().is_err());
        let panicked = panicked.filter(|panicked| *panicked).count();
        running.store(false, Ordering::Relaxed);
        assert_eq!(panicked, 0);
    });

    let written = calls.into_inner();
    assert_eq!(written, u64::from(THREADS * LIVES * CALLS * times()));
    assert!(dumps.into_inner() > 0);
    for (number, (buffer, delivered)) in kept.into_iter().enumerate() {
        let _ = buffer.flush();
        let dropped = buffer.dropped_in_total();
        assert_eq!(dropped.total(), dropped.of(Kind::API));
        drop(buffer);
        let delivered = delivered.lock().unwrap();
        let all = delivered.calls + dropped.total();
        assert_eq!(all, written, "buffer {number}: {} dropped", dropped.total());
        assert_eq!(delivered.lost, dropped.total(), "buffer {number}: reported");
        assert!(delivered.missing() <= dropped.total(), "buffer {number}");
    }
    assert_eq!(lent.load(Ordering::Relaxed), 0, "every block came back");
}

/// Each lane's calls in a dump come in order.
fn check_dump(path: &std::path::Path) {
    let reader = gputrail_capture::Reader::open(path).unwrap();
    assert!(reader.ended() && reader.findings().is_empty());
    let (mut chunks, mut delivered) = (reader.chunks(), Delivered::default());
    while let Some(chunk) = chunks.next() {
        delivered.take(chunk.lane, chunk.records());
    }
}
