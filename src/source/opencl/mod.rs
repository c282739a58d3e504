//! OpenCL, observed as a layer: a library that the loader puts between the program and the runtimes.
//!
//! The loader hands us its functions ([`init_layer`]) and gets ours instead. A wrapper records its call, and where
//! that puts work into a queue, the work; the work's event tells when it ran, by a callback. `table` has every
//! function once; the other files are what its rows refer to.
//!
//! The program must not notice. Nothing that it can ask about says that we are there, errors are those that it
//! would have got, and when recording is off or over, calls pass through.

mod agents;
mod attach;
mod call;
mod clocks;
mod command_buffers;
mod completion;
mod debug_info;
mod devices;
mod dispatch;
mod events;
mod extension_table;
mod extensions;
mod ffi;
mod handles;
mod kernels;
mod memory;
mod objects;
mod outstanding;
mod programs;
mod queues;
mod sampling;
mod table;
mod tell;
mod waits;
mod work;

pub use agents::{EnumerateError, Found, NoTimes, all_devices, enumerate};
pub use devices::Device;
pub use dispatch::Dispatch;

use crate::operations::OperationInfo;
use ffi::*;

/// The functions of the dispatch table, and the extension functions that are known.
pub(crate) fn operations() -> impl Iterator<Item = OperationInfo> {
    attach::functions().map(|(number, function)| function.info(number))
}

/// What is known of the function with this number.
pub(crate) fn operation_info(number: u16) -> Option<OperationInfo> {
    dispatch::description(number).map(|function| function.info(number))
}

/// What the layer is called.
const NAME: &[u8] = b"gputrail\0";

/// The body of the layer's `clGetLayerInfo`.
///
/// # Safety
///
/// The arguments are those of a loader.
pub unsafe fn layer_info(
    what: u32,
    size: usize,
    value: *mut core::ffi::c_void,
    size_ret: *mut usize,
) -> i32 {
    let version = CL_LAYER_API_VERSION_100.to_ne_bytes();
    let answer: &[u8] = match what {
        CL_LAYER_API_VERSION => &version,
        CL_LAYER_NAME => NAME,
        _ => return CL_INVALID_VALUE,
    };
    if !value.is_null() {
        if size < answer.len() {
            return CL_INVALID_VALUE;
        }
        // SAFETY: the loader's memory, of which it says that it is large enough.
        unsafe { core::ptr::copy_nonoverlapping(answer.as_ptr(), value.cast(), answer.len()) };
    }
    if !size_ret.is_null() {
        // SAFETY: the loader's place for the size.
        unsafe { size_ret.write(answer.len()) };
    }
    CL_SUCCESS
}

/// The body of the layer's `clInitLayer`: begins to record, if the environment asks for it, and hands out
/// the layer's functions. A loader with fewer functions than we know gets as many.
///
/// # Safety
///
/// The arguments are those of a loader: `target` leads to `entries` function pointers.
pub unsafe fn init_layer(
    entries: u32,
    target: *const Dispatch,
    entries_ret: *mut u32,
    layer_ret: *mut *const Dispatch,
) -> i32 {
    if target.is_null() || entries_ret.is_null() || layer_ret.is_null() {
        return CL_INVALID_VALUE;
    }
    // SAFETY: the caller's promise.
    let (layer, entries) = unsafe { dispatch::install(target, entries as usize) };
    attach::start();
    // SAFETY: the loader's places for its answer.
    unsafe {
        entries_ret.write(entries as u32);
        layer_ret.write(layer);
    }
    CL_SUCCESS
}
