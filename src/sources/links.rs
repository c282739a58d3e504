//! Links of agents on the PCI bus, as `/sys` describes them.

use gputrail_buffer::platform::pci::PciDevice;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_buffer::platform::sysfs;
use gputrail_capture::names::Names;
use gputrail_record::{AgentId, Link, LinkKind, link_flags};

/// The agents that are on the bus.
static AGENTS: PerProcess<Vec<(AgentId, PciDevice)>> = PerProcess::new();

/// Names the links of `agent`, which is at the address `bus`: to the bridge above it, and to the agents that were named
/// before and are below the same bridge. Does nothing if the address is not known to the system.
pub(crate) fn name(names: &Names, agent: AgentId, bus: &str) {
    if let Some(device) = PciDevice::at(&sysfs::root(), bus).filter(PciDevice::is_express) {
        let mut agents = AGENTS.lock();
        for link in links(names, agent, &device, &agents) {
            names.link(link);
        }
        agents.push((agent, device));
    }
}

/// The link of the device at the address `bus` to the bridge above it, in words; `None` if the system does not know one.
pub fn in_words(bus: &str) -> Option<String> {
    let device = PciDevice::at(&sysfs::root(), bus).filter(PciDevice::is_express)?;
    let names = Names::new();
    let [link] = links(&names, AgentId::NONE, &device, &[]).try_into().ok()?;
    Some(link.in_words(device.upstream().unwrap_or_default()))
}

/// The links of `agent` to the bridge above it, and to each of `others` below the same bridge.
fn links(
    names: &Names,
    agent: AgentId,
    device: &PciDevice,
    others: &[(AgentId, PciDevice)],
) -> Vec<Link> {
    let mut link = Link::blank();
    (link.agent, link.what) = (agent, LinkKind::PCIE);
    link.flags = link_flags::SYSTEM_ACCESS;
    link.generation = device.generation();
    (link.width, link.max_width) = (device.width, device.max_width);
    (link.rate, link.max_rate) = (device.rate, device.max_rate);
    link.bandwidth = device.bandwidth();
    if let Some(bridge) = device.upstream() {
        link.upstream = names.string(bridge);
    }
    let to_other = |(peer, other): &(AgentId, PciDevice)| {
        let bridge = device.common_upstream(other)?;
        // As wide and as fast as the narrower of the two.
        let narrow = if other.bandwidth() < device.bandwidth() {
            other
        } else {
            device
        };
        let mut link = Link::blank();
        (link.agent, link.peer, link.what) = (agent, *peer, LinkKind::PCIE);
        link.generation = narrow.generation();
        (link.width, link.max_width) = (narrow.width, narrow.max_width);
        (link.rate, link.max_rate) = (narrow.rate, narrow.max_rate);
        link.bandwidth = narrow.bandwidth();
        link.upstream = names.string(bridge);
        Some(link)
    };
    let peers = others.iter().filter_map(to_other);
    [link].into_iter().chain(peers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(path: &[&str], width: u16) -> PciDevice {
        PciDevice {
            path: path.iter().map(|name| name.to_string()).collect(),
            width,
            max_width: 16,
            rate: 16_000,
            max_rate: 16_000,
        }
    }

    #[test]
    fn agents_below_one_bridge_have_a_link_as_wide_as_the_narrower() {
        let names = Names::new();
        let one = device(&["pci0000:40", "0000:40:01.0", "0000:41:00.0"], 16);
        let other = device(&["pci0000:40", "0000:40:02.0", "0000:42:00.0"], 8);
        let far = device(&["pci0000:80", "0000:80:01.0", "0000:81:00.0"], 16);
        let known = [(AgentId(1), one), (AgentId(3), far)];
        let found = links(&names, AgentId(2), &other, &known);
        let upstream = |link: &Link| names.text(link.upstream).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].peer, found[0].width), (AgentId::NONE, 8));
        assert_eq!(upstream(&found[0]), "0000:40:02.0");
        assert_eq!((found[1].peer, found[1].width), (AgentId(1), 8));
        assert_eq!(upstream(&found[1]), "pci0000:40");
        assert_eq!(found[1].generation, 4);
    }
}
