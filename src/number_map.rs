//! Tables whose keys are a few small numbers: hashing them well costs more than the rest of a record.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

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

/// Keys repeat: so many are found without hashing.
const RECENT: usize = 64;

/// Places in a list by key.
#[derive(Clone, Debug)]
pub(crate) struct Places<K> {
    all: NumberMap<K, usize>,
    /// Some of them, by their slots.
    recent: [Option<(K, usize)>; RECENT],
}

impl<K: Copy> Default for Places<K> {
    fn default() -> Places<K> {
        Places {
            all: NumberMap::default(),
            recent: [None; RECENT],
        }
    }
}

impl<K: Copy + Eq + Hash> Places<K> {
    /// The place of `key`. Keys of different slots do not drive each other out of reach.
    #[inline]
    pub fn get(&mut self, slot: u32, key: K) -> Option<usize> {
        match self.recent[slot as usize % RECENT] {
            Some((known, place)) if known == key => Some(place),
            _ => self.look_up(slot, key),
        }
    }

    fn look_up(&mut self, slot: u32, key: K) -> Option<usize> {
        let place = *self.all.get(&key)?;
        self.recent[slot as usize % RECENT] = Some((key, place));
        Some(place)
    }

    /// `key` stands at `place`.
    pub fn insert(&mut self, key: K, place: usize) {
        self.all.insert(key, place);
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        *self = Places::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_slot_keep_their_places() {
        let mut places = Places::default();
        for key in 0..300u32 {
            assert_eq!(places.get(key, key), None);
            places.insert(key, key as usize + 7);
        }
        for key in (0..300).chain(0..300) {
            assert_eq!(places.get(key, key), Some(key as usize + 7));
        }
        places.clear();
        assert_eq!(places.get(299, 299), None);
    }
}
