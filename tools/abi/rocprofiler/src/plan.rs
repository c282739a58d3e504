//! The division of features into groups, each of which is counted in one run of a kernel, and the places in which kernels
//! are counted. Contexts with the same features of one device share a plan, so that opening one for each kernel is cheap.

use crate::flight;
use crate::types::{Answer, Failure};
use gputrail_abi::lock;
use gputrail_record::AgentId;
use gputrail_tool::Status as Of;
use gputrail_tool::counting::{self, Counter, CounterPool, CounterSet, PoolEntry, PoolOptions};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

/// The entries of the first pool of a group. Each further one has twice as many as the one before.
const ENTRIES: u32 = 64;
/// The most entries of a pool.
const MOST_ENTRIES: u32 = 1 << 16;

/// The groups of some features of a device.
#[derive(Debug)]
pub struct Plan {
    pub agent: AgentId,
    /// The counter or metric of each feature.
    pub counters: Vec<&'static str>,
    pub groups: Vec<Planned>,
}

/// A group.
#[derive(Debug, Default)]
pub struct Planned {
    /// The places of its features.
    pub features: Vec<usize>,
    /// Its counters and metrics, each once.
    pub counters: Vec<&'static str>,
    /// The number of times that a kernel runs for it: 1, unless it has one metric that needs more.
    pub passes: u32,
    pools: Mutex<Vec<CounterPool>>,
}

impl Plan {
    /// The plan for these features of `agent`.
    pub fn new(agent: AgentId, features: Vec<String>) -> Answer<Arc<Plan>> {
        type Plans = HashMap<(AgentId, Vec<String>), Arc<Plan>>;
        static PLANS: LazyLock<Mutex<Plans>> = LazyLock::new(Mutex::default);
        let key = (agent, features);
        if let Some(known) = lock(&PLANS).get(&key) {
            return Ok(known.clone());
        }
        let all = counting::counters(agent)?;
        let find = |name: &String| found(agent, &all, name);
        let counters = key.1.iter().map(find).collect::<Answer<Vec<_>>>()?;
        let groups = divide(agent, &counters)?;
        let plan = Arc::new(Plan {
            agent,
            counters,
            groups,
        });
        Ok(lock(&PLANS).entry(key).or_insert(plan).clone())
    }
}

/// The counter or metric with this name, of which upper and lower case are alike where that is unique.
fn found(agent: AgentId, all: &[Counter], name: &str) -> Answer<&'static str> {
    if let Some(exact) = all.iter().find(|one| one.name == name) {
        return Ok(exact.name);
    }
    let mut alike = all
        .iter()
        .filter(|one| one.name.eq_ignore_ascii_case(name.trim()));
    if let (Some(one), None) = (alike.next(), alike.next()) {
        return Ok(one.name);
    }
    // The library names the nearest ones. It may know more names than it lists.
    CounterSet::new(agent, &[name], None).map_err(|error| match error.status {
        Of::NOT_FOUND => Failure::argument(format!(
            "{}; rocprofiler_iterate_info and `gputrail counters list --agent` list those of the device",
            error.text
        )),
        _ => error.into(),
    })?;
    Ok(gputrail_abi::kept(name).to_str().unwrap_or_default())
}

/// Puts each counter into the first group that has room for it.
fn divide(agent: AgentId, counters: &[&'static str]) -> Answer<Vec<Planned>> {
    let passes = |names: &[&str]| -> Answer<u32> {
        let set = CounterSet::new(agent, names, None)?;
        Ok(set.passes()?)
    };
    let mut groups: Vec<Planned> = Vec::new();
    'counters: for (place, counter) in counters.iter().enumerate() {
        for group in &mut groups {
            let is_in = group.counters.contains(counter);
            let mut with = group.counters.clone();
            with.push(counter);
            if is_in || (group.passes == 1 && passes(&with)? == 1) {
                if !is_in {
                    group.counters = with;
                }
                group.features.push(place);
                continue 'counters;
            }
        }
        groups.push(Planned {
            features: vec![place],
            counters: vec![counter],
            passes: passes(&[counter])?,
            pools: Mutex::default(),
        });
    }
    if groups.is_empty() {
        // A context without features has the times of kernels.
        groups.push(Planned {
            passes: 1,
            ..Planned::default()
        });
    }
    Ok(groups)
}

impl Planned {
    /// A place for a kernel.
    pub fn fetch(&self, agent: AgentId) -> Answer<PoolEntry> {
        let mut pools = lock(&self.pools);
        for pool in pools.iter().rev() {
            match pool.fetch() {
                Err(error) if error.status == Of::TOO_MANY => {}
                fetched => return Ok(fetched?),
            }
        }
        let entries = ENTRIES.checked_shl(pools.len() as u32).unwrap_or(0);
        let options = PoolOptions {
            entries: entries.clamp(ENTRIES, MOST_ENTRIES),
            ..PoolOptions::default()
        };
        let pool = CounterPool::open(agent, &self.counters, options, |entry, values| {
            flight::counted(entry, values);
            true
        });
        let pool = pool?;
        let fetched = pool.fetch()?;
        pools.push(pool);
        Ok(fetched)
    }
}
