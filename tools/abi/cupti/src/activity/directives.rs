//! Ranges of a thread that OpenACC and OpenMP tell, whose records come at their ends.

use super::kind::ActivityKind;
use super::record::ActivityRecord;
use super::sink;
use super::wanted::is_anywhere;
use gputrail_record::{ExternalId, ExternalKind};
use gputrail_tool::{external, now, to_nanos};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

/// The kinds whose records are made here.
pub const KINDS: [ActivityKind; 4] = [
    ActivityKind::OPENACC_DATA,
    ActivityKind::OPENACC_LAUNCH,
    ActivityKind::OPENACC_OTHER,
    ActivityKind::OPENMP,
];

/// `CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC`
const OPENACC: ExternalKind = ExternalKind(2);
/// The most ranges of a thread that are kept.
const MOST: usize = 1 << 10;

/// A range that has not ended.
#[derive(Copy, Clone)]
struct Begun {
    kind: ActivityKind,
    start: u64,
    /// The id that calls within it are correlated with; 0 if there is none.
    external: u32,
}

thread_local! {
    static BEGUN: RefCell<Vec<Begun>> = const { RefCell::new(Vec::new()) };
}

/// The ranges of the calling thread.
pub struct Thread;

impl Thread {
    /// Begins a range.
    pub fn begin(kind: ActivityKind) {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let is_correlated = kind != ActivityKind::OPENMP
            && is_anywhere(kind)
            && is_anywhere(ActivityKind::EXTERNAL_CORRELATION);
        let mut external = 0;
        if is_correlated {
            let id = NEXT.fetch_add(1, Ordering::Relaxed);
            if external::push(OPENACC, ExternalId(id.into())).is_ok() {
                external = id;
            }
        }
        let begun = Begun {
            kind,
            start: time(),
            external,
        };
        let _ = BEGUN.try_with(|ranges| {
            let mut ranges = ranges.borrow_mut();
            if ranges.len() == MOST {
                ranges.remove(0);
            }
            ranges.push(begun);
        });
    }

    /// Ends the innermost range of a kind: its start, and its external id. Those within it have ended without being told.
    pub fn end(kind: ActivityKind) -> Option<(u64, u32)> {
        let ended = BEGUN.try_with(|ranges| {
            let mut ranges = ranges.borrow_mut();
            let place = ranges.iter().rposition(|range| range.kind == kind)?;
            Some(ranges.split_off(place))
        });
        let ended = ended.ok().flatten()?;
        for _ in ended.iter().filter(|range| range.external != 0) {
            let _ = external::pop(OPENACC);
        }
        ended.first().map(|range| (range.start, range.external))
    }

    /// The process and the thread.
    pub fn ids() -> [u32; 2] {
        // SAFETY: a call of the system that has no conditions.
        [std::process::id(), unsafe { libc::gettid() } as u32]
    }
}

/// The time now, in the clock of records; 0 while there is none.
pub fn time() -> u64 {
    to_nanos(now()).map_or(0, |time| time.0)
}

/// Puts the record of a range, if its kind is wanted.
pub fn put_range<R: ActivityRecord>(record: &R) {
    if is_anywhere(R::KIND) {
        sink::put(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_those_within_it() {
        let (data, other) = (ActivityKind::OPENACC_DATA, ActivityKind::OPENACC_OTHER);
        Thread::begin(other);
        Thread::begin(data);
        Thread::begin(data);
        assert!(Thread::end(data).is_some());
        assert!(Thread::end(other).is_some());
        assert!(Thread::end(data).is_none() && Thread::end(other).is_none());
        for _ in 0..MOST + 5 {
            Thread::begin(data);
        }
        assert_eq!(
            (0..2 * MOST).filter_map(|_| Thread::end(data)).count(),
            MOST
        );
    }
}
