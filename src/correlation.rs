//! Correlation: ids for calls and work, who called whom, and the client's own ids.
//!
//! A [`HostThread`] is what a source knows of one thread that calls it. Ids come from ranges that it
//! reserves, so that threads share nothing on the hot path. Calls in progress stand on a stack in the
//! mapping, where recovery finds them; a call whose exit was skipped (longjmp) is taken off by the
//! next enter, which sees that its stack frame is gone. The exit of a call needs only what its enter
//! returned, so a stack that was cut wrongly (a thread with several stacks) costs ancestors, not times.

use crate::buffer::lanes::OwnLanes;
use crate::buffer::{Lane, MAX_OPEN_CALLS, OpenCalls};
use crate::record::*;
use crate::switchboard::{BUFFERS, Buffers, Interest, Switchboard, ThreadState};
use bytemuck::Pod;
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
struct Ended {
    time: Ticks,
    external: ExternalId,
    thread: ThreadId,
    return_code: i32,
    flags: u8,
}

impl Ended {
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

/// Records of the latest id of each kind that has one, of those that are pushed where `call` ends.
#[inline(always)]
fn latest<'a>(
    call: &Call,
    pushed: &'a [(ExternalKind, ExternalId)],
) -> impl Iterator<Item = ExternalCorrelation> + use<'a> {
    let correlation = call.correlation;
    let is_latest = |place: &usize| {
        let (kind, _) = pushed[*place];
        pushed[*place + 1..].iter().all(|(of, _)| *of != kind)
    };
    (0..pushed.len()).filter(is_latest).map(move |place| {
        let mut record = ExternalCorrelation::blank();
        (record.kind, record.external) = pushed[place];
        record.correlation = correlation;
        record
    })
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
/// Records that a thread loses for want of a lane before it asks for one again.
const RETRY: u32 = 64;

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
        let ended = Ended {
            time: now,
            external: self.external(),
            thread: self.thread,
            return_code,
            flags,
        };
        // A call that is only told of has no record.
        let written = call.interest.buffers().is_none()
            || self.exit_at_once(call, values, ended)
            || self.exit_each(call, values, ended);
        // Not before: a process may die in between, or wait for a block for long. A call that is found
        // in both places, the recovery takes for one that has ended.
        if let Some(open) = &self.open_calls {
            open.close(call.depth);
        }
        self.depth = call.depth;
        self.end_supplied(call);
        if now.0.saturating_sub(call.start.0) >= self.board.exits_from() {
            self.exit_noticed(call, now);
        }
        written
    }

    /// Writes what nearly every exit writes, the call's arguments and its record, to the only buffer that wants them.
    /// `false`: nothing is written, and each record is to be looked after by itself.
    #[inline(always)]
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
        if let Some(mut lane) = self.lanes.using(slot, self.board.incarnations())
            && lane.fits_now(bytes)
        {
            for record in latest(call, external) {
                lane.commit_filled(|place| *place = record);
            }
            if annotated {
                let head = ArgumentsHead::new(call.correlation, call.operation, values.len());
                lane.commit_arguments(head, values);
            }
            lane.commit_filled(|place| *place = ended.record(call));
            return true;
        }
        false
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

    /// Writes a record of another kind to the buffers that want it now. `false` says that it was dropped, and
    /// counted.
    #[inline]
    pub fn write<R: Record>(&mut self, record: R) -> bool {
        self.write_to(self.board.buffers_for(R::KIND), record)
    }

    /// Writes a record to `buffers`. `false` says that one of them has not got it, and counted that.
    #[inline(always)]
    pub fn write_to<R: Record>(&mut self, buffers: Buffers, record: R) -> bool {
        self.put(buffers, R::KIND, |place| *place = record)
    }

    /// The same with a record that `fill` puts together in its place.
    #[inline(always)]
    pub(crate) fn fill<R: Record>(&mut self, buffers: Buffers, fill: impl Fn(&mut R)) -> bool {
        self.put(buffers, R::KIND, fill)
    }

    /// Writes a record to those of `buffers` where that takes no waiting (see [`Lane::try_write`]), and returns the
    /// others.
    #[inline(always)]
    pub fn try_write_to<R: Record>(&mut self, buffers: Buffers, record: R) -> Buffers {
        self.try_fill(buffers, |place| *place = record)
    }

    /// The same with a record that `fill` puts together in its place.
    #[inline(always)]
    pub(crate) fn try_fill<R: Record>(
        &mut self,
        buffers: Buffers,
        fill: impl Fn(&mut R),
    ) -> Buffers {
        let write = |lane: &mut Lane| lane.commit_filled(&fill);
        self.put_into_each(buffers, None, size_of::<R>(), write)
    }

    /// Writes a record of `kind`.
    #[inline(always)]
    fn put<R: Pod>(&mut self, buffers: Buffers, kind: Kind, fill: impl Fn(&mut R)) -> bool {
        let write = |lane: &mut Lane| lane.commit_filled(&fill);
        let left = self.put_into_each(buffers, Some(kind), size_of::<R>(), write);
        left.is_none()
    }

    /// Writes the arguments of `call`.
    #[inline(never)]
    fn put_arguments(&mut self, call: &Call, values: &[u64]) {
        let values = &values[..values.len().min(MAX_ARGUMENTS)];
        let (correlation, operation) = (call.correlation, call.operation);
        let head = ArgumentsHead::new(correlation, operation, values.len());
        let write = |lane: &mut Lane| lane.commit_arguments(head, values);
        let (buffers, bytes) = (self.annotated(call), Arguments::bytes_for(values.len()));
        self.put_into_each(buffers, Some(Kind::ARGUMENTS), bytes, write);
    }

    /// Has a record of `bytes` written to `buffers`; nearly always there is one of them. If it is of `kind` its loss is
    /// counted where there is no room; without one the lane does not wait. Returns those that have not got it.
    #[inline(always)]
    fn put_into_each(
        &mut self,
        buffers: Buffers,
        kind: Option<Kind>,
        bytes: usize,
        write: impl Fn(&mut Lane),
    ) -> Buffers {
        let mut left = Buffers::NONE;
        for slot in buffers.slots() {
            loop {
                if let Some(mut lane) = self.lanes.using(slot, self.board.incarnations())
                    && lane.fits_now(bytes)
                {
                    write(&mut lane);
                    break;
                }
                if !self.make_room(slot, kind, bytes) {
                    left = left.or(Interest::buffer(slot).buffers());
                    break;
                }
            }
        }
        left
    }

    /// Has the thread have a lane in `slot`, with room for a record of `bytes`, which is put there next. `false`: there
    /// is none, and if the record is of a `kind` that was counted.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, slot: usize, kind: Option<Kind>, bytes: usize) -> bool {
        let is_open = self.lanes.is_open(slot, self.board.incarnations()) || self.open(slot);
        let lane = match is_open {
            true => self.lanes.using(slot, self.board.incarnations()),
            false => None,
        };
        match (lane, kind) {
            (Some(mut lane), Some(kind)) => lane.has_room(kind, bytes),
            (Some(mut lane), None) => lane.has_room_now(bytes),
            (None, Some(kind)) => {
                let buffers = Interest::buffer(slot).buffers();
                self.board.count_unlaned(buffers, kind);
                false
            }
            (None, None) => false,
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

    /// The buffers that want records of `kind` now.
    #[inline]
    pub fn buffers_for(&self, kind: Kind) -> Buffers {
        self.board.buffers_for(kind)
    }

    /// Writes the arguments of a call.
    #[inline]
    pub fn write_arguments(&mut self, call: &Call, arguments: &mut Arguments) -> bool {
        let bytes = Arguments::bytes_for((arguments.count as usize).min(MAX_ARGUMENTS));
        let mut all = true;
        for slot in self.annotated(call).slots() {
            all &= self.make_room(slot, Some(Kind::ARGUMENTS), bytes)
                && self
                    .lanes
                    .using(slot, self.board.incarnations())
                    .is_some_and(|mut lane| lane.write_arguments(arguments));
        }
        all
    }

    /// The buffers that get the arguments of `call`.
    #[inline]
    fn annotated(&self, call: &Call) -> Buffers {
        match call.interest.has_arguments() {
            true => call
                .interest
                .buffers()
                .and(self.board.buffers_for(Kind::ARGUMENTS)),
            false => Buffers::NONE,
        }
    }

    /// Opens a lane in the buffer of `slot`, for the first record.
    #[cold]
    #[inline(never)]
    fn open(&mut self, slot: usize) -> bool {
        // Asking is dear: not for every record of a thread that has been refused.
        let refused = self.refused[slot];
        if !refused.is_multiple_of(RETRY) {
            self.refused[slot] = refused.wrapping_add(1);
            return false;
        }
        let may_wait = self.may_wait;
        let prepare = |lane: &mut Lane| {
            lane.set_may_wait(may_wait);
        };
        let opened = self
            .board
            .open_lane(slot, self.thread, prepare, &mut self.lanes);
        self.refused[slot] = if opened { 0 } else { refused.wrapping_add(1) };
        opened
    }

    /// Opens its lanes in all buffers there are, now and not at the first record. `false` if one of them has
    /// none left.
    pub fn open_lanes(&mut self) -> bool {
        (0..BUFFERS).all(|slot| self.board.incarnations().of(slot) == 0 || self.open(slot))
    }

    /// An id for a piece of asynchronous work.
    #[inline]
    pub fn new_work(&mut self) -> WorkId {
        WorkId(self.work.take(&self.board.ids().work))
    }

    /// Records of `call`, and of what it does, carry `id`, whatever is pushed, until its exit.
    #[cold]
    pub(crate) fn supply_external(&mut self, call: &Call, id: ExternalId) {
        self.forget_supplied(call.depth);
        self.supplied.push((call.depth, id));
        self.latest_external = id;
    }

    /// `call` has ended, and its record is written.
    #[inline]
    fn end_supplied(&mut self, call: &Call) {
        if !self.supplied.is_empty() {
            self.forget_supplied(call.depth);
        }
    }

    /// Nothing is supplied for calls at `depth` and deeper.
    #[cold]
    fn forget_supplied(&mut self, depth: u32) {
        self.supplied.retain(|(of, _)| *of < depth);
        self.latest_external = self.innermost_external();
    }

    fn pushed_external(&self) -> ExternalId {
        self.external.last().map_or(ExternalId::NONE, |(_, id)| *id)
    }

    fn innermost_external(&self) -> ExternalId {
        let supplied = self.supplied.last().map(|(_, id)| *id);
        supplied.unwrap_or_else(|| self.pushed_external())
    }

    /// The external id that records of this thread carry: the one supplied for the call in progress, or the latest
    /// pushed on the thread, of any kind, or else the main thread's.
    #[inline]
    pub fn external(&self) -> ExternalId {
        if self.latest_external.is_some() || self.is_main {
            self.latest_external
        } else {
            ExternalId(self.board.ids().main_external.load(Ordering::Relaxed))
        }
    }

    /// Pushes an id of the client's own. `false` says that the stack is full.
    pub fn push_external(&mut self, kind: ExternalKind, id: ExternalId, now: Ticks) -> bool {
        if self.external.len() == MAX_EXTERNAL {
            return false;
        }
        self.external.push((kind, id));
        self.publish_external();
        self.mark_external(MarkerKind::EXTERNAL_PUSH, kind, id, now);
        true
    }

    /// Takes off the latest id of `kind`, or `None` if there is none.
    pub fn pop_external(&mut self, kind: ExternalKind, now: Ticks) -> Option<ExternalId> {
        let place = self.external.iter().rposition(|(of, _)| *of == kind)?;
        let (_, id) = self.external.remove(place);
        self.publish_external();
        self.mark_external(MarkerKind::EXTERNAL_POP, kind, id, now);
        Some(id)
    }

    fn mark_external(&mut self, what: MarkerKind, kind: ExternalKind, id: ExternalId, now: Ticks) {
        let mut marker = Marker::blank();
        (marker.time, marker.id, marker.what) = (now, id.0, what);
        (marker.thread, marker.external_kind) = (self.thread, kind.0 as u16);
        self.write(marker);
    }

    /// Those who want records of the external ids of a call.
    #[inline(always)]
    fn external_for(&self, call: &Call) -> Buffers {
        let asked = self.buffers_for(Kind::EXTERNAL_CORRELATION);
        call.interest.buffers().and(asked)
    }

    /// Writes the latest id of each kind that has one.
    fn write_external(&mut self, call: &Call, buffers: Buffers) {
        let external = std::mem::take(&mut self.external);
        for record in latest(call, &external) {
            self.write_to(buffers, record);
        }
        self.external = external;
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

    fn publish_external(&mut self) {
        self.latest_external = self.innermost_external();
        if self.is_main {
            // What is supplied for a call is for no other thread.
            self.board
                .ids()
                .main_external
                .store(self.pushed_external().0, Ordering::Relaxed);
        }
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

    /// Whether its lanes may wait for empty blocks; see [`Lane::set_may_wait`].
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
mod tests {
    use super::*;
    use crate::buffer::{Buffer, Layout, Mapping, Policy};
    use crate::switchboard::{Consumer, Selection};

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
        let board = board();
        let mut thread = thread(&board, false);
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
        let board = board();
        let mut thread = thread(&board, false);
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
        let board = board();
        let (mut one, mut two) = (thread(&board, false), thread(&board, false));
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
        // What is pushed meanwhile holds when the calls are over.
        main.push_external(ExternalKind::CUSTOM0, ExternalId(6), Ticks(2));
        assert_eq!(
            (main.external(), other.external()),
            (ExternalId(71), ExternalId(6))
        );
        main.end_supplied(&inner);
        assert_eq!(main.external(), ExternalId(70));
        main.end_supplied(&outer);
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
}
