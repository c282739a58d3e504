//! The library that `gputrail record` loads into recorded programs, and that tools in C link with: an OpenCL layer, what
//! CUDA's driver and rocprofiler-sdk load, and the C API in one library, so that the tools configure the sources that run.
//!
//! It contains the layer's entry points, which call [`gputrail_sources::opencl`], that of CUDA's driver, which calls
//! [`gputrail_sources::cuda`], that of rocprofiler-sdk, which calls [`gputrail_sources::rocm`], those by which NVTX initialises it, which call [`gputrail_sources::nvtx`], and the
//! functions of the libraries of ROCTx and CLPerfMarker, which it stands for in recorded programs. The functions of the C
//! API come from [`c`].
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

#[cfg(target_os = "linux")]
pub mod c;
#[cfg(target_os = "linux")]
mod directives;
#[cfg(target_os = "linux")]
mod elder;
pub mod joined;
pub mod latest;
#[cfg(target_os = "linux")]
mod markers;
mod nanos;
pub mod packer;
#[cfg(target_os = "linux")]
mod questions;
pub mod timeline;

#[cfg(target_os = "linux")]
mod layer {
    use crate::elder::elder;
    use core::ffi::{c_char, c_void};
    use gputrail_rocprofiler::{ClientId, Configure, ToolConfigureResult};
    use gputrail_sources::cuda;
    use gputrail_sources::nvtx::{self, ExtensionModule, GetExportTable};
    use gputrail_sources::opencl::{self, DispatchTable};
    use gputrail_sources::rocm;

    type InitializeInjection = unsafe extern "C" fn() -> i32;
    type InitLayer =
        unsafe extern "C" fn(u32, *const DispatchTable, *mut u32, *mut *const DispatchTable) -> i32;
    type InitLayerWithProperties = unsafe extern "C" fn(
        u32,
        *const DispatchTable,
        *mut u32,
        *mut *const DispatchTable,
        *const u64,
    ) -> i32;
    type DeinitLayer = unsafe extern "C" fn() -> i32;
    type InitNvtx = unsafe extern "C" fn(Option<GetExportTable>) -> i32;
    type InitNvtxExtension = unsafe extern "C" fn(*mut ExtensionModule) -> i32;

    /// Called by the loader before it takes the layer.
    ///
    /// # Safety
    ///
    /// The arguments are those of a loader: `value` is null or has room for `size` bytes, `size_ret` is null or a place for
    /// a number.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn clGetLayerInfo(
        what: u32,
        size: usize,
        value: *mut c_void,
        size_ret: *mut usize,
    ) -> i32 {
        // SAFETY: `value` is null or has room for `size` bytes, `size_ret` is null or a place for a number (the caller's
        // promise).
        unsafe { opencl::layer_info(what, size, value, size_ret) }
    }

    /// Called by the loader, which passes its functions and gets ours. A loader that calls [`clInitLayerWithProperties`] does
    /// not call this.
    ///
    /// # Safety
    ///
    /// The arguments are those of a loader: `target` is null or leads to `entries` function pointers in the order of
    /// `cl_icd_dispatch`, which work for as long as the loader stays loaded; `entries_ret` and `layer_ret` are null or
    /// places for the answer.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn clInitLayer(
        entries: u32,
        target: *const DispatchTable,
        entries_ret: *mut u32,
        layer_ret: *mut *const DispatchTable,
    ) -> i32 {
        match elder::<InitLayer>("clInitLayer") {
            // SAFETY: the earlier copy's function of this name is this function, which `elder` sees to, and its arguments
            // are those that this one was promised.
            Some(elder) => unsafe { elder(entries, target, entries_ret, layer_ret) },
            // SAFETY: `target` is null or leads to `entries` function pointers, and the other two are null or places for the
            // answer (the caller's promise).
            None => unsafe {
                crate::c::serve_tools();
                opencl::init_layer(entries, target, entries_ret, layer_ret)
            },
        }
    }

    /// Called by loaders that end their layers with [`clDeinitLayer`], in place of [`clInitLayer`].
    ///
    /// # Safety
    ///
    /// As for [`clInitLayer`]; `properties` is null or a list that ends with a 0.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn clInitLayerWithProperties(
        entries: u32,
        target: *const DispatchTable,
        entries_ret: *mut u32,
        layer_ret: *mut *const DispatchTable,
        properties: *const u64,
    ) -> i32 {
        match elder::<InitLayerWithProperties>("clInitLayerWithProperties") {
            // SAFETY: the earlier copy's function of this name is this function, which `elder` sees to, and its arguments
            // are those that this one was promised.
            Some(elder) => unsafe { elder(entries, target, entries_ret, layer_ret, properties) },
            // SAFETY: `target` is null or leads to `entries` function pointers, and the other two pointers are null or
            // places for the answer (the caller's promise). The properties are not read.
            None => unsafe {
                crate::c::serve_tools();
                opencl::init_layer_with_properties(entries, target, entries_ret, layer_ret)
            },
        }
    }

    /// Called by the loader before it is gone, if it has called [`clInitLayerWithProperties`].
    #[unsafe(no_mangle)]
    pub extern "C" fn clDeinitLayer() -> i32 {
        match elder::<DeinitLayer>("clDeinitLayer") {
            // SAFETY: a function of this name in a library of ours is this function.
            Some(elder) => unsafe { elder() },
            None => opencl::deinit_layer(),
        }
    }

    /// Called by CUDA's driver when the process initialises CUDA.
    #[unsafe(no_mangle)]
    pub extern "C" fn InitializeInjection() -> i32 {
        match elder::<InitializeInjection>("InitializeInjection") {
            // SAFETY: a function of this name in a library of ours is this function.
            Some(elder) => unsafe { elder() },
            None => {
                crate::c::serve_tools();
                cuda::initialize_injection();
                1
            }
        }
    }

    /// Called by rocprofiler-sdk when it configures its tools. Returns what it is to initialise, or null if the process is not
    /// observed.
    ///
    /// # Safety
    ///
    /// The arguments are those of rocprofiler-sdk: `text` is null or its version as a text, and `client` is null or its description
    /// of this tool, which may be changed.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn rocprofiler_configure(
        version: u32,
        text: *const c_char,
        priority: u32,
        client: *mut ClientId,
    ) -> *mut ToolConfigureResult {
        match elder::<Configure>("rocprofiler_configure") {
            // SAFETY: the earlier copy's function of this name is this function, which `elder` sees to, and its arguments
            // are those that this one was promised.
            Some(elder) => unsafe { elder(version, text, priority, client) },
            // SAFETY: `text` is null or a text, and `client` is null or a description of ours (the caller's promise).
            None => unsafe {
                crate::c::serve_tools();
                rocm::configure(text, client)
            },
        }
    }

    /// Called by NVTX, once for each binary that contains it.
    ///
    /// # Safety
    ///
    /// `export` is null or the function of that name which NVTX passes.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn InitializeInjectionNvtx2(export: Option<GetExportTable>) -> i32 {
        match elder::<InitNvtx>("InitializeInjectionNvtx2") {
            // SAFETY: the earlier copy's function of this name is this function, which `elder` sees to, and its arguments
            // are those that this one was promised.
            Some(elder) => unsafe { elder(export) },
            // SAFETY: `export` is null or the function by which NVTX gives out its tables (the caller's promise).
            None => unsafe {
                crate::c::serve_tools();
                nvtx::initialise(export)
            },
        }
    }

    /// Called by NVTX, once for each extension in each binary.
    ///
    /// # Safety
    ///
    /// `module` is null or leads to what NVTX passes: a description whose segments and slots are as many as it says. Nobody
    /// else uses the slots until this function returns.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn InitializeInjectionNvtxExtension(module: *mut ExtensionModule) -> i32 {
        match elder::<InitNvtxExtension>("InitializeInjectionNvtxExtension") {
            // SAFETY: the earlier copy's function of this name is this function, which `elder` sees to, and its arguments
            // are those that this one was promised.
            Some(elder) => unsafe { elder(module) },
            // SAFETY: `module` is null or leads to the description of an extension, whose slots can be written until this
            // returns (the caller's promise).
            None => unsafe {
                crate::c::serve_tools();
                nvtx::initialise_extension(module)
            },
        }
    }
}
