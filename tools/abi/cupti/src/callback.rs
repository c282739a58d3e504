//! The Callback API.
