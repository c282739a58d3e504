//! rocprofv3's JSON, made after the fields that its library writes.

use std::fs;
use std::io;

use tempfile::TempDir;

use crate::import::log::StreamLog;
use crate::import::{InputFormat, Inputs, Report};
use gputrail_analysis::hotspots::HotspotAnalysis;
use gputrail_trace::model::{Consumer, Producer, Samples};

/// The lists that records refer to.
const LISTS: &str = r#"
"metadata": {"node": {"hostname": "node7", "system_name": "Linux", "release": "6.0", "version": "1", "hardware_name": "x86_64"},
    "pid": 42, "init_time": 50, "fini_time": 900, "command": ["/usr/bin/saxpy", "-n", "5"]},
"agents": [{"size": 1, "id": {"handle": 9000}, "type": 1, "name": "EPYC", "vendor_name": "CPU", "product_name": "EPYC", "node_id": 0, "cu_count": 0},
    {"size": 1, "id": {"handle": 9004}, "type": 2, "name": "gfx90a", "vendor_name": "AMD", "product_name": "MI210", "node_id": 4, "cu_count": 104}],
"counters": [{"agent_id": {"handle": 9004}, "id": {"handle": 77}, "name": "SQ_WAVES"}],
"strings": {
    "callback_records": [],
    "buffer_records": [{"kind": "NONE", "operations": []}, {"kind": "HIP_RUNTIME_API", "operations": ["none", "hipLaunchKernel", "hipMalloc"]},
        {"kind": "MARKER_CORE_API", "operations": ["roctxMarkA", "roctxRangePushA"]}, {"kind": "KERNEL_DISPATCH", "operations": ["none", "complete"]},
        {"kind": "MEMORY_COPY", "operations": ["NONE", "MEMORY_COPY_HOST_TO_DEVICE"]}, {"kind": "MEMORY_ALLOCATION", "operations": ["NONE", "MEMORY_ALLOCATION_ALLOCATE"]},
        {"kind": "SCRATCH_MEMORY", "operations": ["NONE", "SCRATCH_MEMORY_ALLOC"]}],
    "marker_api": [{"key": 5, "value": "step \"1\""}],
    "pc_sample_instructions": ["s_endpgm", "v_add_f32 v0, v1, v2"],
    "pc_sample_comments": ["", "/src/saxpy.cpp:12"]},
"code_objects": [{"size": 1, "code_object_id": 3, "uri": "file:///saxpy.so"}],
"kernel_symbols": [{"size": 1, "kernel_id": 10, "code_object_id": 3, "kernel_name": "_Z5saxpyf.kd", "sgpr_count": 16, "arch_vgpr_count": 8,
    "accum_vgpr_count": 0, "formatted_kernel_name": "void saxpy<float>(float)"}]"#;

const DISPATCH: &str = r#"{"size": 1, "agent_id": {"handle": 9004}, "queue_id": {"handle": 2}, "kernel_id": 10, "dispatch_id": 6,
    "private_segment_size": 0, "group_segment_size": 64, "workgroup_size": {"x": 64, "y": 1, "z": 1}, "grid_size": {"x": 1024, "y": 1, "z": 1}}"#;

fn records() -> String {
    format!(
        r#"
"callback_records": {{"counter_collection": [{{"thread_id": 43, "dispatch_data": {{"size": 1, "correlation_id": {{"internal": 1, "external": 0}},
    "start_timestamp": 300, "end_timestamp": 400, "dispatch_info": {DISPATCH}}}, "records": [{{"counter_id": {{"handle": 77}}, "value": 100.0}},
    {{"counter_id": {{"handle": 77}}, "value": 28.5}}]}}]}},
"buffer_records": {{
"kernel_dispatch": [{{"size": 1, "kind": 3, "operation": 1, "thread_id": 43, "correlation_id": {{"internal": 1, "external": 7}},
    "start_timestamp": 300, "end_timestamp": 400, "dispatch_info": {DISPATCH}, "stream_id": {{"handle": 1}}}}],
"hip_api": [{{"size": 1, "kind": 1, "operation": 1, "correlation_id": {{"internal": 1, "external": 7, "ancestor": 0}}, "start_timestamp": 100,
    "end_timestamp": 200, "thread_id": 43, "args": [{{"type": "dim3", "name": "numBlocks", "value": "{{16}}"}}], "retval": {{"hipError_t_retval": 0}}}}],
"marker_api": [{{"size": 1, "kind": 2, "operation": 1, "correlation_id": {{"internal": 5, "external": 0}}, "start_timestamp": 90, "end_timestamp": 500, "thread_id": 43}}],
"memory_copy": [{{"size": 1, "kind": 4, "operation": 1, "thread_id": 43, "correlation_id": {{"internal": 8, "external": 0}}, "start_timestamp": 410,
    "end_timestamp": 420, "dst_agent_id": {{"handle": 9004}}, "src_agent_id": {{"handle": 9000}}, "bytes": 4096, "stream_id": {{"handle": 1}}}}],
"memory_allocation": [{{"size": 1, "kind": 5, "operation": 1, "thread_id": 43, "correlation_id": {{"internal": 9, "external": 0}}, "start_timestamp": 60,
    "end_timestamp": 70, "agent_id": {{"handle": 9004}}, "address": "0x0000000000001000", "allocation_size": 1000}}],
"scratch_memory": [{{"size": 1, "kind": 6, "operation": 1, "agent_id": {{"handle": 9004}}, "queue_id": {{"handle": 2}}, "thread_id": 43,
    "start_timestamp": 80, "end_timestamp": 85, "correlation_id": {{"internal": 0, "external": 0}}, "flags": 0}}],
"pc_sample_host_trap": [{{"record": {{"hw_id": {{"chiplet": 1, "workgroup_id ": 2}}, "pc": {{"code_object_id": 3, "code_object_offset": 512}},
    "exec_mask": 18446744073709551615, "timestamp": 350, "dispatch_id": 6, "corr_id": {{"internal": 1, "external": 7}},
    "wrkgrp_id": {{"x": 3, "y": 0, "z": 0}}, "wave_in_grp": 1}}, "inst_index": 1}}],
"hip_graph": [{{"size": 1, "kind": 0}}]}}"#
    )
}

fn read(json: &str) -> (StreamLog, Report, HotspotAnalysis<'static>) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("42_results.json");
    fs::write(&path, json).unwrap();
    let inputs = Inputs::open(&[&path]).unwrap();
    assert_eq!(inputs.recordings()[0].format(), InputFormat::RocprofJson);
    let mut consumers = (StreamLog::default(), HotspotAnalysis::default());
    let report = inputs.produce(&mut consumers).unwrap();
    (consumers.0, report, consumers.1)
}

fn whole(lists: &str, records: &str) -> String {
    format!("{{\"rocprofiler-sdk-tool\": [\n{{{lists},\n{records}}}\n]}}\n")
}

/// The events of the records above.
fn assert_records(log: &StreamLog) {
    assert_eq!(log.of("process "), ["42 saxpy"]);
    assert_eq!(log.of("call "), ["hipLaunchKernel 100..200 submitted [1]"]);
    let mut work = log.of("work ");
    work.sort_unstable();
    assert_eq!(
        work,
        [
            "stream 1: copy host to device 410..420 source=Agent 0 destination=Agent 4",
            "stream 1: saxpy<float> 300..400 16 scalar registers queue_id=2 dispatch_id=6 external_id=7 kernel_id=10 SQ_WAVES=128.5",
        ]
    );
    assert_eq!(log.of("slice markers: "), ["step \"1\" 90..500"]);
    assert_eq!(
        log.of("slice memory allocation: "),
        ["MEMORY_ALLOCATION_ALLOCATE 60..70"]
    );
    assert_eq!(
        log.of("slice Agent 4 scratch memory: "),
        ["SCRATCH_MEMORY_ALLOC 80..85"]
    );
    assert_eq!(log.of("value GPU 0 memory in use "), ["70 Int(1000)"]);
}

#[test]
fn records_of_all_kinds_become_what_their_csv_becomes() {
    let (log, report, hotspots) = read(&whole(LISTS, &records()));
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_records(&log);
    let hotspots = hotspots.report();
    let kernel = &hotspots.kernels[0];
    assert_eq!((hotspots.samples, &kernel.name[..]), (1, "saxpy<float>"));
    assert_eq!(kernel.instructions[0].text, "v_add_f32 v0, v1, v2");
    assert_eq!(kernel.lines[0].line, 12);
    let lost: Vec<_> = report
        .unrepresented
        .iter()
        .map(|one| &*one.reason)
        .collect();
    assert_eq!(lost, ["records of hip_graph, which have no start and end"]);
}

#[test]
fn lists_may_stand_behind_the_records_that_refer_to_them() {
    let (log, report, _) = read(&whole(&records(), LISTS));
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_records(&log);
}

#[test]
fn damage_costs_one_record_and_a_file_that_is_cut_is_read_as_far_as_it_goes() {
    let launch = r#"{"kind": 1, "operation": 1, "correlation_id": {"internal": 0}, "start_timestamp": 1, "end_timestamp": 2, "thread_id": 3}"#;
    for broken in [
        launch.replace("1,", "1x,"),
        launch.replace("\"end", "end"),
        launch.replace("kind\"", "kind"),
        launch.replace("1,", "\u{1},"),
    ] {
        let records =
            format!("\"buffer_records\": {{\"hip_api\": [{launch},\n{broken},\n{launch}]}}");
        let (log, report, _) = read(&whole(LISTS, &records));
        assert_eq!(log.of("call ").len(), 2, "{broken}: {:?}", report.findings);
        assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    }
    let records = format!("\"buffer_records\": {{\"hip_api\": [{launch},\n{launch}");
    let whole = format!("{{\"rocprofiler-sdk-tool\": [{{{LISTS},\n{records}");
    let (log, report, _) = read(&whole[..whole.len() - 20]);
    assert_eq!(log.of("call ").len(), 1);
    assert!(!report.is_sound());
}

#[test]
fn a_value_of_another_type_is_a_finding_with_its_place() {
    let record = r#"{"kind": 1, "operation": 1, "start_timestamp": "soon", "end_timestamp": 2}"#;
    let records = format!("\"buffer_records\": {{\"hip_api\": [{record}]}}");
    let (_, report, _) = read(&whole(LISTS, &records));
    assert_eq!(
        report.findings[0].found,
        "\"soon\" in an element of buffer_records hip_api, column Start_Timestamp"
    );
}

#[test]
fn code_objects_of_two_processes_with_the_same_number_stay_apart() {
    let of = |pid: u32, path: &str| {
        format!(
            r#"{{"metadata": {{"pid": {pid}}},
            "code_objects": [{{"size": 1, "code_object_id": 3, "uri": "file:///{path}"}}],
            "strings": {{"pc_sample_instructions": ["s_nop"], "pc_sample_comments": [""]}},
            "buffer_records": {{"pc_sample_host_trap": [{{"record": {{"pc": {{"code_object_id": 3, "code_object_offset": 16}},
                "exec_mask": 1, "timestamp": 5, "dispatch_id": 6, "corr_id": {{"internal": 1, "external": 7}},
                "wrkgrp_id": {{"x": 3, "y": 0, "z": 0}}, "wave_in_grp": 1}}, "inst_index": 0}}]}}}}"#
        )
    };
    let text = format!(
        "{{\"rocprofiler-sdk-tool\": [{}, {}]}}",
        of(7, "first.so"),
        of(8, "second.so")
    );
    let (_, report, _) = read(&text);
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.counts.samples, 2);
    let mut objects = CodeObjects::default();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("two_results.json");
    fs::write(&path, &text).unwrap();
    Inputs::open(&[&path])
        .unwrap()
        .produce(&mut objects)
        .unwrap();
    objects.0.sort_unstable();
    assert_eq!(objects.0, ["file:///first.so", "file:///second.so"]);
}

/// The paths of code objects.
#[derive(Default)]
struct CodeObjects(Vec<String>);

impl Consumer for CodeObjects {
    gputrail_trace::leave_out!(
        clocks attributes agents process track queue counters call slice end instant work value counter_values stack
        stack_samples loss note
    );

    fn samples(&mut self, samples: &Samples) -> io::Result<()> {
        let paths = samples.code_objects.iter().map(|(_, path)| path.clone());
        self.0.extend(paths);
        Ok(())
    }
}

#[test]
fn a_process_without_metadata_is_unknown_and_not_the_number_of_its_place() {
    let launch =
        r#"{"kind": 1, "operation": 1, "start_timestamp": 1, "end_timestamp": 2, "thread_id": 3}"#;
    let one = format!("{{\"buffer_records\": {{\"hip_api\": [{launch}]}}}}");
    let (log, report, _) = read(&format!(
        "{{\"rocprofiler-sdk-tool\": [{one}, {one}, {one}, {one}, {one}, {one}]}}"
    ));
    let names: Vec<_> = log.of("process ");
    assert_eq!(names.len(), 6);
    assert!(
        names.iter().all(|name| name.ends_with("unknown process")),
        "{names:?}"
    );
    let reasons: Vec<_> = report
        .remarks
        .iter()
        .map(|remark| &*remark.reason)
        .collect();
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("rows without a process")),
        "{reasons:?}"
    );
}

#[test]
fn what_follows_the_results_is_damage() {
    let one = "{\"rocprofiler-sdk-tool\": []}";
    let (_, report, _) = read(&format!("{one}\n"));
    assert!(report.is_sound(), "{:?}", report.findings);
    for behind in [one, "}", "x"] {
        let (_, report, _) = read(&format!("{one}\n{behind}"));
        let [finding] = &report.findings[..] else {
            panic!("{:?}", report.findings);
        };
        let place = one.len() as u64 + 1;
        assert_eq!(finding.offset, Some(place), "{finding}");
        assert!(finding.found.contains("the rest of the file"), "{finding}");
    }
}
