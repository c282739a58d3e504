//! Tables into the model: what the summary, hotspots and a plain log of the stream say of them.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::import::log::StreamLog;
use crate::import::{Inputs, Report};
use gputrail_analysis::hotspots::HotspotAnalysis;
use gputrail_analysis::summary::Summary;
use gputrail_record::Nanos;
use gputrail_trace::model::Producer;

/// A folder of tables.
struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(TempDir::new().unwrap());
        for (name, content) in files {
            fs::write(folder.0.path().join(name), content).unwrap();
        }
        folder
    }

    fn read(&self) -> (StreamLog, Report) {
        read(self.0.path())
    }
}

fn read(path: &Path) -> (StreamLog, Report) {
    let mut log = StreamLog::default();
    let report = Inputs::open(&[path]).unwrap().produce(&mut log).unwrap();
    (log, report)
}

/// The files of the documentation.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/rocprofv3")
}

const CALLS: &str = "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n";
const KERNELS: &str = "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n";

#[test]
fn calls_submit_the_work_with_their_correlation_id() {
    let calls = format!(
        "{CALLS}\"HIP_RUNTIME_API\",\"hipLaunchKernel\",7,8,1,100,200\n\"HIP_RUNTIME_API\",\"hipMalloc\",7,8,2,210,220\n"
    );
    let kernels = format!(
        "{KERNELS}\"KERNEL_DISPATCH\",\"Agent 4\",1,3,8,1,10,\"void f<int>(int*)\",1,300,400\n"
    );
    let folder = Folder::new(&[
        ("7_hip_api_trace.csv", &calls),
        ("7_kernel_trace.csv", &kernels),
    ]);
    let (log, report) = folder.read();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(log.of("process "), ["7 process"]);
    assert_eq!(
        log.of("call "),
        [
            "hipLaunchKernel 100..200 submitted [1]",
            "hipMalloc 210..220 submitted []"
        ]
    );
    assert_eq!(
        log.of("work "),
        ["stream 3: f<int> 300..400 queue_id=1 dispatch_id=1 kernel_id=10"]
    );
}

#[test]
fn kernels_that_overlap_on_a_stream_get_rows_of_their_own() {
    let kernel = |start: u32, end: u32| {
        format!("\"KERNEL_DISPATCH\",\"Agent 4\",1,0,8,1,10,\"f\",1,{start},{end}\n")
    };
    let kernels =
        [(100, 200), (150, 180), (160, 300), (200, 210)].map(|(start, end)| kernel(start, end));
    let folder = Folder::new(&[(
        "kernel_trace.csv",
        &(KERNELS.to_owned() + &kernels.concat()),
    )]);
    let (log, report) = folder.read();
    assert_eq!(log.queues, ["stream 0", "stream 0 row 2", "stream 0 row 3"]);
    assert_eq!(log.of("work ").len(), 4);
    let remark = |part: &str| {
        let found = report.remarks.iter().find(|one| one.reason.contains(part));
        found.map_or(0, |one| one.count)
    };
    assert_eq!(remark("overlaps"), 2);
}

#[test]
fn work_without_times_is_counted_and_impossible_times_are_flagged() {
    let kernels = format!(
        "{KERNELS}{}",
        [
            (0_u64, 0_u64),
            (500, 400),
            (100, 100 + (1 << 60)),
            (100, 200)
        ]
        .map(|(start, end)| format!(
            "\"KERNEL_DISPATCH\",\"Agent 4\",1,0,8,1,10,\"f\",1,{start},{end}\n"
        ))
        .concat()
    );
    let folder = Folder::new(&[("kernel_trace.csv", &kernels)]);
    let mut summary = Summary::default();
    let report = Inputs::open(&[folder.0.path()])
        .unwrap()
        .produce(&mut summary)
        .unwrap();
    let kernels = summary.kernels();
    assert_eq!((kernels[0].times.count, kernels[0].times.total), (1, 100));
    assert_eq!(kernels[0].unfinished, 3);
    let counts: Vec<u64> = report.remarks.iter().map(|one| one.count).collect();
    assert!(
        counts.contains(&1) && counts.contains(&2),
        "{:?}",
        report.remarks
    );
}

#[test]
fn counters_stand_beside_their_dispatch_and_make_a_track() {
    let counters = "\"Correlation_Id\",\"Dispatch_Id\",\"Agent_Id\",\"Queue_Id\",\"Process_Id\",\"Thread_Id\",\"Kernel_Name\",\"Counter_Name\",\"Counter_Value\",\"Start_Timestamp\",\"End_Timestamp\"\n\
        1,1,\"Agent 1\",1,7,8,\"f\",\"SQ_WAVES\",16384.000000,100,200\n\
        1,1,\"Agent 1\",1,7,8,\"f\",\"GRBM_COUNT\",5.00000000e-01,100,200\n";
    let folder = Folder::new(&[("7_counter_collection.csv", counters)]);
    let (log, report) = folder.read();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(
        log.of("work "),
        ["queue 1: f 100..200 queue_id=1 dispatch_id=1 SQ_WAVES=16384 GRBM_COUNT=0.5"]
    );
    assert_eq!(
        log.of("counter "),
        // The last block is that of kernels in flight.
        [
            "0 100 [Double(0.0)]",
            "0 200 [Double(16384.0)]",
            "1 100 [Double(0.0)]",
            "1 200 [Double(0.5)]",
            "2 100 [Int(0)]",
            "2 200 [Int(1)]",
        ]
    );
}

#[test]
fn a_table_of_kernels_and_counters_of_them_are_the_same_work() {
    let counters = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Kernel_Name,Counter_Name,Counter_Value\n1,2,Agent 4,1,7,8,f,SQ_WAVES,3\n";
    let kernels = format!("{KERNELS}\"KERNEL_DISPATCH\",\"Agent 4\",1,0,8,2,10,\"f\",1,100,200\n");
    let folder = Folder::new(&[
        ("7_counter_collection.csv", counters),
        ("7_kernel_trace.csv", &kernels),
    ]);
    assert_eq!(
        folder.read().0.of("work "),
        ["stream 0: f 100..200 queue_id=1 dispatch_id=2 kernel_id=10 SQ_WAVES=3"]
    );
}

#[test]
fn memory_is_counted_by_device_and_given_back_at_its_address() {
    let (log, report) = read(&examples().join("memory_allocation_trace.csv"));
    assert!(report.is_sound());
    assert_eq!(log.of("slice ").len(), 4);
    let values: Vec<_> = log
        .of("value ")
        .into_iter()
        .map(|value| value.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(values, ["Int(1024)", "Int(2048)", "Int(1024)", "Int(0)"]);
    assert!(log.of("value ")[0].starts_with("GPU 0 memory in use"));
}

#[test]
fn markers_are_instants_and_ranges_of_their_thread_or_of_the_process() {
    let (log, report) = read(&examples().join("marker_api_trace.csv"));
    assert!(report.is_sound());
    assert_eq!(
        log.of("instant "),
        [
            "before hipLaunchKernel 1520113899312225",
            "after hipLaunchKernel 1520113900128482"
        ]
    );
    assert_eq!(
        log.of("slice "),
        [
            "ranges: hipLaunchKernel range 1520113899682208..1520113901495882",
            "markers: hipLaunchKernel 1520113899684965..1520113901491622",
            "markers: hipMemcpy 1520113900141100..1520113901483408",
        ]
    );
}

#[test]
fn samples_of_both_kinds_become_hotspots() {
    for (file, samples, stochastic, instructions) in [
        ("pc_sampling_host_trap.csv", 79, 0, (10, 36)),
        ("pc_sampling_host_trap_debug.csv", 21, 0, (5, 11)),
        ("pc_sampling_stochastic_debug.csv", 97, 97, (31, 21)),
    ] {
        let mut hotspots = HotspotAnalysis::default();
        let report = Inputs::open(&[examples().join(file)])
            .unwrap()
            .produce(&mut hotspots)
            .unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        assert!(
            !report
                .remarks
                .iter()
                .any(|one| one.reason.contains("unknown name"))
        );
        let hotspots = hotspots.report();
        assert_eq!(hotspots.samples, samples, "{file}");
        let kernel = &hotspots.kernels[0];
        assert_eq!(kernel.tally.stochastic, stochastic);
        let first = &kernel.instructions[0];
        assert!(!first.text.is_empty());
        assert_eq!(
            (kernel.instructions.len(), first.tally.samples),
            instructions
        );
        assert_eq!(kernel.lines.is_empty(), file == "pc_sampling_host_trap.csv");
    }
}

#[test]
fn samples_taken_outside_the_dispatch_with_their_number_have_no_kernel() {
    let kernels = format!(
        "{KERNELS}\"KERNEL_DISPATCH\",\"Agent 4\",1,0,8,1,10,\"f\",1,5000000000,5000002000\n"
    );
    let samples = "Sample_Timestamp,Exec_Mask,Dispatch_Id,Instruction,Instruction_Comment,Correlation_Id\n\
        5000001000,1,1,s_endpgm,,1\n5000002500,1,1,s_endpgm,,1\n9000000000,1,1,s_endpgm,,1\n";
    let folder = Folder::new(&[
        ("kernel_trace.csv", &kernels),
        ("pc_sampling_host_trap.csv", samples),
    ]);
    let mut hotspots = HotspotAnalysis::default();
    let report = Inputs::open(&[folder.0.path()])
        .unwrap()
        .produce(&mut hotspots)
        .unwrap();
    assert_eq!(report.counts.samples, 3);
    let of_another_run = report
        .remarks
        .iter()
        .find(|one| one.reason.contains("outside"));
    assert_eq!(of_another_run.unwrap().count, 1);
    let hotspots = hotspots.report();
    let kernels: Vec<_> = hotspots
        .kernels
        .iter()
        .map(|kernel| (&kernel.name[..], kernel.tally.samples))
        .collect();
    assert_eq!(kernels, [("f", 2), ("unknown kernel", 1)]);
}

#[test]
fn rows_without_a_process_are_of_one_that_is_named_unknown() {
    let kernels = format!(
        "{KERNELS}{}",
        "\"KERNEL_DISPATCH\",\"Agent 4\",1,0,8,1,10,\"f\",1,100,200\n".repeat(3)
    );
    let folder = Folder::new(&[("kernel_trace.csv", &kernels)]);
    let (log, report) = folder.read();
    assert_eq!(log.of("process "), ["1 unknown process"]);
    let remark = report
        .remarks
        .iter()
        .find(|one| one.reason.contains("no column Process_Id"));
    assert_eq!(remark.unwrap().count, 3);
}

#[test]
fn a_damaged_row_is_a_finding_and_the_others_are_converted() {
    let calls = format!(
        "{CALLS}\"HIP_RUNTIME_API\",\"a\",7,8,1,100,200\n\"HIP_RUNTIME_API\",\"b\",7,8,2,x,200\n\"HIP_RUNTIME_API\",\"c\",7,8,1,-5,200\n\"HIP_RUNTIME_API\",\"d\",7,99999999999,1,1,2\n\"cut"
    );
    let folder = Folder::new(&[("hip_api_trace.csv", &calls)]);
    let (log, report) = folder.read();
    assert_eq!(log.of("call "), ["a 100..200 submitted []"]);
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|one| format!("{} / {}", one.found, one.expected))
        .collect();
    assert_eq!(
        findings,
        [
            "\"x\" in line 3, column Start_Timestamp / a whole number",
            "\"-5\" in line 4, column Start_Timestamp / a number from 0 on",
            "\"99999999999\" in line 5, column Thread_Id / a number below 4294967296",
            "a text in line 6 that has no end / a closing quote",
        ]
    );
}

#[test]
fn devices_are_named_by_the_table_of_devices() {
    let agents = "\"Node_Id\",\"Logical_Node_Id\",\"Agent_Type\",\"Cu_Count\",\"Name\",\"Vendor_Name\",\"Product_Name\",\"Model_Name\"\n0,0,\"CPU\",0,\"AMD EPYC\",\"CPU\",\"AMD EPYC\",\"\"\n4,1,\"GPU\",104,\"gfx90a\",\"AMD\",\"AMD Instinct MI210\",\"\"\n";
    let kernels = format!("{KERNELS}\"KERNEL_DISPATCH\",\"Agent 4\",1,0,8,2,10,\"f\",1,100,200\n");
    let folder = Folder::new(&[
        ("7_agent_info.csv", agents),
        ("7_kernel_trace.csv", &kernels),
    ]);
    let mut summary = Summary::default();
    Inputs::open(&[folder.0.path()])
        .unwrap()
        .produce(&mut summary)
        .unwrap();
    let gpus = summary.gpus();
    assert_eq!(gpus[1].name, "AMD Instinct MI210");
    assert_eq!(gpus[1].kernels, Nanos(100));
}

#[test]
fn a_table_of_spans_that_is_not_known_becomes_slices_with_all_their_fields() {
    let spans = "Kind,Operation,Thread_Id,Start_Timestamp,End_Timestamp,Node\nKFD_PAGE_FAULT,fault,0,10,20,3\n";
    let folder = Folder::new(&[("kfd_trace.csv", spans)]);
    let (log, report) = folder.read();
    assert!(report.is_sound());
    assert_eq!(log.of("slice "), ["kfd_trace: fault 10..20"]);
}
