//! ROCm, observed through AMD's rocprofiler-sdk: HSA, HIP, RCCL and OpenMP, and the work that they enqueue.
//!
//! The SDK calls `rocprofiler_configure` of the library that `ROCP_TOOL_LIBRARIES` names when a program loads a runtime of
//! ROCm: `beginning` finds the SDK's functions (`sdk`), makes the `session` and configures all services, which the SDK allows
//! at that moment only. `enabling` starts and stops their contexts by what is wanted. `callbacks` records calls, whose
//! operations and arguments `functions` has; `requests` tells the SDK which call enqueues work, and `activity` takes the buffers of
//! records that come back, of which `translation` makes ours. `objects` are the agents, queues, streams and kernels,
//! `dispatches` the ids of kernels' work, which samples and values of counters have too,
//! `markers` those of AMD's own ROCTx. `sampling` has the hardware sample the program counter, `counting` has it count, and `code`
//! keeps the machine code. `notes` says what the SDK refuses, and what to do.
//!
//! Nothing is linked or opened: the SDK is in the process before it calls us. Only a late start opens it itself.

mod code;
mod counting;
mod dispatches;
mod sampling;
mod sdk;
mod session;

use gputrail_record::Domain;

/// The domains of the APIs that are observed, each with a context of its own.
pub(crate) const DOMAINS: [Domain; 5] = [
    Domain::HSA,
    Domain::HIP,
    Domain::HIP_COMPILER,
    Domain::RCCL,
    Domain::OMPT,
];
