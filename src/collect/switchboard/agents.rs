//! The agents of contexts: sampling and counting on single ones, and on all that sources offer.

use super::board::Switchboard;
use super::flush::Flush;
use super::interest::Interest;
use super::keys::ContextKey;
use super::services::ServiceError;
use super::standing::{ForAll, Standing};
use crate::agents::{AgentRefusal, Conflict, ServiceKind};
use crate::context::ToolError;
use crate::counting::{Countable, CountingDelivery, CountingError, CountingRequest, is_choosing};
use crate::delivering::is_delivering;
use crate::sampling::{SampleDelivery, SamplingError};
use gputrail_interface::counting::CountingMode;
use gputrail_interface::sampling::{Deliver, Request};
use gputrail_record::{AgentId, NoteKind};

impl Switchboard {
    /// Delivers samples of `agent` to the buffer in `slot` while the context is started.
    pub(crate) fn sample(
        &self,
        key: ContextKey,
        slot: usize,
        agent: AgentId,
        request: Request,
        deliver: Deliver,
    ) -> Result<Result<(), SamplingError>, ServiceError> {
        self.check_unlocked(key)?;
        self.sample_now(key, slot, agent, request, deliver)
    }

    /// As [`Switchboard::sample`], also while the context is started.
    fn sample_now(
        &self,
        key: ContextKey,
        slot: usize,
        agent: AgentId,
        request: Request,
        deliver: Deliver,
    ) -> Result<Result<(), SamplingError>, ServiceError> {
        let delivery = SampleDelivery {
            buffers: Interest::buffer(slot).buffers(),
            deliver,
        };
        let configured = self.sampling().configure(key, agent, request, delivery);
        if configured.is_ok() {
            self.state().services.context(key)?.samples = true;
        }
        Ok(configured)
    }

    /// Counts on `agent` as `request` says while the context is started, and delivers the values to the buffer in `slot`.
    pub(crate) fn count(
        &self,
        key: ContextKey,
        slot: usize,
        agent: AgentId,
        request: CountingRequest,
    ) -> Result<Result<(), CountingError>, ServiceError> {
        self.check_unlocked(key)?;
        Ok(self.count_now(key, slot, agent, request))
    }

    /// As [`Switchboard::count`], also while the context is started.
    fn count_now(
        &self,
        key: ContextKey,
        slot: usize,
        agent: AgentId,
        request: CountingRequest,
    ) -> Result<(), CountingError> {
        let delivery = CountingDelivery {
            buffers: Interest::buffer(slot).buffers(),
            deliver: (),
        };
        self.configure_counting(key, agent, request, delivery)
    }

    /// Services are locked once the context has been started.
    fn check_unlocked(&self, key: ContextKey) -> Result<(), ServiceError> {
        if self.state().services.context(key)?.locked {
            Err(ServiceError::Locked)
        } else {
            Ok(())
        }
    }

    /// Notes that the context asks for all agents.
    fn asks_for_all(&self, key: ContextKey, service: ServiceKind) -> Result<(), ServiceError> {
        let mut state = self.state();
        let context = state.services.context(key)?;
        if context.locked {
            return Err(ServiceError::Locked);
        }
        context.asks_for_all = true;
        context.samples |= service == ServiceKind::PcSampling;
        Ok(())
    }

    /// Configures the counters of `agent`, and notes them in the names store, which readers consult first.
    pub(crate) fn configure_counting(
        &self,
        key: ContextKey,
        agent: AgentId,
        request: CountingRequest,
        delivery: CountingDelivery,
    ) -> Result<(), CountingError> {
        let is_range = request.mode == CountingMode::Range;
        let request = if is_range {
            self.ranges().assigned(agent, request)
        } else {
            request
        };
        let names = match request.choice {
            Some(_) if !is_range => "as a tool chooses".to_owned(),
            _ => request.set.names(),
        };
        let text = format!("agent {agent}: {names}, {}", request.mode);
        let (what, text) = match request.mode {
            CountingMode::Dispatch => (NoteKind::COUNTERS, text),
            CountingMode::Device { .. } => (NoteKind::DEVICE_COUNTERS, text),
            // Their values are of no dispatch: a reader does not wait for them.
            CountingMode::Range => (NoteKind::OTHER, format!("counters collected: {text}")),
        };
        self.counting()
            .configure(key, agent, request.clone(), delivery)?;
        if is_range {
            let buffers = delivery.buffers;
            self.ranges()
                .configured(agent, &request, key, buffers, self.names());
        }
        self.names().note(what, &text);
        Ok(())
    }

    /// Claims the counters of all agents for the context, whose tool collects them itself.
    pub(crate) fn collects_counters(
        &self,
        key: ContextKey,
    ) -> Result<Result<(), SamplingError>, ServiceError> {
        let mut state = self.state();
        let context = state.services.context(key)?;
        let claim = self.agent_claims.claim(ServiceKind::Counters, key, None);
        Ok(match claim {
            Ok(claim) => {
                context.counters.push(claim);
                Ok(())
            }
            Err(_) => Err(SamplingError::Counters),
        })
    }

    /// Claims counting for the context, before its agents are known.
    pub(crate) fn reserve_counters(
        &self,
        key: ContextKey,
    ) -> Result<Result<(), CountingError>, ServiceError> {
        let mut state = self.state();
        let context = state.services.context(key)?;
        let claims = &self.agent_claims;
        let claim = claims.claim(ServiceKind::Counters, key, Some(AgentId::NONE));
        let reserved = claim.map(|claim| context.counters.push(claim));
        Ok(reserved.map_err(|conflict| AgentRefusal::<Countable>::from(conflict).into()))
    }

    /// Notes that the context is that of the recording.
    pub(crate) fn set_recording(&self, key: ContextKey) {
        self.agent_claims.set_recording(key);
    }

    /// Whether the context samples or counts.
    pub(crate) fn has_agents(&self, key: ContextKey) -> bool {
        let asks_for_all = {
            let mut state = self.state();
            let context = state.services.context(key);
            context.is_ok_and(|context| context.asks_for_all)
        };
        asks_for_all || self.sampling().serves(key) || self.counting().serves(key)
    }

    /// Asks `what` of each agent with this service, also of those that are offered later. Agents that cannot do what is
    /// asked for are left out, which a message says once of each.
    ///
    /// # Errors
    ///
    /// That of the first agent, if none of those that are known can do it; the request is not kept then.
    pub(crate) fn serve_all(
        &self,
        context: ContextKey,
        slot: usize,
        what: ForAll,
    ) -> Result<Result<(), Conflict>, ToolError> {
        let service = what.service();
        if is_delivering() || is_choosing() {
            return Err(ServiceError::Busy.into());
        }
        let mut all = self.standing.all.lock();
        let mut same = all.iter();
        if same.any(|one| (one.context, one.what.service()) == (context, service)) {
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
            what,
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
    fn serve_pending(&self) {
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
        let may_serve = match standing.what {
            ForAll::Samples(..) => self.sampling().may_serve(context, agent),
            ForAll::Counters(_) => self.counting().may_serve(context, agent),
        };
        may_serve.then(|| self.configure(standing, agent).err())?
    }

    fn configure(&self, standing: &Standing, agent: AgentId) -> Result<(), ToolError> {
        let (context, slot) = (standing.context, standing.slot);
        match &standing.what {
            ForAll::Samples(request_of, deliver) => {
                let request = request_of(self.sampling(), agent)?;
                Ok(self.sample_now(context, slot, agent, request, *deliver)??)
            }
            ForAll::Counters(request_of) => {
                let request = request_of(self.counting(), agent)?;
                Ok(self.count_now(context, slot, agent, request)?)
            }
        }
    }

    /// Has the sources write completions, and the agents what their devices hold.
    pub(crate) fn flush_sources(&self, flush: Flush) {
        self.flush_hooks.call(flush);
        self.serve_pending();
        self.sampling().flush();
        self.counting().flush();
    }
}
