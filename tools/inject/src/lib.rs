//! The library that `gputrail record` puts into the programs it records: an OpenCL layer.
//!
//! It holds the layer's two entry points and nothing else; what they do is in [`gputrail::source::opencl`].

#[cfg(target_os = "linux")]
mod layer {
    use core::ffi::c_void;
    use gputrail::source::opencl::{self, Dispatch};

    /// What the loader asks before it takes the layer.
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

    /// The loader hands out its functions and takes ours.
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
        // SAFETY: the caller's promise.
        unsafe { opencl::init_layer(entries, target, entries_ret, layer_ret) }
    }
}
