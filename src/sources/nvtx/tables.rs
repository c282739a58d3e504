//! The tables through which functions are exchanged with NVTX version 3, as its public documentation describes them, and
//! what all functions in them have in common.

use core::ffi::{c_int, c_uint, c_void};
use gputrail_buffer::platform::inside::contain;

/// A function of any type.
pub(super) type FunctionPointer = *const c_void;
/// Returns the export table with an id.
pub type GetExportTable = unsafe extern "C" fn(id: u32) -> *const c_void;

/// Id of the export table with the function tables.
pub(super) const CALLBACKS: u32 = 1;

/// The export table with the function tables.
#[repr(C)]
pub(super) struct ExportCallbacks {
    pub size: usize,
    pub get_module_function_table: Option<
        unsafe extern "C" fn(
            module: c_int,
            table: *mut *const *mut FunctionPointer,
            size: *mut c_uint,
        ) -> c_int,
    >,
}

/// What `InitializeInjectionNvtxExtension` gets: the functions of an extension.
#[repr(C)]
pub struct ExtensionModule {
    pub(super) nvtx_version: u16,
    pub(super) size: u16,
    pub(super) module: u16,
    pub(super) compatibility: u16,
    pub(super) segments_count: usize,
    pub(super) segments: *const ExtensionSegment,
    get_export_function: FunctionPointer,
    extension: *const c_void,
}

/// A part of the functions of an extension.
#[repr(C)]
pub(super) struct ExtensionSegment {
    id: usize,
    pub slots_count: usize,
    pub slots: *mut FunctionPointer,
}

const _: () = assert!(size_of::<ExtensionModule>() == 40 && size_of::<ExtensionSegment>() == 24);

/// Runs `work`, and returns `default` if it panics.
#[inline]
pub(super) fn answer<R>(default: R, work: impl FnOnce() -> R) -> R {
    let mut result = default;
    contain(|| result = work());
    result
}

/// A function, shared by threads.
#[repr(transparent)]
pub(super) struct FunctionOf(pub FunctionPointer);
// SAFETY: the address of a function.
unsafe impl Sync for FunctionOf {}

/// The functions of an extension by their places; `_` stands for a place without one, and a function with a type is in
/// parentheses.
macro_rules! functions_at {
    (@place _) => { None };
    (@place ($function:expr)) => { Some(FunctionOf($function as FunctionPointer)) };
    (@place $function:ident) => { Some(FunctionOf($function as FunctionPointer)) };
    [$($function:tt),* $(,)?] => { [$(functions_at!(@place $function)),*] };
}
pub(super) use functions_at;

/// The functions of a Rust module for each module of NVTX, from id 1 on.
macro_rules! modules {
    ($functions:ident) => {
        modules! { $functions:
            1: mark_ex, mark_a, mark_w, range_start_ex, range_start_a, range_start_w, range_end,
                range_push_ex, range_push_a, range_push_w, range_pop, name_category_a, name_category_w,
                name_os_thread_a, name_os_thread_w;
            2: cu_device_a, cu_device_w, cu_context_a, cu_context_w, cu_stream_a, cu_stream_w, cu_event_a,
                cu_event_w;
            3: cl_device_a, cl_device_w, cl_context_a, cl_context_w, cl_queue_a, cl_queue_w, cl_memory_a,
                cl_memory_w, cl_sampler_a, cl_sampler_w, cl_program_a, cl_program_w, cl_event_a, cl_event_w;
            4: cuda_device_a, cuda_device_w, cuda_stream_a, cuda_stream_w, cuda_event_a, cuda_event_w;
            5: domain_mark_ex, domain_range_start_ex, domain_range_end, domain_range_push_ex,
                domain_range_pop, domain_resource_create, domain_resource_destroy, domain_name_category_a,
                domain_name_category_w, domain_register_string_a, domain_register_string_w,
                domain_create_a, domain_create_w, domain_destroy, initialize;
            6: sync_create, sync_destroy, sync_acquire_start, sync_acquire_failed, sync_acquire_success,
                sync_releasing;
        }
    };
    ($functions:ident: $($module:literal: $($function:ident),*;)*) => {
        [$(($module, &[$(FunctionOf($functions::$function as FunctionPointer)),*]),)*]
    };
}
pub(super) use modules;
