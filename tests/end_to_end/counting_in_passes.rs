//! Counters that need several passes: kernels that run once for each, and programs that notice nothing of that.

use std::collections::{BTreeMap, HashMap};

use gputrail_capture::Reader;
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::{self, Driver};
use gputrail_harness::program::run;
use gputrail_record::*;
use serde_json::Value;

use crate::command::{TestDir, well};

/// Events of every machine.
const NINE: &str = "TASK_CLOCK,CPU_CLOCK,PAGE_FAULTS,CONTEXT_SWITCHES,CPU_MIGRATIONS,PAGE_FAULTS_MIN,PAGE_FAULTS_MAJ,\
                    ALIGNMENT_FAULTS,EMULATION_FAULTS";

/// The reasons of the invalid values of a capture, and the number of valid ones, by kernel. All values of a kernel of this
/// name have the same reason.
fn reasons(dir: &TestDir) -> BTreeMap<String, (Vec<CounterInvalid>, usize)> {
    let reader = Reader::open(&dir.join("run.gputrail")).expect("a capture");
    let (mut kernels, mut values) = (HashMap::new(), Vec::new());
    let mut chunks = reader.chunks();
    while let Some(chunk) = chunks.next() {
        for record in chunk.records() {
            values.extend(record.read::<CounterValue>());
            if let Some(kernel) = record.read::<KernelDispatch>() {
                kernels.insert(kernel.work.id, kernel.kernel);
            }
        }
    }
    let mut reasons: BTreeMap<String, (Vec<CounterInvalid>, usize)> = BTreeMap::new();
    for value in values {
        let symbol = &reader.metadata().kernels[&kernels[&value.work]];
        let name = reader.metadata().string(symbol.name).to_owned();
        let (invalid, valid) = reasons.entry(name).or_default();
        match value.invalid {
            CounterInvalid::NO => *valid += 1,
            reason if invalid.contains(&reason) => {}
            reason => invalid.push(reason),
        }
    }
    reasons
}

#[test]
fn a_program_sees_one_run_of_kernels_that_run_in_several_passes() {
    needs!(a_program_sees_one_run_of_kernels_that_run_in_several_passes: Need::Pocl, Need::OpenClToolchain);
    for driver in [Driver::Basic, Driver::Threaded] {
        let dir = TestDir::new();
        let program = dir.program("replayed");
        run(&mut dir.untraced(driver, &program, &[])); // fills the kernel cache
        let alone = run(&mut dir.untraced(driver, &program, &[])).well();
        for (per_pass, passes) in [("9", 1), ("5", 2), ("1", 9)] {
            let dir = TestDir::new();
            let log = dir.join("pocl.log");
            let options = [
                "-q",
                "--capture",
                "--counters",
                NINE,
                "--counters-per-pass",
                per_pass,
            ];
            let mut command = dir.record_with(&options, driver, &program, &[]);
            let counted = run(pocl::logged(&mut command, &log)).well();
            assert_eq!(alone.text(), counted.text(), "{passes} passes");
            let is_kernel = |one: &&pocl::Completed| one.kind == "ndrange_kernel";
            let ran = pocl::completed(&log).iter().filter(is_kernel).count();
            let mut valid = 0;
            for (kernel, (invalid, number)) in reasons(&dir) {
                assert_eq!(invalid, [], "{kernel}");
                valid += number;
            }
            let launches = valid / 9;
            assert_eq!((valid, ran), (launches * 9, launches * passes));
            assert!(launches > 15, "{launches}");
            dir.trace().assert_sound();
        }
    }
}

#[test]
fn a_kernel_that_cannot_be_repeated_runs_once_and_its_values_say_why() {
    needs!(a_kernel_that_cannot_be_repeated_runs_once_and_its_values_say_why: Need::Pocl, Need::OpenClToolchain);
    for driver in [Driver::Basic, Driver::Threaded] {
        let dir = TestDir::new();
        let program = dir.program("not_replayed");
        run(&mut dir.untraced(driver, &program, &[]));
        let alone = run(&mut dir.untraced(driver, &program, &[])).well();
        let log = dir.join("pocl.log");
        let options = [
            "-q",
            "--capture",
            "--counters",
            NINE,
            "--counters-per-pass",
            "5",
        ];
        let mut command = dir.record_with(&options, driver, &program, &[]);
        let counted = run(pocl::logged(&mut command, &log)).well();
        // The runtime prints for the kernel when it likes.
        let lines = |text: String| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(lines(alone.text()), lines(counted.text()));
        // The summary has the reasons, too.
        let text = well(&mut dir.gputrail(["summary", "run.pftrace", "--format", "json"])).text();
        let tables: Value = serde_json::from_str(&text).expect("JSON");
        let told = tables["invalid_counters"].as_array().expect("a table");
        let mapped = told
            .iter()
            .find(|row| row["kernel"] == "mapped" && row["counter"] == "PAGE_FAULTS");
        let mapped = mapped.unwrap_or_else(|| panic!("{told:?}"));
        assert_eq!(
            mapped["reason"],
            "several passes: memory of the kernel is mapped"
        );
        assert_eq!(mapped["dispatches"], 1);
        let mut reasons = reasons(&dir);
        // Not every runtime has pipes.
        if let Some((invalid, _)) = reasons.remove("piped") {
            assert_eq!(invalid, [CounterInvalid::PIPE]);
        }
        let told: BTreeMap<&str, &[CounterInvalid]> = reasons
            .iter()
            .map(|(kernel, (invalid, _))| (&**kernel, &invalid[..]))
            .collect();
        let expected: [(&str, &[CounterInvalid]); 9] = [
            ("after_user_event", &[CounterInvalid::NOT_AWAITED]),
            ("host_pointer", &[CounterInvalid::HOST_POINTER]),
            ("indirect", &[CounterInvalid::SHARED_MEMORY]),
            ("mapped", &[CounterInvalid::MAPPED]),
            ("mapped_part", &[CounterInvalid::MAPPED]),
            ("possible", &[]),
            ("prints", &[CounterInvalid::SIDE_EFFECTS]),
            ("shared_memory", &[CounterInvalid::SHARED_MEMORY]),
            ("too_large", &[CounterInvalid::TOO_LARGE]),
        ];
        assert_eq!(told, BTreeMap::from(expected));
        let commands = pocl::completed(&log);
        let ran = |name: &str| {
            let of = |one: &&pocl::Completed| one.kernel.as_deref() == Some(name);
            commands.iter().filter(of).count()
        };
        assert_eq!(ran("possible"), 2 * 2, "two launches in two passes");
        let refused = expected.iter().filter(|(_, reasons)| !reasons.is_empty());
        for (kernel, _) in refused {
            assert_eq!(ran(kernel), 1, "{kernel}");
        }
    }
}

#[test]
fn a_limit_of_counters_per_pass_changes_no_value_of_the_demo() {
    let dir = TestDir::new();
    let mut tables = Vec::new();
    for limit in [&[][..], &["--counters-per-pass", "1"][..]] {
        let counted = [
            "demo",
            "-q",
            "--steps",
            "1",
            "--counters",
            "SQ_WAVES,VALUInsts,FETCH_SIZE",
        ];
        well(&mut dir.gputrail([&counted[..], limit, &["-o", "demo.pftrace"]].concat()));
        let text = well(&mut dir.gputrail(["summary", "demo.pftrace", "--format", "json"])).text();
        std::fs::remove_file(dir.join("demo.pftrace")).expect("the trace");
        let summary: Value = serde_json::from_str(&text).expect("JSON");
        let time: u64 = summary["kernels"]
            .as_array()
            .expect("kernels")
            .iter()
            .map(|row| row["total_ns"].as_u64().expect("a time"))
            .sum();
        tables.push((summary["counters"].clone(), time));
    }
    assert_eq!(tables[0].0, tables[1].0);
    assert!(
        tables[0].1 * 3 < tables[1].1,
        "kernels run once for each pass"
    );
}
