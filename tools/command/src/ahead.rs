//! Makes the trace while the program runs, on a thread that takes time only when nobody else wants it.
//!
//! When the program has recorded all that it will, the command's own thread takes over, which need not stand back: it is
//! up to date before the program's memory is torn down, and adds the last records when the program is gone. Where a trace
//! cannot be made so ([`Following`] decides that), nothing is lost: it is made from the captures as ever.

use crate::cli::Contents;
use crate::trace::{Order, Parts};
use gputrail::analysis::summary::Summary;
use gputrail::collect::session::{Arrivals, End, Finished};
use gputrail::trace::capture::{Ahead as Outcome, Following, Options};
use gputrail::trace::perfetto::Exporter;
use rustix::fd::BorrowedFd;
use rustix::process::setpriority_process;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Scope, Thread};
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
    contents: Contents,
    options: OnceLock<Options>,
    summary: Summary,
}

/// A trace in the making.
pub struct Making<'a> {
    file: &'a Path,
    contents: Contents,
    options: &'a OnceLock<Options>,
    arrivals: Arrivals,
    running: AtomicBool,
    /// Held while a piece is taken in: by the thread that makes it, or by whoever has taken over.
    stage: Mutex<Stage<'a>>,
}

/// How far it has come.
#[expect(clippy::large_enum_variant, reason = "there is one")]
enum Stage<'a> {
    /// No process has attached.
    Waiting(&'a mut Summary),
    Following(Following<'a>),
    /// It cannot be made. The error will show again, with what to do about it, when it is made from the captures.
    Over,
}

impl Ahead {
    /// A trace of the first process that attaches, in a file of its own in `workshop`.
    pub fn new(workshop: &Path, contents: Contents) -> Ahead {
        Ahead {
            file: workshop.join("ahead"),
            contents,
            options: OnceLock::new(),
            summary: Summary::default(),
        }
    }

    /// Prepares to make it.
    pub fn making(&mut self, arrivals: Arrivals) -> Making<'_> {
        Making {
            file: &self.file,
            contents: self.contents,
            options: &self.options,
            arrivals,
            running: AtomicBool::new(true),
            stage: Mutex::new(Stage::Waiting(&mut self.summary)),
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

impl<'a> Making<'a> {
    /// Has a thread make it, until somebody takes over.
    pub fn start<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Running<'scope, 'a> {
        let thread = std::thread::Builder::new()
            .name("ahead".into())
            .spawn_scoped(scope, move || self.run());
        Running {
            making: self,
            thread: thread.ok().map(|handle| handle.thread().clone()),
        }
    }

    fn run(&self) {
        // If the thread cannot be made to stand back, it does its work all the same.
        let _ = setpriority_process(Some(rustix::thread::gettid()), NICENESS);
        self.options();
        let mut pause = PAUSES.0;
        let mut woke = Instant::now();
        while self.running.load(Ordering::Acquire) {
            // A piece at a time, since somebody may want to take over.
            if self.advance() {
                continue;
            }
            // There was something to do, or there was not.
            pause = match woke.elapsed() > WORK {
                true => PAUSES.0,
                false => PAUSES.1.min(pause * 2),
            };
            std::thread::park_timeout(pause);
            woke = Instant::now();
        }
    }

    /// Looking at the machine takes a while.
    fn options(&self) -> &'a Options {
        self.options.get_or_init(|| Order::options(self.contents))
    }

    fn stage(&self) -> MutexGuard<'_, Stage<'a>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in the next piece; `false` if there is none yet.
    fn advance(&self) -> bool {
        let mut stage = self.stage();
        match &mut *stage {
            Stage::Following(trace) => match trace.advance() {
                Ok(more) => more,
                Err(_) => {
                    *stage = Stage::Over;
                    false
                }
            },
            Stage::Waiting(_) => match self.arrivals.first_capture() {
                Some(capture) => {
                    *stage = match std::mem::replace(&mut *stage, Stage::Over) {
                        Stage::Waiting(summary) => self.begin(&capture, summary),
                        other => other,
                    };
                    true
                }
                None => false,
            },
            Stage::Over => false,
        }
    }

    fn settle(&self) {
        let mut stage = self.stage();
        if let Stage::Following(trace) = &mut *stage
            && trace.flush().is_err()
        {
            *stage = Stage::Over;
        }
    }

    fn begin(&self, capture: &Path, summary: &'a mut Summary) -> Stage<'a> {
        match File::create_new(self.file) {
            Ok(file) => {
                let trace = Exporter::new(Spare(file)).compressed(self.contents.compress);
                let options = self.options();
                Stage::Following(Following::new(capture, options, (trace, summary)))
            }
            Err(_) => Stage::Over,
        }
    }
}

/// A trace that a thread makes.
pub struct Running<'scope, 'a> {
    making: &'scope Making<'a>,
    /// The thread, until somebody takes over.
    thread: Option<Thread>,
}

impl Running<'_, '_> {
    /// Can be read from when it is time to take over: the process has ended its recording.
    pub fn ending(&self) -> Option<BorrowedFd<'_>> {
        let thread = self.thread.as_ref();
        thread.map(|_| self.making.arrivals.first_ended())
    }

    /// Whether the caller makes it.
    pub fn is_taken_over(&self) -> bool {
        self.thread.is_none()
    }

    /// From now on the caller makes it.
    pub fn take_over(&mut self) {
        self.making.running.store(false, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.unpark();
        }
    }

    /// Takes in the next piece, after [`take_over`](Running::take_over); `false` if there is none yet.
    pub fn advance(&self) -> bool {
        self.is_taken_over() && self.making.advance()
    }

    /// To be called when there is no further piece and nobody records any more: what was held back is told.
    pub fn settle(&self) {
        self.making.settle();
    }

    /// Makes the rest, now that the program has ended and its capture is whole.
    pub fn finish(mut self) -> Option<Outcome> {
        self.take_over();
        match std::mem::replace(&mut *self.making.stage(), Stage::Over) {
            Stage::Following(trace) => trace.finish().ok(),
            Stage::Waiting(_) | Stage::Over => None,
        }
    }
}

impl Drop for Running<'_, '_> {
    fn drop(&mut self) {
        self.take_over();
    }
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
