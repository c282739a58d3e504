//! PoCL: running a program on it alone, with a kernel cache of the tests' own, and PoCL's own log of every command that
//! it executed, against which traces are checked. Other loaders and implementations of OpenCL, and SYCL.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::{POCL_ICD, RUSTICL_ICD, tools};

/// How PoCL executes commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// In the thread that flushes or waits.
    Basic,
    /// On threads of its own, one for each processor.
    Threaded,
}

/// The environment variable that names a directory with an OpenCL loader for the tests' programs, such as Khronos's, in
/// place of the system's.
const LOADER: &str = "GPUTRAIL_TEST_OPENCL_LOADER";

/// An OpenCL loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loader {
    /// ocl-icd, Debian's, which initialises layers by `clInitLayer`.
    OclIcd,
    /// Khronos's of 2026, which initialises layers by `clInitLayerWithProperties` and ends them by `clDeinitLayer`.
    Khronos,
}

/// An implementation of OpenCL for processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// PoCL.
    Pocl,
    /// Intel's.
    Intel,
    /// Mesa's rusticl, on llvmpipe.
    Rusticl,
}

/// A directory without entries of implementations, for Khronos's loader, which takes a directory. ocl-icd takes a library, too.
const NO_ENTRIES: &str = "/nonexistent";

/// The library that an entry of an implementation names.
fn library_of(entry: &str) -> PathBuf {
    let text = fs::read_to_string(entry);
    let text = text.unwrap_or_else(|error| panic!("{entry}: {error}"));
    text.trim().into()
}

/// Sets the environment so that a program finds this loader, and this implementation alone.
pub fn on(command: &mut Command, loader: Loader, runtime: Runtime) -> &mut Command {
    on_pocl(command, Driver::Threaded);
    let intel = tools().join("intel");
    command.env_remove("LD_LIBRARY_PATH");
    if loader == Loader::Khronos {
        command.env("LD_LIBRARY_PATH", intel.join("khronos"));
    }
    let library = match runtime {
        Runtime::Pocl => library_of(POCL_ICD),
        Runtime::Intel => intel.join("lib/libintelocl.so"),
        Runtime::Rusticl => library_of(RUSTICL_ICD),
    };
    match loader {
        Loader::OclIcd => command.env("OCL_ICD_VENDORS", library),
        Loader::Khronos => command
            .env("OCL_ICD_VENDORS", NO_ENTRIES)
            .env("OCL_ICD_FILENAMES", library),
    };
    command.env("RUSTICL_ENABLE", "llvmpipe")
}

/// Sets the environment so that Python finds SYCL, and SYCL Intel's OpenCL implementation behind Khronos's loader.
pub fn on_sycl(command: &mut Command) -> &mut Command {
    let intel = tools().join("intel");
    on(command, Loader::Khronos, Runtime::Intel)
        .env("LD_LIBRARY_PATH", intel.join("lib"))
        .env("PYTHONPATH", intel)
        .env("ONEAPI_DEVICE_SELECTOR", "opencl:cpu")
}

/// Sets the environment so that a command finds PoCL and no other implementation, with a kernel cache that stays warm
/// from test to test.
pub fn on_pocl(command: &mut Command, driver: Driver) -> &mut Command {
    let cache = tools().join("pocl-cache");
    fs::create_dir_all(&cache).expect("the kernel cache can be made");
    let devices = match driver {
        Driver::Basic => "basic",
        Driver::Threaded => "pthread",
    };
    if let Some(folder) = std::env::var_os(LOADER) {
        command
            .env("LD_LIBRARY_PATH", folder)
            .env("OCL_ICD_VENDORS", NO_ENTRIES)
            .env("OCL_ICD_FILENAMES", library_of(POCL_ICD));
    } else {
        command.env("OCL_ICD_VENDORS", POCL_ICD);
    }
    command
        .env("POCL_CACHE_DIR", cache)
        .env("POCL_DEVICES", devices)
}

/// Sets the environment so that PoCL writes its log to a file.
pub fn logged<'a>(command: &'a mut Command, log: &Path) -> &'a mut Command {
    command
        .env("POCL_TRACING", "text")
        .env("POCL_TRACING_OPT", log)
}

/// PoCL's log entry of a command that it completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// PoCL's number of the queue.
    pub queue: u64,
    /// The kind of the command: `ndrange_kernel`, `read_buffer`, ...
    pub kind: String,
    /// The name of the kernel.
    pub kernel: Option<String>,
    /// The number of bytes copied, for the kinds whose size is logged.
    pub size: Option<u64>,
    /// When it began to run, in nanoseconds of `CLOCK_MONOTONIC_RAW`; 0 on a queue without profiling.
    pub started: u64,
    /// When it was complete, in the same clock.
    pub ended: u64,
}

/// The commands that PoCL completed, from its log, in the order of their event ids.
pub fn completed(log: &Path) -> Vec<Completed> {
    let text = fs::read_to_string(log).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
    let mut commands: BTreeMap<u64, Completed> = BTreeMap::new();
    let mut complete = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("DEP")) {
        // time | EV ID n | DEV n | CQ n | kind | status | details, which contain `name=` and `size=`
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let [time, event, _device, queue, kind, status, details @ ..] = parts.as_slice() else {
            panic!("a line of PoCL's log is not understood: {line}");
        };
        let number = |text: &str, prefix: &str| -> u64 {
            let digits = text.strip_prefix(prefix).unwrap_or(text);
            digits
                .parse()
                .unwrap_or_else(|_| panic!("not a number in PoCL's log: {line}"))
        };
        let detail = |key: &str| details.iter().find_map(|detail| detail.strip_prefix(key));
        let event = number(event, "EV ID ");
        let command = commands.entry(event).or_insert_with(|| Completed {
            queue: number(queue, "CQ "),
            kind: (*kind).to_owned(),
            kernel: detail("name=").map(str::to_owned),
            size: detail("size=").and_then(|size| size.parse().ok()),
            started: 0,
            ended: 0,
        });
        match *status {
            "running" => command.started = number(time, ""),
            "complete" => {
                command.ended = number(time, "");
                complete.push(event);
            }
            _ => {}
        }
    }
    commands.retain(|event, _| complete.contains(event));
    commands.into_values().collect()
}
