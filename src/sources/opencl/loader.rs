//! The loader of OpenCL in a process, and whether it inserts layers.

use super::environment::LAYERS_VARIABLE;
use crate::platform::system::library_of;
use libc::{RTLD_LAZY, RTLD_NOLOAD};
use libloading::os::unix::Library;
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
    let function = *unsafe { loader.get::<*const ()>("clGetPlatformIDs") }.ok()?;
    library_of(function).filter(|path| !inserts_layers(path))
}
