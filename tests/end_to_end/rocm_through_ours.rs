//! The source of ROCm over gputrail's own librocprofiler-sdk, which tells of OpenCL and of the simulated GPU: each piece of work is in
//! the recording twice, once as its own runtime reports it and once by rocprofiler-sdk. This shows that the two halves fit together,
//! and nothing of AMD's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_record::{AgentId, CorrelationId, Domain, WorkHeader};

use crate::abi_rocprofiler_sdk::ROCPROFILER_SDK;
use crate::command::TestDir;
use crate::rocm_stand_ins::Recorded;

/// Variable that names the librocprofiler-sdk through which gputrail records.
const THROUGH: &str = "GPUTRAIL_ROCPROFILER";
/// Nanoseconds by which a duration may differ: each end is rounded once on its way.
const ROUNDING: u64 = 2;
/// By how much the clock of a device may run faster or slower than that of rocprofiler-sdk: one part in so many.
const RATE: u64 = 10_000;

/// Work of an agent: the call that enqueued it, what it is, and how long it took in nanoseconds.
type Piece = (CorrelationId, String, u64);

/// All work, in the order of calls: that which runtimes report, and that which rocprofiler-sdk reports.
fn halves(recorded: &Recorded) -> (Vec<Piece>, Vec<Piece>) {
    let agents = &recorded.metadata.agents;
    let is_rocm = |agent: AgentId| agents[&agent].domain == Domain::HIP;
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    let mut add = |work: &WorkHeader, what: String| {
        let (start, end) = recorded.times(work.id);
        let piece = (work.correlation, what, end - start);
        match is_rocm(work.agent) {
            true => through.push(piece),
            false => direct.push(piece),
        }
    };
    for dispatch in &recorded.dispatches {
        add(
            &dispatch.work,
            format!("{} {:?}", recorded.kernel(dispatch), dispatch.grid),
        );
    }
    for set in &recorded.sets {
        add(&set.work, "gputrail_fill [1, 1, 1]".to_owned());
    }
    for copy in &recorded.copies {
        add(&copy.work, format!("copy of {} bytes", copy.bytes));
    }
    direct.sort();
    through.sort();
    (direct, through)
}

fn is_same(one: &Piece, other: &Piece) -> bool {
    (one.0, &one.1) == (other.0, &other.1) && one.2.abs_diff(other.2) <= ROUNDING + one.2 / RATE
}

/// The records of `gputrail record` of a program with the library as a tool.
fn recorded(dir: &TestDir, library: &Path, program: PathBuf, arguments: &[&str]) -> Recorded {
    let options = ["-q", "--capture", "--tool", library.to_str().unwrap()];
    let mut command = dir.record_with(&options, Driver::Threaded, &program, arguments);
    let ended = run(command.env(THROUGH, library)).well();
    assert_eq!(ended.stderr, "", "{program:?}");
    Recorded::of(dir)
}

#[test]
fn work_of_opencl_is_the_same_through_rocprofiler_sdk() {
    needs!(work_of_opencl_is_the_same_through_rocprofiler_sdk: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = ROCPROFILER_SDK.library(&dir);
    for (name, arguments, count) in [
        ("lives", &["50"][..], 50),
        ("image_copies", &[], 5),
        ("lives", &["20", "threads", "3"], 60),
    ] {
        let recorded = recorded(&dir, &library, dir.program(name), arguments);
        let (direct, through) = halves(&recorded);
        assert!(direct.len() >= count, "{name}: {direct:?}");
        let differ = direct.iter().zip(&through).find(|(a, b)| !is_same(a, b));
        assert_eq!(
            direct.len(),
            through.len(),
            "{name}: {direct:?} {through:?}"
        );
        assert_eq!(differ, None, "{name}");
        assert!(direct.iter().all(|(call, ..)| call.is_some()), "{name}");
        let allocated = |is_rocm: bool| {
            let agents = &recorded.metadata.agents;
            let all = recorded.allocations.iter();
            let mut all: Vec<_> = all
                .filter(|one| {
                    one.agent.is_some() && (agents[&one.agent].domain == Domain::HIP) == is_rocm
                })
                .map(|one| (one.operation.0, one.bytes))
                .collect();
            all.sort_unstable();
            all
        };
        assert_eq!(allocated(true), allocated(false), "{name}");
    }
}

#[test]
fn work_of_the_simulated_gpu_is_the_same_through_rocprofiler_sdk() {
    needs!(work_of_the_simulated_gpu_is_the_same_through_rocprofiler_sdk: Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = ROCPROFILER_SDK.library(&dir);
    let tool = library.to_str().unwrap();
    let options = [
        "demo",
        "-q",
        "-o",
        "run.pftrace",
        "--steps",
        "20",
        "--capture",
        "--tool",
        tool,
    ];
    run(dir.gputrail(options).env(THROUGH, &library)).well();
    let recorded = Recorded::of(&dir);
    let (direct, through) = halves(&recorded);
    let kernels = |all: &[Piece]| -> Vec<Piece> {
        let is_kernel =
            |piece: &&Piece| !piece.1.starts_with("copy") && !piece.1.starts_with("gputrail_fill");
        all.iter().filter(is_kernel).cloned().collect()
    };
    const DEVICES: usize = 2;
    let (mut direct, mut through) = (kernels(&direct), kernels(&through));
    // The simulated time of the first kernels lies before the moment at which rocprofiler-sdk is there. On each
    // device it may lie between those of a graph, which are one call.
    let of_calls = |all: &[Piece]| {
        let mut counts = BTreeMap::new();
        for piece in all {
            *counts.entry(piece.0).or_insert(0) += 1;
        }
        counts
    };
    let (all, told) = (of_calls(&direct), of_calls(&through));
    let is_cut = |call| told.get(call).is_some_and(|told| *told < all[call]);
    let cut: Vec<_> = all.keys().filter(|call| is_cut(call)).collect();
    assert!(cut.len() <= DEVICES, "{cut:?}");
    direct.retain(|piece| told.contains_key(&piece.0) && !cut.contains(&&piece.0));
    through.retain(|piece| !cut.contains(&&piece.0));
    assert!(through.len() > 200, "{}", through.len());
    assert_eq!(direct.len(), through.len());
    let differ = direct.iter().zip(&through).find(|(a, b)| !is_same(a, b));
    assert_eq!(differ, None);
}
