//! Perfetto's messages as far as they are used here, as prost structs.
//!
//! Generated from `schemas/perfetto_*.proto` by `cargo run -p gputrail-schemas` and checked in; a
//! test of that package keeps the two in step. Cold packets are written through these, and tests
//! and tools read traces with them.
#![allow(missing_docs)]

include!("schema/perfetto.protos.rs");
