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
use core::ffi::c_void;
use gputrail_abi::{kept, lock};
use gputrail_record::{self as record, Agent, AgentAttributeKind, AgentKind, Domain};
use gputrail_rocprofiler::*;
use gputrail_tool as tool;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The handle of the host.
const HOST: u64 = 0x301;

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

/// The host is the first: the processor that the program runs on.
fn begin(listed: &mut Vec<Listed>) {
    if !listed.is_empty() {
        return;
    }
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let lines = information.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(field, _)| field.trim() == name);
        values.next().map(|(_, value)| value.trim())
    };
    let name = field("model name").unwrap_or("host");
    let vendor = field("vendor_id").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let mut processor = Agent::blank();
    processor.compute_units = cpus;
    let host = AgentV0 {
        type_: AgentType::CPU,
        cpu_cores_count: cpus,
        cu_count: 0,
        simd_count: 0,
        simd_per_cu: 0,
        wave_front_size: 0,
        max_waves_per_cu: 0,
        max_waves_per_simd: 0,
        ..describe(0, &processor, name, vendor)
    };
    listed.push(Listed {
        device: None,
        description: Box::leak(Box::new(host)),
    });
}

/// The id of an agent, which is listed if none with its handle was.
fn add(listed: &mut Vec<Listed>, agent: &Agent) -> AgentId {
    let is_it = |one: &&Listed| one.device.is_some_and(|(_, handle)| handle == agent.handle);
    if let Some(one) = listed.iter().find(is_it) {
        return one.description.id;
    }
    let text = |id| tool::string(id).unwrap_or_default();
    let description = describe(listed.len(), agent, &text(agent.name), &text(agent.vendor));
    let description: &'static AgentV0 = Box::leak(Box::new(description));
    listed.push(Listed {
        device: Some((agent.id, agent.handle)),
        description,
    });
    description.id
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

/// An agent as clients see it, at a place in the list. Numbers that are not known are 0.
fn describe(place: usize, agent: &Agent, name: &str, vendor: &str) -> AgentV0 {
    use AgentAttributeKind as Kind;
    let attribute = |what| tool::agent_attribute(agent.id, what).unwrap_or(0);
    let word = |what| u32::try_from(attribute(what)).unwrap_or(u32::MAX);
    let of_compiler = tool::string(agent.architecture).unwrap_or_default();
    let is_amds = |name: &&str| name.starts_with("gfx");
    let architecture = [name, &of_compiler].into_iter().find(is_amds);
    let is_simulated = agent.kind == AgentKind::SIMULATED;
    let architecture = architecture.or(is_simulated.then_some("gfx9"));
    let caches: &'static [AgentCache] = match attribute(Kind::L2_CACHE) {
        0 => &[],
        bytes => Box::leak(Box::new([AgentCache {
            processor_id_low: 0,
            size: bytes / 1024,
            level: 2,
            cache_line_size: word(Kind::CACHE_LINE),
            cache_lines_per_tag: 0,
            association: 0,
            latency: 0,
            type_: 0,
        }])),
    };
    let memories: &'static [AgentMemBank] = match agent.memory {
        0 => &[],
        bytes => Box::leak(Box::new([AgentMemBank {
            heap_type: 0,
            flags: 0,
            width: 0,
            mem_clk_max: 0,
            size_in_bytes: bytes,
        }])),
    };
    let waves = word(Kind::MAX_WAVES).max(1);
    AgentV0 {
        size: size_of::<AgentV0>() as u64,
        id: AgentId {
            handle: HOST + place as u64,
        },
        type_: AgentType::GPU,
        simd_count: agent.compute_units,
        mem_banks_count: memories.len() as u32,
        caches_count: caches.len() as u32,
        lds_size_in_kb: (agent.local_memory / 1024) as u32,
        wave_front_size: word(Kind::WAVE_SIZE).max(1),
        num_xcc: 1,
        cu_count: agent.compute_units,
        array_count: 1,
        num_shader_banks: 1,
        simd_arrays_per_engine: 1,
        cu_per_simd_array: agent.compute_units,
        simd_per_cu: 1,
        max_waves_per_simd: waves,
        gfx_target_version: architecture.map_or(0, target_version),
        vendor_id: word(Kind::PCI_VENDOR) as u16,
        device_id: word(Kind::PCI_DEVICE) as u16,
        max_engine_clk_ccompute: agent.clock_mhz,
        max_engine_clk_fcompute: agent.clock_mhz,
        cu_per_engine: agent.compute_units,
        max_waves_per_cu: waves,
        workgroup_max_size: agent.max_workgroup,
        grid_max_size: u32::MAX,
        local_mem_size: agent.memory,
        gpu_id: place as u64,
        workgroup_max_dim: Dim3 {
            x: word(Kind::MAX_WORKGROUP_X),
            y: word(Kind::MAX_WORKGROUP_Y),
            z: word(Kind::MAX_WORKGROUP_Z),
        },
        grid_max_dim: Dim3 {
            x: u32::MAX,
            y: u32::MAX,
            z: u32::MAX,
        },
        mem_banks: memories.as_ptr(),
        caches: caches.as_ptr(),
        name: kept(architecture.unwrap_or(name)).as_ptr(),
        vendor_name: kept(vendor).as_ptr(),
        product_name: kept(name).as_ptr(),
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
