//! What to do with device work that seems to start before it was enqueued.

use crate::record::Nanos;

/// How a device interval stands to its enqueue.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Causality {
    /// It starts after it was enqueued, or one of the two times is not known.
    Kept,
    /// It seemed to start before, by no more than the clocks' error: it was moved.
    Clamped,
    /// It starts before, by more than the clocks' error explains: kept as measured, to be reported.
    Violated,
}

/// A start that has been held against its enqueue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Clamped {
    /// The start to show.
    pub start: Nanos,
    /// What was done to it.
    pub what: Causality,
}

/// Holds the `start` of device work against the time when it was `enqueued`; `bound` is the error
/// bound of the conversion between the two clocks.
pub fn clamp(enqueued: Nanos, start: Nanos, bound: Nanos) -> Clamped {
    let early = enqueued.0.saturating_sub(start.0);
    let (start, what) = if early == 0 || !start.is_some() {
        (start, Causality::Kept)
    } else if early <= bound.0 {
        (enqueued, Causality::Clamped)
    } else {
        (start, Causality::Violated)
    };
    Clamped { start, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clamped(enqueued: u64, start: u64) -> (u64, Causality) {
        let clamped = clamp(Nanos(enqueued), Nanos(start), Nanos(10));
        (clamped.start.0, clamped.what)
    }

    #[test]
    fn a_start_after_its_enqueue_is_kept() {
        assert_eq!(clamped(100, 100), (100, Causality::Kept));
        assert_eq!(clamped(100, 500), (500, Causality::Kept));
    }

    #[test]
    fn a_start_too_early_by_the_error_of_the_clocks_is_moved_to_the_enqueue() {
        assert_eq!(clamped(100, 99), (100, Causality::Clamped));
        assert_eq!(clamped(100, 90), (100, Causality::Clamped));
    }

    #[test]
    fn a_start_too_early_by_more_is_kept_and_reported() {
        assert_eq!(clamped(100, 89), (89, Causality::Violated));
        assert_eq!(clamped(u64::MAX, 1), (1, Causality::Violated));
    }

    #[test]
    fn unknown_times_stay_unknown() {
        assert_eq!(clamped(0, 50), (50, Causality::Kept));
        assert_eq!(clamped(5, 0), (0, Causality::Kept));
    }
}
