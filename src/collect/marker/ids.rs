//! External ids of pushed ranges, where a recording asks for them: everything that happens on the thread inside of a range
//! carries an id of the kind [`ExternalKind::RANGES`](gputrail_record::ExternalKind::RANGES), whose name is that of the range, behind that of its domain.

use gputrail_record::{ExternalId, StringId};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether ranges have external ids. Forked children inherit it.
static GIVEN: AtomicBool = AtomicBool::new(false);

/// The ids of one thread's ranges.
#[derive(Default)]
pub(crate) struct RangeIds {
    /// Domains and levels of the ranges whose ids are pushed.
    pub(super) pushed: Vec<(StringId, u64)>,
    /// The names that are known as ids.
    pub(super) named: HashSet<ExternalId>,
}

/// Gives ranges external ids from now on.
pub(crate) fn give() {
    GIVEN.store(true, Ordering::Relaxed);
}

/// Whether ranges have external ids.
#[inline]
pub(super) fn are_given() -> bool {
    GIVEN.load(Ordering::Relaxed)
}
