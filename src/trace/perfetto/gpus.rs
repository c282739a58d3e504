//! The devices of a trace, told apart over several processes.

use std::collections::HashMap;

use super::observer::GpuIndex;
use super::writer::Gpu;
use crate::capture::Metadata;
use crate::record::{Agent, AgentId, AgentKind};

/// What makes two processes' agents the same device. Devices that are alike in all of it are told apart
/// by their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    name: String,
    vendor: String,
    platform: String,
    bus: String,
    kind: AgentKind,
    memory: u64,
    /// Number among those that are alike in one process.
    number: u32,
}

/// The devices seen so far.
#[derive(Debug, Default)]
pub(super) struct Gpus {
    known: HashMap<Identity, GpuIndex>,
    list: Vec<Gpu>,
}

impl Gpus {
    /// Takes in the agents of a process and tells which device each is.
    pub fn add(&mut self, metadata: &Metadata) -> HashMap<AgentId, GpuIndex> {
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
                self.list.push(describe(agent, metadata));
                GpuIndex(self.list.len() as u32 - 1)
            });
            indices.insert(agent.id, index);
        }
        indices
    }

    /// All devices; the place of each is its index.
    pub fn list(&self) -> &[Gpu] {
        &self.list
    }
}

fn describe(agent: &Agent, metadata: &Metadata) -> Gpu {
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
    let attributes = [
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
    Gpu {
        model: name.clone(),
        name,
        vendor: metadata.string(agent.vendor).to_owned(),
        architecture: metadata.string(agent.architecture).to_owned(),
        pci_address: metadata.string(agent.bus).to_owned(),
        attributes: attributes
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect(),
    }
}
