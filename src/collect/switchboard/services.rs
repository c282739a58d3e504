//! Contexts and their services, and the table computed from them.

use super::external::{Consumers, ExternalContexts};
use super::interest::{BUFFERS, DOMAINS, OPERATIONS, SUBSCRIBERS};
use super::narrowed::Table;
use super::{Buffers, Interest, KindSet, Observed, OperationSet, Selection, Switchboard, Wanted};
use crate::agents::{Claim, Refused, ServiceKind};
use crate::counting::{Countable, CountingDelivery, CountingError, CountingRequest, is_choosing};
use crate::delivering::is_delivering;
use crate::operations::OperationInfo;
use crate::sampling::{Delivery, SamplingError};
use gputrail_interface::counting::CountingMode;
use gputrail_interface::sampling::{Deliver, Request};
use gputrail_record::{AgentId, ContextId, Domain, Kind, NoteKind, OperationGroup};

/// The consumer of what a service selects.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Consumer {
    /// The buffer in this slot.
    Buffer(usize),
    /// The subscriber in this slot.
    Subscriber(usize),
}

/// A context: its index, and its incarnation, which distinguishes successive users of the index.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ContextKey {
    pub(super) place: usize,
    pub(super) incarnation: u32,
}

/// The most contexts of a process.
pub(crate) const CONTEXTS: usize = 64;

/// An error of a change to a context.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum ServiceError {
    #[error("the context has been destroyed")]
    NoSuchContext,
    #[error("the context has been started before: its services are locked")]
    Locked,
    #[error("the context has such a service already")]
    Conflict,
    #[error("the context has no such service")]
    NoSuchService,
    #[error("the context is started already")]
    Started,
    #[error("the context is not started")]
    Stopped,
    #[error("busy: a buffer's callback cannot start and stop sampling and counting")]
    Busy,
    #[error("too many contexts: the maximum is {CONTEXTS}")]
    TooMany,
}

#[derive(Default)]
pub(super) struct Services {
    contexts: Vec<Option<ContextState>>,
    last_incarnation: u32,
    /// The work of sources for operations, by domain and number; `None` for domains without a source.
    observed: [Option<Box<[Observed; OPERATIONS]>>; DOMAINS],
    /// The operations that enqueue work.
    enqueues: OperationSet,
    /// Operations at which a recording may begin or end.
    gated: OperationSet,
    /// Whether the recording has ended.
    ended: bool,
}

struct ContextState {
    incarnation: u32,
    running: bool,
    locked: bool,
    services: Vec<(Consumer, Selection)>,
    /// Whether external ids were pushed for it, or one of its services supplies them.
    own_ids: bool,
    /// Whether it has the sampling service.
    samples: bool,
    /// Whether it asks for all agents, also those that are offered later.
    asks_for_all: bool,
    /// Kinds that a buffer wants, or does not want, in one runtime context.
    narrowed: Vec<(usize, ContextId, Kind, bool)>,
    /// Held while counters are reserved, or the tool itself collects some.
    counters: Vec<Claim>,
}

impl Services {
    fn context(&mut self, key: ContextKey) -> Result<&mut ContextState, ServiceError> {
        self.contexts
            .get_mut(key.place)
            .and_then(Option::as_mut)
            .filter(|context| context.incarnation == key.incarnation)
            .ok_or(ServiceError::NoSuchContext)
    }

    /// Removes `consumer`.
    pub fn forget(&mut self, consumer: Consumer) {
        for context in self.contexts.iter_mut().flatten() {
            context.services.retain(|(of, _)| *of != consumer);
            context
                .narrowed
                .retain(|said| Consumer::Buffer(said.0) != consumer);
        }
    }

    /// The buffers by runtime context.
    pub fn narrowed(&self) -> Table {
        let mut table = Table::default();
        let running = || {
            let contexts = self.contexts.iter().flatten();
            contexts.filter(|context| context.running && !self.ended)
        };
        let named = running().flat_map(|context| &context.narrowed);
        for (_, of, kind, _) in named {
            // Services without a setting for this context use that for all contexts.
            let (mut here, mut others) = (Buffers::NONE, Buffers::NONE);
            for context in running() {
                for (consumer, selection) in &context.services {
                    let Consumer::Buffer(slot) = consumer else {
                        continue;
                    };
                    let (one, general) = (
                        Interest::buffer(*slot).buffers(),
                        selection.kinds.has(*kind),
                    );
                    let said = context
                        .narrowed
                        .iter()
                        .find(|said| (said.0, said.1, said.2) == (*slot, *of, *kind));
                    if said.map_or(general, |said| said.3) {
                        here = here.or(one);
                    }
                    if general {
                        others = others.or(one);
                    }
                }
            }
            table.contexts.insert((*of, *kind), here);
            table.others.insert(*kind, others);
        }
        table
    }

    /// Computes the consumers of contexts with external ids of their own.
    ///
    /// Stopped contexts count, too: what was in progress when they were stopped is still recorded.
    pub fn publish_external(&self, external: &ExternalContexts) {
        let mut consumers = Consumers::default();
        for (place, context) in self.contexts.iter().enumerate() {
            let Some(context) = context.as_ref().filter(|context| context.own_ids) else {
                continue;
            };
            consumers.add_context(place);
            for (consumer, _) in &context.services {
                match consumer {
                    Consumer::Buffer(slot) => consumers.add_buffer(place, *slot),
                    Consumer::Subscriber(slot) => consumers.add_subscriber(place, *slot),
                }
            }
            if context.samples {
                consumers.add_samples(place);
            }
        }
        external.set(&consumers);
    }

    /// Computes the table `wanted` from the services.
    ///
    /// Calls in progress are written to the memory of the `recovered` buffers. `hears` is whether exits are needed even
    /// without records of them. The contexts of the buffers in `own_ids` have external ids of their own.
    pub fn publish(
        &self,
        wanted: &Wanted,
        narrowed: &Table,
        recovered: Buffers,
        hears: bool,
        own_ids: Buffers,
    ) {
        let services = |runs: bool| -> Vec<(Consumer, &Selection)> {
            let contexts = self.contexts.iter().flatten();
            contexts
                .filter(|context| context.running == runs && !self.ended)
                .flat_map(|context| &context.services)
                .map(|(consumer, selection)| (*consumer, selection))
                .collect()
        };
        let (running, stopped) = (services(true), services(false));
        let mut inside = Interest::NONE;
        for (kind, _) in Kind::ALL {
            let select =
                |all: Buffers, (consumer, selection): &(Consumer, &Selection)| match consumer {
                    Consumer::Buffer(slot) if selection.kinds.has(*kind) => {
                        all.or(Interest::buffer(*slot).buffers())
                    }
                    _ => all,
                };
            let buffers = running.iter().fold(Buffers::NONE, select);
            let buffers = buffers.or(narrowed.anywhere(*kind));
            let selected = stopped.iter().fold(buffers, select);
            if !buffers.is_none() && !OF_CALLS.has(*kind) {
                inside = inside.with(Interest::WORK);
            }
            wanted.set_kind(*kind, buffers, selected);
        }
        let retires = !wanted.kind(Kind::RETIREMENT).is_none();
        let has_callbacks = |(consumer, selection): &(Consumer, &Selection)| {
            let any = |domain: &Domain| selection.operations.has_any(*domain);
            matches!(consumer, Consumer::Subscriber(_)) && INSIDE_CALLS.iter().any(any)
        };
        if running.iter().any(has_callbacks) {
            inside = inside.with(Interest::INSIDE);
        }
        let annotated = wanted.kind(Kind::ARGUMENTS);
        let exits = if hears || retires {
            Interest::NOTICED
        } else {
            Interest::NONE
        };
        if !inside.is_none() {
            inside = inside.with(exits);
        }
        // The interest of each consumer in its selected operations, and in those among them that enqueue work.
        let wants = |(consumer, selection): &(Consumer, &Selection)| match consumer {
            Consumer::Buffer(_) if !selection.kinds.has(Kind::API) => {
                (Interest::NONE, Interest::NONE)
            }
            Consumer::Buffer(slot) => {
                let open = if recovered.and(Interest::buffer(*slot).buffers()).is_none() {
                    Interest::NONE
                } else {
                    Interest::OPEN
                };
                let buffer = Interest::buffer(*slot).with(open).with(exits);
                let with_arguments = if annotated.and(buffer.buffers()).is_none() {
                    buffer
                } else {
                    buffer.with(Interest::ARGUMENTS)
                };
                if selection.enqueue_arguments {
                    (with_arguments, with_arguments)
                } else {
                    (with_arguments, buffer)
                }
            }
            Consumer::Subscriber(slot) => {
                let subscriber = Interest::subscriber(*slot).with(exits);
                (subscriber, subscriber)
            }
        };
        let wants: Vec<_> = running.iter().map(wants).collect();
        for (domain, _) in Domain::ALL {
            let observed = self.observed.get(domain.0 as usize);
            let mut row = match observed.and_then(Option::as_deref) {
                None => [Interest::NONE; OPERATIONS],
                Some(_) if self.ended => [Interest::LATE; OPERATIONS],
                Some(observed) => observed.map(|observed| match observed {
                    Observed::No => Interest::NONE,
                    Observed::Books => Interest::OBSERVED,
                    Observed::Work => Interest::OBSERVED.with(inside),
                }),
            };
            if !self.ended {
                add(&mut row, &self.gated.of(*domain), Interest::GATED);
            }
            let enqueues = self.enqueues.of(*domain);
            for ((_, selection), (of_most, of_enqueues)) in running.iter().zip(&wants) {
                let selected = selection.operations.of(*domain);
                let and = |those: fn(u64, u64) -> u64| {
                    std::array::from_fn(|word| those(selected[word], enqueues[word]))
                };
                add(&mut row, &and(|selected, of| selected & !of), *of_most);
                add(&mut row, &and(|selected, of| selected & of), *of_enqueues);
            }
            wanted.set_operations(*domain, &row, own_ids);
        }
    }
}

/// Adds `interest` to the operations whose bits are set.
fn add(row: &mut [Interest; OPERATIONS], bits: &[u64; OPERATIONS / 64], interest: Interest) {
    for (some, bits) in row.chunks_exact_mut(64).zip(bits) {
        match *bits {
            0 => {}
            u64::MAX => some.iter_mut().for_each(|of| *of = of.with(interest)),
            bits => {
                for (number, of) in some.iter_mut().enumerate() {
                    if bits & 1 << number != 0 {
                        *of = of.with(interest);
                    }
                }
            }
        }
    }
}

/// Domains of activities within calls.
const INSIDE_CALLS: [Domain; 5] = [
    Domain::RESOURCE,
    Domain::KERNEL_DISPATCH,
    Domain::MEMORY_COPY,
    Domain::MEMORY_ALLOCATION,
    Domain::SYNCHRONIZATION,
];

const _: () = assert!(BUFFERS == 32 && SUBSCRIBERS == 23);

/// Kinds of records that do not require device work to be tracked.
const OF_CALLS: KindSet = KindSet::of(&[
    Kind::API,
    Kind::ARGUMENTS,
    Kind::EXTERNAL_CORRELATION,
    Kind::MARKER,
    Kind::ENVIRONMENT,
    Kind::UNIFIED_MEMORY_COUNTER,
]);

/// The interface of the switchboard for contexts.
impl Switchboard {
    pub(crate) fn add_context(&self) -> Result<ContextKey, ServiceError> {
        let mut state = self.state();
        let services = &mut state.services;
        let place = match services.contexts.iter().position(Option::is_none) {
            Some(place) => place,
            None if services.contexts.len() < CONTEXTS => {
                services.contexts.push(None);
                services.contexts.len() - 1
            }
            None => return Err(ServiceError::TooMany),
        };
        services.last_incarnation += 1;
        let incarnation = services.last_incarnation;
        services.contexts[place] = Some(ContextState {
            incarnation,
            running: false,
            locked: false,
            services: Vec::new(),
            own_ids: false,
            samples: false,
            asks_for_all: false,
            narrowed: Vec::new(),
            counters: Vec::new(),
        });
        let key = ContextKey { place, incarnation };
        self.external.begin(key);
        Ok(key)
    }

    pub(crate) fn remove_context(&self, key: ContextKey) -> Result<(), ServiceError> {
        if self.has_agents(key) {
            self.forget_requests(key);
            self.sampling().stop(key);
            self.counting().stop(key);
        }
        self.sampling().release(key);
        self.counting().release(key);
        let mut state = self.state();
        state.services.context(key)?;
        state.services.contexts[key.place] = None;
        self.publish(&state);
        Ok(())
    }

    /// Adds a service. Services are locked once the context has been started.
    pub(crate) fn add_service(
        &self,
        key: ContextKey,
        consumer: Consumer,
        selection: Selection,
    ) -> Result<(), ServiceError> {
        let mut state = self.state();
        let context = state.services.context(key)?;
        if context.locked {
            return Err(ServiceError::Locked);
        }
        if context.services.iter().any(|(of, _)| *of == consumer) {
            return Err(ServiceError::Conflict);
        }
        context.services.push((consumer, selection));
        Ok(())
    }

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
    pub(crate) fn sample_now(
        &self,
        key: ContextKey,
        slot: usize,
        agent: AgentId,
        request: Request,
        deliver: Deliver,
    ) -> Result<Result<(), SamplingError>, ServiceError> {
        let delivery = Delivery {
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
    pub(crate) fn count_now(
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
    pub(crate) fn check_unlocked(&self, key: ContextKey) -> Result<(), ServiceError> {
        if self.state().services.context(key)?.locked {
            Err(ServiceError::Locked)
        } else {
            Ok(())
        }
    }

    /// Notes that the context asks for all agents.
    pub(super) fn asks_for_all(
        &self,
        key: ContextKey,
        service: ServiceKind,
    ) -> Result<(), ServiceError> {
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

    /// From now on the context has external ids of its own.
    pub(crate) fn set_own_ids(&self, key: ContextKey) -> Result<(), ServiceError> {
        if self.external.has(key) {
            return Ok(());
        }
        let mut state = self.state();
        state.services.context(key)?.own_ids = true;
        self.publish(&state);
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
        Ok(reserved.map_err(|conflict| Refused::<Countable>::from(conflict).into()))
    }

    /// Notes that the context is that of the recording.
    pub(crate) fn set_recording(&self, key: ContextKey) {
        self.agent_claims.set_recording(key);
    }

    /// Changes the selection of a service, also while it runs.
    pub(crate) fn change_service<R>(
        &self,
        key: ContextKey,
        consumer: Consumer,
        change: impl FnOnce(&mut Selection) -> R,
    ) -> Result<R, ServiceError> {
        let mut state = self.state();
        let context = state.services.context(key)?;
        let running = context.running;
        let service = context.services.iter_mut().find(|(of, _)| *of == consumer);
        let (_, selection) = service.ok_or(ServiceError::NoSuchService)?;
        let result = change(selection);
        if running {
            self.publish(&state);
        }
        Ok(result)
    }

    /// Sets whether the buffer in `slot` wants records of `kind` in the runtime context `of`. `None` removes the
    /// setting.
    pub(crate) fn narrow(
        &self,
        key: ContextKey,
        slot: usize,
        of: ContextId,
        kind: Kind,
        wants: Option<bool>,
    ) -> Result<(), ServiceError> {
        let mut state = self.state();
        let context = state.services.context(key)?;
        let serves = |(consumer, _): &(Consumer, Selection)| *consumer == Consumer::Buffer(slot);
        if !context.services.iter().any(serves) {
            return Err(ServiceError::NoSuchService);
        }
        context
            .narrowed
            .retain(|said| (said.0, said.1, said.2) != (slot, of, kind));
        context
            .narrowed
            .extend(wants.map(|wants| (slot, of, kind, wants)));
        self.publish(&state);
        Ok(())
    }

    pub(crate) fn start_context(&self, key: ContextKey) -> Result<(), ServiceError> {
        let uses_agents = self.uses_agents(key)?;
        self.switch(key, true, ServiceError::Started)?;
        if uses_agents {
            self.sampling().start(key);
            self.counting().start(key);
        }
        Ok(())
    }

    pub(crate) fn stop_context(&self, key: ContextKey) -> Result<(), ServiceError> {
        if self.uses_agents(key)? {
            // Pending samples and values are written while the buffers still accept them.
            self.sampling().stop(key);
            self.counting().stop(key);
        }
        self.switch(key, false, ServiceError::Stopped)
    }

    /// Whether the context samples or counts, which a buffer's callback cannot change.
    fn uses_agents(&self, key: ContextKey) -> Result<bool, ServiceError> {
        self.context_runs(key).ok_or(ServiceError::NoSuchContext)?;
        match self.has_agents(key) {
            true if is_delivering() || is_choosing() => Err(ServiceError::Busy),
            uses => Ok(uses),
        }
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

    /// Whether the context is started.
    pub(crate) fn is_started(&self, key: ContextKey) -> bool {
        let mut state = self.state();
        state
            .services
            .context(key)
            .is_ok_and(|context| context.running)
    }

    fn switch(&self, key: ContextKey, on: bool, already: ServiceError) -> Result<(), ServiceError> {
        let mut state = self.state();
        let context = state.services.context(key)?;
        if context.running == on {
            return Err(already);
        }
        (context.running, context.locked) = (on, true);
        self.publish(&state);
        Ok(())
    }

    /// Whether the context is started, or `None` if it does not exist.
    pub(crate) fn context_runs(&self, key: ContextKey) -> Option<bool> {
        let mut state = self.state();
        state
            .services
            .context(key)
            .ok()
            .map(|context| context.running)
    }

    /// Declares the operations that a source observes.
    pub fn observe(&self, operations: &[OperationInfo]) {
        let mut state = self.state();
        let services = &mut state.services;
        for info in operations {
            let operation = info.operation;
            if let Some(of_domain) = services.observed.get_mut(operation.domain.0 as usize) {
                let none = || Box::new([Observed::No; OPERATIONS]);
                let of_domain = of_domain.get_or_insert_with(none);
                if let Some(of) = of_domain.get_mut(operation.number as usize) {
                    *of = info.observed;
                }
            }
            if info.group == OperationGroup::ENQUEUE {
                services.enqueues.set(operation, true);
            }
        }
        self.publish(&state);
    }

    /// Sets the operations that pass the gate of the recording.
    pub(crate) fn set_gated(&self, operations: OperationSet) {
        let mut state = self.state();
        state.services.gated = operations;
        self.publish(&state);
    }

    /// Ends the recording. Later calls are counted as late.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.services.ended = true;
        self.publish(&state);
    }
}
