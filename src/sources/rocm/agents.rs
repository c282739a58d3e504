//! The GPUs of the machine as agents: they are named, and offered to the services, while the SDK takes services.

use super::objects::{OBJECTS, is_gpu};
use super::session::{SdkAgent, Session};
use super::{counting, sampling};
use gputrail_capture::names::Names;
use gputrail_collect::switchboard::Switchboard;
use gputrail_record::{Agent, AgentAttributeKind, AgentId, AgentKind, Domain};

/// Bytes of a KiB, the unit of caches and of LDS.
const KIB: u64 = 1 << 10;

/// Names all GPUs, and applies the requests for all agents to them. No lock is held while the services are called.
pub(super) fn offer_all(session: &'static Session, board: &Switchboard) {
    let names = board.names();
    for agent in session.agents.iter().filter(|agent| is_gpu(agent)) {
        let id = name(names, agent);
        OBJECTS.lock().add_agent(agent, id);
        if let Some(reading) = session.first_reading {
            names.clock_pair(reading.of_agent(id));
        }
        crate::links::name(names, id, &bus(agent));
        // One context of a process can sample or count: what is behind our own library is sampled and counted directly.
        if !session.sdk.is_own {
            sampling::offer(id, agent);
            counting::offer(id, agent);
        }
        board.agent_offered(id);
    }
}

/// The name of a GPU for people.
pub(super) fn name_of(agent: &SdkAgent) -> &str {
    match &*agent.product {
        "" => &agent.architecture,
        product => product,
    }
}

/// The address of a GPU on the PCI bus.
pub(super) fn bus(agent: &SdkAgent) -> String {
    let (domain, location) = (agent.info.domain, agent.info.location_id);
    let (bus, device, function) = (location >> 8 & 0xff, location >> 3 & 0x1f, location & 7);
    format!("{domain:04x}:{bus:02x}:{device:02x}.{function}")
}

fn name(names: &Names, agent: &SdkAgent) -> AgentId {
    let info = &agent.info;
    let mut record = Agent::blank();
    record.name = names.string(name_of(agent));
    record.vendor = names.string("Advanced Micro Devices, Inc.");
    record.platform = names.string("ROCm");
    record.architecture = names.string(&agent.architecture);
    record.bus = names.string(&bus(agent));
    record.compute_units = info.cu_count;
    record.clock_mhz = info.max_engine_clk_fcompute;
    record.memory = agent.memory;
    record.local_memory = u64::from(info.lds_size_in_kb) * KIB;
    record.max_workgroup = info.workgroup_max_size;
    (record.domain, record.kind) = (Domain::HIP, AgentKind::GPU);
    // The number of the device in HIP, if no variable hides devices.
    record.handle = u64::try_from(info.logical_node_type_id).unwrap_or(0);
    record.timer_resolution = 1;
    let id = names.agent(record);
    for (what, value) in attributes(agent) {
        if value != 0 {
            names.agent_attribute(id, what, value);
        }
    }
    id
}

/// The SDK's attributes of a GPU beyond those that all agents have.
fn attributes(agent: &SdkAgent) -> [(AgentAttributeKind, u64); 9] {
    let info = &agent.info;
    [
        (AgentAttributeKind::WAVE_SIZE, info.wave_front_size.into()),
        (AgentAttributeKind::MAX_WAVES, info.max_waves_per_cu.into()),
        (
            AgentAttributeKind::MAX_WORKGROUP_X,
            info.workgroup_max_dim.x.into(),
        ),
        (
            AgentAttributeKind::MAX_WORKGROUP_Y,
            info.workgroup_max_dim.y.into(),
        ),
        (
            AgentAttributeKind::MAX_WORKGROUP_Z,
            info.workgroup_max_dim.z.into(),
        ),
        (
            AgentAttributeKind::MAX_LOCAL_MEMORY_OF_WORKGROUP,
            u64::from(info.lds_size_in_kb) * KIB,
        ),
        (
            AgentAttributeKind::COPY_ENGINES,
            info.num_sdma_engines.into(),
        ),
        (AgentAttributeKind::PCI_VENDOR, info.vendor_id.into()),
        (AgentAttributeKind::PCI_DEVICE, info.device_id.into()),
    ]
}
