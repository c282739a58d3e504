//! The configuration of counters of managed memory.

use super::Error;
use super::functions::act;
use gputrail_record::{AgentId, UnifiedMemoryCounterKind};

/// Enables or disables a counter of managed memory on one agent, or on all. All are enabled at first. The agent is the
/// one that causes the events, or the other one where the host does. Migrations are copies.
///
/// # Errors
///
/// `ATTRIBUTES_LOCKED` once a context of the process has been started; `INVALID_ARGUMENT` for an unknown counter.
pub fn configure_unified_memory(
    agent: Option<AgentId>,
    counter: UnifiedMemoryCounterKind,
    enable: bool,
) -> Result<(), Error> {
    act!(gputrail_unified_memory_configure(
        agent.unwrap_or(AgentId::NONE),
        counter,
        u32::from(enable)
    ))
}
