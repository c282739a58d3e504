//! Agents: the host, and the devices that execute work.
//!
//! The host is the first agent, of type `CPU`. All devices are of type `GPU`, whatever they are: clients look for work, samples and
//! counters of these alone; `product_name` says what a device is. The devices of OpenCL are listed also before
//! the program makes a context for them; those of the simulated GPU are there when its runtime is.
//!
//! | field | here |
//! |---|---|
//! | `name` | `gfx...`, where that is what the device's compiler calls it; the simulated GPU is gfx9; otherwise as `product_name` |
//! | `cu_count`, clocks, `lds_size_in_kb`, `local_mem_size`, workgroups | what the runtime tells; 0 if it does not |
//! | `wave_front_size`, `max_waves_per_cu`, `max_waves_per_simd` | what the runtime tells; 1 if it does not, as on processors: clients divide by them |
//! | `simd_count`, `simd_per_cu` | one of each compute unit |
//! | `gpu_id` | `node_id`; that of the host is 0 |
//! | `mem_banks`, `caches` | the device's memory, and its cache of the second level; there are no links |
//! | numbers of nodes | places in the list |
//! | `runtime_visibility` | HSA and HIP |

use crate::result::{Answer, api};
use core::ffi::{CStr, c_void};
use gputrail_abi::{kept, lock};
use gputrail_record::{self as record, Agent, AgentAttributeKind, AgentKind, Domain, StringId};
use gputrail_rocprofiler::*;
use gputrail_tool as tool;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The handle of the host.
const HOST: u64 = 0x301;

/// A device, as far as it is known. Unknown numbers are 0.
#[derive(Clone, Debug, Default)]
struct Device {
    /// Its name.
    name: String,
    /// Its vendor.
    vendor: String,
    /// Its compiler's name for it, if that is one of AMD's.
    architecture: String,
    /// Compute units.
    compute_units: u32,
    /// The highest clock in MHz.
    clock: u32,
    /// Bytes of its memory.
    memory: u64,
    /// Bytes of local memory of a compute unit.
    local_memory: u64,
    /// Bytes of its cache of the second level, and of a line of it.
    cache: (u64, u32),
    /// Work-items of a workgroup, in all and in each dimension.
    workgroup: (u32, [u32; 3]),
    /// Work-items of a wave.
    wave: u32,
    /// Waves of a compute unit.
    waves: u32,
    /// The vendor's and the device's number on the PCI bus.
    pci: (u16, u16),
}

/// An agent, which is never forgotten.
struct Listed {
    /// gputrail's, and its handle in its runtime; none of the host.
    device: Option<(record::AgentId, u64)>,
    description: &'static AgentV0,
}

// SAFETY: the description has texts and arrays that last for ever and do not change.
unsafe impl Send for Listed {}

static LISTED: Mutex<Vec<Listed>> = Mutex::new(Vec::new());

/// OpenCL has told of its devices, which stay the same.
static HAS_ASKED: AtomicBool = AtomicBool::new(false);

/// In place of a handle: an agent that is not told of.
const UNTOLD: u64 = u64::MAX;

/// The agents of gputrail's numbers, as far as they were asked for: handles, by number.
static OF_RECORDS: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// The id of the host.
pub fn host() -> AgentId {
    AgentId { handle: HOST }
}

/// The id of an agent of gputrail's; of no agent, and of one that is not told of, that of the host.
pub fn of_record(agent: record::AgentId) -> AgentId {
    told(agent).unwrap_or_else(host)
}

/// The id of an agent of gputrail's, if it is told of; of no agent that of the host.
fn told(agent: record::AgentId) -> Option<AgentId> {
    if !agent.is_some() {
        return Some(host());
    }
    let cached = OF_RECORDS.get(agent.0 as usize);
    let known = cached.map_or(0, |cached| cached.load(Ordering::Relaxed));
    if known == UNTOLD {
        return None;
    }
    if known != 0 {
        return Some(AgentId { handle: known });
    }
    let Ok(described) = tool::describe::<Agent>(agent) else {
        return Some(host());
    };
    if described.domain == Domain::HIP {
        if let Some(cached) = cached {
            cached.store(UNTOLD, Ordering::Relaxed);
        }
        return None;
    }
    let mut listed = lock(&LISTED);
    begin(&mut listed);
    let id = add(&mut listed, &described);
    if let Some(cached) = cached {
        cached.store(id.handle, Ordering::Relaxed);
    }
    Some(id)
}

/// Whether work of an agent of gputrail's is told of. gputrail knows the agents of HIP through rocprofiler-sdk, which may be this
/// library: each piece of work would be told of again.
pub fn is_told(agent: record::AgentId) -> bool {
    told(agent).is_some()
}

/// gputrail's agent.
///
/// # Errors
///
/// `AGENT_NOT_FOUND`, also for the host.
pub fn of_id(id: AgentId) -> Answer<record::AgentId> {
    let found = || {
        let listed = lock(&LISTED);
        let found = listed.iter().find(|one| one.description.id == id);
        found.and_then(|one| one.device).map(|(agent, _)| agent)
    };
    let again = || {
        refresh(true);
        found()
    };
    found().or_else(again).ok_or(Status::ERROR_AGENT_NOT_FOUND)
}

/// Lists the agents that are there by now. OpenCL is loaded for that only if it `may_load`, and if there are none without it.
pub fn refresh(may_load: bool) {
    let known = || tool::agents().unwrap_or_default();
    let asks = || (may_load && known().is_empty()) || gputrail_abi::is_loaded(c"libOpenCL.so.1");
    if !HAS_ASKED.load(Ordering::Acquire) && asks() {
        let is_asked = tool::find_agents().is_ok() && !known().is_empty();
        HAS_ASKED.fetch_or(is_asked, Ordering::AcqRel);
    }
    begin(&mut lock(&LISTED));
    for agent in known() {
        told(agent);
    }
}

/// The host is the first.
fn begin(listed: &mut Vec<Listed>) {
    if listed.is_empty() {
        let mut host = describe(0, &host_device());
        host.type_ = AgentType::CPU;
        (host.cpu_cores_count, host.cu_count) = (host.cu_count, 0);
        (host.simd_count, host.simd_per_cu) = (0, 0);
        (
            host.wave_front_size,
            host.max_waves_per_cu,
            host.max_waves_per_simd,
        ) = (0, 0, 0);
        listed.push(Listed {
            device: None,
            description: Box::leak(Box::new(host)),
        });
    }
}

/// The id of an agent, which is listed if none with its handle was.
fn add(listed: &mut Vec<Listed>, agent: &Agent) -> AgentId {
    let is_it = |one: &&Listed| one.device.is_some_and(|(_, handle)| handle == agent.handle);
    if let Some(one) = listed.iter().find(is_it) {
        return one.description.id;
    }
    let description = describe(listed.len(), &known_device(agent));
    let description: &'static AgentV0 = Box::leak(Box::new(description));
    listed.push(Listed {
        device: Some((agent.id, agent.handle)),
        description,
    });
    description.id
}

/// The processor that the program runs on.
fn host_device() -> Device {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let lines = information.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(field, _)| field.trim() == name);
        values.next().map(|(_, value)| value.trim().to_owned())
    };
    Device {
        name: field("model name").unwrap_or_else(|| "host".to_owned()),
        vendor: field("vendor_id").unwrap_or_default(),
        compute_units: cpus,
        ..Device::default()
    }
}

/// A device as gputrail knows it.
fn known_device(agent: &Agent) -> Device {
    use AgentAttributeKind as Kind;
    let text = |id: StringId| tool::string(id).unwrap_or_default();
    let attribute = |what| tool::agent_attribute(agent.id, what).unwrap_or(0);
    let word = |what| u32::try_from(attribute(what)).unwrap_or(u32::MAX);
    let (name, architecture) = (text(agent.name), text(agent.architecture));
    let is_simulated = agent.kind == AgentKind::SIMULATED;
    Device {
        architecture: match name.starts_with("gfx") {
            true => name.clone(),
            false if architecture.starts_with("gfx") => architecture,
            false if is_simulated => "gfx9".to_owned(),
            false => String::new(),
        },
        name,
        vendor: text(agent.vendor),
        compute_units: agent.compute_units,
        clock: agent.clock_mhz,
        memory: agent.memory,
        local_memory: agent.local_memory,
        cache: (attribute(Kind::L2_CACHE), word(Kind::CACHE_LINE)),
        workgroup: (
            agent.max_workgroup,
            [
                word(Kind::MAX_WORKGROUP_X),
                word(Kind::MAX_WORKGROUP_Y),
                word(Kind::MAX_WORKGROUP_Z),
            ],
        ),
        wave: word(Kind::WAVE_SIZE),
        waves: word(Kind::MAX_WAVES),
        pci: (word(Kind::PCI_VENDOR) as u16, word(Kind::PCI_DEVICE) as u16),
    }
}

/// The version in a name such as gfx90a: 10 000 times the major one, 100 times the minor one, and the step; 0 of other names.
fn target_version(architecture: &str) -> u32 {
    let Some(digits) = architecture.strip_prefix("gfx") else {
        return 0;
    };
    let digits: Vec<u32> = digits.chars().map_while(|one| one.to_digit(16)).collect();
    let (major, [minor, step]) = match digits.as_slice() {
        [] => return 0,
        [major @ .., minor, step] if !major.is_empty() => (major, [*minor, *step]),
        major => (major, [0, 0]),
    };
    let major = major.iter().fold(0, |all, digit| all * 10 + digit);
    major * 10_000 + minor * 100 + step
}

/// A device as clients see it, at a place in the list.
fn describe(place: usize, device: &Device) -> AgentV0 {
    let product: &'static CStr = kept(&device.name);
    let name = match device.architecture.as_str() {
        "" => product,
        architecture => kept(architecture),
    };
    let (cache_bytes, cache_line_size) = device.cache;
    let caches: &'static [AgentCache] = match cache_bytes {
        0 => &[],
        bytes => Box::leak(Box::new([AgentCache {
            processor_id_low: 0,
            size: bytes / 1024,
            level: 2,
            cache_line_size,
            cache_lines_per_tag: 0,
            association: 0,
            latency: 0,
            type_: 0,
        }])),
    };
    let memories: &'static [AgentMemBank] = match device.memory {
        0 => &[],
        bytes => Box::leak(Box::new([AgentMemBank {
            heap_type: 0,
            flags: 0,
            width: 0,
            mem_clk_max: 0,
            size_in_bytes: bytes,
        }])),
    };
    let (workgroup_max_size, [x, y, z]) = device.workgroup;
    let waves = device.waves.max(1);
    AgentV0 {
        size: size_of::<AgentV0>() as u64,
        id: AgentId {
            handle: HOST + place as u64,
        },
        type_: AgentType::GPU,
        simd_count: device.compute_units,
        mem_banks_count: memories.len() as u32,
        caches_count: caches.len() as u32,
        lds_size_in_kb: (device.local_memory / 1024) as u32,
        wave_front_size: device.wave.max(1),
        num_xcc: 1,
        cu_count: device.compute_units,
        array_count: 1,
        num_shader_banks: 1,
        simd_arrays_per_engine: 1,
        cu_per_simd_array: device.compute_units,
        simd_per_cu: 1,
        max_waves_per_simd: waves,
        gfx_target_version: target_version(&device.architecture),
        vendor_id: device.pci.0,
        device_id: device.pci.1,
        max_engine_clk_ccompute: device.clock,
        max_engine_clk_fcompute: device.clock,
        cu_per_engine: device.compute_units,
        max_waves_per_cu: waves,
        workgroup_max_size,
        grid_max_size: u32::MAX,
        local_mem_size: device.memory,
        gpu_id: place as u64,
        workgroup_max_dim: Dim3 { x, y, z },
        grid_max_dim: Dim3 {
            x: u32::MAX,
            y: u32::MAX,
            z: u32::MAX,
        },
        mem_banks: memories.as_ptr(),
        caches: caches.as_ptr(),
        name: name.as_ptr(),
        vendor_name: kept(&device.vendor).as_ptr(),
        product_name: product.as_ptr(),
        model_name: c"".as_ptr(),
        node_id: place as u32,
        logical_node_id: place as i32,
        logical_node_type_id: place.saturating_sub(1) as i32,
        runtime_visibility: AgentRuntimeVisibility(0b11),
        // SAFETY: all bytes 0 are a value of a growing structure.
        ..unsafe { core::mem::zeroed() }
    }
}

/// Gives all agents to a callback, in structures that last for ever. Its answer is the function's.
///
/// # Safety
///
/// `callback` takes agents of this version, with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_available_agents(
    version: AgentVersion,
    callback: Option<AgentsCallback>,
    size: usize,
    data: *mut c_void,
) -> Status {
    api(|| {
        let callback = callback.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
        if version != AgentVersion::VERSION_0 {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
        if size > size_of::<AgentV0>() {
            return Err(Status::ERROR_INCOMPATIBLE_ABI);
        }
        refresh(true);
        let all: Vec<*const c_void> = {
            let listed = lock(&LISTED);
            let descriptions = listed
                .iter()
                .map(|one| core::ptr::from_ref(one.description));
            descriptions.map(|one| one.cast()).collect()
        };
        // SAFETY: the client's function for this, with as many agents as are said.
        match unsafe { callback(version, all.as_ptr(), all.len(), data) } {
            Status::SUCCESS => Ok(()),
            other => Err(other),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_target_is_in_its_name() {
        let versions = ["gfx90a", "gfx942", "gfx1100", "gfx9", "cpu-haswell", "gfx"];
        let found = versions.map(target_version);
        assert_eq!(found, [90_010, 90_402, 110_000, 90_000, 0, 0]);
    }
}
