//! Pools of entries that count one kernel each.

use super::caller::Caller;
use super::kinds::list;
use super::library::{self, ChosenSet};
use super::owner::ToolPointer;
use super::pool::{Payloads, ToolPool};
use super::sized;
use super::status::FailedCall;
use super::text::given;
use super::time::in_nanos;
use super::{Answer, checked, done, place};
use core::ffi::c_void;
use core::num::NonZeroU32;
use gputrail_collect::context::{CounterPool, PoolEntry, PoolError};
use gputrail_interface::c::{
    CounterPoolEntry, CounterPoolHandle, CounterPoolOptions, CounterPoolVisitor, CounterSetHandle,
    Status,
};
use gputrail_interface::counting::PoolOptions;
use gputrail_record::{AgentId, CounterValue};
use std::sync::{Arc, Weak};

impl From<PoolError> for FailedCall {
    fn from(error: PoolError) -> FailedCall {
        let status = match error {
            PoolError::Entries(_) | PoolError::Passes { .. } => Status::INVALID_ARGUMENT,
            PoolError::Exhausted(_) => Status::TOO_MANY,
            PoolError::Released => Status::NO_SUCH_COUNTER_SET,
            PoolError::Used => Status::CONFLICT,
            PoolError::InFlight => Status::BUSY,
            PoolError::Tool(error) => return error.into(),
        };
        FailedCall::new(status, error.to_string())
    }
}

fn found(pool: CounterPoolHandle) -> Answer<Arc<ToolPool>> {
    library::state()?.counter_pools.get(pool.handle)
}

/// The handle of a fetched entry.
fn handle_of(pool: &ToolPool, entry: PoolEntry) -> Option<CounterSetHandle> {
    let state = library::state().ok()?;
    let is_it = |set: &ChosenSet| {
        let of = set.entry.as_ref();
        of.is_some_and(|(of, known)| {
            *known == entry && std::ptr::eq(of.as_ptr(), Arc::as_ptr(&pool.pool))
        })
    };
    let handle = state.counter_sets.find(is_it)?;
    Some(CounterSetHandle { handle })
}

/// Opens a pool of entries for the kernels of an agent (ROCProfiler v1: `rocprofiler_pool_open`). It counts by
/// `gputrail_context_count_chosen`: the function that chooses a kernel's counters fetches an entry and chooses its `set`.
///
/// Errors: `GPUTRAIL_INVALID_ARGUMENT` for 0 or more than 65536 entries, for payloads of more than 1 GiB together, and for
/// counters that need more passes than `passes`; as for `gputrail_counter_set_create`; `GPUTRAIL_OUT_OF_MEMORY`.
///
/// # Safety
///
/// `options` is null or leads to options, whose text is null or ends with a 0 and whose function is null or does what its
/// type says, with its user data, until the pool is closed; `pool` is null or a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_pool_open(
    agent: AgentId,
    options: *const CounterPoolOptions,
    pool: *mut CounterPoolHandle,
) -> Status {
    done(|| {
        // SAFETY: `pool` is null or a place for a handle (the caller's promise).
        let place = unsafe { place(pool, "pool") }?;
        drop(library::state()?);
        // SAFETY: `options` is null or leads to options of as many bytes as their size says (the caller's promise).
        let asked = unsafe { sized::read(options) }?;
        // SAFETY: the text in the options is null or ends with a 0 (the caller's promise); `names` is not used after this
        // call.
        let names = unsafe { given(asked.counters, "counters") }?;
        let names: Vec<&str> = names.split(',').collect();
        if names.iter().any(|name| name.trim().is_empty()) {
            let text = "counters: expected names with commas between them";
            return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
        }
        let options = PoolOptions {
            entries: asked.entries,
            per_pass: NonZeroU32::new(asked.per_pass),
            passes: NonZeroU32::new(asked.passes),
            instances: NonZeroU32::new(asked.instances),
        };
        let (caller, user_data) = (Caller::of_subscriber(), ToolPointer(asked.user_data));
        let handle = library::state()?.counter_pools.new_handle();
        let handle = CounterPoolHandle { handle };
        let handler = asked.handler;
        let handles = move |entry: PoolEntry, values: &[CounterValue]| {
            let (Some(handler), Ok(pool)) = (handler, found(handle)) else {
                return false;
            };
            let Some(set) = handle_of(&pool, entry) else {
                return false;
            };
            let told = pool.entry(entry, set);
            let shown: Vec<CounterValue> = values.iter().map(in_nanos).collect();
            let (first, count) = (shown.as_ptr(), shown.len());
            // SAFETY: a function of the tool's, which the tool gave for this, an entry, and as many values.
            let is_done =
                caller.run(|| unsafe { handler(&raw const told, first, count, user_data.get()) });
            if is_done != 0 {
                let _ =
                    library::state().and_then(|mut state| state.counter_sets.remove(set.handle));
            }
            is_done != 0
        };
        let opened = CounterPool::open(agent, &names, options, Box::new(handles))?;
        let opened = ToolPool {
            pool: Arc::new(opened),
            handle,
            payloads: Payloads::new(asked.entries, asked.payload_bytes)?,
        };
        let mut state = library::state()?;
        state.counter_pools.insert(handle.handle, Arc::new(opened));
        place.write(handle);
        Ok(())
    })
}

/// Closes a pool. Its entries and their payloads are gone.
///
/// Errors: `GPUTRAIL_BUSY` while kernels of entries have not ended or the handler is being called: stop and destroy the
/// context first; `GPUTRAIL_NO_SUCH_COUNTER_POOL`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_pool_close(pool: CounterPoolHandle) -> Status {
    done(|| {
        let opened = found(pool)?;
        if opened.pool.is_busy() {
            let text = "kernels of the pool's entries have not ended, or its handler is running";
            return Err(FailedCall::new(Status::BUSY, text));
        }
        let gone = {
            let mut state = library::state()?;
            let of_pool = |set: &ChosenSet| {
                let of = set.entry.as_ref();
                of.is_some_and(|(of, _)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(&opened.pool)))
            };
            let sets = state.counter_sets.take_if(of_pool);
            (state.counter_pools.remove(pool.handle)?, sets)
        };
        drop(gone);
        Ok(())
    })
}

/// Fetches an empty entry (ROCProfiler v1: `rocprofiler_pool_fetch`), also from within `gputrail_choose_function`.
///
/// Errors: `GPUTRAIL_TOO_MANY` if all entries have been fetched; `GPUTRAIL_NO_SUCH_COUNTER_POOL`, `GPUTRAIL_NULL_POINTER`,
/// `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `entry` is null or a place for an entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_pool_fetch(
    pool: CounterPoolHandle,
    entry: *mut CounterPoolEntry,
) -> Status {
    done(|| {
        // SAFETY: `entry` is null or a place for an entry (the caller's promise).
        let place = unsafe { place(entry, "entry") }?;
        let opened = found(pool)?;
        let fetched = opened.pool.fetch()?;
        opened.payloads.clear(fetched);
        let set = ChosenSet {
            set: opened.pool.set().clone(),
            entry: Some((Arc::downgrade(&opened.pool), fetched)),
        };
        let mut state = library::state()?;
        let handle = state.counter_sets.new_handle();
        state.counter_sets.insert(handle, Arc::new(set));
        place.write(opened.entry(fetched, CounterSetHandle { handle }));
        Ok(())
    })
}

/// The pool and the entry of the caller's entry.
///
/// # Safety
///
/// `entry` is null, misaligned, or leads to an initialised entry, which nobody writes during the call.
unsafe fn entry_of(
    entry: *const CounterPoolEntry,
) -> Answer<(Arc<CounterPool>, PoolEntry, CounterSetHandle)> {
    checked(entry, "entry")?;
    // SAFETY: `checked` has refused null and misaligned pointers; otherwise `entry` leads to an initialised entry (the
    // caller's promise), any bytes of which are valid: its handles are looked up.
    let entry = unsafe { entry.read() };
    drop(found(entry.pool)?);
    let set = library::state()?.counter_sets.get(entry.set.handle)?;
    match set.entry.as_ref().map(|(pool, of)| (pool, *of)) {
        Some((pool, of)) => match Weak::upgrade(pool) {
            Some(pool) => Ok((pool, of, entry.set)),
            None => Err(Status::NO_SUCH_COUNTER_POOL.into()),
        },
        None => {
            let text = "the set of counters is not an entry of a pool";
            Err(FailedCall::new(Status::INVALID_ARGUMENT, text))
        }
    }
}

/// Empties an entry (ROCProfiler v1: `rocprofiler_pool_release`). It can be fetched again.
///
/// Errors: `GPUTRAIL_BUSY` while its kernel runs; `GPUTRAIL_NO_SUCH_COUNTER_SET` if it has been released,
/// `GPUTRAIL_NO_SUCH_COUNTER_POOL`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `entry` is null or leads to an entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_pool_release(entry: *const CounterPoolEntry) -> Status {
    done(|| {
        // SAFETY: `entry` is null or leads to an entry (the caller's promise).
        let (pool, of, set) = unsafe { entry_of(entry) }?;
        pool.release(of)?;
        drop(library::state()?.counter_sets.remove(set.handle)?);
        Ok(())
    })
}

/// The values of the kernel of an entry, in the order of the names: none before it has ended. As `gputrail_kinds`.
///
/// Errors: `GPUTRAIL_TOO_SMALL`, and as many as fit are written; `GPUTRAIL_NO_SUCH_COUNTER_SET` if the entry has been released,
/// `GPUTRAIL_NO_SUCH_COUNTER_POOL`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `entry` is null or leads to an entry; `values` is null or leads to room for `capacity` of them, `count` is null or a
/// place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_pool_values(
    entry: *const CounterPoolEntry,
    values: *mut CounterValue,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        // SAFETY: `entry` is null or leads to an entry (the caller's promise).
        let (pool, of, _) = unsafe { entry_of(entry) }?;
        let all = pool.values(of)?.unwrap_or_default();
        // SAFETY: `values` is null or has room for `capacity` values, `count` is null or a place for a number (the caller's
        // promises).
        unsafe { list(&all, values, capacity, count) }
    })
}

/// Calls `visit` for the entries that are fetched (ROCProfiler v1: `rocprofiler_pool_iterate`). It may release them.
///
/// Errors: `GPUTRAIL_NO_SUCH_COUNTER_POOL`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `visit` does what its type says, with `user_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_pool_iterate(
    pool: CounterPoolHandle,
    visit: CounterPoolVisitor,
    user_data: *mut c_void,
) -> Status {
    done(|| {
        let visit = visit.ok_or_else(|| FailedCall::new(Status::NULL_POINTER, "visit is null"))?;
        let opened = found(pool)?;
        for entry in opened.pool.fetched() {
            // Released meanwhile, or its fetch has not returned.
            let Some(set) = handle_of(&opened, entry) else {
                continue;
            };
            let told = opened.entry(entry, set);
            // SAFETY: the caller's function, an entry, and the caller's data.
            if unsafe { visit(&raw const told, user_data) } != 0 {
                break;
            }
        }
        Ok(())
    })
}

/// Calls the handler for entries whose kernels have ended and that have not been released (ROCProfiler v1:
/// `rocprofiler_pool_flush`). Does not wait for kernels.
///
/// Errors: `GPUTRAIL_NO_SUCH_COUNTER_POOL`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_pool_flush(pool: CounterPoolHandle) -> Status {
    done(|| {
        found(pool)?.pool.flush();
        Ok(())
    })
}
