//! The buffers that CUPTI fills with activity records.
//!
//! All of them are mapped when recording begins; a page takes memory once a buffer that covers it is used, and buffers
//! at the front are used first. A request takes a bit and nothing else: it runs inside of a call of the program.

use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The size of a buffer.
pub(super) const BYTES: usize = 128 << 10;
/// The number of buffers. From version 13 on CUPTI takes one for each thread.
const BUFFERS: usize = 1024;
const WORD: usize = u64::BITS as usize;

/// The buffers of one process.
pub(super) struct Pool {
    start: AtomicPtr<u8>,
    /// A bit for each buffer that is free.
    free: [AtomicU64; BUFFERS / WORD],
    /// Requests that found no free buffer.
    refused: AtomicU64,
}

impl Pool {
    pub const fn new() -> Pool {
        Pool {
            start: AtomicPtr::new(std::ptr::null_mut()),
            free: [const { AtomicU64::new(0) }; BUFFERS / WORD],
            refused: AtomicU64::new(0),
        }
    }

    /// Maps the buffers, and one more behind them for requests that find none free.
    pub fn open(&self) -> io::Result<()> {
        let memory = memmap2::MmapOptions::new()
            .len((BUFFERS + 1) * BYTES)
            .no_reserve_swap()
            .map_anon()?;
        // It stays mapped until the process ends: CUPTI may write at any time.
        let start = std::mem::ManuallyDrop::new(memory).as_mut_ptr();
        self.start.store(start, Ordering::Release);
        for word in &self.free {
            word.store(u64::MAX, Ordering::Release);
        }
        Ok(())
    }

    /// Takes a buffer. If none is free, it is the last one, which everybody gets then: CUPTI does not bear a null
    /// pointer. What is written there is lost, and [`Pool::put`] says so.
    pub fn take(&self) -> *mut u8 {
        let start = self.start.load(Ordering::Acquire);
        for (place, word) in self.free.iter().enumerate() {
            let mut free = word.load(Ordering::Relaxed);
            while free != 0 {
                let bit = free.trailing_zeros();
                let left = free & (free - 1);
                match word.compare_exchange_weak(free, left, Ordering::AcqRel, Ordering::Relaxed) {
                    Ok(_) => return start.wrapping_add((place * WORD + bit as usize) * BYTES),
                    Err(found) => free = found,
                }
            }
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        start.wrapping_add(BUFFERS * BYTES)
    }

    /// Whether a buffer that was taken has records of one writer only.
    pub fn is_readable(&self, buffer: *const u8) -> bool {
        self.number(buffer).is_some()
    }

    /// Gives a buffer back.
    pub fn put(&self, buffer: *const u8) {
        if let Some(number) = self.number(buffer) {
            self.free[number / WORD].fetch_or(1 << (number % WORD), Ordering::AcqRel);
        }
    }

    /// Requests that found no free buffer.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn number(&self, buffer: *const u8) -> Option<usize> {
        let start = self.start.load(Ordering::Acquire) as usize;
        let offset = (buffer as usize).checked_sub(start)?;
        (offset.is_multiple_of(BYTES) && offset / BYTES < BUFFERS).then_some(offset / BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn buffers_are_distinct_until_none_is_free_and_come_back() {
        let pool = Pool::new();
        pool.open().unwrap();
        let taken: Vec<_> = (0..BUFFERS).map(|_| pool.take()).collect();
        assert_eq!(taken.iter().collect::<HashSet<_>>().len(), BUFFERS);
        assert!(taken.iter().all(|buffer| pool.is_readable(*buffer)));
        let last = pool.take();
        assert!(!last.is_null() && !pool.is_readable(last) && pool.refused() == 1);
        // SAFETY: the last buffer is mapped, and this test alone uses it.
        unsafe { last.add(BYTES - 1).write(1) };
        pool.put(last);
        pool.put(taken[77]);
        assert_eq!(pool.take(), taken[77]);
        assert!(!pool.is_readable(pool.take()));
    }
}
