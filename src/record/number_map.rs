//! Tables whose keys are a few small numbers: hashing them well costs more than the rest of a record.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table with keys made of numbers.
pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Mixes numbers by multiplication. Who chooses the numbers on purpose makes the tables slow; they come
/// from the program that is traced, which could be slow more easily.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberHasher {
    state: u64,
}

impl NumberHasher {
    #[inline]
    fn mix(&mut self, number: u64) {
        // The golden ratio's multiplier spreads upwards, the rotation brings that down again.
        self.state = (self.state.rotate_left(26) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix(u64::from(*byte)));
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.mix(u64::from(number));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.mix(u64::from(number));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state ^ self.state >> 32
    }
}
