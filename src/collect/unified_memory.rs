//! The counters of managed memory that are recorded, by device (CUPTI: `cuptiActivityConfigureUnifiedMemoryCounter`).
//!
//! All counters are enabled on all devices, unless a tool says otherwise. Records of the kind
//! [`UNIFIED_MEMORY_COUNTER`](gputrail_record::Kind::UNIFIED_MEMORY_COUNTER) go to buffers that want them; this narrows what
//! they hold. Migrations are copies, which a selection of kinds leaves out.

use super::context::{ProcessAttributes, ToolError};
use gputrail_buffer::platform::sync::lock_std;
use gputrail_record::{AgentId, UnifiedMemoryCounterKind};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The enabled counters, as bits by their numbers: of all agents, and of those that differ.
#[derive(Debug)]
pub struct EnabledCounters {
    /// The counters of all agents without an entry of their own.
    pub all: u32,
    /// The counters of agents that differ.
    pub of_agents: BTreeMap<AgentId, u32>,
}

static ENABLED: Mutex<EnabledCounters> = Mutex::new(EnabledCounters::NEW);

impl EnabledCounters {
    const NEW: EnabledCounters = EnabledCounters {
        all: u32::MAX,
        of_agents: BTreeMap::new(),
    };

    fn configure(&mut self, agent: Option<AgentId>, bit: u32, enable: bool) {
        let set = |mask: &mut u32| if enable { *mask |= bit } else { *mask &= !bit };
        match agent {
            Some(agent) => set(self.of_agents.entry(agent).or_insert(self.all)),
            None => {
                set(&mut self.all);
                self.of_agents.values_mut().for_each(set);
            }
        }
    }

    fn is_enabled(&self, agent: AgentId, counter: UnifiedMemoryCounterKind) -> bool {
        let mask = self.of_agents.get(&agent).unwrap_or(&self.all);
        mask & 1 << (counter.0 & 31) != 0
    }
}

/// Enables or disables a counter of managed memory, on one agent or on all. The agent is the one that causes the events,
/// or the other one where the host does.
///
/// # Errors
///
/// [`ToolError::AttributesLocked`] once a context has been started. Nothing is changed then.
pub fn configure(
    agent: Option<AgentId>,
    counter: UnifiedMemoryCounterKind,
    enable: bool,
) -> Result<(), ToolError> {
    if ProcessAttributes::are_locked() {
        return Err(ToolError::AttributesLocked);
    }
    lock_std(&ENABLED).configure(agent, 1 << (counter.0 & 31), enable);
    Ok(())
}

/// Whether events of `counter` are recorded that `source` caused, and that concern `destination`.
pub fn is_enabled(
    (source, destination): (AgentId, AgentId),
    counter: UnifiedMemoryCounterKind,
) -> bool {
    let agent = if source.is_some() {
        source
    } else {
        destination
    };
    lock_std(&ENABLED).is_enabled(agent, counter)
}

/// Calls `with` with what is enabled.
pub fn with_enabled<R>(with: impl FnOnce(&EnabledCounters) -> R) -> R {
    with(&lock_std(&ENABLED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_differs_until_all_are_configured() {
        let (one, other) = (AgentId(1), AgentId(2));
        let faults = UnifiedMemoryCounterKind::DEVICE_PAGE_FAULT;
        let bit = 1 << faults.0;
        let mut enabled = EnabledCounters::NEW;
        enabled.configure(Some(one), bit, false);
        assert!(!enabled.is_enabled(one, faults) && enabled.is_enabled(other, faults));
        assert!(enabled.is_enabled(one, UnifiedMemoryCounterKind::THRASHING));
        enabled.configure(None, bit, false);
        assert!(!enabled.is_enabled(other, faults));
        enabled.configure(None, bit, true);
        assert!(enabled.is_enabled(one, faults) && enabled.is_enabled(other, faults));
    }
}
