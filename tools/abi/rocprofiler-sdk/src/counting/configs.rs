//! Sets of counters that are collected at the same time.

use super::catalogue::{self, KnownCounter, found};
use super::failed;
use crate::agents;
use crate::place::{array, place_of};
use crate::result::{Answer, api};
use gputrail_abi::Handles;
use gputrail_record as record;
use gputrail_rocprofiler::{AgentId, CounterConfigId, CounterId, Status};
use gputrail_tool::counting::CounterSet;
use std::sync::Arc;

/// A set of counters of an agent.
pub struct Config {
    /// The agent.
    pub agent: AgentId,
    /// The agent, as gputrail knows it.
    pub device: record::AgentId,
    /// The counters, each once.
    pub counters: Vec<&'static KnownCounter>,
    /// The set that kernels are counted with.
    pub set: CounterSet,
}

static CONFIGS: Handles<Config> = Handles::new();

/// The set with an id.
///
/// # Errors
///
/// `CONFIG_NOT_FOUND`.
pub fn config(id: CounterConfigId) -> Answer<Arc<Config>> {
    let found = CONFIGS.get(id.handle as usize);
    found.ok_or(Status::ERROR_CONFIG_NOT_FOUND)
}

impl Config {
    fn new(agent: AgentId, ids: &[CounterId], base: Option<Arc<Config>>) -> Answer<Config> {
        if agent == agents::host() {
            return Err(Status::ERROR_METRIC_NOT_VALID_FOR_AGENT);
        }
        let device = agents::of_id(agent)?;
        // The agents that have a counter are known once their counters have been asked for.
        catalogue::of_device(device)?;
        let mut counters: Vec<&'static KnownCounter> = Vec::new();
        let named = ids.iter().map(|id| found(*id));
        let inherited = base
            .iter()
            .flat_map(|base| base.counters.iter().copied().map(Ok));
        for counter in named.chain(inherited) {
            let counter: &'static KnownCounter = counter?;
            if !counter.is_of(device) {
                return Err(Status::ERROR_METRIC_NOT_VALID_FOR_AGENT);
            }
            if counters.iter().all(|known| known.id != counter.id) {
                counters.push(counter);
            }
        }
        if counters.is_empty() {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
        let names: Vec<&str> = counters.iter().map(|one| one.counter.name).collect();
        let set = CounterSet::of_each_instance(device, &names).map_err(failed)?;
        if set.passes().map_err(failed)? > 1 {
            return Err(Status::ERROR_EXCEEDS_HW_LIMIT);
        }
        Ok(Config {
            agent,
            device,
            counters,
            set,
        })
    }
}

/// Makes a set of counters. If the place holds a set, its counters are in the new one, too. Also when the counters of a dispatch are
/// chosen.
///
/// `AGENT_NOT_FOUND`, `COUNTER_NOT_FOUND`; `METRIC_NOT_VALID_FOR_AGENT` for a counter that the agent does not have;
/// `EXCEEDS_HW_LIMIT` for more than one pass has room for; `NOT_AVAILABLE` if the system does not allow it, or the agent is read
/// at the moment; `INVALID_ARGUMENT` without counters.
///
/// # Safety
///
/// `counters` is null or leads to `count` ids; `config` is null or a place with an id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_create_counter_config(
    agent: AgentId,
    counters: *mut CounterId,
    count: usize,
    config_id: *mut CounterConfigId,
) -> Status {
    api(|| {
        // SAFETY: `config_id` is null or a place with an id.
        let place = unsafe { place_of(config_id) }?;
        // SAFETY: `counters` is null or leads to `count` ids, which the client leaves alone during the call.
        let ids = unsafe { array(counters.cast_const(), count) };
        // A set that is gone is none.
        let base = config(place.get()).ok();
        let new = Arc::new(Config::new(agent, ids, base)?);
        let handle = Handles::<Config>::number();
        CONFIGS.add(handle, new);
        place.put(CounterConfigId {
            handle: handle as u64,
        });
        Ok(())
    })
}

/// Destroys a set. What counts with it goes on. A set that there is not is no error, as with AMD's library.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_destroy_counter_config(config: CounterConfigId) -> Status {
    api(|| {
        drop(CONFIGS.remove(config.handle as usize));
        Ok(())
    })
}

/// `rocprofiler_create_counter_config`, by its name before version 1.0.
///
/// # Safety
///
/// As for that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_create_profile_config(
    agent: AgentId,
    counters: *mut CounterId,
    count: usize,
    config: *mut CounterConfigId,
) -> Status {
    // SAFETY: the same promises.
    unsafe { rocprofiler_create_counter_config(agent, counters, count, config) }
}

/// `rocprofiler_destroy_counter_config`, by its name before version 1.0.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_destroy_profile_config(config: CounterConfigId) -> Status {
    rocprofiler_destroy_counter_config(config)
}
