//! OpenMP and OpenACC: programs of GCC with the runtime of LLVM, and of GCC; target regions of a runtime that is played.

use std::path::PathBuf;
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::repository;

use crate::command::{TestDir, well};

/// A program of tests/programs/openmp, compiled.
pub fn compiled(dir: &TestDir, name: &str, compiles: &[&str], links: &[&str]) -> PathBuf {
    let source = repository("tests/programs/openmp").join(format!("{name}.c"));
    let (object, program) = (dir.join(&format!("{name}.o")), dir.join(name));
    let gcc = || {
        let mut command = Command::new("gcc");
        command.args(["-O1", "-o"]);
        command
    };
    well(gcc().arg(&object).arg("-c").arg(source).args(compiles));
    well(gcc().arg(&program).arg(object).args(links));
    program
}

/// Ranges of the trace by name: "NAME COUNT" in the order of the names, without the places of code.
fn ranges(dir: &TestDir) -> Vec<String> {
    let mut trace = dir.trace();
    trace.assert_sound();
    let rows: Vec<(String, i64)> = trace.rows(
        "select substr(s.name, 1, iif(instr(s.name, ':') > 0, instr(s.name, ':') - 1, 99)) name,
           count(*) count
         from slice s join args a on s.arg_set_id = a.arg_set_id and a.key = 'debug.domain'
         where s.dur > 0 group by 1 order by 1",
    );
    rows.iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect()
}

#[test]
fn parallel_regions_of_openmp_are_ranges_of_each_thread() {
    needs!(parallel_regions_of_openmp_are_ranges_of_each_thread:
        Need::OpenMp, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = compiled(&dir, "regions", &["-fopenmp"], &["-l:libomp.so.5"]);
    let alone = well(&mut Command::new(&program)).text();
    let mut command = dir.gputrail(["record", "-q", "--openmp", "-o", "run.pftrace", "--"]);
    assert_eq!(well(command.arg(&program)).text(), alone);
    let ranges = ranges(&dir);
    // Three regions of three threads, one of two.
    assert!(ranges.contains(&"parallel 11".to_owned()), "{ranges:?}");
    assert!(ranges.contains(&"single 4".to_owned()), "{ranges:?}");
    assert!(ranges.contains(&"taskwait 1".to_owned()), "{ranges:?}");
    let mut trace = dir.trace();
    // Threads that wait for the next region are in none: each range is beside one region of the main thread.
    let beside: i64 = trace.value(
        "select max(n) from (
           select count(*) n from slice w
           join slice m on w.ts < m.ts + m.dur and m.ts < w.ts + w.dur
           join thread_track t on m.track_id = t.id join thread using (utid)
           where w.name like 'parallel%' and m.name like 'parallel%' and m.depth = 0
             and is_main_thread = 1
           group by w.id)",
    );
    assert_eq!(beside, 1);
    let outermost: i64 =
        trace.value("select count(*) from slice where depth = 0 and name like 'parallel%'");
    assert_eq!(outermost, 11);

    // Without the option the runtime is not observed.
    let mut command = dir.gputrail(["record", "-q", "-o", "run.pftrace", "--"]);
    assert_eq!(well(command.arg(&program)).text(), alone);
    let others: i64 = dir
        .trace()
        .value("select count(*) from slice where name like 'parallel%'");
    assert_eq!(others, 0);
}

#[test]
fn target_regions_of_a_played_openmp_runtime_have_their_data_operations() {
    needs!(target_regions_of_a_played_openmp_runtime_have_their_data_operations:
        Need::Program("gcc"), Need::TraceProcessor);
    let dir = TestDir::new();
    let program = compiled(&dir, "runtime", &[], &["-ldl"]);
    let record = |argument: &[&str]| {
        let mut command = dir.gputrail(["record", "-q", "--openmp", "-o", "run.pftrace", "--"]);
        assert_eq!(well(command.arg(&program).args(argument)).text(), "done\n");
        ranges(&dir)
    };
    let expected = [
        "allocate on device 1",
        "copy from device 1",
        "copy to device 1",
        "launch 1",
        "target 1",
        "target enter data 1",
    ];
    assert_eq!(record(&[]), expected);
    let bytes: i64 = dir.trace().value(
        "select a.int_value from slice s join args a using (arg_set_id)
         where s.name = 'copy to device' and a.key = 'debug.payload'",
    );
    assert_eq!(bytes, 4096);
    // An older one reports data operations and launches as moments.
    assert_eq!(record(&["old"]), ["target 1"]);
    let moments: i64 = dir
        .trace()
        .value("select count(*) from slice where name in ('copy to device', 'launch') and dur = 0");
    assert_eq!(moments, 2);
    // A runtime whose variable does not name the library has no tool.
    let mut command = dir.gputrail(["record", "-q", "-o", "run.pftrace", "--"]);
    command.arg("sh").arg("-c").arg(format!(
        "OMP_TOOL_LIBRARIES= ; export OMP_TOOL_LIBRARIES; exec {}",
        program.display()
    ));
    let ended = gputrail_harness::program::run(&mut command);
    assert_ne!(ended.text(), "done\n");
}

#[test]
fn constructs_of_openacc_are_ranges() {
    needs!(constructs_of_openacc_are_ranges: Need::Program("gcc"), Need::TraceProcessor);
    let dir = TestDir::new();
    let program = compiled(&dir, "accelerated", &["-fopenacc"], &["-fopenacc"]);
    let mut command = dir.gputrail(["record", "-q", "--openacc", "-o", "run.pftrace", "--"]);
    assert_eq!(well(command.arg(&program)).text(), "499500\n");
    let ranges = ranges(&dir);
    let expected = [
        "enter data 1",
        "exit data 1",
        "init device 1",
        "parallel 2",
        "update 1",
    ];
    assert_eq!(ranges, expected);
}
