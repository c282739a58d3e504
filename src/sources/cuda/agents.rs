//! The driver's devices as agents: they are named, and offered to the services, once the driver is initialised.

use super::counting;
use super::cupti;
use super::devices::{self, CudaDevice};
use super::enabling;
use super::ffi::Cuda;
use super::inside::InsideCupti;
use super::objects::OBJECTS;
use super::sampling;
use super::session::{CuptiSession, current_session};
use gputrail_capture::names::Names;
use gputrail_collect::process;
use gputrail_record::Agent;

/// The driver is initialised, or a context was created: names the devices, and enables what CUPTI refused before.
pub(super) fn driver_changed() {
    find_agents();
    enabling::enable();
}

/// Names all devices of the driver, which has been initialised. The driver and CUPTI are called without the lock.
fn find_agents() {
    let Some(names) = process::names() else {
        return;
    };
    if !OBJECTS.lock().agents.is_empty() {
        return;
    }
    let _inside = InsideCupti::begin();
    let Some(library) = cupti::driver() else {
        return;
    };
    let devices = devices::all(&Cuda::of(&library));
    let reading = current_session().and_then(CuptiSession::reading);
    let mut objects = OBJECTS.lock();
    objects.latest_reading = reading.or(objects.latest_reading);
    let mut added = Vec::new();
    for (number, device) in (0..).zip(&devices) {
        // Another thread may have named it in the meantime.
        if !objects.agents.contains_key(&number) {
            let agent = attributes(names, device);
            added.push((objects.add_agent(names, number, agent), device));
        }
    }
    drop(objects);
    for (agent, device) in added {
        crate::links::name(names, agent, &device.bus);
        sampling::offer(agent, device);
        counting::offer(agent, device);
        if let Some(board) = process::board() {
            board.agent_offered(agent);
        }
    }
}

/// The record of a device.
fn attributes(names: &Names, device: &CudaDevice) -> Agent {
    let mut agent = Agent::blank();
    agent.name = names.string(&device.name);
    agent.bus = names.string(&device.bus);
    agent.driver = names.string(&device.driver);
    agent.version = agent.driver;
    agent.architecture = names.string(&device.architecture);
    (agent.memory, agent.local_memory) = (device.memory, device.local_memory);
    agent.compute_units = device.compute_units;
    agent.clock_mhz = device.clock_mhz;
    agent.max_workgroup = device.max_workgroup;
    agent
}
