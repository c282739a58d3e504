//! How far the reading of inputs is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How much of some inputs has been read. Any thread may ask, while another one reads.
#[derive(Clone, Debug, Default)]
pub struct ReadProgress {
    /// The number of bytes of all files on disk.
    pub(super) total: u64,
    /// How many bytes of each file have been read.
    pub(super) files: Vec<Arc<AtomicU64>>,
    /// How many times the reading of all files has begun.
    pub(super) readings: Arc<AtomicU64>,
}

impl ReadProgress {
    /// The number of bytes of all files on disk.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many of them the current reading has gone through.
    pub fn read(&self) -> u64 {
        let files = self.files.iter();
        files.map(|file| file.load(Ordering::Relaxed)).sum()
    }

    /// The number of the current reading, from 1: outputs of limited size take several. 0 before the first one.
    pub fn reading(&self) -> u64 {
        self.readings.load(Ordering::Relaxed)
    }
}
