//! The layer: the functions that replace the runtime's, and the state that they keep.

mod below;
mod call;
mod call_site;
mod callbacks;
mod callers;
mod clocks;
mod command_buffers;
mod completion;
mod contained;
mod contexts;
mod counters;
mod counting;
mod debug_info;
mod devices;
mod dispatch;
mod ended;
mod enqueued;
mod environment;
mod events;
mod extensions;
mod handles;
mod kernel_arguments;
mod kernels;
mod memory;
mod objects;
mod programs;
mod queue_calls;
mod queues;
mod rect;
mod references;
mod replay;
mod sampling;
mod waits;
mod work;
mod wrapper_body;

pub use devices::find_agents;

use super::{DispatchTable, device, extension_table, ffi, functions, table};
use completion::OUTSTANDING;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use ffi::*;
use gputrail_buffer::platform::function_names;
use gputrail_buffer::platform::inside::{Uncancelled, contain};
use gputrail_collect::process::{self, Current};
use gputrail_collect::session::{self, AttachProgress};
use gputrail_collect::switchboard::{Buffers, Flush, Switchboard};

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
    // The first thing that a loader asks.
    if what == CL_LAYER_API_VERSION && !value.is_null() {
        contain(|| session::note(AttachProgress::Offered));
    }
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
    counters::begin();
    replay::begin();
    environment::begin(board);
    OUTSTANDING.open()
}

/// Writes completions, as `flush` asks.
pub(super) fn flush(flush: Flush) {
    completion::flush(flush);
}

/// Ends recording when the process begins to exit; see [`Source::end`](gputrail_collect::source::Source::end).
pub(super) fn end(thread: Current, buffers: Buffers) {
    environment::finish();
    sampling::finish();
    completion::sweep(thread);
    completion::end(thread, buffers);
}

/// The loaders that have the layer and will call `clDeinitLayer`: those that call `clInitLayerWithProperties`.
static ENDING_LOADERS: AtomicU32 = AtomicU32::new(0);
/// Whether a loader has the layer that does not say when it ends.
static HAS_OTHER_LOADER: AtomicBool = AtomicBool::new(false);

/// The body of the layer's `clInitLayer`: attaches the source to the process, and hands out the layer's functions. A
/// loader with fewer functions than we know gets as many.
///
/// # Safety
///
/// The arguments are those of a loader: `target` is null or leads to `entries` function pointers, `entries_ret` and
/// `layer_ret` are null or places for the answers.
pub unsafe fn init_layer(
    entries: u32,
    target: *const DispatchTable,
    entries_ret: *mut u32,
    layer_ret: *mut *const DispatchTable,
) -> i32 {
    HAS_OTHER_LOADER.store(true, Ordering::Release);
    // SAFETY: the arguments are a loader's, and `initialise` asks for the same.
    unsafe { initialise(entries, target, entries_ret, layer_ret) }
}

/// The body of the layer's `clInitLayerWithProperties`. There are no properties that a layer has to know.
///
/// # Safety
///
/// As for [`init_layer`].
pub unsafe fn init_layer_with_properties(
    entries: u32,
    target: *const DispatchTable,
    entries_ret: *mut u32,
    layer_ret: *mut *const DispatchTable,
) -> i32 {
    ENDING_LOADERS.fetch_add(1, Ordering::AcqRel);
    // SAFETY: the arguments are a loader's, and `initialise` asks for the same.
    unsafe { initialise(entries, target, entries_ret, layer_ret) }
}

/// # Safety
///
/// As for [`init_layer`].
unsafe fn initialise(
    entries: u32,
    target: *const DispatchTable,
    entries_ret: *mut u32,
    layer_ret: *mut *const DispatchTable,
) -> i32 {
    if target.is_null() || entries_ret.is_null() || layer_ret.is_null() {
        return CL_INVALID_VALUE;
    }
    // SAFETY: `target` is not null, so that it leads to `entries` function pointers in the order of `cl_icd_dispatch`.
    let (layer, entries) = unsafe { dispatch::install(target, entries as usize) };
    function_names::find_demangler();
    process::attach(&super::OpenCl);
    // SAFETY: the loader's places for the answer.
    unsafe {
        entries_ret.write(entries as u32);
        layer_ret.write(layer);
    }
    CL_SUCCESS
}

/// The body of the layer's `clDeinitLayer`. The loader calls it in its destructor, behind the handlers of exit, so that tools
/// and the recording have been served (`end`), or when the program closes it. Until this returns, the runtimes are as
/// they were. After it the loader gives back what it keeps of them, and objects of theirs may not be touched any more: what
/// has completed is recorded now, and callbacks that come later find nothing. Calls that still come, by functions of
/// extensions, pass as before.
pub fn deinit_layer() -> i32 {
    // A call without an initialisation leaves the count as it is.
    let less = |loaders: u32| loaders.checked_sub(1);
    let before = ENDING_LOADERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    if before == Ok(1) && !HAS_OTHER_LOADER.load(Ordering::Acquire) {
        contain(|| {
            let _uncancelled = Uncancelled::begin();
            // A forked child that has made no call has nothing to take: what it has inherited is its parent's.
            if let Some(thread) = process::current().filter(|_| process::is_observed()) {
                completion::abandon(thread);
            }
        });
    }
    CL_SUCCESS
}
