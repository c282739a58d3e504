//! Builds the library that `gputrail record` puts into programs, for the command to carry.
//!
//! `cargo install` installs no shared libraries, and a library that lies beside the command gets
//! lost when the directory moves. So it is built here, by a cargo of its own with the profile and
//! the target of the outer build, and `src/main.rs` includes its bytes.

use std::env;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

const PACKAGE: &str = "gputrail-inject";

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let root = here.join("../..");
    let watched = [
        "tools/inject",
        "include",
        "src",
        "schemas",
        "Cargo.toml",
        "Cargo.lock",
    ];
    for path in watched
        .map(|path| root.join(path))
        .iter()
        .filter(|path| path.exists())
    {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed=build.rs");

    let library = if variable("CARGO_CFG_TARGET_OS") == "linux" {
        if !root.join("tools/inject/Cargo.toml").exists() {
            fail(&format!(
                "{} is not there: the command is built from the whole source tree, since it carries \
                 the library that lies in tools/inject",
                root.join("tools/inject").display()
            ));
        }
        build(&root)
    } else {
        // Elsewhere there is nothing to put into programs: the command carries no bytes.
        let empty = PathBuf::from(variable("OUT_DIR")).join("no-library");
        std::fs::write(&empty, []).expect("OUT_DIR can be written");
        empty
    };
    println!("cargo::rustc-env=GPUTRAIL_LIBRARY={}", library.display());
    // With its length, this is what tells libraries in a cache apart.
    let mut id = DefaultHasher::new();
    id.write(&std::fs::read(&library).expect("the library was just built"));
    println!("cargo::rustc-env=GPUTRAIL_LIBRARY_ID={:016x}", id.finish());
}

fn build(root: &Path) -> PathBuf {
    let target = variable("TARGET");
    let target_directory = PathBuf::from(variable("OUT_DIR")).join("inject");
    let release = variable("PROFILE") == "release";
    // Of its two kinds only the one that is carried.
    let kind = ["--lib", "--crate-type", "cdylib"];
    let mut cargo = vec!["rustc", "--package", PACKAGE, "--target", &target];
    cargo.extend(kind);
    if release {
        cargo.push("--release");
    }
    if root.join("Cargo.lock").exists() {
        cargo.push("--locked");
    }
    // The outer build has fetched nearly always what is needed: try that, so that nothing asks the
    // network behind the back of an offline build.
    let attempt = |offline: &[&str]| {
        let mut command = Command::new(variable("CARGO"));
        command.current_dir(root).args(&cargo).args(offline);
        command.arg("--target-dir").arg(&target_directory);
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(confuses) {
                command.env_remove(name);
            }
        }
        // The bytes travel inside the command, and are written out by it: nothing in them but what is loaded.
        command.env("CARGO_PROFILE_RELEASE_STRIP", "true");
        command.env("CARGO_PROFILE_RELEASE_DEBUG", "0");
        match command.output() {
            Ok(output) => output,
            Err(error) => fail(&format!("cannot start {}: {error}", variable("CARGO"))),
        }
    };
    let mut output = attempt(&["--offline"]);
    if !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("--offline") {
        output = attempt(&[]);
    }
    if !output.status.success() {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        fail(&format!(
            "building {PACKAGE}, the library that the command carries, failed ({}); what cargo said \
             stands above, and `cargo build -p {PACKAGE}` shows it alone",
            output.status
        ));
    }
    let library = target_directory
        .join(&target)
        .join(if release { "release" } else { "debug" })
        .join("libgputrail_inject.so");
    if !library.exists() {
        fail(&format!(
            "no {} was made: the target {target} makes no shared libraries (musl needs \
             RUSTFLAGS=-Ctarget-feature=-crt-static)",
            library.display()
        ));
    }
    library
}

/// Whether a variable that cargo set for this script would change what the inner cargo does.
/// CARGO_ENCODED_RUSTFLAGS stays: those are the flags of the outer build.
fn confuses(name: &str) -> bool {
    const PREFIXES: [&str; 5] = [
        "CARGO_PKG_",
        "CARGO_CFG_",
        "CARGO_FEATURE_",
        "CARGO_MANIFEST_",
        "DEP_",
    ];
    const NAMES: [&str; 14] = [
        "OUT_DIR",
        "TARGET",
        "HOST",
        "NUM_JOBS",
        "OPT_LEVEL",
        "PROFILE",
        "DEBUG",
        "CARGO_TARGET_DIR",
        "CARGO_BUILD_TARGET_DIR",
        "CARGO_BUILD_BUILD_DIR",
        "CARGO_BUILD_TARGET",
        // clippy's driver, and cargo check's wrappers: what is carried is compiled.
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER",
        "CLIPPY_ARGS",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || NAMES.contains(&name)
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo set no {name}")))
}

fn fail(reason: &str) -> ! {
    println!("cargo::error={}", reason.replace('\n', " "));
    exit(1)
}
