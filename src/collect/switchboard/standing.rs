//! Requests for all agents, also those that sources offer later.
//!
//! A context makes such a request before its first start. It is applied to each agent that is known, and to each that a source
//! offers from then on, as soon as the source says that the agent has been offered ([`Switchboard::agent_offered`]).

use super::{ContextKey, ServiceError, Switchboard};
use crate::agents::{Claim, Conflict, ServiceKind};
use crate::context::ToolError;
use crate::counting::is_choosing;
use crate::delivering::is_delivering;
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_record::AgentId;

/// Configures an agent as a request for all agents says.
pub(crate) type ConfigureAgent =
    Box<dyn Fn(&Switchboard, AgentId) -> Result<(), ToolError> + Send + Sync>;

/// A request for all agents.
struct Standing {
    context: ContextKey,
    slot: usize,
    configure: ConfigureAgent,
    service: ServiceKind,
    /// The agents whose refusal has been told.
    told: Vec<AgentId>,
    /// Keeps the service for this context, also while it has no agent.
    _claim: Claim,
}

/// The requests for all agents of a process.
#[derive(Default)]
pub(super) struct StandingRequests {
    /// Held while a request is applied, which may wait for a tool that empties a buffer: it is not locked in callbacks.
    all: QuietMutex<Vec<Standing>>,
    /// Agents that were offered in callbacks, and to which the requests have not been applied.
    pending: QuietMutex<Vec<AgentId>>,
}

impl Standing {
    /// Says why `agent` is left out, unless that has been said.
    fn tell(&mut self, agent: AgentId, error: &ToolError) {
        if !self.told.contains(&agent) {
            self.told.push(agent);
            message(format_args!("{error}"));
        }
    }
}

impl Switchboard {
    /// Has `configure` called for each agent with this service, also for those that are offered later. Agents that cannot do what is
    /// asked for are left out, which a message says once of each.
    ///
    /// # Errors
    ///
    /// That of the first agent, if none of those that are known can do it; the request is not kept then.
    pub(crate) fn serve_all(
        &self,
        context: ContextKey,
        slot: usize,
        service: ServiceKind,
        configure: ConfigureAgent,
    ) -> Result<Result<(), Conflict>, ToolError> {
        if is_delivering() || is_choosing() {
            return Err(ServiceError::Busy.into());
        }
        let mut all = self.standing.all.lock();
        let mut same = all.iter();
        if same.any(|one| (one.context, one.service) == (context, service)) {
            return Err(ServiceError::Conflict.into());
        }
        let claim = self
            .agent_claims
            .claim(service, context, Some(AgentId::NONE));
        let claim = match claim {
            Ok(claim) => claim,
            Err(conflict) => return Ok(Err(conflict)),
        };
        self.check_unlocked(context)?;
        let mut standing = Standing {
            context,
            slot,
            configure,
            service,
            told: Vec::new(),
            _claim: claim,
        };
        let agents = match service {
            ServiceKind::PcSampling => self.sampling().agents(),
            ServiceKind::Counters => self.counting().agents(),
        };
        let agents = agents.into_iter();
        let mut refused: Vec<(AgentId, ToolError)> = agents
            .filter_map(|agent| Some((agent, self.apply(&standing, agent)?)))
            .collect();
        let serves_any = match service {
            ServiceKind::PcSampling => self.sampling().serves(context),
            ServiceKind::Counters => self.counting().serves(context),
        };
        if !serves_any && !refused.is_empty() {
            return Err(refused.swap_remove(0).1);
        }
        self.asks_for_all(context, service)?;
        for (agent, error) in refused {
            standing.tell(agent, &error);
        }
        all.push(standing);
        Ok(Ok(()))
    }

    /// A source has offered `agent` to the services that it has. It holds no lock that a tool's callback may need.
    pub fn agent_offered(&self, agent: AgentId) {
        self.standing.pending.lock().push(agent);
        self.serve_pending();
    }

    /// Applies the requests to agents that were offered, unless the thread is in a callback that a provider may wait for.
    pub(super) fn serve_pending(&self) {
        if is_delivering() || is_choosing() || self.standing.pending.lock().is_empty() {
            return;
        }
        let mut all = self.standing.all.lock();
        let pending = std::mem::take(&mut *self.standing.pending.lock());
        for agent in pending {
            for standing in all.iter_mut() {
                if let Some(error) = self.apply(standing, agent) {
                    standing.tell(agent, &error);
                }
            }
        }
    }

    /// Configures `agent` as the request says, and returns the error if that is refused.
    fn apply(&self, standing: &Standing, agent: AgentId) -> Option<ToolError> {
        let context = standing.context;
        let may_serve = match standing.service {
            ServiceKind::PcSampling => self.sampling().may_serve(context, agent),
            ServiceKind::Counters => self.counting().may_serve(context, agent),
        };
        may_serve.then(|| (standing.configure)(self, agent).err())?
    }

    /// Ends the requests of `context`.
    pub(super) fn forget_requests(&self, context: ContextKey) {
        let mut all = self.standing.all.lock();
        all.retain(|standing| standing.context != context);
    }

    /// Ends the requests whose records go to the buffer in `slot`.
    pub(super) fn forget_requests_to(&self, slot: usize) {
        let mut all = self.standing.all.lock();
        all.retain(|standing| standing.slot != slot);
    }
}
