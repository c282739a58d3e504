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
    // 220 arrows begin after the task at their end does. All but two of the tasks have a call all the same.
    let lost = ended.stderr.lines();
    let lost: Vec<_> = lost
        .filter(|line| line.contains("not in the output"))
        .collect();
    assert_eq!(lost.len(), 2, "{}", ended.stderr);
    let is_arrow =
        |line: &&str| line.contains("220 x ") && line.contains("of an arrow that does not");
    assert!(lost.iter().all(is_arrow), "{}", ended.stderr);
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
