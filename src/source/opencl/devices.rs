//! Devices, and the agents that they are in records.

use super::attach;
use super::clocks;
use super::dispatch::{Dispatch, ask, below, next};
use super::ffi::*;
use super::handles::Handles;
use super::sampling;
use crate::record::{Agent, AgentId, AgentKind, Domain, StringId};
use bytemuck::{Pod, Zeroable};
use core::ptr;

/// What is known of a device.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct DeviceInfo {
    pub id: AgentId,
    /// Queues that it has had.
    queues: u32,
    unused: [u32; 12],
}

/// The devices that are known.
pub(super) static DEVICES: Handles<DeviceInfo> = Handles::new();

/// What a device says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Who made it.
    pub vendor: String,
    /// Version of its driver.
    pub driver: String,
    /// Version of OpenCL that it offers.
    pub version: String,
    /// Name of its platform.
    pub platform: String,
    /// PCI address or unique id, as text; empty if it says neither.
    pub bus: String,
    /// What it is.
    pub kind: AgentKind,
    /// Compute units.
    pub compute_units: u32,
    /// Highest clock, MHz.
    pub clock_mhz: u32,
    /// Global memory, bytes.
    pub memory: u64,
    /// Local memory, bytes.
    pub local_memory: u64,
    /// Largest workgroup, work-items.
    pub max_workgroup: u32,
    /// Resolution of its clock, ns.
    pub timer_resolution: u64,
}

/// Asks `device` about itself.
pub(super) fn describe(api: &Dispatch, device: cl_device_id) -> Device {
    let number = |what| ask!(api, clGetDeviceInfo(device, what) -> u32).unwrap_or(0);
    let size = |what| ask!(api, clGetDeviceInfo(device, what) -> u64).unwrap_or(0);
    let text = |what| {
        text(|bytes, to, size| {
            // SAFETY: a device of the runtime, and room for the answer.
            unsafe {
                api.clGetDeviceInfo
                    .map_or(CL_INVALID_VALUE, |ask| ask(device, what, bytes, to, size))
            }
        })
    };
    let platform = ask!(api, clGetDeviceInfo(device, CL_DEVICE_PLATFORM) -> cl_platform_id);
    let platform = platform.map(|platform| {
        self::text(|bytes, to, size| {
            // SAFETY: as above.
            unsafe {
                api.clGetPlatformInfo.map_or(CL_INVALID_VALUE, |ask| {
                    ask(platform, CL_PLATFORM_NAME, bytes, to, size)
                })
            }
        })
    });
    let kind = size(CL_DEVICE_TYPE);
    Device {
        name: text(CL_DEVICE_NAME),
        vendor: text(CL_DEVICE_VENDOR),
        driver: text(CL_DRIVER_VERSION),
        version: text(CL_DEVICE_VERSION),
        platform: platform.unwrap_or_default(),
        bus: bus(api, device),
        kind: match () {
            _ if kind & CL_DEVICE_TYPE_GPU != 0 => AgentKind::GPU,
            _ if kind & CL_DEVICE_TYPE_CPU != 0 => AgentKind::CPU,
            _ if kind & CL_DEVICE_TYPE_ACCELERATOR != 0 => AgentKind::ACCELERATOR,
            _ => AgentKind::OTHER,
        },
        compute_units: number(CL_DEVICE_MAX_COMPUTE_UNITS),
        clock_mhz: number(CL_DEVICE_MAX_CLOCK_FREQUENCY),
        memory: size(CL_DEVICE_GLOBAL_MEM_SIZE),
        local_memory: size(CL_DEVICE_LOCAL_MEM_SIZE),
        max_workgroup: size(CL_DEVICE_MAX_WORK_GROUP_SIZE) as u32,
        timer_resolution: size(CL_DEVICE_PROFILING_TIMER_RESOLUTION),
    }
}

fn bus(api: &Dispatch, device: cl_device_id) -> String {
    if let Some([domain, bus, slot, function]) =
        ask!(api, clGetDeviceInfo(device, CL_DEVICE_PCI_BUS_INFO_KHR) -> [u32; 4])
    {
        return format!("{domain:04x}:{bus:02x}:{slot:02x}.{function:x}");
    }
    match ask!(api, clGetDeviceInfo(device, CL_DEVICE_UUID_KHR) -> [u8; 16]) {
        Some(uuid) => uuid.iter().map(|byte| format!("{byte:02x}")).collect(),
        None => String::new(),
    }
}

/// The text that `ask` gives, in OpenCL's way of asking twice.
pub(super) fn text(mut ask: impl FnMut(usize, *mut c_void, *mut usize) -> cl_int) -> String {
    let mut size = 0;
    if ask(0, ptr::null_mut(), &raw mut size) != CL_SUCCESS {
        return String::new();
    }
    let mut bytes = vec![0u8; size.min(1 << 20)];
    if ask(bytes.len(), bytes.as_mut_ptr().cast(), ptr::null_mut()) != CL_SUCCESS {
        return String::new();
    }
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

/// The agent that `device` is.
pub(super) fn agent(device: cl_device_id) -> AgentId {
    DEVICES
        .get(device)
        .map_or_else(|| name(device), |info| info.id)
}

#[cold]
fn name(device: cl_device_id) -> AgentId {
    let Some(names) = attach::names().filter(|_| !device.is_null()) else {
        return AgentId::NONE;
    };
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
    DEVICES.insert(
        device,
        DeviceInfo {
            id,
            queues: 0,
            unused: [0; 12],
        },
    );
    clocks::new_agent(id, device);
    sampling::new_agent(id, &known);
    id
}

/// The major version of PoCL, if `device` is one of its.
pub(super) fn pocl_version(device: cl_device_id) -> Option<u32> {
    let version =
        text(|bytes, to, size| next!(clGetDeviceInfo(device, CL_DEVICE_VERSION, bytes, to, size)));
    // OpenCL 3.0 PoCL HSTR: pthread-...; the driver's is that of PoCL itself.
    if !version.to_lowercase().contains("pocl") {
        return None;
    }
    let driver =
        text(|bytes, to, size| next!(clGetDeviceInfo(device, CL_DRIVER_VERSION, bytes, to, size)));
    driver.split('.').next()?.trim().parse().ok()
}

/// A new queue of `device`: its number, from 0.
pub(super) fn next_queue_number(device: cl_device_id) -> u32 {
    let next = |info: &mut DeviceInfo| {
        info.queues += 1;
        info.queues - 1
    };
    DEVICES.update(device, next).unwrap_or(0)
}

/// The version of an extension on the first device of `platform`, as OpenCL packs it; 0 if it does not say.
pub(super) fn extension_version(platform: cl_platform_id, name: &str) -> u32 {
    const CL_DEVICE_EXTENSIONS_WITH_VERSION: cl_uint = 0x1060;
    const ENTRY: usize = 68;
    let mut device = cl_device_id::NULL;
    let none = ptr::null_mut();
    if next!(clGetDeviceIDs(
        platform,
        CL_DEVICE_TYPE_ALL,
        1,
        &raw mut device,
        none
    )) != CL_SUCCESS
    {
        return 0;
    }
    let mut size = 0;
    let what = CL_DEVICE_EXTENSIONS_WITH_VERSION;
    next!(clGetDeviceInfo(
        device,
        what,
        0,
        ptr::null_mut(),
        &raw mut size
    ));
    let mut entries = vec![0u8; size.min(1 << 20)];
    let to = entries.as_mut_ptr().cast();
    if next!(clGetDeviceInfo(
        device,
        what,
        entries.len(),
        to,
        ptr::null_mut()
    )) != CL_SUCCESS
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
