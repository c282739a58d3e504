//! Correlation: ids for calls and work, who called whom, and the client's own ids.
//!
//! A [`HostThread`] is what a source knows of one thread that calls it. Ids come from ranges that it
//! reserves, so that threads share nothing on the hot path. Calls in progress stand on a stack in the
//! mapping, where recovery finds them; a call whose exit was skipped (longjmp) is taken off by the
//! next enter, which sees that its stack frame is gone. The exit of a call needs only what its enter
//! returned, so a stack that was cut wrongly (a thread with several stacks) costs ancestors, not times.

mod external;
mod ids;
mod records;

pub use ids::Ids;

use self::external::{ids_for, of_call, put_ids};
use self::ids::Range;
use crate::buffer::lanes::OwnLanes;
use crate::buffer::{MAX_OPEN_CALLS, OpenCalls, Together};
use crate::collect::switchboard::{BUFFERS, Buffers, Interest, Switchboard, ThreadState};
use crate::record::*;
use std::sync::Arc;

/// A call in progress, from [`HostThread::enter`] to [`HostThread::exit`].
#[derive(Copy, Clone, Debug)]
pub struct Call {
    /// The call's id.
    pub correlation: CorrelationId,
    /// The call it was made from, or none.
    pub ancestor: CorrelationId,
    /// When it was entered; none if nobody wanted to know (`Interest::is_timed`).
    pub start: Ticks,
    /// The function.
    pub operation: Operation,
    /// Calls below it on the stack.
    pub(crate) depth: u32,
    /// Who wanted it when it was entered: those get its record, whatever is switched meanwhile.
    pub(crate) interest: Interest,
}

impl Call {
    /// No call.
    pub const NONE: Call = Call {
        correlation: CorrelationId::NONE,
        ancestor: CorrelationId::NONE,
        start: Ticks::NONE,
        operation: Operation {
            domain: Domain(0),
            number: 0,
        },
        depth: 0,
        interest: Interest::NONE,
    };
}

/// How a call has ended.
#[derive(Copy, Clone)]
pub(crate) struct Ended {
    time: Ticks,
    external: ExternalId,
    thread: ThreadId,
    return_code: i32,
    flags: u8,
}

impl Ended {
    /// Puts the record of `call` with others.
    #[inline(always)]
    pub(crate) fn put(self, call: &Call, records: &mut Together<'_>) {
        *records.place() = self.record(call);
        records.put::<Api>();
    }

    /// The record of `call`. Put together where it goes: processors wait for what they copy right after it was stored
    /// in smaller pieces.
    #[inline(always)]
    fn record(self, call: &Call) -> Api {
        Api {
            header: const { Header::of::<Api>() }.with(self.flags),
            start: call.start,
            end: self.time,
            correlation: call.correlation,
            ancestor: call.ancestor,
            external: self.external,
            thread: self.thread,
            return_code: self.return_code,
            operation: call.operation,
            reserved: 0,
        }
    }
}

/// A call on a thread's stack.
#[derive(Copy, Clone, Default)]
struct Frame {
    correlation: CorrelationId,
    stack_pointer: usize,
}

/// Calls of a thread whose nesting is known; deeper ones are traced, with the innermost of these as ancestor.
const FRAMES: usize = MAX_OPEN_CALLS;
/// Texts whose ids a thread remembers.
const TEXTS: usize = 128;
/// One thread of the program, as a source sees it. What every call needs comes first, and is near together.
#[repr(C)]
pub struct HostThread {
    board: Arc<Switchboard>,
    lanes: OwnLanes<BUFFERS>,
    /// Calls on the stack, of which the first few stand in `frames`.
    depth: u32,
    is_main: bool,
    may_wait: bool,
    /// Whether there is any id in `external` or `supplied`: one look at each exit.
    has_external: bool,
    /// Who wants the records that nearly all calls have: the buffer whose lane is the usual one of `lanes`.
    usual: Buffers,
    correlation: Range,
    /// The innermost of `supplied`, or else of `external`, or none.
    latest_external: ExternalId,
    thread: ThreadId,
    /// See [`HostThread::number`].
    number: u32,
    /// Where calls in progress stand, once there is somebody who may look.
    open_calls: Option<OpenCalls>,
    external: Vec<(ExternalKind, ExternalId)>,
    /// The latest of each kind among them.
    latest: Vec<(ExternalKind, ExternalId)>,
    /// Ids that were supplied for calls in progress, by depth: they come before those that are pushed.
    supplied: Vec<(u32, ExternalId)>,
    work: Range,
    frames: [Frame; FRAMES],
    state: Arc<ThreadState>,
    /// Records lost since no lane could be had, by the buffer's slot: another buffer may have one.
    refused: [u32; BUFFERS],
    /// Texts of this thread and their ids, each at a place that follows from it.
    texts: Vec<(StringId, Box<str>)>,
}

impl HostThread {
    /// The thread `thread`, which records by way of `board`. `is_main` says that threads without external ids
    /// inherit this one's. `None` when there are too many threads.
    pub fn new(board: &Arc<Switchboard>, thread: ThreadId, is_main: bool) -> Option<HostThread> {
        let lanes = OwnLanes::new();
        let number = board.take_thread_number()?;
        Some(HostThread {
            number,
            state: ThreadState::new(board, (thread, number), &lanes),
            board: board.clone(),
            lanes,
            thread,
            correlation: Range::default(),
            work: Range::default(),
            depth: 0,
            frames: [Frame::default(); FRAMES],
            open_calls: None,
            may_wait: true,
            has_external: false,
            usual: Interest::buffer(0).buffers(),
            is_main,
            refused: [0; BUFFERS],
            latest_external: ExternalId::NONE,
            external: Vec::new(),
            latest: Vec::new(),
            supplied: Vec::new(),
            texts: Vec::new(),
        })
    }

    /// A call of `operation` begins. `stack_pointer` is an address in the caller's frame.
    #[inline]
    pub fn enter(&mut self, operation: Operation, stack_pointer: usize, now: Ticks) -> Call {
        let interest = self.board.interest(operation);
        self.enter_wanted(operation, interest, stack_pointer, || now)
    }

    /// The same where it is known who wants the call. The time is asked for as late as can be: what is done here is not
    /// in it, and need not wait for it.
    #[inline(always)]
    pub fn enter_wanted(
        &mut self,
        operation: Operation,
        interest: Interest,
        stack_pointer: usize,
        now: impl FnOnce() -> Ticks,
    ) -> Call {
        let (depth, ancestor) = match self.depth {
            0 => (0, CorrelationId::NONE),
            _ => self.within(stack_pointer),
        };
        let correlation = CorrelationId(self.correlation.take(&self.board.ids().correlation));
        if let Some(frame) = self.frames.get_mut(depth as usize) {
            *frame = Frame {
                correlation,
                stack_pointer,
            };
        }
        self.depth = depth + 1;
        let start = match interest.is_open() {
            false => now(),
            true => self.open_call((depth, correlation, operation), now),
        };
        Call {
            correlation,
            ancestor,
            start,
            operation,
            depth,
            interest,
        }
    }

    /// The call ends: its record is written. `flags` are bits of [`crate::record::flags`].
    /// `false` says that the record was dropped, and counted.
    #[inline(always)]
    pub fn exit(&mut self, call: &Call, now: Ticks, return_code: i32, flags: u8) -> bool {
        self.exit_with(call, &[], now, return_code, flags)
    }

    /// The same, with the values of those of the call's arguments that are kept, whose record comes first.
    #[inline(always)]
    pub fn exit_with(
        &mut self,
        call: &Call,
        values: &[u64],
        now: Ticks,
        return_code: i32,
        flags: u8,
    ) -> bool {
        let written = match values.is_empty() {
            true => {
                self.exit_plainly(call, now, return_code, flags)
                    || self.exit_specially(*call, now, return_code, flags)
            }
            false => self.exit_otherwise(call, values, now, return_code, flags),
        };
        self.leave(call, now);
        written
    }

    /// The call is over. Comes after its record is written: a process may die in between, or wait for a block for long, and
    /// a call that is found in both places, the recovery takes for one that has ended.
    #[inline(always)]
    pub(crate) fn leave(&mut self, call: &Call, now: Ticks) {
        if let Some(open) = &self.open_calls {
            open.close(call.depth);
        }
        self.depth = call.depth;
        self.end_supplied(call.depth);
        if call.interest.is_noticed() {
            self.exit_noticed(call.correlation, call.start, now);
        }
    }

    /// The end of a call that has succeeded, if the buffer in `slot` wants to know of the call, nobody else does, and its
    /// record is all there is to write but, perhaps, its arguments. Who asks [puts](Ended::put) it, and then
    /// [leaves](HostThread::leave) the call.
    #[inline(always)]
    pub(crate) fn plain_end(&self, call: &Call, now: Ticks, slot: usize) -> Option<Ended> {
        let is_plain = call.interest.is_plain_for(slot) && !self.has_external;
        is_plain.then(|| self.ended(now, 0, 0))
    }

    #[inline(always)]
    fn ended(&self, time: Ticks, return_code: i32, flags: u8) -> Ended {
        Ended {
            time,
            external: self.external(),
            thread: self.thread,
            return_code,
            flags,
        }
    }

    /// Writes what nearly every exit writes, to the buffer that wants nearly all: one record, and one for each external id.
    /// `false`: nothing is written, and there is more to look after.
    #[inline(always)]
    fn exit_plainly(&mut self, call: &Call, time: Ticks, return_code: i32, flags: u8) -> bool {
        if call.interest.buffers() != self.usual {
            return false;
        }
        if !self.has_external {
            let Some(mut lane) = self.lanes.usual_with_room(size_of::<Api>()) else {
                return false;
            };
            let ended = Ended {
                time,
                // The main thread's own, too.
                external: self.board.ids().main_external(),
                thread: self.thread,
                return_code,
                flags,
            };
            let mut records = lane.together();
            ended.put(call, &mut records);
            records.publish();
            return true;
        }
        self.exit_with_ids(call, time, return_code, flags)
    }

    /// The same where there are external ids.
    #[inline(always)]
    fn exit_with_ids(&mut self, call: &Call, time: Ticks, return_code: i32, flags: u8) -> bool {
        let ended = Ended {
            time,
            external: self.external_now(),
            thread: self.thread,
            return_code,
            flags,
        };
        let ids = ids_for(self.external_for(call), &self.latest);
        let bytes = ids.len() * size_of::<ExternalCorrelation>() + size_of::<Api>();
        let Some(mut lane) = self.lanes.usual_with_room(bytes) else {
            return false;
        };
        let mut records = lane.together();
        put_ids(call, ids, &mut records);
        ended.put(call, &mut records);
        records.publish();
        true
    }

    /// Writes what the other exits without arguments do. The call is a copy, so that the usual one need not be in memory.
    #[cold]
    #[inline(never)]
    fn exit_specially(&mut self, call: Call, now: Ticks, return_code: i32, flags: u8) -> bool {
        self.exit_otherwise(&call, &[], now, return_code, flags)
    }

    /// Writes what an exit writes.
    #[inline(never)]
    fn exit_otherwise(
        &mut self,
        call: &Call,
        values: &[u64],
        now: Ticks,
        return_code: i32,
        flags: u8,
    ) -> bool {
        let ended = self.ended(now, return_code, flags);
        // A call that is only told of has no record.
        call.interest.buffers().is_none()
            || self.exit_at_once(call, values, ended)
            || self.exit_each(call, values, ended)
    }

    /// The call's record, with its external ids and arguments, in one step.
    #[inline(always)]
    fn exit_at_once(&mut self, call: &Call, values: &[u64], ended: Ended) -> bool {
        let buffers = call.interest.buffers();
        let Some(slot) = buffers.only() else {
            return false;
        };
        if buffers != self.usual {
            self.lanes.set_usual(slot);
            self.usual = buffers;
        }
        if values.len() > MAX_ARGUMENTS {
            return false;
        }
        let ids = ids_for(self.external_for(call), &self.latest);
        let bytes = ids.len() * size_of::<ExternalCorrelation>()
            + Arguments::bytes_for(values.len())
            + size_of::<Api>();
        let annotated = !values.is_empty() && !self.annotated(call).is_none();
        let Some(mut lane) = self.lanes.with_room(slot, bytes) else {
            return false;
        };
        let mut records = lane.together();
        put_ids(call, ids, &mut records);
        if annotated {
            let head = ArgumentsHead::new(call.correlation, call.operation, values.len());
            records.put_arguments(head, values);
        }
        ended.put(call, &mut records);
        records.publish();
        true
    }

    /// Writes each of the records of an exit to whoever wants it.
    #[cold]
    #[inline(never)]
    fn exit_each(&mut self, call: &Call, values: &[u64], ended: Ended) -> bool {
        let buffers = call.interest.buffers();
        let buffers_of_ids = self.external_for(call);
        for place in 0..self.latest.len() {
            self.write_to(buffers_of_ids, of_call(call, self.latest[place]));
        }
        if !values.is_empty() {
            self.put_arguments(call, values);
        }
        self.put(buffers, Kind::API, |place| *place = ended.record(call))
    }

    /// Somebody wants to hear of the exits of calls.
    #[cold]
    #[inline(never)]
    fn exit_noticed(&mut self, correlation: CorrelationId, start: Ticks, now: Ticks) {
        // One that began when nobody wanted its time is not known to have taken any.
        if !start.is_some() {
            return;
        }
        if !self.board.buffers_for(Kind::RETIREMENT).is_none() && self.board.call_exits(correlation)
        {
            self.retire(correlation, now);
        }
        self.board.call_took(now.0.saturating_sub(start.0));
    }

    /// Nothing more will come for `correlation`.
    #[cold]
    fn retire(&mut self, correlation: CorrelationId, time: Ticks) {
        let retirement = Retirement {
            header: Header::of::<Retirement>(),
            correlation,
            time,
        };
        let wanted = self.board.buffers_for(Kind::RETIREMENT);
        // Who completes work must not wait.
        let left = self.try_write_to(wanted, retirement);
        if !left.is_none() {
            self.board.count_unlaned(left, Kind::RETIREMENT);
        }
    }

    /// `call` has enqueued a piece of work that will be [heard of](HostThread::work_ends).
    #[inline]
    pub fn work_begins(&mut self, call: &Call) {
        if !self.board.buffers_for(Kind::RETIREMENT).is_none() {
            let is_heard_of = call.interest.is_noticed();
            self.board.work_begins(call.correlation, is_heard_of);
        }
    }

    /// A piece of its work has completed, or its completion will not be heard of.
    #[inline]
    pub fn work_ends(&mut self, correlation: CorrelationId, now: Ticks) {
        if self.board.work_ends(correlation) {
            self.retire(correlation, now);
        }
    }

    /// The calls that are in progress where a frame is at `stack_pointer`: how many, and the innermost. Those that were jumped
    /// out of are taken off.
    #[cold]
    #[inline(never)]
    fn within(&mut self, stack_pointer: usize) -> (u32, CorrelationId) {
        let mut depth = self.depth;
        while depth > 0 {
            let frame = &self.frames[(depth as usize).min(FRAMES) - 1];
            // The stack grows downwards: a call that is still in progress has its frame above ours.
            if frame.stack_pointer > stack_pointer {
                return (depth, frame.correlation);
            }
            depth -= 1;
            self.end_supplied(depth);
        }
        (0, CorrelationId::NONE)
    }

    /// A call begins that somebody may find in progress. Returns when.
    #[inline(always)]
    fn open_call(
        &mut self,
        (depth, correlation, operation): (u32, CorrelationId, Operation),
        now: impl FnOnce() -> Ticks,
    ) -> Ticks {
        if self.open_calls.is_none() {
            self.keep_open_calls();
        }
        let Some(open) = &self.open_calls else {
            return now();
        };
        open.prepare(depth, correlation, operation);
        let start = now();
        open.enter(depth, start);
        start
    }

    /// Before the thread's first such call.
    #[cold]
    #[inline(never)]
    fn keep_open_calls(&mut self) {
        // There is one such buffer: the recording's.
        let Some(slot) = self.board.recovered().slots().next() else {
            return;
        };
        let open = match self.open(slot) {
            true => self.lanes.using(slot),
            false => None,
        };
        self.open_calls = open.map(|lane| lane.open_calls());
    }

    /// An id for a piece of asynchronous work.
    #[inline]
    pub fn new_work(&mut self) -> WorkId {
        WorkId(self.work.take(&self.board.ids().work))
    }

    /// The id of a text that is used again and again: most are found without a lock.
    pub fn string(&mut self, text: &str) -> StringId {
        if text.is_empty() {
            return StringId::NONE;
        }
        if self.texts.is_empty() {
            self.texts.resize_with(TEXTS, Default::default);
        }
        let hash = crc32fast::hash(text.as_bytes()) as usize;
        let known = &mut self.texts[hash % TEXTS];
        if known.0.is_some() && *known.1 == *text {
            return known.0;
        }
        let id = self.board.names().string(text);
        *known = (id, text.into());
        id
    }

    /// The thread.
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// A number that no other thread of the process has at the same time, below 1024.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The switchboard by which it records.
    pub fn board(&self) -> &Arc<Switchboard> {
        &self.board
    }

    /// What others may know of it.
    pub(crate) fn state(&self) -> &Arc<ThreadState> {
        &self.state
    }

    /// Whether its lanes may wait for empty blocks; see [`Lane::set_may_wait`](crate::buffer::Lane::set_may_wait).
    pub fn set_may_wait(&mut self, may_wait: bool) {
        self.may_wait = may_wait;
        for slot in 0..BUFFERS {
            if let Some(mut lane) = self.lanes.using(slot) {
                lane.set_may_wait(may_wait);
            }
        }
    }
}

impl Drop for HostThread {
    fn drop(&mut self) {
        if self.is_main && !self.external.is_empty() {
            // Nobody inherits from a thread that is gone, whoever is the main thread then.
            self.external.clear();
            self.publish_external();
        }
        self.board.give_thread_number(self.number);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
