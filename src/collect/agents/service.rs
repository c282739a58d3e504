//! The service: which agents can be used, which context uses them, and when.
//!
//! It keeps rocprofiler-sdk's constraints: an agent has one configuration at a time, which is valid until the tool ends or destroys
//! the context that asked for it; another process may have taken the agent before; one context of a process has the service, for
//! any number of agents; PC sampling and counter collection exclude each other in a process.

use super::{Claim, Claims, Conflict, HeldBy, ServiceKind};
use crate::delivering::is_delivering;
use crate::switchboard::{Buffers, ContextKey, Interest};
use gputrail_buffer::platform::sync::{QuietGuard, QuietMutex};
use gputrail_record::AgentId;
use std::fmt;
use std::sync::Arc;

/// A request for the use of an agent. Its type distinguishes the services.
pub trait AgentRequest: Clone + 'static {
    /// The service that takes such requests.
    const SERVICE: ServiceKind;
    /// One way in which an agent can be used.
    type Configuration: Clone;
    /// The records that the buffer gets.
    type Deliver: Copy;
    /// The error of a refused request.
    type Error: From<AgentRefusal<Self::Configuration>>;

    /// The only configuration of an agent that this request has configured; `possible` were those before.
    fn active(&self, possible: &[Self::Configuration]) -> Self::Configuration;

    /// Checks whether an agent that can do `possible` can do this.
    ///
    /// # Errors
    ///
    /// An error that names what the agent can do.
    fn check(&self, agent: &str, possible: Vec<Self::Configuration>) -> Result<(), Self::Error>;

    /// Whether a context that has configured an agent so may ask for `other` again, which changes nothing.
    fn is_same(&self, other: &Self) -> bool {
        let _ = other;
        false
    }

    /// Its agent is going to be released. The caller does not have the turn, so that this may wait for a tool.
    fn end(&self) {}

    /// Checks whether this process can have the service now.
    ///
    /// # Errors
    ///
    /// An error that names what is in the way.
    fn check_process() -> Result<(), Self::Error> {
        Ok(())
    }
}

/// An agent as its source offers it. The service calls it from one thread at a time, and never from within a buffer's
/// callback, which the provider may have to wait for. A provider does not call the service back.
pub trait Provider<R: AgentRequest>: Send + Sync {
    /// The configurations that the agent offers at present: if another process has configured it, that configuration
    /// alone. Empty if the agent cannot be used.
    fn configurations(&self) -> Vec<R::Configuration>;

    /// Why the agent offers no configuration, and what to do, if there is more to say than that it cannot be used.
    fn unavailable(&self) -> Option<String> {
        None
    }

    /// Checks whether the system allows `request`, without reserving the agent.
    fn check(&self, request: &R) -> Result<(), ConfigureError> {
        let _ = request;
        Ok(())
    }

    /// Reserves the agent for this process. `request` is one that [`Provider::configurations`] allowed shortly before.
    fn configure(&self, request: &R) -> Result<(), ConfigureError>;

    /// Gives the agent back. It is stopped.
    fn release(&self);

    /// Starts the agent, which is configured and stopped.
    fn start(&self, to: Delivery<R::Deliver>);

    /// Stops the agent. Data that the device holds is written to the buffers of the start, or counted as dropped.
    fn stop(&self);

    /// Writes the data that the device holds. The agent is started.
    fn flush(&self);
}

/// Why an agent could not be configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigureError {
    /// Another process has configured it meanwhile.
    Taken,
    /// The system does not allow it: a sentence that says what to change.
    System(String),
    /// The system allows it, and it failed all the same: a sentence that says why.
    Failed(String),
}

/// Where the records of a started agent go.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Delivery<D> {
    /// The buffers: [`HostThread::write_to`](crate::correlation::HostThread::write_to) takes them.
    pub buffers: Buffers,
    /// The records that are written.
    pub deliver: D,
}

/// A refusal that does not depend on the request.
#[derive(Debug)]
pub enum AgentRefusal<C> {
    /// No source has offered this agent.
    UnknownAgent(AgentId),
    /// The agent is configured already, in this process or meanwhile in another one.
    Taken {
        /// Its id and name.
        agent: String,
        /// Its configuration.
        active: Vec<C>,
    },
    /// Another context of the process has the service.
    OtherContext(HeldBy),
    /// A context of the process has another service, which excludes this one.
    OtherService(ServiceKind),
    /// The call was made from within a buffer's callback, which a provider may have to wait for.
    Busy,
    /// The system does not allow it.
    System {
        /// Its id and name.
        agent: String,
        /// The obstacle, and the remedy.
        reason: String,
    },
    /// The system allows it, and it failed all the same.
    Failed {
        /// Its id and name.
        agent: String,
        /// The cause.
        reason: String,
    },
}

impl<C> From<Conflict> for AgentRefusal<C> {
    fn from(conflict: Conflict) -> AgentRefusal<C> {
        match conflict {
            Conflict::Context(by) => AgentRefusal::OtherContext(by),
            Conflict::Service(other) => AgentRefusal::OtherService(other),
        }
    }
}

/// A service of a process: of its switchboard.
pub struct AgentService<R: AgentRequest> {
    agents: QuietMutex<Vec<ServedAgent<R>>>,
    claims: Arc<Claims>,
    /// The started contexts that use agents, or will use those that are offered. Locked by the thread that calls providers,
    /// which may wait for a tool that empties a buffer. It is taken before `agents`, which nobody holds during such a call:
    /// sources that offer agents never wait.
    turn: QuietMutex<Vec<ContextKey>>,
}

struct ServedAgent<R: AgentRequest> {
    id: AgentId,
    name: String,
    provider: Arc<dyn Provider<R>>,
    used: Option<Use<R>>,
}

/// The use of an agent that a context has configured.
struct Use<R: AgentRequest> {
    claim: Claim,
    request: R,
    active: R::Configuration,
    delivery: Delivery<R::Deliver>,
    started: bool,
}

/// The turn to call providers.
struct ProviderTurn<'a, R: AgentRequest> {
    service: &'a AgentService<R>,
    started: QuietGuard<'a, Vec<ContextKey>>,
}

/// A started or stopped agent: its provider, and where its records go.
pub type ChangedAgent<R> = (Arc<dyn Provider<R>>, Delivery<<R as AgentRequest>::Deliver>);

impl<R: AgentRequest> ServedAgent<R> {
    fn text(&self) -> String {
        format!("agent {} ({})", self.id, self.name)
    }
}

fn find<R: AgentRequest>(
    agents: &mut [ServedAgent<R>],
    id: AgentId,
) -> Result<&mut ServedAgent<R>, AgentRefusal<R::Configuration>> {
    let found = agents.iter_mut().find(|agent| agent.id == id);
    found.ok_or(AgentRefusal::UnknownAgent(id))
}

impl<R: AgentRequest> ProviderTurn<'_, R> {
    /// The configurations that `agent` can have now, and its id and name.
    fn configurations(&self, agent: AgentId) -> Result<(Vec<R::Configuration>, String), R::Error> {
        let (provider, name) = {
            let mut agents = self.service.agents.lock();
            let agent = find(&mut agents, agent)?;
            if let Some(used) = &agent.used {
                return Ok((vec![used.active.clone()], agent.text()));
            }
            (agent.provider.clone(), agent.text())
        };
        Ok((provider.configurations(), name))
    }

    /// Why `agent` has no configurations, if it says so.
    fn unavailable(&self, agent: AgentId) -> Result<Option<String>, R::Error> {
        let provider = find(&mut self.service.agents.lock(), agent)?
            .provider
            .clone();
        Ok(provider.unavailable())
    }

    /// The agents whose use `change` has changed.
    fn changed(&self, mut change: impl FnMut(&mut Use<R>) -> bool) -> Vec<ChangedAgent<R>> {
        let mut agents = self.service.agents.lock();
        let changed = agents.iter_mut().filter_map(|agent| {
            let used = agent.used.as_mut()?;
            change(used).then(|| (agent.provider.clone(), used.delivery))
        });
        changed.collect()
    }

    fn start(&self, context: ContextKey) {
        let starts = |used: &mut Use<R>| {
            used.claim.context() == context && !std::mem::replace(&mut used.started, true)
        };
        for (provider, delivery) in self.changed(starts) {
            provider.start(delivery);
        }
    }

    fn stop(&self, which: impl Fn(&Use<R>) -> bool) {
        let stops = |used: &mut Use<R>| which(used) && std::mem::take(&mut used.started);
        for (provider, _) in self.changed(stops) {
            provider.stop();
        }
    }

    fn release(&self, which: impl Fn(&Use<R>) -> bool) {
        self.stop(&which);
        for (provider, _) in self.changed(|used| which(used)) {
            provider.release();
        }
        for agent in self.service.agents.lock().iter_mut() {
            agent.used.take_if(|used| which(used));
        }
    }
}

impl<R: AgentRequest> AgentService<R> {
    /// The service of a process whose services share `claims`. No agent has been offered.
    pub(crate) fn new(claims: Arc<Claims>) -> AgentService<R> {
        AgentService {
            agents: QuietMutex::default(),
            claims,
            turn: QuietMutex::default(),
        }
    }

    fn turn(&self) -> ProviderTurn<'_, R> {
        ProviderTurn {
            service: self,
            started: self.turn.lock(),
        }
    }

    /// The turn, for a tool that asks for configurations or changes one.
    fn turn_of_tool(&self) -> Result<ProviderTurn<'_, R>, R::Error> {
        if is_delivering() {
            return Err(AgentRefusal::Busy.into());
        }
        R::check_process()?;
        Ok(self.turn())
    }

    /// Offers `provider` for the agent with this id. A later offer for the same agent replaces one that nobody has
    /// configured.
    pub fn offer(&self, agent: AgentId, name: &str, provider: Arc<dyn Provider<R>>) {
        let mut agents = self.agents.lock();
        if let Ok(known) = find(&mut agents, agent) {
            if known.used.is_none() {
                (known.name, known.provider) = (name.to_owned(), provider);
            }
            return;
        }
        agents.push(ServedAgent {
            id: agent,
            name: name.to_owned(),
            provider,
            used: None,
        });
    }

    /// The agents that sources have offered, by id.
    pub fn agents(&self) -> Vec<AgentId> {
        let mut ids: Vec<AgentId> = self.agents.lock().iter().map(|agent| agent.id).collect();
        ids.sort_unstable();
        ids
    }

    fn any(&self, is: impl Fn(&Use<R>) -> bool) -> bool {
        let agents = self.agents.lock();
        agents
            .iter()
            .filter_map(|agent| agent.used.as_ref())
            .any(is)
    }

    /// Whether `agent` is to be configured for a `context` that asks for all: it offers configurations, or says why it has none, and
    /// the context has not configured it.
    pub(crate) fn may_serve(&self, context: ContextKey, agent: AgentId) -> bool {
        let is_used = |agent: &ServedAgent<R>| {
            let used = agent.used.as_ref();
            used.is_some_and(|used| used.claim.context() == context)
        };
        let is_free = find(&mut self.agents.lock(), agent).is_ok_and(|agent| !is_used(agent));
        is_free && !matches!(self.configurations(agent), Ok(possible) if possible.is_empty())
    }

    /// Checks whether a tool can ask for an agent now.
    pub(crate) fn check_turn(&self) -> Result<(), R::Error> {
        self.turn_of_tool().map(drop)
    }

    /// Whether `context` uses an agent.
    pub(crate) fn serves(&self, context: ContextKey) -> bool {
        self.any(|used| used.claim.context() == context)
    }

    /// The configurations that `agent` offers at present: once it is configured, only that one; none if it cannot be
    /// used.
    ///
    /// # Errors
    ///
    /// [`AgentRefusal::UnknownAgent`] and [`AgentRefusal::Busy`], or that this process cannot have the service now.
    pub fn configurations(&self, agent: AgentId) -> Result<Vec<R::Configuration>, R::Error> {
        Ok(self.named_configurations(agent)?.0)
    }

    /// Its configurations, with the agent's id and name.
    pub(crate) fn named_configurations(
        &self,
        agent: AgentId,
    ) -> Result<(Vec<R::Configuration>, String), R::Error> {
        self.turn_of_tool()?.configurations(agent)
    }

    /// Whether the system allows `request` on `agent`.
    pub(crate) fn can_configure(
        &self,
        agent: AgentId,
        request: &R,
    ) -> Result<Result<(), ConfigureError>, R::Error> {
        let _turn = self.turn_of_tool()?;
        let provider = find(&mut self.agents.lock(), agent)?.provider.clone();
        Ok(provider.check(request))
    }

    /// Configures `agent` for `context`: its records go to `delivery` while the context is started, which it may be.
    pub(crate) fn configure(
        &self,
        context: ContextKey,
        agent: AgentId,
        request: R,
        delivery: Delivery<R::Deliver>,
    ) -> Result<(), R::Error> {
        let turn = self.turn_of_tool()?;
        let claim = self.claims.claim(R::SERVICE, context, Some(agent));
        let claim = claim.map_err(AgentRefusal::<R::Configuration>::from)?;
        let (possible, name) = turn.configurations(agent)?;
        if possible.is_empty()
            && let Some(reason) = turn.unavailable(agent)?
        {
            return Err(AgentRefusal::System {
                agent: name,
                reason,
            }
            .into());
        }
        let provider = {
            let mut agents = self.agents.lock();
            let agent = find(&mut agents, agent)?;
            if let Some(used) = &agent.used {
                let is_same_use =
                    used.claim.context() == context && used.delivery.buffers == delivery.buffers;
                if is_same_use && used.request.is_same(&request) {
                    return Ok(());
                }
                let active = possible;
                return Err(AgentRefusal::Taken {
                    agent: name,
                    active,
                }
                .into());
            }
            let active = request.active(&possible);
            request.check(&name, possible)?;
            // From here on no other provider takes the place of this one.
            agent.used = Some(Use {
                claim,
                request: request.clone(),
                active,
                delivery,
                started: false,
            });
            agent.provider.clone()
        };
        let Err(error) = provider.configure(&request) else {
            if turn.started.contains(&context) {
                turn.start(context);
            }
            return Ok(());
        };
        find(&mut self.agents.lock(), agent)?.used = None;
        let agent = name;
        Err(match error {
            ConfigureError::Taken => {
                let active = provider.configurations();
                AgentRefusal::Taken { agent, active }.into()
            }
            ConfigureError::System(reason) => AgentRefusal::System { agent, reason }.into(),
            ConfigureError::Failed(reason) => AgentRefusal::Failed { agent, reason }.into(),
        })
    }

    /// Starts the agents of `context`, and those that it configures before it is stopped.
    pub(crate) fn start(&self, context: ContextKey) {
        let mut turn = self.turn();
        if !turn.started.contains(&context) {
            turn.started.push(context);
        }
        turn.start(context);
    }

    /// Stops the agents of `context`. When this returns, their records have been written.
    pub(crate) fn stop(&self, context: ContextKey) {
        let mut turn = self.turn();
        turn.started.retain(|started| *started != context);
        turn.stop(|used| used.claim.context() == context);
    }

    /// Releases the agents of `context`.
    pub(crate) fn release(&self, context: ContextKey) {
        self.release_those(|used| used.claim.context() == context);
    }

    /// Releases the agents whose records go to the buffer in `slot`, which is about to go.
    pub(crate) fn forget_buffer(&self, slot: usize) {
        let gone = Interest::buffer(slot).buffers();
        let goes = |used: &Use<R>| used.delivery.buffers == gone;
        self.release_those(goes);
    }

    fn release_those(&self, which: impl Fn(&Use<R>) -> bool) {
        let requests: Vec<R> = {
            let agents = self.agents.lock();
            let used = agents.iter().filter_map(|agent| agent.used.as_ref());
            used.filter(|used| which(used))
                .map(|used| used.request.clone())
                .collect()
        };
        if !requests.is_empty() {
            requests.iter().for_each(R::end);
            self.turn().release(which);
        }
    }

    /// Has the devices of started agents write the data that they hold.
    pub(crate) fn flush(&self) {
        for (provider, _) in self.turn().changed(|used| used.started) {
            provider.flush();
        }
    }
}

impl<R: AgentRequest> fmt::Debug for AgentService<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentService").finish_non_exhaustive()
    }
}
