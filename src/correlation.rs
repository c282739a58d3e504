//! Correlation: ids for calls and work, who called whom, and the client's own ids.
//!
//! A [`HostThread`] is what a source knows of one thread that calls it. Ids come from ranges that it
//! reserves, so that threads share nothing on the hot path. Calls in progress stand on a stack in the
//! mapping, where recovery finds them; a call whose exit was skipped (longjmp) is taken off by the
//! next enter, which sees that its stack frame is gone. The exit of a call needs only what its enter
//! returned, so a stack that was cut wrongly (a thread with several stacks) costs ancestors, not times.

use crate::buffer::Lane;
use crate::record::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ids reserved at a time.
const RANGE: u64 = 4096;
/// External ids that a thread's stack holds; more are counted by their depth and not kept.
const MAX_EXTERNAL: usize = 1024;

/// Where the ids of one process come from.
#[derive(Debug)]
pub struct Ids {
    correlation: AtomicU64,
    work: AtomicU64,
    /// The latest external id of the main thread.
    main_external: AtomicU64,
}

impl Default for Ids {
    fn default() -> Self {
        Ids {
            correlation: AtomicU64::new(1),
            work: AtomicU64::new(1),
            main_external: AtomicU64::new(0),
        }
    }
}

/// Ids that one thread has reserved.
#[derive(Debug, Default)]
struct Range {
    next: u64,
    end: u64,
}

impl Range {
    #[inline]
    fn take(&mut self, from: &AtomicU64) -> u64 {
        if self.next == self.end {
            // Ids only need to differ.
            self.next = from.fetch_add(RANGE, Ordering::Relaxed);
            self.end = self.next + RANGE;
        }
        let id = self.next;
        self.next += 1;
        id
    }
}

open_enum! {
    /// Whose external id (CUPTI: `CUpti_ExternalCorrelationKind`, same values).
    ExternalKind(u32) {
        /// Not known to us.
        UNKNOWN = 1, "unknown";
        /// OpenACC.
        OPENACC = 2, "openacc";
        /// The client's own.
        CUSTOM0 = 3, "custom0";
        /// The client's own.
        CUSTOM1 = 4, "custom1";
        /// The client's own.
        CUSTOM2 = 5, "custom2";
    }
}

/// A call in progress, from [`HostThread::enter`] to [`HostThread::exit`].
#[derive(Copy, Clone, Debug)]
pub struct Call {
    /// The call's id.
    pub correlation: CorrelationId,
    /// The call it was made from, or none.
    pub ancestor: CorrelationId,
    /// When it was entered.
    pub start: Ticks,
    /// The function.
    pub operation: Operation,
    /// Calls below it on the stack.
    depth: u32,
}

/// One thread of the program, as a source sees it.
pub struct HostThread {
    lane: Lane,
    ids: Arc<Ids>,
    correlation: Range,
    work: Range,
    /// Calls on the open-call stack.
    depth: u32,
    is_main: bool,
    /// The innermost of `external`, or none.
    latest_external: ExternalId,
    external: Vec<(ExternalKind, ExternalId)>,
}

impl HostThread {
    /// A thread that records into `lane`. `is_main` says that threads without external ids inherit
    /// this one's.
    pub fn new(lane: Lane, ids: Arc<Ids>, is_main: bool) -> HostThread {
        HostThread {
            lane,
            ids,
            correlation: Range::default(),
            work: Range::default(),
            depth: 0,
            is_main,
            latest_external: ExternalId::NONE,
            external: Vec::new(),
        }
    }

    /// A call of `operation` begins. `stack_pointer` is an address in the caller's frame.
    #[inline]
    pub fn enter(&mut self, operation: Operation, stack_pointer: usize, now: Ticks) -> Call {
        let mut depth = self.depth;
        let mut ancestor = CorrelationId::NONE;
        while let Some((correlation, frame)) = self.lane.innermost(depth) {
            // The stack grows downwards: a call that is still in progress has its frame above ours.
            if frame > stack_pointer {
                ancestor = correlation;
                break;
            }
            depth -= 1;
        }
        let correlation = CorrelationId(self.correlation.take(&self.ids.correlation));
        self.lane
            .open_call(depth, now, correlation, operation, stack_pointer);
        self.depth = depth + 1;
        Call {
            correlation,
            ancestor,
            start: now,
            operation,
            depth,
        }
    }

    /// The call ends: its record is written. `flags` are bits of [`crate::record::flags`].
    /// `false` says that the record was dropped, and counted.
    #[inline]
    pub fn exit(&mut self, call: &Call, now: Ticks, return_code: i32, flags: u8) -> bool {
        let api = Api {
            header: const { Header::of::<Api>() }.with(flags),
            start: call.start,
            end: now,
            correlation: call.correlation,
            ancestor: call.ancestor,
            external: self.external(),
            thread: self.lane.thread(),
            return_code,
            operation: call.operation,
            reserved: 0,
        };
        let written = self.lane.write(api);
        // Not before: a process may die in between, or wait for a block for long. A call that is found
        // in both places, the recovery takes for one that has ended.
        self.depth = call.depth;
        self.lane.close_calls(call.depth);
        written
    }

    /// Writes a record of another kind. `false` says that it was dropped, and counted.
    #[inline]
    pub fn write<R: Record>(&mut self, record: R) -> bool {
        self.lane.write(record)
    }

    /// Writes a record of another kind if that takes no waiting: see [`Lane::try_write`].
    #[inline]
    pub fn try_write<R: Record>(&mut self, record: R) -> bool {
        self.lane.try_write(record)
    }

    /// Writes the arguments of a call.
    #[inline]
    pub fn write_arguments(&mut self, arguments: &mut Arguments) -> bool {
        self.lane.write_arguments(arguments)
    }

    /// Writes the values of the arguments of `call`, where their number is known.
    #[inline]
    pub fn write_values<const N: usize>(&mut self, call: &Call, values: [u64; N]) -> bool {
        let arguments = ArgumentsOf::new(call.correlation, call.operation, values);
        self.lane.write_values(arguments)
    }

    /// An id for a piece of asynchronous work.
    #[inline]
    pub fn new_work(&mut self) -> WorkId {
        WorkId(self.work.take(&self.ids.work))
    }

    /// The external id that records of this thread carry: the latest pushed on it, of any kind, or
    /// else the main thread's.
    #[inline]
    pub fn external(&self) -> ExternalId {
        if self.latest_external.is_some() || self.is_main {
            self.latest_external
        } else {
            ExternalId(self.ids.main_external.load(Ordering::Relaxed))
        }
    }

    /// Pushes an id of the client's own. `false` says that the stack is full.
    pub fn push_external(&mut self, kind: ExternalKind, id: ExternalId) -> bool {
        if self.external.len() == MAX_EXTERNAL {
            return false;
        }
        self.external.push((kind, id));
        self.publish_external();
        true
    }

    /// Takes off the latest id of `kind`, or `None` if there is none.
    pub fn pop_external(&mut self, kind: ExternalKind) -> Option<ExternalId> {
        let place = self.external.iter().rposition(|(of, _)| *of == kind)?;
        let (_, id) = self.external.remove(place);
        self.publish_external();
        Some(id)
    }

    fn publish_external(&mut self) {
        self.latest_external = self.external.last().map_or(ExternalId::NONE, |(_, id)| *id);
        if self.is_main {
            self.ids
                .main_external
                .store(self.latest_external.0, Ordering::Relaxed);
        }
    }

    /// The thread.
    pub fn thread(&self) -> ThreadId {
        self.lane.thread()
    }

    /// See [`Lane::number`].
    #[inline]
    pub fn lane_number(&self) -> u32 {
        self.lane.number()
    }

    /// See [`Lane::set_may_wait`].
    pub fn set_may_wait(&mut self, may_wait: bool) -> bool {
        self.lane.set_may_wait(may_wait)
    }
}

use crate::record::open_enum;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::buffer::{Buffer, Layout, Mapping, Policy};

    fn thread(buffer: &Buffer, ids: &Arc<Ids>, is_main: bool) -> HostThread {
        HostThread::new(buffer.lane(ThreadId(7)).unwrap(), ids.clone(), is_main)
    }

    fn buffer() -> Buffer {
        let layout = Layout::new(1 << 20, 1 << 16, 8).unwrap();
        Buffer::new(Mapping::anonymous(layout).unwrap(), Policy::Discard)
    }

    const OPERATION: Operation = Operation {
        domain: Domain::SIM,
        number: 3,
    };

    #[test]
    fn a_nested_call_knows_its_ancestor() {
        let (buffer, ids) = (buffer(), Arc::default());
        let mut thread = thread(&buffer, &ids, false);
        let outer = thread.enter(OPERATION, 1000, Ticks(1));
        let inner = thread.enter(OPERATION, 900, Ticks(2));
        assert_eq!(inner.ancestor, outer.correlation);
        thread.exit(&inner, Ticks(3), 0, 0);
        let sibling = thread.enter(OPERATION, 900, Ticks(4));
        assert_eq!(sibling.ancestor, outer.correlation);
        thread.exit(&sibling, Ticks(5), 0, 0);
        thread.exit(&outer, Ticks(6), 0, 0);
        assert_eq!(
            thread.enter(OPERATION, 1000, Ticks(7)).ancestor,
            CorrelationId::NONE
        );
    }

    #[test]
    fn a_call_that_was_jumped_out_of_is_taken_off_by_the_next() {
        let (buffer, ids) = (buffer(), Arc::default());
        let mut thread = thread(&buffer, &ids, false);
        let outer = thread.enter(OPERATION, 1000, Ticks(1));
        thread.enter(OPERATION, 900, Ticks(2));
        thread.enter(OPERATION, 800, Ticks(3));
        // longjmp to a frame between outer and the first nested call
        let next = thread.enter(OPERATION, 950, Ticks(4));
        assert_eq!(next.ancestor, outer.correlation);
        thread.exit(&next, Ticks(5), 0, 0);
        thread.exit(&outer, Ticks(6), 0, 0);
        assert_eq!(thread.depth, 0);
    }

    #[test]
    fn calls_deeper_than_the_stack_are_still_traced() {
        let (buffer, ids) = (buffer(), Arc::default());
        let mut thread = thread(&buffer, &ids, false);
        let calls: Vec<_> = (0..100)
            .map(|n| thread.enter(OPERATION, 10_000 - n, Ticks(1)))
            .collect();
        for call in calls.iter().rev() {
            assert!(thread.exit(call, Ticks(2), 0, 0));
        }
        assert_eq!(thread.depth, 0);
    }

    #[test]
    fn ids_of_two_threads_never_meet() {
        let (buffer, ids) = (buffer(), Arc::default());
        let (mut one, mut two) = (thread(&buffer, &ids, false), thread(&buffer, &ids, false));
        let mut seen = std::collections::HashSet::new();
        for n in 0..2 * RANGE {
            for thread in [&mut one, &mut two] {
                let call = thread.enter(OPERATION, 1000, Ticks(n));
                assert!(seen.insert(call.correlation));
                thread.exit(&call, Ticks(n), 0, 0);
            }
        }
    }

    #[test]
    fn a_thread_without_external_ids_inherits_the_main_threads() {
        let (buffer, ids) = (buffer(), Arc::default());
        let (mut main, mut other) = (thread(&buffer, &ids, true), thread(&buffer, &ids, false));
        assert_eq!(other.external(), ExternalId::NONE);
        main.push_external(ExternalKind::CUSTOM0, ExternalId(5));
        assert_eq!(other.external(), ExternalId(5));
        other.push_external(ExternalKind::CUSTOM1, ExternalId(6));
        assert_eq!(
            (main.external(), other.external()),
            (ExternalId(5), ExternalId(6))
        );
        assert_eq!(other.pop_external(ExternalKind::CUSTOM0), None);
        assert_eq!(
            other.pop_external(ExternalKind::CUSTOM1),
            Some(ExternalId(6))
        );
        main.pop_external(ExternalKind::CUSTOM0);
        assert_eq!(other.external(), ExternalId::NONE);
    }
}
