//! CUPTI by its own names: events, metrics and samples of the program counter.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;

use crate::abi::Abi;
use crate::c_api::{C, CPP};
use crate::command::TestDir;

const CUPTI: Abi = Abi {
    name: "cupti",
    library: "libcupti.so.10.0",
};

#[test]
fn every_function_for_events_and_metrics_of_cupti_answers_as_its_text_says() {
    needs!(every_function_for_events_and_metrics_of_cupti_answers_as_its_text_says:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let source = "tests/programs/abi/cupti_counting.c";
        let program = CUPTI.program(&dir, compiler, source, true);
        for driver in [Driver::Basic, Driver::Threaded] {
            let ended = run(&mut dir.untraced(driver, &program, &[])).well();
            assert_eq!(ended.text(), "passed\n");
            assert_eq!(ended.stderr, "");
        }
    }
}

/// Runs a program that knows nothing of CUPTI, 20 kernels called `work`, with an example of `examples/abi`.
fn injected(dir: &TestDir, example: &str, environment: &[(&str, &str)]) -> String {
    let library = CUPTI.library(dir);
    let example = CUPTI.tool(dir, example);
    let program = dir.program("lives");
    let mut command = dir.untraced(Driver::Threaded, &program, &["20"]);
    command
        .env("LD_PRELOAD", library)
        .env("CUDA_INJECTION64_PATH", example)
        .envs(environment.iter().copied());
    let ended = run(&mut command).well();
    assert_eq!(ended.stderr, "");
    ended.text()
}

/// Runs the simulated GPU with an example of `examples/abi`.
fn simulated(dir: &TestDir, example: &str, environment: &[(&str, &str)]) -> String {
    let library = CUPTI.library(dir);
    let example = CUPTI.tool(dir, example);
    let options = ["demo", "-q", "--steps", "1", "--tool"];
    let mut command = dir.gputrail(options);
    command
        .arg(library)
        .env("CUDA_INJECTION64_PATH", example)
        .envs(environment.iter().copied());
    let ended = run(&mut command).well();
    assert_eq!(ended.stderr, "");
    ended.text()
}

/// What stands behind `name` in each line that has it.
fn behind<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let found = text
        .lines()
        .filter_map(|line| line.split_once(name))
        .map(|(_, value)| value.split(' ').next().unwrap_or(value));
    found.collect()
}

#[test]
fn the_examples_of_cuptis_text_count_kernels_of_opencl() {
    needs!(the_examples_of_cuptis_text_count_kernels_of_opencl:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let text = injected(&dir, "cupti_callback_event", &[]);
    let values = behind(&text, "work: TASK_CLOCK = ");
    assert_eq!(values.len(), 20, "{text}");
    assert!(values.iter().all(|value| value.parse::<u64>().unwrap() > 0));

    let text = injected(&dir, "cupti_callback_metric", &[]);
    assert!(text.starts_with("CPUS_UTILIZED: 1 passes\n"), "{text}");
    let values = behind(&text, "work: CPUS_UTILIZED = ");
    assert_eq!(values.len(), 20, "{text}");
    assert!(
        values
            .iter()
            .all(|value| value.parse::<f64>().unwrap() > 0.0)
    );

    for example in ["cupti_event_sampling", "cupti_event_multi_gpu"] {
        let text = injected(&dir, example, &[]);
        let values = behind(&text, "TASK_CLOCK = ");
        assert_eq!(values.len(), 1, "{example}: {text}");
        assert!(values[0].parse::<u64>().unwrap() > 0, "{example}: {text}");
    }
}

#[test]
fn two_threads_count_with_cupti() {
    needs!(two_threads_count_with_cupti: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let source = "tests/programs/abi/cupti_counting_threads.c";
    let program = CUPTI.program(&dir, C, source, true);
    let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
    assert_eq!(ended.text(), "passed\n");
    assert_eq!(ended.stderr, "");
}
