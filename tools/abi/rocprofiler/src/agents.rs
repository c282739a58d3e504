//! Devices: by their number, in the order in which the process knows those that count, and by their handle in their
//! runtime. They are there before the program makes a context.

use crate::types::{AgentHandle, Answer, Failure, Status};
use gputrail_abi::agents::{any, sought};
use gputrail_abi::lock;
use gputrail_record::{Agent, AgentId};
use gputrail_tool::{counting, describe};
use std::sync::Mutex;

/// A device.
#[derive(Copy, Clone, Debug)]
pub struct Device {
    pub id: AgentId,
    pub index: u32,
    pub handle: AgentHandle,
}

/// The devices that count and are known by now.
pub fn known() -> Answer<Vec<Device>> {
    let mut all = Vec::new();
    for (id, index) in counting::agents()?.into_iter().zip(0..) {
        let handle = handle(id)?;
        all.push(Device { id, index, handle });
    }
    Ok(all)
}

/// The device that an agent is, if it counts.
pub fn of_id(id: AgentId) -> Option<Device> {
    static KNOWN: Mutex<Vec<Device>> = Mutex::new(Vec::new());
    let find = |all: &[Device]| all.iter().find(|device| device.id == id).copied();
    if let Some(found) = find(&lock(&KNOWN)) {
        return Some(found);
    }
    let known = known().ok()?;
    let found = find(&known);
    *lock(&KNOWN) = known;
    found
}

/// All devices that count.
pub fn all() -> Answer<Vec<Device>> {
    any(known)
}

/// The handle of a device.
pub fn handle(id: AgentId) -> Answer<AgentHandle> {
    let handle = describe::<Agent>(id)?.handle;
    Ok(AgentHandle { handle })
}

/// The device with this handle.
pub fn found(handle: AgentHandle) -> Answer<Device> {
    // The runtimes of two devices may use the same handle, which is that of the later one then.
    let of = |all: Vec<Device>| all.into_iter().rev().find(|one| one.handle == handle);
    sought(|| known().map(of))?.ok_or_else(|| {
        let text = format!(
            "no device that counts has the handle {:#x}: in OpenCL that is its cl_device_id",
            handle.handle
        );
        Failure::new(Status::INVALID_AGENT, text)
    })
}
