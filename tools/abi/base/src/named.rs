//! The name that a loaded library has of itself.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::CString;

/// A search: the name, and the library that was found.
struct Search {
    address: usize,
    name: Option<CString>,
}

/// The name (`DT_SONAME`) of the library that `address` lies in, whatever its file is called.
pub fn name_of(address: *const ()) -> Option<String> {
    let mut search = Search {
        address: address.addr(),
        name: None,
    };
    // SAFETY: the function gets the objects of the process one after the other, and `search`, during this call alone.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.name?.into_string().ok()
}

/// Looks at an object; 1 if it is the one that is looked for.
///
/// # Safety
///
/// `object` is the loader's description of an object, `search` a [`Search`].
unsafe extern "C" fn look(object: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: the loader's, and the caller's, during this call.
    let (object, search) = unsafe { (&*object, &mut *search.cast::<Search>()) };
    if object.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader has as many headers of the object.
    let headers =
        unsafe { core::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    let base = object.dlpi_addr as usize;
    let has = |header: &libc::Elf64_Phdr| {
        let from = base.wrapping_add(header.p_vaddr as usize);
        let offset = search.address.wrapping_sub(from);
        header.p_type == libc::PT_LOAD && offset < header.p_memsz as usize
    };
    if !headers.iter().any(has) {
        return 0;
    }
    let dynamic = headers.iter().find(|one| one.p_type == libc::PT_DYNAMIC);
    if let Some(dynamic) = dynamic {
        let at = base.wrapping_add(dynamic.p_vaddr as usize);
        let count = dynamic.p_memsz as usize / size_of::<[usize; 2]>();
        let entries = core::ptr::with_exposed_provenance::<[usize; 2]>(at);
        // SAFETY: the object is loaded, and its dynamic section has so many entries, which nobody changes any more.
        let entries = unsafe { core::slice::from_raw_parts(entries, count) };
        // SAFETY: they are those of the object at `base`.
        search.name = unsafe { name_among(entries, base) };
    }
    1
}

/// The name of the object at `base`.
///
/// # Safety
///
/// `entries` are its dynamic section.
unsafe fn name_among(entries: &[[usize; 2]], base: usize) -> Option<CString> {
    const STRINGS: usize = 5;
    const NAME: usize = 14;
    let value = |tag| {
        let mut entries = entries.iter().take_while(|[tag, _]| *tag != 0);
        entries.find(|entry| entry[0] == tag).map(|entry| entry[1])
    };
    let strings = value(STRINGS)?;
    // Some loaders write the address in the place of the offset.
    let strings = if strings < base {
        base + strings
    } else {
        strings
    };
    let name = core::ptr::with_exposed_provenance::<c_char>(strings + value(NAME)?);
    // SAFETY: a text of the object's strings, which is loaded.
    Some(unsafe { CStr::from_ptr(name) }.to_owned())
}
