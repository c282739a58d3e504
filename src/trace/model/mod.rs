//! The model of a trace: what was recorded, joined by correlation.

pub(crate) mod join;
