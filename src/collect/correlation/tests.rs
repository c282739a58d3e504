//! Calls of one thread and of several, and the ids that their records carry.

use super::ids::RANGE;
use super::*;
use crate::buffer::{Buffer, Layout, Mapping, Policy};
use crate::collect::switchboard::{Consumer, Selection};

/// A switchboard with a buffer that wants everything.
fn board() -> Arc<Switchboard> {
    let layout = Layout::new(1 << 20, 1 << 16, 8).unwrap();
    let buffer = Buffer::new(Mapping::anonymous(layout).unwrap(), Policy::Discard);
    let board = Switchboard::new();
    let slot = board.add_buffer(buffer).unwrap().slot;
    let context = board.add_context().unwrap();
    board
        .add_service(context, Consumer::Buffer(slot), Selection::all())
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

#[test]
fn a_thread_without_external_ids_inherits_the_main_threads() {
    let board = board();
    let (mut main, mut other) = (thread(&board, true), thread(&board, false));
    assert_eq!(other.external(), ExternalId::NONE);
    main.push_external(ExternalKind::CUSTOM0, ExternalId(5), Ticks(1));
    assert_eq!(other.external(), ExternalId(5));
    other.push_external(ExternalKind::CUSTOM1, ExternalId(6), Ticks(1));
    assert_eq!(
        (main.external(), other.external()),
        (ExternalId(5), ExternalId(6))
    );
    assert_eq!(other.pop_external(ExternalKind::CUSTOM0, Ticks(2)), None);
    assert_eq!(
        other.pop_external(ExternalKind::CUSTOM1, Ticks(2)),
        Some(ExternalId(6))
    );
    main.pop_external(ExternalKind::CUSTOM0, Ticks(2));
    assert_eq!(other.external(), ExternalId::NONE);
}

#[test]
fn an_id_that_is_supplied_for_a_call_ends_with_it_and_is_for_no_other_thread() {
    let board = board();
    let (mut main, other) = (thread(&board, true), thread(&board, false));
    main.push_external(ExternalKind::CUSTOM0, ExternalId(5), Ticks(1));
    let outer = main.enter(OPERATION, 1000, Ticks(1));
    main.supply_external(&outer, ExternalId(70));
    let inner = main.enter(OPERATION, 900, Ticks(2));
    assert_eq!(
        (main.external(), other.external()),
        (ExternalId(70), ExternalId(5))
    );
    main.supply_external(&inner, ExternalId(71));
    // An id that is pushed meanwhile is valid after the calls.
    main.push_external(ExternalKind::CUSTOM0, ExternalId(6), Ticks(2));
    assert_eq!(
        (main.external(), other.external()),
        (ExternalId(71), ExternalId(6))
    );
    main.end_supplied(inner.depth);
    assert_eq!(main.external(), ExternalId(70));
    main.end_supplied(outer.depth);
    assert_eq!(main.external(), ExternalId(6));
}

#[test]
fn an_id_that_is_supplied_for_a_call_that_was_jumped_out_of_is_gone() {
    let board = board();
    let mut thread = thread(&board, false);
    let call = thread.enter(OPERATION, 900, Ticks(1));
    thread.supply_external(&call, ExternalId(70));
    thread.enter(OPERATION, 950, Ticks(2));
    assert_eq!(thread.external(), ExternalId::NONE);
}
