//! Makes the trace while the program runs, on a thread of the lowest priority.
//!
//! When the program has ended its recording, the command's own thread takes over with normal priority: it catches up
//! while the program's memory is torn down, and adds the last records when the program has ended. If a trace cannot be
//! made this way ([`Following`] decides that), nothing is lost: it is made from the captures afterwards.

use crate::cli::contents::Contents;
use crate::trace::{TraceCounts, TraceOrder};
use gputrail_analysis::summary::Summary;
use gputrail_collect::session::{Arrivals, ProcessEnd, SessionResult};
use gputrail_trace::capture::{FollowOutcome as Outcome, Following, Options};
use gputrail_trace::model::DeviceRows;
use gputrail_trace::perfetto::Exporter;
use rustix::fd::BorrowedFd;
use rustix::process::setpriority_process;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Scope, Thread};
use std::time::{Duration, Instant};

/// Time between two reads of a capture: if it has just grown, and if it has not grown for a while.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(5));
/// Minimum time of a read that found records.
const WORK: Duration = Duration::from_micros(200);
/// Number of bytes that are left free on the disk.
const SPARE: u64 = 256 << 20;
/// Lets the program's threads run first.
const NICENESS: i32 = 19;

/// The settings and the file of a trace that is made while the program runs.
pub struct Ahead {
    file: PathBuf,
    contents: Contents,
    options: OnceLock<Options>,
    summary: Summary,
}

/// A trace that is being made.
pub struct Making<'a> {
    file: &'a Path,
    contents: Contents,
    options: &'a OnceLock<Options>,
    arrivals: Arrivals,
    running: AtomicBool,
    /// Locked while a part of the capture is read: by the thread that makes the trace, or by the caller who has taken
    /// over.
    stage: Mutex<TraceProgress<'a>>,
}

/// The progress of a trace.
#[expect(clippy::large_enum_variant, reason = "there is one")]
enum TraceProgress<'a> {
    /// No process has attached.
    Waiting(&'a mut Summary),
    Following(Following<'a>),
    /// The trace cannot be made. The error occurs again, with a remedy, when the trace is made from the captures.
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

    /// Creates the state with which the trace is made.
    pub fn making(&mut self, arrivals: Arrivals) -> Making<'_> {
        Making {
            file: &self.file,
            contents: self.contents,
            options: &self.options,
            arrivals,
            running: AtomicBool::new(true),
            stage: Mutex::new(TraceProgress::Waiting(&mut self.summary)),
        }
    }

    /// Delivers the trace in `outcome`, if it contains everything that the session recorded.
    pub fn deliver(
        self,
        outcome: Option<Outcome>,
        finished: &SessionResult,
    ) -> Option<(PathBuf, TraceCounts)> {
        let whole = match &finished.processes[..] {
            [only] if finished.refused.is_empty() => {
                only.capture_error.is_none()
                    && only.lost.is_none()
                    && only.end != ProcessEnd::Running
            }
            _ => false,
        };
        match outcome {
            Some(Outcome::Whole(report)) if whole => Some((
                self.file,
                TraceCounts {
                    report: *report,
                    summary: self.summary,
                    left_out: 0,
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
    /// Starts a thread that makes the trace until the caller takes over.
    pub fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
    ) -> RunningTrace<'scope, 'a> {
        let thread = std::thread::Builder::new()
            .name("ahead".into())
            .spawn_scoped(scope, move || self.run());
        RunningTrace {
            making: self,
            thread: thread.ok().map(|handle| handle.thread().clone()),
        }
    }

    fn run(&self) {
        // If its priority cannot be lowered, the thread works all the same.
        let _ = setpriority_process(Some(rustix::thread::gettid()), NICENESS);
        self.options();
        let mut pause = PAUSES.0;
        let mut woke = Instant::now();
        while self.running.load(Ordering::Acquire) {
            // One part at a time, since the caller may want to take over.
            if self.advance() {
                continue;
            }
            // Whether there were records to read.
            pause = if woke.elapsed() > WORK {
                PAUSES.0
            } else {
                PAUSES.1.min(pause * 2)
            };
            std::thread::park_timeout(pause);
            woke = Instant::now();
        }
    }

    /// The options of the conversion, created once: reading the properties of the machine takes a while.
    fn options(&self) -> &'a Options {
        self.options
            .get_or_init(|| TraceOrder::options(self.contents))
    }

    fn stage(&self) -> MutexGuard<'_, TraceProgress<'a>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the next part of the capture; `false` if there is none at present.
    fn advance(&self) -> bool {
        let mut stage = self.stage();
        match &mut *stage {
            TraceProgress::Following(trace) => match trace.advance() {
                Ok(more) => more,
                Err(_) => {
                    *stage = TraceProgress::Over;
                    false
                }
            },
            TraceProgress::Waiting(_) => match self.arrivals.first_capture() {
                Some(capture) => {
                    *stage = match std::mem::replace(&mut *stage, TraceProgress::Over) {
                        TraceProgress::Waiting(summary) => self.begin(&capture, summary),
                        other => other,
                    };
                    true
                }
                None => false,
            },
            TraceProgress::Over => false,
        }
    }

    fn settle(&self) {
        let mut stage = self.stage();
        if let TraceProgress::Following(trace) = &mut *stage
            && trace.flush().is_err()
        {
            *stage = TraceProgress::Over;
        }
    }

    fn begin(&self, capture: &Path, summary: &'a mut Summary) -> TraceProgress<'a> {
        match File::create_new(self.file) {
            Ok(file) => {
                let trace = Exporter::new(Spare(file)).compressed(self.contents.compress);
                let options = self.options();
                TraceProgress::Following(if options.device_rows {
                    Following::new(capture, options, (DeviceRows::new(trace), summary))
                } else {
                    Following::new(capture, options, (trace, summary))
                })
            }
            Err(_) => TraceProgress::Over,
        }
    }
}

/// A trace that a thread makes.
pub struct RunningTrace<'scope, 'a> {
    making: &'scope Making<'a>,
    /// The thread, until the caller takes over.
    thread: Option<Thread>,
}

impl RunningTrace<'_, '_> {
    /// A descriptor that becomes readable when it is time to take over: the process has ended its recording.
    pub fn ending(&self) -> Option<BorrowedFd<'_>> {
        let thread = self.thread.as_ref();
        thread.map(|_| self.making.arrivals.first_ended())
    }

    /// Whether the caller has taken over.
    pub fn is_taken_over(&self) -> bool {
        self.thread.is_none()
    }

    /// Stops the thread; the caller makes the trace from now on.
    pub fn take_over(&mut self) {
        self.making.running.store(false, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.unpark();
        }
    }

    /// Reads the next part of the capture, after [`take_over`](RunningTrace::take_over); `false` if there is none at
    /// present.
    pub fn advance(&self) -> bool {
        self.is_taken_over() && self.making.advance()
    }

    /// Passes on the records that were held back. Called when there is no further part and no process records any more.
    pub fn settle(&self) {
        self.making.settle();
    }

    /// Makes the rest of the trace, after the program has ended and its capture is complete.
    pub fn finish(mut self) -> Option<Outcome> {
        self.take_over();
        match std::mem::replace(&mut *self.making.stage(), TraceProgress::Over) {
            TraceProgress::Following(trace) => trace.finish().ok(),
            TraceProgress::Waiting(_) | TraceProgress::Over => None,
        }
    }
}

impl Drop for RunningTrace<'_, '_> {
    fn drop(&mut self) {
        self.take_over();
    }
}

/// A file that is written only while the disk has space to spare: it does not take space that the capture may need.
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
