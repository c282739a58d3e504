//! Sources: the observers of runtimes.
//!
//! Each is one implementation of [`Source`], and [`all`] lists them. A new one has a folder here and a line in that
//! list.
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

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
pub mod roctx;
pub mod sim;

pub use gputrail_collect::source::Source;

use gputrail_record::Domain;
use std::ffi::OsString;
use std::path::Path;

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
        &sim::Simulated,
    ]
}

/// The source whose API has `domain`.
pub fn of_domain(domain: Domain) -> Option<&'static dyn Source> {
    let mut all = all().iter().copied();
    all.find(|source| source.domain() == domain)
}

/// A status with its name, if it has one: `CL_INVALID_VALUE (-30)`.
pub fn status_text(domain: Domain, status: i32) -> String {
    match of_domain(domain).and_then(|source| source.status_name(status)) {
        Some(name) => format!("{name} ({status})"),
        None => status.to_string(),
    }
}

/// Variables that a program is to be started with, so that its runtimes load `library`; see [`Source::environment`].
pub fn environment(library: &Path, outer_session: Option<&Path>) -> Vec<(&'static str, OsString)> {
    let existing = |name: &str| std::env::var_os(name);
    let of = |source: &&dyn Source| source.environment(library, outer_session, &existing);
    all().iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn known_statuses_have_names_and_others_are_numbers() {
        use super::*;
        assert_eq!(status_text(Domain::OPENCL, -30), "CL_INVALID_VALUE (-30)");
        assert_eq!(status_text(Domain::OPENCL, -12345), "-12345");
        assert_eq!(status_text(Domain::SIM, 2), "OUT_OF_MEMORY (2)");
        assert_eq!(status_text(Domain::SIM, -30), "-30");
    }
}
