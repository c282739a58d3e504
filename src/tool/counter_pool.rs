//! Pools of entries that count one kernel each (ROCProfiler v1: context pools).
//!
//! A tool that [chooses the counters of each kernel](super::Context::count_chosen) fetches an empty entry where it chooses, and
//! gives the kernel to it. When the kernel has ended, the entry has its values, and the handler of the pool is called. A released
//! entry is empty, and is fetched again. So a program of any length is counted in the memory of a few entries.

use super::Error;
use super::callee::{self, Callee, HeldCallee};
use super::functions::{act, c_string, call, check};
use core::ffi::c_void;
use core::num::NonZeroU32;
use gputrail_interface::c::{
    CounterPoolEntry, CounterPoolHandle, CounterPoolOptions, CounterSetHandle, SizedStruct,
};
use gputrail_interface::counting::PoolOptions;
use gputrail_record::{AgentId, CounterValue};

type Handler = Box<dyn Fn(PoolEntry, &[CounterValue]) -> bool + Send + Sync>;

/// An entry of a pool, from its fetch to its release.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PoolEntry {
    pool: CounterPoolHandle,
    set: CounterSetHandle,
}

impl PoolEntry {
    fn of(entry: &CounterPoolEntry) -> PoolEntry {
        PoolEntry {
            pool: entry.pool,
            set: entry.set,
        }
    }

    fn data(self) -> CounterPoolEntry {
        CounterPoolEntry {
            pool: self.pool,
            set: self.set,
            payload: core::ptr::null_mut(),
        }
    }

    /// The entry as a set of counters, by which [`Context::count_chosen`](super::Context::count_chosen) gives a kernel to it.
    pub fn handle(self) -> CounterSetHandle {
        self.set
    }

    /// Empties the entry.
    ///
    /// # Errors
    ///
    /// `BUSY` while its kernel runs; `NO_SUCH_COUNTER_SET` if it has been released.
    pub fn release(self) -> Result<(), Error> {
        // SAFETY: an entry.
        check(unsafe { call!(gputrail_counter_pool_release(&self.data())) })
    }

    /// The values of its kernel, in the order of the names: none before it has ended.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_COUNTER_SET` if it has been released.
    pub fn values(self) -> Result<Vec<CounterValue>, Error> {
        let (entry, mut count) = (self.data(), 0);
        let none = core::ptr::null_mut();
        // SAFETY: an entry, no room, and a place for the number.
        let asked = unsafe { call!(gputrail_counter_pool_values(&entry, none, 0, &mut count)) };
        if check(asked).is_ok() {
            return Ok(Vec::new());
        }
        let mut values = vec![CounterValue::blank(); count];
        let (into, room) = (values.as_mut_ptr(), values.len());
        // SAFETY: an entry, room for as many values, and a place for the number.
        let asked = unsafe { call!(gputrail_counter_pool_values(&entry, into, room, &mut count)) };
        check(asked)?;
        values.truncate(count);
        Ok(values)
    }
}

/// A pool of entries. Dropping it closes it, unless kernels of its entries have not ended: destroy the context first.
#[derive(Debug)]
pub struct CounterPool(CounterPoolHandle);

impl CounterPool {
    /// Opens a pool whose entries count `names` on `agent`. `handler` is called when the kernel of an entry has ended; if it
    /// returns true, the entry is released. It stays in memory until the process ends, and is not called again if it panics.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` for a number of entries or passes that cannot be; as for
    /// [`CounterSet::new`](super::counting::CounterSet::new).
    pub fn open(
        agent: AgentId,
        names: &[&str],
        options: PoolOptions,
        handler: impl Fn(PoolEntry, &[CounterValue]) -> bool + Send + Sync + 'static,
    ) -> Result<CounterPool, Error> {
        unsafe extern "C-unwind" fn handle(
            entry: *const CounterPoolEntry,
            values: *const CounterValue,
            count: usize,
            callee: *mut c_void,
        ) -> i32 {
            // SAFETY: the library's entry, and what was given below, which lasts for ever.
            let (entry, callee) = unsafe { (&*entry, &*callee.cast::<Callee<Handler>>()) };
            // SAFETY: the library's values, as many as it says.
            let values = unsafe { core::slice::from_raw_parts(values, count) };
            let mut is_done = false;
            callee::call(&callee.failed, || {
                is_done = (callee.function)(PoolEntry::of(entry), values);
            });
            is_done.into()
        }
        let names = c_string(&names.join(","))?;
        let handler: Handler = Box::new(handler);
        let held = HeldCallee::new(handler);
        let number = |limit: Option<NonZeroU32>| limit.map_or(0, NonZeroU32::get);
        let asked = CounterPoolOptions {
            counters: names.as_ptr(),
            entries: options.entries,
            per_pass: number(options.per_pass),
            passes: number(options.passes),
            instances: number(options.instances),
            handler: Some(handle),
            user_data: held.pointer(),
            ..CounterPoolOptions::blank()
        };
        let mut pool = CounterPoolHandle::default();
        // SAFETY: options of that size, with a text that ends with a 0 and a function with its callee; a place for the handle.
        let opened = check(unsafe { call!(gputrail_counter_pool_open(agent, &asked, &mut pool)) });
        if let Err(error) = opened {
            // SAFETY: the library did not take it.
            unsafe { held.release() };
            return Err(error);
        }
        Ok(CounterPool(pool))
    }

    /// An empty entry. Also when a kernel's counters are chosen.
    ///
    /// # Errors
    ///
    /// `TOO_MANY` if all entries have been fetched.
    pub fn fetch(&self) -> Result<PoolEntry, Error> {
        let mut entry = PoolEntry {
            pool: self.0,
            set: CounterSetHandle::default(),
        }
        .data();
        // SAFETY: a place for the entry.
        check(unsafe { call!(gputrail_counter_pool_fetch(self.0, &mut entry)) })?;
        Ok(PoolEntry::of(&entry))
    }

    /// The entries that are fetched.
    ///
    /// # Errors
    ///
    /// `NOT_INITIALISED` after the tool's end.
    pub fn fetched(&self) -> Result<Vec<PoolEntry>, Error> {
        unsafe extern "C-unwind" fn visit(
            entry: *const CounterPoolEntry,
            into: *mut c_void,
        ) -> i32 {
            // SAFETY: the library's entry, and the list below.
            let (entry, into) = unsafe { (&*entry, &mut *into.cast::<Vec<PoolEntry>>()) };
            into.push(PoolEntry::of(entry));
            0
        }
        let mut all = Vec::<PoolEntry>::new();
        let into = (&raw mut all).cast();
        // SAFETY: a function of this type, with its list.
        check(unsafe { call!(gputrail_counter_pool_iterate(self.0, Some(visit), into)) })?;
        Ok(all)
    }

    /// Calls the handler for entries whose kernels have ended and that have not been released.
    ///
    /// # Errors
    ///
    /// `NOT_INITIALISED` after the tool's end.
    pub fn flush(&self) -> Result<(), Error> {
        act!(gputrail_counter_pool_flush(self.0))
    }
}

impl Drop for CounterPool {
    fn drop(&mut self) {
        // It stays open if kernels are in flight; the library may have ended.
        let _ = act!(gputrail_counter_pool_close(self.0));
    }
}
