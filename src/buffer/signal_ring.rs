//! A ring of samples from the signal handler of one thread to the reader that drains them: samples that do not fit are
//! counted. Neither side ever waits. It consists of words that are loaded and stored whole, so that the handler needs
//! nothing else.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of words of a sample.
pub const WORDS: usize = 3;
/// Capacity of a ring in samples: a few seconds of the fastest timer.
#[cfg(not(loom))]
const ROOM: u64 = 1024;
#[cfg(loom)]
const ROOM: u64 = 2;

/// A ring with one writer, the handler, and one reader.
pub struct SignalRing {
    /// Number of samples written so far.
    written: AtomicU64,
    /// Number of samples read so far, which never exceeds `written`.
    read: AtomicU64,
    /// Number of samples that did not fit.
    lost: AtomicU64,
    words: Vec<[AtomicU64; WORDS]>,
}

impl SignalRing {
    /// An empty ring.
    pub fn new() -> SignalRing {
        let words = || std::array::from_fn(|_| AtomicU64::new(0));
        SignalRing {
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            words: (0..ROOM).map(|_| words()).collect(),
        }
    }

    /// Adds a sample. For the writer only; async-signal-safe.
    pub fn put(&self, sample: [u64; WORDS]) {
        let written = self.written.load(Ordering::Relaxed);
        // Acquire: the words of this slot have been read before they are written again.
        if written - self.read.load(Ordering::Acquire) >= ROOM {
            // The reader resets it concurrently.
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let place = &self.words[(written % ROOM) as usize];
        for (word, value) in place.iter().zip(sample) {
            word.store(value, Ordering::Relaxed);
        }
        self.written.store(written + 1, Ordering::Release);
    }

    /// Removes all samples, and returns how many were lost since the last time. For the reader only.
    pub fn drain(&self, mut take: impl FnMut([u64; WORDS])) -> u64 {
        let written = self.written.load(Ordering::Acquire);
        let mut read = self.read.load(Ordering::Relaxed);
        while read != written {
            let place = &self.words[(read % ROOM) as usize];
            take(std::array::from_fn(|word| {
                place[word].load(Ordering::Relaxed)
            }));
            read += 1;
        }
        self.read.store(read, Ordering::Release);
        self.lost.swap(0, Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn samples_that_do_not_fit_are_counted() {
        let ring = SignalRing::new();
        (0..ROOM + 5).for_each(|number| ring.put([number, 2 * number, 0]));
        let mut taken = Vec::new();
        assert_eq!(ring.drain(|sample| taken.push(sample)), 5);
        assert_eq!(taken.len() as u64, ROOM);
        assert_eq!(taken[7], [7, 14, 0]);
        ring.put([9, 9, 9]);
        taken.clear();
        assert_eq!(ring.drain(|sample| taken.push(sample)), 0);
        assert_eq!(taken, [[9, 9, 9]]);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn every_sample_comes_whole_and_once_or_is_counted() {
        loom::model(|| {
            let ring = Arc::new(SignalRing::new());
            let writer = ring.clone();
            let handler = loom::thread::spawn(move || {
                (1..=4).for_each(|number| writer.put([number; WORDS]));
            });
            let (mut lost, mut taken) = (0, Vec::new());
            for _ in 0..2 {
                lost += ring.drain(|sample| taken.push(sample));
            }
            handler.join().unwrap();
            lost += ring.drain(|sample| taken.push(sample));
            assert!(
                taken
                    .iter()
                    .all(|sample| sample.iter().all(|word| *word == sample[0]))
            );
            assert!(taken.is_sorted_by(|one, next| one[0] < next[0]));
            assert_eq!(taken.len() as u64 + lost, 4);
        });
    }
}
