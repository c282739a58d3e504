//! The description that a device gives of itself.

use super::attributes;
use super::ffi::*;
use super::functions::{DispatchTable, ask};
use crate::perf::HostCounters;
use core::ptr;
use gputrail_collect::counting::Countable;
use gputrail_collect::sampling::SampleSource;
use gputrail_interface::sampling::Configuration;
use gputrail_record::AgentAttributeKind;
use gputrail_record::AgentKind;

/// The name of PoCL's platform.
const POCL: &str = "Portable Computing Language";

/// Whether the end of an event is a time that the runtime has measured. Versions of Mesa's rusticl that measure none return the
/// numbers 0 to 3 for the four times of an event. No device has completed work within the first microsecond of its clock.
#[inline(always)]
pub(super) fn is_measured(end: u64) -> bool {
    end > 1000
}

/// The description that a device gives of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClDevice {
    /// Its name.
    pub name: String,
    /// Its vendor.
    pub vendor: String,
    /// Version of its driver.
    pub driver: String,
    /// The version of OpenCL that it supports.
    pub version: String,
    /// Name of its platform.
    pub platform: String,
    /// PCI address or unique id, as text; empty if the device reports neither.
    pub bus: String,
    /// Its kind.
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
    /// Further attributes that OpenCL or the system reports.
    pub attributes: Vec<(AgentAttributeKind, u64)>,
}

impl ClDevice {
    /// Whether the device has at least this version of OpenCL.
    pub fn has_version(&self, major: u32, minor: u32) -> bool {
        let version = || {
            let numbers = self.version.strip_prefix("OpenCL ")?.split(' ').next()?;
            let (major, minor) = numbers.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        version().is_some_and(|version: (u32, u32)| version >= (major, minor))
    }

    /// Whether its kernels run on threads of the process.
    pub fn has_host_threads(&self) -> bool {
        self.platform == POCL && self.kind == AgentKind::CPU
    }

    /// The counters and metrics that are collected of it, and how; `None` if there are none.
    pub fn countable(&self) -> Option<Countable> {
        self.has_host_threads().then(HostCounters::countable)
    }

    /// Sentences about counters that this machine does not have or allow, though machines of this kind may.
    pub fn counter_notes(&self) -> Vec<String> {
        if self.has_host_threads() {
            HostCounters::machine_notes()
        } else {
            Vec::new()
        }
    }

    /// The configurations in which it can be sampled; empty if it cannot.
    pub fn sampling(&self) -> Vec<Configuration> {
        if self.has_host_threads() {
            SampleSource::requested().possible()
        } else {
            Vec::new()
        }
    }
}

/// Queries the properties of `device`.
pub(super) fn describe(api: &DispatchTable, device: cl_device_id) -> ClDevice {
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
    let kind = match () {
        _ if kind & CL_DEVICE_TYPE_GPU != 0 => AgentKind::GPU,
        _ if kind & CL_DEVICE_TYPE_CPU != 0 => AgentKind::CPU,
        _ if kind & CL_DEVICE_TYPE_ACCELERATOR != 0 => AgentKind::ACCELERATOR,
        _ => AgentKind::OTHER,
    };
    let bus = bus(api, device);
    ClDevice {
        attributes: attributes::of(api, device, kind, &bus),
        name: text(CL_DEVICE_NAME),
        vendor: text(CL_DEVICE_VENDOR),
        driver: text(CL_DRIVER_VERSION),
        version: text(CL_DEVICE_VERSION),
        platform: platform.unwrap_or_default(),
        bus,
        kind,
        compute_units: number(CL_DEVICE_MAX_COMPUTE_UNITS),
        clock_mhz: number(CL_DEVICE_MAX_CLOCK_FREQUENCY),
        memory: size(CL_DEVICE_GLOBAL_MEM_SIZE),
        local_memory: size(CL_DEVICE_LOCAL_MEM_SIZE),
        max_workgroup: size(CL_DEVICE_MAX_WORK_GROUP_SIZE) as u32,
        timer_resolution: size(CL_DEVICE_PROFILING_TIMER_RESOLUTION),
    }
}

fn bus(api: &DispatchTable, device: cl_device_id) -> String {
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

/// The text that `ask` returns in two calls, for its length and its characters.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_the_versions_up_to_its_own() {
        let has = |version: &str, major, minor| {
            let device = ClDevice {
                name: String::new(),
                vendor: String::new(),
                driver: String::new(),
                version: version.into(),
                platform: String::new(),
                bus: String::new(),
                kind: AgentKind::CPU,
                compute_units: 1,
                clock_mhz: 1,
                memory: 0,
                local_memory: 0,
                max_workgroup: 1,
                timer_resolution: 1,
                attributes: Vec::new(),
            };
            device.has_version(major, minor)
        };
        assert!(has("OpenCL 3.0 PoCL HSTR: pthread-x86_64", 2, 1));
        assert!(has("OpenCL 2.1 ", 2, 1));
        assert!(!has("OpenCL 1.2 Oclgrind 21.10", 2, 1));
        assert!(!has("OpenCL 2.0", 2, 1));
        assert!(!has("?", 1, 1));
    }
}
