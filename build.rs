//! Builds the libraries that the command carries: `libgputrail.so`, which `gputrail record` loads into programs, and
//! `libgputrail-symbols.so`, which that library opens when a tool requests source lines.
//!
//! `cargo install` installs no shared libraries, and a library beside the command would be lost when the directory is
//! moved. So both are built here, by a cargo of their own with the profile and the target of the outer build, and
//! `src/main.rs` includes their bytes.

use std::env;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// A library that the command carries.
struct Library {
    package: &'static str,
    /// Name of the file that cargo makes.
    file: &'static str,
    features: &'static [&'static str],
    /// Prefix of the variables that name the file and its hash to `src/main.rs`.
    variable: &'static str,
}

const LIBRARIES: [Library; 2] = [
    Library {
        package: "gputrail-inject",
        file: "libgputrail_inject.so",
        features: &[],
        variable: "GPUTRAIL_LIBRARY",
    },
    Library {
        package: "gputrail-symbols",
        file: "libgputrail_symbols.so",
        features: &["--features", "reader"],
        variable: "GPUTRAIL_SYMBOLS",
    },
];

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let root = here.join("../..");
    let watched = [
        "tools/inject",
        "tools/symbols",
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

    let files = if variable("CARGO_CFG_TARGET_OS") == "linux" {
        if !root.join("tools/inject/Cargo.toml").exists() {
            fail(&format!(
                "{} is not there: the command is built from the whole source tree, since it carries \
                 the library that lies in tools/inject",
                root.join("tools/inject").display()
            ));
        }
        std::thread::scope(|scope| {
            let builds = LIBRARIES
                .each_ref()
                .map(|library| scope.spawn(|| build(&root, library)));
            builds.map(|build| build.join().expect("a build that ends"))
        })
    } else {
        // Programs cannot be recorded on this system: the command carries no bytes.
        let empty = PathBuf::from(variable("OUT_DIR")).join("no-library");
        std::fs::write(&empty, []).expect("OUT_DIR can be written");
        [empty.clone(), empty]
    };
    for (library, file) in LIBRARIES.iter().zip(files) {
        println!("cargo::rustc-env={}={}", library.variable, file.display());
        // The hash is part of the library's name in the cache.
        let mut id = DefaultHasher::new();
        id.write(&std::fs::read(&file).expect("the library was just built"));
        println!(
            "cargo::rustc-env={}_ID={:016x}",
            library.variable,
            id.finish()
        );
    }
}

fn build(root: &Path, library: &Library) -> PathBuf {
    let package = library.package;
    let target = variable("TARGET");
    // Each has its own target directory, which the cargo that builds it locks.
    let target_directory = PathBuf::from(variable("OUT_DIR")).join(package);
    let release = variable("PROFILE") == "release";
    let mut cargo = vec!["rustc", "--package", package, "--target", &target];
    cargo.extend(["--lib", "--crate-type", "cdylib"]);
    cargo.extend(library.features);
    if release {
        cargo.push("--release");
    }
    if root.join("Cargo.lock").exists() {
        cargo.push("--locked");
    }
    // The outer build has nearly always fetched what is needed: an offline build is tried first, so that no request
    // goes to the network during an offline outer build.
    let attempt = |offline: &[&str]| {
        let mut command = Command::new(variable("CARGO"));
        command.current_dir(root).args(&cargo).args(offline);
        command.arg("--target-dir").arg(&target_directory);
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(confuses) {
                command.env_remove(name);
            }
        }
        // The bytes are part of the command, which writes them out: they contain only what is loaded.
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
            "building {package}, a library that the command carries, failed ({}); what cargo said \
             stands above, and `cargo build -p {package}` shows it alone",
            output.status
        ));
    }
    let file = target_directory
        .join(&target)
        .join(if release { "release" } else { "debug" })
        .join(library.file);
    if !file.exists() {
        fail(&format!(
            "no {} was made: the target {target} makes no shared libraries (musl needs \
             RUSTFLAGS=-Ctarget-feature=-crt-static)",
            file.display()
        ));
    }
    file
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
        // The driver of clippy and the wrappers of cargo check: the carried libraries must be compiled.
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
