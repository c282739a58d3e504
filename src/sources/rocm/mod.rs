//! ROCm, observed through AMD's rocprofiler-sdk: HSA, HIP, RCCL and OpenMP, and the work that they enqueue.
//!
//! The SDK calls `rocprofiler_configure` of the library that `ROCP_TOOL_LIBRARIES` names when a program loads a runtime of
//! ROCm: `beginning` finds the SDK's functions (`sdk`), makes the `session` and configures all services, which the SDK allows
//! at that moment only. `enabling` starts and stops their contexts by what is wanted. `callbacks` records calls, whose
//! operations and arguments `functions` has; `requests` tells the SDK which call enqueues work (`recent`) in which of the `streams`, and
//! `activity` takes the buffers of records that come back, of which `translation` makes ours. `objects` are the agents, queues, streams
//! and kernels, `dispatches` the kernels that are sampled or counted, `markers` those of AMD's own ROCTx. `sampling` has the hardware
//! sample the program counter, `counting` has it count, and `code` keeps the machine code. `notes` says what the SDK refuses, and what
//! to do.
//!
//! Nothing is linked or opened: the SDK is in the process before it calls us. Only a late start and the question for the machine's
//! agents open it, in one of the `places`.

mod activity;
mod agents;
mod beginning;
mod callbacks;
mod code;
mod counting;
mod devices;
mod dispatches;
mod effects;
mod enabling;
mod functions;
mod kinds;
mod markers;
mod notes;
mod objects;
mod places;
mod recent;
mod requests;
mod sampling;
mod sdk;
mod session;
mod streams;
mod translation;

pub use beginning::{configure, start_late};
pub use counting::AgentCounters;
pub use devices::{RocmDevice, RocmDevices, counters, enumerate};
pub use places::{ROCPROFILER_VARIABLE, is_rocm_loaded};

use gputrail_collect::operations::OperationInfo;
use gputrail_collect::process::Current;
use gputrail_collect::source::Source;
use gputrail_collect::switchboard::{Buffers, Flush, Switchboard};
use gputrail_record::Domain;

/// The domains of the APIs that are observed, each with a context of its own.
pub(crate) const DOMAINS: [Domain; 5] = [
    Domain::HSA,
    Domain::HIP,
    Domain::HIP_COMPILER,
    Domain::RCCL,
    Domain::OMPT,
];

/// The source of one of ROCm's APIs. That of HIP's runtime also records the work of all of them.
#[derive(Debug)]
pub struct RocmApi(Domain);

/// The source of HSA.
pub const HSA: RocmApi = RocmApi(Domain::HSA);
/// The source of HIP's runtime API, and of work.
pub const HIP: RocmApi = RocmApi(Domain::HIP);
/// The source of the functions of HIP that compilers call.
pub const HIP_COMPILER: RocmApi = RocmApi(Domain::HIP_COMPILER);
/// The source of RCCL.
pub const RCCL: RocmApi = RocmApi(Domain::RCCL);
/// The source of OpenMP, where rocprofiler-sdk is the tool of its runtime.
pub const OMPT: RocmApi = RocmApi(Domain::OMPT);

/// The sources, in the order of [`DOMAINS`].
const APIS: [&RocmApi; DOMAINS.len()] = [&HSA, &HIP, &HIP_COMPILER, &RCCL, &OMPT];

impl Source for RocmApi {
    fn domain(&self) -> Domain {
        self.0
    }

    fn operations(&self) -> Vec<OperationInfo> {
        functions::all(self.0)
            .map(|function| function.info())
            .collect()
    }

    fn begin(&self, _: &Switchboard) -> std::io::Result<()> {
        beginning::begin();
        Ok(())
    }

    fn flush(&self, _: Flush) {
        if self.0 == Domain::HIP {
            activity::flush();
        }
    }

    fn end(&self, _: Current, _: Buffers) {
        if self.0 == Domain::HIP {
            beginning::end();
        }
    }
}
