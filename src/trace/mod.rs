//! Traces: the joined model of what was recorded, and its Perfetto form.

pub mod model;
#[cfg(feature = "perfetto")]
pub mod perfetto;
