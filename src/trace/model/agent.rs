//! Agents (devices) and their queues.

use super::{AgentIndex, ProcessIndex};
use gputrail_record::{ContextId, Domain};

/// An agent. Unknown properties are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// Its short name, with which the names of its tracks begin: "GPU 0".
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

/// The words with which short names of agents begin.
pub const TITLES: [&str; 3] = ["GPU", "CPU", "Acc"];

/// The short name of an agent, by which its tracks and the command's output call it: "GPU 0". `kind` is the name of an
/// [`AgentKind`](gputrail_record::AgentKind), or empty.
pub fn title(kind: &str, index: AgentIndex) -> String {
    use gputrail_record::AgentKind;

    let [gpu, cpu, accelerator] = TITLES;
    let short = match AgentKind::ALL.iter().find(|(_, name)| *name == kind) {
        Some((AgentKind::CPU, _)) => cpu,
        Some((AgentKind::ACCELERATOR, _)) => accelerator,
        _ => gpu,
    };
    format!("{short} {}", index.0)
}

/// The short name of an agent that a recording does not describe.
pub const UNKNOWN_DEVICE: &str = "unknown device";
/// The attribute that holds the short name of an agent in a trace, where it differs from [`title`] of its kind and index.
pub const TITLE: &str = "title";
/// The attribute that holds the kind of an agent.
pub const KIND: &str = "kind";

impl Agent {
    /// Its short name as an attribute, unless it follows from its kind and index.
    pub(crate) fn own_title(&self, index: AgentIndex) -> Option<(&'static str, &str)> {
        let kind = self.attributes.iter().find(|(key, _)| key == KIND);
        let kind = kind.map_or("", |(_, kind)| kind);
        let differs = !self.title.is_empty() && self.title != title(kind, index);
        differs.then_some((TITLE, &self.title))
    }
}

/// The begin of the attributes of an agent that describe its links; the other end follows.
pub const LINK: &str = "link to ";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_name_of_an_agent_says_its_kind() {
        let kinds = ["GPU", "CPU", "accelerator", "something else", ""];
        let titles = kinds.map(|kind| title(kind, AgentIndex(2)));
        assert_eq!(titles, ["GPU 2", "CPU 2", "Acc 2", "GPU 2", "GPU 2"]);
    }
}
