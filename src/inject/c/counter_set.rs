//! Counters that a tool chooses for each kernel.

use super::caller::Caller;
use super::library::{self, ChosenSet};
use super::owner::ToolPointer;
use super::sized;
use super::status::FailedCall;
use super::text::given;
use super::time::in_nanos;
use super::{Answer, done, place};
use core::ffi::c_void;
use core::num::NonZeroU32;
use gputrail_collect::context::PooledKernels;
use gputrail_collect::counting::{CounterSet, DispatchCounting, DispatchReadings};
use gputrail_interface::c::{
    BufferHandle, ChooseFunction, ContextHandle, CountedFunction, CounterSetHandle,
    CounterSetOptions, Status,
};
use gputrail_record::{AgentId, CorrelationId, CounterValue, KernelDispatch, WorkId};
use std::sync::Arc;

/// Creates a set of counters and metrics that an agent can count for each kernel (rocprofiler-sdk: a counter configuration).
/// Also from within `gputrail_choose_function`.
///
/// Errors: `GPUTRAIL_NOT_FOUND` for an unknown counter, `GPUTRAIL_INVALID_ARGUMENT` for counters that need more passes than
/// the agent can do, `GPUTRAIL_COUNTERS_NOT_AVAILABLE` if the system does not allow
/// them, or the agent is read at a period now; `GPUTRAIL_NO_SUCH_AGENT`,
/// `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`; `GPUTRAIL_BUSY` from within a buffer's callback.
///
/// # Safety
///
/// `options` is null or leads to options, whose text is null or ends with a 0; `set` is null or a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_set_create(
    agent: AgentId,
    options: *const CounterSetOptions,
    set: *mut CounterSetHandle,
) -> Status {
    done(|| {
        // SAFETY: `set` is null or a place for a handle (the caller's promise).
        let place = unsafe { place(set, "set") }?;
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
        let counting = library::board()?.counting();
        let set = counting.set(agent, &names, NonZeroU32::new(asked.per_pass));
        let set = set.map_err(gputrail_collect::context::ToolError::from)?;
        let set = (*set)
            .clone()
            .with_instances(NonZeroU32::new(asked.instances))
            .with_each_instance(asked.each_instance != 0);
        let mut state = library::state()?;
        let handle = state.counter_sets.new_handle();
        let set = ChosenSet {
            set: Arc::new(set),
            entry: None,
        };
        state.counter_sets.insert(handle, Arc::new(set));
        place.write(CounterSetHandle { handle });
        Ok(())
    })
}

fn found(set: CounterSetHandle) -> Answer<Arc<ChosenSet>> {
    library::state()?.counter_sets.get(set.handle)
}

/// The number of passes of a kernel that a set needs.
///
/// Errors: `GPUTRAIL_NO_SUCH_COUNTER_SET`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `passes` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counter_set_passes(
    set: CounterSetHandle,
    passes: *mut u32,
) -> Status {
    done(|| {
        // SAFETY: `passes` is null or a place for a number (the caller's promise).
        let place = unsafe { place(passes, "passes") }?;
        place.write(found(set)?.set.passes().len() as u32);
        Ok(())
    })
}

/// Destroys a set. Kernels for which it has been chosen are counted.
///
/// Errors: `GPUTRAIL_INVALID_ARGUMENT` for an entry of a pool, which is released instead; `GPUTRAIL_NO_SUCH_COUNTER_SET`,
/// `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_counter_set_destroy(set: CounterSetHandle) -> Status {
    done(|| {
        if found(set)?.entry.is_some() {
            let text = "the set is an entry of a pool: release the entry";
            return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
        }
        let gone = library::state()?.counter_sets.remove(set.handle)?;
        drop(gone);
        Ok(())
    })
}

/// Configures counter collection with counters that `choose` chooses for each kernel of an agent. While the context is
/// started, the kernels of the agent run one after the other, and each one that is counted runs once for each pass. The
/// values go to `counted`, unless it is null, and to the buffer, as those of `gputrail_context_count` do. When
/// `gputrail_context_destroy` has returned, neither function is called any more.
///
/// Errors: as for `gputrail_context_count`, of what does not depend on the counters; `GPUTRAIL_NULL_POINTER` also if
/// `choose` is null.
///
/// # Safety
///
/// The functions do what their types say, with `user_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_context_count_chosen(
    context: ContextHandle,
    buffer: BufferHandle,
    agent: AgentId,
    choose: ChooseFunction,
    counted: CountedFunction,
    user_data: *mut c_void,
) -> Status {
    done(|| {
        let choose =
            choose.ok_or_else(|| FailedCall::new(Status::NULL_POINTER, "choose is null"))?;
        let (context, buffer) = (library::context(context)?, library::buffer(buffer)?);
        let tool = ToolFunctions {
            choose,
            counted,
            caller: Caller::of_subscriber(),
            user_data: ToolPointer(user_data),
            kernels: PooledKernels::default(),
        };
        Ok(context.count_chosen(&buffer, agent, Arc::new(tool))?)
    })
}

/// The tool's functions.
struct ToolFunctions {
    choose: unsafe extern "C-unwind" fn(*const KernelDispatch, *mut CounterSetHandle, *mut c_void),
    counted: CountedFunction,
    caller: Caller,
    user_data: ToolPointer,
    /// Those that run, with their entries of pools.
    kernels: PooledKernels,
}

impl DispatchCounting for ToolFunctions {
    fn choose(&self, dispatch: &KernelDispatch) -> Option<Arc<CounterSet>> {
        let mut set = CounterSetHandle::default();
        let shown = in_nanos(dispatch);
        let user_data = self.user_data.get();
        // SAFETY: a function of the tool's, which the tool gave for this, a record and a place for a handle.
        self.caller
            .run(|| unsafe { (self.choose)(&raw const shown, &raw mut set, user_data) });
        if set.handle == 0 {
            return None;
        }
        let (chosen, call) = (found(set).ok()?, dispatch.work.correlation);
        match &chosen.entry {
            Some((pool, entry)) => self.kernels.choose(call, &pool.upgrade()?, *entry).ok(),
            None => {
                self.kernels.choose_without(call);
                Some(chosen.set.clone())
            }
        }
    }

    fn enqueued(&self, call: CorrelationId, work: WorkId) {
        self.kernels.enqueued(call, work);
    }

    fn counted(&self, values: &[CounterValue]) {
        if let Some(counted) = self.counted {
            let user_data = self.user_data.get();
            let shown: Vec<CounterValue> = values.iter().map(in_nanos).collect();
            // SAFETY: a function of the tool's, which the tool gave for this, and as many values.
            self.caller
                .run(|| unsafe { counted(shown.as_ptr(), shown.len(), user_data) });
        }
        self.kernels.counted(values);
    }

    fn measured(&self, dispatch: &DispatchReadings) {
        self.kernels.measured(dispatch);
    }

    fn abandoned(&self, call: CorrelationId, work: WorkId) {
        self.kernels.abandoned(call, work);
    }
}
