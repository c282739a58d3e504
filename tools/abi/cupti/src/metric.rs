//! The Metric API.
