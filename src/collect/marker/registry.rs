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
pub struct Registry<K, V> {
    chains: [AtomicPtr<RegistryEntry<K, V>>; CHAINS],
    length: AtomicUsize,
}

struct RegistryEntry<K, V> {
    key: K,
    value: V,
    next: *mut RegistryEntry<K, V>,
}

impl<K: Eq + Hash + Sync, V: Sync> Registry<K, V> {
    /// A registry without entries.
    pub const fn new() -> Registry<K, V> {
        Registry {
            chains: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHAINS],
            length: AtomicUsize::new(0),
        }
    }

    fn chain<Q: Hash + ?Sized>(&self, key: &Q) -> &AtomicPtr<RegistryEntry<K, V>> {
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
        // SAFETY: the head of a chain.
        unsafe { RegistryEntry::find(self.chain(key).load(Ordering::Acquire), key) }
    }

    /// Adds a value; `None` if there are too many.
    pub fn put(&self, key: K, value: V) -> Option<&V> {
        self.insert(key, value, false)
    }

    /// The latest value with this key, which `make` creates if there is none. Threads that create it at the same time get
    /// the same value.
    pub fn get_or_put(&self, key: K, make: impl FnOnce() -> V) -> Option<&V> {
        match self.get(&key) {
            Some(value) => Some(value),
            None => self.insert(key, make(), true),
        }
    }

    /// Adds a value, or with `unless_present` returns the value that the key has.
    fn insert(&self, key: K, value: V, unless_present: bool) -> Option<&V> {
        if self.length.fetch_add(1, Ordering::Relaxed) >= MAX_ENTRIES {
            self.length.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let chain = self.chain(&key);
        let mut next = chain.load(Ordering::Acquire);
        let mut entry = Box::new(RegistryEntry { key, value, next });
        loop {
            // SAFETY: the head of this chain.
            let present = || unsafe { RegistryEntry::find(next, &entry.key) };
            if let Some(present) = unless_present.then(present).flatten() {
                self.length.fetch_sub(1, Ordering::Relaxed);
                return Some(present);
            }
            entry.next = next;
            let new = Box::into_raw(entry);
            match chain.compare_exchange_weak(next, new, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: the box was just leaked.
                Ok(_) => return Some(unsafe { &(*new).value }),
                Err(there) => {
                    next = there;
                    // SAFETY: created above, and no other thread has seen it.
                    entry = unsafe { Box::from_raw(new) };
                }
            }
        }
    }
}

impl<K, V> RegistryEntry<K, V> {
    /// The value of `key` in the chain that begins with `next`.
    ///
    /// # Safety
    ///
    /// `next` is null or an entry of a chain: a leaked box, which is never freed, and which nobody writes. `'a` is no longer
    /// than the registry lives.
    #[inline]
    unsafe fn find<'a, Q>(mut next: *mut RegistryEntry<K, V>, key: &Q) -> Option<&'a V>
    where
        K: Borrow<Q> + 'a,
        Q: Eq + ?Sized,
    {
        // SAFETY: the first `next` is null or an entry of a chain (the caller's promise), and each later one is the `next`
        // of such an entry. Entries are never freed, and nobody writes one that is in a chain.
        while let Some(entry) = unsafe { next.as_ref() } {
            if entry.key.borrow() == key {
                return Some(&entry.value);
            }
            next = entry.next;
        }
        None
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

    #[test]
    fn threads_that_create_a_value_at_once_get_the_same_one() {
        const KEYS: usize = 2000;
        const THREADS: usize = 4;
        static OWNERS: Registry<usize, usize> = Registry::new();
        let barrier = std::sync::Barrier::new(THREADS);
        let create = |thread| {
            let create = |key| {
                barrier.wait();
                *OWNERS.get_or_put(key, || thread).unwrap()
            };
            (0..KEYS).map(create).collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let threads = [0, 1, 2, 3].map(|thread| scope.spawn(move || create(thread)));
            let [first, others @ ..] = threads.map(|thread| thread.join().unwrap());
            assert!(others.iter().all(|other| *other == first));
        });
        assert_eq!(OWNERS.length.load(Ordering::Relaxed), KEYS);
    }
}
