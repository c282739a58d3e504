//! The Event API.
