//! Shows that a long conversion goes on, and ends it when the user wants that.

use crate::signals;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shorter conversions show nothing.
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
    /// A conversion begins.
    pub fn new() -> Progress {
        Progress {
            terminal: io::stderr().is_terminal(),
            next: Instant::now() + PATIENCE,
            shown: false,
            bytes: 0,
            signals: signals::taken(),
        }
    }

    /// What is written to `file` through this is the progress.
    pub fn through<W: Write>(&mut self, file: W) -> Counting<'_, W> {
        Counting {
            file,
            progress: self,
        }
    }

    fn add(&mut self, bytes: usize) -> io::Result<()> {
        self.bytes += bytes as u64;
        if signals::taken() != self.signals {
            // Not the kind `Interrupted`, after which writers try again.
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

/// A writer that counts.
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
