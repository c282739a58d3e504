//! The loader of OpenCL in a process, and whether it inserts layers.

use super::environment::LAYERS_VARIABLE;
use core::ffi::{CStr, c_void};
use libc::{RTLD_LAZY, RTLD_NOLOAD};
use libloading::os::unix::Library;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The library in which programs find OpenCL.
pub(super) const LIBRARY: &str = "libOpenCL.so.1";

/// Whether a loader inserts layers: such a loader contains the name of the variable. A file that cannot be read is taken for
/// one.
pub fn inserts_layers(loader: &Path) -> bool {
    let name = LAYERS_VARIABLE.as_bytes();
    std::fs::read(loader).map_or(true, |bytes| {
        bytes.windows(name.len()).any(|window| window == name)
    })
}

/// The loader of this process, if it inserts no layers, so that what is called through it is not observed.
pub fn loader_without_layers() -> Option<PathBuf> {
    // SAFETY: the library is in the process already: nothing is initialised.
    let loader = unsafe { Library::open(Some(LIBRARY), RTLD_NOLOAD | RTLD_LAZY) }.ok()?;
    // SAFETY: only the address is used.
    let function = *unsafe { loader.get::<*const c_void>("clGetPlatformIDs") }.ok()?;
    // SAFETY: zeros are valid for it.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address, and a place for the answer.
    if unsafe { libc::dladdr(function, &mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the dynamic loader's text, which lasts as long as `loader` does.
    let path = unsafe { CStr::from_ptr(info.dli_fname) };
    let path = PathBuf::from(OsStr::from_bytes(path.to_bytes()));
    (!inserts_layers(&path)).then_some(path)
}
