//! The folders in which libcupti lies, and the libraries beside it.

use libloading::os::unix::Library;
use std::ffi::OsStr;
#[cfg(feature = "layer")]
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The environment variable that names the libcupti to use.
pub const CUPTI_VARIABLE: &str = "GPUTRAIL_CUPTI";

/// The folders of libcupti inside of `nvidia` in a Python environment: of version 13, and of earlier ones.
const WHEEL_FOLDERS: [&str; 2] = ["cu13/lib", "cuda_cupti/lib"];

/// Opens a library that comes with libcupti and needs no driver: beside the one of [`CUPTI_VARIABLE`], in a Python package,
/// in a toolkit, or where the loader finds it.
pub(super) fn open_beside_cupti(file: &str) -> Option<Library> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let named = variable(CUPTI_VARIABLE).and_then(|path| Some(path.parent()?.to_owned()));
    let files = named.into_iter().chain(folders("", &variable));
    let files = files.map(|folder| folder.join(file)).chain([file.into()]);
    files.filter_map(|path| load(path.as_os_str()).ok()).next()
}

/// The folder of the library that `function` belongs to.
#[cfg(feature = "layer")]
pub(super) fn beside(function: *const core::ffi::c_void) -> Option<PathBuf> {
    // SAFETY: numbers and pointers, which may be null.
    let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked for.
    let is_found = unsafe { libc::dladdr(function, &raw mut found) } != 0;
    if !is_found || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's text, which lives as long as the library is loaded.
    let path = unsafe { core::ffi::CStr::from_ptr(found.dli_fname) };
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    Some(path.parent()?.to_owned())
}

/// The folders of libcupti in Python packages and in toolkits, best first.
pub(super) fn folders(maps: &str, variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    // Packages of CUDA's libraries lie beside each other: site-packages/nvidia/cuda_runtime/lib/libcudart.so.12.
    let mapped = maps.lines().filter_map(|line| {
        let path = &line[line.find('/')?..];
        let end = path.rfind("/nvidia/")?;
        Some(Path::new(&path[..end]).join("nvidia"))
    });
    folders.extend(mapped);
    for environment in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let lib = variable(environment).map(|root| root.join("lib"));
        let versions = lib.and_then(|lib| std::fs::read_dir(lib).ok());
        let versions = versions.into_iter().flatten().flatten();
        folders.extend(versions.map(|version| version.path().join("site-packages/nvidia")));
    }
    folders.dedup();
    let wheels = folders
        .iter()
        .flat_map(|folder| WHEEL_FOLDERS.map(|lib| folder.join(lib)));
    let homes = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(|name| variable(name));
    let toolkits = homes
        .chain([PathBuf::from("/usr/local/cuda")])
        .map(|home| home.join("extras/CUPTI/lib64"));
    wheels.chain(toolkits).collect()
}

/// Opens a library.
pub(super) fn load(path: &OsStr) -> Result<Library, libloading::Error> {
    let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
    // SAFETY: opening a library runs its constructors: those of libcupti, in a process that uses CUDA, or of a library that
    // needs no driver.
    unsafe { Library::open(Some(path), flags) }
}
