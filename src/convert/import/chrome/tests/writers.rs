//! Events of other writers: Huawei's CANN, Intel's unitrace, PyTorch on XPU, the intercept layer for OpenCL, Triton's Proton. The
//! events were made after the sources of the writers.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use super::Lines;
use crate::import::{Inputs, Report};
use gputrail_trace::model::{Agent, AgentIndex, Call, Consumer, Producer, Queue, QueueIndex, Work};

/// The parts of a stream that [`Lines`] leaves out.
#[derive(Default)]
struct Further(Vec<String>);

impl Consumer for Further {
    gputrail_trace::leave_out!(
        clocks attributes process track counters slice end instant value counter_values samples stack stack_samples loss note
    );

    fn agents(&mut self, _: AgentIndex, agents: &[Agent]) -> io::Result<()> {
        let lines = agents.iter();
        let lines = lines.map(|agent| format!("agent {} {}", agent.title, agent.name));
        self.0.extend(lines);
        Ok(())
    }

    fn queue(&mut self, _: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        self.0.push(format!("queue {}", queue.name));
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let waited: Vec<u64> = call.waited.iter().map(|id| id.0).collect();
        self.0
            .push(format!("waits {} {waited:?}", call.function.name));
        Ok(())
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        let times = [work.queued, work.submitted].map(|time| time.map(|time| time.0));
        self.0
            .push(format!("queueing {} {times:?}", work.stage.name));
        Ok(())
    }
}

/// The stream of a file or folder as lines, and the report.
fn read_path(path: &Path) -> (Vec<String>, Report) {
    let (mut lines, mut further) = (Lines::default(), Further::default());
    let inputs = Inputs::open(&[path]).unwrap();
    let report = inputs.produce(&mut (&mut lines, &mut further)).unwrap();
    lines.lines.append(&mut further.0);
    (lines.lines, report)
}

fn read(bytes: &[u8]) -> (Vec<String>, Report) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    read_path(file.path())
}

const ASCEND: &str = r#"[
{"ph":"X","name":"aten::mm","pid":4242,"tid":4242,"ts":"10.000","dur":30,"cat":"cpu_op","args":{"Sequence number":-1}},
{"ph":"X","name":"Enqueue","pid":4242,"tid":4242,"ts":"11.000","dur":1,"cat":"enqueue","args":{"correlation_id":1}},
{"ph":"s","bp":"e","name":"enqueue_to_dequeue","id":1,"pid":4242,"tid":4242,"ts":"11.000","cat":"async_task_queue"},
{"ph":"X","name":"Dequeue@aclnnMm","pid":4242,"tid":4243,"ts":"13.000","dur":9,"cat":"dequeue","args":{"correlation_id":1}},
{"ph":"f","bp":"e","name":"enqueue_to_dequeue","id":1,"pid":4242,"tid":4243,"ts":"13.000","cat":"async_task_queue"},
{"name":"Node@launch","pid":4343903,"tid":4243,"ts":"14.000","dur":2,"args":{"Thread Id":4243,"Mode":"launch","level":"node","id":"aclnnAdd","item_id":"Add","connection_id":77},"ph":"X"},
{"name":"HostToDevice330712481792","ph":"s","cat":"HostToDevice","id":"330712481792","pid":4343903,"tid":4243,"ts":"14.000"},
{"name":"HostToDevice335007449088","ph":"s","cat":"HostToDevice","id":"335007449088","pid":4343903,"tid":4243,"ts":"18.000"},
{"name":"aclnnAdd_Add","pid":4344160,"tid":3,"ts":"20.000","dur":1.5,"args":{"Model Id":4294967295,"Task Type":"AI_VECTOR_CORE","Physic Stream Id":45,"Task Id":9,"Batch Id":0,"Subtask Id":4294967295,"connection_id":77},"ph":"X"},
{"name":"HostToDevice330712481792","ph":"f","cat":"HostToDevice","id":"330712481792","pid":4344160,"tid":3,"ts":"20.000","bp":"e"},
{"name":"aclnnMm_MatMul","pid":4344160,"tid":3,"ts":"22.000","dur":5,"args":{"Model Id":4294967295,"Task Type":"AI_CORE","Physic Stream Id":3,"Task Id":10,"Batch Id":0,"Subtask Id":4294967295,"connection_id":78},"ph":"X"},
{"name":"HostToDevice335007449088","ph":"f","cat":"HostToDevice","id":"335007449088","pid":4344160,"tid":3,"ts":"22.000","bp":"e"},
{"ph":"s","bp":"e","name":"torch_to_npu","id":22000,"pid":4242,"tid":4242,"ts":"10.000","cat":"async_npu"},
{"ph":"f","bp":"e","name":"torch_to_npu","id":22000,"pid":4344160,"tid":3,"ts":"22.000","cat":"async_npu"},
{"name":"MEMCPY_ASYNC","pid":4344160,"tid":4,"ts":"30.000","dur":2,"args":{"Model Id":4294967295,"Task Type":"SDMA_SQE","Physic Stream Id":4,"Task Id":11,"Batch Id":0,"Subtask Id":4294967295,"connection_id":4294967295,"size(B)":64,"bandwidth(GB/s)":0.03,"operation":"host to device"},"ph":"X"},
{"name":"EVENT_WAIT","pid":4344160,"tid":4,"ts":"33.000","dur":1,"args":{"Model Id":4294967295,"Task Type":"EVENT_WAIT_SQE","Physic Stream Id":4,"Task Id":12,"Batch Id":0,"Subtask Id":4294967295,"connection_id":4294967295},"ph":"X"},
{"name":"hcom_allReduce__445_0","pid":4344320,"tid":0,"ts":"40.000","dur":6,"args":{"rank_size":8,"connection_id":80,"model id":4294967295,"data_type":"FP16","alg_type":"RING","count":9,"relay":"no","retry":"no"},"ph":"X"},
{"name":"Notify_Wait","pid":4344320,"tid":1,"ts":"40.000","dur":2,"args":{"notify_id":"5","duration estimated(us)":0,"stream id":4,"task id":13,"context id":0,"task type":"Notify_Wait","src rank":0,"dst rank":1,"transport type":"LOCAL","size(Byte)":0,"data type":"INVALID","link type":"ON_CHIP","bandwidth(GB/s)":0,"model id":0},"ph":"X"},
{"name":"Computing","pid":4344512,"tid":0,"ts":"20.000","dur":1.5,"ph":"X"},
{"name":"AI Core Freq","pid":4344640,"tid":0,"ts":"20.000","ph":"C","args":{"MHz":1650}},
{"name":"process_name","pid":4344160,"tid":0,"args":{"name":"Ascend Hardware"},"ph":"M"},
{"name":"process_labels","pid":4344160,"tid":0,"args":{"labels":"NPU 0"},"ph":"M"},
{"name":"thread_name","pid":4344160,"tid":3,"args":{"name":"Stream 3"},"ph":"M"},
{"name":"process_name","pid":4343903,"tid":0,"args":{"name":"CANN"},"ph":"M"},
{"name":"process_labels","pid":4343903,"tid":0,"args":{"labels":"CPU"},"ph":"M"},
{"name":"process_name","pid":4344320,"tid":0,"args":{"name":"Communication"},"ph":"M"},
{"name":"process_labels","pid":4344320,"tid":0,"args":{"labels":"NPU 0"},"ph":"M"},
{"name":"thread_name","pid":4344320,"tid":0,"args":{"name":"Group 1 Communication"},"ph":"M"},
{"name":"process_name","pid":4344512,"tid":0,"args":{"name":"Overlap Analysis"},"ph":"M"},
{"name":"process_labels","pid":4344512,"tid":0,"args":{"labels":"NPU 0"},"ph":"M"},
{"name":"process_name","pid":4344640,"tid":0,"args":{"name":"AI Core Freq"},"ph":"M"},
{"name":"process_labels","pid":4344640,"tid":0,"args":{"labels":"NPU 0"},"ph":"M"},
{"ph":"M","name":"process_name","pid":4242,"tid":0,"args":{"name":"Python"}}
]"#;

const DETAILS: &str = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,Input Shapes\n\
1,aclnnMm_MatMul,MatMul,AI_CORE,\"22.000\t\",5,0.5,24,\"\"\"8,16;16,8\"\"\"\n\
1,hcom_allReduce__445_0,hcom_allReduce_,HCCL,\"40.000\t\",6,0,0,N/A\n\
1,aclnnMm_MatMul,MatMul,AI_CORE,\"99.000\t\",5,0.5,24,N/A\n";

/// The stream of files in one folder, and the report.
fn read_folder(files: &[(&str, &str)]) -> (Vec<String>, Report) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    read_path(folder.path())
}

/// Checks that a line has all of `parts`.
fn has(lines: &[String], parts: &[&str]) {
    let all = |line: &&String| parts.iter().all(|part| line.contains(part));
    assert!(lines.iter().any(|line| all(&line)), "{parts:?} {lines:#?}");
}

/// Sound, with nothing left out.
fn is_whole(report: &Report) {
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.unrepresented, []);
}

#[test]
fn tasks_of_cann_are_work_and_functions_are_calls() {
    let (lines, report) = read(ASCEND.as_bytes());
    is_whole(&report);
    let counts = report.counts;
    assert_eq!((counts.kernels, counts.copies), (2, 1), "{lines:#?}");
    has(&lines, &["call Node@launch 14000..16000 [1]"]);
    // The function that launched it is not in the file: the slice around the begin of its arrow is the call.
    has(&lines, &["call Dequeue@aclnnMm 13000..22000 [2]"]);
    has(
        &lines,
        &["work 2 aclnnMm_MatMul", "enqueued 13000", "Task Id=10"],
    );
    has(&lines, &["MEMCPY_ASYNC", "operation=host to device"]);
    has(&lines, &["work 4 EVENT_WAIT"]);
    has(
        &lines,
        &["NPU 0 · Group 1 Communication · communication] hcom_allReduce__445_0"],
    );
    has(&lines, &["communication] Notify_Wait"]);
    has(&lines, &["NPU 0 · stream 0 · Overlap Analysis] Computing"]);
    has(&lines, &["[NPU 0 AI Core Freq] Int(1650) from 20000"]);
    let processes = lines.iter().filter(|line| line.starts_with("process"));
    assert_eq!(processes.collect::<Vec<_>>(), ["process 4242 Python"]);
}

#[test]
fn a_table_beside_the_events_says_more_of_them() {
    let files = [("trace_view.json", ASCEND), ("kernel_details.csv", DETAILS)];
    let (lines, report) = read_folder(&files);
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.counts.kernels, 2);
    let parts = [
        "work 2 aclnnMm_MatMul",
        "Input Shapes=\"8,16;16,8\"",
        "Block Dim=24",
    ];
    has(&lines, &parts);
    has(&lines, &["hcom_allReduce__445_0", "Step Id=1"]);
    let [lost] = &report.unrepresented[..] else {
        panic!("{:?}", report.unrepresented);
    };
    assert!(lost.file.ends_with("kernel_details.csv") && lost.count == 1);
}

#[test]
fn a_table_of_kernels_alone_is_a_timeline() {
    let (lines, report) = read(DETAILS.as_bytes());
    is_whole(&report);
    assert_eq!((report.counts.kernels, report.counts.slices), (2, 1));
    has(
        &lines,
        &["aclnnMm_MatMul Some((22000, 27000))", "Wait Time(us)=0.5"],
    );
    has(&lines, &["NPU 0", "communication] hcom_allReduce__445_0"]);
    let damaged = DETAILS.replace("22.000", "soon").replace(",24,N/A\n", "\n");
    let (_, report) = read(damaged.as_bytes());
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert_eq!(report.unrepresented.len(), 1, "{:?}", report.unrepresented);
    assert_eq!(report.counts.kernels, 0);
}

const UNITRACE: &str = r#"{ "traceEvents":[
{"ph": "M", "name": "process_name", "pid": 900, "ts": 0.5, "args": {"name": "HOST<node>"}},
{"ph": "M", "name": "process_name", "pid": 4294967295, "ts": 1.0, "args": {"name": "DEVICE<node>[Intel(R) Data Center GPU Max 1550] 0:4d:0:0 #0.1"}},
{"ph": "M", "name": "thread_name", "pid": 4294967295, "tid": 4294967295, "ts": 1.0, "args": {"name": "Thread 901 L0 Compute Engine<0,0>"}},
{"ph": "X", "tid": 901, "pid": 900, "name": "zeCommandListAppendLaunchKernel", "cat": "cpu_op", "ts": 10.0, "dur": 2.0, "id": 0},
{"ph": "s", "tid": 901, "pid": 900, "name": "dep", "cat": "Flow_H2D_7_900", "ts": 10.0, "id": 7},
{"ph": "X", "tid": 901, "pid": 900, "name": "zeEventHostSynchronize", "cat": "cpu_op", "ts": 13.0, "dur": 9.0, "id": 0},
{"ph": "t", "tid": 901, "pid": 900, "name": "dep", "cat": "Flow_D2H_7_900", "ts": 13.0, "id": 7},
{"ph": "X", "tid": 901, "pid": 900, "name": "MPI_Send", "cat": "cpu_op", "ts": 30.0, "dur": 1.0, "args": {"ssize": 4}},
{"ph": "X", "tid": 4294967295, "pid": 4294967295, "name": "gemm<float>[SIMD32 {4; 2; 1} {256; 1; 1}]", "cat": "gpu_op", "ts": 15.0, "dur": 5.0, "args": {"id": "7"}},
{"ph": "t", "tid": 4294967295, "pid": 4294967295, "name": "dep", "cat": "Flow_H2D_7_900", "ts": 15.0, "id": 7},
{"ph": "s", "tid": 4294967295, "pid": 4294967295, "name": "dep", "cat": "Flow_D2H_7_900", "ts": 15.0, "id": 7},
{"ph": "X", "tid": 4294967295, "pid": 4294967295, "name": "Tile #1: zeCommandListAppendMemoryCopy(M2D)[64]", "cat": "gpu_op", "ts": 21.0, "dur": 1.0, "args": {"id": "8"}}
]}"#;

#[test]
fn commands_of_unitrace_are_work_of_their_queue() {
    let (lines, report) = read(UNITRACE.as_bytes());
    is_whole(&report);
    let counts = report.counts;
    assert_eq!(
        (counts.calls, counts.kernels, counts.copies, counts.slices),
        (2, 1, 1, 1),
        "{lines:#?}"
    );
    has(
        &lines,
        &["call zeCommandListAppendLaunchKernel 10000..12000 [1]"],
    );
    has(&lines, &["waits zeEventHostSynchronize [1]"]);
    has(
        &lines,
        &["work 1 gemm<float> Some((15000, 20000)) enqueued 10000 SIMD=32"],
    );
    has(
        &lines,
        &["work 2 zeCommandListAppendMemoryCopy(M2D)", "tile=1"],
    );
    has(&lines, &["MPI_Send"]);
    has(&lines, &["queue Thread 901 L0 Compute Engine<0,0>"]);
    has(&lines, &["agent GPU 0.1 Intel(R) Data Center GPU Max 1550"]);
}

#[test]
fn events_of_other_programs_with_these_categories_stay_slices() {
    let events = r#"[
        {"ph":"X","pid":1,"tid":1,"cat":"gpu_op","name":"a","ts":1,"dur":1,"args":{"id":"1"}},
        {"ph":"X","pid":1,"tid":1,"cat":"cpu_op","name":"zeInit","ts":3,"dur":1},
        {"ph":"X","pid":1,"tid":1,"cat":"kernel","name":"k","ts":5,"dur":1,"args":{"call_stack":[]}},
        {"ph":"X","pid":1,"tid":1.1,"name":"clFinish","ts":7,"dur":1,"args":{"id":1}},
        {"ph":"X","pid":1,"tid":1,"name":"t","ts":9,"dur":1,"args":{"Task Id":1,"Task Type":"x"}}]"#;
    let (_, report) = read(events.as_bytes());
    is_whole(&report);
    let counts = report.counts;
    assert_eq!((counts.slices, counts.calls, counts.kernels), (5, 0, 0));
}

#[test]
fn work_of_xpus_has_the_times_of_its_queueing() {
    let events = r#"[
        {"ph":"X","cat":"xpu_runtime","name":"urEnqueueKernelLaunch","pid":5,"tid":5,"ts":10,"dur":2,"args":{"correlation":3}},
        {"ph":"X","cat":"xpu_sync","name":"zeEventHostSynchronize","pid":-1,"tid":5,"ts":12,"dur":2,"args":{"correlation":4}},
        {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":64,"ts":15,"dur":2,"args":{"correlation":3,"device":0,"context":"0x1","sycl queue":64,"l0 queue":"0x2","appended":"11.500","appended_rel_to_start":"-3.500","submitted":"12.250","submitted_rel_to_start":"-2.750"}}]"#;
    let (lines, report) = read(events.as_bytes());
    is_whole(&report);
    has(&lines, &["queueing gemm [Some(11500), Some(12250)]"]);
    has(&lines, &["queue stream 64"]);
}

const INTERCEPT: &str = r#"[
{"ph":"M","name":"process_name","pid":825,"tid":0,"args":{"name":"solution"}},
{"ph":"M","name":"clintercept_start_time","pid":825,"tid":0,"args":{"start_time":7334998904}},
{"ph":"M","name":"thread_name","pid":825,"tid":1.1,"args":{"name":"IOQ 0xaaab0630b770.0.0 cpu-cortex-a53-0x000 (CL_DEVICE_TYPE_CPU)"}},
{"ph":"M","name":"thread_sort_index","pid":825,"tid":1.1,"args":{"sort_index":"1"}},
{"ph":"X","pid":825,"tid":826,"name":"clEnqueueNDRangeKernel( gemm )","ts":10.000,"dur":2.000,"args":{"id":2}},
{"ph":"s","pid":825,"tid":826,"name":"Command","cat":"Commands","ts":10.000,"id":2},
{"ph":"X","pid":825,"tid":826,"name":"clFinish","ts":13.000,"dur":9.000},
{"ph":"f","pid":825,"tid":1.1,"name":"Command","cat":"Commands","ts":15.000,"id":2},
{"ph":"X","pid":825,"tid":1.1,"name":"gemm","ts":15.000,"dur":5.000,"args":{"id":2}},
{"ph":"X","pid":825,"tid":0.1,"name":"clEnqueueReadBuffer (Queued)","ts":20.000,"dur":1.000,"cname":"thread_state_runnable","args":{"id":3}},
{"ph":"X","pid":825,"tid":0.1,"name":"clEnqueueReadBuffer (Submitted)","ts":21.000,"dur":1.000,"cname":"cq_build_running","args":{"id":3}},
{"ph":"X","pid":825,"tid":0.1,"name":"clEnqueueReadBuffer (Execution)","ts":22.000,"dur":3.000,"cname":"thread_state_iowait","args":{"id":3}},
{"ph":"X","pid":825,"tid":"saxpy","name":"saxpy","ts":30.000,"dur":3.000,"args":{"id":4}},
{"ph":"M","name":"clintercept_eof","pid":825,"tid":0}
]"#;

#[test]
fn commands_of_the_intercept_layer_are_work_of_their_queue() {
    let (lines, report) = read(INTERCEPT.as_bytes());
    is_whole(&report);
    let counts = report.counts;
    assert_eq!(
        (counts.calls, counts.kernels, counts.copies, counts.slices),
        (2, 2, 1, 0),
        "{lines:#?}"
    );
    has(&lines, &["call clEnqueueNDRangeKernel 10000..12000 [1]"]);
    has(&lines, &["work 1 gemm Some((15000, 20000)) enqueued 10000"]);
    let parts = [
        "work 2 clEnqueueReadBuffer Some((22000, 25000))",
        "cname=thread_state_iowait",
    ];
    has(&lines, &parts);
    has(
        &lines,
        &["queueing clEnqueueReadBuffer [Some(20000), Some(21000)]"],
    );
    has(
        &lines,
        &["queue IOQ 0xaaab0630b770.0.0 cpu-cortex-a53-0x000"],
    );
    has(&lines, &["queue commands"]);
    has(&lines, &["agent CPU 0 cpu-cortex-a53-0x000"]);
    let without = INTERCEPT.replace(" (Execution)", " (Submitted)");
    let (_, report) = read(without.as_bytes());
    assert_eq!(report.unrepresented.len(), 1);
    assert!(report.unrepresented[0].reason.contains("execution"));
}

#[test]
fn kernels_of_newer_versions_of_proton_are_work() {
    let events = r#"{"displayTimeUnit":"us","traceEvents":[
        {"ph":"M","pid":0,"tid":0,"name":"process_name","args":{"name":"Trace"}},
        {"ph":"M","pid":0,"tid":1,"name":"thread_name","args":{"name":"CPU Thread 77"}},
        {"ph":"M","pid":0,"tid":2000,"name":"thread_name","args":{"name":"GPU Stream 7"}},
        {"ph":"X","pid":0,"tid":1,"cat":"scope","name":"step","ts":1.0,"dur":9.0,"args":{"call_stack":["ROOT","step"]}},
        {"ph":"s","pid":0,"tid":1,"cat":"flow","name":"launch->kernel","ts":1.0,"id":5,"bp":"e"},
        {"ph":"f","pid":0,"tid":2000,"cat":"flow","name":"launch->kernel","ts":4.0,"id":5,"bp":"e"},
        {"ph":"X","pid":0,"tid":2000,"cat":"kernel","name":"matmul","ts":4.0,"dur":2.0,"args":{"call_stack":["ROOT","step","matmul"]}}]}"#;
    let (lines, report) = read(events.as_bytes());
    is_whole(&report);
    has(&lines, &["call step 1000..10000 [1]"]);
    has(
        &lines,
        &[
            "work 1 matmul Some((4000, 6000)) enqueued 1000",
            "call_stack=",
        ],
    );
    has(&lines, &["queue stream 7"]);
    assert_eq!((report.counts.kernels, report.counts.slices), (1, 0));
}

/// Reads a file with some of its bytes gone or changed: it is never refused without a word.
fn damage(text: &str) {
    let whole = read(text.as_bytes()).1;
    let sum = |report: &Report| {
        let counts = &report.counts;
        counts.calls + counts.kernels + counts.copies + counts.slices
    };
    for variant in 0..300 {
        let mut bytes = text.as_bytes().to_vec();
        let place = bytes.len() * (variant + 1) / 302;
        match variant % 5 {
            0 => {
                // A bare array may end behind any of its events, a table behind any row, and in its header and its last column.
                bytes.truncate(place);
                let mut lines = bytes.split(|byte| *byte == b'\n');
                let last = lines.next_back().unwrap_or_default();
                let commas = last.iter().filter(|byte| **byte == b',').count();
                let is_header = lines.next().is_none();
                if text == DETAILS && (is_header || last.is_empty() || commas >= 8) {
                    continue;
                }
                if matches!(bytes.trim_ascii_end().last(), Some(b'}' | b',')) {
                    continue;
                }
            }
            1 => bytes[place] = 0xff,
            2 => drop(bytes.drain(place..(place + 40).min(text.len()))),
            3 => bytes[place] = b'}',
            _ => bytes.insert(place, b'"'),
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let Ok(inputs) = Inputs::open(&[file.path()]) else {
            continue;
        };
        let report = inputs.produce(&mut Lines::default()).unwrap();
        let is_said = !report.is_sound() || !report.unrepresented.is_empty();
        let begin = &text[..40];
        assert!(
            is_said || sum(&report) >= sum(&whole),
            "{variant} of {begin}"
        );
    }
}

#[test]
fn damage_is_never_passed_over() {
    for text in [ASCEND, DETAILS, UNITRACE, INTERCEPT] {
        damage(text);
    }
}
