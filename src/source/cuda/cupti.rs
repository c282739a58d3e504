//! Finding libcupti. It is not opened before libcuda is in the process: some versions crash without it.

use super::devices::DRIVER;
use super::library::{CUPTI_VARIABLE, folders, load};
use crate::platform::system::loader_reason;
use libloading::os::unix::Library;
use std::path::PathBuf;

/// The names of libcupti by version, newest first.
const NAMES: [&str; 4] = [
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so.11.8",
    "libcupti.so",
];
/// The reason why libcupti is not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotFound {
    #[error("{DRIVER} is not in the process")]
    NoDriver,
    #[error(
        "no libcupti was found: neither in the process, in its Python packages, in CUDA_HOME nor by the loader \
         (pip install nvidia-cuda-cupti-cu12 or nvidia-cuda-cupti, or set {CUPTI_VARIABLE} to its path)"
    )]
    NoLibrary,
    #[error("{CUPTI_VARIABLE}: {0}")]
    Refused(String),
}

/// The driver's library, if the process has loaded it.
pub(super) fn driver() -> Option<Library> {
    loaded(DRIVER)
}

/// Finds libcupti: one that the process has loaded already, since two copies disturb each other; the one of
/// [`CUPTI_VARIABLE`]; one of a Python package; one of a toolkit; one that the loader finds.
pub(super) fn open() -> Result<(Library, PathBuf), NotFound> {
    driver().ok_or(NotFound::NoDriver)?;
    let there = NAMES.iter().find_map(|name| Some((loaded(name)?, name)));
    if let Some((library, name)) = there {
        return Ok((library, name.into()));
    }
    if let Some(path) = std::env::var_os(CUPTI_VARIABLE).filter(|path| !path.is_empty()) {
        let opened = load(&path).map_err(|error| NotFound::Refused(loader_reason(&error)));
        return Ok((opened?, path.into()));
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let files = candidates(&maps, &variable);
    let existing = files.into_iter().filter(|path| path.exists());
    let names = NAMES.iter().map(PathBuf::from);
    existing
        .chain(names)
        .find_map(|path| Some((load(path.as_os_str()).ok()?, path)))
        .ok_or(NotFound::NoLibrary)
}

/// The files that may be libcupti, best first. `maps` are the mappings of the process, `variable` is its environment.
fn candidates(maps: &str, variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    folders(maps, variable)
        .iter()
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .collect()
}

/// A library that the process has loaded.
fn loaded(name: &str) -> Option<Library> {
    let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
    // SAFETY: the library is in the process already, so that opening it runs nothing.
    unsafe { Library::open(Some(name), flags) }.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn packages_come_before_toolkits_and_newer_versions_before_older_ones() {
        let maps = "7f0-7f1 r-xp 0 08:01 1 /v/lib/python3.12/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12\n\
                    7f2-7f3 r-xp 0 08:01 1 /usr/lib/libc.so.6";
        let home = |name: &str| (name == "CUDA_HOME").then(|| PathBuf::from("/opt/cuda"));
        let found = candidates(maps, &home);
        let of = |text: &str| found.iter().position(|path| path == Path::new(text));
        let packages = "/v/lib/python3.12/site-packages/nvidia";
        let order = [
            format!("{packages}/cu13/lib/libcupti.so.13"),
            format!("{packages}/cuda_cupti/lib/libcupti.so.12"),
            "/opt/cuda/extras/CUPTI/lib64/libcupti.so.13".into(),
            "/opt/cuda/extras/CUPTI/lib64/libcupti.so".into(),
            "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12".into(),
        ];
        let places: Vec<_> = order.iter().map(|text| of(text)).collect();
        assert!(places.iter().all(Option::is_some), "{places:?}");
        assert!(places.is_sorted(), "{places:?}");
    }

    #[test]
    fn without_the_driver_nothing_is_opened() {
        assert!(matches!(open(), Err(NotFound::NoDriver)));
    }
}
