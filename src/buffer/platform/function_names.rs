//! Names of functions of the program, as its loader and its C++ runtime know them.

use core::ffi::{CStr, c_char, c_int, c_void};
use libc::{RTLD_LAZY, RTLD_NOLOAD};
use libloading::os::unix::Library;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The function of the C++ runtime that makes names readable; null in a program without it.
static DEMANGLE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

type Demangle =
    unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;

/// Before the name of a type. Compilers of SYCL name kernels after types (`_ZTS...`).
const OF_TYPE: &str = "typeinfo name for ";

/// The names of C++ runtimes. Python loads modules so that what they bring is found by its name only.
const RUNTIMES: [&str; 2] = ["libstdc++.so.6", "libc++abi.so.1"];

/// Finds the function that makes names readable, if the program has it. The loader's lock is taken: a source calls this
/// once, when it begins.
pub fn find_demangler() {
    // SAFETY: the library is in the process already, and stays: nothing is initialised.
    let loaded = |name| unsafe { Library::open(Some(name), RTLD_NOLOAD | RTLD_LAZY) }.ok();
    let runtimes = RUNTIMES.into_iter().filter_map(loaded);
    for library in std::iter::once(Library::this()).chain(runtimes) {
        // SAFETY: a function of this name has this type.
        if let Ok(demangle) = unsafe { library.get::<Demangle>("__cxa_demangle") } {
            DEMANGLE.store(*demangle as *mut c_void, Ordering::Release);
            // The function is called later.
            core::mem::forget(library);
            return;
        }
    }
}

/// The name as C++ writes it; `None` if it is no name of C++, or the program has no C++ runtime.
pub fn demangled(name: &[u8]) -> Option<String> {
    let demangle = DEMANGLE.load(Ordering::Acquire);
    if !name.starts_with(b"_Z") || demangle.is_null() {
        return None;
    }
    // SAFETY: `find_demangler` has stored a function of this type.
    let demangle = unsafe { core::mem::transmute::<*mut c_void, Demangle>(demangle) };
    let name = std::ffi::CString::new(name).ok()?;
    let (mut status, none) = (0, core::ptr::null_mut());
    // SAFETY: a text, no buffer of ours, and a place for the status.
    let text = unsafe { demangle(name.as_ptr(), none, core::ptr::null_mut(), &raw mut status) };
    if text.is_null() {
        return None;
    }
    // SAFETY: the function made a text with malloc.
    let demangled = unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned();
    // SAFETY: as above.
    unsafe { libc::free(text.cast()) };
    Some(match demangled.strip_prefix(OF_TYPE) {
        Some(of) => of.to_owned(),
        None => demangled,
    })
}

/// The function that a code address lies in, or else the file with the offset in it: `solver+0x11d3`. `None` if no file is
/// loaded there. The loader's lock is taken.
pub fn function_at(address: usize) -> Option<String> {
    // SAFETY: zeros are valid for it.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address, and a place for the answer.
    let found = unsafe { libc::dladdr(address as *const c_void, &mut info) };
    if address == 0 || found == 0 {
        return None;
    }
    if !info.dli_sname.is_null() {
        // SAFETY: the loader's text, which lasts as long as the file is loaded.
        let name = unsafe { CStr::from_ptr(info.dli_sname) };
        let readable = demangled(name.to_bytes());
        return Some(readable.unwrap_or_else(|| name.to_string_lossy().into_owned()));
    }
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: as above.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy();
    let file = Path::new(&*path).file_name()?.to_string_lossy();
    let offset = address.wrapping_sub(info.dli_fbase as usize);
    Some(format!("{file}+{offset:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_a_library_has_its_name_and_other_code_its_file() {
        let name = function_at(libc::getenv as *const () as usize);
        assert_eq!(name.as_deref(), Some("getenv"));
        let here = a_function_of_a_library_has_its_name_and_other_code_its_file as *const ();
        let name = function_at(here as usize).unwrap();
        assert!(name.contains("gputrail"), "{name}");
        assert_eq!(function_at(0), None);
    }
}
