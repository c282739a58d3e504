//! CUPTI by its own names: events, metrics and samples of the program counter.

use std::collections::{HashMap, HashSet};

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use serde_json::Value;

use crate::abi::Abi;
use crate::c_api::{C, CPP};
use crate::command::{TestDir, well};

const CUPTI: Abi = Abi {
    name: "cupti",
    library: "libcupti.so.13",
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
    injected_into(dir, "lives", &["20"], example, environment)
}

fn injected_into(
    dir: &TestDir,
    program: &str,
    arguments: &[&str],
    example: &str,
    environment: &[(&str, &str)],
) -> String {
    let library = CUPTI.library(dir);
    let example = CUPTI.tool(dir, example);
    let program = dir.program(program);
    let mut command = dir.preloaded(Driver::Threaded, library, &program, arguments);
    command
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
    assert!(text.starts_with("1 passes\n"), "{text}");
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

/// The sums of a counter of both devices in one step of the demo.
fn of_demo(dir: &TestDir, counter: &str) -> Vec<u64> {
    let options = ["demo", "-q", "--steps", "1", "--counters-period", "60m"];
    well(&mut dir.gputrail([&options[..], &["--counters", counter]].concat()));
    let text = well(&mut dir.gputrail(["summary", "demo.pftrace", "--format", "json"])).text();
    let tables: Value = serde_json::from_str(&text).expect("JSON");
    let rows = tables["period_counters"].as_array().expect("a table");
    let sums = rows.iter().map(|row| row["sum"].as_f64().expect("a sum"));
    sums.map(|sum| sum as u64).collect()
}

/// All values of counters of kernels in one step of the demo.
fn of_kernels(dir: &TestDir, counters: &str) -> HashMap<String, HashSet<String>> {
    let options = ["demo", "-q", "--steps", "1", "--counters", counters];
    well(&mut dir.gputrail(options));
    let convert = [
        "convert",
        "demo.pftrace",
        "--format",
        "csv",
        "-o",
        "tables/",
    ];
    well(&mut dir.gputrail(convert));
    let files = std::fs::read_dir(dir.join("tables")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let file = files.find(|file| file.to_string_lossy().ends_with("_counter_collection.csv"));
    let text = std::fs::read_to_string(file.expect("a table of counters")).unwrap();
    let mut values = HashMap::<String, HashSet<String>>::new();
    for line in text.lines().skip(1) {
        // Ahead of both times; names of kernels have commas.
        let mut fields = line.rsplit(',').skip(2);
        let (value, name) = (fields.next().unwrap(), fields.next().unwrap());
        let number: f64 = value.parse().unwrap();
        let of = values.entry(name.trim_matches('"').to_owned());
        of.or_default().insert(format!("{number:.3}"));
    }
    values
}

#[test]
fn the_examples_of_cuptis_text_count_the_simulated_gpu_exactly() {
    needs!(the_examples_of_cuptis_text_count_the_simulated_gpu_exactly: Need::OpenClToolchain);
    let dir = TestDir::new();
    // All the time, on both devices, with the 16 instances of a block.
    let mut expected = of_demo(&dir, "TCC_MISS");
    let text = simulated(&dir, "cupti_event_multi_gpu", &[("EVENT", "TCC_MISS")]);
    let values = behind(&text, "TCC_MISS = ");
    let mut values: Vec<u64> = values.iter().map(|value| value.parse().unwrap()).collect();
    values.sort_unstable();
    expected.sort_unstable();
    assert_eq!(values, expected, "{text}");
    let text = simulated(&dir, "cupti_event_sampling", &[("EVENT", "SQ_WAVES")]);
    let values = behind(&text, "SQ_WAVES = ");
    let expected = of_demo(&dir, "SQ_WAVES");
    assert!(
        values.len() == 1 && expected.contains(&values[0].parse().unwrap()),
        "{text}"
    );

    // Of kernels, the last one before each wait.
    let metrics = "L2CacheHit,FetchSize,WriteSize,VALUInsts";
    let expected = of_kernels(&dir, &format!("SQ_WAVES,{metrics}"));
    let text = simulated(&dir, "cupti_callback_event", &[("EVENT", "SQ_WAVES")]);
    let told = behind(&text, "the latest kernel: SQ_WAVES = ");
    assert!(!told.is_empty(), "{text}");
    for value in told {
        let value: f64 = value.parse().unwrap();
        assert!(
            expected["SQ_WAVES"].contains(&format!("{value:.3}")),
            "{value}"
        );
    }
    let text = simulated(&dir, "cupti_callback_metric", &[("METRICS", metrics)]);
    assert!(text.starts_with("2 passes\n"), "{text}");
    for metric in metrics.split(',') {
        let told = behind(&text, &format!("the latest kernel: {metric} = "));
        assert!(!told.is_empty(), "{text}");
        for value in told {
            let value: f64 = value.parse().unwrap();
            let is_known = expected[metric].contains(&format!("{value:.3}"));
            assert!(is_known, "{metric} = {value}: {:?}", expected[metric]);
        }
    }
}

/// The numbers behind words of a line.
fn numbers(line: &str) -> Vec<u64> {
    let words = line.split(|letter: char| !letter.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn metrics_by_the_names_of_cuptis_document_have_its_kinds_of_values() {
    needs!(metrics_by_the_names_of_cuptis_document_have_its_kinds_of_values: Need::OpenClToolchain);
    let dir = TestDir::new();
    let metrics = "L2CacheHit,l2_tex_hit_rate,FetchSize,dram_read_bytes,alu_fu_utilization,inst_executed,ipc,\
        dram_read_throughput,dram_utilization";
    let text = simulated(&dir, "cupti_callback_metric", &[("METRICS", metrics)]);
    let told = |name: &str| {
        let told = behind(&text, &format!("the latest kernel: {name} = "));
        let values: Vec<f64> = told.iter().map(|value| value.parse().unwrap()).collect();
        assert!(values.len() >= 4, "{name}: {text}");
        values
    };
    assert_eq!(told("L2CacheHit"), told("l2_tex_hit_rate"));
    let (kilobytes, bytes) = (told("FetchSize"), told("dram_read_bytes"));
    assert!(
        kilobytes
            .iter()
            .zip(&bytes)
            .all(|(kilobytes, bytes)| (1024.0 * kilobytes - bytes).abs() <= 1.0),
        "{text}"
    );
    for name in ["alu_fu_utilization", "dram_utilization"] {
        let levels = told(name);
        assert!(
            levels.iter().all(|level| (0.0..=10.0).contains(level)),
            "{text}"
        );
        assert!(levels.iter().all(|level| level.fract() == 0.0), "{text}");
    }
    for name in ["inst_executed", "ipc", "dram_read_throughput"] {
        assert!(told(name).iter().any(|value| *value > 0.0), "{text}");
    }
    for value in told("inst_executed")
        .iter()
        .chain(&told("dram_read_throughput"))
    {
        assert_eq!(value.fract(), 0.0, "{text}");
    }
}

#[test]
fn the_samples_of_cuptis_records_add_up_for_each_kernel() {
    needs!(the_samples_of_cuptis_records_add_up_for_each_kernel: Need::OpenClToolchain);
    let dir = TestDir::new();
    let text = simulated(&dir, "cupti_pc_sampling", &[("EXPONENT", "15")]);
    let (mut samples, mut kernels) = (HashMap::<u64, u64>::new(), HashMap::<u64, u64>::new());
    for line in text.lines() {
        if line.starts_with("samples of kernel ") {
            let of = numbers(line);
            assert!(of[2] <= of[1], "{line}");
            *samples.entry(of[0]).or_default() += of[1];
        } else if line.starts_with("kernel ") {
            let of = numbers(line);
            assert_eq!(of[3], 1 << 15, "{line}");
            *kernels.entry(of[0]).or_default() += of[1] - of[2];
        }
    }
    assert!(samples.len() > 20, "{text}");
    for (kernel, count) in &samples {
        assert!(
            count <= &kernels[kernel],
            "{kernel}: {count} of {}",
            kernels[kernel]
        );
    }
    for word in ["line ", "function ", ": execution dependency", ": none"] {
        assert!(text.contains(word), "{word}");
    }
}

#[test]
fn samples_of_processors_by_cupti_are_those_of_the_kernels() {
    needs!(samples_of_processors_by_cupti_are_those_of_the_kernels:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let text = injected_into(&dir, "hot_loop", &["", "20"], "cupti_pc_sampling", &[]);
    let (mut samples, mut kernels) = (HashMap::<u64, u64>::new(), HashMap::<u64, u64>::new());
    for line in text.lines() {
        let of = numbers(line);
        if line.starts_with("samples of kernel ") {
            *samples.entry(of[0]).or_default() += of[1];
        } else if line.starts_with("kernel ") {
            *kernels.entry(of[0]).or_default() += of[1] - of[2];
        }
    }
    kernels.retain(|_, samples| *samples > 0);
    assert!(!samples.is_empty() && samples == kernels, "{text}");
    assert!(text.contains(": hot\n"), "{text}");
}

#[test]
fn the_map_of_instructions_to_lines_has_exact_counts() {
    needs!(the_map_of_instructions_to_lines_has_exact_counts: Need::OpenClToolchain);
    let dir = TestDir::new();
    let text = simulated(&dir, "cupti_sass_source_map", &[]);
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows.len() > 50, "{text}");
    for row in rows {
        assert!(row.contains(".cl:"), "{row}");
        let (_, counts) = row.split_once(" executed ").expect("counts");
        let of = numbers(counts);
        assert!(of[0] > 0 && of[1] > 0 && of[1] <= of[0] * 64, "{row}");
    }
}

#[test]
fn instructions_are_counted_of_the_one_context_that_cupti_enables_them_for() {
    needs!(instructions_are_counted_of_the_one_context_that_cupti_enables_them_for:
        Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = CUPTI.library(&dir);
    let tool = CUPTI.tool_of(&dir, "tests/programs/abi", "cupti_context");
    let mut command = dir.gputrail(["demo", "-q", "--steps", "1", "--tool"]);
    let ended = run(command.arg(library).env("CUDA_INJECTION64_PATH", tool)).well();
    let text = ended.text();
    let rows: Vec<Vec<u64>> = text.lines().map(numbers).collect();
    assert!(text.ends_with("passed\n"), "{text}");
    assert!(rows[0][0] > 20 && rows[0][1] == 0, "{text}");
    assert!(rows[1][0] == 0 && rows[1][1] > 20, "{text}");
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

#[test]
fn what_cupti_is_asked_in_the_first_launch_holds_for_its_kernel() {
    needs!(what_cupti_is_asked_in_the_first_launch_holds_for_its_kernel:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = CUPTI.library(&dir);
    let tool = CUPTI.tool_of(&dir, "tests/programs/abi", "cupti_first_launch");
    let program = dir.program("lives");
    for driver in [Driver::Basic, Driver::Threaded] {
        let mut command = dir.preloaded(driver, &library, &program, &["5"]);
        command.env("CUDA_INJECTION64_PATH", &tool);
        assert_eq!(run(&mut command).well().text(), "counted, passed\n");
    }
    let options = ["demo", "-q", "--steps", "1", "--tool"];
    let mut command = dir.gputrail(options);
    command.arg(library).env("CUDA_INJECTION64_PATH", tool);
    assert_eq!(run(&mut command).well().text(), "sampled, passed\n");
}
