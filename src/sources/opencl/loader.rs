//! The loader of OpenCL in a process.

use gputrail_buffer::platform::system::library_of;
use gputrail_collect::loading::opencl::inserts_layers;
use libc::{RTLD_LAZY, RTLD_NOLOAD};
use libloading::os::unix::Library;
use std::path::PathBuf;
use {
    libc::RTLD_NODELETE,
    std::ffi::{CStr, CString, c_int, c_void},
};

/// The library in which programs find OpenCL.
pub(super) const LIBRARY: &str = "libOpenCL.so.1";

/// Keeps the libraries that contain `functions` in the process until it ends.
pub(super) fn keep_loaded(functions: impl Iterator<Item = usize>) {
    struct Search {
        addresses: Vec<usize>,
        libraries: Vec<CString>,
    }

    /// Adds the name of a library that contains one of the addresses.
    unsafe extern "C" fn look(
        library: *mut libc::dl_phdr_info,
        _: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the dynamic linker's description of a library that is loaded, and the search of `keep_loaded`, which waits.
        let (library, search) = unsafe { (&*library, &mut *search.cast::<Search>()) };
        // SAFETY: the library has as many segments as it says.
        let segments =
            unsafe { core::slice::from_raw_parts(library.dlpi_phdr, library.dlpi_phnum.into()) };
        let contains = |address: &usize| {
            segments.iter().any(|segment| {
                let start = (library.dlpi_addr as usize).wrapping_add(segment.p_vaddr as usize);
                segment.p_type == libc::PT_LOAD
                    && address.wrapping_sub(start) < segment.p_memsz as usize
            })
        };
        if search.addresses.iter().any(contains) {
            // SAFETY: a text of the dynamic linker.
            let name = unsafe { CStr::from_ptr(library.dlpi_name) };
            search.libraries.push(name.to_owned());
        }
        0
    }

    let mut search = Search {
        addresses: functions.collect(),
        libraries: Vec::new(),
    };
    // SAFETY: `look` gets the search, which lasts until this returns.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    for library in &search.libraries {
        let flags = RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE;
        // SAFETY: the library is in the process already: nothing is initialised. The program itself, whose name is empty, stays
        // in any case.
        unsafe { libc::dlopen(library.as_ptr(), flags) };
    }
}

/// The loader of this process, if it inserts no layers, so that what is called through it is not observed.
pub fn loader_without_layers() -> Option<PathBuf> {
    // SAFETY: the library is in the process already: nothing is initialised.
    let loader = unsafe { Library::open(Some(LIBRARY), RTLD_NOLOAD | RTLD_LAZY) }.ok()?;
    // SAFETY: only the address is used.
    let function = *unsafe { loader.get::<*const ()>("clGetPlatformIDs") }.ok()?;
    library_of(function).filter(|path| !inserts_layers(path))
}
