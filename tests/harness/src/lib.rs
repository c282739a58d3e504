//! The foundation of the end-to-end tests: the properties of this machine ([`machine`]), PoCL and its own log
//! ([`pocl`]), running programs and compiling C ([`program`]), and queries to Perfetto about a trace ([`trace`]).

pub mod machine;
pub mod pocl;
pub mod program;
pub mod trace;

use std::path::PathBuf;

/// A path inside the repository.
pub fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}
