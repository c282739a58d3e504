//! A piecewise linear map from one clock to another.
//!
//! It is made of readings of both clocks, which may come from damaged or hostile files. For any readings the map is
//! monotonic and free of overflow. It interpolates between knots and extrapolates at the rate of the outermost second.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The least span that determines a rate, in units of y (10 ms): a reading is off by some 100 ns.
const MIN_RATE_SPAN: u64 = 10_000_000;
/// The span over which the outer rates are measured, if the points cover that much (1 s).
const OUTER_SPAN: u64 = 1_000_000_000;
/// The largest relative deviation of an outer rate from the usual one. A larger one means that a clock was set, not
/// slewed, and must not be extrapolated.
const MAX_RATE_DEVIATION: f64 = 0.01;

/// The fast path of [`Knot`] adds at most this to a value,
const MAX_FAST_OFFSET: f64 = (1u64 << 61) as f64;
/// and only to values up to this.
const MAX_FAST_BASE: u64 = 1 << 63;

#[derive(Copy, Clone, Debug, PartialEq)]
struct Knot {
    x: u64,
    y: u64,
    /// Rate towards the next knot. In the last knot: the rate beyond it.
    rate: f64,
    /// The next knot. In the last knot: the largest coordinates.
    next: (u64, u64),
    /// Distances from the knot below this lie before the next knot, convert without overflow, and
    /// give at least 1.
    fast_range: u64,
}

impl Knot {
    fn new((x, y): (u64, u64), rate: f64, next: (u64, u64)) -> Knot {
        let before_overflow = (MAX_FAST_OFFSET / rate) as u64;
        Knot {
            x,
            y,
            rate,
            next,
            fast_range: match y {
                1..=MAX_FAST_BASE => (next.0 - x)
                    .min(before_overflow)
                    .min(MAX_FAST_OFFSET as u64),
                _ => 0,
            },
        }
    }

    /// The values at `xs`, if all of them lie in the fast range.
    #[inline(always)]
    fn at_fast<const N: usize>(&self, xs: [u64; N]) -> Option<[u64; N]> {
        let distances = xs.map(|x| x.wrapping_sub(self.x));
        if distances
            .iter()
            .any(|distance| *distance >= self.fast_range)
        {
            return None;
        }
        // Signed numbers convert to and from floating point in half the instructions.
        let offset = |distance| (distance as i64 as f64 * self.rate + 0.5) as i64 as u64;
        Some(distances.map(|distance| self.bounded(self.y.wrapping_add(offset(distance)))))
    }

    /// The value at `x`, which lies between this knot and the next.
    fn at(&self, x: u64) -> u64 {
        self.bounded(self.y.saturating_add(scaled(x - self.x, self.rate)))
    }

    #[inline(always)]
    fn bounded(&self, y: u64) -> u64 {
        // Rounding must not pass the next knot.
        y.min(self.next.1)
    }
}

/// The index of the knot used last. Successive times are mostly close to each other.
#[derive(Debug, Default)]
struct LastKnot(AtomicUsize);

impl Clone for LastKnot {
    fn clone(&self) -> LastKnot {
        LastKnot::default()
    }
}

impl PartialEq for LastKnot {
    fn eq(&self, _: &LastKnot) -> bool {
        true
    }
}

/// A strictly increasing piecewise linear map.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClockLine {
    /// At least one. x and y both strictly increase.
    knots: Vec<Knot>,
    /// Rate before the first knot.
    before: f64,
    /// The span in y over which the outer rates were measured, or 0 if the nominal rate is used.
    measured: u64,
    last: LastKnot,
}

impl ClockLine {
    /// The line through `points`, or `None` if there are none. The fewest possible points that are out of order are
    /// left out. `nominal` is the rate (y per x) to use where the points do not determine one.
    pub fn through(points: Vec<(u64, u64)>, nominal: f64) -> Option<ClockLine> {
        let points = longest_increasing(points);
        let mut knots: Vec<Knot> = points
            .windows(2)
            .map(|pair| Knot::new(pair[0], rate(pair[0], pair[1]), pair[1]))
            .collect();
        let &last = points.last()?;
        let nominal = if nominal.is_finite() && (1e-9..=1e9).contains(&nominal) {
            nominal
        } else {
            1.0
        };
        let usual = usual_rate(&points).unwrap_or(nominal);
        let forward = outer_rate(&points, points.len() - 1, usual);
        let backward = outer_rate(&points, 0, usual);
        knots.push(Knot::new(last, forward.0, (u64::MAX, u64::MAX)));
        Some(ClockLine {
            knots,
            before: backward.0,
            measured: forward.1.min(backward.1),
            last: LastKnot::default(),
        })
    }

    /// The value at `x`.
    #[inline]
    pub fn at(&self, x: u64) -> u64 {
        match self.at_fast([x]) {
            Some([y]) => y,
            None => self.at_slow(x),
        }
    }

    /// The values at `xs`, none of them 0, if all of them lie in the fast range of the knot used last.
    #[inline(always)]
    pub fn at_fast<const N: usize>(&self, xs: [u64; N]) -> Option<[u64; N]> {
        let knot = self.knots.get(self.last.0.load(Ordering::Relaxed))?;
        knot.at_fast(xs)
    }

    #[cold]
    fn at_slow(&self, x: u64) -> u64 {
        match self.look_up(x) {
            Some(knot) => knot.at(x),
            None => {
                let first = &self.knots[0];
                first.y.saturating_sub(scaled(first.x - x, self.before))
            }
        }
    }

    /// The last knot at or before `x`, or `None` if `x` lies before the first.
    fn look_up(&self, x: u64) -> Option<&Knot> {
        let after = self.knots.partition_point(|knot| knot.x <= x);
        let index = after.checked_sub(1)?;
        // Relaxed: the index is a hint, and the range check of a stale one fails.
        self.last.0.store(index, Ordering::Relaxed);
        Some(&self.knots[index])
    }

    /// The x whose value is `y`.
    pub fn inverse(&self, y: u64) -> u64 {
        let next = self.knots.partition_point(|knot| knot.y <= y);
        let Some(knot) = next.checked_sub(1).map(|i| &self.knots[i]) else {
            let first = &self.knots[0];
            return first
                .x
                .saturating_sub(scaled(first.y - y, 1.0 / self.before));
        };
        let x = knot.x.saturating_add(scaled(y - knot.y, 1.0 / knot.rate));
        self.knots.get(next).map_or(x, |next| x.min(next.x))
    }

    /// The largest distance of a knot from the straight line between its neighbours: how much the rate varies, and so a
    /// bound for the error between knots.
    pub fn unevenness(&self) -> u64 {
        let deviation = |knots: &[Knot]| {
            let [a, b, c] = [knots[0], knots[1], knots[2]];
            let straight = a.y + scaled(b.x - a.x, rate((a.x, a.y), (c.x, c.y))).min(c.y - a.y);
            straight.abs_diff(b.y)
        };
        self.knots.windows(3).map(deviation).max().unwrap_or(0)
    }

    /// The distance of `x` from the range of the knots, in units of y.
    pub fn outside(&self, x: u64) -> u64 {
        let (first, last) = (self.knots[0], self.knots[self.knots.len() - 1]);
        if x < first.x {
            scaled(first.x - x, self.before)
        } else {
            scaled(x.saturating_sub(last.x), last.rate)
        }
    }

    /// The span in y over which the outer rates were measured, if they were.
    pub fn measured_span(&self) -> Option<u64> {
        (self.measured > 0).then_some(self.measured)
    }

    /// The mean rate between the first knot and the last, if their span is long enough to determine it.
    pub fn mean_rate(&self) -> Option<f64> {
        let (first, last) = (self.knots[0], self.knots[self.knots.len() - 1]);
        (last.y - first.y >= MIN_RATE_SPAN).then(|| rate((first.x, first.y), (last.x, last.y)))
    }
}

/// `distance` times `rate`, rounded, saturating.
fn scaled(distance: u64, rate: f64) -> u64 {
    // Both roundings are monotonic: a greater distance never gives a smaller value.
    (distance as f64 * rate + 0.5) as u64
}

fn rate(from: (u64, u64), to: (u64, u64)) -> f64 {
    (to.1 - from.1) as f64 / (to.0 - from.0) as f64
}

/// The median rate of the stretches that are long enough to determine one.
fn usual_rate(points: &[(u64, u64)]) -> Option<f64> {
    let mut rates = Vec::new();
    let mut from = *points.first()?;
    for &to in points {
        if to.1 - from.1 >= MIN_RATE_SPAN {
            rates.push(rate(from, to));
            from = to;
        }
    }
    median(&mut rates)
}

/// The rate beyond the point at `end` (the first or the last), and the span over which it was measured.
fn outer_rate(points: &[(u64, u64)], end: usize, usual: f64) -> (f64, u64) {
    let anchor = points[end];
    let far = |point: &&(u64, u64)| point.1.abs_diff(anchor.1) >= OUTER_SPAN;
    let other = if end == 0 {
        points.iter().find(far).or(points.last())
    } else {
        points.iter().rev().find(far).or(points.first())
    };
    let other = *other.unwrap_or(&anchor);
    let span = other.1.abs_diff(anchor.1);
    if span < MIN_RATE_SPAN {
        return (usual, 0);
    }
    let measured = rate(other.min(anchor), other.max(anchor));
    if (measured / usual - 1.0).abs() <= MAX_RATE_DEVIATION {
        (measured, span)
    } else {
        (usual, MIN_RATE_SPAN)
    }
}

/// The median of `values`.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// The longest subsequence of `points` that strictly increases in both coordinates, by patience sorting.
fn longest_increasing(mut points: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    // Descending y among points with equal x: at most one of them enters the chain.
    points.sort_unstable_by_key(|&(x, y)| (x, std::cmp::Reverse(y)));
    // `ends[n]` is the point with the smallest y that ends a chain of n + 1 points.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous = vec![None; points.len()];
    for (i, &(_, y)) in points.iter().enumerate() {
        let length = ends.partition_point(|&end| points[end].1 < y);
        previous[i] = length.checked_sub(1).map(|n| ends[n]);
        if length == ends.len() {
            ends.push(i);
        } else {
            ends[length] = i;
        }
    }
    let mut chain = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(i) = next {
        chain.push(points[i]);
        next = previous[i];
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_passes_through_its_points() {
        let line = ClockLine::through(vec![(10, 100), (20, 300), (40, 320)], 1.0).unwrap();
        for (x, y) in [(10, 100), (15, 200), (20, 300), (30, 310), (40, 320)] {
            assert_eq!(line.at(x), y);
            assert_eq!(line.inverse(y), x);
        }
    }

    #[test]
    fn no_points_make_no_line() {
        assert_eq!(ClockLine::through(vec![], 1.0), None);
    }

    #[test]
    fn one_point_goes_on_at_the_nominal_rate() {
        let line = ClockLine::through(vec![(1000, 5000)], 0.5).unwrap();
        assert_eq!(line.at(1200), 5100);
        assert_eq!(line.at(800), 4900);
        assert_eq!(line.measured_span(), None);
    }

    #[test]
    fn a_point_out_of_order_is_left_out() {
        let mut points: Vec<_> = (1..100).map(|i| (i * 1000, i * 2000)).collect();
        let clean = ClockLine::through(points.clone(), 2.0).unwrap();
        points.push((50_500, 1));
        points.push((1, u64::MAX));
        assert_eq!(ClockLine::through(points, 2.0).unwrap(), clean);
    }

    #[test]
    fn beyond_a_clock_that_was_set_the_usual_rate_goes_on() {
        let second = 1_000_000_000;
        let mut points: Vec<_> = (1..=10).map(|i| (i * second, i * second)).collect();
        points.push((11 * second, 5000 * second)); // slept for more than an hour
        let line = ClockLine::through(points, 1.0).unwrap();
        assert_eq!(line.at(12 * second), 5001 * second);
        assert!(line.unevenness() > 1000 * second);
    }

    fn any_points() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let number = prop_oneof![any::<u64>(), 0..1000u64, Just(u64::MAX), Just(0)];
        proptest::collection::vec((number.clone(), number), 1..40)
    }

    proptest! {
            #[test]
            fn no_points_make_it_run_backwards_or_panic(
                points in any_points(),
                nominal in any::<f64>(),
                mut xs in proptest::collection::vec(any::<u64>(), 1..50),
            ) {
                xs.extend(points.iter().flat_map(|p| [p.0, p.0.wrapping_add(1), p.0.wrapping_sub(1)]));
                xs.sort_unstable();
                let line = ClockLine::through(points, nominal).unwrap();
                let ys: Vec<_> = xs.iter().map(|&x| line.at(x)).collect();
                prop_assert!(ys.is_sorted());
                let from_the_end: Vec<_> = xs.iter().rev().map(|&x| line.at(x)).collect();
                prop_assert!(ys.iter().rev().eq(&from_the_end));
                let back: Vec<_> = xs.iter().map(|&y| line.inverse(y)).collect();
                prop_assert!(back.is_sorted());
                for x in xs {
                    line.outside(x);
                }
                line.unevenness();
                line.mean_rate();
            }

            #[test]
    fn the_fast_path_gives_the_values_of_the_slow_one(
                from in (any::<u64>(), any::<u64>()),
                bits in (0u32..64, 0u32..64, 0u32..64),
                rate in prop_oneof![1e-9..1e9, 0.9..1.1],
                distance: u64,
            ) {
                let from = (from.0 >> bits.0, from.1 >> bits.1);
                let knot = Knot::new(from, rate, (u64::MAX, u64::MAX));
                let distance = distance >> bits.2;
    if distance < knot.fast_range {
                    let x = from.0 + distance;
    prop_assert_eq!(knot.at_fast([x]), Some([knot.at(x)]));
                    prop_assert!(knot.at(x) > 0);
                } else {
    prop_assert_eq!(knot.at_fast([from.0.wrapping_add(distance)]), None);
                }
            }

            #[test]
            fn the_longest_chain_is_found(points in proptest::collection::vec((0..12u64, 0..12u64), 1..12)) {
                let chain = longest_increasing(points.clone());
                prop_assert!(chain.windows(2).all(|p| p[0].0 < p[1].0 && p[0].1 < p[1].1));
                prop_assert!(chain.iter().all(|p| points.contains(p)));
                // Dynamic programming: the length of the longest chain that ends in each point.
                let mut sorted = points;
                sorted.sort_unstable();
                let mut longest = vec![1; sorted.len()];
                for i in 0..sorted.len() {
                    for j in 0..i {
                        if sorted[j].0 < sorted[i].0 && sorted[j].1 < sorted[i].1 {
                            longest[i] = longest[i].max(longest[j] + 1);
                        }
                    }
                }
                prop_assert_eq!(Some(chain.len()), longest.into_iter().max());
            }
        }
}
