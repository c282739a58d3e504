//! `gputrail counters`: definitions of counters, those that are built in and those of files.

use gputrail_harness::program::run;
use gputrail_harness::repository;

use crate::command::{TestDir, well};

fn counters(arguments: &[&str]) -> String {
    let dir = TestDir::new();
    let all = [&["counters"], arguments].concat();
    well(&mut dir.gputrail(all)).text()
}

fn refused(arguments: &[&str]) -> (i32, String) {
    let dir = TestDir::new();
    let all = [&["counters"], arguments].concat();
    let ended = run(&mut dir.gputrail(all));
    (ended.code(), ended.stderr)
}

#[test]
fn architectures_and_their_counters_are_listed() {
    let text = counters(&["list"]);
    assert!(
        text.lines()
            .any(|line| line.trim_start().starts_with("gfx90a ")),
        "{text}"
    );
    let text = counters(&["list", "-a", "gfx90a", "--format", "csv"]);
    assert!(text.contains("counters,SQ_WAVES,\"SQ, event 4\""), "{text}");
}

#[test]
fn a_metric_is_explained_down_to_its_basic_counters() {
    let text = counters(&["info", "-a", "gfx90a", "meanoccupancypercu"]);
    assert!(text.starts_with("MeanOccupancyPerCU\n"), "{text}");
    for part in [
        "CU_NUM = simd_count/simd_per_cu",
        "GRBM_GUI_ACTIVE: block GRBM",
        "SQ_LEVEL_WAVES: block SQ",
        "added up every cycle, which takes a second place",
        "passes: 1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_passes_of_several_metrics_are_planned() {
    let names = "TCC_HIT_sum,TCC_MISS_sum,TCC_READ_sum,TCC_WRITE_sum,TCC_ATOMIC_sum";
    let text = counters(&["check", "-a", "gfx90a", names]);
    assert!(text.starts_with("2 passes of a kernel\n"), "{text}");
    assert!(
        text.contains("the number of passes comes from block TCC"),
        "{text}"
    );
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest_ones() {
    let (code, text) = refused(&["info", "-a", "gfx90a", "SQ_WAVE"]);
    assert_eq!(code, 125);
    assert!(
        text.contains("there is no counter or metric \"SQ_WAVE\"; the nearest are SQ_WAVES"),
        "{text}"
    );
    let (code, text) = refused(&["list", "-a", "gfx1"]);
    assert_eq!(code, 125);
    assert!(
        text.contains("there is no architecture \"gfx1\"; there are gfx10, "),
        "{text}"
    );
}

#[test]
fn definitions_of_a_file_are_read_by_their_content_and_refused_with_their_place() {
    let amd = repository("schemas/counters/amd");
    let v1 = amd.join("metrics.xml");
    let text = counters(&[
        "info",
        "-d",
        v1.to_str().unwrap(),
        "-a",
        "gfx906",
        "L2CacheHit",
    ]);
    assert!(text.contains("TCC_HIT: block TCC"), "{text}");

    let dir = TestDir::new();
    let own = "gputrail:\n  counters:\n  - name: A\n    definitions:\n    - architectures: [mine]\n      expression: 2*NOTHING\n";
    std::fs::write(dir.join("own.yaml"), own).unwrap();
    let ended = run(&mut dir.gputrail(["counters", "list", "-d", "own.yaml"]));
    assert_eq!(ended.code(), 1);
    let expected = "own.yaml:6:21: A: there is no counter, metric or property \"NOTHING\"";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}
