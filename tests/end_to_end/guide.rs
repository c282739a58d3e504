//! The guide, word for word: its commands are run and its files are written in an empty directory.

use std::fs;
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::{Driver, on_pocl};
use gputrail_harness::program::run;
use gputrail_harness::repository;

use crate::command::TestDir;

/// The code blocks of a page: language and text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts = page.split("```").skip(1).step_by(2);
    parts.filter_map(|block| block.split_once('\n')).collect()
}

#[test]
fn the_guide_leads_to_a_tool_in_c_in_cpp_and_in_rust() {
    needs!(the_guide_leads_to_a_tool_in_c_in_cpp_and_in_rust: Need::Pocl, Need::OpenClToolchain,
        Need::Program("pkg-config"), Need::Program("c++"));
    let dir = TestDir::new();
    let page = fs::read_to_string(repository("docs/guide.md")).expect("the guide");
    // The first commands build gputrail, which has been done.
    let blocks = &blocks(&page)[1..];
    let mut script = String::from("set -e\n");
    for (language, text) in blocks {
        match *language {
            "c" => {
                fs::write(dir.join("counter.c"), text).expect("a file");
                script.push_str("cp ../counter.c .\n");
            }
            "cpp" => {
                fs::write(dir.join("counter.cpp"), text).expect("a file");
                script.push_str("cp ../counter.cpp .\n");
            }
            "rust" => {
                fs::write(dir.join("lib.rs"), text).expect("a file");
                script.push_str("cp ../../lib.rs src/lib.rs\n");
            }
            _ => script.push_str(text),
        }
    }
    let lives = dir.program("lives");
    let script = script.replace("clinfo", &format!("{} 12", lives.display()));
    let gputrail = std::path::Path::new(env!("CARGO_BIN_EXE_gputrail"));
    let folder = gputrail.parent().expect("a folder").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    on_pocl(&mut shell, Driver::Threaded)
        .args(["-c", &script])
        .current_dir(dir.path())
        .env("PATH", format!("{folder}:{path}"))
        .env("GPUTRAIL", repository("."))
        .env("XDG_CACHE_HOME", dir.join("cache"))
        // What is built is the same, and waits for no optimisation.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env_remove("CARGO_TARGET_DIR");
    let ended = run(&mut shell).well();
    let told = ended
        .stderr
        .matches("12 kernels, the longest took ")
        .count();
    assert_eq!(told, 4, "{}\n{script}", ended.stderr);
}
