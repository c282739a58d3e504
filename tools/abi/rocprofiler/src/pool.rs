//! Pools of contexts with the same features, each with memory for the program.

use crate::context::{CONTEXTS, Context, Theirs, Told, handle, names};
use crate::errors::callee;
use crate::types::{
    Answer, Failure, Feature, Handle, PoolEntry, PoolProperties, PoolVisitor, Status,
};
use crate::within;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use gputrail_abi::{Handles, lock};
use gputrail_record::AgentId;
use std::sync::{Arc, Mutex};

/// The most entries of a pool.
const MOST_ENTRIES: u32 = 1 << 16;
/// The most bytes of all payloads of a pool.
const MOST_BYTES: usize = 1 << 30;

/// The pools that are open.
static POOLS: Handles<Pool> = Handles::new();

/// The state of an entry.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Stage {
    Free,
    /// Fetched, and its kernel has not ended.
    Fetched,
    /// Its kernel has ended.
    Completed,
    /// Its kernel has ended, and the handler is being called.
    Handled,
}

/// A part of a payload, with its alignment.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Unit([u8; 16]);

/// A pool.
pub struct Pool {
    number: usize,
    contexts: Vec<Arc<Context>>,
    stages: Mutex<Vec<Stage>>,
    payloads: Box<[UnsafeCell<Unit>]>,
    /// The units of the payload of an entry.
    units: usize,
    properties: PoolProperties,
    arg: Theirs<c_void>,
}

// SAFETY: payloads are written while their entry is free, by the one thread that fetches it, and otherwise by the program;
// the properties are a function of the program's and its argument, which it expects on any thread.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// Opens a pool, and returns its handle.
    ///
    /// # Safety
    ///
    /// As for [`names`], and for [`Context::new`] until the pool is closed.
    pub unsafe fn open(
        agent: AgentId,
        (features, count): (*mut Feature, u32),
        modes: u32,
        properties: PoolProperties,
    ) -> Answer<Handle> {
        let entries = properties.num_entries;
        if !(1..=MOST_ENTRIES).contains(&entries) {
            let text = format!("a pool has 1 to {MOST_ENTRIES} entries, not {entries}");
            return Err(Failure::argument(text));
        }
        let units = (properties.payload_bytes as usize).div_ceil(size_of::<Unit>());
        let all = units.saturating_mul(entries as usize);
        if all > MOST_BYTES / size_of::<Unit>() {
            let text = format!("the payloads take more than {MOST_BYTES} bytes");
            return Err(Failure::argument(text));
        }
        let mut payloads = Vec::new();
        let room = payloads.try_reserve_exact(all);
        room.map_err(|_| Failure::new(Status::OUT_OF_RESOURCES, "there is no memory for it"))?;
        payloads.resize_with(all, || UnsafeCell::new(Unit([0; 16])));
        // SAFETY: `features` is null or leads to `count` features, whose names are null or end with a 0.
        let names = unsafe { names(features, count) }?;
        let mut failed = None;
        let pool = Arc::new_cyclic(|pool| {
            let mut contexts = Vec::new();
            for place in 0..entries as usize {
                let told = Told::Pool(pool.clone(), place);
                // SAFETY: `features` leads to as many features as `names` has, until the pool and with it this context is
                // closed.
                match unsafe { Context::new(agent, (features, names.clone()), modes, told) } {
                    Ok(context) => contexts.push(Arc::new(context)),
                    Err(failure) => {
                        failed = Some(failure);
                        break;
                    }
                }
            }
            Pool {
                number: Handles::<Pool>::number(),
                stages: Mutex::new(vec![Stage::Free; contexts.len()]),
                contexts,
                payloads: payloads.into_boxed_slice(),
                units,
                arg: Theirs(properties.handler_arg),
                properties,
            }
        });
        if let Some(failure) = failed {
            return Err(failure);
        }
        for context in &pool.contexts {
            context.clone().register();
        }
        let number = pool.number;
        POOLS.add(number, pool);
        Ok(handle(number))
    }

    /// The pool of a handle.
    pub fn found(pool: Handle) -> Answer<Arc<Pool>> {
        if pool.is_null() {
            return Err(Failure::null("the pool"));
        }
        let found = POOLS.get(pool.addr());
        found.ok_or_else(|| Failure::argument("this is no pool that is open"))
    }

    /// Closes the pool, unless kernels of its entries have not ended.
    pub fn close(&self) -> Answer {
        let handled = lock(&self.stages).contains(&Stage::Handled);
        if handled || self.contexts.iter().any(|context| context.is_running()) {
            let text = "kernels of the pool's entries have not ended, or its handler is running";
            return Err(Failure::state(text));
        }
        let known = POOLS.remove(self.number);
        for context in &self.contexts {
            CONTEXTS.remove(context.handle().addr());
            context.close();
        }
        drop(known);
        Ok(())
    }

    fn entry(&self, place: usize) -> PoolEntry {
        let from = place * self.units;
        let payload = match self.payloads.get(from..from + self.units) {
            Some([first, ..]) => first.get().cast(),
            _ => std::ptr::null_mut(),
        };
        PoolEntry {
            context: self.contexts[place].handle(),
            payload,
        }
    }

    /// An empty entry.
    pub fn fetch(&self) -> Answer<PoolEntry> {
        let mut stages = lock(&self.stages);
        let free = stages.iter().position(|stage| *stage == Stage::Free);
        let place = free.ok_or_else(|| {
            let text = format!("all {} entries of the pool are fetched", stages.len());
            Failure::new(Status::OUT_OF_RESOURCES, text)
        })?;
        stages[place] = Stage::Fetched;
        let entry = self.entry(place);
        if !entry.payload.is_null() {
            // SAFETY: as many units lie there, and nobody has the entry yet.
            unsafe { entry.payload.cast::<Unit>().write_bytes(0, self.units) };
        }
        Ok(entry)
    }

    /// Empties the entry of a context.
    pub fn release(context: &Context) -> Answer {
        let Told::Pool(pool, place) = context.told() else {
            return Err(Failure::argument("the context is no entry of a pool"));
        };
        let gone = || Failure::argument("the pool is closed");
        pool.upgrade().ok_or_else(gone)?.empty(*place)
    }

    fn empty(&self, place: usize) -> Answer {
        let context = &self.contexts[place];
        let mut stages = lock(&self.stages);
        if stages[place] == Stage::Free {
            return Err(Failure::state("the entry is not fetched"));
        }
        if context.is_running() {
            return Err(Failure::state("the kernel of the entry has not ended"));
        }
        context.clear();
        stages[place] = Stage::Free;
        Ok(())
    }

    /// Changes the state of an entry, if it is `from`.
    fn turn(&self, place: usize, from: Stage, to: Stage) -> bool {
        let mut stages = lock(&self.stages);
        let is_it = stages[place] == from;
        if is_it {
            stages[place] = to;
        }
        is_it
    }

    /// The kernel of an entry has ended.
    pub fn ended(&self, place: usize) {
        if self.turn(place, Stage::Fetched, Stage::Completed) {
            self.handle(place);
        }
    }

    /// Calls the handler for an entry whose kernel has ended.
    fn handle(&self, place: usize) {
        let Some(handler) = self.properties.handler else {
            return;
        };
        let entry = self.entry(place);
        if !self.turn(place, Stage::Completed, Stage::Handled) {
            return;
        }
        let is_done = {
            let _within = within::enter();
            // SAFETY: the program's function for this, an entry and its argument.
            let call = || unsafe { handler(&raw const entry, self.arg.0) };
            callee("rocprofiler_pool_open", handler as *const ()).call(call)
        };
        // The handler may have released it, and it may have been fetched again.
        if self.turn(place, Stage::Handled, Stage::Completed) && is_done {
            // Nothing runs in it.
            let _ = self.empty(place);
        }
    }

    fn those(&self, which: impl Fn(Stage) -> bool) -> Vec<usize> {
        let stages = lock(&self.stages);
        let places = stages.iter().enumerate();
        places
            .filter(|(_, stage)| which(**stage))
            .map(|(place, _)| place)
            .collect()
    }

    /// Calls the handler for the entries whose kernels have ended and that have not been released.
    pub fn flush(&self) {
        for place in self.those(|stage| stage == Stage::Completed) {
            self.handle(place);
        }
    }

    /// Calls `visit` for the fetched entries, until it returns another status than success.
    ///
    /// # Safety
    ///
    /// `visit` does what its type says, with `data`.
    pub unsafe fn iterate(&self, visit: PoolVisitor, data: *mut c_void) -> Answer {
        for place in self.those(|stage| stage != Stage::Free) {
            let mut entry = self.entry(place);
            // SAFETY: `visit` takes an entry and `data`; the entry is our own and lives until it returns.
            let call = || unsafe { visit(&raw mut entry, data) };
            let status = callee("rocprofiler_pool_iterate", visit as *const ()).call(call);
            if status != Status::SUCCESS {
                return Err(Failure::new(status, "the callback ended the iteration"));
            }
        }
        Ok(())
    }
}
