//! The parent's side: a thread that gives each process its buffer and its capture, has a collector take to the capture
//! what comes into the buffer, and saves what is left there when the process is gone. The thread's work is in `thread`,
//! what the system says of the ends of processes in `ending`.

mod ending;
mod thread;

use super::SOCKET;
use super::control::{Controls, Requests};
use super::flight::Flight;
use super::handshake::Listener;
use super::memory;
use super::message::{Reason, Refusal};
use super::switch::Switch;
use gputrail_buffer::clock::{self, TickSource};
use gputrail_buffer::platform::sync::lock_std;
use gputrail_buffer::{BlockView, Buffer, Collector, Layout, Policy, Sink};
use gputrail_capture::queue::QueueReader;
use gputrail_capture::{CaptureSink, Writer};
use gputrail_record::{ClockSnapshot, NoteKind, count};
use rustix::event::EventfdFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use thread::Session;

/// The settings of a session.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where the socket is made; private to the user.
    pub directory: PathBuf,
    /// Where captures are made; private to the user.
    pub captures: PathBuf,
    /// How the pool of each process is divided.
    pub layout: Layout,
    /// The policy when no block is empty.
    pub policy: Policy,
    /// See [`Config::watermark`](super::message::Config::watermark).
    pub watermark: u32,
    /// Processes recorded at a time; later ones run unrecorded and are counted.
    pub processes: usize,
    /// With [`Policy::Overwrite`]: when what is kept is written out.
    pub flight: Option<Flight>,
    /// Whether the session begins switched off, see [`Server::controls`].
    pub paused: bool,
}

/// A session that could not be opened, or whose thread failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}: {source}")]
pub struct ServerError {
    action: &'static str,
    source: std::io::Error,
}

/// How the part of a process in the session ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The process flushed everything and ended its recording itself.
    Finished,
    /// The process is gone without having done so; with the signal that killed it, or `None` where its parent had
    /// waited for it before anybody could look.
    Died(Option<i32>),
    /// The process ended with this exit code and without exit handlers, by `_exit` or `quick_exit`.
    Exited(i32),
    /// The process became another program by exec.
    Replaced,
    /// The process was still running when the session ended.
    Running,
}

/// A process that was recorded.
#[derive(Clone, Debug)]
pub struct ProcessCapture {
    /// Number in the session, from 1.
    pub process: u32,
    /// Its process id.
    pub pid: u32,
    /// Why it came.
    pub reason: Reason,
    /// The file with its records.
    pub path: PathBuf,
    /// The end of the process.
    pub end: End,
    /// The system's error number and the length of the capture when it could not grow any more.
    pub capture_error: Option<(i32, u64)>,
    /// Other losses in the capture, if any.
    pub lost: Option<String>,
}

impl ProcessCapture {
    /// Where the capture could take no more, notes that in the capture itself, for the trace. To be
    /// called when there is room again.
    pub fn note_early_end(&self) -> std::io::Result<()> {
        let Some((errno, bytes)) = self.capture_error else {
            return Ok(());
        };
        let reason = std::io::Error::from_raw_os_error(errno);
        let words = format!("the capture ended at byte {bytes}: {reason}");
        memory::note(&self.path, NoteKind::ENDED_EARLY, &words)
    }
}

/// The result of a session.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// The processes in the order in which they came.
    pub processes: Vec<ProcessCapture>,
    /// Processes that asked and got nothing, with the reason.
    pub refused: Vec<(u32, Refusal)>,
    /// Whether the session began switched off and stayed so.
    pub was_never_on: bool,
    /// Whether processes could not even ask, because gputrail or the system had too many open files.
    pub ran_out_of_files: bool,
}

impl Finished {
    /// Why processes were not recorded: a sentence for each reason, with the number of processes and some of their ids.
    pub fn refusals(&self) -> Vec<String> {
        let mut reasons: Vec<(Refusal, Vec<u32>)> = Vec::new();
        for &(pid, refusal) in &self.refused {
            match reasons.iter_mut().find(|(known, _)| *known == refusal) {
                Some((_, pids)) => pids.push(pid),
                None => reasons.push((refusal, vec![pid])),
            }
        }
        let sentence = |(refusal, pids): (Refusal, Vec<u32>)| {
            let verb = if pids.len() == 1 { "was" } else { "were" };
            let named: Vec<String> = pids.iter().take(NAMED).map(u32::to_string).collect();
            let others = if pids.len() > NAMED { ", ..." } else { "" };
            let (number, named) = (pids.len() as u64, named.join(", "));
            format!(
                "{} {verb} not recorded ({named}{others}): {refusal}",
                count(number, "process")
            )
        };
        reasons.into_iter().map(sentence).collect()
    }

    /// Notes in the capture of the first process, for the trace, which processes were not recorded.
    pub fn note_refusals(&self) -> std::io::Result<()> {
        let Some(first) = self.processes.first() else {
            return Ok(());
        };
        let note = |words: String| memory::note(&first.path, NoteKind::MISSING, &words);
        self.refusals().into_iter().try_for_each(note)
    }
}

/// A running session.
pub struct Server {
    shared: Arc<Shared>,
    result: Receiver<Finished>,
}

struct Shared {
    wake: OwnedFd,
    /// See [`Arrivals::first_ended`].
    first_ended: OwnedFd,
    command: AtomicU32,
    attached: Mutex<Vec<(u32, PathBuf)>>,
    requests: Requests,
    is_off: AtomicBool,
}

/// Why a session is off that has not been switched on yet.
const BEGAN_PAUSED: &str = "record --paused";

/// Maximum number of processes that were not recorded that are named.
const NAMED: usize = 8;

/// Bits of `Shared::command`.
const KILL: u32 = 1;
const FINISH: u32 = 2;
const DUMP: u32 = 4;

impl Server {
    /// Opens the session: makes the socket and starts the thread, which makes the first pool ahead.
    pub fn start(options: ServerOptions) -> Result<Server, ServerError> {
        let failed = |action| {
            move |errno: Errno| ServerError {
                action,
                source: errno.into(),
            }
        };
        let listener = Listener::bind(&options.directory.join(SOCKET))
            .map_err(failed("make the session's socket"))?;
        let event = || {
            rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(failed("make the session's eventfd"))
        };
        let shared = Arc::new(Shared {
            wake: event()?,
            first_ended: event()?,
            command: AtomicU32::new(0),
            attached: Mutex::default(),
            requests: Requests::default(),
            is_off: AtomicBool::new(options.paused),
        });
        let switch = Switch::new(!options.paused).map_err(|source| ServerError {
            action: "make the session's switch",
            source,
        })?;
        let paused = options.paused.then_some(BEGAN_PAUSED);
        // Each capture's header needs its result.
        clock::measure_frequency();
        let session = Session::new(options, shared.clone(), listener, switch, paused);
        let (sender, result) = std::sync::mpsc::channel();
        std::thread::Builder::new()
            .name("session".into())
            .spawn(move || session.run(&sender))
            .map_err(|source| ServerError {
                action: "start the session's thread",
                source,
            })?;
        Ok(Server { shared, result })
    }

    /// Process ids of all that have attached so far.
    pub fn attached(&self) -> Vec<u32> {
        let attached = lock_std(&self.shared.attached);
        attached.iter().map(|(pid, _)| *pid).collect()
    }

    /// A handle for a thread that waits for a process to attach.
    pub fn arrivals(&self) -> Arrivals {
        Arrivals(self.shared.clone())
    }

    /// A handle by which other threads control the session.
    pub fn controls(&self) -> Controls {
        let shared = self.shared.clone();
        Controls::new(move |request| {
            let sent = shared.requests.push(request);
            raise(&shared.wake);
            sent
        })
    }

    /// Has what is kept written out, see [`ServerOptions::flight`].
    pub fn dump(&self) {
        self.shared.send(DUMP);
    }

    /// Kills all processes that are being recorded.
    pub fn kill(&self) {
        self.shared.send(KILL);
    }

    /// Ends the session. Processes that are still running are told to stop recording, and what they
    /// recorded is taken as it is.
    pub fn finish(self) -> Finished {
        self.shared.send(FINISH);
        self.result.recv().unwrap_or_default()
    }
}

/// The processes that have attached to a session so far.
#[derive(Clone)]
pub struct Arrivals(Arc<Shared>);

impl Arrivals {
    /// The capture of the first process that attached.
    pub fn first_capture(&self) -> Option<PathBuf> {
        let attached = lock_std(&self.0.attached);
        attached.first().map(|(_, path)| path.clone())
    }

    /// Can be read from when that process has ended its session: what it recorded by then is in its capture.
    pub fn first_ended(&self) -> BorrowedFd<'_> {
        self.0.first_ended.as_fd()
    }
}

impl Shared {
    fn send(&self, command: u32) {
        self.command.fetch_or(command, Ordering::Release);
        raise(&self.wake);
    }
}

fn raise(event: &OwnedFd) {
    // The write fails only when the counter is full: then the waiting thread has been woken anyway.
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}

/// A process that records into memory of ours.
pub(super) struct Live {
    pub capture: ProcessCapture,
    pub buffer: Buffer,
    pub ticks: TickSource,
    /// The names and clocks that the process has described.
    pub metadata: Arc<Mutex<QueueReader>>,
    pub writer: Writer,
    /// The number of records in the capture.
    records: Arc<AtomicU64>,
    collector: Collector,
    /// `None` when the system could give none; then the connection's end has to do.
    pidfd: Option<OwnedFd>,
    connection: Option<OwnedFd>,
}

/// Writes to the capture of a process: records after the names that they refer to.
struct SessionSink {
    metadata: Arc<Mutex<QueueReader>>,
    capture: CaptureSink,
    writer: Writer,
    records: Arc<AtomicU64>,
    session: Arc<Shared>,
    /// Whether the clocks have been read since the session was switched off.
    rests: bool,
}

impl Sink for SessionSink {
    fn look(&mut self) {
        lock_std(&self.metadata).drain(&self.writer);
    }

    fn records(&mut self, view: &BlockView<'_>) {
        // The records may have names that came after the look.
        self.look();
        let records = view.records().count() as u64;
        self.records.fetch_add(records, Ordering::Relaxed);
        self.capture.records(view);
    }

    fn tick(&mut self, reading: Option<&ClockSnapshot>) {
        self.look();
        // A session that is off for a month does not fill the disk with readings of clocks.
        let is_off = self.session.is_off.load(Ordering::Relaxed);
        if !(std::mem::replace(&mut self.rests, is_off) && is_off) {
            self.capture.tick(reading);
        }
    }
}
