//! Records of links: of devices to the host's PCI Express, and of devices to each other.

use super::record::{ActivityRecord, NvLink3, NvLink4, NvLink5, Pcie, PcieAttributes};
use super::sink;
use crate::layout::{Layout, layout};
use crate::objects;
use gputrail_record::{Agent, AgentId, Link, LinkKind};
use gputrail_tool::{agent_links, describe, string};

/// A device of [`NvLink3`] is a GPU (`CUPTI_DEV_TYPE_GPU`).
const GPU: u32 = 1;

/// The unique id of a device: that of its runtime, or else its PCI address as text, or else the number of the agent.
pub fn uuid(agent: &Agent) -> [u8; 16] {
    let text = string(agent.bus).unwrap_or_default();
    let digits = text
        .bytes()
        .filter(u8::is_ascii_hexdigit)
        .collect::<Vec<u8>>();
    if text.len() == 36 && digits.len() == 32 {
        let digit = |digit: u8| char::from(digit).to_digit(16).unwrap_or(0) as u8;
        return core::array::from_fn(|byte| {
            digit(digits[2 * byte]) << 4 | digit(digits[2 * byte + 1])
        });
    }
    let text = if text.is_empty() {
        format!("agent {}", agent.id.0)
    } else {
        text
    };
    let mut id = [0; 16];
    for (to, from) in id.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    id
}

/// The domain and the bus of a PCI address such as `0000:41:00.0`.
fn address(text: &str) -> Option<(u32, u16)> {
    let mut parts = text.split(':');
    let domain = u32::from_str_radix(parts.next()?, 16).ok()?;
    let bus = u16::from_str_radix(parts.next()?, 16).ok()?;
    parts.next()?;
    Some((domain, bus))
}

fn links(agent: &Agent, what: LinkKind) -> Vec<Link> {
    let mut links = agent_links(agent.id).unwrap_or_default();
    links.retain(|link| link.what == what && link.peer.is_some() == (what == LinkKind::PEER));
    links
}

/// The devices at the other ends of a device's links: a link is one of the device that has been known later.
fn peers_of(agent: AgentId) -> Vec<AgentId> {
    let mut peers = Vec::new();
    for one in gputrail_tool::agents().unwrap_or_default() {
        for link in agent_links(one).unwrap_or_default() {
            let ends = [link.agent, link.peer];
            if link.what == LinkKind::PEER && ends.contains(&agent) {
                peers.extend(
                    ends.into_iter()
                        .filter(|end| *end != agent && end.is_some()),
                );
            }
        }
    }
    peers
}

/// Puts a record of the device on PCI Express, if it is.
pub fn pcie(agent: &Agent) {
    let Ok(device) = objects::device_of(agent.id) else {
        return;
    };
    let mut peers = [-1; 32];
    for (peer, of) in peers.iter_mut().zip(peers_of(agent.id)) {
        *peer = objects::device_of(of).map_or(-1, |device| device as i32);
    }
    for link in links(agent, LinkKind::PCIE) {
        let own = string(agent.bus).and_then(|text| address(&text));
        let above = string(link.upstream).and_then(|text| address(&text));
        let mut record = Pcie::blank();
        record.id = device;
        record.domain = own.map_or(0, |(domain, _)| domain);
        record.pcie_generation = link.generation.into();
        record.link_rate = (link.rate / 1000).try_into().unwrap_or(u16::MAX);
        record.link_width = link.width;
        record.upstream_bus = above.map_or(0, |(_, bus)| bus);
        record.attr = PcieAttributes {
            uuid_dev: uuid(agent),
            peer_dev: peers,
        };
        sink::put(&record);
    }
}

/// Whether a device of the process has a link to another one.
pub fn has_peers(agent: &Agent) -> bool {
    !links(agent, LinkKind::PEER).is_empty()
}

/// Puts a record of a link, whose ports are of another type in each structure.
macro_rules! put_link {
    ($record:ident, $agent:ident, $peer:ident, $link:ident, $ports:expr) => {{
        let mut record = $record::blank();
        record.nvlink_version = $link.generation.into();
        (record.type_dev0, record.type_dev1) = (GPU, GPU);
        (record.id_dev0, record.id_dev1) = (uuid($agent), uuid(&$peer));
        record.flag = $link.flags.into();
        record.physical_nv_link_count = $link.width.into();
        (record.port_dev0, record.port_dev1) = ($ports, $ports);
        record.bandwidth = $link.bandwidth / 1000;
        sink::put(&record);
    }};
}

/// Puts a record of each link to another device.
pub fn peers(agent: &Agent) {
    for link in links(agent, LinkKind::PEER) {
        let Ok(peer) = describe::<Agent>(link.peer) else {
            continue;
        };
        // CUPTI_NVLINK_INVALID_PORT: which ports a link uses is not known.
        match layout() {
            Layout::Cuda10 => {
                put_link!(NvLink3, agent, peer, link, [-1; 16])
            }
            Layout::Cuda11 | Layout::Cuda12 => {
                put_link!(NvLink4, agent, peer, link, [-1; 32])
            }
            Layout::Cuda13 => {
                let ports = vec![u32::MAX; link.width.into()];
                // A record leads to them for as long as the program keeps it.
                let ports: &'static [u32] = Box::leak(ports.into_boxed_slice());
                put_link!(NvLink5, agent, peer, link, ports.as_ptr())
            }
        }
    }
}
