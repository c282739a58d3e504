//! Counting dispatches.

use super::columns::readings;
use super::refusals::why;
use super::{CountedSet, CountingState, STATE};
use crate::rocm::dispatches::{self, DispatchedKernel};
use crate::rocm::objects::OBJECTS;
use crate::rocm::session::{Session, current_session};
use core::ffi::c_void;
use gputrail_buffer::platform::inside::contain;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::counting::values::Subject;
use gputrail_collect::counting::{Choice, CounterSet, DispatchReadings};
use gputrail_collect::process;
use gputrail_collect::switchboard::Buffers;
use gputrail_interface::counting::CountingMode;
use gputrail_record::{AgentId, CounterValue, KernelDispatch, KernelId, Nanos, WorkId};
use gputrail_rocprofiler::{
    CounterConfigId, CounterRecord, DispatchCountingData, KernelDispatchInfo, UserData,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the end of counting waits for the values of kernels that run.
const PATIENCE: Duration = Duration::from_secs(1);
/// Kernels that are counted and have not ended; more are not counted.
const MOST_PENDING: usize = 1 << 16;

/// A dispatch that is counted and has not ended.
pub(super) struct PendingDispatch {
    pub agent: AgentId,
    counted: CountedSet,
    kernel: DispatchedKernel,
    choice: Option<Choice>,
    /// Where the values go.
    buffers: Buffers,
}

/// The counters of a dispatch.
enum Wanted {
    Set(CountedSet),
    Chosen(Choice),
}

/// The SDK asks what to count of a dispatch, on the thread that enqueues it.
///
/// # Safety
///
/// The SDK calls it, with a place for the answer.
pub(super) unsafe extern "C" fn choose(
    data: DispatchCountingData,
    place: *mut CounterConfigId,
    _: *mut UserData,
    _: *mut c_void,
) {
    contain(|| {
        if let Some(session) = current_session()
            && let Some(config) = config_of(session, &data.dispatch_info)
            && !place.is_null()
        {
            // SAFETY: the SDK's place for the answer.
            unsafe { place.write(config) };
        }
    });
}

fn config_of(session: &Session, info: &KernelDispatchInfo) -> Option<CounterConfigId> {
    let agent = OBJECTS.lock().agent(info.agent_id);
    let (wanted, buffers) = {
        let state = STATE.lock();
        let one = state.agents.get(&agent)?;
        let delivery = one.started.filter(|_| one.mode == CountingMode::Dispatch)?;
        if state.pending.len() >= MOST_PENDING {
            return None;
        }
        let wanted = match (&one.choice, &one.counted) {
            (Some(choice), _) => Wanted::Chosen(choice.clone()),
            (None, Some(counted)) => Wanted::Set(counted.clone()),
            (None, None) => return None,
        };
        (wanted, delivery.buffers)
    };
    let thread = process::current()?;
    let kernel = thread.with(|host| {
        let noted = dispatches::note(host, info.dispatch_id, info.kernel_id);
        match noted.correlation.is_some() {
            true => noted,
            // Values of kernels whose calls nobody records have an id of their own.
            false => DispatchedKernel {
                correlation: host.new_correlation(),
                ..noted
            },
        }
    })?;
    let (counted, choice) = match wanted {
        Wanted::Set(counted) => (counted, None),
        Wanted::Chosen(choice) => {
            // The thread's state and the lock are not in use: the tool may call us.
            let set = choice.choose(&described(agent, info, &kernel))?;
            let Some(counted) = chosen(session, agent, &set) else {
                choice.abandoned(kernel.correlation, WorkId::NONE);
                return None;
            };
            choice.enqueued(kernel.correlation, kernel.work);
            (counted, Some(choice))
        }
    };
    let config = counted.config;
    let pending = PendingDispatch {
        agent,
        counted,
        kernel,
        choice,
        buffers,
    };
    STATE.lock().pending.insert(info.dispatch_id, pending);
    Some(config)
}

/// The set that a tool has chosen, as the SDK knows it.
fn chosen(session: &Session, agent: AgentId, set: &Arc<CounterSet>) -> Option<CountedSet> {
    let find = |state: &CountingState| {
        let chosen = &state.agents.get(&agent)?.chosen;
        let found = chosen.iter().find(|one| Arc::ptr_eq(&one.set, set));
        found.cloned()
    };
    let counters = {
        let state = STATE.lock();
        if let Some(known) = find(&state) {
            return Some(known);
        }
        state.agents.get(&agent)?.counters.clone()
    };
    let made = CountedSet::new(session, &counters, (agent, set), process::names()?);
    let mut state = STATE.lock();
    match made {
        Ok(made) => {
            let one = state.agents.get_mut(&agent)?;
            one.chosen.push(made.clone());
            Some(made)
        }
        Err(refused) => {
            let why = why(&session.sdk, refused);
            state.complain(&format!("ROCm: kernels are not counted: {why}"));
            None
        }
    }
}

/// A dispatch as a tool is told it that chooses its counters.
fn described(
    agent: AgentId,
    info: &KernelDispatchInfo,
    kernel: &DispatchedKernel,
) -> KernelDispatch {
    let loaded = OBJECTS.lock().kernel(info.kernel_id);
    let mut dispatch = KernelDispatch::blank();
    dispatch.work.correlation = kernel.correlation;
    dispatch.work.agent = agent;
    dispatch.kernel = loaded.map_or(KernelId::NONE, |loaded| loaded.id);
    let (grid, group) = (info.grid_size, info.workgroup_size);
    dispatch.grid = [grid.x, grid.y, grid.z].map(u64::from);
    dispatch.workgroup = [group.x, group.y, group.z];
    let declared = loaded.map_or(0, |loaded| loaded.local_memory);
    dispatch.static_local_memory = declared;
    dispatch.dynamic_local_memory = info.group_segment_size.saturating_sub(declared);
    dispatch.private_memory = info.private_segment_size;
    dispatch.dimensions = 3;
    dispatch
}

/// The SDK has counted a dispatch: it gives the values, on a thread of its own.
///
/// # Safety
///
/// The SDK calls it, with as many values as stated.
pub(super) unsafe extern "C" fn counted(
    data: DispatchCountingData,
    values: *mut CounterRecord,
    number: usize,
    _: UserData,
    _: *mut c_void,
) {
    contain(|| {
        let pending = STATE.lock().pending.remove(&data.dispatch_info.dispatch_id);
        let Some(pending) = pending else {
            return;
        };
        let values = match values.is_null() {
            true => &[],
            // SAFETY: the SDK gives this many values, which stay during the call.
            false => unsafe { core::slice::from_raw_parts(values, number) },
        };
        let duration = data.end_timestamp.checked_sub(data.start_timestamp);
        pending.write(values, duration.filter(|duration| *duration > 0));
    });
}

impl PendingDispatch {
    /// The kernel has ended: writes its values, and passes them to the tool that has chosen its counters.
    fn write(self, values: &[CounterRecord], duration: Option<u64>) {
        let PendingDispatch {
            counted,
            kernel,
            choice,
            buffers,
            ..
        } = self;
        let values = counted.columns.values(values);
        let subject = Subject {
            work: kernel.work,
            correlation: kernel.correlation,
            duration,
            ..Subject::default()
        };
        let records = counted.records.of_instances(&subject, &values);
        write_all(records.iter().map(|record| (buffers, *record)));
        if let Some(choice) = choice {
            choice.counted(&records);
            choice.measured(&DispatchReadings {
                call: kernel.correlation,
                work: kernel.work,
                duration: duration.map(Nanos),
                readings: readings(&counted.set, &values),
                properties: HashMap::new(),
            });
            write_all(choice.take_ready().into_iter());
        }
    }
}

/// Writes values, each to its buffers.
pub(super) fn write_all(values: impl Iterator<Item = (Buffers, CounterValue)>) {
    if let Some(thread) = process::current() {
        thread.with(|host: &mut HostThread| {
            for (buffers, value) in values {
                host.write_to(buffers, value);
            }
        });
    }
}

/// Waits, for a short time at most, until the dispatches that are counted on an agent have ended.
pub(super) fn wait(agent: AgentId) {
    let begin = Instant::now();
    let is_of_agent = |pending: &PendingDispatch| pending.agent == agent;
    while STATE.lock().pending.values().any(is_of_agent) {
        if begin.elapsed() > PATIENCE {
            return give_up(agent);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The values of the dispatches that are counted on an agent are not waited for any more.
fn give_up(agent: AgentId) {
    let missing: Vec<PendingDispatch> = {
        let mut state = STATE.lock();
        let pending = state.pending.extract_if(|_, one| one.agent == agent);
        pending.map(|(_, one)| one).collect()
    };
    STATE.lock().missing += missing.len() as u64;
    for pending in missing {
        if let Some(choice) = pending.choice {
            choice.abandoned(pending.kernel.correlation, pending.kernel.work);
        }
    }
}
