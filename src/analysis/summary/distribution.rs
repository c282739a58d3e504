//! The distribution of values: their number, sum, mean, extremes, deviation and median, in little memory.

use std::mem::size_of;

/// Values below this are distinguished exactly; above, each octave has this many steps.
const STEPS: usize = 64;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// A distribution of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// The number of values.
    pub count: u64,
    /// Their sum, in their unit.
    pub total: u64,
    /// The least value.
    pub least: u64,
    /// The greatest value.
    pub most: u64,
    /// The sum of their squares.
    squares: f64,
    /// The number of values in each step of each octave.
    octaves: Vec<(u32, Box<[u64; STEPS]>)>,
}

impl Distribution {
    /// The maximum error of [`Distribution::median`], as a share of it: half a step.
    pub const MEDIAN_ERROR: f64 = 0.5 / STEPS as f64;

    /// Maximum size of a distribution in memory.
    pub const MAX_BYTES: usize =
        size_of::<Distribution>() + 60 * (STEPS * size_of::<u64>() + size_of::<(u32, Box<u64>)>());

    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.least = match self.count {
            0 => value,
            _ => self.least.min(value),
        };
        self.most = self.most.max(value);
        self.total = self.total.saturating_add(value);
        self.count += 1;
        self.squares += value as f64 * value as f64;
        let (octave, step) = place(value);
        self.steps(octave)[step] += 1;
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Distribution) {
        if other.count == 0 {
            return;
        }
        self.least = match self.count {
            0 => other.least,
            _ => self.least.min(other.least),
        };
        self.most = self.most.max(other.most);
        self.total = self.total.saturating_add(other.total);
        self.count += other.count;
        self.squares += other.squares;
        for (octave, steps) in &other.octaves {
            for (sum, count) in self.steps(*octave).iter_mut().zip(steps.iter()) {
                *sum += count;
            }
        }
    }

    /// The mean; 0 without values.
    pub fn mean(&self) -> u64 {
        self.total.checked_div(self.count).unwrap_or(0)
    }

    /// The standard deviation of the population; 0 without values.
    pub fn deviation(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let count = self.count as f64;
        let mean = self.total as f64 / count;
        (self.squares / count - mean * mean).max(0.0).sqrt()
    }

    /// The median; 0 without values. For an even number of values it is the mean of the two in the middle. Its relative
    /// error is at most [`Distribution::MEDIAN_ERROR`].
    pub fn median(&self) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let (low, high) = (
            self.ranked((self.count - 1) / 2),
            self.ranked(self.count / 2),
        );
        low + (high - low) / 2
    }

    /// An approximation of the value that has `rank` values before it.
    fn ranked(&self, rank: u64) -> u64 {
        let mut octaves: Vec<_> = self.octaves.iter().collect();
        octaves.sort_by_key(|(octave, _)| *octave);
        let mut before = 0;
        for (octave, steps) in octaves {
            for (step, count) in steps.iter().enumerate() {
                before += count;
                if before > rank {
                    return middle(*octave, step as u64).clamp(self.least, self.most);
                }
            }
        }
        self.most
    }

    #[inline]
    fn steps(&mut self, octave: u32) -> &mut [u64; STEPS] {
        let place = match self.octaves.iter().position(|(known, _)| *known == octave) {
            Some(place) => place,
            None => {
                self.octaves.push((octave, Box::new([0; STEPS])));
                self.octaves.len() - 1
            }
        };
        &mut self.octaves[place].1
    }
}

/// The octave and step of a value. The first octave holds the values below [`STEPS`], one in each step.
#[inline]
fn place(value: u64) -> (u32, usize) {
    match value.checked_ilog2() {
        Some(log @ STEP_BITS..) => {
            let shift = log - STEP_BITS;
            (shift + 1, (value >> shift) as usize % STEPS)
        }
        _ => (0, value as usize),
    }
}

/// The middle of a step.
fn middle(octave: u32, step: u64) -> u64 {
    match octave {
        0 => step,
        octave => {
            let shift = octave - 1;
            (step + STEPS as u64) << shift | (1 << shift) >> 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Distribution {
        let mut distribution = Distribution::default();
        values.iter().for_each(|value| distribution.add(*value));
        distribution
    }

    #[test]
    fn small_values_are_exact() {
        let values = of(&[3, 1, 2, 10]);
        assert_eq!(
            (values.count, values.total, values.least, values.most),
            (4, 16, 1, 10)
        );
        assert_eq!((values.mean(), values.median()), (4, 2));
        assert!((values.deviation() - 12.5_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn nothing_has_no_mean_and_no_median() {
        let none = Distribution::default();
        assert_eq!((none.mean(), none.median(), none.deviation()), (0, 0, 0.0));
    }

    proptest! {
        #[test]
        fn the_median_is_off_by_no_more_than_is_said(
            values in prop::collection::vec(prop_oneof![0_u64..200, 0_u64..1_000_000, any::<u64>()], 1..100),
        ) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
            let expected = low as f64 + (high - low) as f64 / 2.0;
            let error = (of(&values).median() as f64 - expected).abs();
            // One for the rounding to integers.
            prop_assert!(error <= expected * Distribution::MEDIAN_ERROR + 1.0, "{error} of {expected}");
        }

        #[test]
        fn distributions_add_up(first: Vec<u64>, second: Vec<u64>) {
            let mut merged = of(&first);
            merged.merge(&of(&second));
            let both = of(&[first, second].concat());
            prop_assert_eq!((merged.count, merged.total, merged.least, merged.most),
                (both.count, both.total, both.least, both.most));
            prop_assert_eq!(merged.median(), both.median());
        }
    }
}
