//! The service: which agents can be sampled, who samples them, and when.
//!
//! It keeps rocprofiler-sdk's constraints: an agent has one configuration at a time, which is valid for as long as the
//! context that asked for it lives; another process may have taken the agent before; one context of a process has the
//! service, for any number of agents; it is not available under a debugger, and not beside counter collection.

use super::configuration::{Configuration, Possible, Request, SamplingPeriod, check};
use super::debugger;
use crate::collect::context::is_delivering;
use crate::collect::switchboard::{Buffers, ContextKey, Interest};
use crate::platform::sync::{QuietGuard, QuietMutex};
use crate::record::{AgentId, SamplingUnit};
use std::fmt;
use std::sync::Arc;

/// An agent that can be sampled: what a source has to offer. The service calls it from one thread at a time, never while
/// another call of a sampler is in progress, and never from within a buffer's callback, which may be what it waits for. A
/// sampler does not call the service back.
pub trait Sampler: Send + Sync {
    /// What the agent can do at this moment: if another process has configured it, that configuration alone. Nothing if it
    /// cannot be sampled.
    fn configurations(&self) -> Vec<Configuration>;

    /// Takes the agent for this process. `request` is one that [`Sampler::configurations`] allowed a moment ago.
    ///
    /// # Errors
    ///
    /// [`Refusal::Taken`] if another process has been quicker; [`Refusal::System`].
    fn configure(&self, request: &Request) -> Result<(), Refusal>;

    /// Gives it back. It is stopped.
    fn release(&self);

    /// Samples from now on. It is configured, and stopped.
    fn start(&self, to: Delivery);

    /// Samples no more. What the device holds is written to where the start said, or counted as dropped.
    fn stop(&self);

    /// Writes what the device holds. It is started.
    fn flush(&self);
}

/// Why an agent could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another process has configured it meanwhile.
    Taken,
    /// The system does not allow it: a sentence that says what to change.
    System(String),
}

/// What a tool gets of its samples. Either way it gets totals per dispatch
/// ([`SamplingTotals`](crate::record::SamplingTotals)).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Deliver {
    /// Each of them.
    #[default]
    Samples,
    /// Their numbers by dispatch, address and reason ([`SampleAggregate`](crate::record::SampleAggregate)).
    Aggregates,
}

/// Where the records of a started agent go.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The buffers: [`HostThread::write_to`](crate::collect::correlation::HostThread::write_to) takes them.
    pub buffers: Buffers,
    /// What is written.
    pub deliver: Deliver,
}

/// Sampling that was asked for and is not to be had. Messages name what is possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplingError {
    /// No agent has this id, or none that a source knows to sample.
    #[error(
        "no agent that can be asked about sampling has the id {0}; gputrail_sampling_agents lists them"
    )]
    UnknownAgent(AgentId),
    /// The agent cannot be sampled.
    #[error("{agent} cannot be sampled: `gputrail agents` says which can")]
    NotSupported {
        /// Its id and name.
        agent: String,
    },
    /// Not by this method, or not in this unit.
    #[error("{agent} cannot do {request}; it can do: {possible}")]
    Method {
        /// Its id and name.
        agent: String,
        /// What was asked for.
        request: Request,
        /// What it can do.
        possible: Possible,
    },
    /// The interval is out of range.
    #[error("{agent} cannot do {request}; it can do: {possible}")]
    Interval {
        /// Its id and name.
        agent: String,
        /// What was asked for.
        request: Request,
        /// What it can do by this method.
        possible: Possible,
    },
    /// The interval has to be a power of two.
    #[error(
        "{agent} cannot do {request}: intervals are powers of two, the nearest {below} and {above} {}",
        unit(request.unit)
    )]
    PowerOfTwo {
        /// Its id and name.
        agent: String,
        /// What was asked for.
        request: Request,
        /// The nearest shorter interval.
        below: u64,
        /// The nearest longer interval.
        above: u64,
    },
    /// It samples otherwise already: configured in this process, or meanwhile in another one (rocprofiler-sdk:
    /// `ROCPROFILER_STATUS_ERROR_NOT_AVAILABLE`). Asked again, the agent names that configuration alone.
    #[error("{agent} is configured already: {active}")]
    Taken {
        /// Its id and name.
        agent: String,
        /// Its configuration.
        active: Possible,
    },
    /// Another context of the process samples.
    #[error("another context of this process has the PC sampling service: only one can have it")]
    OtherContext,
    /// The context collects counters, which cannot be done together.
    #[error("the context collects counters: PC sampling and counter collection exclude each other")]
    Counters,
    /// The process is being debugged.
    #[error("PC sampling is not available under a debugger: process {tracer} traces this one")]
    Debugger {
        /// The process that does it.
        tracer: u32,
    },
    /// Asked from within a buffer's callback, which may be what a sampler waits for.
    #[error("busy: samplers are not to be had from within a buffer's callback")]
    Busy,
    /// CUPTI's configuration names no period.
    #[error(
        "no such sampling period: level {:?} and exponent {}; levels are min, low, mid, high, max, exponents 5 to 31, 0 \
         is not set", .0.level, .0.exponent
    )]
    Period(SamplingPeriod),
    /// The system does not allow it.
    #[error("{agent} cannot be sampled: {reason}")]
    System {
        /// Its id and name.
        agent: String,
        /// What is in the way, and what to change.
        reason: String,
    },
}

fn unit(unit: SamplingUnit) -> &'static str {
    unit.name().unwrap_or("units")
}

/// The sampling service of a process: of its switchboard.
#[derive(Default)]
pub struct Sampling {
    state: QuietMutex<State>,
    /// Held by whoever calls a sampler, which may wait for a tool that empties a buffer, and signals with it; taken before
    /// the state, which nobody holds meanwhile: sources that offer agents never wait.
    turn: QuietMutex<()>,
}

#[derive(Default)]
struct State {
    agents: Vec<Agent>,
    /// Contexts that collect counters.
    counting: Vec<ContextKey>,
}

struct Agent {
    id: AgentId,
    name: String,
    sampler: Arc<dyn Sampler>,
    service: Option<Service>,
}

/// What a context has configured of an agent.
struct Service {
    context: ContextKey,
    request: Request,
    delivery: Delivery,
    started: bool,
}

/// The turn to call samplers.
struct Turn<'a> {
    sampling: &'a Sampling,
    _held: QuietGuard<'a, ()>,
}

impl Agent {
    fn text(&self) -> String {
        format!("agent {} ({})", self.id, self.name)
    }
}

impl State {
    fn agent(&mut self, id: AgentId) -> Result<&mut Agent, SamplingError> {
        let found = self.agents.iter_mut().find(|agent| agent.id == id);
        found.ok_or(SamplingError::UnknownAgent(id))
    }

    fn services(&self) -> impl Iterator<Item = &Service> {
        self.agents
            .iter()
            .filter_map(|agent| agent.service.as_ref())
    }
}

impl Turn<'_> {
    /// What `agent` can do now, and what it is called.
    fn configurations(
        &self,
        agent: AgentId,
    ) -> Result<(Vec<Configuration>, String), SamplingError> {
        let (sampler, name) = {
            let mut state = self.sampling.state();
            let agent = state.agent(agent)?;
            if let Some(service) = &agent.service {
                return Ok((vec![Configuration::active(service.request)], agent.text()));
            }
            (agent.sampler.clone(), agent.text())
        };
        Ok((sampler.configurations(), name))
    }

    /// The samplers of those services that `change` makes something else of.
    fn changed(
        &self,
        mut change: impl FnMut(&mut Service) -> bool,
    ) -> Vec<(Arc<dyn Sampler>, Delivery)> {
        let mut state = self.sampling.state();
        let changed = state.agents.iter_mut().filter_map(|agent| {
            let service = agent.service.as_mut()?;
            change(service).then(|| (agent.sampler.clone(), service.delivery))
        });
        changed.collect()
    }

    fn stop(&self, which: impl Fn(&Service) -> bool) {
        let stops = |service: &mut Service| which(service) && std::mem::take(&mut service.started);
        for (sampler, _) in self.changed(stops) {
            sampler.stop();
        }
    }

    fn release(&self, which: impl Fn(&Service) -> bool) {
        self.stop(&which);
        for (sampler, _) in self.changed(|service| which(service)) {
            sampler.release();
        }
        for agent in &mut self.sampling.state().agents {
            agent.service.take_if(|service| which(service));
        }
    }
}

impl Sampling {
    fn state(&self) -> QuietGuard<'_, State> {
        self.state.lock()
    }

    fn turn(&self) -> Turn<'_> {
        Turn {
            sampling: self,
            _held: self.turn.lock(),
        }
    }

    /// The turn, for a tool that wants to know or to change something.
    fn ask(&self) -> Result<Turn<'_>, SamplingError> {
        if is_delivering() {
            return Err(SamplingError::Busy);
        }
        if let Some(tracer) = debugger::tracer() {
            return Err(SamplingError::Debugger { tracer });
        }
        Ok(self.turn())
    }

    /// A source offers `sampler` for one of its agents. A later offer for the same agent replaces one that nobody has
    /// configured.
    pub fn offer(&self, agent: AgentId, name: &str, sampler: Arc<dyn Sampler>) {
        let mut state = self.state();
        if let Ok(known) = state.agent(agent) {
            if known.service.is_none() {
                (known.name, known.sampler) = (name.to_owned(), sampler);
            }
            return;
        }
        state.agents.push(Agent {
            id: agent,
            name: name.to_owned(),
            sampler,
            service: None,
        });
    }

    /// The agents that a source has offered, by id.
    pub fn agents(&self) -> Vec<AgentId> {
        let mut agents: Vec<AgentId> = self.state().agents.iter().map(|agent| agent.id).collect();
        agents.sort_unstable();
        agents
    }

    /// Whether `context` samples.
    pub(crate) fn serves(&self, context: ContextKey) -> bool {
        self.state()
            .services()
            .any(|service| service.context == context)
    }

    /// What `agent` can do at this moment: once it is configured, only that; nothing where it cannot be sampled.
    ///
    /// # Errors
    ///
    /// [`SamplingError::UnknownAgent`]; [`SamplingError::Debugger`]; [`SamplingError::Busy`].
    pub fn configurations(&self, agent: AgentId) -> Result<Vec<Configuration>, SamplingError> {
        Ok(self.ask()?.configurations(agent)?.0)
    }

    /// What CUPTI's way of asking asks of `agent`.
    ///
    /// # Errors
    ///
    /// As for [`Sampling::configurations`] and [`SamplingPeriod::request`].
    pub fn request(
        &self,
        agent: AgentId,
        period: SamplingPeriod,
    ) -> Result<Request, SamplingError> {
        let (possible, name) = self.ask()?.configurations(agent)?;
        period.request(&name, &possible)
    }

    /// Configures `agent` for `context`: its records go to the buffer in `slot` while the context is started.
    pub(crate) fn configure(
        &self,
        context: ContextKey,
        agent: AgentId,
        request: Request,
        delivery: Delivery,
    ) -> Result<(), SamplingError> {
        let turn = self.ask()?;
        {
            let state = self.state();
            if state.counting.contains(&context) {
                return Err(SamplingError::Counters);
            }
            if state.services().any(|service| service.context != context) {
                return Err(SamplingError::OtherContext);
            }
        }
        let (possible, name) = turn.configurations(agent)?;
        let taken = |active| SamplingError::Taken {
            agent: name.clone(),
            active: Possible(active),
        };
        let sampler = {
            let mut state = self.state();
            let agent = state.agent(agent)?;
            if agent.service.is_some() {
                return Err(taken(possible));
            }
            check(&name, possible, &request)?;
            // From here on no other sampler takes the place of this one.
            agent.service = Some(Service {
                context,
                request,
                delivery,
                started: false,
            });
            agent.sampler.clone()
        };
        let Err(refusal) = sampler.configure(&request) else {
            return Ok(());
        };
        self.state().agent(agent)?.service = None;
        Err(match refusal {
            Refusal::Taken => taken(sampler.configurations()),
            Refusal::System(reason) => SamplingError::System {
                agent: name,
                reason,
            },
        })
    }

    /// `context` has started.
    pub(crate) fn start(&self, context: ContextKey) {
        let starts = |service: &mut Service| {
            service.context == context && !std::mem::replace(&mut service.started, true)
        };
        for (sampler, delivery) in self.turn().changed(starts) {
            sampler.start(delivery);
        }
    }

    /// `context` stops. When this returns, what was sampled has been written.
    pub(crate) fn stop(&self, context: ContextKey) {
        self.turn().stop(|service| service.context == context);
    }

    /// `context` is gone, and its agents are free.
    pub(crate) fn release(&self, context: ContextKey) {
        if self.serves(context) {
            self.turn().release(|service| service.context == context);
        }
        self.state().counting.retain(|of| *of != context);
    }

    /// The buffer in `slot` goes: nothing is sampled for it any more.
    pub(crate) fn forget_buffer(&self, slot: usize) {
        let gone = Interest::buffer(slot).buffers();
        let goes = |service: &Service| service.delivery.buffers == gone;
        if self.state().services().any(goes) {
            self.turn().release(goes);
        }
    }

    /// Has the devices of started agents write what they hold.
    pub(crate) fn flush(&self) {
        for (sampler, _) in self.turn().changed(|service| service.started) {
            sampler.flush();
        }
    }

    /// `context` collects counters from now on: what a counter service has to say when it is configured.
    ///
    /// # Errors
    ///
    /// [`SamplingError::Counters`] if the context samples.
    pub(crate) fn collects_counters(&self, context: ContextKey) -> Result<(), SamplingError> {
        let mut state = self.state();
        if state.services().any(|service| service.context == context) {
            return Err(SamplingError::Counters);
        }
        state.counting.push(context);
        Ok(())
    }
}

impl fmt::Debug for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampling").finish_non_exhaustive()
    }
}
