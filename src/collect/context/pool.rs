//! Pools of entries that count one kernel each (ROCProfiler v1: context pools).
//!
//! A tool that [chooses the counters of each kernel](Context::count_chosen) fetches an empty entry where it chooses, and
//! gives the kernel to it. When the kernel has ended, the entry is completed: it has the kernel's values, and the handler of
//! the pool is called. A released entry is empty, and is fetched again. So a program of any length is counted in the memory
//! of a few entries.

use super::ToolError;
use crate::counting::{CounterSet, DispatchReadings};
use crate::process;
use crate::switchboard::Switchboard;
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_interface::counting::PoolOptions;
use gputrail_record::{AgentId, CorrelationId, CounterValue, WorkId};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The most entries of a pool.
pub const MAX_POOL_ENTRIES: u32 = 1 << 16;

/// An entry that has been fetched, until it is released.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolEntry {
    index: u32,
    /// The number of times that it has been fetched.
    uses: u64,
}

impl PoolEntry {
    /// Its place in the pool, below the number of entries. An entry that is fetched again has the same.
    pub fn index(self) -> u32 {
        self.index
    }
}

/// Why a pool could not be used as asked. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// A number of entries that no pool can have.
    #[error("a pool has 1 to {MAX_POOL_ENTRIES} entries, not {0}")]
    Entries(u32),
    /// The counters need more passes than the options allow.
    #[error("the counters need {passes} passes, and at most {most} are allowed")]
    Passes {
        /// The passes that they need.
        passes: usize,
        /// The most that are allowed.
        most: u32,
    },
    /// All entries have been fetched.
    #[error("all {0} entries of the pool have been fetched: release some, or open a larger pool")]
    Exhausted(u32),
    /// The entry is not fetched.
    #[error("the entry is not fetched: it has been released")]
    Released,
    /// The entry has been given a kernel already.
    #[error("the entry counts a kernel already: fetch one for each kernel")]
    Used,
    /// The kernel of the entry has not ended.
    #[error("the kernel of the entry has not ended")]
    InFlight,
    /// The service refused it.
    #[error(transparent)]
    Tool(#[from] ToolError),
}

/// The state of an entry.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
enum EntryState {
    /// Not fetched.
    #[default]
    Free,
    /// Fetched, without a kernel.
    Fetched,
    /// Its kernel has not ended.
    Counting,
    /// Its kernel has ended.
    Completed,
    /// Its kernel has ended, and the handler is being called.
    Handled,
}

#[derive(Default)]
struct EntrySlot {
    stage: EntryState,
    uses: u64,
    values: Vec<CounterValue>,
}

#[derive(Default)]
struct EntrySlots {
    all: Vec<EntrySlot>,
    /// The places of those that are free.
    free: Vec<u32>,
}

impl EntrySlots {
    fn of(&mut self, entry: PoolEntry) -> Result<&mut EntrySlot, PoolError> {
        let slot = self.all.get_mut(entry.index as usize);
        let fetched =
            |slot: &&mut EntrySlot| slot.uses == entry.uses && slot.stage != EntryState::Free;
        slot.filter(fetched).ok_or(PoolError::Released)
    }

    fn release(&mut self, entry: PoolEntry) -> Result<(), PoolError> {
        let slot = self.of(entry)?;
        if slot.stage == EntryState::Counting {
            return Err(PoolError::InFlight);
        }
        slot.stage = EntryState::Free;
        slot.values.clear();
        self.free.push(entry.index);
        Ok(())
    }
}

/// Called when the kernel of an entry has ended, with its values: none for a kernel that did not run or was not recorded. If
/// it returns true, the entry is released. Called on threads of the program, possibly on several at a time.
pub type PoolHandler = dyn Fn(PoolEntry, &[CounterValue]) -> bool + Send + Sync;

/// A pool of entries for one set of counters of one agent. All functions may be called on any thread, also in callbacks.
pub struct CounterPool {
    set: Arc<CounterSet>,
    slots: QuietMutex<EntrySlots>,
    handler: Box<PoolHandler>,
}

impl CounterPool {
    /// A pool of empty entries that count `names`.
    ///
    /// # Errors
    ///
    /// [`PoolError::Entries`], [`PoolError::Passes`]; as for [`Context::counter_set`](super::Context::counter_set).
    pub fn open(
        agent: AgentId,
        names: &[impl AsRef<str>],
        options: PoolOptions,
        handler: Box<PoolHandler>,
    ) -> Result<CounterPool, PoolError> {
        let board = process::begin_for_tool().ok_or(ToolError::NotAvailable)?;
        Self::on(board, agent, names, options, handler)
    }

    /// A pool for an agent of `board`.
    ///
    /// # Errors
    ///
    /// As for [`CounterPool::open`].
    pub fn on(
        board: &Arc<Switchboard>,
        agent: AgentId,
        names: &[impl AsRef<str>],
        options: PoolOptions,
        handler: Box<PoolHandler>,
    ) -> Result<CounterPool, PoolError> {
        let entries = options.entries;
        if !(1..=MAX_POOL_ENTRIES).contains(&entries) {
            return Err(PoolError::Entries(entries));
        }
        let set = board.counting().set(agent, names, options.per_pass);
        let set = set.map_err(ToolError::from)?;
        let passes = set.passes().len();
        if let Some(most) = options.passes.filter(|most| passes > most.get() as usize) {
            let most = most.get();
            return Err(PoolError::Passes { passes, most });
        }
        let set = (*set).clone().with_instances(options.instances);
        let slots = QuietMutex::<EntrySlots>::default();
        *slots.lock() = EntrySlots {
            all: std::iter::repeat_with(EntrySlot::default)
                .take(entries as usize)
                .collect(),
            free: (0..entries).rev().collect(),
        };
        Ok(CounterPool {
            set: Arc::new(set),
            slots,
            handler,
        })
    }

    /// The counters of each entry.
    pub fn set(&self) -> &Arc<CounterSet> {
        &self.set
    }

    /// An empty entry.
    ///
    /// # Errors
    ///
    /// [`PoolError::Exhausted`].
    pub fn fetch(&self) -> Result<PoolEntry, PoolError> {
        let mut slots = self.slots.lock();
        let Some(index) = slots.free.pop() else {
            return Err(PoolError::Exhausted(slots.all.len() as u32));
        };
        let slot = &mut slots.all[index as usize];
        slot.stage = EntryState::Fetched;
        slot.uses += 1;
        Ok(PoolEntry {
            index,
            uses: slot.uses,
        })
    }

    /// Empties an entry. Its values are gone.
    ///
    /// # Errors
    ///
    /// [`PoolError::Released`]; [`PoolError::InFlight`] while its kernel runs.
    pub fn release(&self, entry: PoolEntry) -> Result<(), PoolError> {
        self.slots.lock().release(entry)
    }

    /// The values of the entry's kernel, in the order of the names; `None` before it has ended.
    ///
    /// # Errors
    ///
    /// [`PoolError::Released`].
    pub fn values(&self, entry: PoolEntry) -> Result<Option<Vec<CounterValue>>, PoolError> {
        let mut slots = self.slots.lock();
        let slot = slots.of(entry)?;
        let has_ended = matches!(slot.stage, EntryState::Completed | EntryState::Handled);
        Ok(has_ended.then(|| slot.values.clone()))
    }

    /// The entries that are fetched.
    pub fn fetched(&self) -> Vec<PoolEntry> {
        self.those(|stage| stage != EntryState::Free)
    }

    /// Calls the handler for entries that are completed and not released, except those for which it is being called.
    pub fn flush(&self) {
        for entry in self.those(|stage| stage == EntryState::Completed) {
            self.handle(entry);
        }
    }

    /// Whether kernels of entries have not ended, or the handler is being called.
    pub fn is_busy(&self) -> bool {
        let busy = |stage| matches!(stage, EntryState::Counting | EntryState::Handled);
        !self.those(busy).is_empty()
    }

    fn those(&self, which: impl Fn(EntryState) -> bool) -> Vec<PoolEntry> {
        let slots = self.slots.lock();
        let all = slots.all.iter().zip(0..);
        all.filter(|(slot, _)| which(slot.stage))
            .map(|(slot, index)| PoolEntry {
                index,
                uses: slot.uses,
            })
            .collect()
    }

    /// Gives a kernel to an entry.
    fn begin(&self, entry: PoolEntry) -> Result<Arc<CounterSet>, PoolError> {
        let mut slots = self.slots.lock();
        let slot = slots.of(entry)?;
        match slot.stage {
            EntryState::Fetched => {
                slot.stage = EntryState::Counting;
                Ok(self.set.clone())
            }
            _ => Err(PoolError::Used),
        }
    }

    /// Completes an entry, whose kernel has ended.
    fn complete(&self, entry: PoolEntry, values: Vec<CounterValue>) {
        {
            let mut slots = self.slots.lock();
            let Ok(slot) = slots.of(entry) else {
                return;
            };
            (slot.stage, slot.values) = (EntryState::Completed, values);
        }
        self.handle(entry);
    }

    /// Calls the handler for a completed entry.
    fn handle(&self, entry: PoolEntry) {
        let values = {
            let mut slots = self.slots.lock();
            match slots.of(entry) {
                Ok(slot) if slot.stage == EntryState::Completed => {
                    slot.stage = EntryState::Handled;
                    slot.values.clone()
                }
                _ => return,
            }
        };
        /// Sets the stage after the handler, also if that panics.
        struct AfterHandler<'p>(&'p CounterPool, PoolEntry, bool);
        impl Drop for AfterHandler<'_> {
            fn drop(&mut self) {
                let AfterHandler(pool, entry, is_done) = *self;
                let mut slots = pool.slots.lock();
                // The handler may have released it.
                let Ok(slot) = slots.of(entry) else {
                    return;
                };
                slot.stage = EntryState::Completed;
                if is_done {
                    let _ = slots.release(entry);
                }
            }
        }
        let mut after = AfterHandler(self, entry, false);
        after.2 = (self.handler)(entry, &values);
    }
}

impl std::fmt::Debug for CounterPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CounterPool")
            .field("counters", &self.set.names())
            .finish_non_exhaustive()
    }
}

/// A kernel whose counters have been chosen, until it has ended: its entry, if it has one, and its values.
type Chosen = (Option<(Arc<CounterPool>, PoolEntry)>, Vec<CounterValue>);

/// The kernels in flight of a tool that chooses counters, with their entries: its
/// [`DispatchCounting`](crate::counting::DispatchCounting) passes on to it what that is told. When this is dropped,
/// entries whose kernels have not ended are completed without values.
#[derive(Default)]
pub struct PooledKernels(QuietMutex<ChosenKernels>);

#[derive(Default)]
struct ChosenKernels {
    /// Kernels whose work has not been told, by their calls. The kernels of one call end in their order.
    by_call: HashMap<CorrelationId, VecDeque<Chosen>>,
    by_work: HashMap<WorkId, Chosen>,
}

impl ChosenKernels {
    /// The kernel of a call or piece of work that ends next.
    fn of(&mut self, call: CorrelationId, work: WorkId) -> Option<&mut Chosen> {
        let known = self.by_work.get_mut(&work);
        known.or_else(|| self.by_call.get_mut(&call)?.front_mut())
    }

    fn take(&mut self, call: CorrelationId, work: WorkId) -> Option<Chosen> {
        if let Some(known) = self.by_work.remove(&work) {
            return Some(known);
        }
        let kernels = self.by_call.get_mut(&call)?;
        let kernel = kernels.pop_front();
        if kernels.is_empty() {
            self.by_call.remove(&call);
        }
        kernel
    }
}

impl PooledKernels {
    /// Gives the kernel of `call` to an entry, and returns its counters, which the tool chooses for it.
    ///
    /// # Errors
    ///
    /// [`PoolError::Released`], [`PoolError::Used`].
    pub fn choose(
        &self,
        call: CorrelationId,
        pool: &Arc<CounterPool>,
        entry: PoolEntry,
    ) -> Result<Arc<CounterSet>, PoolError> {
        let set = pool.begin(entry)?;
        self.add(call, Some((pool.clone(), entry)));
        Ok(set)
    }

    /// Notes that the tool chooses counters for a kernel of `call` without an entry.
    pub fn choose_without(&self, call: CorrelationId) {
        self.add(call, None);
    }

    fn add(&self, call: CorrelationId, entry: Option<(Arc<CounterPool>, PoolEntry)>) {
        let mut kernels = self.0.lock();
        let of_call = kernels.by_call.entry(call).or_default();
        of_call.push_back((entry, Vec::new()));
    }

    /// Notes the work of the kernel of `call` that was chosen for last.
    pub fn enqueued(&self, call: CorrelationId, work: WorkId) {
        let mut kernels = self.0.lock();
        let Some(of_call) = kernels.by_call.get_mut(&call) else {
            return;
        };
        let latest = of_call.pop_back();
        if of_call.is_empty() {
            kernels.by_call.remove(&call);
        }
        if let Some(latest) = latest {
            kernels.by_work.insert(work, latest);
        }
    }

    /// Notes the values of a kernel.
    pub fn counted(&self, values: &[CounterValue]) {
        let Some(first) = values.first() else {
            return;
        };
        let mut kernels = self.0.lock();
        if let Some((Some(_), kept)) = kernels.of(first.correlation, first.work) {
            *kept = values.to_vec();
        }
    }

    /// Completes the entry of a kernel that has ended.
    pub fn measured(&self, dispatch: &DispatchReadings) {
        self.end(dispatch.call, dispatch.work);
    }

    /// Completes the entry of a kernel that does not run.
    pub fn abandoned(&self, call: CorrelationId, work: WorkId) {
        self.end(call, work);
    }

    fn end(&self, call: CorrelationId, work: WorkId) {
        let kernel = self.0.lock().take(call, work);
        if let Some((Some((pool, entry)), values)) = kernel {
            pool.complete(entry, values);
        }
    }
}

impl Drop for PooledKernels {
    fn drop(&mut self) {
        let ChosenKernels { by_call, by_work } = std::mem::take(&mut *self.0.lock());
        let all = by_call.into_values().flatten().chain(by_work.into_values());
        for (entry, values) in all {
            if let Some((pool, entry)) = entry {
                pool.complete(entry, values);
            }
        }
    }
}

impl std::fmt::Debug for PooledKernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PooledKernels")
    }
}
