//! Attributes of devices.

use super::catalogue;
use crate::objects::{self, CUdevice};
use crate::result::{Answer, CUptiResult};
use gputrail_record::{AgentAttributeKind, AgentId, Link, LinkKind};
use gputrail_tool::{agent_attribute, agent_links};

/// The value of an attribute.
pub enum Attribute {
    Small(u32),
    Large(u64),
}

/// An attribute of a device. 0 is the value of one that its runtime does not tell.
pub fn attribute(device: CUdevice, attribute: i32) -> Answer<Attribute> {
    use Attribute::{Large, Small};
    let agent = objects::agent(device)?;
    let known = |what| agent_attribute(agent, what).unwrap_or(0);
    Ok(match attribute {
        // CUPTI_DEVICE_ATTR_MAX_EVENT_ID, _MAX_EVENT_DOMAIN_ID
        1 => Small(catalogue::of_agent(agent)?.events.len() as u32),
        2 => Small(catalogue::of_agent(agent)?.domains.len() as u32),
        // _GLOBAL_MEMORY_BANDWIDTH, in kilobytes per second
        3 => Large(known(AgentAttributeKind::MEMORY_BANDWIDTH) / 1000),
        // _INSTRUCTION_PER_CYCLE
        4 => Small(known(AgentAttributeKind::MAX_INSTRUCTIONS_PER_CYCLE) as u32),
        // _PCIE_LINK_RATE, in megabits per second; _WIDTH, _GEN
        7 => Large(pcie(agent).0),
        8 => Large(pcie(agent).1),
        9 => Large(pcie(agent).2),
        // _INSTRUCTION_THROUGHPUT_SINGLE_PRECISION, _MAX_FRAME_BUFFERS, _FLOP_SP_PER_CYCLE, _FLOP_DP_PER_CYCLE, _MAX_L2_UNITS
        5 | 6 | 11 | 12 | 13 => Large(0),
        // _DEVICE_CLASS: CUPTI_DEVICE_ATTR_DEVICE_CLASS_TESLA, which counts in both modes
        10 => Small(0),
        // _MAX_SHARED_MEMORY_CACHE_CONFIG_PREFER_SHARED, _L1, _EQUAL: nothing is divided
        14..=16 => Large(objects::described(device)?.local_memory),
        // _FLOP_HP_PER_CYCLE, _GPU_CPU_NVLINK_BW
        17 | 19 => Large(0),
        // _NVLINK_PRESENT
        18 => Small(has_peers(agent).into()),
        // _NVSWITCH_PRESENT
        20 => Small(0),
        _ => return Err(CUptiResult::INVALID_PARAMETER),
    })
}

/// Whether the device has links of its own to others.
fn has_peers(agent: AgentId) -> bool {
    let all = agent_links(agent).unwrap_or_default();
    all.iter().any(|link| link.what == LinkKind::PEER)
}

/// The rate of a lane, the lanes and the generation of the link to the host; zeros without PCI Express.
fn pcie(agent: AgentId) -> (u64, u64, u64) {
    let all = agent_links(agent).unwrap_or_default();
    let host = |link: &&Link| link.what == LinkKind::PCIE && !link.peer.is_some();
    all.iter().find(host).map_or((0, 0, 0), |link| {
        (link.rate.into(), link.width.into(), link.generation.into())
    })
}
