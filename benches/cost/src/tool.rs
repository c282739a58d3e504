//! A tool that is an OpenCL layer itself, as Rust tools are. By [`TOOL_VARIABLE`] it subscribes to `clSetKernelArg`, or
//! records everything except that.

use gputrail_collect::context::{
    BufferOptions, Context, OperationSet, RecordBuffer, RecordSelection, ToolError,
};
use gputrail_record::{Domain, Kind, Operation};
use gputrail_sources::opencl::{self, DispatchTable};
use std::ffi::c_void;

/// The environment variable with the value `subscribed` or `disabled`.
const TOOL_VARIABLE: &str = "GPUTRAIL_COST_TOOL";

/// `clSetKernelArg`, by its index in the dispatch table.
const SET_ARGUMENT: Operation = Operation {
    domain: Domain::OPENCL,
    number: 38,
};

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

/// Called by the loader, which passes its functions and gets ours; the tool begins.
///
/// # Safety
///
/// The arguments are those of a loader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clInitLayer(
    entries: u32,
    target: *const DispatchTable,
    entries_ret: *mut u32,
    layer_ret: *mut *const DispatchTable,
) -> i32 {
    if let Err(error) = begin() {
        eprintln!("gputrail-cost: {error}");
    }
    // SAFETY: the caller's promise.
    unsafe { opencl::init_layer(entries, target, entries_ret, layer_ret) }
}

fn begin() -> Result<(), ToolError> {
    let asked = std::env::var(TOOL_VARIABLE).unwrap_or_default();
    let context = Context::new()?;
    match &*asked {
        "subscribed" => {
            let mut operations = OperationSet::default();
            operations.set(SET_ARGUMENT, true);
            std::mem::forget(context.call_back(operations, |_| {})?);
        }
        "disabled" => {
            let buffer = RecordBuffer::create(BufferOptions::default(), |_| {})?;
            let mut selection = RecordSelection::kinds(&[Kind::API]);
            selection.operations.set(SET_ARGUMENT, false);
            context.trace_to(&buffer, selection)?;
            std::mem::forget(buffer);
        }
        _ => {}
    }
    context.start()?;
    // The tool exists until its process ends.
    std::mem::forget(context);
    Ok(())
}
