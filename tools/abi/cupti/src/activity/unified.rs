//! Counters of unified memory: which of them have records, and where a processor's page fault happens.

use crate::objects::{self, CUdevice};
use crate::result::CUptiResult;
use crate::with_gputrail;
use gputrail_abi::lock;
use gputrail_record::{AgentId, UnifiedMemoryCounterKind};
use gputrail_tool as tool;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The kinds of migrations that were configured, of one device or of all; all are on at first.
struct Migrations(BTreeMap<(u32, Option<AgentId>), bool>);

static MIGRATIONS: Mutex<Migrations> = Mutex::new(Migrations(BTreeMap::new()));

impl Migrations {
    fn set(&mut self, kind: u32, agent: Option<AgentId>, is_on: bool) {
        if agent.is_none() {
            self.0.retain(|(of, _), _| *of != kind);
        }
        self.0.insert((kind, agent), is_on);
    }

    fn has(&self, kind: u32, agent: AgentId) -> bool {
        let of = |agent| self.0.get(&(kind, agent)).copied();
        of(Some(agent)).or_else(|| of(None)).unwrap_or(true)
    }
}

/// Whether migrations of a kind between these agents, of which one may be the host, have records.
pub fn is_enabled(kind: u32, agents: [AgentId; 2]) -> bool {
    let migrations = lock(&MIGRATIONS);
    let mut devices = agents.into_iter().filter(|agent| agent.is_some());
    devices.any(|agent| migrations.has(kind, agent))
}

/// Where the simulated GPU's host accesses managed memory: its program has no instructions of its own, so that it is the
/// function of gputrail's that runs it.
pub fn program_counter() -> u64 {
    let function = gputrail_abi::function(c"gputrail_simulation_run");
    function.map_or(0, |function| function.addr().get() as u64)
}

/// `CUpti_ActivityUnifiedMemoryCounterConfig`
#[derive(Copy, Clone)]
#[repr(C)]
pub struct UnifiedMemoryConfig {
    scope: u32,
    kind: u32,
    device: u32,
    enable: u32,
}

/// Says which counters of unified memory there are records of.
///
/// # Safety
///
/// `configs` is null or leads to `count` structures.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityConfigureUnifiedMemoryCounter(
    configs: *const UnifiedMemoryConfig,
    count: u32,
) -> CUptiResult {
    with_gputrail(|| {
        if configs.is_null() || !configs.is_aligned() || count == 0 {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        // SAFETY: `configs` is neither null nor misaligned, and leads to `count` structures, which the program leaves alone
        // during the call.
        let configs = unsafe { std::slice::from_raw_parts(configs, count as usize) };
        let known = |config: &UnifiedMemoryConfig| {
            matches!(config.scope, 1 | 2) && matches!(config.kind, 1..=8) && config.enable <= 1
        };
        if !configs.iter().all(known) {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        for config in configs {
            // CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE
            let agent = match config.scope {
                1 => {
                    let device = config.device as CUdevice;
                    Some(objects::agent(device).map_err(|_| CUptiResult::INVALID_PARAMETER)?)
                }
                _ => None,
            };
            let is_on = config.enable == 1;
            if let 3..=7 = config.kind {
                let counter = UnifiedMemoryCounterKind(config.kind as u8);
                tool::configure_unified_memory(agent, counter, is_on).map_err(
                    |error| match error.status {
                        tool::Status::ATTRIBUTES_LOCKED => CUptiResult::UM_PROFILING_NOT_SUPPORTED,
                        _ => error.into(),
                    },
                )?;
            } else {
                // Migrations are copies of gputrail's, of which those are told that are on.
                lock(&MIGRATIONS).set(config.kind, agent, is_on);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_differs_until_all_are_configured() {
        let (one, other) = (AgentId(1), AgentId(2));
        let mut migrations = Migrations(BTreeMap::new());
        assert!(migrations.has(1, one));
        migrations.set(1, Some(one), false);
        assert!(!migrations.has(1, one) && migrations.has(1, other) && migrations.has(2, one));
        migrations.set(1, None, false);
        migrations.set(1, Some(other), true);
        assert!(!migrations.has(1, one) && migrations.has(1, other));
        migrations.set(1, None, true);
        assert!(migrations.has(1, one));
    }
}
