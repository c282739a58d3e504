//! The Activity API.
