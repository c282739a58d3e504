//! Makes the trace while the program runs, on a thread that takes time only when nobody else wants it.
//!
//! When the program ends, the trace is there but for the last records, which the command's own thread adds. Where
//! that cannot be ([`perfetto::Following`] tells when), nothing is lost: the trace is made from the captures as ever.

use crate::trace::Parts;
use gputrail::perfetto::{Ahead as Outcome, Following, Options};
use gputrail::session::{Arrivals, End, Finished};
use gputrail::summary::Summary;
use rustix::process::setpriority_process;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Time between two looks at a capture: when it has just grown, and when it has not for long.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(5));
/// What a look takes at least when there is something to do.
const WORK: Duration = Duration::from_micros(200);
/// Bytes that are left free on the disk.
const SPARE: u64 = 256 << 20;
/// Lets the program's threads go first.
const NICENESS: i32 = 19;

/// What a trace in the making is made with, and where it is.
pub struct Ahead {
    file: PathBuf,
    options: Options,
    summary: Summary,
    running: AtomicBool,
}

/// The thread that makes it.
pub struct Making<'scope> {
    running: &'scope AtomicBool,
    thread: Option<ScopedJoinHandle<'scope, Option<Trace<'scope>>>>,
}

type Trace<'a> = Following<'a>;

impl Ahead {
    /// A trace of the first process that attaches, in a file of its own in `workshop`.
    pub fn new(workshop: &Path, options: Options) -> Ahead {
        Ahead {
            file: workshop.join("ahead"),
            options,
            summary: Summary::default(),
            running: AtomicBool::new(true),
        }
    }

    /// Begins to make it.
    pub fn start<'scope>(
        &'scope mut self,
        scope: &'scope Scope<'scope, '_>,
        arrivals: Arrivals,
    ) -> Making<'scope> {
        let Ahead {
            file,
            options,
            summary,
            running,
        } = self;
        let (file, options, running) = (&*file, &*options, &*running);
        let thread = std::thread::Builder::new()
            .name("ahead".into())
            .spawn_scoped(scope, move || {
                make(&arrivals, file, options, summary, running)
            });
        Making {
            running,
            thread: thread.ok(),
        }
    }

    /// The trace that `outcome` tells of, if it tells all that the session saw.
    pub fn deliver(
        self,
        outcome: Option<Outcome>,
        finished: &Finished,
    ) -> Option<(PathBuf, Parts)> {
        let whole = match &finished.processes[..] {
            [only] => {
                only.capture_error.is_none() && only.lost.is_none() && only.end != End::Running
            }
            _ => false,
        };
        match outcome {
            Some(Outcome::Whole(report)) if whole => Some((
                self.file,
                Parts {
                    report: *report,
                    summary: self.summary,
                },
            )),
            _ => {
                let _ = std::fs::remove_file(&self.file);
                None
            }
        }
    }
}

impl Making<'_> {
    /// Makes the rest, now that the program has ended and its capture is whole. An error will show again, with what
    /// to do about it, when the trace is made from the captures.
    pub fn finish(mut self) -> Option<Outcome> {
        let trace = self.stop()?;
        trace.finish().ok()
    }
}

impl<'scope> Making<'scope> {
    fn stop(&mut self) -> Option<Trace<'scope>> {
        self.running.store(false, Ordering::Release);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok().flatten()
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

fn make<'a>(
    arrivals: &Arrivals,
    file: &Path,
    options: &'a Options,
    summary: &'a mut Summary,
    running: &AtomicBool,
) -> Option<Trace<'a>> {
    // If the thread cannot be made to stand back, it does its work all the same.
    let _ = setpriority_process(Some(rustix::thread::gettid()), NICENESS);
    let (mut pause, mut woke) = (PAUSES.0, Instant::now());
    let mut wait = || {
        // There was something to do, or there was not.
        pause = match woke.elapsed() > WORK {
            true => PAUSES.0,
            false => PAUSES.1.min(pause * 2),
        };
        std::thread::park_timeout(pause);
        woke = Instant::now();
    };
    let runs = || running.load(Ordering::Acquire);
    let capture = loop {
        match arrivals.first_capture() {
            Some(capture) => break capture,
            None if runs() => wait(),
            None => return None,
        }
    };
    let out = Spare(File::create_new(file).ok()?);
    let mut trace = Following::new(&capture, out, options, summary);
    // A piece at a time: what is left when the program ends is for a thread that need not stand back.
    while runs() {
        if !trace.advance().ok()? {
            wait();
        }
    }
    Some(trace)
}

/// A file on a disk that has room to spare: what the capture may need is not taken from it.
pub struct Spare(File);

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
