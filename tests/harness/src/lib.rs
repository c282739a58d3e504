//! What the end-to-end tests stand on: what this machine has ([`machine`]), PoCL and its own log of
//! what it did ([`pocl`]), running programs and compiling C ([`program`]), and asking Perfetto
//! about a trace ([`trace`]).

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
