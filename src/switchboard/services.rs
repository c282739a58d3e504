//! Contexts and their services, and the table that follows from them.

use super::interest::{BUFFERS, DOMAINS, OPERATIONS, SUBSCRIBERS};
use super::{Buffers, Interest, KindSet, Observed, Selection, State, Switchboard, Wanted};
use crate::record::{Domain, Kind, Operation};
use std::collections::HashMap;

/// Who gets what a service selects.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Consumer {
    /// The buffer in this slot.
    Buffer(usize),
    /// The subscriber in this slot.
    Subscriber(usize),
}

/// A context: its place, and which of those that had the place it is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct ContextKey {
    place: usize,
    incarnation: u32,
}

/// Contexts of a process at a time.
pub(crate) const CONTEXTS: usize = 64;

/// A change that a context does not allow.
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
    #[error("contexts: {CONTEXTS} at a time, and all are in use")]
    TooMany,
}

#[derive(Default)]
pub(super) struct Services {
    contexts: Vec<Option<ContextState>>,
    last_incarnation: u32,
    /// What sources do with operations.
    observed: HashMap<Operation, Observed>,
    /// The recording has ended.
    ended: bool,
}

struct ContextState {
    incarnation: u32,
    running: bool,
    locked: bool,
    services: Vec<(Consumer, Selection)>,
}

impl Services {
    fn context(&mut self, key: ContextKey) -> Result<&mut ContextState, ServiceError> {
        self.contexts
            .get_mut(key.place)
            .and_then(Option::as_mut)
            .filter(|context| context.incarnation == key.incarnation)
            .ok_or(ServiceError::NoSuchContext)
    }

    /// `consumer` has gone.
    pub fn forget(&mut self, consumer: Consumer) {
        for context in self.contexts.iter_mut().flatten() {
            context.services.retain(|(of, _)| *of != consumer);
        }
    }

    /// Writes the words that follow from the services into `wanted`.
    pub fn publish(&self, wanted: &Wanted) {
        let running = || {
            let running = self
                .contexts
                .iter()
                .flatten()
                .filter(|context| context.running);
            running
                .flat_map(|context| &context.services)
                .filter(|_| !self.ended)
        };
        // Subscribers that are told of work.
        const WORK: [Domain; 4] = [
            Domain::KERNEL_DISPATCH,
            Domain::MEMORY_COPY,
            Domain::MEMORY_ALLOCATION,
            Domain::SYNCHRONIZATION,
        ];
        let mut any_work = running().any(|(consumer, selection)| {
            matches!(consumer, Consumer::Subscriber(_))
                && WORK
                    .iter()
                    .any(|domain| selection.operations.has_any(*domain))
        });
        for (kind, _) in Kind::ALL {
            let mut buffers = Buffers::NONE;
            for (consumer, selection) in running() {
                if let Consumer::Buffer(slot) = consumer
                    && selection.kinds.has(*kind)
                {
                    buffers = buffers.or(Interest::buffer(*slot).buffers());
                }
            }
            any_work |= !buffers.is_none() && !OF_CALLS.has(*kind);
            wanted.set_kind(*kind, buffers);
        }
        for domain in 0..DOMAINS as u16 {
            for number in 0..OPERATIONS as u16 {
                let domain = Domain(domain);
                let operation = Operation { domain, number };
                let mut interest = match self.observed.get(&operation).copied().unwrap_or_default()
                {
                    _ if self.ended => Interest::LATE,
                    Observed::No => Interest::NONE,
                    Observed::Work if any_work => Interest::OBSERVED.with(Interest::WORK),
                    Observed::Books | Observed::Work => Interest::OBSERVED,
                };
                for (consumer, selection) in running() {
                    interest = interest.with(match consumer {
                        _ if !selection.operations.has(operation) => Interest::NONE,
                        Consumer::Buffer(_) if !selection.kinds.has(Kind::API) => Interest::NONE,
                        Consumer::Buffer(slot) => Interest::buffer(*slot),
                        Consumer::Subscriber(slot) => Interest::subscriber(*slot),
                    });
                }
                // Pages of domains that nobody uses stay untouched.
                if wanted.operation(operation) != interest {
                    wanted.set_operation(operation, interest);
                }
            }
        }
    }
}

const _: () = assert!(BUFFERS == 32 && SUBSCRIBERS <= 28);

/// Kinds of records that come without device work being followed.
const OF_CALLS: KindSet = KindSet::of(&[
    Kind::API,
    Kind::ARGUMENTS,
    Kind::EXTERNAL_CORRELATION,
    Kind::MARKER,
]);

/// The part of the switchboard that contexts use.
impl Switchboard {
    pub(crate) fn add_context(&self) -> Result<ContextKey, ServiceError> {
        let services = &mut self.state().services;
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
        });
        Ok(ContextKey { place, incarnation })
    }

    pub(crate) fn remove_context(&self, key: ContextKey) -> Result<(), ServiceError> {
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

    /// Changes what a service selects, also while it runs.
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

    pub(crate) fn start_context(&self, key: ContextKey) -> Result<(), ServiceError> {
        self.switch(key, true, ServiceError::Started)
    }

    pub(crate) fn stop_context(&self, key: ContextKey) -> Result<(), ServiceError> {
        self.switch(key, false, ServiceError::Stopped)
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

    /// Whether the context is there, and then whether it is started.
    pub(crate) fn context_runs(&self, key: ContextKey) -> Option<bool> {
        let mut state = self.state();
        state
            .services
            .context(key)
            .ok()
            .map(|context| context.running)
    }

    /// A source says what it does with its operations.
    pub(crate) fn observe(&self, operations: impl IntoIterator<Item = (Operation, Observed)>) {
        let mut state = self.state();
        state.services.observed.extend(operations);
        self.publish(&state);
    }

    /// Nothing is recorded any more; calls that come are late.
    pub(crate) fn end(&self) {
        let mut state: std::sync::MutexGuard<'_, State> = self.state();
        state.services.ended = true;
        self.publish(&state);
    }
}
