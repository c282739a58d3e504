//! Links the library so that it exports rocprofiler-sdk alone, and the entry point of a tool: gputrail's own functions are
//! those of `libgputrail.so.0`, and those that this library contains would be found in their place. Writes the names of HIP's
//! operations, which the header has, for the library.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;

/// The enumerations of operations: name of the list, header, prefix of the numbers.
const OPERATIONS: [[&str; 3]; 2] = [
    [
        "HIP_RUNTIME",
        "include/rocprofiler-sdk/hip/runtime_api_id.h",
        "ROCPROFILER_HIP_RUNTIME_API_ID_",
    ],
    [
        "HIP_COMPILER",
        "include/rocprofiler-sdk/hip/compiler_api_id.h",
        "ROCPROFILER_HIP_COMPILER_API_ID_",
    ],
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut lists = String::new();
    for [list, header, prefix] in OPERATIONS {
        println!("cargo::rerun-if-changed={header}");
        let names = operations(&std::fs::read_to_string(header)?, prefix)?;
        writeln!(
            lists,
            "pub static {list}: &[&core::ffi::CStr] = &[{}];",
            names.join(", ")
        )?;
    }
    let folder = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&folder).join("operations.rs"), lists)?;
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,librocprofiler-sdk.so.1");
    }
    Ok(())
}

/// The names of an enumeration, as texts of C, by their numbers from 0 on without gaps.
fn operations(header: &str, prefix: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = Vec::new();
    let entries = header
        .lines()
        .filter_map(|line| line.trim().strip_prefix(prefix)?.split_once(" = "));
    for (name, number) in entries {
        if name == "NONE" || name == "LAST" {
            continue;
        }
        if number.trim_end_matches(',').parse() != Ok(names.len()) {
            return Err(format!("{prefix}{name} is not the next number").into());
        }
        names.push(format!("c\"{name}\""));
    }
    Ok(names)
}
