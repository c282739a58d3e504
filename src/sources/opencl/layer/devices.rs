//! Devices, and their agents in records.

use super::below::{self, below, next};
use super::clocks;
use super::contained::contained;
use super::counters;
use super::device::{describe, text};
use super::environment;
use super::ffi::*;
use super::handles::ObjectTable;
use super::sampling;
use crate::opencl::agents::{self, EnumerateError};
use bytemuck::{Pod, Zeroable};
use core::ptr;
use gputrail_buffer::platform::inside::Uncancelled;
use gputrail_collect::notify::Notifier;
use gputrail_collect::process;
use gputrail_interface::operations::resource;
use gputrail_record::{Agent, AgentId, CorrelationId, Domain, StringId};
use std::sync::atomic::{AtomicU64, Ordering};

/// The tracked state of a device.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct DeviceState {
    pub id: AgentId,
    /// The number of queues it has had.
    queues: u32,
    unused: [u32; 12],
}

/// The devices that are tracked.
pub(super) static DEVICES: ObjectTable<DeviceState> = ObjectTable::new();

/// Agents whose runtime has no event callbacks, which came with OpenCL 1.1: one bit each, by id modulo 64.
static WITHOUT_CALLBACKS: AtomicU64 = AtomicU64::new(0);

/// Whether the runtime of `agent` calls back when an event completes. Otherwise the work is found by sweeps.
#[inline]
pub(super) fn has_event_callbacks(agent: AgentId) -> bool {
    WITHOUT_CALLBACKS.load(Ordering::Relaxed) & 1 << (agent.0 % 64) == 0
}

/// Makes all devices of all platforms known, before the program creates a context of them. The loader of OpenCL is opened
/// and asked for its platforms if it has not put the layer in the process yet.
///
/// # Errors
///
/// There is no loader of OpenCL, or it lacks functions.
pub fn find_agents() -> Result<(), EnumerateError> {
    if below::if_installed().is_none() {
        agents::start_loader()?;
    }
    // A loader may have no layers.
    let Some(below) = below::if_installed() else {
        return Ok(());
    };
    let found = agents::all(below)?.into_iter();
    let new: Vec<cl_device_id> = found
        .filter(|device| DEVICES.get(*device).is_none())
        .collect();
    for device in new {
        let id = agent(device);
        if let (Some(board), Some(thread)) = (process::board(), process::current()) {
            let notifier = Notifier {
                board,
                state: thread.state(),
                correlation: CorrelationId::NONE,
                depth: 0,
            };
            notifier.object::<Agent>(resource::AGENT_KNOWN, id.0);
        }
    }
    Ok(())
}

/// The agent of `device`.
pub(super) fn agent(device: cl_device_id) -> AgentId {
    DEVICES
        .get(device)
        .map_or_else(|| name(device), |info| info.id)
}

#[cold]
fn name(device: cl_device_id) -> AgentId {
    let Some(names) = process::names().filter(|_| !device.is_null()) else {
        return AgentId::NONE;
    };
    // A sampler may open files.
    let _uncancelled = Uncancelled::begin();
    let known = describe(below(), device);
    let string = |text: &str| match text {
        "" => StringId::NONE,
        text => names.string(text),
    };
    let mut record = Agent::blank();
    record.name = string(&known.name);
    record.vendor = string(&known.vendor);
    record.driver = string(&known.driver);
    record.version = string(&known.version);
    record.platform = string(&known.platform);
    record.bus = string(&known.bus);
    record.compute_units = known.compute_units;
    record.clock_mhz = known.clock_mhz;
    record.memory = known.memory;
    record.local_memory = known.local_memory;
    record.max_workgroup = known.max_workgroup;
    record.domain = Domain::OPENCL;
    record.kind = known.kind;
    record.handle = device.into();
    record.timer_resolution = known.timer_resolution;
    let id = names.agent(record);
    for (what, value) in &known.attributes {
        names.agent_attribute(id, *what, *value);
    }
    crate::links::name(names, id, &known.bus);
    DEVICES.insert(
        device,
        DeviceState {
            id,
            queues: 0,
            unused: [0; 12],
        },
    );
    if !known.has_version(1, 1) {
        WITHOUT_CALLBACKS.fetch_or(1 << (id.0 % 64), Ordering::Relaxed);
    }
    clocks::new_agent(id, device, &known);
    sampling::new_agent(id, &known);
    counters::new_agent(id, device, &known);
    contained(|| {
        if let Some(board) = process::board() {
            board.agent_offered(id);
        }
    });
    environment::new_agent(id, &known);
    id
}

/// The major version of PoCL, if `device` belongs to it.
pub(super) fn pocl_version(device: cl_device_id) -> Option<u32> {
    // SAFETY: devices live as long as their platform; `text` passes room, and its size.
    let version = text(|bytes, to, size| unsafe {
        next!(clGetDeviceInfo(device, CL_DEVICE_VERSION, bytes, to, size))
    });
    // OpenCL 3.0 PoCL HSTR: pthread-...; the driver's is that of PoCL itself.
    if !version.to_lowercase().contains("pocl") {
        return None;
    }
    // SAFETY: as above.
    let driver = text(|bytes, to, size| unsafe {
        next!(clGetDeviceInfo(device, CL_DRIVER_VERSION, bytes, to, size))
    });
    driver.split('.').next()?.trim().parse().ok()
}

/// The number of a new queue of `device`, from 0.
pub(super) fn next_queue_number(device: cl_device_id) -> u32 {
    let next = |info: &mut DeviceState| {
        info.queues += 1;
        info.queues - 1
    };
    DEVICES.update(device, next).unwrap_or(0)
}

/// The version of an extension on the first device of `platform`, as OpenCL packs it; 0 if unknown.
pub(super) fn extension_version(platform: cl_platform_id, name: &str) -> u32 {
    const CL_DEVICE_EXTENSIONS_WITH_VERSION: cl_uint = 0x1060;
    const ENTRY: usize = 68;
    let mut device = cl_device_id::NULL;
    let none = ptr::null_mut();
    // SAFETY: the program's platform, and a place for one device.
    if unsafe {
        next!(clGetDeviceIDs(
            platform,
            CL_DEVICE_TYPE_ALL,
            1,
            &raw mut device,
            none
        ))
    } != CL_SUCCESS
    {
        return 0;
    }
    let mut size = 0;
    let what = CL_DEVICE_EXTENSIONS_WITH_VERSION;
    // SAFETY: the platform's device; the runtime writes the size alone.
    unsafe {
        next!(clGetDeviceInfo(
            device,
            what,
            0,
            ptr::null_mut(),
            &raw mut size
        ))
    };
    let mut entries = vec![0u8; size.min(1 << 20)];
    let to = entries.as_mut_ptr().cast();
    // SAFETY: the platform's device; `entries` has as many bytes as stated.
    if unsafe {
        next!(clGetDeviceInfo(
            device,
            what,
            entries.len(),
            to,
            ptr::null_mut()
        ))
    } != CL_SUCCESS
    {
        return 0;
    }
    // A version and a name of 64 bytes each.
    let mut entries = entries.chunks_exact(ENTRY).map(|entry| entry.split_at(4));
    let entry =
        entries.find(|(_, text)| text.split(|byte| *byte == 0).next() == Some(name.as_bytes()));
    entry.map_or(0, |(version, _)| {
        version.try_into().map_or(0, u32::from_ne_bytes)
    })
}
