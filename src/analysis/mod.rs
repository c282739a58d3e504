//! What a recording amounts to: where the time went, and where kernels spent theirs.

pub mod hotspots;
pub mod summary;
