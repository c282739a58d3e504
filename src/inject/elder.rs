//! The copy of this library that a process has loaded first. A process may load several: that of the session, and one that the
//! program is linked with. The first one records, and the others pass their calls on to it.

use core::ffi::c_void;
use libloading::os::unix::Library;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The function with this name in a copy of this library that the process loaded earlier, if there is one: a program
/// that is linked with the library uses that copy, so it has to be the one that records. `F` is the function's type.
pub fn elder<F: Copy>(name: &str) -> Option<F> {
    let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
    // SAFETY: the library is in the process already, so opening it runs nothing; it is never unloaded.
    let found = unsafe { Library::open(Some("libgputrail.so.0"), flags) }.ok()?;
    // SAFETY: a function of this name in a library of that soname has this type, which is that of a pointer.
    let (function, address) = unsafe {
        let function = *found.get::<F>(name).ok()?;
        (function, *found.get::<*const c_void>(name).ok()?)
    };
    let _ = found.into_raw();
    // The copies are compared by address: the linker may resolve our own function to that of the earlier copy.
    (base_of(address) != base_of(base_of as *const c_void)).then_some(function)
}

/// The base address of the library that contains `address`.
fn base_of(address: *const c_void) -> usize {
    // SAFETY: zeros are valid for it.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address, and a place for the answer.
    unsafe { libc::dladdr(address, &mut info) };
    info.dli_fbase as usize
}

/// A function of the first copy, looked up when it is called first.
pub struct ElderFunction(AtomicPtr<c_void>);

/// The state of an [`ElderFunction`] where this copy is the first one.
const NONE: *mut c_void = core::ptr::without_provenance_mut(1);

impl ElderFunction {
    pub const fn new() -> ElderFunction {
        ElderFunction(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// The function with this name in the first copy, if that is another one.
    #[inline]
    pub fn get(&self, name: &str) -> Option<*mut c_void> {
        let mut known = self.0.load(Ordering::Acquire);
        if known.is_null() {
            known = elder::<*mut c_void>(name).unwrap_or(NONE);
            self.0.store(known, Ordering::Release);
        }
        (known != NONE).then_some(known)
    }
}
