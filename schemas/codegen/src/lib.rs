//! Turns `schemas/perfetto_*.proto` into the Rust that `src/trace/perfetto/schema.rs` includes.
//!
//! The generated file is checked in, so that building gputrail takes no protobuf compiler. The test
//! of this package generates it again and compares; `cargo run -p gputrail-schemas` writes it.

use std::error::Error;
use std::path::{Path, PathBuf};

/// The files to compile, in `schemas/`.
const FILES: [&str; 4] = [
    "perfetto_trace.proto",
    "perfetto_track_event.proto",
    "perfetto_gpu.proto",
    "perfetto_sampling.proto",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where the generated file is checked in.
pub fn checked_in() -> PathBuf {
    repository().join("src/trace/perfetto/schema/perfetto.protos.rs")
}

/// The Rust for all files, as text.
pub fn generate() -> Result<String, Box<dyn Error>> {
    let descriptors = protox::compile(FILES, [repository().join("schemas")])?;
    let mut config = prost_build::Config::new();
    // Far larger than the others, and rare.
    config.boxed(".perfetto.protos.TracePacket.data.pc_samples");
    let modules = config.generate(
        descriptors
            .file
            .into_iter()
            .map(|file| {
                (
                    prost_build::Module::from_protobuf_package_name(file.package()),
                    file,
                )
            })
            .collect(),
    )?;
    Ok(modules.into_values().collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_bindings_that_are_checked_in_match_the_schemas() {
        let kept = std::fs::read_to_string(super::checked_in()).expect("the checked-in bindings");
        let fresh = super::generate().expect("the schemas compile");
        assert!(
            kept == fresh,
            "src/trace/perfetto/schema is stale: run `cargo run -p gputrail-schemas`"
        );
    }
}
