//! Events of XLA's profiler, as JAX writes them.

use super::read;

const EVENTS: &str = r#"{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[
{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},
{"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":1,"tid":20,"name":"thread_name","args":{"name":"Stream #20(Compute,MemcpyH2D)"}},
{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"XLA Ops"}},
{"ph":"M","pid":2,"name":"process_name","args":{"name":"/device:TPU:1"}},
{"ph":"M","pid":2,"tid":2,"name":"thread_name","args":{"name":"XLA Ops"}},
{"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},
{"ph":"M","pid":701,"tid":77,"name":"thread_name","args":{"name":"python"}},
{"ph":"X","pid":701,"tid":77,"ts":1,"dur":1,"name":"cuLaunchKernel","args":{"correlation_id":"11"}},
{"ph":"X","pid":701,"tid":77,"ts":0.5,"dur":9,"name":"PjitFunction(f)"},
{"ph":"X","pid":1,"tid":20,"ts":3,"dur":2,"name":"loop_add_fusion","args":{"correlation_id":"11","hlo_op":"loop_add_fusion","kernel_details":"regs:32 static_shared:16 dynamic_shared:16 grid:4,1,1 block:128,1,1 occ_pct:100"}},
{"ph":"X","pid":1,"tid":20,"ts":6,"dur":1,"name":"MemcpyH2D","args":{"correlation_id":"12","memcpy_details":"kind_src:pinned kind_dst:device size:64 dest:0 async:1"}},
{"ph":"X","pid":1,"tid":2,"ts":3,"dur":2,"name":"loop_add_fusion"},
{"ph":"X","pid":2,"tid":2,"ts":3,"dur":5,"name":"while.1","args":{"hlo_category":"while"}},
{"ph":"X","pid":2,"tid":2,"ts":4,"dur":2,"name":"fusion.2"}
]}"#;

#[test]
fn lines_of_devices_are_work_and_functions_are_calls() {
    let (lines, report) = read(EVENTS.as_bytes());
    assert!(report.is_sound(), "{:?}", report.findings);
    let counts = report.counts;
    assert_eq!(
        (counts.calls, counts.kernels, counts.copies, counts.slices),
        (1, 2, 1, 3),
        "{lines:#?}"
    );
    let has = |parts: &[&str]| {
        let all = |line: &&String| parts.iter().all(|part| line.contains(part));
        assert!(lines.iter().any(|line| all(&line)), "{parts:?} {lines:#?}");
    };
    has(&["loop_add_fusion", "occ_pct=100"]);
    has(&["GPU 0 · XLA Ops · xla", "loop_add_fusion"]);
    has(&["TPU 1 · XLA Ops · xla", "while.1"]);
    has(&["MemcpyH2D", "kind_src=pinned"]);
}
