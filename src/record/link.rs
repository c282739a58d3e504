//! Links between agents, and between an agent and the host (CUPTI: `CUpti_ActivityPcie`, `CUpti_ActivityNvLink3`).

use super::*;

open_enum! {
    /// The technology of a link.
    LinkKind(u8) {
        /// PCI Express: from the agent to the bridge above it, or to an agent below the same bridge.
        PCIE = 1, "PCIe";
        /// A link of its own between two agents, such as NVLink.
        PEER = 2, "peer link";
    }
}

/// Bits of [`Link::flags`] (CUPTI: `CUpti_LinkFlag`).
pub mod link_flags {
    /// The agents can access each other's memory.
    pub const PEER_ACCESS: u8 = 1 << 1;
    /// The agent can access the host's memory.
    pub const SYSTEM_ACCESS: u8 = 1 << 2;
    /// Atomic operations on the other agent's memory.
    pub const PEER_ATOMICS: u8 = 1 << 3;
    /// Atomic operations on the host's memory.
    pub const SYSTEM_ATOMICS: u8 = 1 << 4;
}

/// A link of an agent. Values of 0 are not known. 48 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Link {
    /// Kind [`Kind::LINK`].
    pub header: Header,
    /// The agent.
    pub agent: AgentId,
    /// The agent at the other end; none for the host.
    pub peer: AgentId,
    /// The technology.
    pub what: LinkKind,
    /// Bits of [`link_flags`].
    pub flags: u8,
    /// The generation of PCI Express, or the version of the link.
    pub generation: u8,
    /// Reserved, 0.
    pub reserved: u8,
    /// Lanes in use; of peer links, the physical links between the two.
    pub width: u16,
    /// Lanes that both ends could use.
    pub max_width: u16,
    /// Transfers of a lane, in millions per second. A link at rest may have a lower rate than under load.
    pub rate: u32,
    /// The highest rate.
    pub max_rate: u32,
    /// Bytes per second in one direction, of all lanes in use at that rate.
    pub bandwidth: u64,
    /// The address of the bridge above the agent, or above both agents.
    pub upstream: StringId,
    /// Reserved, 0.
    pub reserved2: u32,
}
record!(Link, Kind::LINK, 48);

impl Default for Link {
    /// A link of which nothing is known.
    fn default() -> Link {
        Link::blank()
    }
}

impl Link {
    /// The link in words, as `gputrail info` has them. `upstream` is the text of [`Link::upstream`].
    pub fn in_words(&self, upstream: &str) -> String {
        let mut words = Vec::new();
        let name = self.what.name().unwrap_or("link");
        words.push(match self.generation {
            0 => name.to_owned(),
            generation => format!("{name} {generation}"),
        });
        let (width, max) = (self.width, self.max_width);
        if width != 0 {
            let of_max = if max > width {
                format!(" of {max}")
            } else {
                String::new()
            };
            words.push(format!("{width}{of_max} lanes"));
        }
        if self.rate != 0 {
            let rate = |rate: u32| f64::from(rate) / 1000.0;
            let of_max = if self.max_rate > self.rate {
                format!(" of {}", rate(self.max_rate))
            } else {
                String::new()
            };
            words.push(format!("{}{of_max} GT/s", rate(self.rate)));
        }
        if self.bandwidth != 0 {
            words.push(format!("{:.1} GB/s", self.bandwidth as f64 / 1e9));
        }
        if !upstream.is_empty() {
            words.push(format!("below {upstream}"));
        }
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_words_has_what_is_known() {
        let mut link = Link::blank();
        link.what = LinkKind::PCIE;
        assert_eq!(link.in_words(""), "PCIe");
        (link.generation, link.width, link.max_width) = (5, 8, 16);
        (link.rate, link.max_rate) = (2_500, 32_000);
        link.bandwidth = 2_000_000_000;
        assert_eq!(
            link.in_words("0000:40:01.0"),
            "PCIe 5, 8 of 16 lanes, 2.5 of 32 GT/s, 2.0 GB/s, below 0000:40:01.0"
        );
    }
}
