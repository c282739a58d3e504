//! Opening libcupti and the libraries beside it.

use super::places::Surroundings;
use gputrail_buffer::platform::environment::variable;
use gputrail_buffer::platform::system::library_of;
use libloading::os::unix::Library;
use std::ffi::OsStr;
use std::path::PathBuf;

/// The environment variable that names the libcupti to use, or the folder that it is in.
pub const CUPTI_VARIABLE: &str = "GPUTRAIL_CUPTI";

/// Opens a library that comes with libcupti and needs no driver: beside the one of [`CUPTI_VARIABLE`], in a Python package,
/// in a toolkit, or where the loader finds it.
pub(super) fn open_beside_cupti(file: &str) -> Option<Library> {
    let named = variable(CUPTI_VARIABLE).map(PathBuf::from);
    let named = named.and_then(|path| {
        if path.is_dir() {
            Some(path)
        } else {
            Some(path.parent()?.to_owned())
        }
    });
    let folders = Surroundings::of_this_process().folders();
    let files = named.into_iter().chain(folders);
    let files = files.map(|folder| folder.join(file)).chain([file.into()]);
    files.filter_map(|path| load(path.as_os_str()).ok()).next()
}

/// The folder of the library that `function` belongs to.
pub(super) fn beside(function: *const core::ffi::c_void) -> Option<PathBuf> {
    Some(library_of(function.cast())?.parent()?.to_owned())
}

/// Whether a library is gputrail's own with the names of CUPTI (`tools/abi/cupti`), which is not to be taken for NVIDIA's.
pub(super) fn is_own_cupti(library: &Library) -> bool {
    // SAFETY: the address alone is asked for.
    unsafe { library.get::<*const u32>(b"gputrail_cupti\0") }.is_ok()
}

/// Opens a library.
pub(super) fn load(path: &OsStr) -> Result<Library, libloading::Error> {
    let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
    // SAFETY: opening a library runs its constructors: those of libcupti, in a process that uses CUDA, or of a library that
    // needs no driver.
    unsafe { Library::open(Some(path), flags) }
}
