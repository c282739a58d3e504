//! The layer: the functions that replace the runtime's, and the state that they keep.

mod call;
mod callbacks;
mod clocks;
mod command_buffers;
mod completion;
mod counting;
mod debug_info;
mod devices;
mod dispatch;
mod environment;
mod events;
mod extensions;
mod handles;
mod kernels;
mod memory;
mod objects;
mod programs;
mod queues;
mod rect;
mod replay;
mod sampling;
mod waits;
mod work;

use super::{Dispatch, device, extension_table, ffi, functions, table};
use crate::collect::process::{self, Current};
use crate::collect::switchboard::{Buffers, Flush, Switchboard};
use completion::OUTSTANDING;
use ffi::*;

/// The name of the layer, for loaders.
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

/// Prepares to observe this process: forgets the objects of a parent process.
pub(super) fn begin(board: &Switchboard) -> std::io::Result<()> {
    objects::forget_all();
    sampling::begin();
    counting::begin();
    environment::begin(board);
    OUTSTANDING.open()
}

/// Writes completions, as `flush` asks.
pub(super) fn flush(flush: Flush) {
    completion::flush(flush);
}

/// Ends recording when the process begins to exit; see [`Source::end`](crate::collect::source::Source::end).
pub(super) fn end(thread: Current, buffers: Buffers) {
    environment::finish();
    sampling::finish();
    completion::sweep(thread);
    completion::end(thread, buffers);
}

/// The body of the layer's `clInitLayer`: attaches the source to the process, and hands out the layer's functions. A
/// loader with fewer functions than we know gets as many.
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
    process::attach(&super::OpenCl);
    // SAFETY: the loader's places for the answer.
    unsafe {
        entries_ret.write(entries as u32);
        layer_ret.write(layer);
    }
    CL_SUCCESS
}
