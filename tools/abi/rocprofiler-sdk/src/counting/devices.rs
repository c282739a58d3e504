//! Device counting: the counters of agents from when a context is started.
//!
//! When a context is started, each of its agents' callbacks is called and may set what the agent counts; an agent of which nothing is
//! set counts nothing. A sample has, for each instance of each counter, what has been counted since the start, and metrics of that.
//! Contexts with different agents count at a time; a second one with an agent that counts is `CONTEXT_CONFLICT`. One context of
//! gputrail counts for all: it reads the agents at a period that a sample ends.
//!
//! Samples are read before the function returns, also with the flag `ASYNC`. Of a processor, what has been counted is what the threads
//! of the program's kernels did.
//!
//! | status of `sample` | reason |
//! |---|---|
//! | `CONTEXT_NOT_FOUND`, `CONTEXT_NOT_STARTED` | no context; it is not started |
//! | `CONTEXT_INVALID` | the context counts no agents |
//! | `CONTEXT_ERROR` | it is being started, stopped or sampled by another thread; or within a callback of a dispatch |
//! | `INVALID_ARGUMENT` | a place for records without their number, or with `ASYNC` |
//! | `OUT_OF_RESOURCES` | less room than records, whose number is told |
//! | `FINALIZED` | clients have been finalized |

use super::configs::{Config, config};
use super::readings::Totals;
use super::{dispatches, failed};
use crate::context::{self, AgentService};
use crate::place::place_of;
use crate::result::{Answer, api};
use crate::{agents, buffer, load, sampling};
use core::ffi::c_void;
use gputrail_abi::counting::{Counts, Engine, Way};
use gputrail_abi::{WithData, lock};
use gputrail_record::CounterValue;
use gputrail_rocprofiler::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

/// States of a context's counting.
const STOPPED: u8 = 0;
const CHANGING: u8 = 1;
const STARTED: u8 = 2;

/// An agent of a context.
struct CountedAgent {
    agent: AgentId,
    chooser: WithData<DeviceCountingCallback>,
    buffer: Option<Arc<buffer::Buffer>>,
    /// Its set of counters, while the context is started or being started.
    config: Option<Arc<Config>>,
    totals: Totals,
}

/// The counting of a context.
struct Devices {
    context: ContextId,
    state: AtomicU8,
    /// Held while it is started, stopped or sampled.
    change: Mutex<()>,
    agents: Mutex<Vec<CountedAgent>>,
}

/// The contexts that count agents.
static DEVICES: Mutex<Vec<Arc<Devices>>> = Mutex::new(Vec::new());

fn of_context(context: ContextId) -> Option<Arc<Devices>> {
    let devices = lock(&DEVICES);
    devices.iter().find(|one| one.context == context).cloned()
}

/// Whether a context counts agents.
pub fn is_configured(context: ContextId) -> bool {
    of_context(context).is_some()
}

/// The agents of contexts as those for whom gputrail counts.
#[derive(Clone)]
struct Agents;

impl Counts for Agents {
    fn period(&self, value: &CounterValue) {
        let devices = lock(&DEVICES).clone();
        for device in devices {
            for agent in lock(&device.agents).iter_mut() {
                let config = agent.config.as_ref();
                if config.is_some_and(|config| config.device == value.agent) {
                    agent.totals.add(value);
                }
            }
        }
    }
}

/// The engine. It is locked during calls of gputrail's, and never by callbacks.
static ENGINE: Mutex<Engine<Agents>> = Mutex::new(Engine::new(Agents));

/// Counts what the started contexts need.
fn update() -> Answer {
    let mut engine = lock(&ENGINE);
    let mut names = BTreeMap::<_, Vec<_>>::new();
    let devices = lock(&DEVICES).clone();
    for device in devices {
        for agent in lock(&device.agents).iter() {
            if let Some(config) = &agent.config {
                let of_agent = names.entry(config.device).or_default();
                of_agent.append(&mut Totals::names(config));
            }
        }
    }
    let of = |(agent, names)| (agent, Way::Always(names));
    let ways = names.into_iter().map(of).collect();
    if engine.ways() != ways {
        // Periods begin anew: what is counted before a context is started is not its own.
        engine.stop();
    }
    engine.change(&ways).map_err(failed)
}

/// Sets what an agent counts: within its callback, while its context is being started.
unsafe extern "C" fn set_config(context: ContextId, id: CounterConfigId) -> Status {
    api(|| {
        context::found(context).map_err(|_| Status::ERROR_CONTEXT_INVALID)?;
        let config = config(id)?;
        let devices = of_context(context).ok_or(Status::ERROR_CONTEXT_INVALID)?;
        if devices.state.load(Ordering::Acquire) != CHANGING {
            return Err(Status::ERROR_CONFIGURATION_LOCKED);
        }
        let mut agents = lock(&devices.agents);
        let mut agents = agents.iter_mut();
        let agent = agents.find(|one| one.agent == config.agent);
        agent.ok_or(Status::ERROR_AGENT_MISMATCH)?.config = Some(config);
        Ok(())
    })
}

impl Devices {
    /// Calls the client for each agent.
    fn choose(&self) {
        let choosers: Vec<(AgentId, WithData<DeviceCountingCallback>)> = {
            let mut agents = lock(&self.agents);
            let agents = agents.iter_mut();
            let begun = agents.map(|one| {
                (one.config, one.totals) = (None, Totals::default());
                (one.agent, one.chooser)
            });
            begun.collect()
        };
        for (agent, chooser) in choosers {
            // SAFETY: the client's function for this, with its data.
            unsafe { (chooser.function)(self.context, agent, Some(set_config), chooser.data) };
        }
    }

    /// The agents of which something is counted.
    fn counted(&self) -> Vec<AgentId> {
        let agents = lock(&self.agents);
        let counted = agents.iter().filter(|one| one.config.is_some());
        counted.map(|one| one.agent).collect()
    }

    /// Whether an agent is counted by another context.
    fn is_elsewhere(&self) -> bool {
        let own = self.counted();
        let others = lock(&DEVICES).clone();
        let others = others.iter().filter(|one| one.context != self.context);
        let mut elsewhere = others.flat_map(|other| other.counted());
        elsewhere.any(|agent| own.contains(&agent))
    }

    fn forget(&self) {
        for agent in lock(&self.agents).iter_mut() {
            agent.config = None;
        }
    }
}

impl AgentService for Devices {
    fn start(&self) -> Answer {
        let _change = lock(&self.change);
        self.state.store(CHANGING, Ordering::Release);
        self.choose();
        let begun = match self.is_elsewhere() {
            true => Err(Status::ERROR_CONTEXT_CONFLICT),
            false => update(),
        };
        if begun.is_err() {
            self.forget();
            let _ = update();
        }
        let state = if begun.is_ok() { STARTED } else { STOPPED };
        self.state.store(state, Ordering::Release);
        begun
    }

    fn stop(&self) {
        let _change = lock(&self.change);
        self.state.store(STOPPED, Ordering::Release);
        self.forget();
        // The counters of other contexts go on, or have failed already.
        let _ = update();
    }

    // Samples alone put records.
    fn collect(&self) -> bool {
        true
    }
}

/// Has an agent counted while a context is started: `callback` sets what, when it is. A buffer of handle 0 is none.
///
/// `CONTEXT_INVALID`, `BUFFER_NOT_FOUND`, `AGENT_NOT_FOUND`; `AGENT_ARCH_NOT_SUPPORTED` for the host; `INVALID_ARGUMENT` without a
/// callback, and for an agent that the context counts already; `AGENT_DISPATCH_CONFLICT` if the context counts dispatches,
/// `CONTEXT_CONFLICT` if it samples.
///
/// # Safety
///
/// `callback` does what its type says, with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_device_counting_service(
    context: ContextId,
    buffer: BufferId,
    agent: AgentId,
    callback: Option<DeviceCountingCallback>,
    data: *mut c_void,
) -> Status {
    api(|| {
        let function = callback.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
        let of = context::found(context).map_err(|_| Status::ERROR_CONTEXT_INVALID)?;
        if dispatches::is_configured(context) {
            return Err(Status::ERROR_AGENT_DISPATCH_CONFLICT);
        }
        if sampling::is_configured(context) {
            return Err(Status::ERROR_CONTEXT_CONFLICT);
        }
        let buffer = match buffer.handle {
            0 => None,
            _ => Some(buffer::found(buffer)?),
        };
        if agent == agents::host() {
            return Err(Status::ERROR_AGENT_ARCH_NOT_SUPPORTED);
        }
        agents::of_id(agent)?;
        let counted = CountedAgent {
            agent,
            chooser: WithData { function, data },
            buffer,
            config: None,
            totals: Totals::default(),
        };
        if let Some(known) = of_context(context) {
            let mut agents = lock(&known.agents);
            if agents.iter().any(|one| one.agent == agent) {
                return Err(Status::ERROR_INVALID_ARGUMENT);
            }
            agents.push(counted);
            return Ok(());
        }
        let new = Arc::new(Devices {
            context,
            state: AtomicU8::new(STOPPED),
            change: Mutex::default(),
            agents: Mutex::new(vec![counted]),
        });
        lock(&DEVICES).push(new.clone());
        lock(&of.services).agents.push(new);
        Ok(())
    })
}

/// The values of all agents of a context, which go to their buffers, too.
fn sample(devices: &Devices, user_data: UserData) -> Answer<Vec<CounterRecord>> {
    let _change = match devices.change.try_lock() {
        Ok(change) => change,
        Err(TryLockError::Poisoned(change)) => change.into_inner(),
        Err(TryLockError::WouldBlock) => return Err(Status::ERROR_CONTEXT_ERROR),
    };
    if devices.state.load(Ordering::Acquire) != STARTED {
        return Err(Status::ERROR_CONTEXT_NOT_STARTED);
    }
    let flushed = lock(&ENGINE).flush().map_err(failed);
    let mut records = Vec::new();
    for agent in lock(&devices.agents).iter() {
        if let Some(config) = agent.config.as_ref().filter(|_| flushed.is_ok()) {
            let of_agent = agent.totals.records(config, user_data);
            if let Some(buffer) = &agent.buffer {
                for record in &of_agent {
                    let kind = CounterRecordKind::VALUE;
                    buffer.put(BufferCategory::COUNTERS, kind.0, record);
                }
            }
            records.extend(of_agent);
        }
    }
    flushed.map(|()| records)
}

/// Reads what the agents of a context have counted. The records, with `user_data`, go to the buffers of the agents, and to `records`
/// unless that is null.
///
/// # Safety
///
/// `count` is null or a place with a number; `records` is null or has room for that many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_sample_device_counting_service(
    context: ContextId,
    user_data: UserData,
    flags: CounterFlag,
    records: *mut CounterRecord,
    count: *mut usize,
) -> Status {
    api(|| {
        if context.handle == 0 {
            return Err(Status::ERROR_CONTEXT_NOT_FOUND);
        }
        if load::is_ending() {
            return Err(Status::ERROR_FINALIZED);
        }
        let started = context::found(context).is_ok_and(|context| context.is_started());
        if !started {
            return Err(Status::ERROR_CONTEXT_NOT_STARTED);
        }
        let devices = of_context(context).ok_or(Status::ERROR_CONTEXT_INVALID)?;
        if records.is_null() {
            sample(&devices, user_data)?;
            return Ok(());
        }
        // SAFETY: `count` is null or a place with a number.
        let place = unsafe { place_of(count) }?;
        if flags.0 & CounterFlag::ASYNC.0 != 0 {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
        let room = place.get();
        if room == 0 {
            return Err(Status::ERROR_OUT_OF_RESOURCES);
        }
        let all = sample(&devices, user_data)?;
        place.put(all.len());
        if all.len() > room {
            return Err(Status::ERROR_OUT_OF_RESOURCES);
        }
        // SAFETY: `records` has room for `room` records, which are as many at least.
        unsafe { core::ptr::copy_nonoverlapping(all.as_ptr(), records, all.len()) };
        Ok(())
    })
}
