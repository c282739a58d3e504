//! ROCm through the stand-in of rocprofiler-sdk: the work of each of two GPUs, and the calls of HSA, which are recorded on request.

use std::collections::BTreeMap;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_record::KernelDispatch;

use crate::command::well;
use crate::rocm::counted;
use crate::rocm_stand_ins::{NEWEST, Recorded, StandIns, VERSIONS};

#[test]
fn work_of_two_gpus_is_in_the_streams_of_each() {
    needs!(work_of_two_gpus_is_in_the_streams_of_each: Need::Program("cc"), Need::TraceProcessor);
    for version in VERSIONS {
        let stand_ins = StandIns::new(version);
        // Each of four threads has a stream, two of which are the second GPU's; the default stream is the first one's.
        let mut command = stand_ins.record(&["--capture"], "", &["10", "4"]);
        let ended = well(command.env("STANDIN_GPUS", "2"));
        assert_eq!(ended.text(), "done\n", "{version}: {}", ended.stderr);
        let (log, recorded) = (stand_ins.log(), Recorded::of(stand_ins.dir()));

        let told = counted(log.of("kernel").map(|kernel| {
            let gpu = &kernel[10];
            format!("{} on Stand-in MI300X {gpu}", kernel[0])
        }));
        let agents = &recorded.metadata.agents;
        let name_of = |one: &KernelDispatch| recorded.metadata.string(agents[&one.work.agent].name);
        let found = counted(recorded.dispatches.iter().map(|one| {
            let kernel = recorded.kernel(one);
            format!("{kernel} on {}", name_of(one))
        }));
        assert_eq!(found, told, "{version}");
        assert_eq!(
            found.into_values().collect::<Vec<_>>(),
            [20, 20, 40],
            "{version}"
        );

        // A queue is one GPU's: that of all of its work.
        let mut of_queues = BTreeMap::new();
        for one in &recorded.dispatches {
            let queue = &recorded.metadata.queues[&one.work.queue];
            assert_eq!(queue.agent, one.work.agent, "{version}: {queue:?}");
            *of_queues.entry((name_of(one), one.work.queue)).or_insert(0) += 1;
        }
        let all: Vec<(&str, u32)> = of_queues.iter().map(|((gpu, _), of)| (*gpu, *of)).collect();
        let (first, second) = ("Stand-in MI300X 0", "Stand-in MI300X 1");
        let on = |gpu: &str| {
            let of_gpu = all.iter().filter(|(of, _)| *of == gpu);
            let mut counts: Vec<u32> = of_gpu.map(|(_, of)| *of).collect();
            counts.sort_unstable();
            counts
        };
        assert_eq!(
            (on(first), on(second)),
            (vec![10, 10, 40], vec![10, 10]),
            "{version}"
        );

        let mut trace = stand_ins.dir().trace();
        trace.assert_sound();
        let summary = well(&mut stand_ins.dir().gputrail(["summary", "run.pftrace"])).text();
        for gpu in [first, second] {
            assert!(summary.contains(gpu), "{version}: {summary}");
        }
    }
}

#[test]
fn calls_of_hsa_are_recorded_on_request() {
    needs!(calls_of_hsa_are_recorded_on_request: Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new(NEWEST);
    let calls = |options: &[&str]| {
        let ended = well(&mut stand_ins.record(options, "", &["5"]));
        assert_eq!(ended.text(), "done\n", "{}", ended.stderr);
        let told = stand_ins.log();
        let told = told.of("call").filter(|call| call[1].starts_with("hsa_"));
        let mut trace = stand_ins.dir().trace();
        trace.assert_sound();
        let tied = "select count(*) from flow join gpu_slice on slice_in = gpu_slice.id";
        let mut of = |name: &str| {
            let query = format!("select count(*) from slice where name glob '{name}'");
            trace.value::<i64>(&query)
        };
        let (hsa, launches) = (of("hsa_*"), of("hip*Launch*Kernel"));
        let tied: i64 = trace.value(tied);
        (told.count() as i64, hsa, launches, tied)
    };
    // HIP calls HSA, which the SDK is not asked to tell of.
    let (told, hsa, launches, tied) = calls(&[]);
    assert_eq!((told, hsa, launches), (0, 0, 11));
    let (told, hsa, both, all_tied) = calls(&["--call", "*"]);
    assert!(told > 10 && told == hsa, "{told} {hsa}");
    assert_eq!((both, all_tied), (launches, tied));
    let (told, hsa, none, _) = calls(&["--call", "hsa_*"]);
    assert!(told > 10 && told == hsa && none == 0, "{told} {hsa} {none}");
}
