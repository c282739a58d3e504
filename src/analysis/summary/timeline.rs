//! The load of a device or queue over time, for pictures: its busy time in spans of equal length, by what ran.
//!
//! The number of spans is bounded. Their length is a power of two; it doubles when a recording outgrows them. Spans of equal
//! length begin at the same times on all devices, so that their rows stand below each other.

use gputrail_record::Nanos;

/// Maximum number of spans.
const MAX_SPANS: usize = 1 << 10;

/// The load of a device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// Kernels computed, and none communicated.
    Compute,
    /// Kernels computed, and others communicated.
    Hidden,
    /// Kernels communicated, and none computed.
    Exposed,
    /// Copies ran, and no kernel.
    Transfer,
}

impl Load {
    /// All loads, in the order of [`Timeline::spans`].
    pub const ALL: [Load; 4] = [Load::Compute, Load::Hidden, Load::Exposed, Load::Transfer];
}

/// The time of each load in a span, ns.
pub type SpanLoads = [u64; Load::ALL.len()];

/// The load over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The binary logarithm of the length of a span, ns.
    shift: u32,
    /// The number of the first span: its begin in lengths of a span.
    first: u64,
    spans: Vec<SpanLoads>,
}

impl Timeline {
    /// Adds a load from `from` to `to`, ns. Loads come in the order of time and do not overlap.
    pub(super) fn add(&mut self, from: u64, to: u64, load: Load) {
        if to <= from {
            return;
        }
        if self.spans.is_empty() {
            self.first = from >> self.shift;
        }
        while self.span_of(to - 1) - self.first.min(self.span_of(from)) >= MAX_SPANS as u64 {
            self.halve();
        }
        let (first, last) = (self.span_of(from), self.span_of(to - 1));
        if first < self.first {
            let missing = (self.first - first) as usize;
            self.spans
                .splice(0..0, std::iter::repeat_n(SpanLoads::default(), missing));
            self.first = first;
        }
        let wanted = (last - self.first) as usize + 1;
        if self.spans.len() < wanted {
            self.spans.resize(wanted, SpanLoads::default());
        }
        for number in first..=last {
            let begin = number << self.shift;
            let end = begin.saturating_add(1 << self.shift);
            let part = to.min(end) - from.max(begin);
            self.spans[(number - self.first) as usize][load as usize] += part;
        }
    }

    fn span_of(&self, time: u64) -> u64 {
        time >> self.shift
    }

    /// Doubles the length of the spans.
    fn halve(&mut self) {
        let (old, first) = (std::mem::take(&mut self.spans), self.first);
        self.shift += 1;
        self.first >>= 1;
        for (number, loads) in (first..).zip(old) {
            let place = ((number >> 1) - self.first) as usize;
            if place >= self.spans.len() {
                self.spans.push(SpanLoads::default());
            }
            for (sum, more) in self.spans[place].iter_mut().zip(loads) {
                *sum += more;
            }
        }
    }

    /// Gives several timelines spans of equal length.
    pub fn align<'t>(timelines: impl IntoIterator<Item = &'t mut Timeline>) {
        let filled = timelines.into_iter().filter(|one| !one.spans.is_empty());
        let mut all: Vec<_> = filled.collect();
        let mut shift = all.iter().map(|one| one.shift).max().unwrap_or(0);
        let begin = all.iter().map(|one| one.first << one.shift).min();
        let end = all.iter().map(|one| {
            let last = one.first + one.spans.len() as u64 - 1;
            last << one.shift
        });
        let (begin, end) = (begin.unwrap_or(0), end.max().unwrap_or(0));
        while (end >> shift) - (begin >> shift) >= MAX_SPANS as u64 {
            shift += 1;
        }
        for one in &mut all {
            while one.shift < shift {
                one.halve();
            }
        }
    }

    /// The length of a span.
    pub fn length(&self) -> Nanos {
        Nanos(1 << self.shift)
    }

    /// The spans: begin, and the time of each load.
    pub fn spans(&self) -> impl Iterator<Item = (Nanos, &SpanLoads)> {
        let begins = (self.first..).map(|number| Nanos(number << self.shift));
        begins.zip(&self.spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn total(timeline: &Timeline) -> u64 {
        timeline.spans().flat_map(|(_, loads)| loads).sum()
    }

    #[test]
    fn spans_become_longer_and_keep_their_sums() {
        let mut timeline = Timeline::default();
        timeline.add(1_000_000, 1_000_010, Load::Compute);
        assert_eq!(timeline.length(), Nanos(1));
        timeline.add(1_001_000, 1_003_000, Load::Exposed);
        assert_eq!(timeline.length(), Nanos(4));
        timeline.add(999_000, 999_500, Load::Transfer);
        let of = |load: Load| {
            timeline
                .spans()
                .map(|(_, loads)| loads[load as usize])
                .sum::<u64>()
        };
        assert_eq!(Load::ALL.map(of), [10, 0, 2000, 500]);
        assert!(timeline.spans.len() <= MAX_SPANS);
        let (begin, _) = timeline.spans().next().unwrap();
        assert_eq!(begin, Nanos(999_000));
    }

    #[test]
    fn the_ends_of_time_are_within_reach() {
        let mut timeline = Timeline::default();
        timeline.add(0, 1, Load::Compute);
        timeline.add(u64::MAX - 1, u64::MAX, Load::Compute);
        assert_eq!((total(&timeline), timeline.spans.len()), (2, MAX_SPANS));
    }

    #[test]
    fn aligned_timelines_have_spans_of_equal_length() {
        let mut all = [
            Timeline::default(),
            Timeline::default(),
            Timeline::default(),
        ];
        all[0].add(5, 10, Load::Compute);
        all[1].add(100_000, 101_000, Load::Compute);
        Timeline::align(&mut all);
        assert_eq!(
            all.each_ref().map(Timeline::length),
            [128, 128, 1].map(Nanos)
        );
        assert_eq!(all.each_ref().map(total), [5, 1000, 0]);
    }

    proptest! {
        #[test]
        fn no_time_is_lost(parts in prop::collection::vec((0u64..5000, 1u64..3000), 1..100)) {
            let (mut timeline, mut now, mut sum) = (Timeline::default(), 0, 0);
            for (gap, length) in parts {
                now += gap;
                timeline.add(now, now + length, Load::Compute);
                now += length;
                sum += length;
            }
            prop_assert_eq!(total(&timeline), sum);
            for (_, loads) in timeline.spans() {
                prop_assert!(loads.iter().sum::<u64>() <= timeline.length().0);
            }
        }
    }
}
