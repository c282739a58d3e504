//! The buffers that CUPTI fills with activity records.
//!
//! All of them are mapped when recording begins; a page takes memory once a buffer that covers it is used, and buffers
//! at the front are used first. A request runs inside of a call of the program, so it only takes a bit. If CUPTI holds all
//! buffers, a request maps a buffer of its own, which is unmapped when it comes back; a note says how often that was.

use gputrail_buffer::platform::sync::PerProcess;
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The size of a buffer.
pub(super) const BYTES: usize = 128 << 10;
/// The number of buffers. From version 13 on CUPTI takes one for each thread.
const BUFFERS: usize = 1024;
const WORD: usize = u64::BITS as usize;

/// The buffers of one process.
pub(super) struct BufferPool {
    start: AtomicPtr<u8>,
    /// A bit for each buffer that is free.
    free: [AtomicU64; BUFFERS / WORD],
    /// Buffers that were mapped one by one and are in use.
    extra: PerProcess<Vec<memmap2::MmapMut>>,
    /// The number of buffers that were mapped one by one.
    grown: AtomicU64,
    /// Requests for which there was no memory.
    refused: AtomicU64,
}

/// The buffers of this process.
pub(super) static POOL: BufferPool = BufferPool::new();

impl BufferPool {
    pub const fn new() -> BufferPool {
        BufferPool {
            start: AtomicPtr::new(std::ptr::null_mut()),
            free: [const { AtomicU64::new(0) }; BUFFERS / WORD],
            extra: PerProcess::new(),
            grown: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Maps the buffers, and one more behind them for requests for which there is no memory.
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

    /// Takes a buffer, or maps one if none is free. Without memory for that it is the last one, which all such requests
    /// share: CUPTI does not bear a null pointer. The records there are lost, and counted by request.
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
        self.map_one()
            .unwrap_or_else(|| start.wrapping_add(BUFFERS * BYTES))
    }

    #[cold]
    fn map_one(&self) -> Option<*mut u8> {
        let Ok(mut buffer) = memmap2::MmapMut::map_anon(BYTES) else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        self.grown.fetch_add(1, Ordering::Relaxed);
        let start = buffer.as_mut_ptr();
        self.extra.lock().push(buffer);
        Some(start)
    }

    /// Whether a buffer that was taken has records of one writer only.
    pub fn is_readable(&self, buffer: *const u8) -> bool {
        let is_it = |extra: &memmap2::MmapMut| extra.as_ptr() == buffer;
        self.number(buffer).is_some() || self.extra.lock().iter().any(is_it)
    }

    /// Gives a buffer back.
    pub fn put(&self, buffer: *const u8) {
        match self.number(buffer) {
            Some(number) => {
                self.free[number / WORD].fetch_or(1 << (number % WORD), Ordering::AcqRel);
            }
            None => self.extra.lock().retain(|extra| extra.as_ptr() != buffer),
        }
    }

    /// The number of buffers that were mapped one by one.
    pub fn grown(&self) -> u64 {
        self.grown.load(Ordering::Relaxed)
    }

    /// Requests for which there was no memory.
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
        let pool = BufferPool::new();
        pool.open().unwrap();
        let taken: Vec<_> = (0..BUFFERS).map(|_| pool.take()).collect();
        assert_eq!(taken.iter().collect::<HashSet<_>>().len(), BUFFERS);
        assert!(taken.iter().all(|buffer| pool.is_readable(*buffer)));
        // Beyond the pool each request has a buffer of its own, too.
        let further = [pool.take(), pool.take()];
        assert!(further[0] != further[1] && further.iter().all(|buffer| pool.is_readable(*buffer)));
        assert!(further.iter().all(|buffer| !taken.contains(buffer)));
        // SAFETY: the buffer is mapped, and this test alone uses it.
        unsafe { further[1].add(BYTES - 1).write(1) };
        pool.put(further[0]);
        assert!(!pool.is_readable(further[0]) && pool.is_readable(further[1]));
        assert_eq!((pool.grown(), pool.refused()), (2, 0));
        pool.put(taken[77]);
        assert_eq!(pool.take(), taken[77]);
    }
}
