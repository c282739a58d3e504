//! The agents of a trace: agents of several processes that are the same device become one.

use std::collections::HashMap;

use crate::model::{self, Agent, AgentIndex};
use gputrail_capture::Metadata;
use gputrail_record::{self as record, AgentAttributeKind, AgentId, AgentKind};

/// The properties by which agents of two processes are the same device. Devices with equal properties are distinguished
/// by their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    name: String,
    vendor: String,
    platform: String,
    bus: String,
    kind: AgentKind,
    memory: u64,
    /// Its number among the agents of its process with equal properties.
    number: u32,
}

/// The agents seen so far.
#[derive(Debug, Default)]
pub(super) struct Agents {
    known: HashMap<Identity, AgentIndex>,
    list: Vec<Agent>,
}

impl Agents {
    /// Adds the agents of a process. Returns the index of each.
    pub fn add(&mut self, metadata: &Metadata) -> HashMap<AgentId, AgentIndex> {
        let mut seen: HashMap<Identity, u32> = HashMap::new();
        let mut indices = HashMap::new();
        for agent in metadata.agents.values() {
            let mut identity = Identity {
                name: metadata.string(agent.name).to_owned(),
                vendor: metadata.string(agent.vendor).to_owned(),
                platform: metadata.string(agent.platform).to_owned(),
                bus: metadata.string(agent.bus).to_owned(),
                kind: agent.kind,
                memory: agent.memory,
                number: 0,
            };
            let number = seen.entry(identity.clone()).or_default();
            identity.number = *number;
            *number += 1;
            let index = *self.known.entry(identity).or_insert_with(|| {
                let index = AgentIndex(self.list.len() as u32);
                self.list.push(describe(agent, metadata, index));
                index
            });
            indices.insert(agent.id, index);
        }
        indices
    }

    /// All agents, in the order of their indices.
    pub fn list(&self) -> &[Agent] {
        &self.list
    }
}

/// The short name of an agent.
pub fn title(kind: AgentKind, index: AgentIndex) -> String {
    model::agent_title(kind.name().unwrap_or_default(), index)
}

fn describe(agent: &record::Agent, metadata: &Metadata, index: AgentIndex) -> Agent {
    let name = metadata.string(agent.name).to_owned();
    let text = |key: &str, id| (key.to_owned(), metadata.string(id).to_owned());
    let number = |key: &str, value: u64| {
        let value = if value == 0 {
            String::new()
        } else {
            value.to_string()
        };
        (key.to_owned(), value)
    };
    let kind = agent.kind.name().unwrap_or("device").to_owned();
    let described = [
        ("kind".to_owned(), kind),
        text("platform", agent.platform),
        text("driver", agent.driver),
        text("version", agent.version),
        number("compute_units", u64::from(agent.compute_units)),
        number("clock_mhz", u64::from(agent.clock_mhz)),
        number("memory_bytes", agent.memory),
        number("local_memory_bytes", agent.local_memory),
        number("max_workgroup", u64::from(agent.max_workgroup)),
    ];
    Agent {
        title: title(agent.kind, index),
        model: name.clone(),
        name,
        vendor: metadata.string(agent.vendor).to_owned(),
        architecture: metadata.string(agent.architecture).to_owned(),
        pci_address: metadata.string(agent.bus).to_owned(),
        attributes: described
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .chain(metadata.attributes(agent.id).filter_map(attribute))
            .chain(metadata.links(agent.id).map(|one| link(one, metadata)))
            .collect(),
    }
}

/// A link as a key and a value. The key names the other end.
fn link(link: &record::Link, metadata: &Metadata) -> (String, String) {
    let bus = |peer: &record::Agent| metadata.string(peer.bus).to_owned();
    let peer = match metadata.agents.get(&link.peer).map(bus) {
        Some(bus) if !bus.is_empty() => bus,
        _ if link.peer.is_some() => format!("agent {}", link.peer),
        _ => "host".to_owned(),
    };
    let key = format!("{}{peer}", model::LINK);
    (key, link.in_words(metadata.string(link.upstream)))
}

/// An attribute as a key and a value; `None` for one that this version does not know.
fn attribute(attribute: &record::AgentAttribute) -> Option<(String, String)> {
    let value = match attribute.what {
        AgentAttributeKind::PCI_VENDOR | AgentAttributeKind::PCI_DEVICE => {
            format!("{:#06x}", attribute.value)
        }
        _ => attribute.value.to_string(),
    };
    Some((attribute.what.name()?.replace(' ', "_"), value))
}
