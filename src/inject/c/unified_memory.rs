//! The configuration of counters of managed memory.

use super::status::FailedCall;
use super::{done, library};
use gputrail_collect::unified_memory;
use gputrail_interface::c::Status;
use gputrail_record::{AgentId, UnifiedMemoryCounterKind};

/// Enables (1) or disables (0) a counter of managed memory on one agent, or on all if `agent` is 0 (CUPTI:
/// `cuptiActivityConfigureUnifiedMemoryCounter`, scopes single device and all devices). All are enabled at first. The
/// agent is the one that causes the events, or the other one where the host does. Migrations are copies.
///
/// Errors: `GPUTRAIL_ATTRIBUTES_LOCKED` once a context of the process has been started; `GPUTRAIL_INVALID_ARGUMENT` for
/// an unknown counter or `enable`; `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_unified_memory_configure(
    agent: AgentId,
    counter: UnifiedMemoryCounterKind,
    enable: u32,
) -> Status {
    done(|| {
        drop(library::state()?);
        let is_known = counter != UnifiedMemoryCounterKind::UNKNOWN && counter.name().is_some();
        if !is_known || enable > 1 {
            let text = format!(
                "counter {} and enable {enable}: expected a GPUTRAIL_UNIFIED_MEMORY_COUNTER_KIND and 0 or 1",
                counter.0
            );
            return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
        }
        let agent = agent.is_some().then_some(agent);
        Ok(unified_memory::configure(agent, counter, enable == 1)?)
    })
}
