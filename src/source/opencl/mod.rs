//! OpenCL, observed as a layer: a library that the loader puts between the program and the runtimes.
//!
//! The loader hands us its functions ([`init_layer`]) and gets ours instead. A wrapper records its call, and where
//! that puts work into a queue, the work; the work's event tells when it ran, by a callback. `table` has every
//! function once: `functions` is what is known of them, `layer` what is called in their place. What shows the records
//! and the devices of a machine does without the layer.
//!
//! The program must not notice. Nothing that it can ask about says that we are there, errors are those that it
//! would have got, and when recording is off or over, calls pass through.

mod agents;
mod device;
mod extension_table;
mod ffi;
mod functions;
#[cfg(feature = "layer")]
mod layer;
mod table;

pub use agents::{EnumerateError, Found, NoTimes, all_devices, enumerate};
pub use device::Device;
pub use functions::Dispatch;
#[cfg(feature = "layer")]
pub use layer::{init_layer, layer_info};

use crate::collect::operations::OperationInfo;

/// The functions of the dispatch table, and the extension functions that are known.
pub(crate) fn operations() -> impl Iterator<Item = OperationInfo> {
    functions::functions().map(|(number, function)| function.info(number))
}

/// What is known of the function with this number.
pub(crate) fn operation_info(number: u16) -> Option<OperationInfo> {
    functions::description(number).map(|function| function.info(number))
}
