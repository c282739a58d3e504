//! Counts of activity records that are missing from the recording, or that lack something.

use super::activity::POOL;
use crate::record::count;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count, and the words with which the notes of a recording state it.
pub(super) struct Count {
    number: AtomicU64,
    is_loss: bool,
    text: &'static str,
}

impl Count {
    const fn loss(text: &'static str) -> Count {
        Count {
            number: AtomicU64::new(0),
            is_loss: true,
            text,
        }
    }

    const fn note(text: &'static str) -> Count {
        Count {
            is_loss: false,
            ..Count::loss(text)
        }
    }

    /// Adds `number`.
    pub fn add(&self, number: usize) {
        self.number.fetch_add(number as u64, Ordering::Relaxed);
    }
}

pub(super) static DROPPED: Count = Count::loss("activity records were dropped by CUPTI");
pub(super) static AFTER_END: Count =
    Count::loss("buffers of activity records came after the end, or on a thread too many");
pub(super) static BUSY: Count =
    Count::loss("buffers of activity records came while their thread wrote other records");
pub(super) static MALFORMED: Count =
    Count::loss("buffers of activity records could not be read to their end");
pub(super) static UNKNOWN_SIZE: Count =
    Count::loss("activity records have a size that the library does not state");
pub(super) static BEFORE_START: Count =
    Count::note("activity records from before the start were left out");
pub(super) static UNTIMED: Count = Count::note("activity records have no times, and are not drawn");
pub(super) static WITHOUT_CALL: Count = Count::note("activity records belong to no recorded call");
pub(super) static FOREIGN: Count =
    Count::note("activity records of kinds that are not recorded were left out");

static ALL: [&Count; 9] = [
    &DROPPED,
    &AFTER_END,
    &BUSY,
    &MALFORMED,
    &UNKNOWN_SIZE,
    &BEFORE_START,
    &UNTIMED,
    &WITHOUT_CALL,
    &FOREIGN,
];

/// A sentence for each count that is not 0, and whether it is a loss.
pub(super) fn describe() -> Vec<(String, bool)> {
    let refused = POOL.refused();
    let full = format!(
        "CUDA: {} of CUPTI found no memory for a buffer; the records that it put there are lost",
        count(refused, "request")
    );
    let mut texts: Vec<_> = (refused > 0).then_some((full, true)).into_iter().collect();
    let grown = POOL.grown();
    if grown > 0 {
        let buffers = count(grown, "buffer");
        let text = format!("CUDA: {buffers} of CUPTI, mapped while the program ran");
        texts.push((text, false));
    }
    for count in ALL {
        let number = count.number.load(Ordering::Relaxed);
        if number > 0 {
            texts.push((format!("CUDA: {number} {}", count.text), count.is_loss));
        }
    }
    texts
}
