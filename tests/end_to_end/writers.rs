//! `gputrail convert` and `gputrail summary` of the files of Ascend, Intel and Triton's Proton. The numbers for real files are those
//! that a few lines of Python find in them.

use std::fs;

use gputrail_harness::machine::Need;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;
use gputrail_harness::{needs, repository};

use crate::command::{TestDir, well};

/// A file of the tests.
fn ascend(name: &str) -> String {
    let file = repository("tests/data/ascend").join(name);
    file.into_os_string().into_string().expect("UTF-8")
}

#[test]
fn a_training_step_on_an_npu_is_whole() {
    needs!(a_training_step_on_an_npu_is_whole: Need::TraceProcessor);
    let dir = TestDir::new();
    let file = ascend("trace_view.json.gz");
    let ended = well(&mut dir.gputrail(["convert", &file, "-o", "out.pftrace"]));
    // 219 arrows begin after the task at their end does, 101 of them in a call that also does. All but two of the tasks have a call
    // all the same.
    let lost: Vec<_> = (ended.stderr.lines())
        .filter(|line| line.contains("not in the output"))
        .collect();
    let words = ": 101 x arrow to device work that begins before the call";
    assert!(
        lost.len() == 1 && lost[0].contains(words),
        "{}",
        ended.stderr
    );
    let words = "894 arrow ends";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    well(&mut dir.gputrail(["check", "out.pftrace"]));
    let mut trace = Trace::open(dir.join("out.pftrace"));
    trace.assert_sound();
    assert_eq!(trace.value::<i64>("select count(*) from gpu_slice"), 276);
    assert_eq!(
        trace.value::<i64>("select sum(dur) from gpu_slice"),
        1_790_457
    );
    let sql = "select count(*) from args \
        where flat_key = 'gpu_correlation.render_stage_submission_event_ids'";
    assert_eq!(trace.value::<i64>(sql), 272);
    let sql = "select count(*) from slice where category = 'cann'";
    assert_eq!(trace.value::<i64>(sql), 382);
    let sql = "select count(*) from slice where category in ('cpu_op', 'enqueue', 'dequeue')";
    assert_eq!(trace.value::<i64>(sql), 1007);
    // Functions of CANN stand on the threads of the process.
    let sql = "select count(distinct upid) from slice join thread_track on track_id = thread_track.id join thread using (utid)";
    assert_eq!(trace.value::<i64>(sql), 1);
    // Arrows between operators and the queue of tasks, forward and backward.
    assert_eq!(trace.value::<i64>("select count(*) from flow"), 148 + 17);
}

#[test]
fn a_table_of_kernels_is_a_timeline_of_its_own() {
    let dir = TestDir::new();
    let file = ascend("kernel_details.csv");
    well(&mut dir.gputrail(["convert", &file, "-o", "out.pftrace"]));
    well(&mut dir.gputrail(["check", "out.pftrace"]));
    let ended = well(&mut dir.gputrail(["summary", "out.pftrace", "--format", "json"]));
    let summary: serde_json::Value = serde_json::from_str(&ended.text()).expect("JSON");
    let kernels = summary["kernels"].as_array().expect("a table");
    let sum = |key: &str| -> i64 { kernels.iter().filter_map(|row| row[key].as_i64()).sum() };
    assert_eq!((sum("count"), sum("total_ns")), (29, 10_061_159));
}

const TREE: &str = r#"[{"children":[
    {"children":[
      {"children":[],"frame":{"name":"matmul","type":"function"},
       "metrics":{"count":10,"device_id":"0","device_type":"CUDA","time (ns)":2000}}],
     "frame":{"name":"forward","type":"function"},"metrics":{}}],
   "frame":{"name":"ROOT","type":"function"},"metrics":{"count":0,"time (ns)":0}},
  {"CUDA":{"0":{"arch":"89"}}}]"#;

#[test]
fn a_tree_of_proton_has_tables_and_stacks_and_no_timeline() {
    let dir = TestDir::new();
    // The content decides.
    for name in ["tree.hatchet", "tree.json"] {
        fs::write(dir.join(name), TREE).expect("room");
        let ended = well(&mut dir.gputrail(["summary", name, "--format", "json"]));
        let summary: serde_json::Value = serde_json::from_str(&ended.text()).expect("JSON");
        assert_eq!(summary["kernels"][0]["name"], "matmul");
        assert_eq!(summary["kernels"][0]["total_ns"], 2000);
        let ended = well(&mut dir.gputrail(["summary", name, "--flame", "folded"]));
        assert_eq!(ended.text(), "forward;matmul 2000\n");
        let ended = run(&mut dir.gputrail(["convert", name, "-o", "out.pftrace"]));
        assert_eq!(ended.code(), 125, "{}", ended.stderr);
        for words in ["Proton", "no timeline", "gputrail summary"] {
            assert!(ended.stderr.contains(words), "{}", ended.stderr);
        }
        assert!(!dir.join("out.pftrace").exists());
    }
    fs::write(dir.join("cut.hatchet"), &TREE[..200]).expect("room");
    let ended = run(&mut dir.gputrail(["summary", "cut.hatchet"]));
    assert_eq!(ended.code(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("at byte "), "{}", ended.stderr);
    let file = ascend("kernel_details.csv");
    let ended = run(&mut dir.gputrail(["summary", "tree.json", &file]));
    assert_eq!(ended.code(), 125, "{}", ended.stderr);
}

/// The number of launches in the files of Intel's formats.
const LAUNCHES: u64 = 25;

/// unitrace's events: kernels and copies on the queues of two tiles, with their calls.
fn unitrace() -> String {
    let mut events = vec![
        r#"{"ph":"M","name":"process_name","pid":900,"ts":0.5,"args":{"name":"HOST<node>"}}"#
            .to_owned(),
    ];
    for tile in 0..2 {
        let pid = 4_294_967_295_u64 - tile;
        events.push(format!(
            r#"{{"ph":"M","name":"process_name","pid":{pid},"ts":1.0,"args":{{"name":"DEVICE<node>[Intel(R) Data Center GPU Max 1550] 0:4d:0:0 #0.{tile}"}}}}"#
        ));
        events.push(format!(
            r#"{{"ph":"M","name":"thread_name","pid":{pid},"tid":{pid},"ts":1.0,"args":{{"name":"Thread 901 L0 Compute Engine<0,0>"}}}}"#
        ));
    }
    for id in 1..=LAUNCHES {
        let (pid, call, start) = (4_294_967_295 - id % 2, id * 100, id * 100 + 40);
        events.push(format!(
            r#"{{"ph":"X","tid":901,"pid":900,"name":"zeCommandListAppendLaunchKernel","cat":"cpu_op","ts":{call}.25,"dur":5.5,"id":0}}"#
        ));
        events.push(format!(
            r#"{{"ph":"s","tid":901,"pid":900,"name":"dep","cat":"Flow_H2D_{id}_900","ts":{call}.25,"id":{id}}}"#
        ));
        events.push(format!(
            r#"{{"ph":"X","tid":{pid},"pid":{pid},"name":"gemm<float>[SIMD32 {{4; 2; 1}} {{256; 1; 1}}]","cat":"gpu_op","ts":{start}.5,"dur":10.125,"args":{{"id":"{id}"}}}}"#
        ));
        events.push(format!(
            r#"{{"ph":"t","tid":{pid},"pid":{pid},"name":"dep","cat":"Flow_H2D_{id}_900","ts":{start}.5,"id":{id}}}"#
        ));
    }
    format!("{{ \"traceEvents\":[\n{}\n]}}", events.join(",\n"))
}

/// The events of PyTorch's profiler on XPU: calls of SYCL's runtime and their kernels in two queues.
fn xpu() -> String {
    let mut events = Vec::new();
    for id in 1..=LAUNCHES {
        let (queue, call, start) = (64 + id % 2, id * 100, id * 100 + 40);
        events.push(format!(
            r#"{{"ph":"X","cat":"xpu_runtime","name":"urEnqueueKernelLaunch","pid":5,"tid":5,"ts":{call}.25,"dur":5.5,"args":{{"correlation":{id}}}}}"#
        ));
        events.push(format!(
            r#"{{"ph":"X","cat":"kernel","name":"gemm<float>","pid":0,"tid":{queue},"ts":{start}.5,"dur":10.125,"args":{{"correlation":{id},"device":0,"context":"0x1","sycl queue":{queue},"l0 queue":"0x2","appended":"{call}.500","appended_rel_to_start":"-40.0","submitted":"{call}.750","submitted_rel_to_start":"-39.750"}}}}"#
        ));
        for (ph, pid, tid, time) in [("s", 5, 5, call), ("f", 0, queue, start)] {
            events.push(format!(
                r#"{{"ph":"{ph}","id":{id},"pid":{pid},"tid":{tid},"ts":{time}.5,"cat":"ac2g","name":"ac2g","bp":"e"}}"#
            ));
        }
    }
    format!(
        "{{\"schemaVersion\":1,\"deviceProperties\":[{{\"id\":0,\"name\":\"Intel(R) Data Center GPU Max 1550\"}}],\"traceEvents\":[\n{}\n]}}",
        events.join(",\n")
    )
}

/// The events of the intercept layer for OpenCL: calls and the commands of two queues of one device.
fn intercept() -> String {
    let mut events = vec![
        r#"{"ph":"M","name":"process_name","pid":825,"tid":0,"args":{"name":"solution"}}"#.to_owned(),
        r#"{"ph":"M","name":"clintercept_start_time","pid":825,"tid":0,"args":{"start_time":7334998904}}"#.to_owned(),
    ];
    for queue in 1..=2 {
        events.push(format!(
            r#"{{"ph":"M","name":"thread_name","pid":825,"tid":{queue}.1,"args":{{"name":"OOQ 0xaaab0630b77{queue}.0.0 Intel(R) Data Center GPU Max 1550 (CL_DEVICE_TYPE_GPU)"}}}}"#
        ));
    }
    for id in 1..=LAUNCHES {
        let (queue, call, start) = (1 + id % 2, id * 100, id * 100 + 40);
        events.push(format!(
            r#"{{"ph":"X","pid":825,"tid":826,"name":"clEnqueueNDRangeKernel( gemm<float> )","ts":{call}.250,"dur":5.500,"args":{{"id":{id}}}}}"#
        ));
        events.push(format!(
            r#"{{"ph":"s","pid":825,"tid":826,"name":"Command","cat":"Commands","ts":{call}.250,"id":{id}}}"#
        ));
        events.push(format!(
            r#"{{"ph":"f","pid":825,"tid":{queue}.1,"name":"Command","cat":"Commands","ts":{start}.500,"id":{id}}}"#
        ));
        events.push(format!(
            r#"{{"ph":"X","pid":825,"tid":{queue}.1,"name":"gemm<float>","ts":{start}.500,"dur":10.125,"args":{{"id":{id}}}}}"#
        ));
    }
    format!("[\n{}\n]", events.join(",\n"))
}

#[test]
fn files_of_intels_writers_become_sound_traces_with_their_kernels_tied() {
    needs!(files_of_intels_writers_become_sound_traces_with_their_kernels_tied: Need::TraceProcessor);
    let dir = TestDir::new();
    for (name, text, api, call, queues) in [
        (
            "app.900.json",
            unitrace(),
            "zeCommandListAppendLaunchKernel",
            5_500,
            2,
        ),
        ("xpu.json", xpu(), "urEnqueueKernelLaunch", 5_500, 2),
        (
            "clintercept_trace.json",
            intercept(),
            "clEnqueueNDRangeKernel",
            5_500,
            2,
        ),
    ] {
        fs::write(dir.join(name), text).expect("room");
        let ended = well(&mut dir.gputrail(["convert", name, "-o", "out.pftrace"]));
        let words = format!("{LAUNCHES} calls, {LAUNCHES} kernels");
        assert!(ended.stderr.contains(&words), "{name}: {}", ended.stderr);
        assert!(
            !ended.stderr.contains("not in the output"),
            "{name}: {}",
            ended.stderr
        );
        well(&mut dir.gputrail(["check", "out.pftrace"]));
        let mut trace = Trace::open(dir.join("out.pftrace"));
        trace.assert_sound();
        let count = LAUNCHES as i64;
        let sql = "select count(*) from gpu_slice where name = 'gemm<float>'";
        assert_eq!(trace.value::<i64>(sql), count, "{name}");
        let sql = "select sum(dur) from gpu_slice";
        assert_eq!(trace.value::<i64>(sql), count * 10_125, "{name}");
        let sql = "select count(distinct track_id) from gpu_slice";
        assert_eq!(trace.value::<i64>(sql), queues, "{name}");
        let sql = format!("select sum(dur) from slice where name = '{api}'");
        assert_eq!(trace.value::<i64>(&sql), count * call, "{name}");
        let sql = "select count(*) from args \
            where flat_key = 'gpu_correlation.render_stage_submission_event_ids'";
        assert_eq!(trace.value::<i64>(sql), count, "{name}");
        let summary = well(&mut dir.gputrail(["summary", name, "--format", "json"])).text();
        let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
        let kernel = &summary["kernels"][0];
        assert_eq!(kernel["name"], "gemm<float>", "{name}");
        assert_eq!(kernel["total_ns"], LAUNCHES * 10_125, "{name}");
    }
}
