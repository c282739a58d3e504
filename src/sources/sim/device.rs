//! A device of the runtime: its names, hardware queues and clock.

use super::compute_units::COMPUTE_UNITS;
use super::counters::DeviceCounters;
use super::environment::DeviceEnvironment;
use super::executor::SimGate;
use super::machine::{EngineIndex, FinishedCommand, QueueIndex, SimMachine};
use super::random::{Purpose, Random};
use super::sampler::DeviceSampler;
use super::time::SimClock;
use gputrail_capture::names::Names;
use gputrail_collect::sampling::lines::WrittenLines;
use gputrail_collect::switchboard::Switchboard;
use gputrail_record::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Memory of a device, bytes.
pub const DEVICE_MEMORY: u64 = 24 << 30;
/// Work-items of the largest workgroup.
const MAX_WORKGROUP: u32 = 1_024;
/// Number of compute queues of a device.
pub(super) const COMPUTE_QUEUES: usize = 3;
/// Bandwidth of a peer link in one direction, in thousandths of a byte per nanosecond.
const PEER_BANDWIDTH: u64 = 42_000;

/// A kind of hardware queue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum QueueChoice {
    /// The compute queue of the stream.
    Compute,
    /// The copy engine from the host.
    Upload,
    /// The copy engine to the host.
    Download,
    /// The link to the peer.
    Peer,
    /// The queue into which kernels put kernels.
    Device,
}

/// The attributes of each simulated device, beside the fields of its description.
const ATTRIBUTES: [(AgentAttributeKind, u64); 23] = [
    (AgentAttributeKind::CONSTANT_MEMORY, 64 << 10),
    (AgentAttributeKind::L2_CACHE, 6 << 20),
    (AgentAttributeKind::CACHE_LINE, 128),
    (AgentAttributeKind::MEMORY_BANDWIDTH, 900_000_000_000),
    (AgentAttributeKind::MAX_WORKGROUP_X, 1_024),
    (AgentAttributeKind::MAX_WORKGROUP_Y, 1_024),
    (AgentAttributeKind::MAX_WORKGROUP_Z, 64),
    (AgentAttributeKind::MAX_GRID_X, (1 << 31) - 1),
    (AgentAttributeKind::MAX_GRID_Y, (1 << 16) - 1),
    (AgentAttributeKind::MAX_GRID_Z, (1 << 16) - 1),
    (AgentAttributeKind::WAVE_SIZE, 64),
    (AgentAttributeKind::MAX_WAVES, 40),
    (AgentAttributeKind::MAX_WORKGROUPS, 16),
    (AgentAttributeKind::MAX_REGISTERS_OF_WORKGROUP, 64 << 10),
    (AgentAttributeKind::REGISTERS, 128 << 10),
    (AgentAttributeKind::MAX_LOCAL_MEMORY_OF_WORKGROUP, 64 << 10),
    (AgentAttributeKind::COPY_ENGINES, 3),
    (AgentAttributeKind::MAX_INSTRUCTIONS_PER_CYCLE, 5),
    (AgentAttributeKind::ECC, 1),
    (AgentAttributeKind::COMPUTE_CAPABILITY_MAJOR, 1),
    (AgentAttributeKind::COMPUTE_CAPABILITY_MINOR, 0),
    (AgentAttributeKind::PCI_VENDOR, 0x1b36),
    (AgentAttributeKind::PCI_DEVICE, 0x0022),
];

/// The attribute of each simulated device that CUDA has under a number; 0 if it has none.
pub(super) fn attribute_of_cuda(number: u64) -> u64 {
    let what = match number {
        1 => return u64::from(MAX_WORKGROUP),
        16 => return COMPUTE_UNITS,
        // Work-items of a compute unit.
        39 => {
            return attribute(AgentAttributeKind::MAX_WAVES)
                * attribute(AgentAttributeKind::WAVE_SIZE);
        }
        75 => AgentAttributeKind::COMPUTE_CAPABILITY_MAJOR,
        76 => AgentAttributeKind::COMPUTE_CAPABILITY_MINOR,
        _ => return 0,
    };
    attribute(what)
}

fn attribute(what: AgentAttributeKind) -> u64 {
    let found = ATTRIBUTES.iter().find(|(kind, _)| *kind == what);
    found.map_or(0, |(_, value)| *value)
}

/// The link of a device to the host, without its agent and the bridge above it.
fn link_to_host() -> Link {
    let mut link = Link::blank();
    link.what = LinkKind::PCIE;
    link.flags = link_flags::SYSTEM_ACCESS;
    link.generation = 4;
    (link.width, link.max_width) = (16, 16);
    (link.rate, link.max_rate) = (16_000, 16_000);
    link.bandwidth = 31_507_692_304;
    link
}

/// The link between two devices, without their agents.
fn link_to_peer() -> Link {
    let mut link = Link::blank();
    link.what = LinkKind::PEER;
    link.flags = link_flags::PEER_ACCESS | link_flags::PEER_ATOMICS;
    link.generation = 2;
    (link.width, link.max_width) = (2, 2);
    link.bandwidth = PEER_BANDWIDTH * 1_000_000;
    link
}

/// The address of the bridge above device `number`.
fn bridge(number: usize) -> String {
    format!("0000:{:02x}:01.0", 0x40 + 0x40 * number)
}

/// The links of device `number` of the demo in words: to the host, and to the devices before it by number.
pub fn links_in_words(number: usize) -> Vec<(Option<usize>, String)> {
    let to_host = link_to_host().in_words(&bridge(number));
    let to_peers = (0..number).map(|peer| (Some(peer), link_to_peer().in_words("")));
    std::iter::once((None, to_host)).chain(to_peers).collect()
}

/// The links of device `number`: to the host, and to the devices before it.
pub(super) fn name_links(names: &Names, devices: &[SimDevice], number: usize) {
    let mut link = link_to_host();
    (link.agent, link.upstream) = (devices[number].agent, names.string(&bridge(number)));
    names.link(link);
    for peer in &devices[..number] {
        let mut link = link_to_peer();
        (link.agent, link.peer) = (devices[number].agent, peer.agent);
        names.link(link);
    }
}

/// A device.
pub(super) struct SimDevice {
    pub(super) agent: AgentId,
    pub(super) name: String,
    pub(super) context: ContextId,
    /// The engine of its compute units.
    pub(super) compute: EngineIndex,
    pub(super) sampler: Arc<DeviceSampler>,
    pub(super) counters: Arc<DeviceCounters>,
    queues: Vec<DeviceQueue>,
    /// The queue of the migrations of managed memory.
    pub(super) migrations: QueueId,
    pub(super) clock: RefCell<SimClock>,
    pub(super) random: RefCell<Random>,
    pub(super) environment: RefCell<DeviceEnvironment>,
    /// Work that has ended and whose completion has not been recorded.
    pub(super) finished: RefCell<VecDeque<FinishedCommand>>,
    pub(super) finished_gate: SimGate,
}

/// A hardware queue: its index in the machine, its id and number in records.
#[derive(Copy, Clone)]
pub(super) struct DeviceQueue {
    pub(super) index: QueueIndex,
    pub(super) id: QueueId,
    pub(super) number: u32,
}

impl SimDevice {
    /// Its compute and copy queues.
    pub(super) fn queue_ids(&self) -> impl Iterator<Item = QueueId> {
        self.queues.iter().map(|queue| queue.id)
    }

    /// Creates device `number`. `host_link` carries its copies from and to the host. `lines` are those of all devices.
    pub(super) fn new(
        board: &Switchboard,
        machine: &mut SimMachine,
        host_link: EngineIndex,
        seed: u64,
        number: usize,
        lines: &Arc<Mutex<WrittenLines>>,
    ) -> SimDevice {
        let names = board.names();
        let text = |text: &str| names.string(text);
        let mut agent = Agent::blank();
        agent.name = text("Simulated GPU");
        agent.vendor = text("gputrail");
        agent.driver = text(concat!("sim ", env!("CARGO_PKG_VERSION")));
        agent.version = text("sim 1.0");
        agent.platform = text("sim");
        agent.architecture = text("sim1");
        agent.bus = text(&format!("0000:{:02x}:00.0", 0x41 + 0x40 * number));
        agent.compute_units = COMPUTE_UNITS as u32;
        agent.clock_mhz = 1_500;
        agent.memory = DEVICE_MEMORY;
        agent.local_memory = 96 << 10;
        agent.max_workgroup = MAX_WORKGROUP;
        agent.domain = Domain::SIM;
        agent.kind = AgentKind::SIMULATED;
        agent.handle = number as u64;
        agent.timer_resolution = 1;
        let agent = names.agent(agent);
        for (what, value) in ATTRIBUTES {
            names.agent_attribute(agent, what, value);
        }
        let mut context = Context::blank();
        context.agent = agent;
        context.handle = 0x5581_4000_0000 + 0x1000 * number as u64;
        context.agents = 1;
        context.domain = Domain::SIM;
        let context = names.context(context);

        let compute = machine.engine(COMPUTE_UNITS * 1_000);
        let peer = machine.engine(PEER_BANDWIDTH);
        let compute_queues = (0..COMPUTE_QUEUES).map(|_| (compute, "", 0));
        let copy_queues = [
            (host_link, "copy in"),
            (host_link, "copy out"),
            (peer, "copy p2p"),
        ];
        let copy_queues =
            copy_queues.map(|(engine, name)| (engine, name, queue_properties::COPY_ENGINE));
        let launches = (compute, "device launches", queue_properties::ON_DEVICE);
        let queues = compute_queues
            .chain(copy_queues)
            .chain([launches])
            .enumerate();
        let queues = queues.map(|(index, (engine, name, properties))| {
            let mut record = Queue::blank();
            record.context = context;
            record.agent = agent;
            record.properties = properties | queue_properties::PROFILING;
            record.handle = 0x5581_4200_0000 + 0x1000 * (number * 16 + index) as u64;
            record.name = names.string(name);
            record.number = index as u32;
            DeviceQueue {
                index: machine.queue(engine),
                id: names.queue(record),
                number: index as u32,
            }
        });
        let queues: Vec<DeviceQueue> = queues.collect();
        let mut migrations = Queue::blank();
        (migrations.context, migrations.agent) = (context, agent);
        migrations.properties = queue_properties::COPY_ENGINE | queue_properties::PROFILING;
        migrations.handle = 0x5581_4200_0000 + 0x1000 * (number * 16 + queues.len()) as u64;
        migrations.name = names.string("migrations");
        migrations.number = queues.len() as u32;
        let migrations = names.queue(migrations);
        let sampler = Arc::new(DeviceSampler::new(agent, seed, number, lines));
        let name = format!("Simulated GPU {number}");
        board.sampling().offer(agent, &name, sampler.clone());
        let counters = Arc::new(DeviceCounters::new(agent, names.clone()));
        board.counting().offer(agent, &name, counters.clone());
        SimDevice {
            agent,
            name,
            context,
            compute,
            sampler,
            counters,
            queues,
            migrations,
            clock: RefCell::new(SimClock::new(seed, number)),
            random: RefCell::new(Random::fork(seed, Purpose::Device, number)),
            environment: RefCell::default(),
            finished: RefCell::default(),
            finished_gate: SimGate::default(),
        }
    }

    /// The hardware queue for work of a stream with this compute queue.
    pub(super) fn queue(&self, choice: QueueChoice, compute_queue: usize) -> DeviceQueue {
        self.queues[match choice {
            QueueChoice::Compute => compute_queue,
            QueueChoice::Upload => COMPUTE_QUEUES,
            QueueChoice::Download => COMPUTE_QUEUES + 1,
            QueueChoice::Peer => COMPUTE_QUEUES + 2,
            QueueChoice::Device => COMPUTE_QUEUES + 3,
        }]
    }
}
