//! The progress of long conversions, and their interruption by the user.

use crate::signals;
use gputrail_convert::ReadProgress;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Shorter conversions show no progress.
const PATIENCE: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_millis(200);

/// The progress of one conversion. A thread shows it on a terminal, until it is dropped.
pub struct Progress {
    shown: Arc<ShownProgress>,
    /// Ends the thread when it is dropped.
    display: Option<(Sender<()>, JoinHandle<()>)>,
    signals: u32,
}

/// The numbers that are shown.
#[derive(Default)]
struct ShownProgress {
    written: AtomicU64,
    inputs: Mutex<ReadProgress>,
}

impl Progress {
    /// Begins the progress of a conversion.
    pub fn new() -> Progress {
        let shown = Arc::<ShownProgress>::default();
        let display = || {
            let (end, ended) = channel();
            let shown = Arc::clone(&shown);
            let thread = std::thread::Builder::new().name("progress".into());
            // Without a thread for it, the progress is not shown.
            Some((end, thread.spawn(move || show(&shown, &ended)).ok()?))
        };
        let display = io::stderr().is_terminal().then(display).flatten();
        Progress {
            shown,
            display,
            signals: signals::taken(),
        }
    }

    /// The progress of a conversion that reads inputs.
    pub fn of(inputs: ReadProgress) -> Progress {
        let progress = Progress::new();
        *lock(&progress.shown.inputs) = inputs;
        progress
    }

    /// A writer to `file` that counts bytes as progress.
    pub fn through<W: Write>(&mut self, file: W) -> CountingWriter<'_, W> {
        CountingWriter {
            file,
            progress: self,
        }
    }

    fn add(&mut self, bytes: usize) -> io::Result<()> {
        self.shown
            .written
            .fetch_add(bytes as u64, Ordering::Relaxed);
        if signals::taken() != self.signals {
            // Not the kind `Interrupted`, after which writers retry.
            return Err(io::Error::other("interrupted"));
        }
        Ok(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, display)) = self.display.take() {
            drop(end);
            let _ = display.join();
        }
    }
}

fn lock(inputs: &Mutex<ReadProgress>) -> std::sync::MutexGuard<'_, ReadProgress> {
    inputs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows the progress until the other end of `ended` is dropped.
fn show(shown: &ShownProgress, ended: &Receiver<()>) {
    let (mut wait, mut is_shown) = (PATIENCE, false);
    // The latest reading of the inputs, and when it began.
    let mut latest = (0, Instant::now());
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(wait) {
        let inputs = lock(&shown.inputs).clone();
        if inputs.reading() != latest.0 {
            // The first one began when the conversion did.
            latest = match latest.0 {
                0 => (inputs.reading(), latest.1),
                _ => (inputs.reading(), Instant::now()),
            };
        }
        let written = shown.written.load(Ordering::Relaxed);
        let line = line(&inputs, latest.1.elapsed(), written);
        let _ = write!(io::stderr(), "\r\x1b[Kgputrail: {line}");
        (wait, is_shown) = (PERIOD, true);
    }
    if is_shown {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

/// How far a conversion is whose current reading of the inputs has taken `time`.
fn line(inputs: &ReadProgress, time: Duration, written: u64) -> String {
    let (total, read) = (inputs.total(), inputs.read());
    let written = match written >> 20 {
        0 => String::new(),
        megabytes => format!("; {megabytes} MiB written"),
    };
    if total == 0 {
        return format!("making the trace ...{written}");
    }
    let rate = read as f64 / time.as_secs_f64().max(1e-3);
    let left = if rate > 0.0 {
        format!(", {:.0} s left", total.saturating_sub(read) as f64 / rate)
    } else {
        String::new()
    };
    let reading = match inputs.reading() {
        0 | 1 => String::new(),
        reading => format!("reading {reading}: "),
    };
    format!(
        "{reading}{}% of {} MiB read at {:.0} MiB/s{left}{written}",
        (u128::from(read) * 100 / u128::from(total)).min(100),
        total >> 20,
        rate / f64::from(1 << 20),
    )
}

/// A writer that counts bytes.
pub struct CountingWriter<'a, W> {
    file: W,
    progress: &'a mut Progress,
}

impl<W: Write> Write for CountingWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.progress.add(bytes.len())?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_convert::{Conversion, OutputFormat};

    #[test]
    fn each_reading_of_the_inputs_is_shown_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.json");
        let mut file = std::fs::File::create(&path).unwrap();
        write!(file, "[").unwrap();
        for n in 0..40_000 {
            let end = if n == 39_999 { "]" } else { "," };
            let event = r#"{"ph":"X","name":"an event","dur":1,"pid":1,"tid":1,"ts":"#;
            writeln!(file, "{event}{n}}}{end}").unwrap();
        }
        drop(file);
        let conversion = Conversion::open(&[path]).unwrap();
        let progress = conversion.inputs().progress();
        let second = Duration::from_secs(1);
        assert_eq!(line(&progress, second, 0), "0% of 2 MiB read at 0 MiB/s");
        conversion
            .write_parts(folder.path(), OutputFormat::Perfetto, 500_000)
            .unwrap();
        // Once to measure, and at least once to write.
        assert!(progress.reading() >= 2);
        let number = progress.reading();
        assert_eq!(
            line(&progress, second, 3 << 20),
            format!("reading {number}: 100% of 2 MiB read at 2 MiB/s, 0 s left; 3 MiB written")
        );
        assert_eq!(
            line(&ReadProgress::default(), second, 5 << 20),
            "making the trace ...; 5 MiB written"
        );
    }
}
