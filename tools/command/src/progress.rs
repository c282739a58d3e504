//! The progress of long conversions, and their interruption by the user.

use crate::signals;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shorter conversions show no progress.
const PATIENCE: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_millis(200);

/// The progress of one conversion.
pub struct Progress {
    terminal: bool,
    next: Instant,
    shown: bool,
    bytes: u64,
    /// Length of the inputs, and how many bytes of each have been read.
    inputs: (u64, Vec<Arc<AtomicU64>>),
    begin: Instant,
    signals: u32,
}

impl Progress {
    /// Begins the progress of a conversion.
    pub fn new() -> Progress {
        Progress {
            terminal: io::stderr().is_terminal(),
            next: Instant::now() + PATIENCE,
            shown: false,
            bytes: 0,
            inputs: (0, Vec::new()),
            begin: Instant::now(),
            signals: signals::taken(),
        }
    }

    /// The conversion reads inputs of `total` bytes. `read` counts the bytes of each that have been read.
    pub fn reads(&mut self, total: u64, read: Vec<Arc<AtomicU64>>) {
        self.inputs = (total, read);
    }

    /// A writer to `file` that counts bytes as progress.
    pub fn through<W: Write>(&mut self, file: W) -> Counting<'_, W> {
        Counting {
            file,
            progress: self,
        }
    }

    fn add(&mut self, bytes: usize) -> io::Result<()> {
        self.bytes += bytes as u64;
        if signals::taken() != self.signals {
            // Not the kind `Interrupted`, after which writers retry.
            return Err(io::Error::other("interrupted"));
        }
        if self.terminal && Instant::now() >= self.next {
            self.next = Instant::now() + PERIOD;
            self.shown = true;
            let _ = write!(io::stderr(), "\r\x1b[Kgputrail: {}", self.line());
        }
        Ok(())
    }

    /// How far the conversion is.
    fn line(&self) -> String {
        let megabytes = self.bytes >> 20;
        let (total, read) = &self.inputs;
        if *total == 0 {
            return format!("making the trace, {megabytes} MiB ...");
        }
        let read: u64 = read.iter().map(|one| one.load(Ordering::Relaxed)).sum();
        let seconds = self.begin.elapsed().as_secs_f64();
        let rate = read as f64 / seconds;
        let left = total.saturating_sub(read) as f64 / rate;
        format!(
            "{}% of {} MiB read at {:.0} MiB/s, {left:.0} s left; {megabytes} MiB written",
            (u128::from(read) * 100 / u128::from(*total)).min(100),
            total >> 20,
            rate / f64::from(1 << 20),
        )
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// A writer that counts bytes.
pub struct Counting<'a, W> {
    file: W,
    progress: &'a mut Progress,
}

impl<W: Write> Write for Counting<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.progress.add(bytes.len())?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
