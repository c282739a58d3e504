//! The progress of long conversions, and their interruption by the user.

use crate::signals;
use std::io::{self, IsTerminal, Write};
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
            signals: signals::taken(),
        }
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
            let megabytes = self.bytes >> 20;
            let _ = write!(
                io::stderr(),
                "\rgputrail: making the trace, {megabytes} MiB ..."
            );
        }
        Ok(())
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
