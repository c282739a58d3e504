//! The requirements of tests on the machine. `tools/test install` installs all of them. A test that lacks one prints
//! what it could not run, past the capture of the test harness so that it is seen. With `GPUTRAIL_TESTS_REQUIRE=1`,
//! which `tools/test` sets, that is a failure.

use std::env;
use std::fmt;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A requirement of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// PoCL behind the OpenCL loader.
    Pocl,
    /// Intel's OpenCL implementation for processors, Khronos's loader, and SYCL for Python.
    Intel,
    /// Mesa's rusticl.
    Rusticl,
    /// A C compiler, OpenCL's headers and its library to link with.
    OpenClToolchain,
    /// Node.js and Perfetto's trace processor.
    TraceProcessor,
    /// Perfetto's UI, a browser, and the driver of the browser.
    Browser,
    /// Python and its bindings of Perfetto's messages.
    PythonBindings,
    /// Python and DuckDB.
    DuckDb,
    /// Python, its package of NVTX, NVTX's headers, and a C++ compiler.
    Nvtx,
    /// NVIDIA's libcupti of several versions, and its headers.
    Cupti,
    /// NVIDIA's assembler of PTX.
    Ptxas,
    /// AMD's headers of rocprofiler-sdk, as far as PyPI's triton has them.
    RocprofilerHeaders,
    /// Python, and the library of Proton of PyPI's triton for it.
    Proton,
    /// LLVM's runtime of OpenMP, which works with programs of GCC, and GCC.
    OpenMp,
    /// A program on the search path.
    Program(&'static str),
    /// The rights of the superuser.
    Root,
}

/// PoCL's entry among the installed OpenCL implementations.
pub const POCL_ICD: &str = "/etc/OpenCL/vendors/pocl.icd";

/// The entry of Mesa's rusticl.
pub const RUSTICL_ICD: &str = "/etc/OpenCL/vendors/rusticl.icd";

impl Need {
    fn is_met(self) -> bool {
        match self {
            Self::Pocl => Path::new(POCL_ICD).exists(),
            Self::Intel => on_path("python3") && tools().join("intel").exists(),
            Self::Rusticl => Path::new(RUSTICL_ICD).exists(),
            Self::OpenClToolchain => on_path("cc") && Path::new("/usr/include/CL/cl.h").exists(),
            Self::TraceProcessor => on_path("node") && tools().join("perfetto-ui").exists(),
            Self::Browser => {
                Self::TraceProcessor.is_met()
                    && tools().join("node_modules").exists()
                    && (env::var_os("CHROMIUM").is_some()
                        || Path::new("/usr/bin/chromium").exists())
            }
            Self::PythonBindings => on_path("python3") && tools().join("python").exists(),
            Self::Cupti => tools().join("cupti").exists(),
            Self::Ptxas => tools().join("ptxas").exists(),
            Self::RocprofilerHeaders => tools().join("rocprofiler-headers").exists(),
            Self::Proton => on_path("python3") && tools().join("proton/libproton.so").exists(),
            Self::DuckDb => on_path("python3") && tools().join("duckdb").exists(),
            Self::Nvtx => on_path("python3") && on_path("c++") && tools().join("nvtx").exists(),
            Self::OpenMp => {
                let library = |folder: &str| Path::new(folder).join("libomp.so.5").exists();
                on_path("gcc")
                    && [
                        "/usr/lib/x86_64-linux-gnu",
                        "/usr/lib/aarch64-linux-gnu",
                        "/usr/lib",
                    ]
                    .into_iter()
                    .any(library)
            }
            Self::Program(name) => on_path(name),
            Self::Root => std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0),
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pocl => f.write_str("PoCL"),
            Self::Intel => f.write_str("Intel's OpenCL implementation and SYCL for Python"),
            Self::Rusticl => f.write_str("Mesa's rusticl"),
            Self::OpenClToolchain => f.write_str("a C compiler with OpenCL's headers"),
            Self::TraceProcessor => f.write_str("Perfetto's trace processor and node"),
            Self::Browser => f.write_str("Perfetto's UI and chromium"),
            Self::DuckDb => f.write_str("DuckDB for Python"),
            Self::Cupti => f.write_str("NVIDIA's wheels of CUPTI"),
            Self::Ptxas => f.write_str("NVIDIA's ptxas"),
            Self::RocprofilerHeaders => f.write_str("AMD's headers of rocprofiler-sdk"),
            Self::Proton => f.write_str("Proton of PyPI's triton"),
            Self::PythonBindings => f.write_str("the Python bindings of Perfetto's messages"),
            Self::Nvtx => f.write_str("NVTX for Python and C++"),
            Self::OpenMp => f.write_str("gcc and LLVM's runtime of OpenMP"),
            Self::Program(name) => f.write_str(name),
            Self::Root => f.write_str("the superuser"),
        }
    }
}

/// Whether this machine meets all of `needs`. If not, prints so for the test of that name; panics if the tests are
/// required to run.
#[must_use]
pub fn has(test: &str, needs: &[Need]) -> bool {
    let missing: Vec<String> = needs
        .iter()
        .filter(|need| !need.is_met())
        .map(Need::to_string)
        .collect();
    if missing.is_empty() {
        return true;
    }
    let missing = missing.join(", ");
    assert!(
        env::var_os("GPUTRAIL_TESTS_REQUIRE").is_none_or(|value| value != "1"),
        "{test} cannot run without {missing}, and GPUTRAIL_TESTS_REQUIRE=1 wants it to"
    );
    let line = format!("NOT RUN: {test}: needs {missing} (tools/test install)\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    false
}

/// Says that `test` has left out a part, and why: this machine's hardware or kernel lacks what no installation brings.
/// `tools/test` counts these lines.
pub fn skipped(test: &str, why: &str) {
    let line = format!("SKIPPED: {test}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Returns from the calling test if this machine does not meet one of the needs; see
/// [`machine::has`](crate::machine::has).
#[macro_export]
macro_rules! needs {
    ($test:ident: $($need:expr),+ $(,)?) => {
        if !$crate::machine::has(stringify!($test), &[$($need),+]) {
            return;
        }
    };
}

/// The directory in which `tools/test install` puts software that is not a Debian package.
pub fn tools() -> PathBuf {
    env::var_os("GPUTRAIL_TEST_TOOLS").map_or_else(|| cache().join("gputrail-tests"), PathBuf::from)
}

fn cache() -> PathBuf {
    env::var_os("XDG_CACHE_HOME").map_or_else(
        || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache"),
        PathBuf::from,
    )
}

fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
