//! Hash tables whose keys are a few small numbers, many of which a file or another process chooses.
//!
//! Each table hashes with a random key, so that nobody can choose numbers that collide. The order of a table's entries
//! therefore differs from run to run: sort them before anything depends on it.

use std::collections::HashMap;

/// A table with keys made of numbers.
pub type NumberMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    /// The low bits of a hash choose a table's bucket.
    fn buckets(table: &NumberMap<u64, ()>, numbers: impl Iterator<Item = u64>) -> usize {
        let bucket = |number| table.hasher().hash_one(number) & 0xffff;
        numbers.map(bucket).collect::<HashSet<u64>>().len()
    }

    #[test]
    fn numbers_that_a_file_chooses_do_not_collide() {
        let table = NumberMap::default();
        // Multiplied by the golden ratio's constant, the upper half of these equals the lower half.
        let inverse = 0xf1de_83e1_9937_733d_u64;
        let chosen = (1..=4096u64).map(|i| (i << 32 | i).wrapping_mul(inverse));
        assert!(buckets(&table, chosen) > 1000);
        // Numbers that differ in their upper bits alone.
        assert!(buckets(&table, (0..4096).map(|i| i << 52)) > 1000);
        assert!(buckets(&table, 0..4096) > 1000);
    }

    #[test]
    fn each_table_hashes_with_a_key_of_its_own() {
        let [one, other] = [(); 2].map(|()| NumberMap::<u64, ()>::default());
        let differ =
            |number: &u64| one.hasher().hash_one(number) != other.hasher().hash_one(number);
        assert!((0..64).filter(differ).count() > 60);
    }
}
