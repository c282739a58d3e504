//! Counters of AMD's GPUs: of each dispatch, and of the device at a period, by the SDK's counting services.
//!
//! The SDK takes services only while it initialises us. One context counts dispatches for all agents: the SDK asks what to count of
//! each on the thread that enqueues it, and gives the values on a thread of its own when the kernel has ended (`dispatch`). It lets
//! kernels run one after the other meanwhile. Each agent that is read at a period has a context of its own, which a thread of ours starts,
//! reads and stops (`device`). `counters` has the names, `columns` the instances, `service` the SDK's functions, and `refusals` what
//! it refuses.
//!
//! All counters of a set fit one pass, which is all that the SDK has. The SDK is called without the lock.

mod columns;
mod counters;
mod device;
mod dispatch;
mod refusals;
mod service;

pub use counters::AgentCounters;

use super::agents::name_of;
use super::dispatches;
use super::requests;
use super::session::{SdkAgent, Session, current_session};
use columns::{Columns, names_of};
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_capture::names::Names;
use gputrail_collect::agents::{ConfigureError, Provider};
use gputrail_collect::counting::values::ValueRecords;
use gputrail_collect::counting::{
    Choice, Countable, CounterSet, CountingDelivery, CountingRequest,
};
use gputrail_collect::process;
use gputrail_counters::{Architecture, CounterLibrary, LibraryCounter, LibraryError};
use gputrail_interface::counting::CountingMode;
use gputrail_record::{AgentId, Nanos, count};
use gputrail_rocprofiler::{ContextId, CounterConfigId, DispatchId, Status};
use refusals::{report, why};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The shortest period: the SDK starts, reads and stops the counters once in each.
const SHORTEST_PERIOD: Nanos = Nanos(1_000_000);

static STATE: PerProcess<CountingState> = PerProcess::new();

/// The counting of this process.
#[derive(Default)]
struct CountingState {
    /// The context that counts dispatches.
    dispatches: Option<ContextId>,
    /// The contexts that count devices.
    devices: HashMap<AgentId, ContextId>,
    agents: HashMap<AgentId, CountedAgent>,
    /// Dispatches that are counted and have not ended.
    pending: HashMap<DispatchId, dispatch::PendingDispatch>,
    /// Dispatches whose values did not come.
    missing: u64,
    has_complained: bool,
}

/// An agent that is configured to be counted.
struct CountedAgent {
    sdk_agent: gputrail_rocprofiler::AgentId,
    counters: Arc<AgentCounters>,
    mode: CountingMode,
    /// The counters of all dispatches, or of the device; `None` if a tool chooses.
    counted: Option<CountedSet>,
    choice: Option<Choice>,
    /// The sets that a tool has chosen.
    chosen: Vec<CountedSet>,
    started: Option<CountingDelivery>,
    /// The number of the latest start, which threads that read a device compare.
    start: u64,
    /// The number of the start whose thread reads the device; 0 if none does.
    reader: u64,
    /// How often the thread that reads is asked to end the period early.
    flushes: u64,
    /// How often it has written.
    written: u64,
}

/// A set of counters that the SDK has been told.
#[derive(Clone)]
struct CountedSet {
    set: Arc<CounterSet>,
    config: CounterConfigId,
    columns: Arc<Columns>,
    records: Arc<ValueRecords>,
}

impl CountedSet {
    fn new(
        session: &Session,
        counters: &AgentCounters,
        (agent, set): (AgentId, &Arc<CounterSet>),
        names: &Names,
    ) -> Result<CountedSet, Status> {
        let records = ValueRecords::new(set.clone(), agent, HashMap::new(), names);
        Ok(CountedSet {
            config: counters.config(&names_of(set))?,
            columns: Arc::new(Columns::new(session.sdk, counters, set)),
            records: Arc::new(records),
            set: set.clone(),
        })
    }
}

impl CountingState {
    /// Says once what the matter is.
    fn complain(&mut self, text: &str) {
        if !std::mem::replace(&mut self.has_complained, true) {
            report(text);
        }
    }
}

/// An agent, as the counter collection service knows it.
struct CountedDevice {
    agent: AgentId,
    sdk_agent: gputrail_rocprofiler::AgentId,
    name: String,
    /// Its counters, once they have been asked for, or why it has none.
    possible: OnceLock<(Countable, Option<Arc<AgentCounters>>)>,
}

/// Offers a GPU to the counter collection service, and counts on it if the recording asks for that.
pub(super) fn offer(agent: AgentId, device: &SdkAgent) {
    let Some(board) = process::board() else {
        return;
    };
    let name = name_of(device).to_owned();
    let offered = Arc::new(CountedDevice {
        agent,
        sdk_agent: device.info.id,
        name: name.clone(),
        possible: OnceLock::new(),
    });
    board.counting().offer(agent, &name, offered);
    if let Some(recorder) = process::recorder()
        && let Err(error) = recorder.count(agent, &name)
    {
        report(&error.to_string());
    }
}

/// The process ends: writes the last values, and notes what is missing.
pub(super) fn end(session: &Session) {
    let (context, agents) = {
        let state = STATE.lock();
        let started = state.agents.iter().filter(|(_, one)| one.started.is_some());
        let agents: Vec<AgentId> = started.map(|(agent, _)| *agent).collect();
        (state.dispatches.filter(|_| !agents.is_empty()), agents)
    };
    if let Some(context) = context {
        let _ = session.sdk.switch(context, false);
    }
    for agent in agents {
        device::stop(agent);
        dispatch::wait(agent);
    }
    let missing = STATE.lock().missing;
    if missing > 0 {
        report(&format!(
            "ROCm: {} without values: they did not come before the end",
            count(missing, "kernel")
        ));
    }
}

/// A device that cannot be counted, for this reason.
#[derive(Debug)]
struct NoCounters {
    device: String,
    reason: String,
}

impl CounterLibrary for NoCounters {
    fn device(&self) -> &str {
        &self.device
    }

    fn define(&self, _: &str) -> Result<LibraryCounter, LibraryError> {
        Err(LibraryError::Failed(self.reason.clone()))
    }

    fn passes(&self, _: &[&str]) -> Result<usize, String> {
        Err(self.reason.clone())
    }
}

impl CountedDevice {
    fn possible(&self) -> &(Countable, Option<Arc<AgentCounters>>) {
        self.possible.get_or_init(|| {
            let read = match current_session() {
                Some(session) => AgentCounters::read(session.sdk, self.sdk_agent, &self.name),
                None => Err("rocprofiler-sdk is not in use in this process".to_owned()),
            };
            let counters = read.map(Arc::new);
            let architecture = match &counters {
                Ok(counters) => counters.clone().architecture(),
                Err(reason) => {
                    let none = NoCounters {
                        device: self.name.clone(),
                        reason: reason.clone(),
                    };
                    Architecture::of_library(Vec::new(), Arc::new(none))
                }
            };
            let countable = Countable {
                architecture: Arc::new(architecture),
                dispatches: true,
                shortest_period: Some(SHORTEST_PERIOD),
                passes: 1,
                range_passes: 0,
                per_pass: None,
            };
            (countable, counters.ok())
        })
    }

    /// The context that counts what `mode` says, which is made while the SDK takes services.
    fn context(&self, session: &Session, mode: CountingMode) -> Result<ContextId, Status> {
        let known = {
            let state = STATE.lock();
            match mode {
                CountingMode::Device { .. } => state.devices.get(&self.agent).copied(),
                _ => state.dispatches,
            }
        };
        if let Some(context) = known {
            return Ok(context);
        }
        if !session.is_configuring() {
            return Err(Status::ERROR_CONFIGURATION_LOCKED);
        }
        let context = session.sdk.create_context()?;
        match mode {
            CountingMode::Device { .. } => {
                session
                    .sdk
                    .count_device(context, self.sdk_agent, device::choose)?;
                STATE.lock().devices.insert(self.agent, context);
            }
            _ => {
                session
                    .sdk
                    .count_dispatches(context, dispatch::choose, dispatch::counted)?;
                // Notes the call of a dispatch that nobody records.
                let _ = session.sdk.request_external_ids(context, requests::answer);
                dispatches::open();
                STATE.lock().dispatches = Some(context);
            }
        }
        Ok(context)
    }
}

impl Provider<CountingRequest> for CountedDevice {
    fn configurations(&self) -> Vec<Countable> {
        vec![self.possible().0.clone()]
    }

    fn check(&self, request: &CountingRequest) -> Result<(), ConfigureError> {
        let Some(session) = current_session() else {
            return Ok(());
        };
        let state = STATE.lock();
        let is_known = match request.mode {
            CountingMode::Device { .. } => state.devices.contains_key(&self.agent),
            _ => state.dispatches.is_some(),
        };
        match is_known || session.is_configuring() {
            true => Ok(()),
            false => {
                let text = why(&session.sdk, Status::ERROR_CONFIGURATION_LOCKED);
                Err(ConfigureError::System(text))
            }
        }
    }

    fn configure(&self, request: &CountingRequest) -> Result<(), ConfigureError> {
        let text = |text: &str| ConfigureError::System(text.to_owned());
        let (Some(session), Some(names)) = (current_session(), process::names()) else {
            return Err(text("rocprofiler-sdk is not in use in this process"));
        };
        let Some(counters) = self.possible().1.clone() else {
            return Err(text("rocprofiler-sdk has no counters of it"));
        };
        let refused = |refused| ConfigureError::System(why(&session.sdk, refused));
        self.context(session, request.mode).map_err(refused)?;
        let counted = match &request.choice {
            Some(_) => None,
            None => {
                let set = (self.agent, &request.set);
                Some(CountedSet::new(session, &counters, set, names).map_err(refused)?)
            }
        };
        let agent = CountedAgent {
            sdk_agent: self.sdk_agent,
            counters,
            mode: request.mode,
            counted,
            choice: request.choice.clone(),
            chosen: Vec::new(),
            started: None,
            start: 0,
            reader: 0,
            flushes: 0,
            written: 0,
        };
        STATE.lock().agents.insert(self.agent, agent);
        Ok(())
    }

    fn release(&self) {
        let released = STATE.lock().agents.remove(&self.agent);
        if let (Some(session), Some(released)) = (current_session(), released) {
            let sets = released.counted.iter().chain(&released.chosen);
            sets.for_each(|one| session.sdk.destroy_config(one.config));
        }
    }

    fn start(&self, to: CountingDelivery) {
        let Some(session) = current_session() else {
            return;
        };
        let (mode, starts) = {
            let mut state = STATE.lock();
            let is_of_dispatches =
                |one: &CountedAgent| one.started.is_some() && one.mode.is_of_dispatches();
            let is_started = state.agents.values().any(is_of_dispatches);
            let context = state.dispatches.filter(|_| !is_started);
            let Some(one) = state.agents.get_mut(&self.agent) else {
                return;
            };
            one.started = Some(to);
            (one.mode, context)
        };
        match (mode, starts) {
            (CountingMode::Device { period }, _) => device::start(self.agent, period),
            (_, Some(context)) => {
                if let Err(refused) = session.sdk.switch(context, true) {
                    let why = why(&session.sdk, refused);
                    let text = format!("ROCm: kernels are not counted: {why}");
                    STATE.lock().complain(&text);
                }
            }
            (_, None) => {}
        }
    }

    fn stop(&self) {
        device::stop(self.agent);
        let context = {
            let mut state = STATE.lock();
            if let Some(one) = state.agents.get_mut(&self.agent) {
                one.started = None;
            }
            let is_of_dispatches =
                |one: &CountedAgent| one.started.is_some() && one.mode.is_of_dispatches();
            let is_last = !state.agents.values().any(is_of_dispatches);
            state.dispatches.filter(|_| is_last)
        };
        if let (Some(session), Some(context)) = (current_session(), context) {
            // CONTEXT_NOT_FOUND: it was not started.
            let _ = session.sdk.switch(context, false);
        }
        dispatch::wait(self.agent);
    }

    fn flush(&self) {
        device::flush(self.agent);
    }
}
