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

use self::external::latest;
use self::ids::Range;
use crate::buffer::lanes::OwnLanes;
use crate::buffer::{Lane, MAX_OPEN_CALLS, OpenCalls};
use crate::record::*;
use crate::switchboard::{BUFFERS, Buffers, Interest, Switchboard, ThreadState};
use std::sync::Arc;

/// A call in progress, from [`HostThread::enter`] to [`HostThread::exit`].
#[derive(Copy, Clone, Debug)]
pub struct Call {
    /// The call's id.
    pub correlation: CorrelationId,
    /// The call it was made from, or none.
    pub ancestor: CorrelationId,
    /// When it was entered; none if nobody wanted to know (`HostThread::wants_time`).
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
    /// Writes the record of `call` to a lane that has room for it.
    #[inline(always)]
    pub(crate) fn write(self, call: &Call, lane: &mut Lane) {
        *lane.next_place() = self.record(call);
        lane.commit_next::<Api>();
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
/// External ids, of all kinds together, whose records are put where the call's is in one step.
const MAX_AT_ONCE: usize = 8;
/// One thread of the program, as a source sees it. What every call needs comes first, and is near together.
#[repr(C)]
pub struct HostThread {
    board: Arc<Switchboard>,
    lanes: OwnLanes<BUFFERS>,
    /// Calls on the stack, of which the first few stand in `frames`.
    depth: u32,
    is_main: bool,
    may_wait: bool,
    correlation: Range,
    /// The innermost of `supplied`, or else of `external`, or none.
    latest_external: ExternalId,
    thread: ThreadId,
    /// See [`HostThread::number`].
    number: u32,
    /// Where calls in progress stand, once there is somebody who may look.
    open_calls: Option<OpenCalls>,
    external: Vec<(ExternalKind, ExternalId)>,
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
            is_main,
            refused: [0; BUFFERS],
            latest_external: ExternalId::NONE,
            external: Vec::new(),
            supplied: Vec::new(),
            texts: Vec::new(),
        })
    }

    /// A call of `operation` begins. `stack_pointer` is an address in the caller's frame.
    #[inline]
    pub fn enter(&mut self, operation: Operation, stack_pointer: usize, now: Ticks) -> Call {
        let interest = self.board.interest(operation);
        self.enter_wanted(operation, interest, stack_pointer, now)
    }

    /// The same where it is known who wants the call.
    #[inline(always)]
    pub fn enter_wanted(
        &mut self,
        operation: Operation,
        interest: Interest,
        stack_pointer: usize,
        now: Ticks,
    ) -> Call {
        let mut depth = self.depth;
        let mut ancestor = CorrelationId::NONE;
        while depth > 0 {
            let frame = &self.frames[(depth as usize).min(FRAMES) - 1];
            // The stack grows downwards: a call that is still in progress has its frame above ours.
            if frame.stack_pointer > stack_pointer {
                ancestor = frame.correlation;
                break;
            }
            depth -= 1;
            if !self.supplied.is_empty() {
                self.forget_supplied(depth);
            }
        }
        let correlation = CorrelationId(self.correlation.take(&self.board.ids().correlation));
        if let Some(frame) = self.frames.get_mut(depth as usize) {
            *frame = Frame {
                correlation,
                stack_pointer,
            };
        }
        self.depth = depth + 1;
        let recovered = interest.buffers().and(self.board.recovered());
        if !recovered.is_none() {
            match &self.open_calls {
                Some(open) => open.enter(depth, now, correlation, operation),
                None => self.open_first_call(recovered, (depth, now, correlation, operation)),
            }
        }
        Call {
            correlation,
            ancestor,
            start: now,
            operation,
            depth,
            interest,
        }
    }

    /// Whether somebody wants the times of a call that is of this interest.
    #[inline(always)]
    pub(crate) fn wants_time(&self, interest: Interest) -> bool {
        !interest.buffers().is_none()
            || !interest.is_only_told()
            || self.board.exits_from() != u64::MAX
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
        let ended = self.ended(now, return_code, flags);
        // A call that is only told of has no record.
        let written = call.interest.buffers().is_none()
            || self.exit_plainly(call, values, ended)
            || self.exit_at_once(call, values, ended)
            || self.exit_each(call, values, ended);
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
        self.end_supplied(call);
        if now.0.saturating_sub(call.start.0) >= self.board.exits_from() {
            self.exit_noticed(call, now);
        }
    }

    /// The end of a call that has succeeded, if the buffer in `slot` wants to know of the call, nobody else does, and its
    /// record is all there is to write but, perhaps, its arguments. Who asks [writes](Ended::write) it, and then
    /// [leaves](HostThread::leave) the call.
    #[inline(always)]
    pub(crate) fn plain_end(&self, call: &Call, now: Ticks, slot: usize) -> Option<Ended> {
        let is_plain = call.interest.is_plain_for(slot) && self.external.is_empty();
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

    /// Writes what nearly every exit writes, one record to the only buffer that wants it. `false`: nothing is written, and
    /// there is more to look after.
    #[inline(always)]
    fn exit_plainly(&mut self, call: &Call, values: &[u64], ended: Ended) -> bool {
        if !(values.is_empty() && self.external.is_empty()) {
            return false;
        }
        let Some(slot) = call.interest.buffers().only() else {
            return false;
        };
        let Some(mut lane) = self.room_in(slot, size_of::<Api>()) else {
            return false;
        };
        ended.write(call, &mut lane);
        true
    }

    /// The same with the call's external ids and arguments, in one step.
    #[inline(never)]
    fn exit_at_once(&mut self, call: &Call, values: &[u64], ended: Ended) -> bool {
        let Some(slot) = call.interest.buffers().only() else {
            return false;
        };
        let external = match self.external.is_empty() || self.external_for(call).is_none() {
            true => &[][..],
            false => &self.external,
        };
        if external.len() > MAX_AT_ONCE || values.len() > MAX_ARGUMENTS {
            return false;
        }
        let bytes = external.len() * size_of::<ExternalCorrelation>()
            + Arguments::bytes_for(values.len())
            + size_of::<Api>();
        let annotated = !values.is_empty() && !self.annotated(call).is_none();
        let incarnations = self.board.incarnations();
        let Some(mut lane) = self.lanes.with_room(slot, incarnations, bytes) else {
            return false;
        };
        for record in latest(call, external) {
            lane.commit_filled(|place| *place = record);
        }
        if annotated {
            let head = ArgumentsHead::new(call.correlation, call.operation, values.len());
            lane.commit_arguments(head, values);
        }
        ended.write(call, &mut lane);
        true
    }

    /// Writes each of the records of an exit to whoever wants it.
    #[cold]
    #[inline(never)]
    fn exit_each(&mut self, call: &Call, values: &[u64], ended: Ended) -> bool {
        let buffers = call.interest.buffers();
        if !self.external.is_empty() {
            self.write_external(call, self.external_for(call));
        }
        if !values.is_empty() {
            self.put_arguments(call, values);
        }
        self.put(buffers, Kind::API, |place| *place = ended.record(call))
    }

    /// Somebody wants to hear of the exit of such calls.
    #[cold]
    fn exit_noticed(&mut self, call: &Call, now: Ticks) {
        // One that began when nobody wanted its time is not known to have taken any.
        if !call.start.is_some() {
            return;
        }
        if !self.board.buffers_for(Kind::RETIREMENT).is_none()
            && self.board.call_exits(call.correlation)
        {
            self.retire(call.correlation, now);
        }
        self.board.call_took(now.0.saturating_sub(call.start.0));
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

    /// The call with this id has enqueued a piece of work that will be [heard of](HostThread::work_ends).
    #[inline]
    pub fn work_begins(&mut self, correlation: CorrelationId) {
        if !self.board.buffers_for(Kind::RETIREMENT).is_none() {
            self.board.work_begins(correlation);
        }
    }

    /// A piece of its work has completed, or its completion will not be heard of.
    #[inline]
    pub fn work_ends(&mut self, correlation: CorrelationId, now: Ticks) {
        if self.board.work_ends(correlation) {
            self.retire(correlation, now);
        }
    }

    /// The thread's first call that somebody may find in progress.
    #[cold]
    #[inline(never)]
    fn open_first_call(
        &mut self,
        recovered: Buffers,
        (depth, now, correlation, operation): (u32, Ticks, CorrelationId, Operation),
    ) {
        // There is one such buffer: the recording's.
        let Some(slot) = recovered.slots().next() else {
            return;
        };
        let open = match self.open(slot) {
            true => self.lanes.using(slot, self.board.incarnations()),
            false => None,
        };
        if let Some(open) = open.map(|lane| lane.open_calls()) {
            open.enter(depth, now, correlation, operation);
            self.open_calls = Some(open);
        }
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
            if let Some(mut lane) = self.lanes.using(slot, self.board.incarnations()) {
                lane.set_may_wait(may_wait);
            }
        }
    }
}

impl Drop for HostThread {
    fn drop(&mut self) {
        self.board.give_thread_number(self.number);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
