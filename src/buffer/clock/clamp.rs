//! Correction of device work that appears to start before it was enqueued.

use gputrail_record::Nanos;

/// How the start of device work relates to its enqueue.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Causality {
    /// The start is not before the enqueue, or one of the two times is unknown.
    Unchanged,
    /// The start was before the enqueue by no more than the error bound, and was moved to it.
    Clamped,
    /// The start is before the enqueue by more than the error bound. It is kept as measured and reported.
    Violated,
}

/// The result of [`clamp`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Clamped {
    /// The start to show.
    pub start: Nanos,
    /// Whether and why it differs from the measured one.
    pub causality: Causality,
}

/// Moves the `start` of device work to its enqueue if it is earlier by no more than `bound`, the error bound of the
/// conversion between the two clocks.
pub fn clamp(enqueued: Nanos, start: Nanos, bound: Nanos) -> Clamped {
    let early = enqueued.0.saturating_sub(start.0);
    let (start, causality) = if early == 0 || !start.is_some() {
        (start, Causality::Unchanged)
    } else if early <= bound.0 {
        (enqueued, Causality::Clamped)
    } else {
        (start, Causality::Violated)
    };
    Clamped { start, causality }
}

/// Moves each of the times of a piece of work to its enqueue that is earlier by no more than `bound`; as [`clamp`] does,
/// and keeps their order.
pub fn clamp_all<const N: usize>(
    enqueued: Nanos,
    times: [Option<Nanos>; N],
    bound: Nanos,
) -> [Option<Nanos>; N] {
    times.map(|time| Some(clamp(enqueued, time?, bound).start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clamped(enqueued: u64, start: u64) -> (u64, Causality) {
        let clamped = clamp(Nanos(enqueued), Nanos(start), Nanos(10));
        (clamped.start.0, clamped.causality)
    }

    #[test]
    fn a_start_after_its_enqueue_is_kept() {
        assert_eq!(clamped(100, 100), (100, Causality::Unchanged));
        assert_eq!(clamped(100, 500), (500, Causality::Unchanged));
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
    fn all_times_of_work_come_after_its_enqueue_as_far_as_the_error_explains_it() {
        let times = [Some(89), Some(91), None, Some(99), Some(101)].map(|time| time.map(Nanos));
        let clamped = clamp_all(Nanos(100), times, Nanos(10));
        let expected = [Some(89), Some(100), None, Some(100), Some(101)];
        assert_eq!(clamped, expected.map(|time| time.map(Nanos)));
    }

    #[test]
    fn unknown_times_stay_unknown() {
        assert_eq!(clamped(0, 50), (50, Causality::Unchanged));
        assert_eq!(clamped(5, 0), (0, Causality::Unchanged));
    }
}
