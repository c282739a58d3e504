//! Random numbers of the simulator: xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number
//! generators", 2019), seeded by splitmix64 as its authors recommend.
//!
//! It is implemented here because equal seeds must give equal records in every version, which no crate guarantees. It
//! uses integers only, so that no result depends on a libm.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: [u64; 4],
}

impl Random {
    /// Creates the generator for a seed.
    pub(super) fn new(seed: u64) -> Random {
        let mut state = seed;
        Random {
            state: std::array::from_fn(|_| splitmix(&mut state)),
        }
    }

    /// Creates an independent generator for a thread, a device and so on. The numbers that one of them draws do not
    /// affect the others.
    pub(super) fn fork(seed: u64, purpose: Purpose, number: usize) -> Random {
        let mut state = seed ^ ((purpose as u64) << 56) ^ ((number as u64) << 40);
        Random::new(splitmix(&mut state))
    }

    fn next(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound`, which must not be 0 (Lemire's multiplication; its bias is below `bound / 2^64`).
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// `value` plus or minus `percent`.
    pub(super) fn around(&mut self, value: u64, percent: u64) -> u64 {
        let reach = value / 100 * percent + value % 100 * percent / 100;
        value - reach + self.below(2 * reach + 1)
    }

    /// A random duration of host code: close to `value`, but one in 64 takes up to eight times as long.
    pub(super) fn host(&mut self, value: u64) -> u64 {
        let usual = self.around(value, 20);
        match self.below(64) {
            0 => usual + self.below(value * 7 + 1),
            _ => usual,
        }
    }
}

/// The use of a generator.
#[derive(Copy, Clone, Debug)]
pub(super) enum Purpose {
    Thread = 1,
    Device = 2,
    Clock = 3,
    Sampling = 4,
    Waves = 5,
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_the_published_sequence() {
        // First outputs for seed 1234567, as in the reference implementation's test vectors.
        let mut state = 1_234_567;
        assert_eq!(splitmix(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(splitmix(&mut state), 3_203_168_211_198_807_973);
    }

    #[test]
    fn xoshiro_gives_the_published_sequence() {
        // State 1, 2, 3, 4, as in the reference implementation's test vectors.
        let mut random = Random {
            state: [1, 2, 3, 4],
        };
        let first: Vec<u64> = (0..4).map(|_| random.next()).collect();
        assert_eq!(
            first,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = Random::new(1);
        for _ in 0..10_000 {
            assert!(random.below(7) < 7);
            assert!((90..=110).contains(&random.around(100, 10)));
            assert!(random.host(100) <= 820);
        }
        assert_eq!(random.around(0, 10), 0);
    }

    #[test]
    fn forks_differ_by_purpose_and_number() {
        let draw = |purpose, number| Random::fork(5, purpose, number).next();
        let drawn = [
            draw(Purpose::Thread, 0),
            draw(Purpose::Thread, 1),
            draw(Purpose::Device, 0),
            draw(Purpose::Clock, 0),
        ];
        for (place, one) in drawn.iter().enumerate() {
            assert!(!drawn[..place].contains(one));
        }
    }
}
