//! `gputrail convert` of other profilers' tables: what trace processor finds is what a few lines of Python count in the input.

use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;
use gputrail_harness::{needs, repository};
use serde_json::Value;

use crate::command::{TestDir, well};

/// Name, count, and total duration.
type Sums = Vec<(String, u64, u64)>;

/// Converts tables of rocprofv3 and compares the trace with what they hold.
fn check(tables: &[&str]) -> Value {
    let dir = TestDir::new();
    let folder = dir.join("tables");
    std::fs::create_dir(&folder).unwrap();
    for table in tables {
        let file = repository("tests/data/rocprofv3").join(table);
        std::fs::copy(file, folder.join(table)).unwrap();
    }
    let script = repository("tests/perfetto/count_rocprofv3.py");
    let output = run(Command::new("python3").arg(script).arg(&folder)).well();
    let counted: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let of = |name: &str| -> Sums { serde_json::from_value(counted[name].clone()).unwrap() };
    well(&mut dir.gputrail(["convert", "tables", "-o", "out.pftrace"]));
    let mut trace = Trace::open(dir.join("out.pftrace"));
    trace.assert_sound();
    let sums = |trace: &mut Trace, from: &str| -> Sums {
        let sql = format!(
            "select slice.name, count(*), sum(slice.dur) from {from} group by 1 order by 1"
        );
        trace.rows(&sql)
    };
    let work = |trace: &mut Trace, copies: &str| {
        sums(
            trace,
            &format!("gpu_slice slice where slice.name {copies} 'copy *'"),
        )
    };
    assert_eq!(work(&mut trace, "not glob"), of("kernels"));
    let names = [
        ("MEMORY_COPY_DEVICE_TO_HOST", "copy device to host"),
        ("MEMORY_COPY_HOST_TO_DEVICE", "copy host to device"),
    ];
    let named = |(name, count, time): &(String, u64, u64)| {
        let (_, name) = names.iter().find(|(known, _)| known == name).unwrap();
        ((*name).to_owned(), *count, *time)
    };
    let copies: Sums = of("copies").iter().map(named).collect();
    assert_eq!(work(&mut trace, "glob"), copies);
    let calls =
        "slice join thread_track on slice.track_id = thread_track.id where slice.category = 'hip'";
    assert_eq!(sums(&mut trace, calls), of("calls"));
    for (category, count) in [
        ("marker", "markers"),
        ("memory allocation", "allocations"),
        ("scratch memory", "scratch"),
    ] {
        let sql = format!("select count(*) from slice where category = '{category}'");
        assert_eq!(trace.value::<Value>(&sql), counted[count], "{category}");
    }
    let samples = "select count(*) from cpu_profile_stack_sample";
    assert_eq!(trace.value::<Value>(samples), counted["samples"]);
    let pairs = "select count(*) from slice join args using (arg_set_id)
        where key glob 'gpu_correlation.render_stage_submission_event_ids*'";
    assert_eq!(trace.value::<Value>(pairs), counted["pairs"]);
    // Counters that are not of the whole process: those of dispatches. Between dispatches they are 0.
    let counters: Vec<(String, f64)> = trace.rows(
        "select track.name, value from counter join gpu_counter_track track on counter.track_id = track.id
        where track.name glob '*SQ_WAVES*' and value != 0 order by ts",
    );
    let expected: Vec<(String, f64)> = serde_json::from_value(counted["counters"].clone()).unwrap();
    assert_eq!(counters.len(), expected.len());
    for ((track, value), (name, expected)) in counters.iter().zip(&expected) {
        assert!(track.contains(name.as_str()), "{track}");
        assert_eq!(value, expected);
    }
    counted
}

#[test]
fn a_folder_of_tables_becomes_a_trace_with_all_of_it() {
    needs!(a_folder_of_tables_becomes_a_trace_with_all_of_it: Need::TraceProcessor);
    let counted = check(&[
        "counter_collection.csv",
        "hip_trace.csv",
        "kernel_trace.csv",
        "marker_api_trace.csv",
        "memory_allocation_trace.csv",
        "memory_copy_trace.csv",
        "pc_sampling_host_trap.csv",
        "pc_sampling_host_trap_debug.csv",
        "pc_sampling_stochastic_debug.csv",
        "scratch_memory_trace.csv",
    ]);
    assert_eq!(
        (&counted["samples"], &counted["pairs"]),
        (&197.into(), &0.into())
    );
}

#[test]
fn calls_and_kernels_of_one_process_are_tied_by_their_correlation_ids() {
    needs!(calls_and_kernels_of_one_process_are_tied_by_their_correlation_ids: Need::TraceProcessor);
    let counted = check(&["hip_trace.csv", "kernel_trace.csv"]);
    assert_eq!(counted["pairs"], 9);
}

#[test]
fn hotspots_and_summary_take_tables_as_they_take_traces() {
    let file = repository("tests/data/rocprofv3/pc_sampling_stochastic_debug.csv");
    let dir = TestDir::new();
    well(&mut dir.gputrail([
        "convert".as_ref(),
        file.as_os_str(),
        "-o".as_ref(),
        "out.pftrace".as_ref(),
    ]));
    let hotspots = well(&mut dir.gputrail(["hotspots", "out.pftrace"])).text();
    for part in [
        "97 samples",
        "/vector-ops.cpp\n",
        "133 |",
        "s_waitcnt vmcnt(0)",
    ] {
        assert!(hotspots.contains(part), "{part}: {hotspots}");
    }
}

#[test]
fn a_trace_of_kernels_alone_is_sound() {
    let dir = TestDir::new();
    let file = repository("tests/data/rocprofv3/kernel_trace.csv");
    well(dir.gputrail(["convert", "-o", "out.pftrace"]).arg(file));
    let checked = well(&mut dir.gputrail(["check", "out.pftrace"])).text();
    assert!(checked.contains("nothing wrong"), "{checked}");
}

#[test]
fn counters_of_dispatches_keep_their_devices_and_sizes_in_csv() {
    let dir = TestDir::new();
    let file = repository("tests/data/rocprofv3/counter_collection.csv");
    let ended = well(dir.gputrail(["convert", "-o", "out.csv"]).arg(&file));
    // The counter of running kernels, which has no table, is made of the kernels.
    let words = "4 kernels, 4 counter values\n";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    let words = "no place for them";
    assert!(!ended.stderr.contains(words), "{}", ended.stderr);
    let made = std::fs::read_to_string(dir.join("out.csv/15606_counter_collection.csv"));
    let made = made.expect("a table");
    let given = std::fs::read_to_string(file).expect("a table");
    /// The columns that both tables have, of each row.
    fn rows(text: &str) -> Vec<Vec<String>> {
        let names = [
            "Correlation_Id",
            "Dispatch_Id",
            "Agent_Id",
            "Process_Id",
            "Thread_Id",
            "Grid_Size",
            "Workgroup_Size",
            "Counter_Name",
            "Counter_Value",
            "Start_Timestamp",
            "End_Timestamp",
        ];
        let fields = |line: &str| -> Vec<String> {
            // Only names of kernels have commas.
            let parts = line.split('"').enumerate();
            let outside: String = parts
                .map(|(place, part)| match place % 2 {
                    0 => part.to_owned(),
                    _ => part.replace(',', ";"),
                })
                .collect();
            outside.split(',').map(str::to_owned).collect()
        };
        let mut lines = text.lines();
        let head = fields(lines.next().expect("a head"));
        let places = names.map(|name| head.iter().position(|own| own == name).expect(name));
        lines
            .map(|line| {
                let row = fields(line);
                places.iter().map(|place| row[*place].clone()).collect()
            })
            .collect()
    }
    assert!(given.lines().count() > 2);
    assert_eq!(rows(&made), rows(&given));
}
