//! The libraries with the names of other profilers' APIs: programs in C and C++ that know them alone.

use std::path::{Path, PathBuf};
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::{Driver, on_pocl};
use gputrail_harness::program::{Ended, run};
use gputrail_harness::repository;

use crate::c_api::{C, CPP, compiled};
use crate::command::TestDir;
use crate::tools::built;

/// An API: the folder of its headers in `tools/abi`, and the file of its library.
pub struct Abi {
    pub name: &'static str,
    pub library: &'static str,
}

const GPUPERFAPI: Abi = Abi {
    name: "gpuperfapi",
    library: "libGPUPerfAPICL.so",
};

const ROCPROFILER: Abi = Abi {
    name: "rocprofiler",
    library: "librocprofiler64.so.1",
};

impl Abi {
    /// Puts the library there.
    pub fn library(&self, dir: &TestDir) -> PathBuf {
        let library = dir.join(self.library);
        if !library.exists() {
            let (name, _) = self.library.split_once(".so").expect("a library");
            // The names of cargo's files have no hyphens.
            let file = format!("{}.so", name.replace('-', "_"));
            let made = PathBuf::from(built(&["--lib"], &file));
            if self.name == "cupti" {
                // The library finds its layout by the name of its own that the command gives it.
                let folder = made.parent().unwrap().to_str().unwrap();
                let options = ["library", "--api", self.name, "--built", folder, "written"];
                run(&mut dir.gputrail(options)).well();
                let written = dir.join("written/lib").join(self.library);
                std::fs::rename(written, &library).unwrap();
                std::fs::remove_dir_all(dir.join("written")).unwrap();
            } else {
                std::fs::copy(made, &library).unwrap();
            }
        }
        library
    }

    /// Compiles a program with the headers. The library lies beside it; it `is_linked` with it, or opens it.
    pub fn program(
        &self,
        dir: &TestDir,
        compiler: &[&str],
        source: &str,
        is_linked: bool,
    ) -> PathBuf {
        self.library(dir);
        let include = repository("tools/abi").join(self.name).join("include");
        let include = format!("-I{}", include.display());
        let (folder, file) = (
            format!("-L{}", dir.path().display()),
            format!("-l:{}", self.library),
        );
        let mut options = vec![include.as_str()];
        if is_linked {
            options.extend(["-Wl,--no-as-needed", &folder, &file]);
        }
        // What a program does not use is left out: gputrail's own library, say.
        options.push("-Wl,--as-needed");
        compiled(dir, compiler, &options, &repository(source), self.name)
    }

    /// Compiles a tool of `examples/abi`, which the library loads.
    pub fn tool(&self, dir: &TestDir, name: &str) -> PathBuf {
        self.tool_of(dir, "examples/abi", name)
    }

    /// Compiles a tool of `tests/programs/abi` that calls the functions as ROCm's header declares them.
    fn published_tool(&self, dir: &TestDir, name: &str) -> PathBuf {
        let include = repository("tools/abi").join(self.name).join("include");
        let include = format!("-I{}", include.display());
        let source = repository("tests/programs/abi")
            .join(name)
            .with_extension("c");
        let options = ["-shared", "-fPIC", "-DROCPROFILER_PUBLISHED", &include];
        compiled(dir, C, &options, &source, &format!("lib{name}.so"))
    }

    /// A tool of the library whose source is in `folder`.
    pub fn tool_of(&self, dir: &TestDir, folder: &str, name: &str) -> PathBuf {
        let include = repository("tools/abi").join(self.name).join("include");
        let include = format!("-I{}", include.display());
        let options = ["-shared", "-fPIC", "-Wl,--as-needed", &include];
        let source = repository(folder).join(name).with_extension("c");
        compiled(dir, C, &options, &source, &format!("lib{name}.so"))
    }
}

#[test]
fn rocprofiler_has_the_trace_of_the_simulated_gpu() {
    needs!(rocprofiler_has_the_trace_of_the_simulated_gpu: Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = ROCPROFILER.library(&dir);
    let tool = ROCPROFILER.tool_of(&dir, "tests/programs/abi", "rocprofiler_trace");
    let options = ["demo", "-q", "--steps", "1", "--tool"];
    let mut command = dir.gputrail(options);
    let ended = run(command.arg(library).env("ROCP_TOOL_LIB", tool)).well();
    let text = ended.text();
    assert!(text.ends_with("passed\n"), "{text}");
}

#[test]
fn every_function_of_gpuperfapi_answers_as_its_guide_says() {
    needs!(every_function_of_gpuperfapi_answers_as_its_guide_says: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let source = "tests/programs/abi/gpuperfapi.c";
        let program = GPUPERFAPI.program(&dir, compiler, source, true);
        for driver in [Driver::Basic, Driver::Threaded] {
            let ended = run(&mut dir.untraced(driver, &program, &[])).well();
            assert_eq!(ended.text(), "passed\n");
            assert_eq!(ended.stderr, "");
        }
    }
}

#[test]
fn the_program_of_gpuperfapis_guide_opens_the_library_and_writes_its_file() {
    needs!(the_program_of_gpuperfapis_guide_opens_the_library_and_writes_its_file:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let source = "examples/abi/gpuperfapi.c";
    let program = GPUPERFAPI.program(&dir, C, source, false);
    let ended = run(dir
        .untraced(Driver::Threaded, &program, &["results.csv"])
        .env("LD_LIBRARY_PATH", dir.path()))
    .well();
    assert_eq!(ended.text(), "4 sessions\n");
    let expected = "message: Logging callback registered successfully.\n";
    assert!(ended.stderr.starts_with(expected), "{}", ended.stderr);
    let file = std::fs::read_to_string(dir.join("results.csv")).unwrap();
    let mut lines = file.lines();
    let headings: Vec<&str> = lines.next().unwrap().split(", ").collect();
    let clock = headings
        .iter()
        .position(|name| *name == "TASK_CLOCK")
        .unwrap();
    let mut samples = 0;
    for line in lines {
        let (identifier, values) = line.split_once(", ").unwrap();
        let session = samples / 2 + 1;
        assert_eq!(
            identifier,
            format!("session: {session}; sample: {}", samples % 2)
        );
        let values: Vec<&str> = values.split(',').collect();
        assert!(values[clock - 1].parse::<u64>().unwrap() > 0, "{line}");
        samples += 1;
    }
    assert_eq!(samples, 8);
}

#[test]
fn without_gputrails_library_gpuperfapi_says_what_to_do() {
    needs!(without_gputrails_library_gpuperfapi_says_what_to_do: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let source = "examples/abi/gpuperfapi.c";
    let program = GPUPERFAPI.program(&dir, C, source, false);
    std::fs::remove_file(dir.join("libgputrail.so.0")).unwrap();
    let ended = run(dir
        .untraced(Driver::Threaded, &program, &[])
        .env("LD_LIBRARY_PATH", dir.path()));
    assert_eq!(ended.code(), 1);
    let told = "error: GPA_Initialize: libgputrail.so.0 is not found (";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("`gputrail library libgputrail.so.0`"),
        "{}",
        ended.stderr
    );
}

#[test]
fn without_gputrails_library_rocprofiler_is_not_initialized() {
    needs!(without_gputrails_library_rocprofiler_is_not_initialized: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let compiler = [C, &["-DOF_ROCPROFILER"]].concat();
    let program = ROCPROFILER.program(&dir, &compiler, "tests/programs/abi/threads.c", true);
    std::fs::remove_file(dir.join("libgputrail.so.0")).unwrap();
    let ended = run(dir
        .untraced(Driver::Threaded, &program, &[])
        .env("LD_LIBRARY_PATH", dir.path()));
    assert_eq!(ended.code(), 1);
    let text = ended.text();
    let told = "0x100b rocprofiler_get_info: libgputrail.so.0 is not found (";
    assert!(text.starts_with(told), "{text}");
}

#[test]
fn every_function_of_rocprofiler_answers_as_its_document_says() {
    needs!(every_function_of_rocprofiler_answers_as_its_document_says: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let source = "tests/programs/abi/rocprofiler.c";
        let program = ROCPROFILER.program(&dir, compiler, source, true);
        for driver in [Driver::Basic, Driver::Threaded] {
            let ended = run(&mut dir.untraced(driver, &program, &[])).well();
            assert_eq!(ended.text(), "passed\n");
            // The first of two groups that cannot be used.
            let told = "librocprofiler64: the group that the dispatch callback returned for the kernel \"triple\" does not \
                count it: this is no context that is open\n";
            assert_eq!(ended.stderr, told);
        }
    }
}

#[test]
fn programs_of_rocms_header_call_rocprofiler_as_it_declares() {
    needs!(programs_of_rocms_header_call_rocprofiler_as_it_declares: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let compiler = [compiler, &["-DROCPROFILER_PUBLISHED"]].concat();
        let source = "tests/programs/abi/rocprofiler_published.c";
        let program = ROCPROFILER.program(&dir, &compiler, source, true);
        for driver in [Driver::Basic, Driver::Threaded] {
            let ended = run(&mut dir.untraced(driver, &program, &[])).well();
            assert_eq!(ended.text(), "passed\n");
            assert_eq!(ended.stderr, "");
        }
    }
}

/// The tool that sets callbacks and changes properties.
fn tool_of_properties(dir: &TestDir) -> PathBuf {
    ROCPROFILER.published_tool(dir, "rocprofiler_properties")
}

#[test]
fn either_the_recording_counts_or_a_tool_of_rocprofiler() {
    needs!(either_the_recording_counts_or_a_tool_of_rocprofiler: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let (library, tool) = (ROCPROFILER.library(&dir), tool_of_properties(&dir));
    let program = dir.program("lives");
    let record = |options: &[&str]| {
        let mut command = dir.record_with(options, Driver::Threaded, &program, &["20"]);
        command.env("ROCP_TOOL_LIB", &tool);
        command
    };
    let counters = ["--counters", "TASK_CLOCK"];
    // The recording begins before its tools are loaded.
    let options = [&counters[..], &["--tool", library.to_str().unwrap()]].concat();
    let text = run(&mut record(&options)).well().text();
    let refused = "rocprofiler_set_queue_callbacks: the recording of this process collects counters: only one context can\n\
        0 dispatches, 0 records, 0 queues, ";
    assert!(text.starts_with(refused), "{text}");
    // A preloaded library is there before the recording begins.
    let ended = run(record(&counters).env("LD_PRELOAD", &library)).well();
    let text = ended.text();
    assert!(text.contains("20 dispatches, 20 records, "), "{text}");
    let refused = "MISSING: the recording has no counters: a tool collects counters in this process, and only one context";
    assert!(ended.stderr.contains(refused), "{}", ended.stderr);
}

#[test]
fn properties_of_a_rocprofiler_tool_hold_for_callbacks_that_are_set() {
    needs!(properties_of_a_rocprofiler_tool_hold_for_callbacks_that_are_set: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let (library, tool) = (ROCPROFILER.library(&dir), tool_of_properties(&dir));
    let program = dir.program("lives");
    for (property, counts) in [
        ("none", "20 dispatches, 20 records, 1 queues, "),
        ("timestamp_on", "20 dispatches, 0 records, 1 queues, "),
        ("intercept_mode", "0 dispatches, 0 records, 0 queues, "),
    ] {
        let mut command = dir.preloaded(Driver::Threaded, &library, &program, &["20"]);
        command
            .env("ROCP_TOOL_LIB", &tool)
            .env("PROPERTY", property);
        let text = run(&mut command).well().text();
        let sentence = text
            .strip_prefix(counts)
            .unwrap_or_else(|| panic!("{property}: {text}"));
        assert!(sentence.starts_with("rocprofiler_group_count: "), "{text}");
    }
}

#[test]
fn the_first_lines_of_the_page_about_vendors_apis_test_a_tool_without_a_gpu() {
    needs!(the_first_lines_of_the_page_about_vendors_apis_test_a_tool_without_a_gpu:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let page = std::fs::read_to_string(repository("docs/apis.md")).unwrap();
    let block = page
        .split("```sh\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    // The lines that make the command and the library. Those that cargo has made for this test take their place.
    let (making, lines): (Vec<&str>, Vec<&str>) = block.lines().partition(|line| {
        line.starts_with("sudo ") || line.starts_with("cargo ") || line.starts_with("export ")
    });
    assert_eq!((making.len(), lines.len()), (3, 7), "{block}");
    // The workflow runs the same commands; the command that pip installs carries the library.
    let workflow = std::fs::read_to_string(repository("examples/ci/cupti-without-a-gpu.yml"));
    let workflow = workflow.unwrap();
    for line in &lines {
        let installed = line.replace(" --built target/release", "");
        assert!(workflow.contains(&installed), "{line}");
    }
    let library = PathBuf::from(built(&["--lib"], "libcupti.so"));
    let made = library.parent().unwrap().display().to_string();
    let lines = lines.join("\n").replace("target/release", &made);
    let command = Path::new(env!("CARGO_BIN_EXE_gputrail"));
    std::os::unix::fs::symlink(repository("examples"), dir.join("examples")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("sh");
    on_pocl(&mut shell, Driver::Threaded)
        .args(["-ec", &lines])
        .current_dir(dir.path())
        .env("CUDA_INJECTION64_PATH", "./libtool.so")
        .env(
            "PATH",
            format!("{}:{path}", command.parent().unwrap().display()),
        )
        .env("XDG_CACHE_HOME", dir.join("cache"));
    let ended = run(&mut shell).well();
    let expected = format!("export LD_LIBRARY_PATH={}", dir.join("sdk/lib").display());
    assert!(ended.text().starts_with(&expected), "{}", ended.text());
    // A default build says how to get a library.
    let refused = run(&mut dir.gputrail(["library", "--api", "rocprofiler", "sdk"]));
    let told = "`cargo build --release -p gputrail-abi-rocprofiler`";
    assert!(refused.stderr.contains(told), "{}", refused.stderr);
    let refused = run(&mut dir.gputrail(["library", "--api", "cupti", "libgputrail.so"]));
    let told = "libgputrail.so: --api writes several files: name a folder";
    assert!(refused.stderr.contains(told), "{}", refused.stderr);
}

#[test]
fn the_libraries_of_all_vendors_apis_lie_in_one_folder_with_their_headers() {
    needs!(the_libraries_of_all_vendors_apis_lie_in_one_folder_with_their_headers: Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = PathBuf::from(built(&["--lib"], "libcupti.so"));
    let made = library.parent().unwrap().to_str().unwrap();
    let mut arguments = vec!["library", "--built", made, "sdk"];
    let apis = ["cupti", "gpuperfapi", "rocprofiler", "rocprofiler-sdk"];
    arguments.extend(apis.iter().flat_map(|api| ["--api", api]));
    run(&mut dir.gputrail(arguments)).well();
    let source = "#include <GPUPerfAPI.h>\n#include <rocprofiler.h>\n#include <rocprofiler-sdk/rocprofiler.h>\n\
        #include <stdio.h>\nint main(void) {\n    uint32_t major = 0;\n    \
        rocprofiler_get_version(&major, NULL, NULL);\n    \
        printf(\"%s %u %u\\n\", GPA_GetStatusAsStr(GPA_STATUS_OK), rocprofiler_version_major(), major);\n    return 0;\n}\n";
    std::fs::write(dir.join("all.c"), source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.current_dir(dir.path());
    let options = "-std=gnu11 -Isdk/include -o all all.c -Lsdk/lib -lGPUPerfAPICL -lrocprofiler64 -lrocprofiler-sdk";
    run(compiler.args(options.split(' '))).well();
    let mut all = Command::new(dir.join("all"));
    let ended = run(all.env("LD_LIBRARY_PATH", dir.join("sdk/lib"))).well();
    assert_eq!(ended.text(), "GPA_STATUS_OK 8 1\n");
    // CUPTI's name too: a program that is linked with it looks for this one.
    let names = run(Command::new("readelf")
        .arg("-d")
        .arg(dir.join("sdk/lib/libcupti.so")))
    .well();
    assert!(names.text().contains("[libcupti.so."), "{}", names.text());
}

const CUPTI: Abi = Abi {
    name: "cupti",
    library: "libcupti.so.13",
};

#[test]
fn records_of_rocprofiler_belong_to_the_tool_that_frees_them() {
    needs!(records_of_rocprofiler_belong_to_the_tool_that_frees_them: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = ROCPROFILER.library(&dir);
    let tool = ROCPROFILER.published_tool(&dir, "rocprofiler_owner");
    let program = dir.program("lives");
    for (when, counts) in [
        ("end", "20 timed, 0 untouched"),
        ("callback", "0 timed, 20 untouched"),
    ] {
        let mut command = dir.preloaded(Driver::Threaded, &library, &program, &["20"]);
        command.env("ROCP_TOOL_LIB", &tool).env("WHEN", when);
        let ended = run(&mut command).well();
        let expected = format!("20 dispatches, 20 with code, {counts}\n");
        assert!(ended.text().contains(&expected), "{when}: {}", ended.text());
        assert_eq!(ended.stderr, "", "{when}");
    }
}

#[test]
fn an_hsa_runtime_is_told_whether_rocprofiler_has_loaded_its_tool() {
    needs!(an_hsa_runtime_is_told_whether_rocprofiler_has_loaded_its_tool: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let library = ROCPROFILER.library(&dir);
    let tool = tool_of_properties(&dir);
    let source = repository("tests/programs/abi/rocprofiler_hsa.c");
    let options = ["-Wno-pedantic", "-Wl,--as-needed", "-ldl"];
    let program = compiled(&dir, C, &options, &source, "hsa");
    for (arguments, expected, told) in [
        (
            &[][..],
            "priority 25, loaded 1\n3 dispatches, 3 records, 1 queues, ",
            "",
        ),
        (
            &["late"],
            "priority 25, loaded 0\n",
            "librocprofiler64: ROCP_TOOL_LIB: ",
        ),
    ] {
        let mut command = dir.untraced(Driver::Threaded, &program, arguments);
        let ended = run(command
            .env("HSA_TOOLS_LIB", &library)
            .env("ROCP_TOOL_LIB", &tool))
        .well();
        assert!(ended.text().starts_with(expected), "{}", ended.text());
        assert!(ended.stderr.starts_with(told), "{}", ended.stderr);
        assert_eq!(ended.stderr.is_empty(), told.is_empty(), "{}", ended.stderr);
    }
}

#[test]
fn an_exception_that_leaves_a_callback_is_told_and_ends_the_program_as_cpp_does() {
    needs!(an_exception_that_leaves_a_callback_is_told_and_ends_the_program_as_cpp_does:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("lives");
    for (abi, macros, variable, set_by) in [
        (
            &ROCPROFILER,
            "-DROCPROFILER_PUBLISHED",
            "ROCP_TOOL_LIB",
            "rocprofiler_set_queue_callbacks",
        ),
        (
            &CUPTI,
            "-DOF_CUPTI",
            "CUDA_INJECTION64_PATH",
            "cuptiSubscribe",
        ),
    ] {
        let library = abi.library(&dir);
        let include = repository("tools/abi").join(abi.name).join("include");
        let include = format!("-I{}", include.display());
        let source = repository("tests/programs/abi/throwing.cpp");
        let compiler = [CPP, &["-Wno-pedantic"]].concat();
        let options = ["-shared", "-fPIC", macros, &include];
        let tool = compiled(&dir, &compiler, &options, &source, "libthrowing.so");
        let mut command = dir.preloaded(Driver::Threaded, &library, &program, &["20"]);
        let ended = run(command.env(variable, &tool));
        let (name, _) = abi.library.split_once(".so").expect("a library");
        let told = format!(
            "{name}: an exception left the function throwing_callback of {}, set by {set_by}, which ends the program\n",
            tool.display()
        );
        let what = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  thrown in a callback\n";
        assert_eq!(ended.stderr, told + what);
        assert_eq!(ended.signal(), Some(libc::SIGABRT));
    }
}

#[test]
fn two_threads_use_gpuperfapi_and_rocprofiler() {
    needs!(two_threads_use_gpuperfapi_and_rocprofiler: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let of_rocprofiler = [C, &["-DOF_ROCPROFILER"]].concat();
    for (abi, compiler) in [(GPUPERFAPI, C), (ROCPROFILER, &of_rocprofiler)] {
        let program = abi.program(&dir, compiler, "tests/programs/abi/threads.c", true);
        // Before the folders of cargo, where the library has none beside it.
        let ended = run(dir
            .untraced(Driver::Threaded, &program, &[])
            .env("LD_LIBRARY_PATH", dir.path()))
        .well();
        assert_eq!(ended.text(), "passed\n");
        assert_eq!(ended.stderr, "");
    }
}

/// Runs a program that knows nothing of ROCProfiler with a tool of `examples/abi`: 20 kernels called `work`.
fn preloaded(dir: &TestDir, tool: &str, environment: &[(&str, &str)]) -> Ended {
    let library = ROCPROFILER.library(dir);
    let tool = ROCPROFILER.tool(dir, tool);
    let program = dir.program("lives");
    let mut command = dir.preloaded(Driver::Threaded, library, &program, &["20"]);
    command
        .env("ROCP_TOOL_LIB", tool)
        .env("FEATURES", "TASK_CLOCK,CPUS_UTILIZED")
        .envs(environment.iter().copied());
    run(&mut command).well()
}

/// Runs the simulated GPU with a tool of `examples/abi`.
fn simulated(dir: &TestDir, tool: &str, features: &str) -> Ended {
    let library = ROCPROFILER.library(dir);
    let tool = ROCPROFILER.tool(dir, tool);
    let library = library.to_str().unwrap();
    let options = ["demo", "-q", "--steps", "1", "--tool", library];
    let mut command = dir.gputrail(options);
    command.env("ROCP_TOOL_LIB", tool).env("FEATURES", features);
    run(&mut command).well()
}

/// The lines of `text` that begin with `start`.
fn lines<'t>(text: &'t str, start: &str) -> Vec<&'t str> {
    text.lines()
        .filter(|line| line.starts_with(start))
        .collect()
}

/// The numbers behind `name` in the results that an example prints.
fn results(text: &str, name: &str) -> Vec<f64> {
    let found = text.lines().filter_map(|line| {
        let (_, value) = line.trim().split_once(&format!(": {name} result_"))?;
        let (_, number) = value.trim_end_matches(')').split_once('(')?;
        Some(number.parse().expect("a number"))
    });
    found.collect()
}

#[test]
fn the_examples_of_rocprofilers_document_count_kernels_of_opencl() {
    needs!(the_examples_of_rocprofilers_document_count_kernels_of_opencl:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for (tool, start) in [
        ("rocprofiler_kernels", "dispatch["),
        ("rocprofiler_completion", "kernel"),
        ("rocprofiler_pool", "kernel \"work\""),
    ] {
        let ended = preloaded(&dir, tool, &[]);
        assert_eq!(ended.stderr, "", "{tool}");
        let text = ended.text();
        assert_eq!(lines(&text, start).len(), 20, "{tool}: {text}");
        for name in ["TASK_CLOCK", "CPUS_UTILIZED"] {
            let values = results(&text, name);
            assert_eq!(values.len(), 20, "{tool}: {text}");
            assert!(values.iter().all(|value| *value > 0.0), "{tool}: {text}");
        }
    }
    // The thread that samples may begin when the kernels have ended.
    let text = preloaded(&dir, "rocprofiler_sampling", &[("FEATURES", "TASK_CLOCK")]).text();
    assert!(!results(&text, "TASK_CLOCK").is_empty(), "{text}");
    assert!(text.ends_with("sampling has ended\n"), "{text}");
}

#[test]
fn rocprofilers_variables_of_the_environment_have_their_meaning() {
    needs!(rocprofilers_variables_of_the_environment_have_their_meaning:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let metrics = dir.join("metrics.xml");
    let text = "<gfx9>\n<metric name=ELSEWHERE expr=TASK_CLOCK></metric>\n</gfx9>\n<global>\n\
        <metric name=TWICE expr=2*TASK_CLOCK descr=\"Twice\"></metric>\n\
        <metric name=WITHOUT expr=SQ_WAVES/2></metric>\n</global>\n";
    std::fs::write(&metrics, text).unwrap();
    let of_file = [("ROCP_METRICS", metrics.to_str().unwrap())];
    let ended = preloaded(&dir, "rocprofiler_metrics", &of_file);
    assert_eq!(ended.stderr, "");
    let text = ended.text();
    let counter = "Basic counter:  gpu-agent0 : TASK_CLOCK : ";
    assert_eq!(lines(&text, counter).len(), 1, "{text}");
    let metric = "Derived counter:  gpu-agent0 : TWICE : Twice\n      TWICE = 2*TASK_CLOCK\n";
    assert!(text.contains(metric), "{text}");
    assert!(
        text.contains("      CPUS_UTILIZED = TASK_CLOCK/KERNEL_TIME\n"),
        "{text}"
    );
    assert!(
        !text.contains("ELSEWHERE") && !text.contains("WITHOUT"),
        "{text}"
    );
    // It is counted, too.
    let features = [of_file[0], ("FEATURES", "TASK_CLOCK,TWICE")];
    let text = preloaded(&dir, "rocprofiler_kernels", &features).text();
    let (once, twice) = (results(&text, "TASK_CLOCK"), results(&text, "TWICE"));
    assert_eq!((once.len(), twice.len()), (20, 20), "{text}");
    assert!(
        once.iter()
            .zip(&twice)
            .all(|(once, twice)| 2.0 * once == *twice),
        "{text}"
    );

    // A metric of the file whose counter the device lacks.
    let features = [of_file[0], ("FEATURES", "TASK_CLOCK,WITHOUT")];
    let told = preloaded(&dir, "rocprofiler_kernels", &features).stderr;
    let why = "the metric \"WITHOUT\" is defined, and cannot be had here: there is no counter, metric or property \"SQ_WAVES\"";
    assert!(told.contains(why), "{told}");
    // A bad file is told as a missing one is.
    let bad = dir.join("bad.xml");
    std::fs::write(&bad, "<global>\n<metric name=BAD>\n</global>\n").unwrap();
    let of_file = [("ROCP_METRICS", bad.to_str().unwrap())];
    let told = preloaded(&dir, "rocprofiler_kernels", &of_file).stderr;
    let expected = format!("gputrail: {}:2:", bad.display());
    assert!(told.starts_with(&expected), "{told}");

    let ended = preloaded(&dir, "rocprofiler_kernels", &[("ROCP_HSA_INTERCEPT", "0")]);
    assert_eq!((ended.text(), ended.stderr.as_str()), (String::new(), ""));
    let nowhere = [
        ("ROCP_TOOL_LIB", "/nowhere.so"),
        ("ROCP_METRICS", "/nowhere.xml"),
    ];
    let ended = preloaded(&dir, "rocprofiler_kernels", &nowhere);
    assert_eq!(ended.text(), "");
    for part in [
        "librocprofiler64: ROCP_TOOL_LIB: ",
        "gputrail: /nowhere.xml: ",
    ] {
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
}

#[test]
fn the_examples_of_rocprofilers_document_count_kernels_of_the_simulated_gpu() {
    needs!(the_examples_of_rocprofilers_document_count_kernels_of_the_simulated_gpu: Need::OpenClToolchain);
    let dir = TestDir::new();
    let metrics = simulated(&dir, "rocprofiler_metrics", "").text();
    let cache = "Basic counter:  gpu-agent0 : TCC_HIT[0-15] : ";
    assert_eq!(lines(&metrics, cache).len(), 1, "{metrics}");
    assert!(
        metrics.contains("      block SQ has 8 counters\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("      GPUBusy = 100*GRBM_GUI_ACTIVE/GRBM_COUNT\n"),
        "{metrics}"
    );
    let mut counts = Vec::new();
    for (tool, start) in [
        ("rocprofiler_kernels", "dispatch["),
        ("rocprofiler_completion", "kernel"),
        ("rocprofiler_pool", "kernel \""),
    ] {
        let ended = simulated(&dir, tool, "SQ_WAVES,GPUBusy");
        let text = ended.text();
        let (waves, busy) = (results(&text, "SQ_WAVES"), results(&text, "GPUBusy"));
        assert!(waves.len() > 20, "{tool}: {text}");
        assert_eq!(lines(&text, start).len(), waves.len(), "{tool}: {text}");
        assert!(waves.iter().all(|waves| *waves > 0.0), "{tool}: {text}");
        assert!(busy.iter().all(|share| *share == 100.0), "{tool}: {text}");
        counts.push((waves.len(), waves.iter().sum::<f64>()));
    }
    // A pool is of one of both devices.
    assert_eq!(counts[0], counts[1]);
    assert!(counts[2].0 < counts[0].0);
    let text = simulated(&dir, "rocprofiler_sampling", "SQ_WAVES").text();
    assert!(!results(&text, "SQ_WAVES").is_empty(), "{text}");
    assert!(text.ends_with("sampling has ended\n"), "{text}");
}
