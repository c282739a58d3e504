//! The GPUs of the machine, as rocprofiler-sdk lists them without a program that uses them.

use super::agents::{bus, name_of};
use super::counting::AgentCounters;
use super::objects::is_gpu;
use super::places;
use super::sampling;
use gputrail_interface::sampling::Configuration;
use std::path::PathBuf;

/// A GPU, as far as rocprofiler-sdk describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RocmDevice {
    /// Its name.
    pub name: String,
    /// Its architecture: "gfx942".
    pub architecture: String,
    /// Its PCI address.
    pub bus: String,
    /// The number of compute units.
    pub compute_units: u32,
    /// The highest clock rate in MHz.
    pub clock_mhz: u32,
    /// Memory in bytes.
    pub memory: u64,
    /// LDS of a compute unit in bytes.
    pub local_memory: u64,
    /// Work-items of a wave.
    pub wave_size: u32,
    /// The ways in which it can be sampled now.
    pub sampling: Vec<Configuration>,
    /// Why it cannot be sampled, and what to do, if it cannot.
    pub not_sampled: Option<String>,
}

/// The library that lists GPUs, and the GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RocmDevices {
    /// The library's file.
    pub library: PathBuf,
    /// Its version.
    pub version: String,
    /// The GPUs.
    pub devices: Vec<RocmDevice>,
}

/// All GPUs. Opens librocprofiler-sdk in this process, if it is there.
///
/// # Errors
///
/// A sentence that says why there is no library.
pub fn enumerate() -> Result<RocmDevices, String> {
    let found = places::open()?;
    let agents = found.sdk.agents();
    let devices = agents.iter().filter(|agent| is_gpu(agent));
    let devices = devices.map(|agent| {
        let sampling = sampling::possible(&found.sdk, agent.info.id);
        RocmDevice {
            name: name_of(agent).to_owned(),
            architecture: agent.architecture.clone(),
            bus: bus(agent),
            compute_units: agent.info.cu_count,
            clock_mhz: agent.info.max_engine_clk_fcompute,
            memory: agent.memory,
            local_memory: u64::from(agent.info.lds_size_in_kb) << 10,
            wave_size: agent.info.wave_front_size,
            not_sampled: sampling.as_ref().err().cloned(),
            sampling: sampling.unwrap_or_default(),
        }
    });
    Ok(RocmDevices {
        devices: devices.collect(),
        version: found.sdk.version_text(),
        library: found.path,
    })
}

/// The counters and metrics of the GPU with this number. Opens librocprofiler-sdk in this process.
///
/// # Errors
///
/// A sentence that says why there are none.
pub fn counters(number: usize) -> Result<AgentCounters, String> {
    let found = places::open()?;
    let agents = found.sdk.agents();
    let mut devices = agents.iter().filter(|agent| is_gpu(agent));
    let device = devices
        .nth(number)
        .ok_or_else(|| format!("there is no device rocm:{number}: `gputrail agents` lists them"))?;
    AgentCounters::read(found.sdk, device.info.id, name_of(device))
}
