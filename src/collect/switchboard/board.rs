//! The switchboard itself: what it holds, its buffers and threads, and how its table is computed again.

use super::changes::Changes;
use super::external::ExternalContexts;
use super::flush::{Flush, FlushHooks};
use super::interest::{BUFFERS, Buffers, Interest, SUBSCRIBERS, WantedTable};
use super::keys::{BufferKey, ServiceConsumer, TooMany};
use super::narrowed::Narrowed;
use super::retirement::Retirements;
use super::services::Services;
use super::slow::{SlowCallWatches, SlowCalls};
use super::standing::StandingRequests;
use super::subscription::{Subscribers, Subscription};
use super::thread::ThreadState;
use crate::agents::Claims;
use crate::call_stacks::CallStacks;
use crate::correlation::Ids;
use crate::counting::CountingService;
use crate::counting::ranges::CountedRanges;
use crate::sampling::SamplingService;
use gputrail_buffer::lanes::Opening;
use gputrail_buffer::platform::sync::{PerProcess, QuietGuard, fence_heavy, lock_std};
use gputrail_buffer::{Buffer, CallbackThread, Lane, QueuePlace, SharedThread};
use gputrail_capture::names::Names;
use gputrail_record::{ContextId, KernelId, Kind, ModuleId, Operation, ThreadId};
use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// The number of checks of a thread that is writing before its lane is abandoned.
const PATIENCE: u32 = 100_000;

/// The switchboard; see the module.
pub struct Switchboard {
    table: TableMemory,
    pub(super) subscriptions: [AtomicPtr<Subscription>; SUBSCRIBERS],
    /// The number of the latest subscription. A thread that reads it too early leaves a newcomer out of one call.
    pub(super) newest_subscription: AtomicU64,
    ids: Ids,
    pub(super) external: ExternalContexts,
    names: Names,
    call_stacks: CallStacks,
    /// The process that made it. A forked child finds no buffer, context or subscriber of its parent in `state`.
    process: u32,
    state: PerProcess<SwitchboardState>,
    kernels: ExcludedKernels,
    /// Buffers whose memory is recovered after the death of the process.
    recovered: AtomicU32,
    pub(super) flush_hooks: FlushHooks,
    /// Modules that subscribers know to be sampled or counted.
    profiled: Mutex<HashSet<ModuleId>>,
    changes: Changes,
    retirements: Retirements,
    slow_calls: SlowCallWatches,
    narrowed: Narrowed,
    pub(super) agent_claims: Arc<Claims>,
    sampling: SamplingService,
    counting: CountingService,
    pub(super) standing: StandingRequests,
    ranges: Arc<CountedRanges>,
    /// The callback thread of buffers without one of their own.
    shared_thread: Mutex<SharedThread>,
    /// The thread numbers in use, a bit each.
    thread_numbers: [AtomicU32; THREADS / 32],
}

/// The kernels that some buffers exclude.
struct ExcludedKernels {
    /// The buffers that exclude kernels.
    buffers: AtomicU32,
    /// A bit for each excluded kernel.
    left_out: Box<[AtomicU64]>,
}

/// The number of kernels that can be excluded; later ones are always recorded.
const KERNELS: usize = 1 << 16;

impl ExcludedKernels {
    fn new() -> ExcludedKernels {
        ExcludedKernels {
            buffers: AtomicU32::new(0),
            left_out: (0..KERNELS / 64).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

/// The number of thread numbers.
const THREADS: usize = 1024;

/// The memory of the table on the hot path.
enum TableMemory {
    Own(Box<WantedTable>),
    /// The table of the process, which the kernel zeroes in forked children.
    Process(&'static WantedTable),
}

#[derive(Default)]
pub(super) struct SwitchboardState {
    /// The buffers with their incarnations.
    buffers: [Option<(u32, Buffer)>; BUFFERS],
    next_buffer: usize,
    last_incarnation: u32,
    pub(super) services: Services,
    threads: Vec<Weak<ThreadState>>,
    pub(super) subscribers: Subscribers,
}

impl SwitchboardState {
    /// Whether the buffer of `key` exists.
    fn has(&self, key: BufferKey) -> bool {
        let buffer = self.buffers[key.slot].as_ref();
        buffer.is_some_and(|(incarnation, _)| *incarnation == key.incarnation)
    }

    /// The threads that have not exited.
    pub(super) fn live_threads(&mut self) -> Vec<Arc<ThreadState>> {
        self.threads.retain(|thread| thread.strong_count() > 0);
        self.threads.iter().filter_map(Weak::upgrade).collect()
    }
}

/// The locked state. When it is unlocked, sources learn that the table has changed.
pub(super) struct StateGuard<'a> {
    board: &'a Switchboard,
    state: ManuallyDrop<QuietGuard<'a, SwitchboardState>>,
}

impl Deref for StateGuard<'_> {
    type Target = SwitchboardState;

    fn deref(&self) -> &SwitchboardState {
        &self.state
    }
}

impl DerefMut for StateGuard<'_> {
    fn deref_mut(&mut self) -> &mut SwitchboardState {
        &mut self.state
    }
}

impl Drop for StateGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: dropped here and nowhere else.
        unsafe { ManuallyDrop::drop(&mut self.state) };
        self.board.changes.pass_on();
    }
}

impl std::fmt::Debug for Switchboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Switchboard").finish_non_exhaustive()
    }
}

impl Switchboard {
    /// Creates a switchboard with its own table.
    pub fn new() -> Arc<Switchboard> {
        Self::with_table(TableMemory::Own(Box::new(WantedTable::new())))
    }

    /// Creates the switchboard of the process, whose table is zeroed.
    pub(crate) fn of_process(wanted: &'static WantedTable) -> Arc<Switchboard> {
        Self::with_table(TableMemory::Process(wanted))
    }

    fn with_table(table: TableMemory) -> Arc<Switchboard> {
        #[cfg(target_os = "linux")]
        gputrail_buffer::platform::sync::membarrier::register();
        let agent_claims = Arc::<Claims>::default();
        Arc::new(Switchboard {
            table,
            subscriptions: [const { AtomicPtr::new(std::ptr::null_mut()) }; SUBSCRIBERS],
            newest_subscription: AtomicU64::new(0),
            ids: Ids::default(),
            external: ExternalContexts::default(),
            names: Names::new(),
            call_stacks: CallStacks::default(),
            process: std::process::id(),
            state: PerProcess::new(),
            kernels: ExcludedKernels::new(),
            recovered: AtomicU32::new(0),
            flush_hooks: FlushHooks::default(),
            profiled: Mutex::default(),
            changes: Changes::default(),
            retirements: Retirements::default(),
            slow_calls: SlowCallWatches::default(),
            narrowed: Narrowed::default(),
            sampling: SamplingService::new(agent_claims.clone()),
            counting: CountingService::new(agent_claims.clone()),
            standing: StandingRequests::default(),
            ranges: Arc::default(),
            agent_claims,
            shared_thread: Mutex::default(),
            thread_numbers: [const { AtomicU32::new(0) }; THREADS / 32],
        })
    }

    /// Whether it was made by a process that the calling one was forked from: its buffers' memory is not there.
    pub(crate) fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }

    #[inline]
    fn wanted(&self) -> &WantedTable {
        match &self.table {
            TableMemory::Own(wanted) => wanted,
            TableMemory::Process(wanted) => wanted,
        }
    }

    /// The current interest in calls of `operation`.
    #[inline]
    pub fn interest(&self, operation: Operation) -> Interest {
        self.wanted().operation(operation)
    }

    /// The buffers that currently want records of `kind`.
    #[inline]
    pub fn buffers_for(&self, kind: Kind) -> Buffers {
        self.wanted().kind(kind)
    }

    /// The buffers that currently want records of `kind` in `context`.
    #[inline]
    pub fn buffers_in(&self, kind: Kind, context: ContextId) -> Buffers {
        let wanted = self.buffers_for(kind);
        self.narrowed.buffers_in(wanted, kind, context)
    }

    /// The buffers that want records of `kind` in `context` from a call with this interest. Buffers that wanted the call
    /// get them even if their contexts were stopped in the middle of it.
    #[inline]
    pub fn buffers_of(&self, interest: Interest, kind: Kind, context: ContextId) -> Buffers {
        let now = self.buffers_in(kind, context);
        if self.narrowed.is_there() {
            now
        } else {
            now.or(interest.buffers().and(self.selected(kind)))
        }
    }

    /// The buffers that want records of `kind`, also those of stopped contexts.
    #[inline]
    pub fn selected(&self, kind: Kind) -> Buffers {
        self.wanted().selected(kind)
    }

    /// Marks the buffer in `slot` as recovered after the death of the process: calls in progress are written to its
    /// memory. Must be called before a service uses the buffer, which is never removed.
    pub(crate) fn is_recovered(&self, slot: usize) {
        let buffers = Interest::buffer(slot).buffers();
        self.recovered.fetch_or(buffers.0, Ordering::Relaxed);
    }

    /// The buffers to whose memory calls in progress are written.
    #[inline]
    pub(crate) fn recovered(&self) -> Buffers {
        Buffers(self.recovered.load(Ordering::Relaxed))
    }

    /// Excludes the dispatches of `kernel` from `buffers`.
    pub(crate) fn leave_out(&self, kernel: KernelId, buffers: Buffers) {
        if let Some(word) = self.kernels.left_out.get(kernel.0 as usize / 64) {
            word.fetch_or(1 << (kernel.0 % 64), Ordering::Relaxed);
            self.kernels.buffers.fetch_or(buffers.0, Ordering::Relaxed);
        }
    }

    /// The buffers that exclude `kernel`.
    #[inline]
    pub fn left_out(&self, kernel: KernelId) -> Buffers {
        let buffers = Buffers(self.kernels.buffers.load(Ordering::Relaxed));
        if buffers.is_none() {
            return buffers;
        }
        let word = self.kernels.left_out.get(kernel.0 as usize / 64);
        let bit = word.map_or(0, |word| {
            word.load(Ordering::Relaxed) >> (kernel.0 % 64) & 1
        });
        if bit != 0 { buffers } else { Buffers::NONE }
    }

    /// Whether the stacks of calls of `operation` are wanted.
    #[inline]
    pub(crate) fn wants_stack(&self, operation: Operation) -> bool {
        self.wanted().stack(operation)
    }

    /// Takes the stacks of calls.
    pub(crate) fn call_stacks(&self) -> &CallStacks {
        &self.call_stacks
    }

    /// The names store.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The PC sampling service.
    pub fn sampling(&self) -> &SamplingService {
        &self.sampling
    }

    /// The ranges that are counted.
    pub fn ranges(&self) -> &Arc<CountedRanges> {
        &self.ranges
    }

    /// The counter collection service.
    pub fn counting(&self) -> &CountingService {
        &self.counting
    }

    pub(crate) fn ids(&self) -> &Ids {
        &self.ids
    }

    /// The contexts with external ids of their own.
    #[inline(always)]
    pub(crate) fn external(&self) -> &ExternalContexts {
        &self.external
    }

    /// The calls whose work is counted, as they retire after it.
    #[inline]
    pub(crate) fn retirements(&self) -> &Retirements {
        &self.retirements
    }

    /// The watches for slow calls.
    #[inline]
    pub(crate) fn slow_calls(&self) -> &SlowCallWatches {
        &self.slow_calls
    }

    /// Counts calls that take at least this long, and calls `then` after each, on its thread.
    pub(crate) fn watch_slow_calls(
        &self,
        from: Duration,
        then: impl Fn() + Send + Sync + 'static,
    ) -> SlowCalls {
        let watched = self.slow_calls.watch(from, then);
        let state = self.state();
        self.publish(&state);
        watched
    }

    /// Registers a hook, which is called after each change of the table on the thread that made it. Several threads may
    /// call it at a time.
    pub fn on_change(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.changes.add(hook);
    }

    /// Registers a hook, which is called on the flushing thread. It must not wait for
    /// work, unless for [`Flush::Synchronized`].
    pub fn on_flush(&self, hook: impl Fn(Flush) + Send + Sync + 'static) {
        self.flush_hooks.add(hook);
    }

    /// The callback thread of buffers without one of their own, which exists as long as such buffers do.
    pub(crate) fn shared_thread(&self) -> std::io::Result<CallbackThread> {
        CallbackThread::shared(&self.shared_thread)
    }

    pub(super) fn state(&self) -> StateGuard<'_> {
        StateGuard {
            board: self,
            state: ManuallyDrop::new(self.state.lock()),
        }
    }

    /// Runs `work` while the switchboard is locked.
    #[cfg(test)]
    pub(crate) fn while_locked(&self, work: impl FnOnce()) {
        let _state = self.state();
        work();
    }

    fn opening(_: &SwitchboardState) -> Opening {
        // SAFETY: the state is locked, by the lock that protects the lanes of its threads.
        unsafe { Opening::locked() }
    }

    /// Adds `buffer`. Services determine its records.
    pub(crate) fn add_buffer(self: &Arc<Self>, buffer: Buffer) -> Result<BufferKey, TooMany> {
        let mut state = self.state();
        // In turn, so that a slot is not reused while work of its previous buffer is in flight.
        let slot = (0..BUFFERS)
            .map(|more| (state.next_buffer + more) % BUFFERS)
            .find(|slot| state.buffers[*slot].is_none())
            .ok_or(TooMany {
                what: "buffers",
                most: BUFFERS,
            })?;
        state.next_buffer = (slot + 1) % BUFFERS;
        let board = Arc::downgrade(self);
        buffer.reclaims_by(move || {
            if let Some(board) = board.upgrade() {
                board.reclaim_blocks(slot);
            }
        });
        state.last_incarnation = state.last_incarnation.wrapping_add(1);
        let incarnation = state.last_incarnation;
        state.buffers[slot] = Some((incarnation, buffer));
        Ok(BufferKey { slot, incarnation })
    }

    /// Removes the buffer from all services and threads. When this returns, no thread writes to it, and the records in
    /// its lanes are committed. Returns `None` if it was removed before.
    pub(crate) fn remove_buffer(&self, key: BufferKey) -> Option<Buffer> {
        if self.state().has(key) {
            self.standing.forget_to(key.slot);
            self.sampling.forget_buffer(key.slot);
            self.counting.forget_buffer(key.slot);
        }
        let mut state = self.state();
        if !state.has(key) {
            return None;
        }
        let (_, buffer) = state.buffers[key.slot].take()?;
        state.services.forget(ServiceConsumer::Buffer(key.slot));
        self.publish(&state);
        for _ in 0..self.retirements.forget_left(key.buffers()) {
            buffer.count_unlaned(Kind::RETIREMENT);
        }
        // Releases lanes that wait for an empty block.
        buffer.end();
        let opening = Self::opening(&state);
        let threads = state.live_threads();
        for thread in &threads {
            thread.lanes().close(key.slot, &opening);
        }
        if !fence_heavy() {
            // A thread may still take its lane for open: all lanes stay where they are, and keep their memory.
            return Some(buffer);
        }
        for thread in threads {
            // A lane whose thread does not leave it is leaked with its memory.
            drop(thread.lanes().take(key.slot, PATIENCE, &opening));
        }
        Some(buffer)
    }

    /// Has the idle lanes of the buffer in `slot` give their blocks to the collector, for a thread that waits for one. The
    /// calling thread may be in a lane.
    fn reclaim_blocks(&self, slot: usize) {
        // Whoever has the lock may wait for the calling thread's lane.
        if let Some(mut state) = self.state.try_lock() {
            Self::give_blocks_of(&mut state, slot);
        }
    }

    /// Has the lanes of the buffer give their blocks to the collector, however full they are. A lane in the middle of a
    /// write keeps its block.
    #[cold]
    pub(crate) fn give_blocks(&self, key: BufferKey) {
        let mut state = self.state();
        if state.has(key) {
            Self::give_blocks_of(&mut state, key.slot);
        }
    }

    fn give_blocks_of(state: &mut SwitchboardState, slot: usize) {
        let opening = Self::opening(state);
        let threads = state.live_threads();
        let paused: Vec<_> = threads
            .iter()
            .filter_map(|thread| Some((thread, thread.lanes().pause(slot, &opening)?)))
            .collect();
        let fenced = fence_heavy();
        for (thread, paused) in paused {
            thread.lanes().resume(paused, fenced, &opening);
        }
    }

    /// The existing buffers.
    pub(crate) fn buffers(&self) -> Buffers {
        let state = self.state();
        let there = (0..BUFFERS).filter(|slot| state.buffers[*slot].is_some());
        there.fold(Buffers::NONE, |all, slot| {
            all.or(Interest::buffer(slot).buffers())
        })
    }

    pub(crate) fn register(&self, thread: &Arc<ThreadState>) {
        let mut state = self.state();
        // Threads that have exited: their memory waits for this.
        if state.threads.len() == state.threads.capacity() {
            state.threads.retain(|thread| thread.strong_count() > 0);
        }
        state.threads.push(Arc::downgrade(thread));
    }

    /// Opens a lane for `thread` in the buffer of `slot` and adds it to `lanes`. Returns `false` if the buffer does not
    /// exist or has no free lane.
    #[cold]
    pub(crate) fn open_lane(
        &self,
        slot: usize,
        thread: ThreadId,
        prepare: impl FnOnce(&mut Lane),
        lanes: &mut gputrail_buffer::lanes::OwnLanes<BUFFERS>,
    ) -> bool {
        let state = self.state();
        let Some((_, buffer)) = &state.buffers[slot] else {
            return false;
        };
        let Some(mut lane) = buffer.lane(thread) else {
            return false;
        };
        prepare(&mut lane);
        let opening = Self::opening(&state);
        lanes.open(slot, lane, &opening);
        true
    }

    /// Counts a record of `kind` as dropped because there was no lane.
    pub fn count_unlaned(&self, buffers: Buffers, kind: Kind) {
        let state = self.state();
        for slot in buffers.slots() {
            if let Some((_, buffer)) = &state.buffers[slot] {
                buffer.count_unlaned(kind);
            }
        }
    }

    /// Counts a dropped record by the place that it names, in the buffer of `slot`, for a thread without a
    /// lane there.
    #[cold]
    pub(crate) fn count_drop_of(&self, slot: usize, place: QueuePlace) {
        if let Some((_, buffer)) = &self.state().buffers[slot] {
            buffer.count_drop_of(place);
        }
    }

    /// Counts a record of `kind` as dropped in every buffer that wants it.
    pub fn count_lost(&self, kind: Kind) {
        self.count_unlaned(self.buffers_for(kind), kind);
    }

    /// Whether this was not asked about `module` before.
    pub(crate) fn is_first_profile(&self, module: ModuleId) -> bool {
        lock_std(&self.profiled).insert(module)
    }

    /// A number below [`THREADS`] that no other thread has, or `None` if all are in use.
    pub(crate) fn take_thread_number(&self) -> Option<u32> {
        for (place, word) in self.thread_numbers.iter().enumerate() {
            let taken = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |taken| {
                (taken != u32::MAX).then(|| taken | 1 << taken.trailing_ones())
            });
            if let Ok(before) = taken {
                return Some(place as u32 * 32 + before.trailing_ones());
            }
        }
        None
    }

    pub(crate) fn give_thread_number(&self, number: u32) {
        if let Some(word) = self.thread_numbers.get(number as usize / 32) {
            word.fetch_and(!(1 << (number % 32)), Ordering::AcqRel);
        }
    }

    /// Computes the table.
    pub(super) fn publish(&self, state: &SwitchboardState) {
        let narrowed = state.services.narrowed();
        let hears = self.slow_calls.are_there();
        state.services.publish_external(&self.external);
        state.services.publish(
            self.wanted(),
            &narrowed,
            self.recovered(),
            hears,
            self.external.buffers(),
        );
        self.narrowed.set(narrowed);
        let waits = self.buffers_for(Kind::OVERHEAD);
        for (slot, buffer) in state.buffers.iter().enumerate() {
            if let Some((_, buffer)) = buffer {
                buffer.report_waits(!waits.and(Interest::buffer(slot).buffers()).is_none());
            }
        }
        self.changes.note();
    }
}
