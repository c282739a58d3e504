//! The ids of kernels' work. The SDK numbers dispatches, and names the number in the records of kernels, in samples and with the
//! values of counters, which come in any order: the id of the work follows from it.

use gputrail_record::WorkId;
use gputrail_rocprofiler::DispatchId;

/// Ids of dispatches begin here, above those of other work. They are exact as floating-point numbers.
const FIRST: u64 = 1 << 48;

/// The id of the work of a dispatch; none for 0.
#[inline]
pub(super) fn work_of(dispatch: DispatchId) -> WorkId {
    match dispatch {
        0 => WorkId::NONE,
        number => WorkId(FIRST | number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatches_have_ids_of_their_own() {
        assert_eq!(work_of(0), WorkId::NONE);
        assert!(work_of(1).0 > FIRST && work_of(1) != work_of(2));
    }
}
