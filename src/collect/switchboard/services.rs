//! Contexts and their services, and the table computed from them.

use super::external::{Consumers, ExternalContexts};
use super::interest::{
    BUFFERS, Buffers, DOMAINS, Interest, OPERATIONS, Observed, SUBSCRIBERS, WantedTable,
};
use super::keys::{CONTEXTS, ContextKey, ServiceConsumer};
use super::narrowed::BufferTable;
use super::selection::{KindSet, OperationSet, RecordSelection};
use crate::agents::Claim;
use gputrail_record::{ContextId, Domain, Kind};

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
    pub(super) contexts: Vec<Option<ContextState>>,
    last_incarnation: u32,
    /// The work of sources for operations, by domain and number; `None` for domains without a source.
    pub(super) observed: [Option<Box<[Observed; OPERATIONS]>>; DOMAINS],
    /// The operations that enqueue work.
    pub(super) enqueues: OperationSet,
    /// Operations at which a recording may begin or end.
    pub(super) gated: OperationSet,
    /// Whether the recording has ended.
    pub(super) ended: bool,
}

pub(super) struct ContextState {
    incarnation: u32,
    pub(super) running: bool,
    pub(super) locked: bool,
    pub(super) services: Vec<(ServiceConsumer, RecordSelection)>,
    /// Whether external ids were pushed for it, or one of its services supplies them.
    pub(super) own_ids: bool,
    /// Whether it has the sampling service.
    pub(super) samples: bool,
    /// Whether it asks for all agents, also those that are offered later.
    pub(super) asks_for_all: bool,
    /// Kinds that a buffer wants, or does not want, in one runtime context.
    pub(super) narrowed: Vec<(usize, ContextId, Kind, bool)>,
    /// Held while counters are reserved, or the tool itself collects some.
    pub(super) counters: Vec<Claim>,
}

impl Services {
    pub fn context(&mut self, key: ContextKey) -> Result<&mut ContextState, ServiceError> {
        self.contexts
            .get_mut(key.place)
            .and_then(Option::as_mut)
            .filter(|context| context.incarnation == key.incarnation)
            .ok_or(ServiceError::NoSuchContext)
    }

    pub fn add(&mut self) -> Result<ContextKey, ServiceError> {
        let place = match self.contexts.iter().position(Option::is_none) {
            Some(place) => place,
            None if self.contexts.len() < CONTEXTS => {
                self.contexts.push(None);
                self.contexts.len() - 1
            }
            None => return Err(ServiceError::TooMany),
        };
        self.last_incarnation += 1;
        let incarnation = self.last_incarnation;
        self.contexts[place] = Some(ContextState {
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
        Ok(ContextKey { place, incarnation })
    }

    /// Removes `consumer`.
    pub fn forget(&mut self, consumer: ServiceConsumer) {
        for context in self.contexts.iter_mut().flatten() {
            context.services.retain(|(of, _)| *of != consumer);
            context
                .narrowed
                .retain(|said| ServiceConsumer::Buffer(said.0) != consumer);
        }
    }

    /// The buffers by runtime context.
    pub fn narrowed(&self) -> BufferTable {
        let mut table = BufferTable::default();
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
                    let ServiceConsumer::Buffer(slot) = consumer else {
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
                    ServiceConsumer::Buffer(slot) => consumers.add_buffer(place, *slot),
                    ServiceConsumer::Subscriber(slot) => consumers.add_subscriber(place, *slot),
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
        wanted: &WantedTable,
        narrowed: &BufferTable,
        recovered: Buffers,
        hears: bool,
        own_ids: Buffers,
    ) {
        let services = |runs: bool| -> Vec<(ServiceConsumer, &RecordSelection)> {
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
                |all: Buffers, (consumer, selection): &(ServiceConsumer, &RecordSelection)| {
                    match consumer {
                        ServiceConsumer::Buffer(slot) if selection.kinds.has(*kind) => {
                            all.or(Interest::buffer(*slot).buffers())
                        }
                        _ => all,
                    }
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
        let has_callbacks = |(consumer, selection): &(ServiceConsumer, &RecordSelection)| {
            let any = |domain: &Domain| selection.operations.has_any(*domain);
            matches!(consumer, ServiceConsumer::Subscriber(_)) && INSIDE_CALLS.iter().any(any)
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
        let wants = |(consumer, selection): &(ServiceConsumer, &RecordSelection)| match consumer {
            ServiceConsumer::Buffer(_) if !selection.kinds.has(Kind::API) => {
                (Interest::NONE, Interest::NONE)
            }
            ServiceConsumer::Buffer(slot) => {
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
            ServiceConsumer::Subscriber(slot) => {
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
            let mut stacks = [0; OPERATIONS / 64];
            for ((_, selection), (of_most, of_enqueues)) in running.iter().zip(&wants) {
                let selected = selection.operations.of(*domain);
                let and = |those: fn(u64, u64) -> u64| {
                    std::array::from_fn(|word| those(selected[word], enqueues[word]))
                };
                add(&mut row, &and(|selected, of| selected & !of), *of_most);
                let selected_enqueues = and(|selected, of| selected & of);
                add(&mut row, &selected_enqueues, *of_enqueues);
                if selection.call_stacks {
                    let all = stacks.iter_mut().zip(selected_enqueues);
                    all.for_each(|(all, of)| *all |= of);
                }
            }
            wanted.set_operations(*domain, &row, &stacks, own_ids);
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
