//! Contexts and their services.

use super::sized::sized;
use gputrail_record::{Kind, Operation};

/// The records that a service selects.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct SelectionOptions {
    /// `sizeof(gputrail_selection)`.
    pub size: usize,
    /// The kinds of records, `kind_count` of them. Null: every kind.
    pub kinds: *const Kind,
    /// How many kinds.
    pub kind_count: usize,
    /// Of API calls, those of these operations only, `operation_count` of them. Null: every operation.
    pub operations: *const Operation,
    /// How many operations.
    pub operation_count: usize,
}
sized!(SelectionOptions, "gputrail_selection", 40);
