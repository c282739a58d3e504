//! Domains, events and metrics: their ids, which last as long as the process.
//!
//! Devices with the same counters are a family. A family has one id for each domain, event and metric.

use super::document;
use crate::objects::{self, CUdevice};
use crate::result::{Answer, CUptiResult};
use gputrail_abi::counting::counters;
use gputrail_abi::lock;
use gputrail_record::{AgentId, CounterUsage};
use gputrail_tool::counting::{Counter, metric_parts};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

/// A block of a device that counts.
#[derive(Debug)]
pub struct Domain {
    pub name: &'static str,
    pub instances: u32,
    /// The number of events that are counted at a time.
    pub capacity: usize,
    /// Places in [`Family::events`].
    pub events: Vec<usize>,
}

/// A counter.
#[derive(Debug)]
pub struct Event {
    pub name: &'static str,
    pub description: &'static str,
    /// The place of its domain in [`Family::domains`].
    pub domain: usize,
}

/// A metric.
#[derive(Debug)]
pub struct Metric {
    pub name: &'static str,
    pub description: &'static str,
    pub usage: CounterUsage,
    /// Places in [`Family::events`].
    pub events: Vec<usize>,
    /// Properties of the device, as gputrail names them.
    pub properties: Vec<&'static str>,
}

/// What devices with the same counters count.
#[derive(Debug)]
pub struct Family {
    number: u32,
    counters: Vec<Counter>,
    pub domains: Vec<Domain>,
    pub events: Vec<Event>,
    pub metrics: Vec<Metric>,
    /// The first of its devices.
    pub agent: AgentId,
}

/// The most families, and domains, events or metrics of a family.
const MOST: u32 = 1 << 16;

impl Family {
    fn new(number: u32, agent: AgentId, counters: Vec<Counter>) -> Family {
        let mut family = Family {
            number,
            counters: Vec::new(),
            domains: Vec::new(),
            events: Vec::new(),
            metrics: Vec::new(),
            agent,
        };
        for counter in counters.iter().filter(|counter| !counter.is_metric) {
            let known = family
                .domains
                .iter()
                .position(|one| one.name == counter.from);
            let domain = known.unwrap_or_else(|| {
                family.domains.push(Domain {
                    name: counter.from,
                    instances: counter.instances.max(1),
                    capacity: usize::from(counter.capacity).max(1),
                    events: Vec::new(),
                });
                family.domains.len() - 1
            });
            family.domains[domain].events.push(family.events.len());
            family.events.push(Event {
                name: counter.name,
                description: counter.description,
                domain,
            });
        }
        for counter in counters.iter().filter(|counter| counter.is_metric) {
            // Metrics that the totals of their counters do not tell are left out.
            let Ok(parts) = metric_parts(agent, counter.name) else {
                continue;
            };
            let events = parts.counters.iter().map(|name| family.event_named(name));
            if let Some(events) = events.collect() {
                family.metrics.push(Metric {
                    name: counter.name,
                    description: counter.description,
                    usage: counter.usage,
                    events,
                    properties: parts.properties,
                });
            }
        }
        family.counters = counters;
        family
    }

    /// The place of the event with this name.
    pub fn event_named(&self, name: &str) -> Option<usize> {
        self.events.iter().position(|event| event.name == name)
    }

    /// The id of the domain, event or metric at a place.
    pub fn id(&self, place: usize) -> u32 {
        self.number * MOST + place as u32 + 1
    }

    /// The ids of so many domains, events or metrics.
    pub fn ids(&self, count: usize) -> impl Iterator<Item = u32> {
        (0..count).map(|place| self.id(place))
    }

    /// Whether both are of one family.
    pub fn is_same(&self, other: &Family) -> bool {
        self.number == other.number
    }

    /// The domain of an event.
    pub fn domain_of(&self, event: usize) -> &Domain {
        &self.domains[self.events[event].domain]
    }
}

#[derive(Default)]
struct Families {
    all: Vec<Arc<Family>>,
    by_agent: HashMap<AgentId, Arc<Family>>,
}

static FAMILIES: LazyLock<Mutex<Families>> = LazyLock::new(Mutex::default);

/// What an agent counts.
pub fn of_agent(agent: AgentId) -> Answer<Arc<Family>> {
    if let Some(known) = lock(&FAMILIES).by_agent.get(&agent) {
        return Ok(known.clone());
    }
    // Outside of the lock, since they call the library.
    document::add();
    let made = Family::new(0, agent, counters(agent)?);
    let mut families = lock(&FAMILIES);
    let mut same = families.all.iter();
    let same = same.find(|one| one.counters == made.counters);
    let family = match same {
        Some(same) => same.clone(),
        None => {
            let number = families.all.len() as u32;
            if number >= MOST {
                return Err(CUptiResult::MAX_LIMIT_REACHED);
            }
            let family = Arc::new(Family { number, ..made });
            families.all.push(family.clone());
            family
        }
    };
    // A source may offer the counters of an agent later.
    if !family.counters.is_empty() {
        families.by_agent.insert(agent, family.clone());
    }
    Ok(family)
}

/// What a device counts.
pub fn of_device(device: CUdevice) -> Answer<Arc<Family>> {
    of_agent(objects::agent(device)?)
}

/// What all devices count.
fn all() -> Answer<Vec<Arc<Family>>> {
    for agent in objects::any_agents()? {
        of_agent(agent)?;
    }
    Ok(lock(&FAMILIES).all.clone())
}

/// The ids of domains, events or metrics of all devices: `count` of each family.
pub fn all_ids(count: impl Fn(&Family) -> usize) -> Answer<Vec<u32>> {
    let all = all()?;
    let ids = all.iter().flat_map(|family| family.ids(count(family)));
    Ok(ids.collect())
}

/// The family and the place that an id stands for, if that is below `count` of them.
fn found(id: u32, count: impl Fn(&Family) -> usize) -> Option<(Arc<Family>, usize)> {
    let (number, place) = ((id / MOST) as usize, (id % MOST).checked_sub(1)? as usize);
    let family = lock(&FAMILIES).all.get(number)?.clone();
    (place < count(&family)).then_some((family, place))
}

/// The domain with this id: its family, and its place there.
pub fn domain(id: u32) -> Answer<(Arc<Family>, usize)> {
    found(id, |family| family.domains.len()).ok_or(CUptiResult::INVALID_EVENT_DOMAIN_ID)
}

/// The event with this id.
pub fn event(id: u32) -> Answer<(Arc<Family>, usize)> {
    found(id, |family| family.events.len()).ok_or(CUptiResult::INVALID_EVENT_ID)
}

/// The metric with this id.
pub fn metric(id: u32) -> Answer<(Arc<Family>, usize)> {
    found(id, |family| family.metrics.len()).ok_or(CUptiResult::INVALID_METRIC_ID)
}
