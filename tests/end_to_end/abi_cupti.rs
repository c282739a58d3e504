//! CUPTI by its own names: programs and tools in C that know it alone.

use std::process::Command;

use gputrail_harness::machine::{Need, tools};
use gputrail_harness::needs;
use gputrail_harness::pocl::{Driver, on_pocl};
use gputrail_harness::program::{Ended, run};
use gputrail_harness::repository;

use crate::abi::Abi;
use crate::c_api::{C, CPP, compiled};
use crate::command::TestDir;

const CUPTI: Abi = Abi {
    name: "cupti",
    library: "libcupti.so.13",
};

/// The library of each layout, with the number that chooses the layout in the headers.
const LAYOUTS: [(u32, Abi); 4] = [
    (10, of_layout("libcupti.so.10.0")),
    (11, of_layout("libcupti.so.11.8")),
    (12, of_layout("libcupti.so.12")),
    (13, CUPTI),
];

const fn of_layout(library: &'static str) -> Abi {
    Abi {
        name: "cupti",
        library,
    }
}

#[test]
fn the_functions_of_cuptis_activity_and_callback_apis_answer_as_its_document_says() {
    needs!(the_functions_of_cuptis_activity_and_callback_apis_answer_as_its_document_says:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for (compiler, (number, abi)) in [C, CPP]
        .into_iter()
        .flat_map(|compiler| LAYOUTS.iter().map(move |layout| (compiler, layout)))
    {
        let layout = format!("-DCUPTI_GPUTRAIL_LAYOUT={number}");
        let compiler = [compiler, &[layout.as_str()]].concat();
        let program = abi.program(&dir, &compiler, "tests/programs/abi/cupti.c", true);
        for driver in [Driver::Basic, Driver::Threaded] {
            let ended = run(&mut dir.untraced(driver, &program, &[]));
            assert_eq!(
                (ended.text().as_str(), ended.stderr.as_str()),
                ("passed\n", "")
            );
            ended.well();
        }
    }
}

#[test]
fn two_threads_use_cupti() {
    needs!(two_threads_use_cupti: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = CUPTI.program(&dir, C, "tests/programs/abi/cupti_threads.c", true);
    let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
    assert_eq!(
        (ended.text().as_str(), ended.stderr.as_str()),
        ("passed\n", "")
    );
}

/// Runs a program that prints that it has passed.
fn passes(source: &str) {
    let dir = TestDir::new();
    let program = CUPTI.program(&dir, C, source, true);
    let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
    assert_eq!(
        (ended.text().as_str(), ended.stderr.as_str()),
        ("passed\n", "")
    );
}

#[test]
fn cuptis_records_have_the_order_and_the_fields_of_its_document() {
    needs!(cuptis_records_have_the_order_and_the_fields_of_its_document:
        Need::Pocl, Need::OpenClToolchain);
    passes("tests/programs/abi/cupti_documents.c");
}

#[test]
fn functions_and_kinds_that_came_after_cuda_10_answer() {
    needs!(functions_and_kinds_that_came_after_cuda_10_answer: Need::Pocl, Need::OpenClToolchain);
    passes("tests/programs/abi/cupti_later.c");
}

/// Runs a program that knows nothing of CUPTI with a tool of `examples/abi`: 20 kernels called `work`.
fn preloaded(dir: &TestDir, tool: &str) -> Ended {
    let library = CUPTI.library(dir);
    let tool = CUPTI.tool(dir, tool);
    let program = dir.program("lives");
    let mut command = dir.preloaded(Driver::Threaded, library, &program, &["20"]);
    command.env("CUDA_INJECTION64_PATH", tool);
    run(&mut command).well()
}

/// Runs the simulated GPU with a tool of `examples/abi`.
fn simulated(dir: &TestDir, tool: &str) -> Ended {
    let library = CUPTI.library(dir);
    let tool = CUPTI.tool(dir, tool);
    let options = [
        "demo",
        "-q",
        "--steps",
        "1",
        "--tool",
        library.to_str().unwrap(),
    ];
    run(dir.gputrail(options).env("CUDA_INJECTION64_PATH", tool)).well()
}

/// The number of lines that begin with `start`.
fn lines(text: &str, start: &str) -> usize {
    text.lines().filter(|line| line.starts_with(start)).count()
}

#[test]
fn the_sample_of_asynchronous_records_prints_those_of_opencl() {
    needs!(the_sample_of_asynchronous_records_prints_those_of_opencl:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let ended = preloaded(&dir, "cupti_activity_trace_async");
    assert_eq!(ended.stderr, "");
    let text = ended.text();
    assert_eq!(lines(&text, "CONCURRENT KERNEL \"work\" ["), 20, "{text}");
    assert_eq!(lines(&text, "DEVICE "), 1, "{text}");
    assert_eq!(lines(&text, "CONTEXT "), 1, "{text}");
    assert!(
        lines(&text, "DRIVER clEnqueueNDRangeKernel [") == 20,
        "{text}"
    );
    assert!(lines(&text, "NVLINK is not traced here") == 1, "{text}");
    assert!(text.ends_with("0 records were dropped\n"), "{text}");
}

#[test]
fn the_sample_of_asynchronous_records_prints_those_of_the_simulated_gpu() {
    needs!(the_sample_of_asynchronous_records_prints_those_of_the_simulated_gpu: Need::OpenClToolchain);
    let dir = TestDir::new();
    let ended = simulated(&dir, "cupti_activity_trace_async");
    let text = ended.text();
    for start in [
        "CONCURRENT KERNEL \"",
        "MEMCPY HtoD [",
        "MEMCPY2 PtoP [",
        "MEMSET ",
        "RUNTIME simLaunchKernel [",
        "SYNCHRONIZATION ",
        "STREAM ",
        "DEVICE ",
        "CONTEXT ",
    ] {
        assert!(lines(&text, start) > 0, "{start}: {text}");
    }
    assert!(text.ends_with("0 records were dropped\n"), "{text}");
}

#[test]
fn every_kind_that_the_simulated_gpu_has_comes_with_all_callbacks() {
    needs!(every_kind_that_the_simulated_gpu_has_comes_with_all_callbacks: Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = CUPTI.library(&dir);
    let include = format!("-I{}", repository("tools/abi/cupti/include").display());
    let source = repository("tests/programs/abi/cupti_simulated.c");
    let options = ["-shared", "-fPIC", "-Wl,--as-needed", &include];
    let tool = compiled(&dir, C, &options, &source, "libsimulated.so");
    let library = library.to_str().unwrap();
    let options = ["demo", "-q", "--steps", "1", "--tool", library];
    let options = [&options[..], &["--environment-period", "1ms"]].concat();
    let ended = run(dir
        .gputrail(options.iter())
        .env("CUDA_INJECTION64_PATH", &tool))
    .well();
    let text = ended.text();
    assert!(text.ends_with("passed\n"), "{text}");
    let kinds = [
        1, 2, 5, 8, 9, 10, 11, 14, 15, 16, 18, 19, 20, 22, 24, 25, 26, 27, 28, 29, 30, 31, 32, 37,
        38, 39, 40, 45, 46,
    ];
    let kinds = kinds.map(|kind| format!("kind {kind}: "));
    let domains = [2, 3, 4].map(|domain| format!("domain {domain}: "));
    // Contexts, streams, the initialisation, modules, graphs.
    let resources = [1, 3, 4, 5, 6, 7, 9, 10, 13, 15, 18, 19];
    let resources = resources.map(|id| format!("resource {id}: "));
    let waits = [1, 2].map(|id| format!("wait {id}: "));
    let all = kinds.iter().chain(&domains).chain(&resources).chain(&waits);
    for start in all {
        assert_eq!(lines(&text, start), 1, "{start}: {text}");
    }
}

/// A tool of `tests/programs/abi` on the simulated GPU, whose checks hold.
fn passes_on_the_simulated_gpu(tool: &str) {
    let dir = TestDir::new();
    let library = CUPTI.library(&dir);
    let tool = CUPTI.tool_of(&dir, "tests/programs/abi", tool);
    let options = ["demo", "-q", "--steps", "1", "--tool"];
    let mut command = dir.gputrail(options);
    command.arg(&library).env("CUDA_INJECTION64_PATH", &tool);
    let ended = run(&mut command).well();
    assert_eq!(ended.text(), "passed\n", "{}", ended.stderr);
}

#[test]
fn parameters_of_the_simulated_gpu_lead_to_what_its_calls_made() {
    needs!(parameters_of_the_simulated_gpu_lead_to_what_its_calls_made: Need::OpenClToolchain);
    passes_on_the_simulated_gpu("cupti_results");
}

#[test]
fn instructions_that_are_sampled_have_the_source_lines_of_their_code() {
    needs!(instructions_that_are_sampled_have_the_source_lines_of_their_code: Need::OpenClToolchain);
    passes_on_the_simulated_gpu("cupti_lines");
}

#[test]
fn counters_of_unified_memory_are_those_of_cuptis_document() {
    needs!(counters_of_unified_memory_are_those_of_cuptis_document: Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = CUPTI.library(&dir);
    let tool = CUPTI.tool_of(&dir, "tests/programs/abi", "cupti_simulated");
    let counters = [1, 2, 3, 4, 5, 6, 7, 8].map(|kind| format!("counter {kind}: "));
    for without in [None, Some(2), Some(5)] {
        let options = ["demo", "-q", "--steps", "4", "--tool"];
        let mut command = dir.gputrail(options);
        command.arg(&library);
        command.env("CUDA_INJECTION64_PATH", &tool);
        // CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER
        command.env("ONLY_KIND", "25");
        if let Some(without) = without {
            command.env("WITHOUT_COUNTER", without.to_string());
        }
        let text = run(&mut command).well().text();
        assert!(text.ends_with("passed\n"), "{text}");
        for (kind, counter) in (1..).zip(&counters) {
            let expected = usize::from(without != Some(kind));
            assert_eq!(lines(&text, counter), expected, "{counter}: {text}");
        }
    }
}

/// The kinds of records that `cupti_walk.c` has seen, which must have found nothing wrong.
fn walked(ended: &Ended) -> Vec<u32> {
    let text = ended.text();
    assert!(text.ends_with("passed\n"), "{text}");
    let kinds = text.lines().filter_map(|line| line.strip_prefix("kind "));
    kinds.map(|kind| kind.parse().unwrap()).collect()
}

#[test]
fn no_field_of_a_record_is_garbage_in_any_layout() {
    needs!(no_field_of_a_record_is_garbage_in_any_layout: Need::Pocl, Need::OpenClToolchain);
    for (number, abi) in LAYOUTS {
        let dir = TestDir::new();
        let library = abi.library(&dir);
        let include = format!("-I{}", repository("tools/abi/cupti/include").display());
        let layout = format!("-DCUPTI_GPUTRAIL_LAYOUT={number}");
        let source = repository("tests/programs/abi/cupti_walk.c");
        let options = ["-shared", "-fPIC", "-Wl,--as-needed", &include, &layout];
        let tool = compiled(&dir, C, &options, &source, "libwalk.so");
        let options = ["demo", "-q", "--steps", "1", "--environment-period", "1ms"];
        let options = [&options[..], &["--tool", library.to_str().unwrap()]].concat();
        let ended = run(dir.gputrail(options).env("CUDA_INJECTION64_PATH", &tool)).well();
        let kinds = walked(&ended);
        for kind in [
            1, 2, 5, 8, 9, 10, 14, 18, 19, 20, 22, 25, 26, 27, 28, 30, 31, 37, 38, 39, 40, 45, 46,
        ] {
            assert!(
                kinds.contains(&kind),
                "{kind} in layout {number}: {kinds:?}"
            );
        }
        let program = dir.program("lives");
        let mut command = dir.preloaded(Driver::Threaded, &library, &program, &["20"]);
        let kinds = walked(&run(command.env("CUDA_INJECTION64_PATH", &tool)).well());
        // The runtime's calls, too: functions of CUDA that do the same.
        for kind in [4, 5, 8, 9, 10] {
            assert!(
                kinds.contains(&kind),
                "{kind} in layout {number}: {kinds:?}"
            );
        }
    }
}

#[test]
fn what_tools_of_today_ask_first_is_answered_in_every_layout() {
    needs!(what_tools_of_today_ask_first_is_answered_in_every_layout: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        for (number, abi) in LAYOUTS {
            let layout = format!("-DCUPTI_GPUTRAIL_LAYOUT={number}");
            let compiler = [compiler, &[layout.as_str()]].concat();
            let source = "tests/programs/abi/cupti_today.c";
            let program = abi.program(&dir, &compiler, source, true);
            let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
            let told = (ended.text(), ended.stderr.clone());
            assert_eq!(told, ("passed\n".to_owned(), String::new()), "{number}");
        }
    }
}

#[test]
fn functions_of_a_subscriber_and_switches_answer_in_every_layout() {
    needs!(functions_of_a_subscriber_and_switches_answer_in_every_layout:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for (number, abi) in LAYOUTS {
        let layout = format!("-DCUPTI_GPUTRAIL_LAYOUT={number}");
        let compiler = [if number == 12 { CPP } else { C }, &[layout.as_str()]].concat();
        let source = "tests/programs/abi/cupti_subscriber.c";
        let program = abi.program(&dir, &compiler, source, true);
        let ended = run(&mut dir.untraced(Driver::Threaded, &program, &[]));
        let told = (ended.text(), ended.stderr.clone());
        assert_eq!(told, ("passed\n".to_owned(), String::new()), "{number}");
    }
}

/// The functions of CUPTI that a library exports.
fn exported(library: &std::path::Path) -> std::collections::BTreeSet<String> {
    let ended = run(Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library))
    .well();
    let text = ended.text();
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    let names = names.map(|name| name.split('@').next().unwrap_or(name));
    let functions = names.filter(|name| name.starts_with("cupti"));
    functions.map(str::to_owned).collect()
}

/// A program that is linked with any function of a header of NVIDIA's starts.
#[test]
fn every_function_that_nvidias_headers_name_and_its_libraries_have_is_there() {
    needs!(every_function_that_nvidias_headers_name_and_its_libraries_have_is_there:
        Need::Cupti, Need::Program("nm"));
    let dir = TestDir::new();
    let here = exported(&CUPTI.library(&dir));
    for (version, folder, library) in [
        ("11.8.87", "cuda_cupti", "libcupti.so.11.8"),
        ("12.9.79", "cuda_cupti", "libcupti.so.12"),
        ("13.0.85", "cu13", "libcupti.so.13"),
        ("13.5.25", "cu13", "libcupti.so.13"),
    ] {
        let folder = tools()
            .join("cupti")
            .join(version)
            .join("nvidia")
            .join(folder);
        let there = exported(&folder.join("lib").join(library));
        assert!(there.len() > 120, "{version}: {}", there.len());
        // Headers of CUPTI, and of the folders of two directives in it.
        let mut named = String::new();
        for include in ["include", "include/Openacc", "include/Openmp"] {
            for header in std::fs::read_dir(folder.join(include)).unwrap() {
                let header = header.unwrap().path();
                let name = header.file_name().unwrap().to_string_lossy().into_owned();
                if name.starts_with("cupti") {
                    named += &String::from_utf8_lossy(&std::fs::read(&header).unwrap());
                }
            }
        }
        let named = named.replace(" (", "(");
        let in_headers = |name: &&String| named.contains(&format!("{name}("));
        let missing = there.difference(&here).filter(in_headers);
        let missing: Vec<&String> = missing.collect();
        assert!(missing.is_empty(), "of {version}: {missing:?}");
    }
}

#[test]
fn a_variable_chooses_the_layout() {
    needs!(a_variable_chooses_the_layout: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = CUPTI.library(&dir);
    let include = format!("-I{}", repository("tools/abi/cupti/include").display());
    let source = repository("tests/programs/abi/cupti_walk.c");
    let layout = "-DCUPTI_GPUTRAIL_LAYOUT=11";
    let options = ["-shared", "-fPIC", "-Wl,--as-needed", &include, layout];
    let tool = compiled(&dir, C, &options, &source, "libwalk.so");
    let program = dir.program("lives");
    let mut command = dir.preloaded(Driver::Threaded, &library, &program, &["2"]);
    command
        .env("CUDA_INJECTION64_PATH", &tool)
        .env("CUPTI_GPUTRAIL_LAYOUT", "11");
    let ended = run(&mut command).well();
    assert!(walked(&ended).contains(&10), "{}", ended.text());
    // Another value is told, and the library's own layout remains.
    let ended = run(command.env("CUPTI_GPUTRAIL_LAYOUT", "9"));
    assert!(ended.text().contains("cuptiGetVersion"), "{}", ended.text());
    let told = "libcupti: CUPTI_GPUTRAIL_LAYOUT=9 is not known: it is 10, 11, 12 or 13\n";
    assert_eq!(ended.stderr, told);
}

#[test]
fn proton_finds_its_kernels_in_their_scopes() {
    needs!(proton_finds_its_kernels_in_their_scopes:
        Need::Pocl, Need::OpenClToolchain, Need::Proton);
    let dir = TestDir::new();
    let library = CUPTI.library(&dir);
    std::fs::copy(&library, dir.join("libcupti.so")).unwrap();
    let source = |name: &str| repository("tests/programs/abi").join(name);
    let options = ["-shared", "-fPIC"];
    let launches = source("proton_launches.c");
    let launches = compiled(&dir, C, &options, &launches, "liblaunches.so");
    let driver = source("proton_driver.c");
    compiled(&dir, C, &options, &driver, "libcuda.so.1");
    let proton = tools().join("proton/libproton.so");
    let mut command = dir.untraced(Driver::Threaded, "python3", &[]);
    command
        .arg(source("proton.py"))
        .args([&proton, &launches])
        .arg("profile")
        .env("TRITON_CUPTI_LIB_PATH", dir.path())
        .env("LD_LIBRARY_PATH", dir.path());
    run(&mut command).well();
    let text = std::fs::read_to_string(dir.join("profile.hatchet")).unwrap();
    let profile: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    for scope in profile[0]["children"].as_array().unwrap() {
        for kernel in scope["children"].as_array().unwrap() {
            assert!(
                kernel["metrics"]["time (ns)"].as_u64().unwrap() > 0,
                "{text}"
            );
            let name = |of: &serde_json::Value| of["frame"]["name"].as_str().unwrap().to_owned();
            let count = kernel["metrics"]["count"].as_u64().unwrap();
            found.push((name(scope), name(kernel), count));
        }
    }
    found.sort();
    let expected = [("adds", "add", 7), ("muls", "mul", 5)];
    let expected = expected.map(|(scope, name, count)| (scope.to_owned(), name.to_owned(), count));
    assert_eq!(found, expected, "{text}");
}

#[test]
fn the_sample_of_callbacks_times_functions_and_kernels() {
    needs!(the_sample_of_callbacks_times_functions_and_kernels: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let ended = preloaded(&dir, "cupti_callback_timestamp");
    assert_eq!(ended.stderr, "");
    let text = ended.text();
    assert_eq!(lines(&text, "clEnqueueNDRangeKernel work: "), 20, "{text}");
    assert!(lines(&text, "clFinish took ") > 0, "{text}");
    let text = simulated(&dir, "cupti_callback_timestamp").text();
    assert!(lines(&text, "simLaunchKernel ") > 0, "{text}");
}

#[test]
fn a_library_that_cannot_be_injected_is_told() {
    needs!(a_library_that_cannot_be_injected_is_told: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = CUPTI.library(&dir);
    CUPTI.tool(&dir, "cupti_callback_timestamp");
    let program = dir.program("lives");
    let mut command = dir.untraced(Driver::Threaded, &program, &["1"]);
    command
        .env("LD_PRELOAD", library)
        .env("CUDA_INJECTION64_PATH", "/nowhere.so");
    let ended = run(&mut command).well();
    let start = "libcupti: CUDA_INJECTION64_PATH: ";
    assert!(ended.stderr.starts_with(start), "{}", ended.stderr);
}

#[test]
fn a_sample_that_is_built_with_nvidias_headers_prints_the_same() {
    needs!(a_sample_that_is_built_with_nvidias_headers_prints_the_same:
        Need::Pocl, Need::OpenClToolchain, Need::Cupti);
    let dir = TestDir::new();
    let library = CUPTI.library(&dir);
    CUPTI.tool(&dir, "cupti_activity_trace_async");
    let cupti = tools().join("cupti");
    // A header of C that includes one of C++, without need.
    std::fs::write(dir.join("string"), "").unwrap();
    let tool = dir.join("libtheirs.so");
    let mut compiler = Command::new("cc");
    compiler
        .args([
            "-std=c99",
            "-D_GNU_SOURCE",
            "-shared",
            "-fPIC",
            "-include",
            "cuda.h",
        ])
        .arg("-I")
        .arg(cupti.join("11.8.87/nvidia/cuda_cupti/include"))
        .arg("-I")
        .arg(cupti.join("13.5.25/nvidia/cu13/include"))
        .arg("-I")
        .arg(dir.path())
        .arg("-o")
        .arg(&tool)
        .arg(repository("examples/abi/cupti_activity_trace_async.c"));
    run(&mut compiler).well();
    let program = dir.program("lives");
    let mut command = dir.preloaded(Driver::Threaded, library, &program, &["20"]);
    command.env("CUDA_INJECTION64_PATH", tool);
    let text = run(&mut command).well().text();
    assert_eq!(lines(&text, "CONCURRENT KERNEL \"work\" ["), 20, "{text}");
    assert!(text.contains("    grid ["), "{text}");
    assert!(text.ends_with("0 records were dropped\n"), "{text}");
}

#[test]
fn a_recorded_program_has_its_records_of_cupti_too() {
    needs!(a_recorded_program_has_its_records_of_cupti_too: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = CUPTI.library(&dir);
    let tool = CUPTI.tool(&dir, "cupti_activity_trace_async");
    let program = dir.program("lives");
    let mut command = dir.gputrail(["record", "-q", "-o", "out.pftrace", "--tool"]);
    command.arg(library).arg("--").arg(program).arg("5");
    on_pocl(&mut command, Driver::Threaded);
    let ended = run(command.env("CUDA_INJECTION64_PATH", tool)).well();
    let text = ended.text();
    assert_eq!(lines(&text, "CONCURRENT KERNEL \"work\" ["), 5, "{text}");
    // Each thread that has called has its name told once: the main thread, and perhaps threads of the runtime.
    let named: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("NAME of thread "))
        .collect();
    let main = named.iter().filter(|line| {
        let mut words = line.split([' ', ':']);
        let thread = words.next();
        thread == words.nth(2)
    });
    assert_eq!(main.count(), 1, "{text}");
    let mut told_once = named.clone();
    told_once.sort_unstable();
    told_once.dedup();
    assert_eq!(told_once.len(), named.len(), "{text}");
    assert!(text.ends_with("0 records were dropped\n"), "{text}");
    assert!(dir.join("out.pftrace").exists());
}

#[test]
fn markers_of_nvtx_come_where_its_variable_names_the_library() {
    needs!(markers_of_nvtx_come_where_its_variable_names_the_library:
        Need::Pocl, Need::OpenClToolchain, Need::Nvtx);
    let dir = TestDir::new();
    let library = CUPTI.library(&dir);
    let tool = CUPTI.tool(&dir, "cupti_activity_trace_async");
    let program = dir.join("marked");
    let mut compiler = Command::new("cc");
    compiler
        .arg("-I")
        .arg(tools().join("nvtx/nvidia/cu13/include"))
        .arg("-o")
        .arg(&program)
        .arg(repository("tests/programs/abi/cupti_nvtx.c"))
        .arg("-ldl");
    run(&mut compiler).well();
    let mut command = dir.preloaded(Driver::Threaded, &library, &program, &[]);
    command
        .env("NVTX_INJECTION64_PATH", &library)
        .env("CUDA_INJECTION64_PATH", tool);
    let text = run(&mut command).well().text();
    // Starts, the moment, and ends, of the same numbers.
    let numbers = |flags: &str| {
        let found = text.lines().filter(|line| line.starts_with("MARKER "));
        let found = found.filter(|line| line.ends_with(flags));
        let numbers = found.map(|line| line.split(' ').nth(1).expect("a number").to_owned());
        numbers.collect::<Vec<String>>()
    };
    // The hold of the lock begins as a range does.
    assert_eq!(numbers("flags 2"), ["1", "2", "4", "7"], "{text}");
    assert_eq!(numbers("flags 1"), ["3"], "{text}");
    assert_eq!(numbers("flags 4"), ["2", "4", "1"], "{text}");
    // A lock that is waited for in vain, then held, and released.
    let (start, end) = (1 << 1, 1 << 2);
    for (flags, expected) in [
        (start | 1 << 3, &["5", "6"][..]),
        (end | 1 << 5, &["5"]),
        (end | 1 << 4, &["6"]),
        (end | 1 << 6, &["7"]),
    ] {
        assert_eq!(numbers(&format!("flags {flags}")), expected, "{text}");
    }
    let data = "MARKER_DATA 2, color 0xff112233, category 0, payload 42\n";
    assert!(text.contains(data), "{text}");
}

#[test]
fn runtimes_of_openacc_and_openmp_have_records() {
    needs!(runtimes_of_openacc_and_openmp_have_records:
        Need::OpenMp, Need::OpenClToolchain, Need::Program("gcc"));
    let dir = TestDir::new();
    let library = CUPTI.library(&dir);
    let include = format!("-I{}", repository("tools/abi/cupti/include").display());
    let source = repository("tests/programs/abi/cupti_directives.c");
    let (folder, file) = (
        format!("-L{}", dir.path().display()),
        library.file_name().unwrap(),
    );
    let link = format!("-l:{}", file.to_str().unwrap());
    let options = [
        "-shared",
        "-fPIC",
        "-Wno-pedantic",
        "-Wl,--no-as-needed",
        &include,
        &folder,
        &link,
    ];
    let compiler = ["cc", "-std=gnu11"];
    let tool = compiled(&dir, &compiler, &options, &source, "libdirectives.so");
    let program = crate::directives::compiled(&dir, "accelerated", &["-fopenacc"], &["-fopenacc"]);
    let mut command = dir.untraced(Driver::Threaded, &program, &[]);
    let ended = run(command.env("ACC_PROFLIB", &tool)).well();
    // The device is initialised, two constructs, an update, entered and left data; how often memory is made is the runtime's.
    let text = ended.text();
    let expected = "499500\nOpenACC: 1 of 1 2 of 9 1 of 10 1 of 11 1 of 12";
    assert!(text.starts_with(expected), "{text}");
    assert!(
        text.contains("\nOpenMP:\n0 wrong, some correlated, "),
        "{text}"
    );
    let program = crate::directives::compiled(&dir, "regions", &["-fopenmp"], &["-l:libomp.so.5"]);
    let mut command = dir.untraced(Driver::Threaded, &program, &[]);
    let text = run(command.env("OMP_TOOL_LIBRARIES", &tool)).well().text();
    assert!(text.contains("\nOpenACC:\nOpenMP: 4 of 1 "), "{text}");
    assert!(text.contains(" of 5 "), "{text}");
    assert!(
        text.contains("\n0 wrong, none correlated, no bytes\n"),
        "{text}"
    );
}

#[test]
fn without_gputrails_library_cupti_is_not_initialized() {
    needs!(without_gputrails_library_cupti_is_not_initialized: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = CUPTI.program(&dir, C, "tests/programs/abi/cupti_alone.c", true);
    std::fs::remove_file(dir.join("libgputrail.so.0")).unwrap();
    let mut command = dir.untraced(Driver::Threaded, &program, &[]);
    let ended = run(command.env("LD_LIBRARY_PATH", dir.path())).well();
    assert_eq!(ended.text(), "0 15 15 15 15 15 15 15\n");
    // Said once, of many calls.
    let told = "libcupti: libgputrail.so.0 is not found ";
    assert!(ended.stderr.starts_with(told), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}
