//! Makes the trace while the program runs, on a thread that takes time only when nobody else wants it.
//!
//! When the program ends, the trace is there but for the last records. Where that cannot be
//! ([`perfetto::follow`] tells when), nothing is lost: the trace is made from the captures as ever.

use crate::trace::Parts;
use gputrail::perfetto::{self, Ahead as Outcome, Options};
use gputrail::session::{Arrivals, End, Finished};
use gputrail::summary::Summary;
use rustix::process::setpriority_process;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two looks at a capture: when it has just grown, and when it has not for long.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(5));
/// What a look takes at least when there is something to do.
const WORK: Duration = Duration::from_micros(200);
/// Bytes that are left free on the disk.
const SPARE: u64 = 256 << 20;
/// Lets the program's threads go first.
const NICENESS: i32 = 19;

/// A trace in the making.
pub struct Ahead {
    file: PathBuf,
    running: Arc<AtomicBool>,
    thread: JoinHandle<Option<Parts>>,
}

impl Ahead {
    /// Begins to make a trace of the first process that attaches, in a file of its own in `workshop`.
    pub fn start(arrivals: Arrivals, workshop: &Path, options: Options) -> Option<Ahead> {
        let file = workshop.join("ahead");
        let running = Arc::new(AtomicBool::new(true));
        let (path, flag) = (file.clone(), running.clone());
        let thread = std::thread::Builder::new()
            .name("ahead".into())
            .spawn(move || make(&arrivals, &path, &options, &flag))
            .ok()?;
        Some(Ahead {
            file,
            running,
            thread,
        })
    }

    /// Says that the program has ended, and what the session saw of it. The trace, if it tells all.
    pub fn finish(self, finished: &Finished) -> Option<(PathBuf, Parts)> {
        self.running.store(false, Ordering::Release);
        self.thread.thread().unpark();
        let made = self.thread.join().ok().flatten();
        let whole = match &finished.processes[..] {
            [only] => {
                only.capture_error.is_none() && only.lost.is_none() && only.end != End::Running
            }
            _ => false,
        };
        match made {
            Some(parts) if whole => Some((self.file, parts)),
            _ => {
                let _ = std::fs::remove_file(&self.file);
                None
            }
        }
    }
}

fn make(
    arrivals: &Arrivals,
    file: &Path,
    options: &Options,
    running: &AtomicBool,
) -> Option<Parts> {
    // If the thread cannot be made to stand back, it does its work all the same.
    let _ = setpriority_process(Some(rustix::thread::gettid()), NICENESS);
    let (mut pause, mut woke) = (PAUSES.0, Instant::now());
    let mut wait = || {
        let more = running.load(Ordering::Acquire);
        if more {
            // There was something to do, or there was not.
            pause = match woke.elapsed() > WORK {
                true => PAUSES.0,
                false => PAUSES.1.min(pause * 2),
            };
            std::thread::park_timeout(pause);
            woke = Instant::now();
        }
        more
    };
    let capture = loop {
        if let Some(capture) = arrivals.first_capture() {
            break capture;
        }
        if !wait() {
            return None;
        }
    };
    let out = Spare(File::create_new(file).ok()?);
    let mut summary = Summary::default();
    match perfetto::follow(&capture, out, options, &mut summary, wait) {
        Ok(Outcome::Whole(report)) => Some(Parts {
            report: *report,
            summary,
        }),
        // An error will show again, with what to do about it, when the trace is made from the captures.
        _ => {
            let _ = std::fs::remove_file(file);
            None
        }
    }
}

/// A file on a disk that has room to spare: what the capture may need is not taken from it.
struct Spare(File);

impl Write for Spare {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let disk = rustix::fs::fstatvfs(&self.0)?;
        if disk.f_bavail.saturating_mul(disk.f_frsize) < SPARE {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
