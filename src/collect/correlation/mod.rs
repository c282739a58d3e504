//! Correlation: ids for calls and work, who called whom, and the client's own ids.
//!
//! A [`HostThread`] is the state of one thread that calls a source. It reserves ids in ranges, so that threads share
//! nothing on the hot path. Calls in progress stand on a stack in the mapping, where recovery finds them; the next
//! enter takes off a call whose exit was skipped (longjmp), since its stack frame is gone. The exit of a call needs
//! only what its enter returned, so a stack that was cut wrongly (a thread with several stacks) costs ancestors, not
//! times.

mod external;
mod ids;
mod records;

pub use ids::Ids;

use self::ids::IdRange;
use crate::call_stacks::StackBounds;
use crate::marker::CText;
use crate::marker::ids::RangeIds;
use crate::marker::nesting::PushedRanges;
use crate::switchboard::{BUFFERS, ExternalStacks, Interest, Pushed, Switchboard, ThreadState};
use gputrail_buffer::lanes::OwnLanes;
use gputrail_buffer::{MAX_OPEN_CALLS, OpenCalls};
use gputrail_record::*;
use std::ffi::CString;
use std::sync::Arc;

/// A call in progress, from [`HostThread::enter`] to [`HostThread::exit`].
#[derive(Copy, Clone, Debug)]
pub struct CallInProgress {
    /// The call's id.
    pub correlation: CorrelationId,
    /// The call it was made from, or none.
    pub ancestor: CorrelationId,
    /// The time of its enter; none if no consumer wanted times (`Interest::is_timed`).
    pub start: Ticks,
    /// The function.
    pub operation: Operation,
    /// Number of calls below it on the stack.
    pub depth: u32,
    /// The consumers at its enter: they get its record, whatever is started or stopped meanwhile.
    pub interest: Interest,
}

impl CallInProgress {
    /// No call.
    pub const NONE: CallInProgress = CallInProgress {
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

/// The parts of a call's exit that most calls do not have.
#[derive(Copy, Clone, Default)]
pub struct Extra<'a> {
    /// Bits of [`gputrail_record::flags`] for the call's record.
    pub flags: u8,
    /// Values of the call's arguments, for those buffers that want them.
    pub arguments: &'a [u64],
}

impl Extra<'_> {
    /// Neither flags nor arguments.
    pub const NONE: Extra<'static> = Extra {
        flags: 0,
        arguments: &[],
    };
}

/// A call on a thread's stack.
#[derive(Copy, Clone, Default)]
struct CallFrame {
    correlation: CorrelationId,
    stack_pointer: usize,
}

/// Calls of a thread whose nesting is known. Deeper calls are recorded with the innermost of these as ancestor.
const FRAMES: usize = MAX_OPEN_CALLS;
/// Entries of a thread's cache of string ids.
const CACHED_STRINGS: usize = 128;
/// Marker domains whose pushed ranges a thread counts.
const MAX_LEVELS: usize = 4096;

/// One thread of the program, as a source sees it. The fields that every call needs come first, next to each other.
#[repr(C)]
pub struct HostThread {
    board: Arc<Switchboard>,
    lanes: OwnLanes<BUFFERS>,
    /// Calls in progress; the first [`FRAMES`] are in `frames`.
    depth: u32,
    is_main: bool,
    may_wait: bool,
    /// The part of the state that other threads may use, and the external ids.
    state: Arc<ThreadState>,
    correlation: IdRange,
    thread: ThreadId,
    /// See [`HostThread::number`].
    number: u32,
    /// The open-call stack in the recording's buffer, from the thread's first call that is recorded there.
    open_calls: Option<OpenCalls>,
    work: IdRange,
    frames: [CallFrame; FRAMES],
    /// By buffer slot: records lost since the buffer had no lane left for this thread.
    refused: [u32; BUFFERS],
    /// A direct-mapped cache of strings and their ids.
    strings: Vec<(StringId, Box<str>)>,
    /// A direct-mapped cache of C strings and their ids, by the addresses of the strings.
    c_strings: Vec<(StringId, CString)>,
    /// The pushed ranges, by the number of the marker domain.
    levels: Vec<PushedRanges>,
    range_ids: RangeIds,
    /// The bounds of the thread's stack, from its first call whose stack is wanted.
    stack_bounds: Option<StackBounds>,
}

impl HostThread {
    /// The state of `thread`, which records to the buffers of `board`. Threads without external ids inherit those of
    /// the main thread, which `is_main` marks. `None` when there are too many threads.
    pub fn new(board: &Arc<Switchboard>, thread: ThreadId, is_main: bool) -> Option<HostThread> {
        let lanes = OwnLanes::new();
        let number = board.take_thread_number()?;
        let state = ThreadState::new(thread, number, &lanes);
        board.register(&state);
        Some(HostThread {
            number,
            state,
            board: board.clone(),
            lanes,
            thread,
            correlation: IdRange::default(),
            work: IdRange::default(),
            depth: 0,
            frames: [CallFrame::default(); FRAMES],
            open_calls: None,
            may_wait: true,
            is_main,
            refused: [0; BUFFERS],
            strings: Vec::new(),
            c_strings: Vec::new(),
            levels: Vec::new(),
            range_ids: RangeIds::default(),
            stack_bounds: None,
        })
    }

    /// A call of `operation` begins. `stack_pointer` is an address in the caller's frame.
    #[inline]
    pub fn enter(
        &mut self,
        operation: Operation,
        stack_pointer: usize,
        now: Ticks,
    ) -> CallInProgress {
        let interest = self.board.interest(operation);
        self.enter_wanted(operation, interest, stack_pointer, || now)
    }

    /// [`HostThread::enter`] with the consumers of the call. `now` is called last, so that the work done here is not
    /// part of the call's time.
    #[inline(always)]
    pub fn enter_wanted(
        &mut self,
        operation: Operation,
        interest: Interest,
        stack_pointer: usize,
        now: impl FnOnce() -> Ticks,
    ) -> CallInProgress {
        let (depth, ancestor) = match self.depth {
            0 => (0, CorrelationId::NONE),
            _ => self.within(stack_pointer),
        };
        let correlation = CorrelationId(self.correlation.take(&self.board.ids().correlation));
        if let Some(frame) = self.frames.get_mut(depth as usize) {
            *frame = CallFrame {
                correlation,
                stack_pointer,
            };
        }
        self.depth = depth + 1;
        let start = if interest.is_open() {
            self.open_call((depth, correlation, operation), now)
        } else {
            now()
        };
        CallInProgress {
            correlation,
            ancestor,
            start,
            operation,
            depth,
            interest,
        }
    }

    /// The call ends at `end`: its record is written, and then it leaves the stack of calls in progress. Recovery takes
    /// a call that it finds in both places for one that has ended. `false`: the record was dropped and counted.
    ///
    /// `HostThread::exit_simple` and `HostThread::exit_external` are the fast paths, `HostThread::exit_slow` does everything
    /// else.
    #[inline(always)]
    pub fn exit(
        &mut self,
        call: &CallInProgress,
        end: Ticks,
        return_code: i32,
        extra: Extra<'_>,
    ) -> bool {
        if call.interest.has_simple_exit() && extra.arguments.is_empty() {
            let written = if self.state.has_external() {
                self.exit_external(call, end, return_code, extra.flags)
            } else {
                self.exit_simple(call, end, return_code, extra.flags)
            };
            if written {
                self.leave(call.depth);
                return true;
            }
        }
        // A copy, so that `call` may stay in registers.
        self.exit_slow(*call, end, return_code, extra)
    }

    /// Writes the record of `call` to the one buffer that wants it. `false`: its lane has no room.
    #[inline(always)]
    fn exit_simple(
        &mut self,
        call: &CallInProgress,
        end: Ticks,
        return_code: i32,
        flags: u8,
    ) -> bool {
        let external = self.board.external().main();
        let Some(mut lane) = self.lanes.using(call.interest.first_buffer()) else {
            return false;
        };
        let Some(mut batch) = lane.reserve(size_of::<Api>()) else {
            return false;
        };
        batch.put(|api| {
            let none = CallStackId::NONE;
            *api = record(call, end, return_code, flags, external, self.thread, none);
        });
        batch.publish();
        true
    }

    /// [`HostThread::exit_simple`] on a thread that has pushed external ids: their records and that of the call, in one
    /// batch. `false`: an id was supplied, or there is no room for all of them.
    #[inline(never)]
    fn exit_external(
        &mut self,
        call: &CallInProgress,
        end: Ticks,
        return_code: i32,
        flags: u8,
    ) -> bool {
        let asked = self.board.buffers_for(Kind::EXTERNAL_CORRELATION);
        let is_asked = !call.interest.buffers().and(asked).is_none();
        let Some(mut lane) = self.lanes.using(call.interest.first_buffer()) else {
            return false;
        };
        let write = |stacks: &ExternalStacks| {
            // A simple exit has a buffer whose contexts have no ids of their own.
            let Some(ids) = stacks.pushed_for_process() else {
                return false;
            };
            let records = if is_asked { ids.clone().count() } else { 0 };
            let bytes = records * size_of::<ExternalCorrelation>() + size_of::<Api>();
            let Some(mut batch) = lane.reserve(bytes) else {
                return false;
            };
            let mut external = ExternalId::NONE;
            for latest in ids {
                external = latest.id;
                if is_asked {
                    batch.put(|place| *place = external_record(call, *latest));
                }
            }
            batch.put(|api| {
                let none = CallStackId::NONE;
                *api = record(call, end, return_code, flags, external, self.thread, none);
            });
            batch.publish();
            true
        };
        // SAFETY: a `HostThread` is used by its thread alone, as is this part of its state.
        unsafe { self.state.read_external(write) }.unwrap_or(false)
    }

    /// The exit of a call with arguments or supplied ids, with several consumers or none, or without room in its lane.
    #[cold]
    #[inline(never)]
    fn exit_slow(
        &mut self,
        call: CallInProgress,
        end: Ticks,
        return_code: i32,
        extra: Extra<'_>,
    ) -> bool {
        self.write_external(&call);
        if !extra.arguments.is_empty() {
            self.write_arguments(&call, extra.arguments);
        }
        let thread = self.thread;
        let stack = if self.board.wants_stack(call.operation) {
            self.call_stack()
        } else {
            CallStackId::NONE
        };
        // The ids are those of this call; deeper calls that were left by longjmp may still be on the stack.
        self.depth = call.depth + 1;
        let written = self.fill(call.interest.buffers(), |api| {
            *api = record(
                &call,
                end,
                return_code,
                extra.flags,
                ExternalId::NONE,
                thread,
                stack,
            );
        });
        self.leave(call.depth);
        if call.interest.subscribers().is_none() {
            // Otherwise the ids end after the callbacks of the exit.
            self.end_supplied(call.depth);
        }
        if call.interest.is_noticed() {
            self.exit_noticed(call.correlation, call.start, end);
        }
        written
    }

    /// The calling thread's stack; none if it could not be taken.
    #[cold]
    #[inline(never)]
    fn call_stack(&mut self) -> CallStackId {
        let bounds = self.stack_bounds.get_or_insert_with(StackBounds::of_thread);
        self.board.call_stacks().take(bounds, self.board.names())
    }

    /// Leaves `depth` calls in progress.
    #[inline(always)]
    fn leave(&mut self, depth: u32) {
        if let Some(open) = &self.open_calls {
            open.close(depth);
        }
        self.depth = depth;
    }

    /// Notifies the consumers of retirements and slow calls that a call has ended.
    #[cold]
    #[inline(never)]
    fn exit_noticed(&mut self, correlation: CorrelationId, start: Ticks, now: Ticks) {
        // A call whose start was not timed has no duration.
        if !start.is_some() {
            return;
        }
        let wanted = self.board.buffers_for(Kind::RETIREMENT);
        if !wanted.is_none() {
            self.write_left_retirements();
            if self.board.retirements().call_exits(correlation) {
                self.write_to(wanted, retirement(correlation, now));
            }
        }
        self.board
            .slow_calls()
            .call_took(now.0.saturating_sub(start.0));
    }

    /// `call` has enqueued a piece of work, whose end [`HostThread::work_ends`] will be told.
    #[inline]
    pub fn work_begins(&mut self, call: &CallInProgress) {
        if !self.board.buffers_for(Kind::RETIREMENT).is_none() {
            let is_exit_noticed = call.interest.is_noticed();
            let retirements = self.board.retirements();
            retirements.work_begins(call.correlation, is_exit_noticed);
        }
    }

    /// A piece of work of `correlation` has completed, or its completion cannot be followed.
    #[inline]
    pub fn work_ends(&mut self, correlation: CorrelationId, now: Ticks) {
        if self.board.retirements().work_ends(correlation) {
            // Completion callbacks must not wait.
            let (wanted, record) = (
                self.board.buffers_for(Kind::RETIREMENT),
                retirement(correlation, now),
            );
            let left = self.try_fill(wanted, |place| *place = record);
            if !left.is_none() && !self.board.retirements().leave(left, record) {
                self.write_at_once(left, record);
            }
        }
    }

    /// Writes the retirements for which completion callbacks have found no room.
    pub(crate) fn write_left_retirements(&mut self) {
        for (buffers, record) in self.board.retirements().take_left() {
            self.write_to(buffers, record);
        }
    }

    /// The number of calls in progress around a frame at `stack_pointer`, and the innermost of them. Calls that were
    /// left by longjmp or an exception are taken off the stack.
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

    /// A call begins that stands on the open-call stack. Returns its start.
    #[inline(always)]
    fn open_call(
        &mut self,
        (depth, correlation, operation): (u32, CorrelationId, Operation),
        now: impl FnOnce() -> Ticks,
    ) -> Ticks {
        if self.open_calls.is_none() {
            self.find_open_calls();
        }
        let Some(open) = &self.open_calls else {
            return now();
        };
        open.prepare(depth, correlation, operation);
        let start = now();
        open.enter(depth, start);
        start
    }

    /// Finds the thread's open-call stack before its first call there.
    #[cold]
    #[inline(never)]
    fn find_open_calls(&mut self) {
        // Only the recording's buffer has one.
        let Some(slot) = self.board.recovered().slots().next() else {
            return;
        };
        let open = if self.open(slot) {
            self.lanes.using(slot)
        } else {
            None
        };
        self.open_calls = open.map(|lane| lane.open_calls());
    }

    /// Writes the record of a change of a graph within the innermost call in progress, and returns the call's depth.
    pub fn graph_changed(&mut self, change: &mut GraphChange) -> u32 {
        let (correlation, depth) = self.innermost();
        (change.correlation, change.thread) = (correlation, self.thread());
        self.write_late(self.buffers_for(Kind::GRAPH_CHANGE), *change);
        depth
    }

    /// The innermost call in progress and its depth; none and 0 outside of calls.
    pub fn innermost(&self) -> (CorrelationId, u32) {
        match self.depth.checked_sub(1) {
            None => (CorrelationId::NONE, 0),
            Some(depth) => {
                let frame = &self.frames[(depth as usize).min(FRAMES - 1)];
                (frame.correlation, depth)
            }
        }
    }

    /// An id for a call that is not recorded, and tells its work from that of others.
    pub fn new_correlation(&mut self) -> CorrelationId {
        CorrelationId(self.correlation.take(&self.board.ids().correlation))
    }

    /// An id for a piece of asynchronous work.
    #[inline]
    pub fn new_work(&mut self) -> WorkId {
        WorkId(self.work.take(&self.board.ids().work))
    }

    /// The id of a string that the program is likely to use again: found without a lock if it is in the cache.
    pub fn string(&mut self, text: &str) -> StringId {
        if text.is_empty() {
            return StringId::NONE;
        }
        if self.strings.is_empty() {
            self.strings.resize_with(CACHED_STRINGS, Default::default);
        }
        let hash = crc32fast::hash(text.as_bytes()) as usize;
        let cached = &mut self.strings[hash % CACHED_STRINGS];
        if cached.0.is_some() && *cached.1 == *text {
            return cached.0;
        }
        let id = self.board.names().string(text);
        *cached = (id, text.into());
        id
    }

    /// The id of a C string, as from [`HostThread::string`].
    #[inline]
    pub(crate) fn c_string(&mut self, text: CText<'_>) -> StringId {
        let place = text.address_hash() % CACHED_STRINGS;
        match self.c_strings.get(place) {
            Some((id, cached)) if text.equals(cached) => *id,
            _ => self.new_c_string(text, place),
        }
    }

    #[cold]
    #[inline(never)]
    fn new_c_string(&mut self, text: CText<'_>, place: usize) -> StringId {
        if self.c_strings.is_empty() {
            self.c_strings.resize_with(CACHED_STRINGS, Default::default);
        }
        let text = text.to_c_str();
        let id = self.string(&text.to_string_lossy());
        self.c_strings[place] = (id, text.to_owned());
        id
    }

    /// The ranges that are pushed on this thread in the marker domain with this number; `None` for domains beyond
    /// [`MAX_LEVELS`].
    #[inline]
    pub(crate) fn pushed_ranges(&mut self, domain: u32) -> Option<&PushedRanges> {
        let place = domain as usize;
        if place >= self.levels.len() {
            if place >= MAX_LEVELS {
                return None;
            }
            self.levels.resize_with(place + 1, PushedRanges::new);
        }
        self.levels.get(place)
    }

    /// The external ids of its ranges.
    pub(crate) fn range_ids(&mut self) -> &mut RangeIds {
        &mut self.range_ids
    }

    /// The thread.
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// A number below 1024 that no other live thread of the process has.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The switchboard of its process.
    pub fn board(&self) -> &Arc<Switchboard> {
        &self.board
    }

    /// The part of its state that other threads may use.
    pub fn state(&self) -> &Arc<ThreadState> {
        &self.state
    }

    /// Whether its lanes may wait for empty blocks; see [`Lane::set_may_wait`](gputrail_buffer::Lane::set_may_wait).
    pub fn set_may_wait(&mut self, may_wait: bool) {
        self.may_wait = may_wait;
        for slot in 0..BUFFERS {
            if let Some(mut lane) = self.lanes.using(slot) {
                lane.set_may_wait(may_wait);
            }
        }
    }
}

/// The record of `call`. Inlined, so that its fields are stored where the record stays.
#[inline(always)]
fn record(
    call: &CallInProgress,
    end: Ticks,
    return_code: i32,
    flags: u8,
    external: ExternalId,
    thread: ThreadId,
    stack: CallStackId,
) -> Api {
    Api {
        header: const { Header::of::<Api>() }.with(flags),
        start: call.start,
        end,
        correlation: call.correlation,
        ancestor: call.ancestor,
        external,
        thread,
        return_code,
        operation: call.operation,
        stack,
    }
}

/// The record that `latest` was the latest id of its kind at the end of `call`.
fn external_record(call: &CallInProgress, latest: Pushed) -> ExternalCorrelation {
    ExternalCorrelation {
        header: Header::of::<ExternalCorrelation>(),
        correlation: call.correlation,
        external: latest.id,
        kind: latest.kind,
        reserved: 0,
    }
}

/// The record that `correlation` has retired at `time`.
fn retirement(correlation: CorrelationId, time: Ticks) -> Retirement {
    Retirement {
        header: Header::of::<Retirement>(),
        correlation,
        time,
    }
}

impl Drop for HostThread {
    fn drop(&mut self) {
        if self.is_main {
            // No thread inherits ids of one that has ended.
            self.with_external(|stacks, all| stacks.clear_main(all));
        }
        self.board.give_thread_number(self.number);
    }
}

#[cfg(test)]
mod tests;
