//! Tools as strangers build them: with the folder that `gputrail library` writes, by pkg-config and by CMake, in all
//! versions of C and C++ that the headers are for.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::program::{Ended, run};
use gputrail_harness::repository;

use crate::command::{TestDir, well};
use crate::tools::{line, tool, with_tools};

/// Compilers of C and C++, each with a version of its language.
const LANGUAGES: [&[&str]; 7] = [
    &["cc", "-std=c99"],
    &["cc", "-std=c11"],
    &["cc", "-std=c17"],
    &["c++", "-x", "c++", "-std=c++11"],
    &["c++", "-x", "c++", "-std=c++14"],
    &["c++", "-x", "c++", "-std=c++17"],
    &["c++", "-x", "c++", "-std=c++20"],
];
const STRICT: [&str; 6] = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pedantic",
    "-Wconversion",
    "-Wshadow",
];

/// Runs a line of a shell in the test's folder, with pkg-config looking into `sdk`, which `gputrail library` has written.
fn shell(dir: &TestDir, line: &str) -> Ended {
    if !dir.join("sdk").exists() {
        well(&mut dir.gputrail(["library", "sdk"]));
    }
    let mut shell = Command::new("sh");
    shell
        .args(["-ec", line])
        .current_dir(dir.path())
        .env("PKG_CONFIG_PATH", dir.join("sdk/lib/pkgconfig"))
        .env("EXAMPLES", repository("examples"))
        .env("PROGRAMS", repository("tests/programs"));
    run(&mut shell).well()
}

#[test]
fn every_structure_that_a_tool_fills_has_an_initialiser_in_every_version_of_c_and_cpp() {
    needs!(every_structure_that_a_tool_fills_has_an_initialiser_in_every_version_of_c_and_cpp:
        Need::OpenClToolchain);
    let dir = TestDir::new();
    let header = fs::read_to_string(repository("include/gputrail.h")).expect("the header");
    let macros: Vec<(&str, &str)> = header
        .lines()
        .filter_map(|line| {
            let (name, fields) = line.strip_prefix("#define ")?.split_once(" {sizeof(")?;
            Some((name, fields.split(')').next()?))
        })
        .collect();
    let filled = header
        .lines()
        .filter(|line| line.trim().starts_with("/* sizeof(gputrail_"));
    assert_eq!(macros.len(), filled.count());
    let mut text = String::from(
        "#include \"gputrail.h\"\n#include <stdio.h>\n#include <string.h>\n\n\
         static const gputrail_operation operations[] = {GPUTRAIL_OPERATION_INIT(GPUTRAIL_OPENCL_clFinish),\n    \
         GPUTRAIL_OPERATION_INIT(GPUTRAIL_RESOURCE_AGENT_KNOWN)};\n\n\
         static int is_finish(gputrail_operation operation) {\n    \
         switch (gputrail_operation_code(operation)) {\n    case GPUTRAIL_OPENCL_clFinish: return 1;\n    \
         case GPUTRAIL_RESOURCE_AGENT_KNOWN: return 0;\n    default: return -1;\n    }\n}\n\nint main(void) {\n    int wrong = 0;\n    \
         const gputrail_operation made = gputrail_operation_of(GPUTRAIL_OPENCL_clFinish);\n    \
         if (is_finish(operations[0]) != 1 || is_finish(operations[1]) != 0) wrong++;\n    \
         if (made.domain != GPUTRAIL_DOMAIN_OPENCL || made.number != operations[0].number) wrong++;\n",
    );
    for (name, structure) in &macros {
        let version = match *structure {
            "gputrail_tool_description" => "zero.api_version = GPUTRAIL_API_VERSION;",
            _ => "",
        };
        text.push_str(&format!(
            "    {{\n        static const {structure} made_before = {name};\n        {structure} made_here = {name}, zero;\n        \
             memset(&zero, 0, sizeof zero);\n        zero.size = sizeof zero;\n        {version}\n        \
             if (memcmp(&made_before, &zero, sizeof zero) != 0 || memcmp(&made_here, &zero, sizeof zero) != 0) {{\n            \
             puts(\"{name}\");\n            wrong++;\n        }}\n    }}\n"
        ));
    }
    text.push_str("    return wrong;\n}\n");
    fs::write(dir.join("initialisers.c"), text).expect("a file");
    for language in LANGUAGES {
        let compile = [language, &STRICT].concat().join(" ");
        shell(
            &dir,
            &format!("{compile} -Isdk/include -o initialisers initialisers.c && ./initialisers"),
        );
    }
}

#[test]
fn callbacks_have_the_phases_and_records_that_the_tables_name() {
    needs!(callbacks_have_the_phases_and_records_that_the_tables_name: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    // By domain and name: the phases, and the kind of the record.
    let page = fs::read_to_string(repository("docs/operations.md")).expect("the tables");
    let cpp = fs::read_to_string(repository("include/gputrail.hpp")).expect("the header");
    let kind_of = |record: &str| {
        let (_, rest) = cpp
            .split_once(&format!(
                "kind_of<gputrail_record_{record}> : kind_constant<GPUTRAIL_KIND_"
            ))
            .unwrap_or_else(|| panic!("no structure gputrail_record_{record}"));
        let kind = rest.split('>').next().expect("a kind");
        kind.to_lowercase().replace('_', " ")
    };
    let mut tables: HashMap<(String, &str), (Vec<&str>, String)> = HashMap::new();
    let mut domain = String::new();
    let (mut of_simulated, mut of_opencl) = (HashSet::new(), HashSet::new());
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### `GPUTRAIL_DOMAIN_") {
            domain = heading
                .trim_end_matches('`')
                .to_lowercase()
                .replace('_', " ");
        }
        if !line.starts_with("| `") {
            continue;
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, _, name, phases, record, about, ..] = cells[..] else {
            panic!("{line}");
        };
        let [by_all, by_simulated, by_opencl] =
            ["all sources", "the simulated GPU", "OpenCL"].map(|source| {
                about
                    .rsplit_once("Reported by ")
                    .is_some_and(|(_, sources)| sources.contains(source))
            });
        let operation = (domain.clone(), name.to_owned());
        if by_all || by_simulated {
            of_simulated.insert(operation.clone());
        }
        // Markers are the program's own.
        let is_marker = domain == "marker" && !about.contains("In records only");
        if by_all || by_opencl || is_marker {
            of_opencl.insert(operation.clone());
        }
        if is_marker {
            of_simulated.insert(operation);
        }
        let record = match record {
            "" => String::new(),
            record => kind_of(record),
        };
        tables.insert(
            (domain.clone(), name),
            (phases.split(", ").collect(), record),
        );
    }
    assert!(tables.len() > 50);

    let reported = tool(
        &dir,
        &[],
        "tests/programs/reported_operations.c",
        "libreported.so",
    );
    let mut seen: [HashSet<(String, String)>; 3] = Default::default();
    let simulated = ["demo", "-q", "--steps", "4", "--tool", &reported];
    let objects = with_tools(&dir, &[&reported], "objects", &[]);
    // Its own exit code.
    assert_eq!(objects.code(), 17, "{}", objects.stderr);
    let runs = [
        well(&mut dir.gputrail(simulated)),
        with_tools(&dir, &[&reported], "events", &[]).well(),
        objects,
    ];
    for (ended, seen) in runs.iter().zip(&mut seen) {
        for line in ended
            .stderr
            .lines()
            .filter(|line| line.starts_with("reported|"))
        {
            let cells: Vec<&str> = line.split('|').collect();
            let [_, domain, name, phase, kind] = cells[..] else {
                panic!("{line}");
            };
            if domain == "sim" || domain == "opencl" {
                assert!(
                    ["ENTER", "EXIT"].contains(&phase) && kind.is_empty(),
                    "{line}"
                );
                continue;
            }
            let row = tables.get(&(domain.to_owned(), name));
            let (phases, record) = row.unwrap_or_else(|| panic!("not in the tables: {line}"));
            assert!(
                phases.contains(&phase) && record == kind,
                "{line}: {phases:?}, {record}"
            );
            seen.insert((domain.to_owned(), name.to_owned()));
        }
    }
    let [simulated, events, objects] = seen;
    // The passes of kernels, and the modules of those that are sampled or counted, come in runs with counters; the markers
    // of this tool are not all.
    let not_here = |(domain, name): &&(String, String)| {
        let here = ["instant", "push", "pop", "start", "end"].contains(&name.as_str());
        !(["kernel replay", "module profiled"].contains(&name.as_str())
            || domain == "marker" && !here)
    };
    let expected: BTreeSet<_> = of_simulated.iter().filter(not_here).cloned().collect();
    assert_eq!(simulated.iter().cloned().collect::<BTreeSet<_>>(), expected);
    let seen: HashSet<_> = events.union(&objects).cloned().collect();
    let beyond: Vec<_> = seen.difference(&of_opencl).collect();
    assert!(beyond.is_empty(), "{beyond:?}");
    for needed in [
        ("resource", "agent known"),
        ("resource", "queue destroyed"),
        ("kernel dispatch", "kernel complete"),
        ("memory copy", "fill enqueue"),
        ("memory allocation", "free"),
        ("synchronization", "wait for queue"),
        ("marker", "push"),
        ("marker", "end"),
    ] {
        let needed = (needed.0.to_owned(), needed.1.to_owned());
        assert!(seen.contains(&needed), "{needed:?} of {seen:?}");
    }
}

#[test]
fn pkg_config_builds_tools_in_c_and_cpp_and_programs_that_observe_themselves() {
    needs!(pkg_config_builds_tools_in_c_and_cpp_and_programs_that_observe_themselves:
        Need::Pocl, Need::OpenClToolchain, Need::Program("pkg-config"), Need::Program("g++"));
    let dir = TestDir::new();
    let flags = "-Wall -Wextra -Werror -pedantic -shared -fPIC";
    let libraries = "$(pkg-config --cflags --libs gputrail)";
    shell(
        &dir,
        &format!(
            "cc -std=c99 {flags} -o libin_c.so $EXAMPLES/c/kernel_times.c {libraries}\n\
             c++ -std=c++11 {flags} -o libin_cpp.so $EXAMPLES/cpp/kernel_times.cpp {libraries}\n\
             cc -std=c99 -o simulation $PROGRAMS/c_api_simulation.c {libraries} \
             -Wl,-rpath,$(pkg-config --variable=libdir gputrail) && ./simulation"
        ),
    );
    let version = shell(&dir, "pkg-config --modversion gputrail").text();
    assert_eq!(version.trim(), env!("CARGO_PKG_VERSION"));
    let tools = ["libin_c.so", "libin_cpp.so"].map(|name| dir.join(name).display().to_string());
    let ended = with_tools(&dir, &[&tools[0], &tools[1]], "lives", &["40"]).well();
    let told = |line: &&str| line.starts_with("work: 40 runs, ");
    assert_eq!(
        ended.stderr.lines().filter(told).count(),
        2,
        "{}",
        ended.stderr
    );
    // The folder may be moved.
    shell(
        &dir,
        &format!(
            "mv sdk moved && export PKG_CONFIG_PATH=$PWD/moved/lib/pkgconfig && mkdir sdk\n\
             cc -std=c99 {flags} -o libmoved.so $EXAMPLES/c/kernel_times.c {libraries}"
        ),
    );
}

#[test]
fn cmake_builds_the_examples() {
    needs!(cmake_builds_the_examples:
        Need::Pocl, Need::OpenClToolchain, Need::Program("cmake"), Need::Program("make"), Need::Program("g++"));
    let dir = TestDir::new();
    let configure = "cmake -S $EXAMPLES -B build -DCMAKE_PREFIX_PATH=$PWD/sdk";
    shell(&dir, &format!("{configure} && cmake --build build"));
    let tools = ["kernel_times", "kernel_times_cpp"];
    let tools = tools.map(|name| {
        dir.join(&format!("build/lib{name}.so"))
            .display()
            .to_string()
    });
    let ended = with_tools(&dir, &[&tools[0], &tools[1]], "lives", &["40"]).well();
    let told = |line: &&str| line.starts_with("work: 40 runs, ");
    assert_eq!(
        ended.stderr.lines().filter(told).count(),
        2,
        "{}",
        ended.stderr
    );
    // Another version than the one that is asked for is refused.
    let asks = |version: &str, expected: bool| {
        let refuses = if expected { "NOT " } else { "" };
        let text = format!(
            "cmake_minimum_required(VERSION 3.16)\nproject(asks NONE)\nfind_package(gputrail {version} QUIET)\n\
             if({refuses}gputrail_FOUND)\n  message(FATAL_ERROR \"{version}\")\nendif()\n"
        );
        fs::create_dir_all(dir.join("asks")).expect("a folder");
        fs::write(dir.join("asks/CMakeLists.txt"), text).expect("a file");
        shell(
            &dir,
            "rm -rf asked && cmake -S asks -B asked -DCMAKE_PREFIX_PATH=$PWD/sdk",
        );
    };
    let version = env!("CARGO_PKG_VERSION");
    asks(&format!("{version} EXACT"), true);
    asks("0.0.1", true);
    asks("999", false);
}

#[test]
fn a_tool_in_cpp_that_cannot_start_says_why_and_is_discarded() {
    needs!(a_tool_in_cpp_that_cannot_start_says_why_and_is_discarded:
        Need::Pocl, Need::OpenClToolchain, Need::Program("g++"));
    let dir = TestDir::new();
    let text = "#include \"gputrail.hpp\"\n\
                struct refuses {\n    explicit refuses(gputrail_tool handle) {\n        \
                if (handle.handle != 0) throw std::runtime_error(\"no licence for this machine\");\n    }\n};\n\
                GPUTRAIL_TOOL(\"refuses\", refuses)\n";
    fs::write(dir.join("refuses.cpp"), text).expect("a file");
    shell(
        &dir,
        "c++ -std=c++11 -shared -fPIC -Isdk/include -o librefuses.so refuses.cpp -Lsdk/lib -lgputrail",
    );
    let tool = dir.join("librefuses.so").display().to_string();
    let ended = with_tools(&dir, &[&tool], "lives", &["3"]).well();
    let why = line(&ended.stderr, "gputrail: this tool cannot start: ");
    assert!(why.ends_with("no licence for this machine"), "{why}");
    line(&ended.stderr, "gputrail: tool refuses (");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let dir = TestDir::new();
    fs::write(dir.join("file"), "").expect("a file");
    let ended = run(&mut dir.gputrail(["library", "missing/lib.so"]));
    let missing = format!("there is no folder {}", dir.join("missing").display());
    assert_eq!(ended.code(), 125);
    assert!(ended.stderr.contains(&missing), "{}", ended.stderr);
    let ended = run(&mut dir.gputrail(["library", "file/sdk"]));
    assert_ne!(ended.code(), 0);
    let named = Path::new("file").join("sdk").display().to_string();
    assert!(ended.stderr.contains(&named), "{}", ended.stderr);
}
