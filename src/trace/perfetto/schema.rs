//! The Perfetto messages in use: as prost structs, and the number of each field.
//!
//! Both are generated from `schemas/perfetto_*.proto` by `cargo run -p gputrail-schemas` and checked in; a test of that
//! package keeps them in step. Infrequent packets are written through the structs, and tests and tools read traces with
//! them; frequent packets are written, and all traces are read, by field number.
#![allow(missing_docs)]

include!("schema/perfetto.protos.rs");

/// Field numbers: `track_event::NAME_IID` is that of `TrackEvent.name_iid`.
pub mod field;
