//! Tools in libraries of their own, loaded into programs that do not know of them: the examples, and libraries that are
//! not tools.

use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::{Ended, run, run_without_limit};
use gputrail_harness::repository;
use gputrail_harness::trace::Trace;

use crate::c_api::{C, compiled};
use crate::command::{TestDir, kernels, well};

/// Compiles a tool in C.
pub fn tool(dir: &TestDir, options: &[&str], source: &str, output: &str) -> String {
    let shared = [&["-shared", "-fPIC"], options].concat();
    let library = compiled(dir, C, &shared, &repository(source), output);
    library.into_os_string().into_string().expect("UTF-8")
}

pub fn example(dir: &TestDir, name: &str) -> String {
    tool(
        dir,
        &[],
        &format!("examples/c/{name}.c"),
        &format!("lib{name}.so"),
    )
}

/// Builds a tool in Rust from `examples`.
fn example_in_rust(name: &str) -> String {
    built(&["--example", name], &format!("lib{name}.so"))
}

/// The path of the file with this name that cargo builds. What it is made of is there after `tools/test end-to-end`.
pub fn built(options: &[&str], file: &str) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args([
            "build",
            "--workspace",
            "--features",
            "gputrail/parquet",
            "--quiet",
            "--message-format",
            "json-render-diagnostics",
        ])
        .args(options)
        .current_dir(repository("."));
    let built = run_without_limit(&mut cargo).well();
    let library = format!("{file}\"");
    let text = built.text();
    let end = text.find(&library).expect("cargo names what it has built") + library.len() - 1;
    let start = text[..end].rfind('"').expect("a path in quotes") + 1;
    text[start..end].to_owned()
}

/// Records a program of `tests/programs` with tools.
pub fn with_tools(dir: &TestDir, tools: &[&str], program: &str, arguments: &[&str]) -> Ended {
    let program = dir.program(program);
    let options: Vec<&str> = tools
        .iter()
        .flat_map(|tool| ["--tool", tool])
        .chain(["-q"])
        .collect();
    run(&mut dir.record_with(&options, Driver::Threaded, &program, arguments))
}

/// The line of `text` that begins with `start`.
#[track_caller]
pub fn line<'a>(text: &'a str, start: &str) -> &'a str {
    let found = text.lines().find(|line| line.starts_with(start));
    found.unwrap_or_else(|| panic!("no line begins with {start}:\n{text}"))
}

#[test]
fn a_tool_in_rust_exports_its_entry_point_and_nothing_of_the_library() {
    needs!(a_tool_in_rust_exports_its_entry_point_and_nothing_of_the_library: Need::OpenClToolchain);
    let tool = example_in_rust("kernel_times");
    let mut nm = Command::new("nm");
    nm.args([
        "--dynamic",
        "--defined-only",
        "--format=just-symbols",
        &tool,
    ]);
    let symbols = run(&mut nm).well().text();
    let exported: Vec<&str> = symbols.lines().collect();
    assert_eq!(exported, ["gputrail_tool_configure"]);
}

#[test]
fn several_tools_observe_a_program_that_is_recorded_too() {
    needs!(several_tools_observe_a_program_that_is_recorded_too:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let (times, latency) = (example(&dir, "kernel_times"), example(&dir, "api_latency"));
    let ended = with_tools(&dir, &[&times, &latency], "lives", &["40"]).well();
    assert!(
        line(&ended.stderr, "work: ").contains("40 runs"),
        "{}",
        ended.stderr
    );
    let calls: Vec<&str> = line(&ended.stderr, "clEnqueueNDRangeKernel")
        .split_whitespace()
        .collect();
    assert_eq!(calls[1..3], ["40", "0"], "{}", ended.stderr);
    // The tool that was named first was initialised first, and is finalised last.
    let place_of = |text| ended.stderr.find(text).expect("both have said something");
    assert!(
        place_of("function ") < place_of("work: "),
        "{}",
        ended.stderr
    );
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 40);
}

#[test]
fn a_tool_is_tried_on_the_simulated_gpu() {
    needs!(a_tool_is_tried_on_the_simulated_gpu: Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let (times, bandwidth) = (
        example(&dir, "kernel_times"),
        example(&dir, "copy_bandwidth"),
    );
    let options = [
        "demo", "-q", "--tool", &times, "--tool", &bandwidth, "--steps", "2",
    ];
    let ended = well(&mut dir.gputrail(options));
    assert!(
        line(&ended.stderr, "gemm_f16_nn").contains("50 runs"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("in total: "), "{}", ended.stderr);
    let mut trace = Trace::open(dir.join("demo.pftrace"));
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "gemm_f16_nn_128x256x32"), 100);
}

#[test]
fn the_bandwidth_of_copies_is_reported() {
    needs!(the_bandwidth_of_copies_is_reported: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let tool = example(&dir, "copy_bandwidth");
    let ended = with_tools(&dir, &[&tool], "events", &[]);
    assert!(ended.stderr.contains("in total: "), "{}", ended.stderr);
    assert!(ended.stderr.contains(" GB/s"), "{}", ended.stderr);
}

#[test]
fn tools_in_rust_and_in_c_see_the_same() {
    needs!(tools_in_rust_and_in_c_see_the_same: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let in_rust = ["kernel_times", "api_latency", "copy_bandwidth"].map(example_in_rust);
    let in_c = example(&dir, "kernel_times");
    let mut tools: Vec<&str> = in_rust.iter().map(String::as_str).collect();
    tools.push(&in_c);
    let ended = with_tools(&dir, &tools, "lives", &["40"]).well();
    let kernels_seen: Vec<&str> = ended
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("work: "))
        .map(|line| line.split(',').next().unwrap_or(""))
        .collect();
    assert_eq!(kernels_seen, ["40 runs", "40 runs"], "{}", ended.stderr);
    let calls: Vec<&str> = line(&ended.stderr, "clEnqueueNDRangeKernel")
        .split_whitespace()
        .collect();
    assert_eq!(calls[1..3], ["40", "0"], "{}", ended.stderr);
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 40);

    let ended = with_tools(
        &dir,
        &[&in_rust[2], &example(&dir, "copy_bandwidth")],
        "events",
        &[],
    );
    let totals = |line: &&str| line.starts_with("in total: ");
    let mut totals: Vec<&str> = ended
        .stderr
        .lines()
        .filter(totals)
        .map(|line| &line[..line.find(" MB").unwrap_or(0)])
        .collect();
    // Rust names directions by the names of records, C by its own names: the copied bytes are the same.
    totals
        .iter_mut()
        .for_each(|line| *line = line.rsplit(": ").next().unwrap_or(""));
    totals.sort_unstable();
    assert!(
        !totals.is_empty() && totals.len().is_multiple_of(2),
        "{}",
        ended.stderr
    );
    assert!(
        totals.chunks(2).all(|pair| pair[0] == pair[1]),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_tool_in_c_that_counts_samples_gets_their_lines_beside_them() {
    needs!(a_tool_in_c_that_counts_samples_gets_their_lines_beside_them: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let tool = tool(
        &dir,
        &[],
        "tests/programs/sampled_lines.c",
        "libsampled_lines.so",
    );
    // Options with which old PoCL has lines, too.
    let arguments = ["-g -cl-opt-disable", "60"];
    let ended = with_tools(&dir, &[&tool], "hot_loop", &arguments).well();
    let number = |text: &str| -> u64 {
        let number = text.split_whitespace().next().expect("a number");
        number.parse().expect("a number")
    };
    let lines = ended.stderr.lines();
    let hot: u64 = lines
        .filter_map(|line| line.strip_prefix("line 7: "))
        .map(number)
        .sum();
    let all = number(&line(&ended.stderr, "samples: ")["samples: ".len()..]);
    assert!(
        all > 0 && hot * 100 >= all * 95,
        "{hot} of {all}:\n{}",
        ended.stderr
    );
    if cfg!(target_arch = "x86_64") {
        let line_of_instructions = line(&ended.stderr, "instructions: ");
        assert!(
            !line_of_instructions.ends_with("complete: 0"),
            "{line_of_instructions}"
        );
    }
}

#[test]
fn without_the_reader_samples_come_without_source_lines_and_that_is_said_once() {
    needs!(without_the_reader_samples_come_without_source_lines_and_that_is_said_once:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let tool = tool(
        &dir,
        &[],
        "tests/programs/sampled_lines.c",
        "libsampled_lines.so",
    );
    let program = dir.program("hot_loop");
    let program = program.to_str().expect("UTF-8");
    let without_reader = "rm \"${OPENCL_LAYERS%/*}/libgputrail-symbols.so.0\" && exec \"$@\"";
    let arguments = [
        "-c",
        without_reader,
        "sh",
        program,
        "-g -cl-opt-disable",
        "30",
    ];
    let options = ["-q", "--tool", &tool];
    let mut command = dir.record_with(&options, Driver::Threaded, "sh", &arguments);
    let stderr = run(&mut command).well().stderr;
    let count = |start| stderr.matches(start).count();
    assert_ne!(line(&stderr, "samples: "), "samples: 0");
    assert_eq!(count("\nline "), 0, "{stderr}");
    assert_eq!(count("gputrail: tools get no source lines"), 1, "{stderr}");
}

#[test]
fn a_tool_in_rust_can_do_all_that_one_in_c_can() {
    needs!(a_tool_in_rust_can_do_all_that_one_in_c_can:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let tool = example_in_rust("whole_tool");
    let ended = with_tools(&dir, &[&tool], "hot_loop", &["", "30"]).well();
    assert_eq!(ended.stderr, "whole-tool: 30 launches\n");
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "hot"), 30);
    for name in ["moment", "range", "started", "epoch"] {
        let query = format!("select count(*) from slice where name = '{name}'");
        let count: i64 = trace.value(&query);
        assert_eq!(count, 1, "{name}");
    }
}

#[test]
fn a_slow_call_dumps_what_happened_before() {
    needs!(a_slow_call_dumps_what_happened_before: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    for in_rust in [false, true] {
        let dir = TestDir::new();
        let tool = if in_rust {
            example_in_rust("slow_calls")
        } else {
            example(&dir, "slow_calls")
        };
        let lives = dir.program("lives");
        let options = ["--tool", &tool, "-q"];
        let mut command = dir.record_with(&options, Driver::Threaded, &lives, &["40"]);
        // Building the program takes longer than this.
        let ended = run(command.env("SLOW_CALL_MICROS", "100")).well();
        assert!(
            !line(&ended.stderr, "slow-calls: ").contains(" 0 dumps"),
            "{}",
            ended.stderr
        );
        let dumps = dir.files(".gputrail");
        assert!(!dumps.is_empty());
        let mut convert = dir.gputrail(["convert", &dumps[0], "-o", "dump.pftrace"]);
        run(&mut convert).well();
    }
}

#[test]
fn variables_alone_load_a_tool() {
    needs!(variables_alone_load_a_tool: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let tool = example(&dir, "kernel_times");
    let lives = dir.program("lives");
    let mut command = dir.untraced(Driver::Threaded, &lives, &["10"]);
    command.env("OPENCL_LAYERS", dir.join("libgputrail.so.0"));
    let ended = run(command.env("GPUTRAIL_TOOLS", tool)).well();
    assert!(
        line(&ended.stderr, "work: ").contains("10 runs"),
        "{}",
        ended.stderr
    );
    assert_eq!(dir.files(".pftrace"), [""; 0]);
}

#[test]
fn a_library_that_is_not_a_tool_is_named_before_the_program_runs() {
    needs!(a_library_that_is_not_a_tool_is_named_before_the_program_runs: Need::OpenClToolchain);
    let dir = TestDir::new();
    let bad = |option: &str| {
        let options = [format!("-D{option}")];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        tool(
            &dir,
            &options,
            "tests/programs/bad_tools.c",
            &format!("{option}.so"),
        )
    };
    std::fs::write(dir.join("text.so"), "no library").expect("a file");
    for (path, reason) in [
        ("missing.so".to_owned(), "No such file"),
        ("text.so".to_owned(), "file too short"),
        (bad("NO_ENTRY"), "gputrail_tool_configure"),
        (bad("OTHER_VERSION"), "version 77"),
        (bad("WRONG_SIZE"), "3 bytes"),
        (bad("CRASHES"), "SIGABRT"),
        (bad("EXITS"), "ended the process"),
    ] {
        let mut command = dir.gputrail(["record", "--tool", &path, "--", "touch", "ran"]);
        let ended = run(&mut command);
        assert_eq!(ended.code(), 125, "{path}: {}", ended.stderr);
        assert!(ended.stderr.contains(&path), "{path}: {}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{path}: {}", ended.stderr);
        assert!(!dir.join("ran").exists());
    }
}

#[test]
fn a_tool_whose_initialisation_fails_is_discarded_and_the_program_runs() {
    needs!(a_tool_whose_initialisation_fails_is_discarded_and_the_program_runs:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let bad = tool(&dir, &[], "tests/programs/bad_tools.c", "bad.so");
    let good = example(&dir, "kernel_times");
    let ended = with_tools(&dir, &[&bad, &good], "lives", &["10", "exit", "6"]);
    assert_eq!(ended.code(), 6, "{}", ended.stderr);
    let said = line(&ended.stderr, "gputrail: tool bad");
    assert!(said.contains("GPUTRAIL_TOO_MANY"), "{said}");
    assert!(
        line(&ended.stderr, "work: ").contains("10 runs"),
        "{}",
        ended.stderr
    );
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 10);
}

/// A tool that prints a line when it is initialised and when it is finalised.
fn printing_tool(dir: &TestDir, name: &str, priority: i32, more: &[&str]) -> String {
    let (name_is, priority_is) = (format!("-DNAME={name}"), format!("-DPRIORITY=({priority})"));
    let options = [&[&*name_is, &priority_is], more].concat();
    let source = "tests/programs/told_tools.c";
    tool(dir, &options, source, &format!("lib{name}.so"))
}

/// The lines printed by the tools of [`printing_tool`].
fn said_by_tools(ended: &Ended) -> Vec<&str> {
    let lines = ended.stderr.lines();
    let is_theirs = |line: &&str| {
        ["initialised", "finalised"]
            .iter()
            .any(|end| line.ends_with(end))
    };
    lines.filter(is_theirs).collect()
}

#[test]
fn tools_are_initialised_by_priority_and_finalised_the_other_way_round() {
    needs!(tools_are_initialised_by_priority_and_finalised_the_other_way_round: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let tools = [
        printing_tool(&dir, "late", 5, &[]),
        printing_tool(&dir, "usual", 0, &[]),
        printing_tool(&dir, "early", -3, &[]),
        printing_tool(&dir, "refused", -9, &["-DREFUSES"]),
        printing_tool(&dir, "usual_too", 0, &[]),
    ];
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    let ended = with_tools(&dir, &tools, "lives", &["3"]).well();
    assert_eq!(
        said_by_tools(&ended),
        [
            "refused initialised",
            "early initialised",
            "usual initialised",
            "usual_too initialised",
            "late initialised",
            // A tool that was refused is never finalised.
            "late finalised",
            "usual_too finalised",
            "usual finalised",
            "early finalised",
        ]
    );
    let said = line(&ended.stderr, "gputrail: tool refused");
    assert!(said.contains("GPUTRAIL_NOT_AVAILABLE"), "{said}");
}

#[test]
fn a_tool_that_asks_for_its_end_has_it_once_and_the_others_go_on() {
    needs!(a_tool_that_asks_for_its_end_has_it_once_and_the_others_go_on:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let finishes = printing_tool(&dir, "finishes", 0, &["-DFINISHES"]);
    let stays = printing_tool(&dir, "stays", 0, &[]);
    let times = example(&dir, "kernel_times");
    let ended = with_tools(&dir, &[&finishes, &stays, &times], "lives", &["20"]).well();
    let said = line(&ended.stderr, "finishes finishes: ");
    assert_eq!(
        said,
        "finishes finishes: GPUTRAIL_OK, then GPUTRAIL_NO_SUCH_TOOL"
    );
    let finalised = |name: &str| {
        let wanted = format!("{name} finalised");
        said_by_tools(&ended)
            .iter()
            .filter(|said| **said == wanted)
            .count()
    };
    assert_eq!(
        (finalised("finishes"), finalised("stays")),
        (1, 1),
        "{}",
        ended.stderr
    );
    assert!(
        line(&ended.stderr, "work: ").contains("20 runs"),
        "{}",
        ended.stderr
    );
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 20);
}

/// The code of a page in fences of tildes, each block with its place in the list.
fn fenced(page: &str) -> String {
    let parts = page.split("~~~").skip(1).step_by(2);
    let code = parts.filter_map(|block| block.strip_prefix("c\n"));
    code.collect()
}

#[test]
fn the_guides_request_samples_all_agents_and_single_samples_have_lines() {
    needs!(the_guides_request_samples_all_agents_and_single_samples_have_lines: Need::OpenClToolchain);
    let dir = TestDir::new();
    let guide = std::fs::read_to_string(repository("docs/guide.md")).expect("the guide");
    std::fs::write(dir.join("guide.h"), fenced(&guide)).expect("a file");
    let source = "tests/programs/sampling_tool.c";
    let tool = tool(&dir, &[], source, "libsampling.so");
    let told = |variables: &[(&str, &str)]| {
        let mut command = dir.gputrail(["demo", "-q", "--steps", "1", "--tool", &tool]);
        let ended = run(command.envs(variables.iter().copied())).well();
        assert_eq!(ended.stderr, "", "{variables:?}");
        ended.text()
    };
    let sampled = "agent 1 is sampled\nagent 2 is sampled\npassed\n";
    assert_eq!(told(&[]), sampled);
    assert_eq!(told(&[("METHOD", "stochastic")]), sampled);
    let counted = "agent 1 counts\nagent 2 counts\npassed\n";
    assert_eq!(told(&[("COUNT", "SQ_WAVES,VALUInsts")]), counted);
    let guided = told(&[("GUIDE", "1")]);
    let (line, rest) = guided.split_once('\n').expect("the line of a sample");
    let (file, number) = line.rsplit_once(':').expect("file:line");
    assert_eq!((file, rest), ("train/kernels.cl", sampled));
    number.parse::<u32>().expect("a number");

    // A recording that samples, too, does without, and says so; the program ends as it does alone.
    for (options, what) in [
        (["--pc-sampling", "host-trap"], "samples"),
        (["--counters", "SQ_WAVES"], "counters"),
    ] {
        let mut command = dir.gputrail(["demo", "--steps", "1", "--tool", &tool]);
        let ended = run(command.args(options)).well();
        let told = &ended.stderr;
        if what == "samples" {
            assert_eq!(ended.text(), sampled, "{told}");
            let missing = "MISSING: the recording has no samples: a tool samples in this process";
            assert!(told.contains(missing), "{told}");
            assert!(!told.contains("nothing was lost"), "{told}");
        } else {
            // It has claimed the counters of all agents before tools are there: the tool's request is refused.
            let refused = "does not hold: sample_all(context, buffer) == GPUTRAIL_OK";
            assert!(told.contains(refused), "{told}");
        }
    }
}

#[test]
fn a_program_in_rust_that_is_linked_with_the_library_observes_its_calls() {
    needs!(a_program_in_rust_that_is_linked_with_the_library_observes_its_calls:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    well(&mut dir.gputrail(["library", "libgputrail.so.0"]));
    let crate_of_tools = built(
        &["--package", "gputrail-tool", "--lib"],
        "libgputrail_tool.rlib",
    );
    let folder = std::path::Path::new(&crate_of_tools)
        .parent()
        .expect("a folder");
    let program = dir.join("linked");
    let mut compiler = Command::new("rustc");
    compiler
        .args(["--edition", "2024", "--crate-name", "linked", "-o"])
        .arg(&program)
        .arg(repository("tests/programs/linked_program.rs"))
        .arg("--extern")
        .arg(format!("gputrail_tool={crate_of_tools}"))
        .arg("-L")
        .arg(format!("dependency={}", folder.join("deps").display()))
        .arg("-L")
        .arg(format!("native={}", dir.path().display()))
        .args(["-C", "link-arg=-Wl,--no-as-needed"])
        .args(["-C", "link-arg=-l:libgputrail.so.0"])
        .args(["-C", "link-arg=-Wl,-rpath,$ORIGIN"]);
    run(&mut compiler).well();
    let ended = run(&mut dir.untraced(Driver::Basic, &program, &[])).well();
    assert_eq!(ended.text(), "1 platforms by 1 calls, status 0\n");
}
