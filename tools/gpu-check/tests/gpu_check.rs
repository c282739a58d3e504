//! `gpu-check` on a machine without a GPU, and with stand-ins of the driver and of CUPTI. Neither is a GPU: that the
//! checks pass on one is not shown here.

use gputrail_harness::machine::{Need, tools};
use gputrail_harness::program::{Ended, run};
use gputrail_harness::{needs, repository};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn gpu_check() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-check"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GPUTRAIL_") {
            command.env_remove(name);
        }
    }
    command
}

/// The command beside `gpu-check`, which a build of the workspace has put there.
fn gputrail() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_gpu-check")).with_file_name("gputrail");
    assert!(path.exists(), "{}: cargo build --workspace", path.display());
    path
}

fn compile(folder: &Path, source: &str, output: &str) -> Ended {
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-O2", "-pthread", "-shared", "-fPIC", "-o"]);
    command.arg(folder.join(output));
    command
        .arg(repository("tests/programs/cuda").join(source))
        .arg("-ldl");
    run(&mut command).well()
}

#[test]
fn without_a_gpu_it_says_so_and_has_its_own_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = gpu_check();
    // A machine of a developer may have one.
    command
        .env("CUDA_VISIBLE_DEVICES", "")
        .current_dir(folder.path());
    let ended = run(&mut command);
    assert_eq!(ended.code(), 3, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("there is no NVIDIA GPU here"),
        "{}",
        ended.stderr
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let wrong = run(gpu_check().arg("--unknown"));
    assert_eq!(wrong.code(), 2);
    assert!(
        wrong.stderr.contains("Usage: gpu-check"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn nvidias_assembler_takes_the_kernels_for_each_generation_of_gpus() {
    needs!(nvidias_assembler_takes_the_kernels_for_each_generation_of_gpus: Need::Ptxas);
    let folder = tempfile::tempdir().unwrap();
    for generation in ["sm_50", "sm_70", "sm_80", "sm_90", "sm_120"] {
        let cubin = folder.path().join(generation);
        let mut assembler = Command::new(tools().join("ptxas"));
        assembler.arg(format!("-arch={generation}")).arg("-o");
        assembler.arg(&cubin);
        run(assembler.arg(repository("tools/gpu-check/src/kernels.ptx"))).well();
        assert!(std::fs::metadata(cubin).unwrap().len() > 0);
    }
}

#[test]
fn all_programs_pass_with_stand_ins_and_the_report_says_that_they_are_stand_ins() {
    needs!(all_programs_pass_with_stand_ins_and_the_report_says_that_they_are_stand_ins: Need::Program("cc"));
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "libcuda.c", "libcuda.so.1");
    compile(folder.path(), "libcupti.c", "libcupti.so.12");
    let mut command = gpu_check();
    command.arg("--gputrail").arg(gputrail());
    command
        .args(["--output", "report"])
        .current_dir(folder.path());
    command.env("LD_LIBRARY_PATH", folder.path());
    command.env("GPUTRAIL_CUPTI", folder.path().join("libcupti.so.12"));
    command.env("XDG_CACHE_HOME", folder.path().join("cache"));
    let ended = run(&mut command);
    let text = ended.text();
    assert_eq!(ended.code(), 0, "{text}\n{}", ended.stderr);

    let report = folder.path().join("report");
    let json = std::fs::read_to_string(report.join("report.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(
        json["machine"]["GPU"]
            .as_str()
            .unwrap()
            .contains("Stand-in"),
        "{json}"
    );
    let result = |name: &str| {
        let checks = json["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == name);
        check.unwrap_or_else(|| panic!("no {name}: {json}")).clone()
    };
    let names = [
        "kernels", "copies", "streams", "graphs", "managed", "threads", "errors", "abort",
        "overhead", "samples", "counters", "ranges",
    ];
    for name in names {
        assert_eq!(result(name)["result"], "passed", "{name}: {text}");
        assert!(
            report.join(name).with_extension("pftrace").exists(),
            "{name}"
        );
    }
    // The stand-in has 17 samples for each launch.
    let samples = &result("samples")["figures"]["samples in the long kernel"];
    assert_eq!(samples.as_f64(), Some(5.0 * 17.0), "{text}");
    let lines = result("counters")["lines"].to_string();
    for metric in [
        "sm__threads_launched.sum",
        "gpu__compute_memory_throughput.avg",
    ] {
        assert!(lines.contains(metric), "{lines}");
    }
    // The GPU of the stand-in has no events.
    assert_eq!(result("events")["result"], "not run", "{text}");
    let cost = &result("cost of calls")["figures"];
    for way in ["alone", "CUPTI alone", "gputrail"] {
        assert!(
            cost[format!("launch, {way}")].as_f64().unwrap() > 0.0,
            "{cost}"
        );
    }
    let markdown = std::fs::read_to_string(report.join("report.md")).unwrap();
    assert!(markdown.contains("Stand-in") && markdown.contains("## kernels: passed"));

    // The same with a GPU that is too old for the range profiler.
    command.env("STANDIN_CAPABILITY", "6");
    command.env("STANDIN_FAULT", "old_device");
    command.args(["--only", "events"]);
    run(&mut command).well();
    let json = std::fs::read_to_string(report.join("report.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let mut checks = json["checks"].as_array().unwrap().iter();
    let events = checks.find(|check| check["name"] == "events");
    let events = events.expect("a check of events");
    assert_eq!(events["result"], "passed", "{events}");
    let lines = events["lines"].to_string();
    assert!(lines.contains("7 events and metrics"), "{lines}");
    assert!(lines.contains("of 100 kernels"), "{lines}");
}

#[test]
fn a_reader_that_has_gone_does_not_stop_it() {
    needs!(a_reader_that_has_gone_does_not_stop_it: Need::Program("cc"));
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "libcuda.c", "libcuda.so.1");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = gpu_check();
    command
        .args(["--limit", "0"])
        .current_dir(folder.path())
        .env("LD_LIBRARY_PATH", folder.path())
        .stdout(writer);
    let ended = command.output().unwrap();
    // No check has begun, so none has passed.
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!((ended.status.code(), &stderr[..]), (Some(1), ""));
    assert!(folder.path().join("gpu-check-report/report.md").exists());
}

#[test]
fn the_package_has_both_programs_and_is_not_made_if_they_are_too_large() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let package = || {
        let mut command = Command::new(repository("tools/gpu-check/package"));
        run(command.arg(path("package.tar.gz")).arg(folder.path()))
    };
    std::fs::write(path("gputrail"), "the command").unwrap();
    std::fs::write(path("gpu-check"), "the check").unwrap();
    let ended = package().well();
    assert!(
        ended.text().contains("in all: 20 bytes, of 67108864"),
        "{}",
        ended.text()
    );
    let listed = run(Command::new("tar").arg("tzf").arg(path("package.tar.gz"))).well();
    for name in ["gpu-check/gputrail", "gpu-check/gpu-check"] {
        assert!(listed.text().lines().any(|line| line == name), "{name}");
    }

    std::fs::remove_file(path("package.tar.gz")).unwrap();
    let large = std::fs::File::create(path("gputrail")).unwrap();
    large.set_len(64 << 20).unwrap();
    let ended = package();
    assert_eq!(ended.code(), 1);
    assert!(
        ended.stderr.contains("more than 64 MiB"),
        "{}",
        ended.stderr
    );
    assert!(!path("package.tar.gz").exists());
}
