use super::*;
use crate::context::{Context, InternalThread, InternalThreadWatch, RecordSelection};
use crate::correlation::{Extra, HostThread};
use gputrail_buffer::SMALLEST_CLIENT_BLOCK;
use gputrail_record::{
    Api, ContextId, Domain, MemoryCopy, Operation, QueueId, Records, ThreadId, Ticks,
};
use std::ptr::NonNull;
use std::sync::mpsc;
use std::thread;

const CALL: Operation = Operation {
    domain: Domain::SIM,
    number: 1,
};

/// A program of one thread whose calls go to one buffer.
struct Program {
    board: Arc<Switchboard>,
    host: HostThread,
    context: Option<Context>,
}

impl Program {
    fn new() -> Program {
        let board = Switchboard::new();
        let host = HostThread::new(&board, ThreadId(1), true).unwrap();
        Program {
            board,
            host,
            context: None,
        }
    }

    fn trace_to(&mut self, buffers: &[&RecordBuffer]) {
        let context = Context::on(&self.board).unwrap();
        for buffer in buffers {
            context
                .trace_to(buffer, RecordSelection::kinds(&[Kind::API]))
                .unwrap();
        }
        context.start().unwrap();
        self.context = Some(context);
    }

    fn call(&mut self, times: usize) {
        for _ in 0..times {
            let call = self.host.enter(CALL, 1000, Ticks(1));
            self.host.exit(&call, Ticks(2), 0, Extra::NONE);
        }
    }
}

/// Delivers when somebody flushes.
fn lazy() -> BufferOptions {
    BufferOptions {
        watermark: u32::MAX,
        period: Duration::from_secs(3600),
        ..eager()
    }
}

/// Delivers at once, and soon.
fn eager() -> BufferOptions {
    BufferOptions {
        pool_bytes: 1 << 16,
        block_bytes: 4096,
        watermark: 0,
        period: Duration::from_millis(1),
        threads: 8,
        ..BufferOptions::default()
    }
}

/// Delivers only full blocks, or who flushes.
fn patient() -> BufferOptions {
    BufferOptions {
        watermark: u32::MAX,
        period: Duration::from_secs(3600),
        ..eager()
    }
}

/// A buffer that says on which threads it delivers.
fn reporting(
    program: &Program,
    options: BufferOptions,
) -> (RecordBuffer, mpsc::Receiver<thread::ThreadId>) {
    let (tell, told) = mpsc::channel();
    let deliver = move |_: &BlockView<'_>| {
        let _ = tell.send(thread::current().id());
    };
    (
        RecordBuffer::on(&program.board, options, deliver).unwrap(),
        told,
    )
}

#[test]
fn buffers_without_a_thread_of_their_own_share_one() {
    let mut program = Program::new();
    let (one, told_one) = reporting(&program, eager());
    let (other, told_other) = reporting(&program, eager());
    program.trace_to(&[&one, &other]);
    program.call(1);
    let thread = told_one.recv().unwrap();
    assert_eq!(thread, told_other.recv().unwrap());
    assert_ne!(thread, thread::current().id());
}

#[test]
fn a_buffer_is_delivered_on_the_thread_that_it_is_assigned_to() {
    let mut program = Program::new();
    let thread = CallbackThread::create().unwrap();
    let options = BufferOptions {
        callback_thread: Some(thread.clone()),
        ..eager()
    };
    let (one, told_one) = reporting(&program, options);
    let (other, told_other) = reporting(&program, eager());
    program.trace_to(&[&one, &other]);
    program.call(1);
    let (first, second) = (told_one.recv().unwrap(), told_other.recv().unwrap());
    assert_ne!(first, second);
    other.assign(&thread);
    // It may take a moment until the other thread has seen it.
    drop(thread);
    loop {
        program.call(1);
        if told_other.recv().unwrap() == first {
            break;
        }
    }
}

#[test]
fn a_callback_that_takes_long_holds_up_no_other_thread() {
    let mut program = Program::new();
    let (hold, held) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let options = BufferOptions {
        callback_thread: Some(CallbackThread::create().unwrap()),
        ..eager()
    };
    let slow = move |_: &BlockView<'_>| {
        let _ = tell.send(());
        let _ = held.recv();
    };
    let slow = RecordBuffer::on(&program.board, options, slow).unwrap();
    let (quick, told_quick) = reporting(&program, eager());
    program.trace_to(&[&slow, &quick]);
    program.call(1);
    told.recv().unwrap();
    told_quick.recv().unwrap();
    program.call(1);
    told_quick.recv().unwrap();
    drop(hold);
}

#[test]
fn tools_are_called_back_around_the_creation_of_our_threads() {
    let me = thread::current().id();
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let watch = InternalThreadWatch::new(move |moment| {
        if thread::current().id() == me {
            tell.lock().unwrap().send(moment).unwrap();
        }
    });
    drop(CallbackThread::create().unwrap());
    drop(watch);
    drop(CallbackThread::create().unwrap());
    let all: Vec<_> = told.iter().collect();
    assert_eq!(all, [InternalThread::Before, InternalThread::After]);
}

/// The blocks that a client has received.
#[derive(Default)]
struct Seen {
    /// Records of each block that came back.
    completed: Vec<usize>,
    /// Bytes of each that had been shown.
    shown: Vec<usize>,
    /// Records of partial views.
    partial: usize,
    requests: usize,
    sequences: Vec<u32>,
}

/// A client that supplies blocks as long as `supply` does.
struct Client<F> {
    supply: F,
    seen: Arc<Mutex<Seen>>,
}

impl<F: FnMut() -> Option<ClientBlock> + Send> BlockClient for Client<F> {
    fn request(&mut self) -> Option<ClientBlock> {
        self.seen.lock().unwrap().requests += 1;
        (self.supply)()
    }

    fn partial(&mut self, view: &BlockView<'_>) {
        self.seen.lock().unwrap().partial += view.records().count();
    }

    fn complete(&mut self, block: CompletedBlock) {
        let mut seen = self.seen.lock().unwrap();
        seen.completed.push(block.records().count());
        seen.shown.push(block.shown);
        seen.sequences
            .extend(block.records().map(|record| record.header().sequence));
    }
}

fn of_client_with(
    options: BufferOptions,
    program: &Program,
    supply: impl FnMut() -> Option<ClientBlock> + Send + 'static,
) -> (RecordBuffer, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let client = Client {
        supply,
        seen: seen.clone(),
    };
    let buffer = RecordBuffer::of_client_on(&program.board, options, client).unwrap();
    (buffer, seen)
}

fn of_client(
    program: &Program,
    supply: impl FnMut() -> Option<ClientBlock> + Send + 'static,
) -> (RecordBuffer, Arc<Mutex<Seen>>) {
    of_client_with(patient(), program, supply)
}

fn block(bytes: usize) -> ClientBlock {
    ClientBlock::owned(vec![0; bytes / 8].into())
}

#[test]
fn a_client_gets_its_blocks_back_with_everything_that_was_recorded() {
    let mut program = Program::new();
    let (buffer, seen) = of_client(&program, || Some(block(4096)));
    program.trace_to(&[&buffer]);
    for _ in 0..100 {
        program.call(100);
        buffer.flush().unwrap();
    }
    let dropped = buffer.dropped_in_total().total();
    drop(buffer);
    let seen = seen.lock().unwrap();
    assert_eq!(
        seen.completed.len(),
        seen.requests,
        "every block comes back"
    );
    let total: usize = seen.completed.iter().sum();
    assert_eq!((total as u64, dropped), (10_000, 0));
    assert!(seen.sequences.iter().copied().eq(0..10_000));
}

#[test]
fn blocks_of_a_client_are_a_ring_that_a_flush_shows_and_the_end_returns() {
    let mut program = Program::new();
    let options = BufferOptions {
        policy: Policy::Overwrite,
        ..patient()
    };
    // A block takes 64 records.
    let mut blocks: Vec<_> = (0..4).map(|_| block(4096)).collect();
    let (buffer, seen) = of_client_with(options, &program, move || blocks.pop());
    assert_eq!(seen.lock().unwrap().requests, 5, "until it refuses");
    program.trace_to(&[&buffer]);
    program.call(1000);
    for flushes in 1..=2 {
        buffer.flush().unwrap();
        let seen = seen.lock().unwrap();
        // 1000 records fill 15 blocks, and 40 records of another.
        assert_eq!(
            (seen.partial, seen.completed.len()),
            (flushes * (3 * 64 + 40), 0)
        );
    }
    program.call(10);
    assert_eq!(buffer.dropped_in_total().total(), 0);
    // A loss that no thread reports, and that no block is left for.
    program.board.count_lost(Kind::API);
    seen.lock().unwrap().partial = 0;
    drop(buffer);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.partial, 1);
    assert_eq!(
        (seen.requests, &seen.completed[..]),
        (5, &[64, 64, 64, 50][..])
    );
    assert!(
        seen.sequences
            .iter()
            .copied()
            .eq(1010 - (3 * 64 + 50)..1010)
    );
}

#[test]
fn with_fewer_blocks_than_threads_a_ring_still_keeps_the_latest_records() {
    let mut program = Program::new();
    let options = BufferOptions {
        policy: Policy::Overwrite,
        ..patient()
    };
    let mut blocks: Vec<_> = (0..2).map(|_| block(4096)).collect();
    let (buffer, seen) = of_client_with(options, &program, move || blocks.pop());
    program.trace_to(&[&buffer]);
    let thread = |number| HostThread::new(&program.board, ThreadId(number), false).unwrap();
    let mut hosts: Vec<HostThread> = (2..=5).map(thread).collect();
    for _ in 0..3 {
        for host in &mut hosts {
            for _ in 0..20 {
                let call = host.enter(CALL, 1000, Ticks(1));
                host.exit(&call, Ticks(2), 0, Extra::NONE);
            }
        }
    }
    assert_eq!(buffer.dropped_in_total().total(), 0);
    drop(buffer);
    // The last 20 calls of the last two threads.
    let seen = seen.lock().unwrap();
    assert_eq!((seen.requests, &seen.completed[..]), (3, &[20, 20][..]));
    assert!(seen.sequences.iter().all(|sequence| *sequence >= 40));
}

#[test]
fn a_block_holds_no_more_records_than_its_client_allows() {
    let mut program = Program::new();
    let supply = || Some(block(4096).with_max_records(3));
    let (buffer, seen) = of_client(&program, supply);
    program.trace_to(&[&buffer]);
    for _ in 0..50 {
        program.call(4);
        buffer.flush().unwrap();
    }
    drop(buffer);
    let seen = seen.lock().unwrap();
    let most = seen.completed.iter().max().unwrap();
    assert_eq!((*most, seen.completed.iter().sum()), (3, 200));
}

#[test]
fn with_one_record_to_a_block_losses_are_reported_and_records_still_come() {
    let mut program = Program::new();
    let mut requests = 0;
    let supply = move || {
        requests += 1;
        let block = block(SMALLEST_CLIENT_BLOCK).with_max_records(1);
        (requests % 3 != 0).then_some(block)
    };
    let (buffer, seen) = of_client(&program, supply);
    program.trace_to(&[&buffer]);
    for _ in 0..100 {
        program.call(10);
        buffer.flush().unwrap();
    }
    let dropped = buffer.dropped_in_total().total();
    drop(buffer);
    let seen = seen.lock().unwrap();
    assert!(seen.completed.iter().all(|records| *records <= 1));
    // Each report of losses takes a block and a number, as does each loss.
    let delivered = seen.completed.iter().sum::<usize>() as u64;
    let last = u64::from(*seen.sequences.iter().max().unwrap());
    assert!(dropped > 0 && delivered > 0);
    assert!(last < delivered + dropped, "{last} {delivered} {dropped}");
}

#[test]
fn a_client_without_a_block_loses_records_which_are_counted() {
    let mut program = Program::new();
    let (buffer, _) = of_client(&program, || None);
    program.trace_to(&[&buffer]);
    program.call(10);
    buffer.flush().unwrap();
    assert_eq!(buffer.dropped().of(Kind::API), 10);
    assert_eq!(buffer.dropped().total(), 0);
}

#[test]
fn a_block_that_is_too_small_or_misaligned_comes_back_at_once() {
    let mut program = Program::new();
    let (buffer, seen) = of_client(&program, || Some(block(SMALLEST_CLIENT_BLOCK - 8)));
    let memory = Box::leak(vec![0u64; 1024].into_boxed_slice());
    let start = NonNull::from(&mut *memory).cast::<u8>().addr();
    let misaligned = move || {
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut(start.get() + 1)).unwrap();
        // SAFETY: leaked above, and one byte less than there is.
        Some(unsafe { ClientBlock::lent(start, 8191) })
    };
    let (other, seen_other) = of_client(&program, misaligned);
    program.trace_to(&[&buffer, &other]);
    program.call(10);
    for (buffer, seen) in [(buffer, seen), (other, seen_other)] {
        buffer.flush().unwrap();
        assert_eq!(buffer.dropped().of(Kind::API), 10);
        let seen = seen.lock().unwrap();
        assert_eq!(seen.completed.len(), seen.requests);
        assert!(seen.completed.iter().all(|records| *records == 0));
    }
}

#[test]
fn a_flush_returns_blocks_that_are_not_full() {
    let mut program = Program::new();
    let (buffer, seen) = of_client(&program, || Some(block(4096)));
    program.trace_to(&[&buffer]);
    program.call(5);
    buffer.flush().unwrap();
    assert_eq!(seen.lock().unwrap().completed, [5]);
    buffer.flush().unwrap();
    assert_eq!(seen.lock().unwrap().completed, [5], "there is nothing new");
    program.call(2);
    buffer.flush().unwrap();
    assert_eq!(seen.lock().unwrap().completed, [5, 2]);
    program.call(1);
    drop(buffer);
    let seen = seen.lock().unwrap();
    assert_eq!((seen.completed.iter().sum::<usize>(), seen.partial), (8, 0));
    assert!(seen.shown.iter().all(|shown| *shown == 0));
    assert!(
        seen.sequences.iter().copied().eq(0..8),
        "one lane wrote them"
    );
}

#[test]
fn records_at_the_watermark_are_shown_and_their_block_says_so_later() {
    let mut program = Program::new();
    let (buffer, seen) = of_client(&program, || Some(block(4096)));
    program.trace_to(&[&buffer]);
    for (calls, shown) in [(5, 5), (2, 7)] {
        program.call(calls);
        // As the callback thread does at a watermark of 0.
        buffer.collector.flush();
        assert_eq!(seen.lock().unwrap().partial, shown);
    }
    program.call(1);
    drop(buffer);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.partial, 7);
    assert_eq!(seen.completed.iter().max(), Some(&8));
    assert_eq!(seen.shown.iter().max(), Some(&(7 * size_of::<Api>())));
}

#[test]
fn a_client_that_never_refuses_a_block_loses_nothing() {
    for ahead in [0, 1, 50] {
        let mut program = Program::new();
        let options = BufferOptions {
            blocks_ahead: ahead,
            ..patient()
        };
        let supply = || Some(block(SMALLEST_CLIENT_BLOCK));
        let (buffer, seen) = of_client_with(options, &program, supply);
        assert_eq!(seen.lock().unwrap().requests, ahead.max(1) as usize);
        program.trace_to(&[&buffer]);
        program.call(10_000);
        assert_eq!(buffer.dropped_in_total().total(), 0);
        drop(buffer);
        let seen = seen.lock().unwrap();
        let api = 10_000 * size_of::<Api>();
        assert!(seen.completed.iter().sum::<usize>() * size_of::<Api>() >= api);
    }
}

#[test]
fn losses_that_no_thread_reported_come_in_a_block_of_their_own() {
    let mut program = Program::new();
    let mut blocks: Vec<_> = (0..3).map(|_| block(4096)).collect();
    let (buffer, seen) = of_client(&program, move || blocks.pop());
    program.trace_to(&[&buffer]);
    // A block takes 64 records. The third block is requested ahead of need.
    program.call(65);
    program.board.count_lost(Kind::API);
    drop(buffer);
    assert_eq!(seen.lock().unwrap().completed, [64, 1, 1]);
}

#[test]
fn two_blocks_are_enough_for_any_number_of_threads_to_lose_nothing() {
    let program = Program::new();
    let options = BufferOptions {
        pool_bytes: 2 * 4096,
        policy: Policy::Lossless,
        ..patient()
    };
    let (buffer, _) = reporting(&program, options);
    let context = Context::on(&program.board).unwrap();
    let api = RecordSelection::kinds(&[Kind::API]);
    context.trace_to(&buffer, api).unwrap();
    context.start().unwrap();
    let all_have_recorded = std::sync::Barrier::new(8);
    thread::scope(|scope| {
        for number in 1..=8 {
            let (board, all_have_recorded) = (&program.board, &all_have_recorded);
            scope.spawn(move || {
                let mut host = HostThread::new(board, ThreadId(number), false).unwrap();
                for _ in 0..1000 {
                    let call = host.enter(CALL, 1000, Ticks(1));
                    host.exit(&call, Ticks(2), 0, Extra::NONE);
                }
                // Idle with a block that is not full.
                all_have_recorded.wait();
            });
        }
    });
    assert_eq!(buffer.dropped_in_total().total(), 0);
}

#[test]
fn retirements_that_do_not_fit_are_counted_like_other_records() {
    let mut program = Program::new();
    let records = Arc::new(Mutex::new(Vec::new()));
    let into = records.clone();
    let (hold, held) = mpsc::channel::<()>();
    let deliver = move |view: &BlockView<'_>| {
        let _ = held.recv();
        let all = view.records().map(|record| {
            let header = record.header();
            (header.kind, header.sequence)
        });
        into.lock().unwrap().extend(all);
    };
    let options = BufferOptions {
        pool_bytes: 2 * 4096,
        ..patient()
    };
    let buffer = RecordBuffer::on(&program.board, options, deliver).unwrap();
    let context = Context::on(&program.board).unwrap();
    let kinds = [Kind::API, Kind::RETIREMENT];
    context
        .trace_to(&buffer, RecordSelection::kinds(&kinds))
        .unwrap();
    context.start().unwrap();
    let begun: Vec<_> = (0..200)
        .map(|_| {
            let call = program.host.enter(CALL, 1000, Ticks(1));
            program.host.work_begins(&call);
            program.host.exit(&call, Ticks(2), 0, Extra::NONE);
            call.correlation
        })
        .collect();
    for call in &begun {
        program.host.work_ends(*call, Ticks(3));
    }
    // Writes what the completions had to leave; there is no room for it yet.
    program.call(1);
    let dropped = buffer.dropped_in_total();
    assert_eq!(dropped.of(Kind::RETIREMENT), 201);
    drop(hold);
    buffer.flush().unwrap();
    program.call(1);
    buffer.flush().unwrap();
    drop(buffer);
    let records = records.lock().unwrap();
    let retired = records.iter().filter(|(kind, _)| *kind == Kind::RETIREMENT);
    assert_eq!(retired.count(), 1);
    let last = records.iter().map(|(_, sequence)| *sequence).max().unwrap();
    assert_eq!(
        u64::from(last) + 1,
        records.len() as u64 + dropped.total(),
        "each loss is a gap in the sequence"
    );
}

#[test]
fn a_client_may_lend_memory_of_anywhere() {
    let mut program = Program::new();
    let memory = Box::leak(vec![0u64; 512].into_boxed_slice());
    let mut place = Some(NonNull::from(memory).cast::<u8>().expose_provenance());
    let lend = move || {
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut(place.take()?.get()))?;
        // SAFETY: leaked above, and lent once.
        Some(unsafe { ClientBlock::lent(start, 4096) })
    };
    let (buffer, seen) = of_client(&program, lend);
    program.trace_to(&[&buffer]);
    program.call(64 + 6);
    buffer.flush().unwrap();
    assert_eq!(buffer.dropped().total(), 6);
    drop(buffer);
    assert_eq!(seen.lock().unwrap().completed, [64]);
}

#[test]
fn a_client_that_panics_is_not_called_again() {
    let mut program = Program::new();
    let panics = || std::panic::resume_unwind(Box::new(()));
    let (buffer, seen) = of_client(&program, panics);
    program.trace_to(&[&buffer]);
    program.call(3);
    buffer.flush().unwrap();
    assert!(buffer.has_failed());
    assert_eq!(seen.lock().unwrap().requests, 1);
    assert_eq!(buffer.dropped().total(), 3);
}

#[test]
fn another_process_finds_the_records_in_memory_that_the_tool_shares() {
    let mut program = Program::new();
    let layout = Layout::new(1 << 16, 4096, 4).unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(layout.total_bytes() as u64).unwrap();
    let mapping = Mapping::create(&file, layout).unwrap();
    let deliver = |_: &BlockView<'_>| {};
    let buffer = RecordBuffer::in_mapping_on(&program.board, mapping, patient(), deliver).unwrap();
    program.trace_to(&[&buffer]);
    program.call(3);
    let other = Mapping::open(&file, layout.total_bytes()).unwrap();
    let mut records = 0;
    gputrail_buffer::show_filling(&other, |bytes| records += Records::new(bytes).count());
    assert_eq!(records, 3);
}

#[test]
fn a_flush_asks_the_sources_first_and_a_forced_one_for_outstanding_work() {
    let mut program = Program::new();
    let (buffer, seen) = of_client(&program, || Some(block(4096)));
    program.trace_to(&[&buffer]);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let host = HostThread::new(&program.board, ThreadId(2), false).unwrap();
    let host = Arc::new(Mutex::new(Some(host)));
    let of_hook = host.clone();
    let into = asked.clone();
    program.board.on_flush(move |flush| {
        into.lock().unwrap().push(flush);
        let mut host = of_hook.lock().unwrap();
        let host = host.as_mut().unwrap();
        let call = host.enter(CALL, 1000, Ticks(1));
        host.exit(&call, Ticks(2), 0, Extra::NONE);
    });
    buffer.flush().unwrap();
    assert_eq!(seen.lock().unwrap().completed, [1]);
    buffer.flush_forced().unwrap();
    let outstanding = Flush::Outstanding(buffer.key.buffers());
    assert_eq!(*asked.lock().unwrap(), [Flush::Completed, outstanding]);
    // It keeps the switchboard, which keeps the hook.
    drop(host.lock().unwrap().take());
}

#[test]
fn drops_of_work_are_counted_by_the_context_and_queue_that_it_names() {
    let mut program = Program::new();
    let options = BufferOptions {
        pool_bytes: 2 * 4096,
        block_bytes: 4096,
        ..lazy()
    };
    // No block becomes empty before all has been written.
    let writing = Arc::new(Mutex::new(()));
    let delivering = writing.clone();
    let buffer =
        RecordBuffer::on(&program.board, options, move |_| drop(delivering.lock())).unwrap();
    let held = writing.lock().unwrap();
    let mut copy = MemoryCopy::blank();
    copy.work.context = ContextId(3);
    let mut dropped = [0; 2];
    for number in 0..300 {
        let queue = number % 2;
        copy.work.queue = QueueId(10 + queue as u32);
        let written = program.host.write_to(buffer.key.buffers(), copy);
        dropped[queue] += u64::from(!written);
    }
    drop(held);
    assert!(dropped[0] > 10, "{dropped:?}");
    let at = |context, queue| QueuePlace {
        context: ContextId(context),
        queue: QueueId(queue),
        ..QueuePlace::NONE
    };
    assert_eq!(buffer.dropped_at(at(4, 0)), 0);
    assert_eq!(buffer.dropped_at(at(3, 11)), dropped[1]);
    assert_eq!(buffer.dropped_at(at(3, 0)), dropped[0]);
    assert_eq!(buffer.dropped_at(QueuePlace::NONE), 0);
    let of_kind = buffer.dropped_in_total().of(Kind::MEMORY_COPY);
    assert_eq!(of_kind, dropped[0] + dropped[1]);
}

#[test]
fn settings_of_one_context_of_a_runtime_override_those_of_all() {
    let program = Program::new();
    let (one, other) = (
        reporting(&program, patient()).0,
        reporting(&program, patient()).0,
    );
    let context = Context::on(&program.board).unwrap();
    let kind = Kind::MEMORY_COPY;
    context
        .trace_to(&one, RecordSelection::kinds(&[kind]))
        .unwrap();
    context
        .trace_to(&other, RecordSelection::kinds(&[]))
        .unwrap();
    context.start().unwrap();
    let [here, elsewhere] = [1, 2].map(ContextId);
    let wanted = |of| program.board.buffers_in(kind, of);
    let (of_one, of_other) = (one.key.buffers(), other.key.buffers());
    assert_eq!((wanted(here), wanted(elsewhere)), (of_one, of_one));
    context
        .enable_kind_in(&one, here, kind, Some(false))
        .unwrap();
    assert!(wanted(here).is_none());
    assert_eq!(wanted(elsewhere), of_one);
    context
        .enable_kind_in(&other, here, kind, Some(true))
        .unwrap();
    assert_eq!((wanted(here), wanted(elsewhere)), (of_other, of_one));
    context.enable_kind_in(&one, here, kind, None).unwrap();
    assert_eq!(
        (wanted(here), wanted(elsewhere)),
        (of_one.or(of_other), of_one)
    );
    drop(other);
    assert_eq!((wanted(here), wanted(elsewhere)), (of_one, of_one));
    let odd = context.enable_kind_in(&one, here, Kind::API, Some(true));
    assert!(matches!(odd, Err(ToolError::UnknownKind(Kind::API))));
}

#[test]
fn retirements_come_after_the_call_and_the_last_of_its_work() {
    let mut program = Program::new();
    let kinds = Arc::new(Mutex::new(Vec::new()));
    let into = kinds.clone();
    let deliver = move |view: &BlockView<'_>| {
        let kinds = view.records().map(|record| record.kind());
        into.lock().unwrap().extend(kinds);
    };
    let buffer = RecordBuffer::on(&program.board, patient(), deliver).unwrap();
    let context = Context::on(&program.board).unwrap();
    let alone = RecordSelection::kinds(&[Kind::RETIREMENT]);
    assert!(matches!(
        context.trace_to(&buffer, alone),
        Err(ToolError::NotAlone(Kind::RETIREMENT))
    ));
    let kinds_of = [Kind::API, Kind::RETIREMENT];
    context
        .trace_to(&buffer, RecordSelection::kinds(&kinds_of))
        .unwrap();
    context.start().unwrap();
    program.call(1);
    let host = &mut program.host;
    let call = host.enter(CALL, 1000, Ticks(1));
    host.work_begins(&call);
    host.exit(&call, Ticks(2), 0, Extra::NONE);
    let later = host.enter(CALL, 1000, Ticks(3));
    host.exit(&later, Ticks(4), 0, Extra::NONE);
    host.work_ends(call.correlation, Ticks(5));
    buffer.flush().unwrap();
    let (api, retirement) = (Kind::API, Kind::RETIREMENT);
    assert_eq!(
        *kinds.lock().unwrap(),
        [api, retirement, api, api, retirement, retirement]
    );
}

/// Runs `work` in a forked child, and checks that it returned true there.
fn in_child(work: impl FnOnce() -> bool) {
    // SAFETY: the child runs `work` and ends without going back.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let done = work();
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!done)) };
    }
    let mut status = 0;
    // SAFETY: a child of this test.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0, "the child failed or was killed");
}

#[test]
fn what_a_forked_child_does_to_buffers_and_contexts_of_its_parent_has_a_status_and_no_effect() {
    let mut program = Program::new();
    let (sender, records) = mpsc::channel();
    let buffer = RecordBuffer::on(&program.board, lazy(), move |view| {
        sender.send(view.records().count()).unwrap();
    });
    let buffer = buffer.unwrap();
    program.trace_to(&[&buffer]);
    program.call(3);
    let no_buffer = |result: Result<(), ToolError>| matches!(result, Err(ToolError::NoSuchBuffer));
    let no_context =
        |result: Result<(), ToolError>| matches!(result, Err(ToolError::NoSuchContext));
    in_child(|| no_buffer(buffer.flush()) && no_buffer(buffer.flush_forced()));
    in_child(|| buffer.dropped().total() + buffer.dropped_in_total().total() == 0);
    let context = program.context.as_ref().unwrap();
    in_child(|| no_context(context.stop()) && no_context(context.start()) && !context.is_started());
    in_child(|| no_buffer(context.trace_to(&buffer, RecordSelection::all())));
    // SAFETY: a copy of each, of which the child alone drops one.
    let copies = unsafe { (std::ptr::read(&buffer), std::ptr::read(&program.context)) };
    let copies = std::mem::ManuallyDrop::new(copies);
    in_child(|| {
        drop(std::mem::ManuallyDrop::into_inner(copies));
        true
    });
    assert_eq!(records.try_iter().count(), 0);
    buffer.flush().unwrap();
    assert_eq!(records.try_iter().sum::<usize>(), 3);
}

#[test]
fn a_forked_child_is_not_kept_up_by_a_lock_that_a_thread_of_its_parent_holds() {
    let board = Switchboard::new();
    let buffer = RecordBuffer::on(&board, lazy(), |_| {}).unwrap();
    board.while_locked(|| {
        in_child(|| matches!(buffer.flush(), Err(ToolError::NoSuchBuffer)));
        // SAFETY: a copy, which the child alone drops.
        let copy = std::mem::ManuallyDrop::new(unsafe { std::ptr::read(&buffer) });
        in_child(|| {
            drop(std::mem::ManuallyDrop::into_inner(copy));
            true
        });
    });
}
