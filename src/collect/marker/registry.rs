//! Objects of the program that markers refer to: domains, strings, categories, payload layouts, counters.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Chains of a registry.
const CHAINS: usize = 256;
/// Maximum number of entries.
const MAX_ENTRIES: usize = 1 << 18;

/// A map whose entries live for ever. A later entry with the key of an earlier one replaces it for lookups. No lock is
/// taken, so that a forked child can use what it has inherited.
pub(crate) struct Registry<K, V> {
    chains: [AtomicPtr<Entry<K, V>>; CHAINS],
    length: AtomicUsize,
}

struct Entry<K, V> {
    key: K,
    value: V,
    next: *mut Entry<K, V>,
}

impl<K: Eq + Hash + Sync, V: Sync> Registry<K, V> {
    pub const fn new() -> Registry<K, V> {
        Registry {
            chains: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHAINS],
            length: AtomicUsize::new(0),
        }
    }

    fn chain<Q: Hash + ?Sized>(&self, key: &Q) -> &AtomicPtr<Entry<K, V>> {
        let hash = foldhash::fast::FixedState::default().hash_one(key);
        &self.chains[hash as usize % CHAINS]
    }

    /// The latest value with this key.
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut next = self.chain(key).load(Ordering::Acquire);
        // SAFETY: null or a leaked box.
        while let Some(entry) = unsafe { next.as_ref() } {
            if entry.key.borrow() == key {
                return Some(&entry.value);
            }
            next = entry.next;
        }
        None
    }

    /// Adds a value; `None` if there are too many.
    pub fn put(&self, key: K, value: V) -> Option<&V> {
        if self.length.fetch_add(1, Ordering::Relaxed) >= MAX_ENTRIES {
            self.length.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let chain = self.chain(&key);
        let mut next = chain.load(Ordering::Acquire);
        let entry = Box::into_raw(Box::new(Entry { key, value, next }));
        loop {
            match chain.compare_exchange_weak(next, entry, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: the box was just leaked.
                Ok(_) => return Some(unsafe { &(*entry).value }),
                Err(there) => {
                    next = there;
                    // SAFETY: no other thread has seen the entry.
                    unsafe { (*entry).next = next };
                }
            }
        }
    }

    /// The latest value with this key, which `make` creates if there is none.
    pub fn get_or_put(&self, key: K, make: impl FnOnce() -> V) -> Option<&V> {
        match self.get(&key) {
            Some(value) => Some(value),
            None => self.put(key, make()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_entry_of_a_key_is_found() {
        static NAMES: Registry<Box<str>, u32> = Registry::new();
        assert_eq!(NAMES.get("a"), None);
        for number in 0..1000 {
            NAMES.put(format!("{}", number % 500).into(), number);
        }
        assert_eq!(NAMES.get("7"), Some(&507));
        assert_eq!(NAMES.get_or_put("7".into(), || 1), Some(&507));
        assert_eq!(NAMES.get_or_put("x".into(), || 1), Some(&1));
    }

    #[test]
    fn threads_that_add_at_once_lose_nothing() {
        static NUMBERS: Registry<u32, u32> = Registry::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for number in 0..1000 {
                        NUMBERS.put(thread * 1000 + number, number);
                    }
                });
            }
        });
        assert!((0..4000).all(|number| NUMBERS.get(&number) == Some(&(number % 1000))));
    }
}
