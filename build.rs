//! Finds the libraries that the command carries: `libgputrail.so`, which `gputrail record` loads into programs, and
//! `libgputrail-symbols.so`, which that library opens when a tool requests source lines.
//!
//! `cargo install` installs no shared libraries, and a library beside the command would be lost when the directory is
//! moved. So `src/main.rs` includes their bytes. Both are build-dependencies: cargo has built them, as shared libraries
//! too, before it starts this script. Only if the command is built for another processor than the one it is built on, a
//! cargo of its own builds them for that processor.
//!
//! The libraries with vendors' names are not built here: they are carried if a variable names the folder with them.

use std::env;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// A library that the command carries.
struct Library {
    package: &'static str,
    /// Beginning of the name of the file that cargo makes, which may go on with a hash.
    file: &'static str,
    /// Prefix of the variables that name the file and its hash to `src/main.rs`.
    variable: &'static str,
}

const LIBRARIES: [Library; 2] = [
    Library {
        package: "gputrail-inject",
        file: "libgputrail_inject",
        variable: "GPUTRAIL_LIBRARY",
    },
    Library {
        package: "gputrail-symbols",
        file: "libgputrail_symbols",
        variable: "GPUTRAIL_SYMBOLS",
    },
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    write_apis();
    for library in &LIBRARIES {
        let file = if variable("CARGO_CFG_TARGET_OS") != "linux" {
            // Programs cannot be recorded on this system: the command carries no bytes.
            let empty = PathBuf::from(variable("OUT_DIR")).join("no-library");
            std::fs::write(&empty, []).expect("OUT_DIR can be written");
            empty
        } else if variable("TARGET") == variable("HOST") {
            built(library)
        } else {
            build(library)
        };
        println!("cargo::rerun-if-changed={}", file.display());
        println!("cargo::rustc-env={}={}", library.variable, file.display());
        // The hash is part of the library's name in the cache.
        let mut id = DefaultHasher::new();
        id.write(&std::fs::read(&file).expect("the library was found"));
        println!(
            "cargo::rustc-env={}_ID={:016x}",
            library.variable,
            id.finish()
        );
    }
}

/// The libraries with vendors' names: the folder in `tools/abi`, and the file that cargo makes.
const APIS: [[&str; 2]; 4] = [
    ["cupti", "libcupti.so"],
    ["gpuperfapi", "libGPUPerfAPICL.so"],
    ["rocprofiler", "librocprofiler64.so"],
    ["rocprofiler-sdk", "librocprofiler_sdk.so"],
];
/// Names a folder with these libraries, for a command that carries them, as those that are given away do.
const APIS_VARIABLE: &str = "GPUTRAIL_APIS";

/// Writes the list of the APIs of vendors for `src/main.rs`: their headers, where this is built from the whole source tree, and their
/// libraries, if a folder of them is named.
fn write_apis() {
    println!("cargo::rerun-if-env-changed={APIS_VARIABLE}");
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let built = env::var_os(APIS_VARIABLE).map(PathBuf::from);
    let mut list = String::from("&[");
    for [name, file] in APIS {
        let library = built.as_ref().map(|folder| folder.join(file));
        let library = library.map_or_else(
            || "&[]".to_owned(),
            |library| {
                if !library.is_file() {
                    fail(&format!(
                        "{APIS_VARIABLE}: {} is not there",
                        library.display()
                    ));
                }
                println!("cargo::rerun-if-changed={}", library.display());
                format!("include_bytes!({library:?})")
            },
        );
        let folder = root.join("tools/abi").join(name).join("include");
        let mut headers = Vec::new();
        if folder.is_dir() {
            println!("cargo::rerun-if-changed={}", folder.display());
            find_headers(&folder, &mut headers);
        }
        headers.sort();
        let headers = headers.iter().map(|header| {
            let inside = header.strip_prefix(&folder).unwrap_or(header);
            format!("({inside:?}, include_str!({header:?}))")
        });
        let headers = headers.collect::<Vec<_>>().join(", ");
        list.push_str(&format!(
            "CarriedApi {{ name: {name:?}, library: {library}, headers: &[{headers}] }}, "
        ));
    }
    list.push(']');
    let path = PathBuf::from(variable("OUT_DIR")).join("apis.rs");
    std::fs::write(path, list).expect("OUT_DIR can be written");
}

/// Adds the files below `folder`.
fn find_headers(folder: &Path, headers: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find_headers(&path, headers);
        } else {
            headers.push(path);
        }
    }
}

/// The file that cargo has made of this build-dependency: it lies where the libraries that this script is linked with do.
fn built(library: &Library) -> PathBuf {
    let script = env::current_exe().expect("the path of this script");
    // PROFILE/build/gputrail-HASH/build-script-build
    let profile = script.ancestors().nth(3).expect("a folder of the profile");
    let folder = profile.join("deps");
    let is_the_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let rest = name
            .strip_prefix(library.file)
            .and_then(|rest| rest.strip_suffix(".so"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let files = files.map(|file| file.path()).filter(is_the_library);
    let newest = files.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok());
    newest.unwrap_or_else(|| {
        fail(&format!(
            "{}/{}.so is not there: cargo made no shared library of {} (musl needs \
             RUSTFLAGS=-Ctarget-feature=-crt-static)",
            folder.display(),
            library.file,
            library.package
        ))
    })
}

/// Builds the library for the processor that the command is built for.
fn build(library: &Library) -> PathBuf {
    let package = library.package;
    let target = variable("TARGET");
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    if !root.join("src/inject/Cargo.toml").exists() {
        fail(&format!(
            "the library of {package} for {target} can only be built from the whole source tree: clone the repository"
        ));
    }
    for watched in ["src", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    // A directory of its own, since the outer cargo has locked its own one.
    let target_directory = PathBuf::from(variable("OUT_DIR")).join(package);
    let profile = profile();
    let mut command = Command::new(variable("CARGO"));
    command
        .current_dir(&root)
        .args(["build", "--package", package, "--locked"]);
    command.args(["--target", &target, "--profile", &profile]);
    command.arg("--target-dir").arg(&target_directory);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(confuses) {
            command.env_remove(name);
        }
    }
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!(
            "building {package} for {target}, a library that the command carries, failed ({status}); \
             `cargo build -p {package} --target {target}` shows it alone"
        )),
        Err(error) => fail(&format!("cannot start {}: {error}", variable("CARGO"))),
    }
    let folder = if profile == "dev" { "debug" } else { &profile };
    let folder = target_directory.join(&target).join(folder);
    let file = folder.join(format!("{}.so", library.file));
    if !file.exists() {
        fail(&format!(
            "no {} was made: the target {target} makes no shared libraries",
            file.display()
        ));
    }
    file
}

/// The name of the profile: that of the folder which has the outputs of this build.
fn profile() -> String {
    let out = PathBuf::from(variable("OUT_DIR"));
    let folder = out.ancestors().nth(3).and_then(Path::file_name);
    match folder.expect("a folder of the profile").to_string_lossy() {
        name if name == "debug" => "dev".to_owned(),
        name => name.into_owned(),
    }
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
