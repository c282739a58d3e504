//! The tracked state of the program's objects, found by their handles without a lock.
//!
//! There is an open-addressed table for each kind of object, one cache line an entry. Readers are wait-free unless a
//! thread writes, which happens when objects are created, retained and released: a writer holds the lock, makes the
//! version odd while entries are in motion, and readers that saw it change look again. A table that grows leaves the
//! old one behind for readers that are still in it, which costs as much memory again at most.
//!
//! Orderings: an entry's words are relaxed; the version's release fence before and store after them
//! pair with the acquire load before and fence after a reader's look (a sequence lock).

use bytemuck::Pod;
use gputrail_buffer::platform::sync::{PerProcess, QuietGuard};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

/// Words of an entry, next to its key.
const WORDS: usize = 7;
/// Initial number of entries of a table.
const FIRST_CAPACITY: usize = 64;

/// Objects of one kind, by handle. `T` is 56 bytes.
pub(super) struct ObjectTable<T> {
    known: ReadSide,
    writer: PerProcess<HandleWriter>,
    info: PhantomData<T>,
}

/// The state of the writers.
#[derive(Default)]
struct HandleWriter {
    /// Whether this process has written before.
    has_begun: bool,
    /// Number of entries in use.
    used: usize,
}

/// The part that readers use.
struct ReadSide {
    table: AtomicPtr<HandleTable>,
    /// Odd while entries are in motion.
    version: AtomicU32,
}

impl ReadSide {
    fn table(&self) -> Option<&'static HandleTable> {
        // SAFETY: null, or a table that was leaked when it was put here.
        unsafe { self.table.load(Ordering::Acquire).as_ref() }
    }

    /// The first words of the entry of `key`.
    #[inline(always)]
    fn first<const N: usize>(&self, key: u64) -> Option<[u64; N]> {
        let table = self.table()?;
        loop {
            let version = self.version.load(Ordering::Acquire);
            // Nearly always the entry is in its home slot.
            let home = &table.entries[table.home(key)];
            let (entry, found) = if home.key.load(Ordering::Relaxed) == key {
                (home, true)
            } else {
                let (place, found) = table.find(key);
                (&table.entries[place], found)
            };
            let words = std::array::from_fn(|word| entry.words[word].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if version & 1 == 0 && self.version.load(Ordering::Relaxed) == version {
                return (found && key != 0).then_some(words);
            }
            std::hint::spin_loop();
        }
    }

    /// The first two words, or zeros if there is no entry. One function for all lookups of an enqueue, which keeps
    /// their code small.
    #[inline(never)]
    fn first_two(&self, key: u64) -> (u64, u64) {
        let Some(table) = self.table() else {
            return (0, 0);
        };
        let version = self.version.load(Ordering::Acquire);
        let home = &table.entries[table.home(key)];
        let found = home.key.load(Ordering::Relaxed);
        let [first, second, ..] = &home.words;
        let words = (
            first.load(Ordering::Relaxed),
            second.load(Ordering::Relaxed),
        );
        fence(Ordering::Acquire);
        // Nearly always the entry is in its home slot, and no thread writes. Free entries have no key.
        let is_whole = version & 1 == 0 && self.version.load(Ordering::Relaxed) == version;
        if is_whole && found == key && key != 0 {
            words
        } else {
            self.first_two_elsewhere(key)
        }
    }

    #[cold]
    #[inline(never)]
    fn first_two_elsewhere(&self, key: u64) -> (u64, u64) {
        let [first, second] = self.first(key).unwrap_or_default();
        (first, second)
    }
}

struct HandleTable {
    /// A power of two, at least twice the entries in use.
    entries: Box<[HandleEntry]>,
}

#[repr(align(64))]
struct HandleEntry {
    /// The handle, 0 if the entry is free.
    key: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl HandleEntry {
    fn free() -> HandleEntry {
        HandleEntry {
            key: AtomicU64::new(0),
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    fn load(&self) -> [u64; WORDS] {
        std::array::from_fn(|word| self.words[word].load(Ordering::Relaxed))
    }

    fn store(&self, key: u64, words: [u64; WORDS]) {
        for (to, word) in self.words.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        self.key.store(key, Ordering::Relaxed);
    }
}

impl HandleTable {
    fn with_capacity(capacity: usize) -> HandleTable {
        HandleTable {
            entries: (0..capacity).map(|_| HandleEntry::free()).collect(),
        }
    }

    /// The home slot of a handle, where the search begins. Handles are addresses: their lowest bits are 0.
    fn home(&self, key: u64) -> usize {
        let hash = (key >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & (self.entries.len() - 1)
    }

    /// The slot of `key`, or the free slot for it. At least half of the entries are free.
    fn find(&self, key: u64) -> (usize, bool) {
        let mut place = self.home(key);
        // A reader may see entries in motion, and must not search for ever.
        for _ in 0..self.entries.len() {
            match self.entries[place].key.load(Ordering::Relaxed) {
                0 => return (place, false),
                found if found == key => return (place, true),
                _ => place = (place + 1) & (self.entries.len() - 1),
            }
        }
        (place, false)
    }

    /// Frees a slot, and moves later entries of the run into the gap.
    fn remove(&self, mut place: usize) {
        let mask = self.entries.len() - 1;
        let mut next = place;
        loop {
            next = (next + 1) & mask;
            let key = self.entries[next].key.load(Ordering::Relaxed);
            if key == 0 {
                return self.entries[place].key.store(0, Ordering::Relaxed);
            }
            // An entry moves unless its home is after the gap.
            if (next.wrapping_sub(self.home(key)) & mask) >= (next.wrapping_sub(place) & mask) {
                self.entries[place].store(key, self.entries[next].load());
                place = next;
            }
        }
    }
}

impl<T: Pod> ObjectTable<T> {
    pub const fn new() -> ObjectTable<T> {
        const { assert!(size_of::<T>() == WORDS * 8) };
        ObjectTable {
            known: ReadSide {
                table: AtomicPtr::new(ptr::null_mut()),
                version: AtomicU32::new(0),
            },
            writer: PerProcess::new(),
            info: PhantomData,
        }
    }

    /// The tracked state of `handle`, or `None` if it was created before recording began.
    pub fn get(&self, handle: impl Into<u64>) -> Option<T> {
        self.known
            .first(handle.into())
            .map(|words| bytemuck::cast(EntryWords(words)))
    }

    /// A number that changes whenever an entry changes.
    #[inline(always)]
    pub fn version(&self) -> u32 {
        self.known.version.load(Ordering::Acquire)
    }

    /// The first 16 bytes of the tracked state of `handle`, or zeros.
    #[inline(always)]
    pub fn first_two(&self, handle: impl Into<u64>) -> [u64; 2] {
        self.known.first_two(handle.into()).into()
    }

    /// Tracks `handle`; replaces the state of an earlier object with that handle, since runtimes reuse addresses.
    pub fn insert(&self, handle: impl Into<u64>, info: T) {
        let key = handle.into();
        if key == 0 {
            return;
        }
        let mut writer = self.lock();
        let mut table = self.known.table();
        if table.is_none_or(|table| (writer.used + 1) * 2 > table.entries.len()) {
            table = Some(self.grow(table));
        }
        let table = table.expect("just made");
        let (place, found) = table.find(key);
        writer.used += usize::from(!found);
        self.change(|| table.entries[place].store(key, words(info)));
    }

    /// Changes the tracked state of `handle`, and returns the result of `change`.
    pub fn update<R>(&self, handle: impl Into<u64>, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let key = handle.into();
        let _writer = self.lock();
        let table = self.known.table()?;
        let (place, found) = table.find(key);
        if !found || key == 0 {
            return None;
        }
        let mut info: T = bytemuck::cast(EntryWords(table.entries[place].load()));
        let result = change(&mut info);
        self.change(|| table.entries[place].store(key, words(info)));
        Some(result)
    }

    /// Calls `each` with every entry, while no thread adds, changes or removes one.
    pub fn each(&self, mut each: impl FnMut(u64, &T)) {
        let _writer = self.lock();
        let Some(table) = self.known.table() else {
            return;
        };
        for entry in &table.entries {
            let key = entry.key.load(Ordering::Relaxed);
            if key != 0 {
                each(key, &bytemuck::cast(EntryWords(entry.load())));
            }
        }
    }

    /// Removes all entries.
    pub fn clear(&self) {
        let mut writer = self.lock();
        writer.used = 0;
        self.change(|| self.known.table.store(ptr::null_mut(), Ordering::Release));
    }

    /// Stops tracking `handle`.
    pub fn remove(&self, handle: impl Into<u64>) -> Option<T> {
        let key = handle.into();
        let mut writer = self.lock();
        let table = self.known.table()?;
        let (place, found) = table.find(key);
        if !found || key == 0 {
            return None;
        }
        let info = bytemuck::cast(EntryWords(table.entries[place].load()));
        writer.used -= 1;
        self.change(|| table.remove(place));
        Some(info)
    }

    fn lock(&self) -> QuietGuard<'_, HandleWriter> {
        let mut writer = self.writer.lock();
        if !writer.has_begun {
            writer.has_begun = true;
            // The table of a parent process is abandoned: a thread of the parent may have had entries in motion, and
            // may have left an odd version. Nobody reads before the first write: `clear` is called when the process
            // begins.
            self.known.table.store(ptr::null_mut(), Ordering::Relaxed);
            let version = self.known.version.load(Ordering::Relaxed);
            let even = (version | 1).wrapping_add(1);
            self.known.version.store(even, Ordering::Release);
        }
        writer
    }

    /// Runs `change`, which moves entries, with an odd version. The lock is held.
    fn change(&self, change: impl FnOnce()) {
        let current = &self.known.version;
        let version = current.load(Ordering::Relaxed);
        current.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        change();
        current.store(version.wrapping_add(2), Ordering::Release);
    }

    fn grow(&self, old: Option<&'static HandleTable>) -> &'static HandleTable {
        let capacity = old.map_or(FIRST_CAPACITY, |old| old.entries.len() * 2);
        let table = Box::leak(Box::new(HandleTable::with_capacity(capacity)));
        for entry in old.iter().flat_map(|old| &old.entries) {
            let key = entry.key.load(Ordering::Relaxed);
            if key != 0 {
                table.entries[table.find(key).0].store(key, entry.load());
            }
        }
        // A reader of the old table still finds its entries there: a thread gets a handle after its insertion, and
        // loads the table after that.
        self.known.table.store(table, Ordering::Release);
        table
    }
}

/// An entry's words as one value, for casts.
#[derive(Copy, Clone, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct EntryWords([u64; WORDS]);

fn words<T: Pod>(info: T) -> [u64; WORDS] {
    bytemuck::cast::<T, EntryWords>(info).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    type Info = [u64; 7];

    fn info(value: u64) -> Info {
        [value, value ^ 1, 0, 0, 0, 0, !value]
    }

    #[test]
    fn a_handle_that_is_used_again_stands_for_the_new_object() {
        let handles = ObjectTable::<Info>::new();
        assert_eq!(handles.get(0x10u64), None);
        handles.insert(0x10u64, info(1));
        handles.insert(0x10u64, info(2));
        assert_eq!(handles.get(0x10u64), Some(info(2)));
        assert_eq!(handles.remove(0x10u64), Some(info(2)));
        assert_eq!(handles.get(0x10u64), None);
        handles.insert(0u64, info(3));
        assert_eq!(handles.get(0u64), None);
    }

    proptest::proptest! {
        #[test]
        fn handles_are_found_as_in_a_map(steps in proptest::collection::vec((0u64..200, proptest::bool::ANY), 0..2000)) {
            let handles = ObjectTable::<Info>::new();
            let mut map = HashMap::new();
            for (number, (key, insert)) in steps.into_iter().enumerate() {
                let key = 0x5000_0000 + key * 16;
                if insert {
                    handles.insert(key, info(number as u64));
                    map.insert(key, info(number as u64));
                } else {
                    assert_eq!(handles.remove(key), map.remove(&key));
                }
            }
            for key in 0..200 {
                let key = 0x5000_0000 + key * 16;
                assert_eq!(handles.get(key), map.get(&key).copied());
            }
        }
    }

    #[test]
    fn readers_see_whole_entries_while_others_come_and_go() {
        let handles = ObjectTable::<Info>::new();
        handles.insert(0x100u64, info(7));
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                for _ in 0..20_000 {
                    assert_eq!(handles.get(0x100u64), Some(info(7)));
                    if let Some(other) = handles.get(0x200u64) {
                        assert_eq!(other, info(other[0]));
                    }
                }
            });
            let mut number = 0u64;
            while !reader.is_finished() {
                number += 1;
                handles.insert(0x200u64, info(number));
                handles.insert(0x1000 + number % 500 * 16, info(number));
                handles.remove(0x200u64);
                handles.remove(0x1000 + number % 300 * 16);
            }
        });
    }
}
