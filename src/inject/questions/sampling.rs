//! `record --pc-sampling`: whether an agent of this machine can be sampled as requested.

use gputrail_collect::sampling::{Possible, SampleSource};
use gputrail_collect::scope;
use gputrail_interface::sampling::{Configuration, Request};
use gputrail_sources::cuda::{self, CuptiError};
use gputrail_sources::rocm::{self, RocmDevice};
use gputrail_sources::{opencl, perf};

/// Answers whether the request can be met. The sampling of host processors needs only permission from the system: whether there
/// is such a device, the program will see. For other requests the drivers are loaded, which costs more than sampling a short
/// program. Without agents all is accepted. The answer says what may hinder the sampling.
pub fn answer(words: &[String]) -> Result<String, String> {
    let [request] = words else {
        return Err("the request is missing".to_owned());
    };
    let request = scope::sampling(request).map_err(|error| error.to_string())?;
    let source = SampleSource::requested();
    if source.possible().iter().any(|one| one.allows(&request)) {
        return match perf::permitted(source, request.interval) {
            Ok(()) => Ok(String::new()),
            // Of GPUs it is.
            Err(_)
                if rocm_devices()
                    .iter()
                    .any(|of| allows(&of.sampling, &request)) =>
            {
                Ok(String::new())
            }
            Err(why) => Err(format!("PC sampling is not possible: {why}")),
        };
    }
    let opencl = opencl::all_devices().unwrap_or_default();
    let opencl = opencl.iter().map(|of| (of.name.clone(), of.sampling()));
    let cuda = cuda::enumerate();
    let hindered = match &cuda {
        Ok(devices) if devices.is_empty() => None,
        Ok(_) => cuda::locate().err(),
        Err(_) => None,
    };
    // A program may bring a libcupti that is not found here; none replaces one that the user has named.
    let is_final = matches!(&hindered, Some(error) if *error != CuptiError::NoLibrary);
    let without_driver = cuda.as_ref().err().map(ToString::to_string);
    let cuda = cuda.unwrap_or_default();
    let of_cuda = cuda.iter().map(|of| {
        if is_final {
            (of.name.clone(), Vec::new())
        } else {
            (of.name.clone(), of.sampling())
        }
    });
    let rocm = rocm_devices();
    let of_rocm = rocm.iter().map(|of| (of.name.clone(), of.sampling.clone()));
    let devices: Vec<_> = opencl.chain(of_cuda).chain(of_rocm).collect();
    if devices.is_empty() {
        return Ok(String::new());
    }
    let mut can = false;
    let mut list = Vec::new();
    for (number, (name, possible)) in devices.into_iter().enumerate() {
        can |= possible.iter().any(|one| one.allows(&request));
        let possible = Possible(possible);
        list.push(format!("agent {number} ({name}): {possible}"));
    }
    let hindered = hindered.map(|error| error.to_string());
    for why in without_driver.iter().chain(&hindered) {
        list.push(format!("CUDA: {why}"));
    }
    let mut of_rocm: Vec<String> = rocm.into_iter().filter_map(|of| of.not_sampled).collect();
    of_rocm.dedup();
    list.extend(of_rocm.iter().map(|why| format!("ROCm: {why}")));
    if !can {
        return Err(format!(
            "no agent offers PC sampling {request}; available configurations: {}",
            list.join("; ")
        ));
    }
    let by_cuda = cuda.iter().flat_map(cuda::CudaDevice::sampling);
    if let Some(why) = hindered
        && by_cuda.into_iter().any(|one| one.allows(&request))
    {
        return Ok(format!(
            "CUDA is not sampled unless the program brings a libcupti: {why}\n"
        ));
    }
    Ok(String::new())
}

fn rocm_devices() -> Vec<RocmDevice> {
    rocm::enumerate().map_or_else(|_| Vec::new(), |found| found.devices)
}

fn allows(possible: &[Configuration], request: &Request) -> bool {
    possible.iter().any(|one| one.allows(request))
}
