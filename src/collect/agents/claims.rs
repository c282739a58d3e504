//! Claims: which context holds which service of which agent.

use crate::switchboard::ContextKey;
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_record::AgentId;
use std::fmt;
use std::sync::Arc;

/// A service that an agent can have.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// PC sampling.
    PcSampling,
    /// Counter collection.
    Counters,
}

/// The claims of a process.
#[derive(Default)]
pub struct Claims(QuietMutex<ClaimedAgent>);

#[derive(Default)]
struct ClaimedAgent {
    by: Vec<Holder>,
    /// The context of the recording, for messages.
    recording: Option<ContextKey>,
}

/// The holder of a claim.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Holder {
    pub service: ServiceKind,
    pub context: ContextKey,
    /// The agent; [`AgentId::NONE`] reserves the service before agents are known. `None` if a tool does by its own means what
    /// the service does, on agents it does not name.
    pub agent: Option<AgentId>,
}

/// Whose context holds a service that only one context can have.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// That of the recording.
    Recording,
    /// That of a tool.
    Tool,
}

impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeldBy::Recording => "the recording of this process",
            HeldBy::Tool => "another context of this process",
        })
    }
}

/// A claim; dropping it ends it.
pub(crate) struct Claim {
    holder: Holder,
    claims: Arc<Claims>,
}

/// Why a claim is refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// Another context holds this service: only one can.
    Context(HeldBy),
    /// This context or another one has this service, which excludes the one asked for.
    Service(ServiceKind),
}

impl Holder {
    fn conflict(&self, held: &Holder, recording: Option<ContextKey>) -> Option<Conflict> {
        let same_context = self.context == held.context;
        let both_name_agents = self.agent.is_some() && held.agent.is_some();
        if self.service == held.service {
            let by = if recording == Some(held.context) {
                HeldBy::Recording
            } else {
                HeldBy::Tool
            };
            return (both_name_agents && !same_context).then_some(Conflict::Context(by));
        }
        (same_context || both_name_agents).then_some(Conflict::Service(held.service))
    }
}

impl Claims {
    /// Notes that `context` is that of the recording.
    pub(crate) fn set_recording(&self, context: ContextKey) {
        self.0.lock().recording = Some(context);
    }

    /// Claims `service` for `context`: of `agent`, if one is named.
    pub(crate) fn claim(
        self: &Arc<Claims>,
        service: ServiceKind,
        context: ContextKey,
        agent: Option<AgentId>,
    ) -> Result<Claim, Conflict> {
        let holder = Holder {
            service,
            context,
            agent,
        };
        let mut held = self.0.lock();
        let mut others = held.by.iter();
        if let Some(conflict) = others.find_map(|other| holder.conflict(other, held.recording)) {
            return Err(conflict);
        }
        held.by.push(holder);
        Ok(Claim {
            holder,
            claims: self.clone(),
        })
    }
}

impl Claim {
    /// The context that holds the claim.
    pub fn context(&self) -> ContextKey {
        self.holder.context
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut held = self.claims.0.lock();
        if let Some(place) = held.by.iter().position(|held| *held == self.holder) {
            held.by.swap_remove(place);
        }
    }
}
