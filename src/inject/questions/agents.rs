//! `gputrail agents`: the devices that each source finds.

use gputrail_collect::counting::Countable;
use gputrail_collect::sampling::Possible;
use gputrail_record::{AgentAttributeKind, count, printable};
use gputrail_sources::cuda::{self, CuptiError};
use gputrail_sources::links;
use gputrail_sources::opencl::{self, FoundDevice};
use gputrail_sources::rocm::{self, RocmDevice};
use gputrail_sources::sim;
use std::path::PathBuf;

/// Width of the names of attributes.
const NAMES: usize = 15;

/// The devices, as a text. A source without devices says why.
pub fn all() -> String {
    format!(
        "OpenCL\n{}\nCUDA\n{}\nROCm\n{}\nSimulated GPU (gputrail demo)\n{}",
        opencl_agents(),
        cuda_agents(),
        rocm_agents(),
        simulated()
    )
}

fn opencl_agents() -> String {
    match opencl::enumerate() {
        Err(error) => format!("  no devices: {}\n", printable(&error.to_string())),
        Ok(found) if found.is_empty() => {
            "  no devices: the OpenCL library knows no driver (clinfo tells more)\n".to_owned()
        }
        Ok(found) => found
            .iter()
            .enumerate()
            .map(|(number, found)| describe(number, found))
            .collect(),
    }
}

fn cuda_agents() -> String {
    match cuda::enumerate() {
        Err(error) => format!("  no devices: {}\n", printable(&error.to_string())),
        Ok(devices) if devices.is_empty() => "  no devices: the driver knows none\n".to_owned(),
        Ok(devices) => {
            let cupti = cuda::locate();
            let devices = devices.iter().enumerate();
            devices
                .map(|(number, device)| describe_cuda(number, device, &cupti))
                .collect()
        }
    }
}

fn describe_cuda(
    number: usize,
    device: &cuda::CudaDevice,
    cupti: &Result<PathBuf, CuptiError>,
) -> String {
    let sampling = Possible(device.sampling()).to_string();
    let (library, sampling, collected) = match cupti {
        Ok(path) => (
            path.display().to_string(),
            sampling,
            "calls, memory, waits; kernels, copies, fills with their times; clocks and power, by CUPTI",
        ),
        // Packages of the program may bring one.
        Err(error @ CuptiError::NoLibrary) => (
            format!("MISSING: {error}"),
            format!("{sampling}, if the program brings a libcupti"),
            "nothing, unless the program brings a libcupti",
        ),
        Err(error) => (
            format!("MISSING: {error}"),
            "nothing, without libcupti".to_owned(),
            "nothing, without libcupti",
        ),
    };
    let counted = match (cupti, device.counting()) {
        (Ok(_), counted) => counted.to_owned(),
        (Err(_), _) => "nothing, without libcupti".to_owned(),
    };
    let attributes = [
        ("kind", "GPU".to_owned()),
        ("driver", device.driver.clone()),
        ("architecture", device.architecture.clone()),
        ("compute units", units(device.compute_units, device.clock_mhz)),
        ("memory", memory(device.memory, device.local_memory)),
        ("bus", device.bus.clone()),
        ("link", links::in_words(&device.bus).unwrap_or_default()),
        ("libcupti", library),
        ("pc sampling", sampling),
        ("counters", counted),
        ("collected", collected.to_owned()),
        (
            "tested",
            "on an NVIDIA H200 with CUDA 13.0; other GPUs and versions with stand-ins (`gputrail help cuda`)"
                .to_owned(),
        ),
    ];
    table(number, &device.name, &attributes)
}

fn rocm_agents() -> String {
    match rocm::enumerate() {
        Err(error) => format!("  no devices: {}\n", printable(&error)),
        Ok(found) if found.devices.is_empty() => format!(
            "  no devices: {} knows none (rocminfo tells more)\n",
            printable(&found.library.display().to_string())
        ),
        Ok(found) => {
            let library = format!("{}, version {}", found.library.display(), found.version);
            let devices = found.devices.iter().enumerate();
            devices
                .map(|(number, device)| describe_rocm(number, device, &library))
                .collect()
        }
    }
}

fn describe_rocm(number: usize, device: &RocmDevice, library: &str) -> String {
    let sampling = match &device.not_sampled {
        Some(why) => format!("nothing: {why}"),
        None => Possible(device.sampling.clone()).to_string(),
    };
    let attributes = [
        ("kind", "GPU".to_owned()),
        ("architecture", device.architecture.clone()),
        ("compute units", units(device.compute_units, device.clock_mhz)),
        ("memory", memory(device.memory, device.local_memory)),
        ("wave size", device.wave_size.to_string()),
        ("bus", device.bus.clone()),
        ("link", links::in_words(&device.bus).unwrap_or_default()),
        ("library", library.to_owned()),
        ("pc sampling", sampling),
        (
            "counters",
            format!(
                "those of rocprofiler-sdk (gputrail counters list --agent rocm:{number}), of each kernel or at a period"
            ),
        ),
        (
            "collected",
            "calls of HSA, HIP and RCCL, memory; kernels, copies with their times; page faults and migrations"
                .to_owned(),
        ),
        (
            "tested",
            "with a stand-in of rocprofiler-sdk and on an emulator of AMD's, on no GPU of AMD's (`gputrail help rocm`)".to_owned(),
        ),
    ];
    table(number, &device.name, &attributes)
}

fn describe(number: usize, found: &FoundDevice) -> String {
    let device = &found.device;
    let mut attributes = vec![
        ("kind", device.kind.name().unwrap_or("other").to_owned()),
        ("vendor", device.vendor.clone()),
        ("platform", device.platform.clone()),
        ("driver", format!("{}, {}", device.driver, device.version)),
        (
            "compute units",
            units(device.compute_units, device.clock_mhz),
        ),
        ("memory", memory(device.memory, device.local_memory)),
        (
            "largest group",
            count(device.max_workgroup.into(), "work-item"),
        ),
    ];
    for (what, value) in &device.attributes {
        match *what {
            AgentAttributeKind::L2_CACHE => attributes.push(("cache", bytes(*value))),
            AgentAttributeKind::CONSTANT_MEMORY => {
                attributes.push(("constants", bytes(*value)));
            }
            AgentAttributeKind::WAVE_SIZE => attributes.push(("wave size", value.to_string())),
            AgentAttributeKind::ECC => {
                let corrects = if *value == 0 { "off" } else { "on" };
                attributes.push(("ECC", corrects.to_owned()));
            }
            _ => {}
        }
    }
    if !device.bus.is_empty() {
        attributes.push(("bus", device.bus.clone()));
        attributes.extend(links::in_words(&device.bus).map(|link| ("link", link)));
    }
    attributes.push(("pc sampling", Possible(device.sampling()).to_string()));
    attributes.push(("counters", counters(device.countable())));
    let (clock, times) = match &found.clock {
        Ok(clock) => (clock.describe(), "with their times"),
        Err(why) => (format!("none: {why}"), "without times"),
    };
    let collected = match opencl::loader_without_layers() {
        Some(loader) => format!(
            "nothing of programs that use {}: it does not support layers; ocl-icd does since version 2.3.0",
            loader.display()
        ),
        None => format!("calls, memory; kernels, copies, fills, maps, markers {times}"),
    };
    attributes.extend([("clock", clock), ("collected", collected)]);
    table(number, &device.name, &attributes)
}

/// The devices of the demo.
fn simulated() -> String {
    (0..2).map(describe_simulated).collect()
}

fn describe_simulated(number: usize) -> String {
    let links = sim::links_in_words(number).into_iter();
    let links = links.map(|(peer, link)| match peer {
        None => ("link", format!("to the host: {link}")),
        Some(peer) => ("link", format!("to device {peer}: {link}")),
    });
    let attributes = [
        ("kind", "simulated GPU".to_owned()),
        ("compute units", sim::COMPUTE_UNITS.to_string()),
        ("memory", bytes(sim::DEVICE_MEMORY)),
        ("clock", "a clock of its own, in virtual time".to_owned()),
        (
            "collected",
            "calls, memory; kernels, copies, fills with their times".to_owned(),
        ),
        (
            "pc sampling",
            Possible(sim::sampling_configurations()).to_string(),
        ),
        ("counters", counters(Some(sim::countable()))),
    ];
    let attributes: Vec<_> = attributes.into_iter().chain(links).collect();
    table(number, "Simulated GPU", &attributes)
}

/// What an agent counts, and how.
fn counters(countable: Option<Countable>) -> String {
    countable.map_or("nothing".to_owned(), |countable| countable.to_string())
}

fn table(number: usize, name: &str, attributes: &[(&str, String)]) -> String {
    let known = attributes.iter().filter(|(_, value)| !value.is_empty());
    let lines = known.map(|(name, value)| format!("     {name:NAMES$}{}\n", printable(value)));
    format!(
        "  {number}  {}\n{}",
        printable(name),
        lines.collect::<String>()
    )
}

fn units(number: u32, mhz: u32) -> String {
    format!("{number} at up to {mhz} MHz")
}

fn memory(all: u64, local: u64) -> String {
    format!("{}, {} local", bytes(all), bytes(local))
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        0x10_0000..0x4000_0000 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64),
    }
}
