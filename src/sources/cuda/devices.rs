//! The devices of CUDA's driver.

use super::ffi::{self, Cuda, call};
use core::ffi::{CStr, c_char, c_int};
use gputrail_interface::sampling::Configuration;
use gputrail_record::{SamplingMethod, SamplingUnit};
use libloading::os::unix::Library;

/// The driver's library, by which a process uses CUDA.
pub(super) const DRIVER: &str = "libcuda.so.1";

/// A device, as far as the driver describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CudaDevice {
    /// Its name.
    pub name: String,
    /// The version of CUDA that the driver supports: "CUDA 12.8".
    pub driver: String,
    /// Its architecture: "sm_90".
    pub architecture: String,
    /// Its compute capability, as a number: 90 for 9.0.
    pub capability: u32,
    /// Its PCI address.
    pub bus: String,
    /// The number of streaming multiprocessors.
    pub compute_units: u32,
    /// The highest clock rate in MHz.
    pub clock_mhz: u32,
    /// Global memory in bytes.
    pub memory: u64,
    /// Shared memory of a multiprocessor in bytes.
    pub local_memory: u64,
    /// The largest block, in threads.
    pub max_workgroup: u32,
}

/// The least compute capability that CUPTI samples, and whose kernels its range profiler counts: 7.0.
const LEAST_SAMPLED: u32 = 70;
const LEAST_COUNTED: u32 = 70;
/// Which libcupti counts on devices that are too old for the range profiler.
pub(super) const WHERE_USED: &str = "A libcupti before CUDA 13.0 counts on devices below compute capability 7.5 by its Event and Metric APIs; GPUTRAIL_CUPTI names one";

impl CudaDevice {
    /// The ways in which it can be sampled.
    pub fn sampling(&self) -> Vec<Configuration> {
        let by_hardware = Configuration {
            method: SamplingMethod::STOCHASTIC,
            unit: SamplingUnit::CYCLES,
            min: 1 << 5,
            max: 1 << 31,
            power_of_two: true,
        };
        match self.capability {
            LEAST_SAMPLED.. => vec![by_hardware],
            _ => Vec::new(),
        }
    }

    /// How its kernels are counted.
    pub fn counting(&self) -> &'static str {
        if self.is_counted_by_events() {
            "its events and metrics (gputrail counters list --agent cuda:N), of each kernel, by libcupti before CUDA 13"
        } else {
            "metrics of its chip (gputrail counters list --chip NAME), of each kernel or range, by libcupti of CUDA 12.6 or later"
        }
    }

    /// Whether it is too old for the range profiler, so that CUPTI's Event and Metric APIs alone count on it.
    pub fn is_counted_by_events(&self) -> bool {
        self.capability < LEAST_COUNTED
    }
}

/// The reason why there are no CUDA devices to list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnumerateError {
    /// There is no driver.
    #[error("no CUDA driver: {0}")]
    NoDriver(String),
    /// The driver does not work.
    #[error("cuInit failed with {0}")]
    Failed(String),
}

/// All devices. Initialises CUDA in this process.
pub fn enumerate() -> Result<Vec<CudaDevice>, EnumerateError> {
    // SAFETY: opening a library runs its constructors: those of the driver that every program uses.
    let library = unsafe { Library::new(DRIVER) }.map_err(|error| {
        EnumerateError::NoDriver(gputrail_buffer::platform::system::loader_reason(&error))
    })?;
    let cuda = Cuda::of(&library);
    // The functions stay valid: the library is never closed.
    let _ = library.into_raw();
    // SAFETY: flags alone, of which the driver defines none.
    match unsafe { call!(cuda, cuInit(0)) } {
        Some(0) => Ok(all(&cuda)),
        Some(status) => Err(EnumerateError::Failed(
            match gputrail_interface::return_codes::name(
                gputrail_record::Domain::CUDA_DRIVER,
                status,
            ) {
                Some(name) => format!("{name} ({status})"),
                None => status.to_string(),
            },
        )),
        None => Err(EnumerateError::NoDriver(format!("{DRIVER} lacks cuInit"))),
    }
}

/// The devices of a driver that has been initialised.
pub(super) fn all(cuda: &Cuda) -> Vec<CudaDevice> {
    let mut count = 0;
    // SAFETY: the driver writes to a local.
    unsafe { call!(cuda, cuDeviceGetCount(&raw mut count)) };
    let numbers = 0..count.max(0);
    numbers.map(|number| describe(cuda, number)).collect()
}

fn describe(cuda: &Cuda, number: c_int) -> CudaDevice {
    let mut device = 0;
    // SAFETY: the driver writes to a local, and refuses a number that no device has.
    if unsafe { call!(cuda, cuDeviceGet(&raw mut device, number)) } != Some(0) {
        return CudaDevice::default();
    }
    let attribute = |attribute| {
        let mut value = 0;
        let place = &raw mut value;
        // SAFETY: the driver writes to a local, and refuses an attribute that it does not know.
        match unsafe { call!(cuda, cuDeviceGetAttribute(place, attribute, device)) } {
            Some(0) => u32::try_from(value).unwrap_or(0),
            _ => 0,
        }
    };
    let (mut name, mut bus) = ([0; 256], [0; 64]);
    let room = |text: &[c_char]| text.len() as c_int - 1;
    let mut memory = 0;
    // SAFETY: the driver writes to locals alone, and no more of a text than there is room for.
    unsafe {
        call!(
            cuda,
            cuDeviceGetName(name.as_mut_ptr(), room(&name), device)
        );
        call!(
            cuda,
            cuDeviceGetPCIBusId(bus.as_mut_ptr(), room(&bus), device)
        );
        call!(cuda, cuDeviceTotalMem_v2(&raw mut memory, device));
    }
    let version = cuda.version();
    let major = attribute(ffi::COMPUTE_CAPABILITY_MAJOR);
    let minor = attribute(ffi::COMPUTE_CAPABILITY_MINOR);
    CudaDevice {
        name: text_of(&name),
        driver: format!("CUDA {}.{}", version / 1000, version % 1000 / 10),
        architecture: format!("sm_{major}{minor}"),
        capability: 10 * major + minor,
        bus: text_of(&bus),
        compute_units: attribute(ffi::MULTIPROCESSOR_COUNT),
        clock_mhz: attribute(ffi::CLOCK_RATE) / 1000,
        memory: memory as u64,
        local_memory: attribute(ffi::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR).into(),
        max_workgroup: attribute(ffi::MAX_THREADS_PER_BLOCK),
    }
}

/// A text that the driver wrote, whose last byte is 0.
fn text_of(text: &[c_char]) -> String {
    // SAFETY: the driver was given one byte less than there are, all of them 0 before.
    unsafe { CStr::from_ptr(text.as_ptr()) }
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_too_old_for_the_range_profiler_says_how_it_is_counted() {
        let of = |capability| CudaDevice {
            capability,
            ..CudaDevice::default()
        };
        assert!(of(70).counting().contains("--chip NAME"));
        assert!(of(61).counting().contains("its events and metrics"));
    }
}
