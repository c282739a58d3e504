//! `gputrail counters`: definitions of counters, those that are built in and those of files.

use gputrail_harness::machine::{Need, tools};
use gputrail_harness::needs;
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
    let sets = "these can be counted together:\n  TCC_HIT_sum,TCC_MISS_sum,TCC_READ_sum,TCC_WRITE_sum\n  TCC_ATOMIC_sum\n";
    assert!(text.contains(sets), "{text}");
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest_ones() {
    let (code, text) = refused(&["info", "-a", "gfx90a", "SQ_WAVE"]);
    assert_eq!(code, 125);
    assert!(
        text.contains("there is no counter or metric \"SQ_WAVE\"; the nearest is SQ_WAVES"),
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
    let amd = repository("src/definitions/amd");
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

#[test]
fn metrics_of_nvidias_chips_are_told_without_a_gpu() {
    needs!(metrics_of_nvidias_chips_are_told_without_a_gpu: Need::Cupti);
    let folder = tools().join("cupti/13.5.25/nvidia/cu13/lib");
    let counters = |arguments: &[&str]| {
        let dir = TestDir::new();
        let all = [&["counters"], arguments].concat();
        let mut command = dir.gputrail(all);
        run(command.env("GPUTRAIL_CUPTI", folder.join("libcupti.so.13")))
    };
    let text = counters(&["list", "--chip", "gh100", "--format", "csv"])
        .well()
        .text();
    let row = "metrics,dram__bytes_read,counter,dram,bytes,# of bytes read from DRAM";
    assert!(text.lines().any(|line| line == row), "{text}");
    assert!(text.lines().count() > 3000, "{text}");
    let text = counters(&["info", "--chip", "GH100", "gpu__compute_memory_throughput"]);
    let text = text.well().text();
    for part in [
        "a throughput of GH100",
        "passes: 5\n",
        "    .avg.pct_of_peak_sustained_elapsed\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let names = "dram__bytes_read.sum,gpu__compute_memory_throughput,sm__cycles_active.avg";
    let text = counters(&["check", "--chip", "GH100", names]).well().text();
    let expected = "5 passes of a kernel\n  \
        dram__bytes_read.sum: 1 alone\n  gpu__compute_memory_throughput: 5 alone\n  \
        sm__cycles_active.avg: 1 alone\n\
        at a period, where there is one pass, these can be counted together:\n  \
        dram__bytes_read.sum,sm__cycles_active.avg\n  \
        gpu__compute_memory_throughput needs several passes alone: not at a period\n";
    assert_eq!(text, expected);
    let ended = counters(&["list", "--chip", "gh1"]);
    assert_eq!(ended.code(), 125);
    assert!(
        ended
            .stderr
            .contains("knows no chip \"gh1\"; it knows TU102"),
        "{}",
        ended.stderr
    );
    let dir = TestDir::new();
    let mut without = dir.gputrail(["counters", "list", "--chip", "gh100"]);
    let ended = run(without.env("CUDA_HOME", "/nowhere"));
    assert!(
        ended.stderr.contains("pip install nvidia-cuda-cupti"),
        "{}",
        ended.stderr
    );
}
