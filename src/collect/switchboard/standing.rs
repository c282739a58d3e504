//! Requests for all agents, also those that sources offer later.
//!
//! A context makes such a request before its first start. It is applied to each agent that is known, and to each that a source
//! offers from then on, as soon as the source says that the agent has been offered
//! ([`Switchboard::agent_offered`](super::Switchboard::agent_offered)).

use super::keys::ContextKey;
use crate::agents::{AgentRequest, AgentService, Claim, ServiceKind};
use crate::counting::CountingRequest;
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_interface::sampling::{Deliver, Request};
use gputrail_record::AgentId;
use std::fmt::Display;

/// The request for one of the agents of a service.
pub(crate) type RequestOf<R> =
    Box<dyn Fn(&AgentService<R>, AgentId) -> Result<R, <R as AgentRequest>::Error> + Send + Sync>;

/// A request of a context to all agents.
pub(crate) enum ForAll {
    /// That they are sampled, and how their samples are delivered.
    Samples(RequestOf<Request>, Deliver),
    /// That they count.
    Counters(RequestOf<CountingRequest>),
}

impl ForAll {
    pub fn service(&self) -> ServiceKind {
        match self {
            ForAll::Samples(..) => ServiceKind::PcSampling,
            ForAll::Counters(_) => ServiceKind::Counters,
        }
    }
}

/// A request for all agents.
pub(super) struct Standing {
    pub context: ContextKey,
    pub slot: usize,
    pub what: ForAll,
    /// The agents whose refusal has been told.
    pub told: Vec<AgentId>,
    /// Keeps the service for this context, also while it has no agent.
    pub _claim: Claim,
}

/// The requests for all agents of a process.
#[derive(Default)]
pub(super) struct StandingRequests {
    /// Held while a request is applied, which may wait for a tool that empties a buffer: it is not locked in callbacks.
    pub all: QuietMutex<Vec<Standing>>,
    /// Agents that were offered in callbacks, and to which the requests have not been applied.
    pub pending: QuietMutex<Vec<AgentId>>,
}

impl Standing {
    /// Says why `agent` is left out, unless that has been said.
    pub fn tell(&mut self, agent: AgentId, error: &impl Display) {
        if !self.told.contains(&agent) {
            self.told.push(agent);
            message(format_args!("{error}"));
        }
    }
}

impl StandingRequests {
    /// Ends the requests of `context`.
    pub fn forget(&self, context: ContextKey) {
        let mut all = self.all.lock();
        all.retain(|standing| standing.context != context);
    }

    /// Ends the requests whose records go to the buffer in `slot`.
    pub fn forget_to(&self, slot: usize) {
        let mut all = self.all.lock();
        all.retain(|standing| standing.slot != slot);
    }
}
