//! Counters of ROCm's kernels and devices through the stand-in of rocprofiler-sdk, whose values follow from the work-items of each
//! dispatch. That counting works on a GPU is not shown here.

use std::collections::BTreeMap;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::program::run;
use serde_json::Value;

use crate::command::{TestDir, kernels, well};
use crate::rocm_stand_ins::{NEWEST, StandIns};

/// The work-items of a launch of each kernel of the program.
const ITEMS: [(&str, f64); 2] = [("saxpy", 1024.0), ("_Z5scalePff", 512.0)];
/// The sum over all instances for one work-item: (1 + 2) (1 + 2 + 3 + 4), 1 + 2 + ... + 16.
const WAVES: f64 = 30.0;
const HITS: f64 = 136.0;

/// By kernel and counter: the number of dispatches, and the least and the greatest value.
fn table(dir: &TestDir) -> BTreeMap<(String, String), (u64, f64, f64)> {
    let text = well(&mut dir.gputrail(["summary", "run.pftrace", "--format", "json"])).text();
    let tables: Value = serde_json::from_str(&text).expect("JSON");
    let row = |row: &Value| {
        let text = |key: &str| row[key].as_str().expect("a text").to_owned();
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
        let dispatches = row["dispatches"].as_u64().expect("a number");
        (
            (text("kernel"), text("counter")),
            (dispatches, number("min"), number("max")),
        )
    };
    let rows = tables["counters"].as_array().expect("a table").iter();
    rows.map(row).collect()
}

#[test]
fn each_kernel_has_the_values_of_its_dispatch_in_each_version() {
    needs!(each_kernel_has_the_values_of_its_dispatch_in_each_version:
        Need::Program("cc"), Need::TraceProcessor);
    for version in [500, 10_000, NEWEST] {
        let stand_ins = StandIns::new(version);
        let options = ["--counters", "SQ_WAVES,MeanHits,CU_NUM"];
        let ended = well(&mut stand_ins.record(&options, "", &["20", "2"]));
        assert_eq!(ended.text(), "done\n", "{version}: {}", ended.stderr);
        let mut trace = stand_ins.dir().trace();
        trace.assert_sound();
        assert_eq!(kernels(&mut trace, "saxpy"), 40, "{version}");
        let found = table(stand_ins.dir());
        for (kernel, items) in ITEMS {
            for (counter, value) in [
                ("SQ_WAVES", WAVES * items),
                ("MeanHits", HITS / 16.0 * items),
                ("CU_NUM", 304.0),
            ] {
                let key = (kernel.to_owned(), counter.to_owned());
                assert_eq!(
                    found.get(&key),
                    Some(&(40, value, value)),
                    "{version}: {found:?}"
                );
            }
        }
        assert_eq!(found.len(), 6, "{version}: {found:?}");
        assert_eq!(stand_ins.log().of("counted").count(), 80, "{version}");
    }
}

#[test]
fn more_counters_than_fit_take_several_runs() {
    needs!(more_counters_than_fit_take_several_runs: Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new(NEWEST);
    let counters = "SQ_WAVES,TCC_HIT,GRBM_COUNT";
    let ended = run(&mut stand_ins.record(&["--counters", counters], "", &["5"]));
    assert!(
        ended.stderr.contains("--replay application"),
        "{}",
        ended.stderr
    );
    let options = ["--counters", counters, "--replay", "application"];
    let ended = well(&mut stand_ins.record(&options, "", &["5"]));
    assert_eq!(ended.text(), "done\n", "{}", ended.stderr);
    let found = table(stand_ins.dir());
    for (kernel, items) in ITEMS {
        for (counter, value) in [("SQ_WAVES", WAVES), ("TCC_HIT", HITS), ("GRBM_COUNT", 2.0)] {
            let key = (kernel.to_owned(), counter.to_owned());
            let value = value * items;
            assert_eq!(found.get(&key), Some(&(5, value, value)), "{found:?}");
        }
    }
}

#[test]
fn a_device_is_read_at_a_period() {
    needs!(a_device_is_read_at_a_period: Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new(NEWEST);
    let options = ["--counters", "GRBM_COUNT", "--counters-period", "2ms"];
    let ended = well(&mut stand_ins.record(&options, "", &["500"]));
    assert_eq!(ended.text(), "done\n", "{}", ended.stderr);
    assert!(stand_ins.log().of("read").count() > 0);
    let mut trace = stand_ins.dir().trace();
    trace.assert_sound();
    // Kernels between two readings are in none.
    let sum: f64 = trace.value(
        "select coalesce(sum(value), 0) from counter c join track t on c.track_id = t.id where t.name glob '*GRBM_COUNT*'",
    );
    let all = 500.0 * ITEMS.map(|(_, items)| 2.0 * items).iter().sum::<f64>();
    assert!(0.0 < sum && sum <= all, "{sum} of {all}");
}

#[test]
fn counters_are_listed_described_and_checked() {
    needs!(counters_are_listed_described_and_checked: Need::Program("cc"));
    for version in [600, NEWEST] {
        let stand_ins = StandIns::new(version);
        let ask = |arguments: &[&str]| {
            let mut command = stand_ins.dir().gputrail(["counters"]);
            stand_ins.prepare(command.args(arguments), "");
            run(&mut command)
        };
        let text = ask(&["list", "--agent", "rocm:0"]).well().text();
        for words in [
            "SQ_WAVES",
            "GRBM",
            "reduce(TCC_HIT,sum)/16",
            "Hits in the L2 cache.",
        ] {
            assert!(text.contains(words), "{version} {words}: {text}");
        }
        let text = ask(&["info", "--agent", "rocm:0", "SQ_WAVES"])
            .well()
            .text();
        for words in [
            "Waves that were sent",
            "8 instances: XCC 2 x SHADER_ENGINE 4",
        ] {
            assert!(text.contains(words), "{version} {words}: {text}");
        }
        ask(&["check", "--agent", "rocm:0", "SQ_WAVES,MeanHits"]).well();
        let ended = ask(&["check", "--agent", "rocm:0", "SQ_WAVES,MeanHits,GRBM_COUNT"]);
        let text = ended.text() + &ended.stderr;
        assert!(text.contains("--replay application"), "{version}: {text}");
        let ended = ask(&["check", "--agent", "rocm:0", "SQ_WAVE"]);
        assert!(
            ended.code() != 0 && ended.stderr.contains("SQ_WAVES"),
            "{}",
            ended.stderr
        );
        let ended = ask(&["list", "--agent", "rocm:7"]);
        assert!(
            ended.stderr.contains("there is no device rocm:7"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn what_cannot_be_counted_is_said_and_disturbs_nothing() {
    needs!(what_cannot_be_counted_is_said_and_disturbs_nothing:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new(NEWEST);
    for (counters, fault, words) in [
        (
            "SQ_WAVES",
            "no_hardware",
            "finds no counters in the hardware",
        ),
        ("SQ_WAVES", "no_counting", "groups render and video"),
        ("SQ_WAVES", "no_values", "10 kernels without values"),
        ("SQ_WAVE", "", "the nearest is SQ_WAVES"),
    ] {
        let ended = well(&mut stand_ins.record(&["--counters", counters], fault, &["5"]));
        assert_eq!(ended.text(), "done\n", "{fault}");
        assert!(ended.stderr.contains(words), "{fault}: {}", ended.stderr);
        assert_eq!(kernels(&mut stand_ins.dir().trace(), "saxpy"), 5, "{fault}");
    }
}
