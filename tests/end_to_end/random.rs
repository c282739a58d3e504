//! Random numbers whose seed a failing test prints, so that it can be repeated.

use std::time::{SystemTime, UNIX_EPOCH};

/// A generator of numbers (SplitMix64).
pub struct Random(u64);

impl Random {
    /// A generator with a new seed, or with the one in `GPUTRAIL_TEST_SEED`.
    pub fn new() -> Random {
        let now = || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.expect("it is after 1970").as_nanos() as u64
        };
        let seed = std::env::var("GPUTRAIL_TEST_SEED").map_or_else(
            |_| now(),
            |seed| seed.parse().expect("GPUTRAIL_TEST_SEED is a number"),
        );
        eprintln!("GPUTRAIL_TEST_SEED={seed}");
        Random(seed)
    }

    /// A number from 0 up to and including `most`.
    pub fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % (most + 1)
    }
}
