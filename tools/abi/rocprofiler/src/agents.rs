//! Devices: by their number, in the order in which the process knows those that count, and by their handle in their
//! runtime.

use crate::types::{AgentHandle, Answer, Failure, Status};
use gputrail_record::{Agent, AgentId};
use gputrail_tool::{counting, describe};

/// A device.
#[derive(Copy, Clone, Debug)]
pub struct Device {
    pub id: AgentId,
    pub index: u32,
    pub handle: AgentHandle,
}

/// All devices that count.
pub fn all() -> Answer<Vec<Device>> {
    let mut all = Vec::new();
    for (id, index) in counting::agents()?.into_iter().zip(0..) {
        let handle = handle(id)?;
        all.push(Device { id, index, handle });
    }
    Ok(all)
}

/// The handle of a device.
pub fn handle(id: AgentId) -> Answer<AgentHandle> {
    let handle = describe::<Agent>(id)?.handle;
    Ok(AgentHandle { handle })
}

/// The device with this handle.
pub fn found(handle: AgentHandle) -> Answer<Device> {
    let all = all()?;
    // The runtimes of two devices may use the same handle, which is that of the later one then.
    let found = all.into_iter().rev().find(|one| one.handle == handle);
    found.ok_or_else(|| {
        let text = format!(
            "no device that counts has the handle {:#x}: in OpenCL that is its cl_device_id, and it is known once a context \
             has been created for it",
            handle.handle
        );
        Failure::new(Status::INVALID_AGENT, text)
    })
}
