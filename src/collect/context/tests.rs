use super::*;
use crate::correlation::{Extra, HostThread};
use gputrail_record::{Api, ThreadId, Ticks};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const ONE: Operation = Operation {
    domain: Domain::SIM,
    number: 1,
};
const TWO: Operation = Operation {
    domain: Domain::SIM,
    number: 2,
};

/// A program of one thread, and the operations whose records its tool has got.
struct Program {
    board: Arc<Switchboard>,
    thread: HostThread,
}

fn program() -> Program {
    let board = Switchboard::new();
    let thread = HostThread::new(&board, ThreadId(1), true).unwrap();
    Program { board, thread }
}

impl Program {
    fn call(&mut self, operation: Operation) {
        if self.board.interest(operation).is_none() {
            return;
        }
        let call = self.thread.enter(operation, 1000, Ticks(1));
        self.thread.exit(&call, Ticks(2), 0, Extra::NONE);
    }

    fn buffer(&self) -> (RecordBuffer, Arc<Mutex<Vec<Operation>>>) {
        let got = Arc::new(Mutex::new(Vec::new()));
        let options = BufferOptions {
            pool_bytes: 1 << 16,
            block_bytes: 4096,
            threads: 8,
            ..BufferOptions::default()
        };
        let into = got.clone();
        let deliver = move |batch: &gputrail_buffer::BlockView<'_>| {
            let calls = batch.records().filter_map(|record| record.read::<Api>());
            into.lock()
                .unwrap()
                .extend(calls.map(|call| call.operation));
        };
        (
            RecordBuffer::on(&self.board, options, deliver).unwrap(),
            got,
        )
    }
}

#[test]
fn a_started_context_gets_what_it_selected_and_a_stopped_one_nothing() {
    let mut program = program();
    let (buffer, got) = program.buffer();
    let context = Context::on(&program.board).unwrap();
    let mut operations = OperationSet::default();
    operations.set(TWO, true);
    let selection = RecordSelection {
        kinds: KindSet::of(&[Kind::API]),
        operations,
        ..RecordSelection::none()
    };
    context.trace_to(&buffer, selection).unwrap();
    program.call(TWO);
    context.start().unwrap();
    assert!(context.is_started());
    (0..3).for_each(|_| program.call(ONE));
    (0..2).for_each(|_| program.call(TWO));
    context.stop().unwrap();
    program.call(TWO);
    buffer.flush().unwrap();
    assert_eq!(*got.lock().unwrap(), [TWO, TWO]);
}

#[test]
fn two_contexts_with_a_buffer_each_get_a_record_each() {
    let mut program = program();
    let (one, got_one) = program.buffer();
    let (two, got_two) = program.buffer();
    let contexts: Vec<Context> = [&one, &two]
        .into_iter()
        .map(|buffer| {
            let context = Context::on(&program.board).unwrap();
            context
                .trace_to(buffer, RecordSelection::kinds(&[Kind::API]))
                .unwrap();
            context.start().unwrap();
            context
        })
        .collect();
    program.call(ONE);
    contexts[0].stop().unwrap();
    program.call(TWO);
    one.flush().unwrap();
    two.flush().unwrap();
    assert_eq!(*got_one.lock().unwrap(), [ONE]);
    assert_eq!(*got_two.lock().unwrap(), [ONE, TWO]);
}

#[test]
fn a_call_in_progress_is_recorded_when_its_context_stops() {
    let mut program = program();
    let (buffer, got) = program.buffer();
    let context = Context::on(&program.board).unwrap();
    context
        .trace_to(&buffer, RecordSelection::kinds(&[Kind::API]))
        .unwrap();
    context.start().unwrap();
    let call = program.thread.enter(ONE, 1000, Ticks(1));
    context.stop().unwrap();
    program.thread.exit(&call, Ticks(2), 0, Extra::NONE);
    buffer.flush().unwrap();
    assert_eq!(*got.lock().unwrap(), [ONE]);
}

#[test]
fn a_destroyed_buffer_is_delivered_to_the_end_and_its_slot_serves_another() {
    let mut program = program();
    for round in 0..100 {
        let (buffer, got) = program.buffer();
        let context = Context::on(&program.board).unwrap();
        context
            .trace_to(&buffer, RecordSelection::kinds(&[Kind::API]))
            .unwrap();
        context.start().unwrap();
        (0..round).for_each(|_| program.call(ONE));
        drop(buffer);
        program.call(TWO);
        assert_eq!(got.lock().unwrap().len(), round);
    }
}

#[test]
fn services_are_locked_by_the_first_start_but_what_they_select_is_not() {
    let mut program = program();
    let (buffer, got) = program.buffer();
    let (other, _) = program.buffer();
    let context = Context::on(&program.board).unwrap();
    let calls = || RecordSelection::kinds(&[Kind::API]);
    context.trace_to(&buffer, calls()).unwrap();
    assert!(matches!(
        context.trace_to(&buffer, calls()),
        Err(ToolError::Conflict)
    ));
    context.start().unwrap();
    assert!(matches!(context.start(), Err(ToolError::Started)));
    assert!(matches!(
        context.trace_to(&other, calls()),
        Err(ToolError::Locked)
    ));
    assert!(matches!(
        context.enable_kind(&other, Kind::API, true),
        Err(ToolError::NoSuchService)
    ));
    context.enable_operation(&buffer, ONE, false).unwrap();
    program.call(ONE);
    program.call(TWO);
    context.enable_kind(&buffer, Kind::API, false).unwrap();
    program.call(TWO);
    buffer.flush().unwrap();
    assert_eq!(*got.lock().unwrap(), [TWO]);
    context.stop().unwrap();
    assert!(matches!(context.stop(), Err(ToolError::Stopped)));
}

#[test]
fn arguments_cannot_be_enabled_without_calls() {
    let program = program();
    let (buffer, _) = program.buffer();
    let context = Context::on(&program.board).unwrap();
    let alone = context.trace_to(&buffer, RecordSelection::kinds(&[Kind::ARGUMENTS]));
    assert!(matches!(alone, Err(ToolError::NotAlone(Kind::ARGUMENTS))));
    context
        .trace_to(
            &buffer,
            RecordSelection::kinds(&[Kind::ARGUMENTS, Kind::API]),
        )
        .unwrap();
    let without = context.enable_kind(&buffer, Kind::API, false);
    assert!(matches!(without, Err(ToolError::NotAlone(Kind::ARGUMENTS))));
}

#[test]
fn kinds_that_nothing_produces_are_refused() {
    let program = program();
    let (buffer, _) = program.buffer();
    for (kind, _) in Kind::ALL {
        let context = Context::on(&program.board).unwrap();
        let kinds = [*kind, Kind::API, Kind::KERNEL_DISPATCH];
        let traced = context.trace_to(&buffer, RecordSelection::kinds(&kinds));
        assert_eq!(
            traced.is_ok(),
            kind.producer().is_some(),
            "{kind:?}: {traced:?}"
        );
        if kind.producer().is_none() {
            assert!(matches!(traced, Err(ToolError::UnknownKind(of)) if of == *kind));
        }
    }
    let context = Context::on(&program.board).unwrap();
    context.trace_to(&buffer, RecordSelection::all()).unwrap();
}

#[test]
fn completions_cannot_be_selected_without_the_work_that_they_complete() {
    let program = program();
    let (buffer, _) = program.buffer();
    let context = Context::on(&program.board).unwrap();
    let alone = context.trace_to(
        &buffer,
        RecordSelection::kinds(&[Kind::COMPLETION, Kind::API]),
    );
    assert!(matches!(alone, Err(ToolError::NotAlone(Kind::COMPLETION))));
    let kinds = RecordSelection::kinds(&[Kind::COMPLETION, Kind::MEMORY_SET]);
    context.trace_to(&buffer, kinds).unwrap();
}

#[test]
fn records_that_do_not_fit_are_dropped_and_reported_once() {
    let mut program = program();
    let (buffer, got) = program.buffer();
    let context = Context::on(&program.board).unwrap();
    context
        .trace_to(&buffer, RecordSelection::kinds(&[Kind::API]))
        .unwrap();
    context.start().unwrap();
    (0..100_000).for_each(|_| program.call(ONE));
    context.stop().unwrap();
    buffer.flush().unwrap();
    let dropped = buffer.dropped();
    assert_eq!(dropped.total(), dropped.of(Kind::API));
    assert_eq!(got.lock().unwrap().len() as u64 + dropped.total(), 100_000);
    assert_eq!(buffer.dropped().total(), 0);
    assert_eq!(buffer.dropped_in_total(), dropped);
}

#[test]
fn a_buffer_without_a_free_lane_costs_the_others_nothing() {
    let mut program = program();
    let options = BufferOptions {
        pool_bytes: 8192,
        block_bytes: 4096,
        threads: 1,
        ..BufferOptions::default()
    };
    let narrow = RecordBuffer::on(&program.board, options, |_| {}).unwrap();
    let (wide, got) = program.buffer();
    let context = Context::on(&program.board).unwrap();
    for buffer in [&narrow, &wide] {
        context
            .trace_to(buffer, RecordSelection::kinds(&[Kind::API]))
            .unwrap();
    }
    context.start().unwrap();
    let mut first = HostThread::new(&program.board, ThreadId(2), false).unwrap();
    let call = first.enter(ONE, 1000, Ticks(1));
    first.exit(&call, Ticks(2), 0, Extra::NONE);
    (0..100).for_each(|_| program.call(TWO));
    context.stop().unwrap();
    wide.flush().unwrap();
    assert_eq!(got.lock().unwrap().len(), 101);
    assert_eq!((narrow.dropped().total(), wide.dropped().total()), (100, 0));
}

#[test]
fn a_flush_from_within_a_delivery_is_refused() {
    let mut program = program();
    let result = Arc::new(Mutex::new(Vec::new()));
    let (inner, _) = program.buffer();
    let into = result.clone();
    let deliver = move |_: &gputrail_buffer::BlockView<'_>| {
        into.lock()
            .unwrap()
            .push(matches!(inner.flush(), Err(ToolError::Busy)));
    };
    let buffer = RecordBuffer::on(&program.board, BufferOptions::default(), deliver).unwrap();
    let context = Context::on(&program.board).unwrap();
    context
        .trace_to(&buffer, RecordSelection::kinds(&[Kind::API]))
        .unwrap();
    context.start().unwrap();
    program.call(ONE);
    buffer.flush().unwrap();
    assert_eq!(*result.lock().unwrap(), [true]);
}

#[test]
fn a_delivery_that_panics_is_not_called_again() {
    let mut program = program();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let deliver = move |_: &gputrail_buffer::BlockView<'_>| {
        count.fetch_add(1, Ordering::Relaxed);
        std::panic::resume_unwind(Box::new(()));
    };
    let buffer = RecordBuffer::on(&program.board, BufferOptions::default(), deliver).unwrap();
    let context = Context::on(&program.board).unwrap();
    context
        .trace_to(&buffer, RecordSelection::kinds(&[Kind::API]))
        .unwrap();
    context.start().unwrap();
    program.call(ONE);
    buffer.flush().unwrap();
    program.call(ONE);
    buffer.flush().unwrap();
    assert!(buffer.has_failed());
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn buffers_and_contexts_run_out_with_an_error() {
    let program = program();
    let options = || BufferOptions {
        pool_bytes: 8192,
        block_bytes: 4096,
        threads: 1,
        ..BufferOptions::default()
    };
    let make = |_| RecordBuffer::on(&program.board, options(), |_| {});
    let buffers: Vec<_> = (0..32).map(make).collect::<Result<_, _>>().unwrap();
    assert!(matches!(make(0), Err(ToolError::TooMany { most: 32, .. })));
    drop(buffers);
    make(0).unwrap();
    let contexts: Vec<_> = (0..64)
        .map(|_| Context::on(&program.board))
        .collect::<Result<_, _>>()
        .unwrap();
    let error = Context::on(&program.board).unwrap_err();
    assert!(matches!(error, ToolError::TooMany { most: 64, .. }));
    drop(contexts);
    Context::on(&program.board).unwrap();
}

#[test]
fn a_buffer_of_another_process_is_refused() {
    let (one, other) = (program(), program());
    let (buffer, _) = other.buffer();
    let context = Context::on(&one.board).unwrap();
    let foreign = context.trace_to(&buffer, RecordSelection::all());
    assert!(matches!(foreign, Err(ToolError::NoSuchBuffer)));
}
