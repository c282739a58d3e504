//! The library that `gputrail record` loads into recorded programs, and that tools in C link with: an OpenCL layer and
//! the C API in one library, so that the tools configure the layer that runs.
//!
//! It contains the layer's two entry points, which call [`gputrail::source::opencl`]. The functions of the C API come
//! from [`gputrail::tool::c`].

#[cfg(target_os = "linux")]
mod layer {
    use core::ffi::c_void;
    use gputrail::source::opencl::{self, Dispatch};
    use libloading::os::unix::Library;

    type InitLayer =
        unsafe extern "C" fn(u32, *const Dispatch, *mut u32, *mut *const Dispatch) -> i32;

    /// Called by the loader before it takes the layer.
    ///
    /// # Safety
    ///
    /// The arguments are those of a loader.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn clGetLayerInfo(
        what: u32,
        size: usize,
        value: *mut c_void,
        size_ret: *mut usize,
    ) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { opencl::layer_info(what, size, value, size_ret) }
    }

    /// Called by the loader, which passes its functions and gets ours.
    ///
    /// # Safety
    ///
    /// The arguments are those of a loader.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn clInitLayer(
        entries: u32,
        target: *const Dispatch,
        entries_ret: *mut u32,
        layer_ret: *mut *const Dispatch,
    ) -> i32 {
        match elder() {
            // SAFETY: the caller's promise; a function of this name in a library of ours is this function.
            Some(elder) => unsafe { elder(entries, target, entries_ret, layer_ret) },
            // SAFETY: the caller's promise.
            None => unsafe {
                gputrail::tool::c::serve_tools();
                opencl::init_layer(entries, target, entries_ret, layer_ret)
            },
        }
    }

    /// `clInitLayer` of a copy of this library that the process loaded earlier, if there is one: a program that is
    /// linked with the library uses that copy, so it has to be the layer.
    fn elder() -> Option<InitLayer> {
        let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
        // SAFETY: the library is in the process already, so opening it runs nothing; it is never unloaded.
        let found = unsafe { Library::open(Some("libgputrail.so.0"), flags) }.ok()?;
        // SAFETY: a function of this name in a library of that soname has this type.
        let function = *unsafe { found.get::<InitLayer>("clInitLayer") }.ok()?;
        let _ = found.into_raw();
        // The copies are compared by address: the linker may resolve our own `clInitLayer` to that of the earlier copy.
        (base_of(function as *const c_void) != base_of(elder as *const c_void)).then_some(function)
    }

    /// The base address of the library that contains `address`.
    fn base_of(address: *const c_void) -> usize {
        // SAFETY: zeros are valid for it.
        let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
        // SAFETY: any address, and a place for the answer.
        unsafe { libc::dladdr(address, &mut info) };
        info.dli_fbase as usize
    }
}
