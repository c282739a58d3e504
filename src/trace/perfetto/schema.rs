//! Perfetto's messages as far as they are used here: as prost structs, and the number of each field.
//!
//! Both are generated from `schemas/perfetto_*.proto` by `cargo run -p gputrail-schemas` and checked in; a test of that
//! package keeps them in step. Cold packets are written through the structs, and tests and tools read traces with them;
//! hot packets are written, and any trace is read, by field number.
#![allow(missing_docs)]

include!("schema/perfetto.protos.rs");

/// Field numbers: `track_event::NAME_IID` is that of `TrackEvent.name_iid`.
pub mod field;
