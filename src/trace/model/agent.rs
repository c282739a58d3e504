//! Agents (devices) and their queues.

use super::{AgentIndex, ProcessIndex};
use crate::record::{ContextId, Domain};

/// An agent. Unknown properties are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// Its kind and index, with which the names of its tracks begin: "GPU 0".
    pub title: String,
    /// Its name.
    pub name: String,
    /// Its vendor.
    pub vendor: String,
    /// Its model.
    pub model: String,
    /// Its architecture, as compilers name it.
    pub architecture: String,
    /// Its PCI address.
    pub pci_address: String,
    /// Further properties: keys and values.
    pub attributes: Vec<(String, String)>,
}

/// A queue of a process on an agent.
#[derive(Copy, Clone, Debug)]
pub struct Queue<'a> {
    /// The process.
    pub process: ProcessIndex,
    /// The agent.
    pub agent: AgentIndex,
    /// The context that the queue belongs to.
    pub context: ContextId,
    /// The API that the queue belongs to.
    pub domain: Domain,
    /// Its name among the queues of the process on this agent: "queue 0".
    pub name: &'a str,
    /// Whether its commands may overtake each other.
    pub out_of_order: bool,
}
