//! The libraries with the names of other profilers' APIs: programs in C and C++ that know them alone.

use std::path::PathBuf;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::repository;

use crate::c_api::{C, CPP, compiled};
use crate::command::TestDir;
use crate::tools::built;

/// An API: the folder of its headers in `tools/abi`, and the file of its library.
struct Abi {
    name: &'static str,
    library: &'static str,
}

const GPUPERFAPI: Abi = Abi {
    name: "gpuperfapi",
    library: "libGPUPerfAPICL.so",
};

impl Abi {
    /// Compiles a program with the headers. The library lies beside it; it `is_linked` with it, or opens it.
    fn program(&self, dir: &TestDir, compiler: &[&str], source: &str, is_linked: bool) -> PathBuf {
        let library = dir.join(self.library);
        if !library.exists() {
            std::fs::copy(built(&["--lib"], self.library), &library).unwrap();
        }
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
