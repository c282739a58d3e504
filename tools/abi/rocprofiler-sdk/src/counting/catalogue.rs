//! The counters of agents: their ids, which last as long as the process, and the ids of their values.

use super::failed;
use crate::agents;
use crate::result::Answer;
use gputrail_abi::counting::counters;
use gputrail_abi::lock;
use gputrail_record as record;
use gputrail_rocprofiler::{
    AgentId, CounterDimensionId, CounterId, CounterInstanceId, DIMENSION_INSTANCE, Status,
};
use gputrail_tool::counting::Counter;
use std::collections::HashMap;
use std::sync::Mutex;

/// The bits of an id of a counter.
const ID_BITS: u32 = 16;
/// The lowest bit of the id of a counter in the id of a value.
const ID_PLACE: u32 = 48;
/// The lowest bit and the number of bits of each dimension in the id of a value.
const DIMENSIONS: [(u32, u32); 8] = [
    (0, ID_PLACE),
    (0, 6),
    (6, 6),
    (12, 6),
    (18, 6),
    (24, 6),
    (30, 6),
    (36, 10),
];

/// A counter or metric that one agent at least has.
#[derive(Debug)]
pub struct KnownCounter {
    /// Its id.
    pub id: CounterId,
    /// Its description.
    pub counter: Counter,
    /// The agents that have it.
    agents: Mutex<Vec<record::AgentId>>,
}

impl KnownCounter {
    /// The number of its instances, as far as ids of values can tell them apart.
    pub fn instances(&self) -> u32 {
        let most = 1 << DIMENSIONS[DIMENSION_INSTANCE as usize].1;
        self.counter.instances.clamp(1, most)
    }

    /// The id of a value.
    pub fn instance_id(&self, instance: u32) -> CounterInstanceId {
        let (place, _) = DIMENSIONS[DIMENSION_INSTANCE as usize];
        let instance = instance.min(self.instances() - 1);
        self.id.handle << ID_PLACE | u64::from(instance) << place
    }

    /// Whether an agent has it.
    pub fn is_of(&self, agent: record::AgentId) -> bool {
        lock(&self.agents).contains(&agent)
    }
}

/// The name, the block or expression, the sort and the instances: two counters with the same ones are one.
type Key = (&'static str, &'static str, bool, u32);

#[derive(Default)]
struct Catalogue {
    all: Vec<&'static KnownCounter>,
    places: HashMap<Key, usize>,
}

static CATALOGUE: Mutex<Option<Catalogue>> = Mutex::new(None);

/// The counters of an agent.
///
/// # Errors
///
/// `AGENT_NOT_FOUND`; `AGENT_ARCH_NOT_SUPPORTED` if it has none, as the host.
pub fn of_agent(agent: AgentId) -> Answer<Vec<&'static KnownCounter>> {
    if agent == agents::host() {
        return Err(Status::ERROR_AGENT_ARCH_NOT_SUPPORTED);
    }
    of_device(agents::of_id(agent)?)
}

/// The counters of gputrail's agent.
///
/// # Errors
///
/// `AGENT_ARCH_NOT_SUPPORTED` if it has none.
pub fn of_device(device: record::AgentId) -> Answer<Vec<&'static KnownCounter>> {
    // Outside of the lock, since it calls the library.
    let counters = counters(device).map_err(failed)?;
    if counters.is_empty() {
        return Err(Status::ERROR_AGENT_ARCH_NOT_SUPPORTED);
    }
    let mut catalogue = lock(&CATALOGUE);
    let catalogue = catalogue.get_or_insert_default();
    let mut found = Vec::with_capacity(counters.len());
    for counter in counters {
        let key = (
            counter.name,
            counter.from,
            counter.is_metric,
            counter.instances,
        );
        let known = match catalogue.places.get(&key) {
            Some(place) => catalogue.all[*place],
            None => {
                let place = catalogue.all.len();
                if place + 1 >= 1 << ID_BITS {
                    return Err(Status::ERROR_OUT_OF_RESOURCES);
                }
                let new: &'static KnownCounter = Box::leak(Box::new(KnownCounter {
                    id: CounterId {
                        handle: place as u64 + 1,
                    },
                    counter,
                    agents: Mutex::default(),
                }));
                catalogue.all.push(new);
                catalogue.places.insert(key, place);
                new
            }
        };
        let mut agents = lock(&known.agents);
        if !agents.contains(&device) {
            agents.push(device);
        }
        drop(agents);
        found.push(known);
    }
    Ok(found)
}

/// The counter with an id, of which 16 bits count.
///
/// # Errors
///
/// `COUNTER_NOT_FOUND`.
pub fn found(id: CounterId) -> Answer<&'static KnownCounter> {
    let place = (id.handle & ((1 << ID_BITS) - 1)).checked_sub(1);
    let catalogue = lock(&CATALOGUE);
    let found = place.zip(catalogue.as_ref());
    let found = found.and_then(|(place, catalogue)| catalogue.all.get(place as usize).copied());
    found.ok_or(Status::ERROR_COUNTER_NOT_FOUND)
}

/// The id of the counter of a value, whether there is one or not.
pub fn counter_of(value: CounterInstanceId) -> CounterId {
    CounterId {
        handle: value >> ID_PLACE,
    }
}

/// The position of a value in a dimension; 0 in one that there is not.
pub fn position(value: CounterInstanceId, dimension: CounterDimensionId) -> usize {
    let bits = usize::try_from(dimension).ok();
    let bits = bits.and_then(|dimension| DIMENSIONS.get(dimension));
    bits.map_or(0, |&(place, bits)| {
        (value >> place & ((1_u64 << bits) - 1)) as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::CounterUsage;

    fn known(instances: u32) -> KnownCounter {
        KnownCounter {
            id: CounterId { handle: 7 },
            counter: Counter {
                name: "A",
                description: "",
                from: "SQ",
                is_metric: false,
                usage: CounterUsage::ITEMS,
                capacity: 1,
                instances,
            },
            agents: Mutex::default(),
        }
    }

    #[test]
    fn ids_of_values_tell_the_counter_and_the_instance() {
        let value = known(8).instance_id(5);
        assert_eq!(counter_of(value).handle, 7);
        assert_eq!(position(value, DIMENSION_INSTANCE), 5);
        assert_eq!(position(value, 1), 0);
        assert_eq!(position(value, 0), 5 << 36);
        assert_eq!(position(value, 99), 0);
    }

    #[test]
    fn there_is_one_instance_at_least_and_as_many_as_ids_have() {
        assert_eq!(known(0).instances(), 1);
        assert_eq!(known(5000).instances(), 1024);
        let last = known(5000).instance_id(4000);
        assert_eq!(position(last, DIMENSION_INSTANCE), 1023);
    }
}
