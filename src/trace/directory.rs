//! Finding the place of something in a list by a small key, many times over.

use std::hash::Hash;

use gputrail_record::number_map::NumberMap;

/// Keys repeat: so many are found without hashing.
const RECENT: usize = 64;

/// Where each key stands in a list.
#[derive(Clone, Debug)]
pub(super) struct Directory<K> {
    all: NumberMap<K, usize>,
    /// Some of them, by their slots.
    recent: [Option<(K, usize)>; RECENT],
}

impl<K: Copy> Default for Directory<K> {
    fn default() -> Directory<K> {
        Directory {
            all: NumberMap::default(),
            recent: [None; RECENT],
        }
    }
}

impl<K: Copy + Eq + Hash> Directory<K> {
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
        *self = Directory::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_slot_keep_their_places() {
        let mut directory = Directory::default();
        for key in 0..300u32 {
            assert_eq!(directory.get(key, key), None);
            directory.insert(key, key as usize + 7);
        }
        for key in (0..300).chain(0..300) {
            assert_eq!(directory.get(key, key), Some(key as usize + 7));
        }
        directory.clear();
        assert_eq!(directory.get(299, 299), None);
    }
}
