//! Sources: the observers of runtimes.
//!
//! Each is one implementation of [`Source`], and [`all`] lists them. A new one has a folder here and a line in that
//! list.
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
pub mod clperfmarker;
#[cfg(target_os = "linux")]
pub mod cuda;
pub mod handles;
#[cfg(target_os = "linux")]
pub mod links;
#[cfg(target_os = "linux")]
pub mod markers;
#[cfg(target_os = "linux")]
pub mod nvtx;
#[cfg(target_os = "linux")]
pub mod openacc;
#[cfg(target_os = "linux")]
pub mod opencl;
#[cfg(target_os = "linux")]
pub mod openmp;
pub mod operations;
#[cfg(target_os = "linux")]
pub mod perf;
#[cfg(target_os = "linux")]
pub mod processors;
#[cfg(target_os = "linux")]
pub mod rocm;
#[cfg(target_os = "linux")]
pub mod roctx;
pub mod sim;

pub use gputrail_collect::source::Source;

use gputrail_record::Domain;

/// The sources that are built in.
pub fn all() -> &'static [&'static dyn Source] {
    &[
        #[cfg(target_os = "linux")]
        &opencl::OpenCl,
        #[cfg(target_os = "linux")]
        &markers::Markers,
        #[cfg(target_os = "linux")]
        &cuda::CudaDriver,
        #[cfg(target_os = "linux")]
        &cuda::CudaRuntime,
        #[cfg(target_os = "linux")]
        &rocm::HSA,
        #[cfg(target_os = "linux")]
        &rocm::HIP,
        #[cfg(target_os = "linux")]
        &rocm::HIP_COMPILER,
        #[cfg(target_os = "linux")]
        &rocm::RCCL,
        #[cfg(target_os = "linux")]
        &rocm::OMPT,
        &sim::Simulated,
    ]
}

/// The source whose API has `domain`.
pub fn of_domain(domain: Domain) -> Option<&'static dyn Source> {
    let mut all = all().iter().copied();
    all.find(|source| source.domain() == domain)
}
