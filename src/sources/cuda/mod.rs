//! CUDA, observed through CUPTI: the driver and the runtime API, and the work that they enqueue.
//!
//! The driver calls [`initialize_injection`] of the library that `CUDA_INJECTION64_PATH` names when a program
//! initialises CUDA. `cupti` then finds libcupti in one of the `places`; it is never linked: a program without CUDA opens nothing.
//! `subscription` makes the `session`, `enabling` asks for what is wanted, and `callbacks` records calls. `activity` takes
//! the buffers of records that CUPTI delivers later, in `rounds` of ours at the latest, and `translation` makes our records
//! of them, which find their calls in `recent`. `records` has the layouts, which only grow from version to version. `inner`
//! and `resources` tell subscribers what happens in calls. `agents` names the devices. `sampling` has the hardware sample the
//! program counter, `counting` has it count for each kernel, and `metrics` tells what chips can count. `notes` says what
//! CUPTI cannot do.
//!
//! CUPTI has one subscriber in a process. If that is somebody else, the program goes on and is not observed.

mod activity;
mod agents;
mod callbacks;
mod counting;
mod counts;
mod cupti;
mod devices;
mod enabling;
mod environment;
mod events;
mod ffi;
mod functions;
mod graphs;
mod inner;
mod inside;
mod library;
pub mod metrics;
mod notes;
mod objects;
mod places;
mod pool;
mod recent;
mod records;
mod resources;
mod rounds;
mod sampling;
mod session;
mod subscription;
mod translation;
#[cfg(test)]
mod wheels_tests;

pub use cupti::{CuptiError, locate};
pub use devices::{CudaDevice, EnumerateError, enumerate};
pub use events::event_counters;
pub use library::CUPTI_VARIABLE;

use gputrail_collect::operations::OperationInfo;
use gputrail_collect::source::{Handles, Source};
use gputrail_record::Domain;
use {
    gputrail_collect::process::{self, Current},
    gputrail_collect::switchboard::{Buffers, Flush, Switchboard},
};

/// The source of the CUDA driver API. It also records the work of both APIs.
#[derive(Debug)]
pub struct CudaDriver;

/// The source of the CUDA runtime API.
#[derive(Debug)]
pub struct CudaRuntime;

impl Source for CudaDriver {
    fn domain(&self) -> Domain {
        Domain::CUDA_DRIVER
    }

    fn operations(&self) -> Vec<OperationInfo> {
        operations(self.domain())
    }

    fn handles(&self) -> Option<&'static dyn Handles> {
        Some(&objects::CudaHandles)
    }

    fn begin(&self, board: &Switchboard) -> std::io::Result<()> {
        subscription::begin(board)
    }

    fn flush(&self, _: Flush) {
        session::flush();
    }

    fn end(&self, _: Current, _: Buffers) {
        subscription::end();
    }
}

impl Source for CudaRuntime {
    fn domain(&self) -> Domain {
        Domain::CUDA_RUNTIME
    }

    fn operations(&self) -> Vec<OperationInfo> {
        operations(self.domain())
    }
}

/// The functions of an API, as the library of this process names them; none where there is no library.
fn operations(domain: Domain) -> Vec<OperationInfo> {
    functions::all(domain)
        .map(|function| function.info)
        .collect()
}

/// The body of `InitializeInjection`, which the driver calls when the process initialises CUDA: attaches the sources,
/// and passes the call on to the library that the program was to be injected with. May be called more than once.
pub fn initialize_injection() {
    gputrail_buffer::platform::inside::contain(|| {
        if cupti::driver().is_some() {
            process::attach(&CudaDriver);
            process::attach(&CudaRuntime);
        }
        environment::call_next();
    });
}
