//! Calls of one thread and of several, and the ids that their records carry.

use super::ids::RANGE;
use super::*;
use crate::switchboard::{
    ContextKey, ContextSet, ExternalScope, RecordSelection, ReportedPart, ServiceConsumer,
};
use gputrail_buffer::{BlockView, Buffer, Layout, Mapping, Policy, deliver_in_order};

/// A switchboard with a buffer that wants everything.
fn board() -> Arc<Switchboard> {
    let layout = Layout::new(1 << 20, 1 << 16, 8).unwrap();
    let buffer = Buffer::new(Mapping::anonymous(layout).unwrap(), Policy::Discard);
    let board = Switchboard::new();
    let slot = board.add_buffer(buffer).unwrap().slot;
    let context = board.add_context().unwrap();
    board
        .add_service(
            context,
            ServiceConsumer::Buffer(slot),
            RecordSelection::all(),
        )
        .unwrap();
    board.start_context(context).unwrap();
    board
}

fn thread(board: &Arc<Switchboard>, is_main: bool) -> HostThread {
    HostThread::new(board, ThreadId(7), is_main).unwrap()
}

const OPERATION: Operation = Operation {
    domain: Domain::SIM,
    number: 3,
};

#[test]
fn a_nested_call_knows_its_ancestor() {
    let board = board();
    let mut thread = thread(&board, false);
    let outer = thread.enter(OPERATION, 1000, Ticks(1));
    let inner = thread.enter(OPERATION, 900, Ticks(2));
    assert_eq!(inner.ancestor, outer.correlation);
    thread.exit(&inner, Ticks(3), 0, Extra::NONE);
    let sibling = thread.enter(OPERATION, 900, Ticks(4));
    assert_eq!(sibling.ancestor, outer.correlation);
    thread.exit(&sibling, Ticks(5), 0, Extra::NONE);
    thread.exit(&outer, Ticks(6), 0, Extra::NONE);
    assert_eq!(
        thread.enter(OPERATION, 1000, Ticks(7)).ancestor,
        CorrelationId::NONE
    );
}

#[test]
fn a_call_that_was_jumped_out_of_is_taken_off_by_the_next() {
    let board = board();
    let mut thread = thread(&board, false);
    let outer = thread.enter(OPERATION, 1000, Ticks(1));
    thread.enter(OPERATION, 900, Ticks(2));
    thread.enter(OPERATION, 800, Ticks(3));
    // longjmp to a frame between outer and the first nested call
    let next = thread.enter(OPERATION, 950, Ticks(4));
    assert_eq!(next.ancestor, outer.correlation);
    thread.exit(&next, Ticks(5), 0, Extra::NONE);
    thread.exit(&outer, Ticks(6), 0, Extra::NONE);
    assert_eq!(thread.depth, 0);
}

#[test]
fn calls_deeper_than_the_stack_are_still_traced() {
    let board = board();
    let mut thread = thread(&board, false);
    let calls: Vec<_> = (0..100)
        .map(|n| thread.enter(OPERATION, 10_000 - n, Ticks(1)))
        .collect();
    for call in calls.iter().rev() {
        assert!(thread.exit(call, Ticks(2), 0, Extra::NONE));
    }
    assert_eq!(thread.depth, 0);
}

#[test]
fn ids_of_two_threads_never_meet() {
    let board = board();
    let (mut one, mut two) = (thread(&board, false), thread(&board, false));
    let mut seen = std::collections::HashSet::new();
    for n in 0..2 * RANGE {
        for thread in [&mut one, &mut two] {
            let call = thread.enter(OPERATION, 1000, Ticks(n));
            assert!(seen.insert(call.correlation));
            thread.exit(&call, Ticks(n), 0, Extra::NONE);
        }
    }
}

fn push(thread: &mut HostThread, kind: ExternalKind, id: u64) {
    assert!(thread.push_external(kind, ExternalId(id), Ticks(1)));
}

/// Supplies the id of `call`, as a service without a context of its own does.
fn supply(thread: &HostThread, call: &CallInProgress, within: ReportedPart, id: u64) {
    let place = (call.depth, within);
    let service = (ContextSet::default(), id);
    thread.with_external(|stacks, _| stacks.supply(place, service, ExternalId(id)));
}

#[test]
fn a_thread_without_external_ids_inherits_the_main_threads() {
    let board = board();
    let (mut main, mut other) = (thread(&board, true), thread(&board, false));
    assert_eq!(other.external(), ExternalId::NONE);
    push(&mut main, ExternalKind::CUSTOM0, 5);
    assert_eq!(other.external(), ExternalId(5));
    push(&mut other, ExternalKind::CUSTOM1, 6);
    assert_eq!(
        (main.external(), other.external()),
        (ExternalId(5), ExternalId(6))
    );
    let pop = |thread: &mut HostThread, kind| thread.pop_external(kind, Ticks(2));
    assert_eq!(pop(&mut other, ExternalKind::CUSTOM0), None);
    assert_eq!(pop(&mut other, ExternalKind::CUSTOM1), Some(ExternalId(6)));
    assert_eq!(other.external(), ExternalId(5));
    pop(&mut main, ExternalKind::CUSTOM0);
    assert_eq!(other.external(), ExternalId::NONE);
}

#[test]
fn the_ids_of_a_main_thread_that_has_ended_are_not_inherited() {
    let board = board();
    let (mut main, other) = (thread(&board, true), thread(&board, false));
    push(&mut main, ExternalKind::CUSTOM0, 5);
    drop(main);
    assert_eq!(other.external(), ExternalId::NONE);
}

#[test]
fn an_id_that_is_supplied_for_a_call_ends_with_it_and_is_for_no_other_thread() {
    let board = board();
    let (mut main, other) = (thread(&board, true), thread(&board, false));
    push(&mut main, ExternalKind::CUSTOM0, 5);
    let outer = main.enter(OPERATION, 1000, Ticks(1));
    supply(&main, &outer, ReportedPart::Call, 70);
    let inner = main.enter(OPERATION, 900, Ticks(2));
    assert_eq!(
        (main.external(), other.external()),
        (ExternalId(70), ExternalId(5))
    );
    supply(&main, &inner, ReportedPart::Call, 71);
    // An id that is pushed meanwhile is valid after the calls.
    push(&mut main, ExternalKind::CUSTOM0, 6);
    assert_eq!(
        (main.external(), other.external()),
        (ExternalId(71), ExternalId(6))
    );
    main.exit(&inner, Ticks(3), 0, Extra::NONE);
    assert_eq!(main.external(), ExternalId(70));
    main.exit(&outer, Ticks(3), 0, Extra::NONE);
    assert_eq!(main.external(), ExternalId(6));
}

#[test]
fn an_id_that_is_supplied_for_work_is_for_that_work_alone() {
    let board = board();
    let mut thread = thread(&board, false);
    let of_work =
        |thread: &HostThread| thread.external_of(ContextSet::default(), ReportedPart::Work);
    let outer = thread.enter(OPERATION, 1000, Ticks(1));
    supply(&thread, &outer, ReportedPart::Call, 70);
    assert_eq!(of_work(&thread), ExternalId(70));
    supply(&thread, &outer, ReportedPart::Work, 71);
    assert_eq!(
        (thread.external(), of_work(&thread)),
        (ExternalId(70), ExternalId(71))
    );
    let inner = thread.enter(OPERATION, 900, Ticks(2));
    assert_eq!(of_work(&thread), ExternalId(70));
    thread.exit(&inner, Ticks(3), 0, Extra::NONE);
    // Of several services the earliest prevails.
    supply(&thread, &outer, ReportedPart::Work, 72);
    supply(&thread, &outer, ReportedPart::Work, 69);
    assert_eq!(of_work(&thread), ExternalId(69));
}

#[test]
fn an_id_that_is_supplied_for_a_call_that_was_jumped_out_of_is_gone() {
    let board = board();
    let mut thread = thread(&board, false);
    let call = thread.enter(OPERATION, 900, Ticks(1));
    supply(&thread, &call, ReportedPart::Call, 70);
    thread.enter(OPERATION, 950, Ticks(2));
    assert_eq!(thread.external(), ExternalId::NONE);
}

/// A context that records to a buffer of its own, with external ids of its own: its scope, and the buffer's slot.
fn own_context(board: &Arc<Switchboard>) -> (ContextKey, usize) {
    let (context, slot) = context(board, &small_buffer());
    board.set_own_ids(context).unwrap();
    (context, slot)
}

fn small_buffer() -> Buffer {
    let layout = Layout::new(1 << 16, 1 << 12, 4).unwrap();
    Buffer::new(Mapping::anonymous(layout).unwrap(), Policy::Discard)
}

/// A context that records to `buffer`, and the buffer's slot.
fn context(board: &Arc<Switchboard>, buffer: &Buffer) -> (ContextKey, usize) {
    let slot = board.add_buffer(buffer.clone()).unwrap().slot;
    let context = board.add_context().unwrap();
    board
        .add_service(
            context,
            ServiceConsumer::Buffer(slot),
            RecordSelection::all(),
        )
        .unwrap();
    (context, slot)
}

fn push_for(thread: &mut HostThread, context: ContextKey, kind: ExternalKind, id: u64) -> bool {
    let scope = ExternalScope::Context(context);
    thread.push_external_for(scope, (kind, ExternalId(id)), Ticks(1))
}

/// The id that the buffer in `slot` gets with records of `thread`.
fn id_in(thread: &HostThread, slot: usize) -> u64 {
    let contexts = thread.board().external().of_buffer(slot);
    thread.external_of(contexts, ReportedPart::Call).0
}

#[test]
fn each_context_gets_its_own_ids_and_without_any_those_of_the_process() {
    let board = board();
    let ((one, in_one), (two, in_two)) = (own_context(&board), own_context(&board));
    let mut thread = thread(&board, false);
    let ids = |thread: &HostThread| [0, in_one, in_two].map(|slot| id_in(thread, slot));
    let kind = ExternalKind::CUSTOM0;
    push_for(&mut thread, one, kind, 10);
    assert_eq!(ids(&thread), [0, 10, 0]);
    assert!(!thread.state().has_external(), "the others need not look");
    push(&mut thread, kind, 5);
    push_for(&mut thread, two, kind, 20);
    push_for(&mut thread, two, ExternalKind::CUSTOM1, 21);
    assert_eq!(ids(&thread), [5, 10, 21]);
    let mut pop = |context, kind| {
        let scope = ExternalScope::Context(context);
        thread
            .pop_external_for(scope, kind, Ticks(2))
            .map(|id| id.0)
    };
    assert_eq!(pop(one, ExternalKind::CUSTOM1), None);
    assert_eq!(pop(two, kind), Some(20));
    assert_eq!(pop(one, kind), Some(10));
    assert_eq!(ids(&thread), [5, 5, 21]);
}

/// The ids of the calls and kernels that `buffer` has got since the last time.
fn new_ids(buffer: &Buffer) -> Vec<u64> {
    let mut ids = Vec::new();
    let show = |view: &BlockView<'_>| {
        ids.extend(view.records().filter_map(|record| match record.activity() {
            Activity::Api(call) => Some(call.external.0),
            Activity::KernelDispatch(kernel) => Some(kernel.work.external.0),
            _ => None,
        }));
    };
    deliver_in_order(buffer.mapping(), 0, &mut Default::default(), show, |_| {});
    ids
}

#[test]
fn the_call_in_which_a_context_pushes_its_first_id_carries_it() {
    let (board, buffer) = (Switchboard::new(), small_buffer());
    let (context, _) = context(&board, &buffer);
    board.start_context(context).unwrap();
    let mut thread = thread(&board, false);
    let calls = |thread: &mut HostThread, pushes: bool| {
        let outer = thread.enter(OPERATION, 1000, Ticks(1));
        let inner = thread.enter(OPERATION, 900, Ticks(2));
        if pushes {
            board.set_own_ids(context).unwrap();
            assert!(push_for(thread, context, ExternalKind::CUSTOM0, 10));
        }
        thread.write(KernelDispatch::blank());
        thread.exit(&inner, Ticks(3), 0, Extra::NONE);
        thread.exit(&outer, Ticks(4), 0, Extra::NONE);
    };
    calls(&mut thread, false);
    assert_eq!(new_ids(&buffer), [0; 3]);
    calls(&mut thread, true);
    assert_eq!(new_ids(&buffer), [10; 3]);
    assert!(!thread.state().has_external(), "later calls need not look");
    calls(&mut thread, false);
    assert_eq!(new_ids(&buffer), [10; 3]);
}

#[test]
fn a_thread_without_ids_of_a_context_inherits_those_of_the_main_thread_for_that_context() {
    let board = board();
    let (one, in_one) = own_context(&board);
    let (mut main, mut other) = (thread(&board, true), thread(&board, false));
    push_for(&mut main, one, ExternalKind::CUSTOM0, 10);
    push(&mut other, ExternalKind::CUSTOM0, 5);
    assert_eq!([0, in_one].map(|slot| id_in(&other, slot)), [5, 10]);
    push_for(&mut other, one, ExternalKind::CUSTOM0, 11);
    assert_eq!(id_in(&other, in_one), 11);
    drop(main);
    assert_eq!(id_in(&other, in_one), 11);
    other.pop_external_for(ExternalScope::Context(one), ExternalKind::CUSTOM0, Ticks(2));
    assert_eq!(id_in(&other, in_one), 5);
}

#[test]
fn a_new_context_gets_no_ids_of_the_destroyed_one_in_its_place() {
    let board = board();
    let (one, _) = own_context(&board);
    let (mut main, other) = (thread(&board, true), thread(&board, false));
    push_for(&mut main, one, ExternalKind::CUSTOM0, 10);
    board.remove_context(one).unwrap();
    let (_, in_new) = own_context(&board);
    assert_eq!([&main, &other].map(|thread| id_in(thread, in_new)), [0, 0]);
    // It pops what it has pushed for a context that is gone.
    let scope = ExternalScope::Context(one);
    main.pop_external_for(scope, ExternalKind::CUSTOM0, Ticks(2))
        .unwrap();
    assert_eq!(id_in(&other, in_new), 0);
}

#[test]
fn each_scope_has_a_full_stack_of_its_own() {
    let board = board();
    let (one, _) = own_context(&board);
    let mut thread = thread(&board, false);
    let kind = ExternalKind::CUSTOM0;
    let pushed = (0..2000).take_while(|id| push_for(&mut thread, one, kind, *id));
    assert_eq!(pushed.count(), 1024);
    push(&mut thread, kind, 5);
}

#[test]
fn supplied_ids_are_for_the_context_of_the_service_and_for_those_without_ids_of_their_own() {
    let board = board();
    let ((one, in_one), (two, in_two)) = (own_context(&board), own_context(&board));
    let mut thread = thread(&board, false);
    push_for(&mut thread, two, ExternalKind::CUSTOM0, 20);
    let call = thread.enter(OPERATION, 1000, Ticks(1));
    let service = (board.external().of(one), 7);
    let place = (call.depth, ReportedPart::Call);
    thread.with_external(|stacks, _| stacks.supply(place, service, ExternalId(70)));
    let ids = |thread: &HostThread| [0, in_one, in_two].map(|slot| id_in(thread, slot));
    assert_eq!(ids(&thread), [70, 70, 20]);
    thread.exit(&call, Ticks(2), 0, Extra::NONE);
    assert_eq!(ids(&thread), [0, 0, 20]);
}
