//! The interface of the switchboard for contexts: their services, and when they run. Sources declare here what they observe.

use super::board::Switchboard;
use super::interest::{OPERATIONS, Observed};
use super::keys::{ContextKey, ServiceConsumer};
use super::selection::{OperationSet, RecordSelection};
use super::services::ServiceError;
use crate::counting::is_choosing;
use crate::delivering::is_delivering;
use crate::operations::OperationInfo;
use gputrail_record::{ContextId, Kind, OperationGroup};

impl Switchboard {
    pub(crate) fn add_context(&self) -> Result<ContextKey, ServiceError> {
        let mut state = self.state();
        let key = state.services.add()?;
        self.external.begin(key);
        Ok(key)
    }

    pub(crate) fn remove_context(&self, key: ContextKey) -> Result<(), ServiceError> {
        if self.has_agents(key) {
            self.standing.forget(key);
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
        consumer: ServiceConsumer,
        selection: RecordSelection,
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

    /// Changes the selection of a service, also while it runs.
    pub(crate) fn change_service<R>(
        &self,
        key: ContextKey,
        consumer: ServiceConsumer,
        change: impl FnOnce(&mut RecordSelection) -> R,
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
        let serves = |(consumer, _): &(ServiceConsumer, RecordSelection)| {
            *consumer == ServiceConsumer::Buffer(slot)
        };
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
