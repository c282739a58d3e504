//! OpenCL, observed by a layer: a library that the loader inserts between the program and the runtimes.
//!
//! The loader passes its functions to us ([`init_layer`]) and gets ours instead. A wrapper records its call and, if the
//! call puts work into a queue, the work; a callback of the work's event determines when it ran. `table` lists every
//! function once: `functions` describes them, and `layer` has the functions that replace them. Commands that show
//! records or list devices need no layer.
//!
//! The program must not notice the layer: no query shows that it is there, errors are those that the runtime would
//! return, and calls pass through if recording is off or has ended.

mod agents;
mod attributes;
mod device;
mod extension_table;
mod ffi;
mod functions;
mod layer;
mod loader;
mod table;

pub use agents::{EnumerateError, FoundDevice, NoTimes, all_devices, enumerate};
pub use device::ClDevice;
pub use functions::DispatchTable;
pub use layer::{deinit_layer, find_agents, init_layer, init_layer_with_properties, layer_info};
pub use loader::loader_without_layers;

use gputrail_collect::operations::OperationInfo;
use gputrail_collect::source::Source;
use gputrail_record::Domain;
use {
    gputrail_collect::process::Current,
    gputrail_collect::switchboard::{Buffers, Flush, Switchboard},
};

/// The source of OpenCL.
#[derive(Debug)]
pub struct OpenCl;

impl Source for OpenCl {
    fn domain(&self) -> Domain {
        Domain::OPENCL
    }

    /// The functions of the dispatch table, and the known extension functions.
    fn operations(&self) -> Vec<OperationInfo> {
        let all = functions::functions();
        all.map(|(number, function)| function.info(number))
            .collect()
    }

    fn operation(&self, number: u16) -> Option<OperationInfo> {
        functions::description(number).map(|function| function.info(number))
    }

    fn begin(&self, board: &Switchboard) -> std::io::Result<()> {
        layer::begin(board)
    }

    fn flush(&self, flush: Flush) {
        layer::flush(flush);
    }

    fn end(&self, thread: Current, buffers: Buffers) {
        layer::end(thread, buffers);
    }
}
