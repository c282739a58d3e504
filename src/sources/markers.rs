//! The source of the marker libraries, NVTX, ROCTx and CLPerfMarker, and of OpenMP and OpenACC. They are adapters, which turn
//! the calls of a program or of its runtime into [markers](gputrail_collect::marker); this source gives them a recording in programs that use no runtime.

use gputrail_collect::operations::{self, OperationInfo};
use gputrail_collect::process::{self, AttachOutcome};
use gputrail_collect::source::Source;
use gputrail_record::Domain;

/// The source of markers.
#[derive(Debug)]
pub struct Markers;

impl Source for Markers {
    fn domain(&self) -> Domain {
        Domain::MARKER
    }

    fn operations(&self) -> Vec<OperationInfo> {
        operations::of(Domain::MARKER)
    }
}

/// Attaches the source. Returns whether markers of this process have consumers, now or later: there is a recording or a
/// tool, or another thread is finding that out.
pub fn attach() -> bool {
    process::attach(&Markers) == AttachOutcome::Later || process::is_observed()
}
